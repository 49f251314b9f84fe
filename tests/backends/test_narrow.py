"""Contact points: of balls in closed form, of other shapes by bounds that need no other program, and their order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tumble as tb
from tumble.backends.base import blocks
from tumble.backends.shape_arrays import (
    ArrangedArrays,
    FoundRows,
    LocatedArrays,
    OrderArrays,
    RawArrays,
    SideArrays,
    SortedArrays,
)
from tumble.collide.broadphase import PairSearch
from tumble.collide.contacts import Contacts
from tumble.collide.narrowphase import ContactSearch
from tumble.scene import rotation

from ..naive.solids import brick
from ..naive.support import outside, separation, support_value
from .cover import covers
from .data import SPARE, assert_close, frozen, spare


def search(backend, model, free, h, margin, room=None):
    """The pairs and the contact table at the initial state. room: places of a block to begin with."""
    state = model.initial
    pairs, contacts = PairSearch(model, backend), Contacts()
    matrix = rotation.matrix(state.orientation).reshape(-1, 9).copy()
    pairs.place(state.position, state.orientation, matrix, free, h, margin)
    pairs.find(free, h, margin)
    narrow = ContactSearch(model, backend, pairs.blocks)
    if room is not None:
        narrow._reserve(room)
    narrow.find(pairs, state.position, free, h, margin, contacts)
    return pairs, contacts


def table(contacts):
    """Rows (a, b), normals, points and gaps of the contacts in use."""
    n = contacts.count
    names = np.c_[contacts.body_a[:n], contacts.body_b[:n]]
    return names, contacts.normal[:, :n].T, contacts.point[:, :n].T, contacts.gap[:n]


# ---------------------------------------------------------------------- balls


def heap_of_spheres(seed, count, speed):
    """Spheres over a tilted plane, some far below each other's sizes; speeds of all sizes up to `speed`."""
    rng = np.random.default_rng(seed)
    scene = tb.SceneBuilder()
    scene.add_static([tb.HalfSpace((0.0, 0.0, 1.0), 0.0)], orientation=rotation.from_normal((0.1, 0.2, 1.0)))
    radius = rng.uniform(0.02, 0.1, count)
    place = rng.uniform(-0.5, 0.5, (count, 3)) * (count / 250.0) ** (1.0 / 3.0)
    for r, p in zip(radius, place, strict=True):
        scene.add_body(tb.Sphere(float(r)), density=100.0, position=p)
    model = scene.build()
    free = rng.normal(size=(count + 1, 6)) * speed * rng.random((count + 1, 1)) ** 3
    free[0] = 0.0
    return model, free, radius


