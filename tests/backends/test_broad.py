"""Broad phase: the pairs whose boxes meet are those of comparing all with all."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tumble as tb
from tumble.backends.base import blocks
from tumble.backends.shape_arrays import BoxedArrays, FilterArrays, GridArrays, PairArrays, PlaneArrays
from tumble.collide.broadphase import PairSearch
from tumble.enums import BodyKind, ShapeKind
from tumble.scene import rotation

from .cover import covers
from .data import assert_close, frozen

H = 1e-2
SHAPES = (0, 1, 40, 512, 700)
"""None, one, too few for a grid, whole blocks of every size, and more"""


class Scene:
    """Random boxes of very different sizes, planes, walls, groups and excluded pairs."""

    def __init__(self, seed, m, planes=True):
        rng = np.random.default_rng(seed)
        n = max(2, m // 2)
        self.m, self.n = m, n
        kind = np.full(m, ShapeKind.BOX, np.int8)
        if planes and m > 2:
            kind[[2, m - 1]] = ShapeKind.HALF_SPACE
        self.kind = frozen(kind)
        self.body = frozen(rng.integers(0, n, m).astype(np.int32))
        of = rng.choice([BodyKind.STATIC, BodyKind.KINEMATIC, BodyKind.DYNAMIC], n, p=[0.2, 0.1, 0.7])
        self.body_kind = frozen(of.astype(np.int8))
        self.group = frozen(rng.choice([1, 2, 3], n).astype(np.uint32))
        self.mask = frozen(rng.choice([1, 0xFFFFFFFF], n, p=[0.2, 0.8]).astype(np.uint32))
        pairs = np.unique(np.sort(rng.integers(0, n, (3 * n, 2)), axis=1), axis=0).astype(np.int64)
        self.excluded = frozen(np.sort((pairs[:, 0] << 32) + pairs[:, 1]))
        centre = rng.uniform(-1.0, 1.0, (m, 3))
        half = 0.06 * rng.uniform(0.5, 1.0, (m, 3))
        half[::9] *= 1e-3
        half[5::17] *= 20.0
        half[7::101] *= 1e4
        self.box = np.c_[centre - half, centre + half]
        self.position = rng.normal(size=(m, 3))
        q = rng.normal(size=(m, 4))
        self.matrix = rotation.matrix(q / np.linalg.norm(q, axis=1)[:, None]).reshape(m, 9).copy()
        self.free = rng.normal(size=(n, 6))

    def grid(self, backend):
        """The search structure, pass by pass."""
        m = self.m
        buckets = 1 << max(4, int(np.ceil(np.log2(max(1, m)))))
        grid = GridArrays(
            np.full(m, -7), np.full(m, -7), np.zeros(backend.LEVELS, np.int64), np.zeros(buckets + 2, np.int64),
            np.zeros(m, np.int32), np.zeros(backend.FEW * backend.LEVELS, np.int32), np.zeros(backend.LEVELS, np.int64),
        )  # fmt: skip
        histogram = np.full(8 * backend.LEVELS, -7)
        phase = backend.choose_phase(self.kind, self.box, grid.level, histogram)
        bins = grid.level.copy()
        backend.cell_keys(self.kind, self.box, phase, grid.level, grid.key)
        singles, used = backend.build_grid(grid)
        return bins, grid, (phase, singles, used)

    def pairs(self, backend, capacity, slack):
        """(pair, count) of `find_pairs`."""
        _, grid, used = self.grid(backend)
        planes = np.flatnonzero(self.kind == ShapeKind.HALF_SPACE).astype(np.int32)
        number = blocks(self.m, backend.PAIR_BLOCK)
        pair, found = np.full((number * capacity, 2), -1, np.int32), np.zeros(number, np.int64)
        boxed = BoxedArrays(self.kind, self.body, self.box)
        filters = FilterArrays(self.body_kind, self.group, self.mask, self.excluded)
        planes = PlaneArrays(planes, self.position, self.matrix, self.free)
        backend.find_pairs(boxed, filters, planes, grid, used, H, slack, PairArrays(pair, capacity, found))
        return pair.reshape(number, capacity, 2), found

    def may(self, i, j):
        """Different bodies, one of them dynamic, groups and masks agree, not excluded."""
        a, b = self.body[i], self.body[j]
        dynamic = (self.body_kind[a] == BodyKind.DYNAMIC) | (self.body_kind[b] == BodyKind.DYNAMIC)
        agree = (self.group[a] & self.mask[b] != 0) & (self.group[b] & self.mask[a] != 0)
        name = (np.minimum(a, b).astype(np.int64) << 32) + np.maximum(a, b)
        return (a != b) & dynamic & agree & ~np.isin(name, self.excluded)

    def brute_force(self, slack):
        """All pairs that meet."""
        plane = self.kind == ShapeKind.HALF_SPACE
        i, j = np.nonzero(~plane[:, None] & ~plane)
        i, j = i[i < j], j[i < j]
        meet = np.all(self.box[i, :3] <= self.box[j, 3:], axis=1) & np.all(self.box[j, :3] <= self.box[i, 3:], axis=1)
        found = {(int(a), int(b)) for a, b in np.c_[i, j][meet & self.may(i, j)]}
        corner = np.array([[(k >> c) & 1 for c in range(3)] for k in range(8)])
        for p in np.flatnonzero(plane):
            up = self.matrix[p].reshape(3, 3)[:, 2]
            for k in np.flatnonzero(~plane):
                x = np.where(corner, self.box[k, 3:], self.box[k, :3])
                v = self.free[self.body[p]]
                arm = np.linalg.norm(self.position[k] - self.position[p])
                reach = H * (np.linalg.norm(v[:3]) + np.linalg.norm(v[3:]) * arm)
                if ((x - self.position[p]) @ up).min() <= reach + slack and self.may(k, p):
                    found.add((int(k), int(p)))
        return found


@covers("choose_phase", "cell_keys")
@pytest.mark.parametrize("m", SHAPES)
def test_cells_are_larger_than_their_boxes_by_less_than_twice(backend, m):
    scene = Scene(m, m)
    bins, (level, key, *_), (phase, _, _) = scene.grid(backend)
    bounded = scene.kind != ShapeKind.HALF_SPACE
    extent = (scene.box[:, 3:] - scene.box[:, :3]).max(axis=1)[bounded]
    size = np.ldexp(1.0 + phase / 8.0, level[bounded] - 128)
    assert np.all(extent < size) and np.all(size <= 2.0 * extent)
    assert np.all(level[~bounded] == -1) and np.all(bins[~bounded] == -1)
    # The phase is the one whose cells have the least volume in units of the boxes, counted by eighths of octaves.
    low = np.ldexp(1.0 + (bins[bounded] % 8) / 8.0, bins[bounded] // 8 - 129)
    assert np.all((low <= extent) & (extent < low * (1.0 + 1.0 / 8.0)))

    def volume(p):
        return np.sum((np.ldexp(1.0 + p / 8.0, (bins[bounded] - p) // 8 - 128) / low) ** 3)

    assert volume(phase) <= min(volume(p) for p in range(8)) * (1.0 + 1e-12)
    cell = np.floor(0.5 * (scene.box[:, :3] + scene.box[:, 3:])[bounded] / size[:, None]).astype(np.int64)
    same_key = key[bounded][:, None] == key[bounded]
    here = np.c_[level[bounded], cell & 0x3FFFF]
    assert np.array_equal(same_key, np.all(here[:, None] == here, axis=2))


@covers("build_grid")
@pytest.mark.parametrize("m", SHAPES)
def test_every_shape_lies_in_one_bucket_or_is_compared_with_all(backend, m):
    scene = Scene(m + 1, m)
    _, (level, key, count, start, item, single, levels), (_, singles, used) = scene.grid(backend)
    seen = level[level >= 0]
    assert np.array_equal(count, np.bincount(seen, minlength=backend.LEVELS))
    lonely = (level >= 0) & (count[level] <= backend.FEW)
    assert single[:singles].tolist() == np.flatnonzero(lonely).tolist()
    assert levels[:used].tolist() == np.flatnonzero(count > backend.FEW).tolist()
    inside = np.flatnonzero((level >= 0) & ~lonely)
    assert sorted(item[: len(inside)].tolist()) == inside.tolist()
    assert np.all(np.diff(start[1:]) >= 0) and start[1] == 0 and start[-1] == len(inside)
    bucket = np.searchsorted(start[1:], np.arange(len(inside)), side="right")
    where = dict(zip(item[: len(inside)].tolist(), bucket.tolist(), strict=True))
    by_key: dict[int, set] = {}
    for k in inside:
        by_key.setdefault(int(key[k]), set()).add(where[int(k)])
    assert all(len(places) == 1 for places in by_key.values())


@covers("find_pairs")
@pytest.mark.parametrize("slack", [0.0, 0.05])
@pytest.mark.parametrize("m", SHAPES)
def test_pairs_are_those_of_comparing_all_with_all(backend, m, slack):
    scene = Scene(m + 2, m)
    pair, found = scene.pairs(backend, 4096, slack)
    named = [tuple(p) for block, k in zip(pair, found, strict=True) for p in block[:k].tolist()]
    plane = scene.kind == ShapeKind.HALF_SPACE
    got = [(i, j) if plane[j] else (min(i, j), max(i, j)) for i, j in named]
    assert len(set(got)) == len(got), "no pair twice"
    assert set(got) == scene.brute_force(slack)
    for b, (block, k) in enumerate(zip(pair, found, strict=True)):
        assert np.all(block[:k, 0] // backend.PAIR_BLOCK == b) and np.all(block[k:] == -1)
    if m > 500:
        assert len(got) > 1000 and np.any(plane[np.array(got)[:, 1]])


@covers("find_pairs", "most_and_total")
def test_pairs_beyond_the_room_of_a_block_are_counted_only(backend):
    scene = Scene(5, 400)
    pair, found = scene.pairs(backend, 4096, 0.0)
    little, again = scene.pairs(backend, 10, 0.0)
    assert np.array_equal(found, again) and found.max() > 10
    assert np.array_equal(little, pair[:, :10])
    assert backend.most_and_total(found) == (found.max(), found.sum())


@covers("spread_speed", "most_and_total")
@pytest.mark.parametrize("m", SHAPES)
def test_speed_is_handed_on_to_neighbours_and_theirs(backend, m):
    scene = Scene(m + 3, m)
    pair, found = scene.pairs(backend, 4096, 0.0)
    scene.free[::5] *= 30.0
    reach, scratch = np.full(scene.n, np.nan), np.full(scene.n, np.nan)
    flat = np.ascontiguousarray(pair.reshape(-1, 2))
    pairs = PairArrays(flat, 4096, found)
    backend.spread_speed(pairs, scene.body, scene.body_kind, scene.free, reach, scratch)
    edges = [scene.body[p] for block, k in zip(pair, found, strict=True) for p in block[:k]]
    speed = np.linalg.norm(scene.free[:, :3], axis=1)
    wanted = np.zeros(scene.n)
    for _ in range(2):
        last = speed.copy()
        for a, b in edges:
            for one, other in ((a, b), (b, a)):
                if scene.body_kind[one] == BodyKind.DYNAMIC:
                    wanted[one] = max(wanted[one], last[other])
        speed = np.maximum(last, wanted)
    assert_close(reach, wanted, 1.0 + wanted.max(), 4.0)
    assert backend.most_and_total(found) == (found.max(), found.sum())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pairs_that_are_kept_are_those_of_a_fresh_search(backend, seed):
    """Bodies that jitter, rest, run and stop, over a plane and beside walls; some go and come back (their shape becomes
    a half-space, as emitters have it): in every step the pairs are those that a search without a past finds."""
    rng, scene = np.random.default_rng(seed), tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_static(tb.Box((4.0, 0.1, 4.0)), position=(0.0, 0.0, 1.0))
    where = rng.uniform(-0.5, 0.5, (300, 3))
    for k, p in enumerate(where):
        size = float(rng.uniform(0.03, 0.09))
        scene.add_body(tb.Sphere(size) if k % 3 else tb.Box((size, 2 * size, size)), density=1e3, position=p)
    model = scene.build()
    model = dataclasses.replace(model, shape_kind=model.shape_kind.copy())
    kind = model.shape_kind
    kind.setflags(write=True)
    state, n, h = model.initial.copy(), model.body_count, 1e-2
    whole, search = kind.copy(), PairSearch(model, backend)
    served = built = 0
    for step in range(60):
        kind[:] = whole
        fresh = PairSearch(model, backend)
        if step in (20, 21, 40):  # some are gone, and back again
            kind[10:40] = ShapeKind.HALF_SPACE if step != 21 else whole[10:40]
        speed = 0.5 if 30 <= step < 36 else 0.004 * rng.random()
        free = np.c_[rng.normal(size=(n, 3)) * speed, rng.normal(size=(n, 3)) * 0.2]
        free[:2] = 0.0
        matrix = rotation.matrix(state.orientation).reshape(-1, 9).copy()
        found = []
        before = search._kept.state.copy()
        for one in (search, fresh):
            one.place(state.position, state.orientation, matrix, free, h, -1.0)
            total = one.find(free, h, -1.0)
            pairs, capacity, count = one.pairs
            rows = [pairs[b * capacity : b * capacity + count[b]] for b in range(one.blocks)]
            found.append(sorted(tuple(sorted(row)) for row in np.concatenate(rows).tolist()))
            assert total == len(found[-1]) == len(set(found[-1]))
        assert found[0] == found[1]
        served += search._kept.state[1] > before[1]
        built += search._kept.state[0] == 1 and search._kept.state[1] == 0
        state.position += h * free[:, :3]
        state.orientation = rotation.turned(state.orientation, h * free[:, 3:])
    assert served > 15 and built > 2