@covers("find_ball_contacts", "arrange_contacts")
@pytest.mark.parametrize("speed", [0.0, 1.0, 40.0])
@pytest.mark.parametrize("count", [3, 700])
def test_contacts_of_spheres_and_planes_in_closed_form(backend, count, speed):
    """A slow pair is a contact within a twentieth of its smaller radius and what it, or a neighbour that hits one of
    them, moves in the step; a fast one (a quarter of that radius) if the paths come that near within the step."""
    h = 2e-3
    model, free, radius = heap_of_spheres(count, count, speed)
    pairs, contacts = search(backend, model, free, h, -1.0)
    names, normal, point, gap = table(contacts)
    x, box = model.initial.position, pairs.box
    up = pairs.shapes.matrix[0].reshape(3, 3)[:, 2]
    wanted = {}
    for j in range(1, count + 1):
        height = (x[j] - x[0]) @ up - radius[j - 1]
        handed = max(pairs.reach_speed[0], pairs.reach_speed[j])
        lowest = np.where(up > 0.0, box[j, :3], box[j, 3:])  # corner of the box: else it is no pair
        if (lowest - x[0]) @ up <= 0.0 and height <= 0.05 * radius[j - 1] + h * max(-free[j, :3] @ up, handed):
            wanted[0, j] = (up, x[j] - (radius[j - 1] + 0.5 * height) * up, height)
    for i in range(1, count + 1):
        others = np.arange(i + 1, count + 1)
        meet = np.all(box[i, :3] <= box[others, 3:], axis=1) & np.all(box[others, :3] <= box[i, 3:], axis=1)
        for j in others[meet]:
            ri, rj = radius[i - 1], radius[j - 1]
            size, d, v = min(ri, rj), x[j] - x[i], free[j, :3] - free[i, :3]
            n, own = d / np.linalg.norm(d), np.linalg.norm(d) - ri - rj
            if h * np.linalg.norm(v) <= 0.25 * size:
                handed = max(pairs.reach_speed[i], pairs.reach_speed[j])
                meets = own <= 0.05 * size + h * max(-v @ n, handed)
            else:
                t = np.clip(-(d @ v) / (v @ v), 0.0, h)
                meets = own <= 0.0 or np.linalg.norm(d + t * v) - ri - rj <= 0.05 * size
            if meets:
                wanted[i, int(j)] = (n, x[i] + (ri + 0.5 * own) * n, own)
    assert [tuple(k) for k in names.tolist()] == sorted(wanted)
    ordered = [wanted[k] for k in sorted(wanted)]
    if ordered:
        assert_close(normal, np.array([w[0] for w in ordered]))
        assert_close(point, np.array([w[1] for w in ordered]))
        assert_close(gap, np.array([w[2] for w in ordered]), 1.0)
        sizes = np.where(names[:, 0] == 0, np.inf, radius[names[:, 0] - 1])
        assert np.array_equal(contacts.size[: contacts.count], np.minimum(sizes, radius[names[:, 1] - 1]))
    if count == 700:
        assert contacts.count > 1024 + SPARE


@covers("find_ball_contacts")
def test_contacts_beyond_the_room_are_counted_and_found_again(backend):
    model, free, _ = heap_of_spheres(1, 300, 0.0)
    _, plenty = search(backend, model, free, 1e-3, -1.0)
    _, little = search(backend, model, free, 1e-3, -1.0, room=backend.MOST + 1)
    assert plenty.count == little.count > 200
    for a, b in zip(table(plenty), table(little), strict=True):
        assert np.array_equal(a, b)


# ---------------------------------------------------------------------- convex shapes


def best_separation(a, b, pose_a, pose_b, rng, start=None):
    """The largest separation of two shapes over all directions that a search finds: at most their distance."""
    n = rng.normal(size=(1500, 3))
    n = np.concatenate([n, pose_b[0] - pose_a[0]] + ([] if start is None else [start]))
    width = 1.0
    best, at = -np.inf, n[0]
    for _ in range(30):
        n /= np.linalg.norm(n, axis=1)[:, None]
        value = separation(a, b, pose_a, pose_b, n)
        k = int(np.argmax(value))
        if value[k] > best:
            best, at = float(value[k]), n[k]
        n = at + width * rng.normal(size=(60, 3))
        width *= 0.6
    return best


def convex_shapes(rng):
    hull = tb.ConvexHull(rng.normal(size=(16, 3)) * 0.12)
    return [
        tb.Sphere(0.2), tb.Capsule(0.1, 0.3), tb.Box((0.3, 0.4, 0.2)), tb.Cylinder(0.2, 0.3), tb.Cone(0.2, 0.4),
        tb.Ellipsoid((0.2, 0.15, 0.1)), hull, tb.Rounded(tb.Box((0.2, 0.3, 0.2)), 0.05),
    ]  # fmt: skip


def lonely_pairs(rng, pairs, distance=(0.15, 0.55)):
    """A body of each of two shapes, near each other and far from all others; the shapes by body."""
    scene, shapes = tb.SceneBuilder(), []
    for k, (a, b) in enumerate(pairs):
        base = np.array([3.0 * (k % 20), 3.0 * (k // 20), 0.0])
        away = rng.normal(size=3)
        away *= rng.uniform(*distance) / np.linalg.norm(away)
        for shape, place in ((a, base), (b, base + away)):
            q = rng.normal(size=4)
            scene.add_body(shape, density=100.0, position=place, orientation=q / np.linalg.norm(q))
            shapes.append(shape)
    return scene.build(), shapes


def pose(model, shape):
    """Of a shape of the model, world: position (1, 3), quaternion (1, 4)."""
    state, b = model.initial, model.shape_body[shape]
    at = state.position[b] + rotation.rotate(state.orientation[b], model.shape_position[shape])
    turned = rotation.multiply(state.orientation[b], model.shape_orientation[shape])
    return at.reshape(1, 3), turned.reshape(1, 4)


@covers("find_ball_contacts", "find_convex_contacts", "find_surface_contacts")
def test_gaps_of_convex_shapes_are_their_distances(backend):
    """For any direction the separation is a lower bound of the signed distance. So a gap that equals the separation
    along its normal is at most the distance, and no direction may show a larger one."""
    rng = np.random.default_rng(7)
    kinds = convex_shapes(rng)
    every = list(itertools.combinations_with_replacement(kinds, 2)) * 4
    model, shapes = lonely_pairs(rng, every)
    margin = 0.05
    _, contacts = search(backend, model, np.zeros((model.body_count, 6)), 0.0, margin)
    names, normal, point, gap = table(contacts)
    assert np.all(names[:, 0] + 1 == names[:, 1]) and np.all(names[:, 0] % 2 == 0)
    met = missed = 0
    for k in range(len(every)):
        a, b, pa, pb = shapes[2 * k], shapes[2 * k + 1], pose(model, 2 * k), pose(model, 2 * k + 1)
        mine = np.flatnonzero(names[:, 0] == 2 * k)
        if not mine.size:
            missed += 1
            assert best_separation(a, b, pa, pb, rng) >= margin - 1e-5, "a pair with a gap above the margin"
            continue
        met += 1
        deepest = mine[np.argmin(gap[mine])]
        n = normal[deepest]
        assert_close(np.linalg.norm(normal[mine], axis=1), np.ones(len(mine)))
        along = separation(a, b, pa, pb, n[None])[0]
        # The depth of curved shapes is found by an iteration, to 1e-4 of it (as tests/unit/test_distance.py has it).
        loose = 1e-4 * abs(gap[deepest]) if gap[deepest] < 0.0 else 0.0
        assert abs(gap[deepest] - along) <= 1e-8 + loose, (a, b)
        assert best_separation(a, b, pa, pb, rng, n[None]) <= gap[deepest] + 1e-6 + loose, (a, b)
        for c in mine:
            assert gap[c] <= margin + 1e-12
            for shape, where, sign in ((a, pa, -0.5), (b, pb, 0.5)):
                x = point[c] + sign * gap[c] * normal[c]
                assert np.max(outside(shape, where, x[None])) <= 1e-6 + loose, (a, b)
    assert met > 50 and missed > 10


@covers("find_ball_contacts", "find_convex_contacts")
def test_contacts_with_a_plane_are_the_lowest_points(backend):
    rng = np.random.default_rng(9)
    scene, shapes = tb.SceneBuilder(), []
    up = np.array([0.2, -0.3, 1.0]) / np.sqrt(1.13)
    scene.add_static([tb.HalfSpace((0.0, 0.0, 1.0), 0.0)], orientation=rotation.from_normal(up))
    for k, shape in enumerate(convex_shapes(rng) * 12):
        q = rng.normal(size=4)
        q /= np.linalg.norm(q)
        place = np.array([2.0 * (k % 10), 2.0 * (k // 10), 0.0])
        place -= (place @ up) * up
        scene.add_body(shape, density=100.0, position=place + rng.uniform(0.0, 0.4) * up, orientation=q)
        shapes.append(shape)
    model = scene.build()
    margin = 0.03
    _, contacts = search(backend, model, np.zeros((model.body_count, 6)), 0.0, margin)
    names, normal, point, gap = table(contacts)
    assert np.all(names[:, 0] == 0)
    assert_close(normal, np.broadcast_to(up, normal.shape))
    assert_close((point - 0.5 * gap[:, None] * up) @ up, np.zeros(len(gap)), 30.0)
    for k, shape in enumerate(shapes):
        x, q = pose(model, k + 1)
        down = rotation.rotate(rotation.conjugate(q), -up)
        lowest = x[0] @ up - support_value(shape, down.reshape(1, 3))[0]
        mine = np.flatnonzero(names[:, 1] == k + 1)
        assert (mine.size > 0) == (lowest <= margin)
        if mine.size:
            assert abs(gap[mine].min() - lowest) <= 1e-12
            for c in mine:
                assert np.max(outside(shape, (x, q), (point[c] + 0.5 * gap[c] * up)[None])) <= 1e-7


# ---------------------------------------------------------------------- surfaces


def point_triangle(p, triangle):
    """Distances of a point from triangles (k, 3, 3): the least over the plane, where the foot is inside, and edges."""
    a, b, c = triangle[:, 0], triangle[:, 1], triangle[:, 2]
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1)[:, None]
    height = np.einsum("ki,ki->k", p - a, n)
    foot = p - height[:, None] * n
    inside = np.ones(len(a), bool)
    best = np.full(len(a), np.inf)
    for u, v in ((a, b), (b, c), (c, a)):
        inside &= np.einsum("ki,ki->k", np.cross(v - u, foot - u), n) >= 0.0
        t = np.clip(np.einsum("ki,ki->k", p - u, v - u) / np.einsum("ki,ki->k", v - u, v - u), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(p - u - t[:, None] * (v - u), axis=1))
    return np.where(inside, np.abs(height), best)


@covers("find_surface_contacts")
@pytest.mark.parametrize("surface", ["mesh", "field"])
def test_balls_on_surfaces_touch_the_nearest_triangle(backend, surface):
    """A closed mesh, and a field whose heights depend on x alone (its cells are flat, however they are cut)."""
    rng = np.random.default_rng(3)
    scene = tb.SceneBuilder()
    if surface == "mesh":
        shape = brick((1.0, 0.8, 0.3), (4, 3, 2))
        triangles = shape.vertices[shape.triangles]
        high = 0.15
    else:
        heights = np.repeat(rng.uniform(-0.1, 0.1, (12, 1)), 9, axis=1)
        shape, high = tb.HeightField(heights, (1.1, 0.8)), 0.1
        x, y = np.linspace(-0.55, 0.55, 12), np.linspace(-0.4, 0.4, 9)
        p = np.stack([*np.meshgrid(x, y, indexing="ij"), heights], axis=2)
        cells = [p[:-1, :-1], p[1:, :-1], p[1:, 1:], p[:-1, 1:]]
        halves = [np.stack([cells[k] for k in corners], axis=2) for corners in ((0, 1, 2), (0, 2, 3))]
        triangles = np.concatenate(halves).reshape(-1, 3, 3)
    scene.add_static([shape])
    radius, place = [], []
    while len(radius) < 220:
        r, p = rng.uniform(0.02, 0.06), rng.uniform((-0.5, -0.35, high - 0.2), (0.5, 0.35, high + 0.1))
        above = p[2] > 0.151 if surface == "mesh" else p[2] > np.interp(p[0], x, heights[:, 0]) + 0.3 * r
        if above:
            radius.append(r)
            place.append(p)
            scene.add_body(tb.Sphere(r), density=100.0, position=p, group=2, mask=1)
    model = scene.build()
    margin = 0.01
    _, contacts = search(backend, model, np.zeros((model.body_count, 6)), 0.0, margin)
    names, normal, point, gap = table(contacts)
    assert np.all(names[:, 0] == 0)
    met = 0
    for k, (r, p) in enumerate(zip(radius, place, strict=True)):
        distance = point_triangle(p, triangles).min() - r
        mine = np.flatnonzero(names[:, 1] == k + 1)
        assert (mine.size > 0) == (distance <= margin), distance
        if mine.size:
            met += 1
            assert abs(gap[mine].min() - distance) <= 1e-12
            for c in mine:  # the surface's point lies on it, in the direction of the normal from the ball
                assert_close(p - (r + gap[c]) * normal[c], point[c] - 0.5 * gap[c] * normal[c], 1.0)
                assert point_triangle(point[c] - 0.5 * gap[c] * normal[c], triangles).min() <= 1e-12
    assert met > 40


@covers("find_surface_contacts")
def test_a_mesh_of_a_box_is_as_far_as_the_box(backend):
    """Of all convex shapes that do not overlap it."""
    rng = np.random.default_rng(5)
    kinds = convex_shapes(rng) * 8
    size = (0.4, 0.3, 0.2)
    model, shapes = lonely_pairs(rng, [(brick(size, (2, 2, 1)), kind) for kind in kinds], distance=(0.3, 0.6))
    margin = 0.05
    _, contacts = search(backend, model, np.zeros((model.body_count, 6)), 0.0, margin)
    names, normal, point, gap = table(contacts)
    assert np.all(names[:, 0] + 1 == names[:, 1])
    met = 0
    box = tb.Box(size)
    for k in range(len(kinds)):
        b, pa, pb = shapes[2 * k + 1], pose(model, 2 * k), pose(model, 2 * k + 1)
        mine = np.flatnonzero(names[:, 0] == 2 * k)
        best = best_separation(box, b, pa, pb, rng, normal[mine[:1]] if mine.size else None)
        if best <= 0.0:
            continue
        assert mine.size > 0 or best >= margin - 1e-5
        if mine.size:
            met += 1
            deepest = mine[np.argmin(gap[mine])]
            assert best - 1e-6 <= gap[deepest] <= best + 1e-5
            for c in mine:
                for shape, where, sign in ((box, pa, -0.5), (b, pb, 0.5)):
                    x = point[c] + sign * gap[c] * normal[c]
                    assert np.max(outside(shape, where, x[None])) <= 1e-6
    assert met > 5


# ---------------------------------------------------------------------- order


@covers("sort_contacts", "arrange_contacts")
@pytest.mark.parametrize("bodies", [60, 700])
@pytest.mark.parametrize("count", [0, 5, 2048, 3000])
def test_contacts_are_sorted_by_key_and_arranged(backend, count, bodies):
    """With 60 bodies some have so many contacts that they are not sorted by insertion."""
    rng = np.random.default_rng(count)
    number, shapes, materials = 6, 900, 3
    room = count + 4
    found = np.bincount(rng.integers(0, number, count), minlength=number).astype(np.int64)
    raw, who = np.full((number * room, 8), np.nan), np.zeros((number * room, 2), np.int32)
    body = frozen(np.sort(rng.integers(0, bodies, shapes)).astype(np.int32))
    local = frozen((np.arange(shapes) - np.searchsorted(body, body)).astype(np.int32))
    material = frozen(rng.integers(0, materials, shapes).astype(np.int32))
    friction = rng.random((materials, materials))
    friction = frozen(0.5 * (friction + friction.T))
    smallest = frozen(rng.random(shapes))
    keys = {}
    for block in range(number):
        for place in range(block * room, block * room + found[block]):
            while True:
                i, j = rng.integers(0, shapes, 2)
                name = int(rng.integers(0, 9))
                i, j = (j, i) if rng.random() < 0.5 else (i, j)
                low, high = (i, j) if body[i] < body[j] else (j, i)
                key = (body[low], body[high], (int(local[low]) << 36) | (int(local[high]) << 16) | name)
                if body[i] != body[j] and key not in keys:
                    break
            keys[key] = place
            raw[place, :7], raw[place, 7], who[place] = rng.normal(size=7), name, (i, j)
    bins = blocks(bodies, backend.backend.SORT_BODIES)
    scratch = OrderArrays(
        np.zeros(bodies, np.int64),
        np.zeros(bodies, np.int64),
        np.zeros((backend.backend.SORT_PARTS, bins), np.int64),
        np.zeros(bins + 1, np.int64),
        *(np.full(count + SPARE, -1, np.int32) for _ in range(3)),
        np.full(count + SPARE, -1),
    )
    order, a, b = (np.full(count + SPARE, -1, np.int32) for _ in range(3))
    feature = np.full(count + SPARE, -1)
    table = RawArrays(raw, who, room, found)
    located, out = LocatedArrays(body, local), SortedArrays(order, b, feature)
    total = backend.sort_contacts(table, located, scratch, out)
    assert total == count
    ordered = sorted(keys)
    assert order[:count].tolist() == [keys[key] for key in ordered]
    assert feature[:count].tolist() == [key[2] for key in ordered]
    assert b[:count].tolist() == [key[1] for key in ordered]

    mu, size, gap = spare(0, count), spare(0, count), spare(0, count)
    normal, point = spare(3, count), spare(3, count)
    pair_of = np.full(count + SPARE, -1, np.int32)
    sides, out = (
        SideArrays(body, material, smallest, friction),
        ArrangedArrays(a, mu, pair_of, size, normal, point, gap),
    )
    backend.arrange_contacts(count, order, FoundRows(raw, who), sides, out)
    assert a[:count].tolist() == [key[0] for key in ordered] and np.all(a[count:] == -1)
    rows, pair = raw[order[:count]], who[order[:count]]
    turned = np.where(body[pair[:, 0]] < body[pair[:, 1]], 1.0, -1.0)
    assert np.array_equal(normal[:, :count], (turned[:, None] * rows[:, :3]).T)
    assert np.array_equal(point[:, :count], rows[:, 3:6].T) and np.array_equal(gap[:count], rows[:, 6])
    assert np.array_equal(mu[:count], friction[material[pair[:, 0]], material[pair[:, 1]]])
    both = material[pair[:, 0]] * materials + material[pair[:, 1]]
    assert np.array_equal(pair_of[:count], both) and np.all(pair_of[count:] == -1)
    assert np.array_equal(size[:count], smallest[pair].min(axis=1))
    assert np.all(np.isnan(gap[count:])) and np.all(np.isnan(normal[:, count:]))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_known_axis_changes_no_contact(backend, seed):
    """Bodies of all shapes that drift and turn: the search that remembers what told pairs apart finds the same bits as
    one that knows nothing, and remembers something."""
    rng, shapes = np.random.default_rng(seed), [tb.Box((0.2, 0.15, 0.1)), tb.Cylinder(0.1, 0.2), tb.Cone(0.1, 0.2)]
    shapes += [tb.Ellipsoid((0.1, 0.07, 0.05)), tb.Capsule(0.05, 0.1), tb.ConvexHull(rng.normal(size=(14, 3)) * 0.07)]
    scene = tb.SceneBuilder()
    for k in range(240):
        where, turn = rng.uniform(-0.5, 0.5, 3), rng.normal(size=4)
        scene.add_body(shapes[k % 6], density=1e3, position=where, orientation=turn / np.linalg.norm(turn))
    model = scene.build()
    h, n, state = 1e-2, model.body_count, model.initial.copy()
    free = np.c_[rng.normal(size=(n, 3)) * 0.2, rng.normal(size=(n, 3))]
    pairs, contacts, fresh = PairSearch(model, backend), Contacts(), Contacts()
    narrow = ContactSearch(model, backend, pairs.blocks)
    known = 0
    for _ in range(12):
        matrix = rotation.matrix(state.orientation).reshape(-1, 9).copy()
        pairs.place(state.position, state.orientation, matrix, free, h, -1.0)
        pairs.find(free, h, -1.0)
        before = narrow._axes.name.copy()
        narrow.find(pairs, state.position, free, h, -1.0, contacts)
        ContactSearch(model, backend, pairs.blocks).find(pairs, state.position, free, h, -1.0, fresh)
        for one, other in zip(table(contacts), table(fresh), strict=True):
            assert np.array_equal(one, other)
        assert np.array_equal(contacts.feature[: contacts.count], fresh.feature[: fresh.count])
        known += np.count_nonzero((before >= 0) & (before == narrow._axes.name))
        state.position += h * free[:, :3]
        state.orientation = rotation.turned(state.orientation, h * free[:, 3:])
    assert known > 1000 and contacts.count > 100
