"""Broad phase: a hierarchical hashed grid."""

from __future__ import annotations

import math

from ...kernels.grid import (
    LEVELS,
    above_plane,
    boxes_meet,
    bucket,
    cell_key,
    cell_size,
    first_cell,
    may_collide,
    size_bin,
)
from ...kernels.jit import blockwise, loop, merged_formula
from ...kernels.kinds import DYNAMIC, HALF_SPACE
from ...kernels.linalg import norm, row3, sub
from ..base import BODY_BLOCK

NO_LEVEL = -1
FEW = 8
"""A level with at most this many shapes (container walls, a slab) is compared with everything directly."""
PAIR_BLOCK = 64
"""Shapes in a block of the pair search."""
WORTH, WITHOUT = 3, 16
"""Kept pairs that served fewer searches cost more than they saved: so many searches then keep none."""


@blockwise(BODY_BLOCK, "kind.size")
def size_bins(block, kind, box, level):
    """Bins of eight to the octave for all boxes."""
    for i in range(block * BODY_BLOCK, min(kind.size, (block + 1) * BODY_BLOCK)):
        level[i] = NO_LEVEL if kind[i] == HALF_SPACE else size_bin(box, i)


@loop
def best_phase(histogram):
    """The phase (0..7) of the levels for which cells fit so many boxes in each bin best."""
    best, phase = math.inf, 0
    for p in range(8):
        cost = 0.0
        for f in range(8, 8 * (LEVELS - 2)):
            if histogram[f] > 0:
                ratio = cell_size((f - p) // 8, p) / cell_size(f // 8 - 1, f % 8)
                cost += histogram[f] * ratio * ratio * ratio
        if cost < best:
            best, phase = cost, p
    return phase


@loop
def choose_phase(kind, box, level, histogram):
    """Bins for all boxes (left in `level`), and the phase of the levels for which cells fit their boxes best: equal
    bodies then share one level with cells of their own size."""
    histogram[:] = 0
    size_bins(kind, box, level)
    for i in range(kind.size):
        if level[i] != NO_LEVEL:
            histogram[level[i]] += 1
    return best_phase(histogram)


@blockwise(BODY_BLOCK, "kind.size")
def cell_keys(block, kind, box, phase, level, key):
    """From bins to levels, and the cell of each box centre."""
    m = kind.size
    for i in range(block * BODY_BLOCK, min(m, (block + 1) * BODY_BLOCK)):
        if kind[i] == HALF_SPACE:
            continue
        e = (level[i] - phase) // 8
        size = cell_size(e, phase)
        level[i] = e
        x = int(math.floor(0.5 * (box[i, 0] + box[i, 3]) / size))
        y = int(math.floor(0.5 * (box[i, 1] + box[i, 4]) / size))
        z = int(math.floor(0.5 * (box[i, 2] + box[i, 5]) / size))
        key[i] = cell_key(e, x, y, z)


@loop
def build_grid(grid):
    """Counting sort of the shapes into buckets, from their levels and keys. Returns (number of single shapes, number of
    grid levels in use). Planes are not among the single shapes."""
    level, key, level_count, bucket_start = grid.level, grid.key, grid.level_count, grid.bucket_start
    mask = bucket_start.size - 3
    level_count[:] = 0
    bucket_start[:] = 0
    for i in range(level.size):
        if level[i] != NO_LEVEL:
            level_count[level[i]] += 1
    singles = 0
    for i in range(level.size):
        if level[i] == NO_LEVEL:
            continue
        if level_count[level[i]] <= FEW:
            grid.single[singles] = i
            singles += 1
        else:
            bucket_start[bucket(key[i], mask) + 1] += 1
    used = 0
    for e in range(LEVELS):
        if level_count[e] > FEW:
            grid.levels[used] = e
            used += 1
    for b in range(1, bucket_start.size):
        bucket_start[b] += bucket_start[b - 1]
    for i in range(level.size - 1, -1, -1):
        if level[i] != NO_LEVEL and level_count[level[i]] > FEW:
            b = bucket(key[i], mask) + 1
            # bucket_start[b] is the end of bucket b - 1 now and its start when all are placed, one bucket up.
            bucket_start[b] -= 1
            grid.item[bucket_start[b]] = i
    return singles, used


@merged_formula
def _put_pair(pairs, base, found, i, j):
    """Note a pair where there is room; returns the number found."""
    if found < pairs.capacity:
        pairs.pair[base + found, 0], pairs.pair[base + found, 1] = i, j
    return found + 1


@merged_formula
def _pairs_with_planes(i, shapes, filters, planes, h, slack, pairs, base, found):
    """Pairs of shape i with the planes that it comes near."""
    for s in range(planes.shape.size):
        p = planes.shape[s]
        b = shapes.body[p]
        v = (planes.free[b, 0], planes.free[b, 1], planes.free[b, 2])
        w = (planes.free[b, 3], planes.free[b, 4], planes.free[b, 5])
        away = norm(sub(row3(planes.position, i), row3(planes.position, p)))
        reach = h * (norm(v) + norm(w) * away)
        height = above_plane(i, p, shapes.box, planes.position, planes.matrix)
        if height <= reach + slack and may_collide(i, p, shapes.body, filters):
            found = _put_pair(pairs, base, found, i, p)
    return found


@merged_formula
def _pairs_in_level(i, e, shapes, filters, grid, phase, pairs, base, found):
    """Pairs of shape i with those of a level; within its own level only those found from the lower cell."""
    box, size = shapes.box, cell_size(e, phase)
    x0, x1 = int(math.floor(box[i, 0] / size - 0.5)), int(math.floor(box[i, 3] / size + 0.5))
    y0, y1 = int(math.floor(box[i, 1] / size - 0.5)), int(math.floor(box[i, 4] / size + 0.5))
    z0, z1 = int(math.floor(box[i, 2] / size - 0.5)), int(math.floor(box[i, 5] / size + 0.5))
    same = e == grid.level[i]
    cx, cy, cz = first_cell(box, i, size) if same else (x0, y0, z0)
    hash_mask = grid.bucket_start.size - 3
    for x in range(cx, x1 + 1):
        for y in range(cy if same and x == cx else y0, y1 + 1):
            for z in range(cz if same and x == cx and y == cy else z0, z1 + 1):
                home = same and x == cx and y == cy and z == cz
                wanted = cell_key(e, x, y, z)
                b = bucket(wanted, hash_mask) + 1
                for t in range(grid.bucket_start[b], grid.bucket_start[b + 1]):
                    j = grid.item[t]
                    if grid.key[j] != wanted or (home and j <= i):
                        continue
                    if boxes_meet(box, i, j) and may_collide(i, j, shapes.body, filters):
                        found = _put_pair(pairs, base, found, i, j)
    return found


@blockwise(PAIR_BLOCK, "shapes.kind.size")
def find_pairs(block, shapes, filters, planes, grid, used, h, slack, pairs):
    """Pairs of shapes whose boxes meet; pairs.count may exceed the capacity (try again).

    Within a level a pair is found from the shape in the lower cell. used: (phase, single shapes, levels of the grid),
    or (0, all shapes, 0) without a grid; slack: what a user's margin adds for planes [m].
    """
    m, base = shapes.kind.size, block * pairs.capacity
    phase, singles, levels = used
    found = 0
    for i in range(block * PAIR_BLOCK, min(m, (block + 1) * PAIR_BLOCK)):
        if shapes.kind[i] == HALF_SPACE:
            continue
        found = _pairs_with_planes(i, shapes, filters, planes, h, slack, pairs, base, found)
        in_grid = grid.level_count[grid.level[i]] > FEW
        for s in range(singles):
            j = grid.single[s]
            if j != i and (in_grid or i < j) and boxes_meet(shapes.box, i, j):
                if shapes.kind[j] != HALF_SPACE and may_collide(i, j, shapes.body, filters):
                    found = _put_pair(pairs, base, found, i, j)
        if not in_grid:
            continue
        for s in range(levels):
            if grid.levels[s] >= grid.level[i]:
                found = _pairs_in_level(i, grid.levels[s], shapes, filters, grid, phase, pairs, base, found)
    pairs.count[block] = found


@loop
def in_grid(boxed, grid, spread):
    """The shapes in the grid: (phase, single shapes, levels)."""
    phase = choose_phase(boxed.kind, boxed.box, grid.level, spread.histogram)
    cell_keys(boxed.kind, boxed.box, phase, grid.level, grid.key)
    singles, levels = build_grid(grid)
    return phase, singles, levels


@blockwise(PAIR_BLOCK, "shapes.kind.size")
def _left_kept_box(block, shapes, filters, kept):
    """Which blocks have a shape that has left its kept box, or is another one than it was."""
    left = 0
    for i in range(block * PAIR_BLOCK, min(shapes.kind.size, (block + 1) * PAIR_BLOCK)):
        if shapes.kind[i] != kept.kind[i] or filters.kind[shapes.body[i]] != kept.body_kind[i]:
            left = 1
        elif shapes.kind[i] != HALF_SPACE:
            for k in range(3):
                if not (shapes.box[i, k] >= kept.box[i, k] and shapes.box[i, 3 + k] <= kept.box[i, 3 + k]):
                    left = 1
    kept.left[block] = left


@blockwise(PAIR_BLOCK, "shapes.kind.size")
def widen(block, shapes, filters, free, room, far, kept):
    """Boxes to keep, with room to move on all sides [m], as much as the body's way in the time `far` at least."""
    for i in range(block * PAIR_BLOCK, min(shapes.kind.size, (block + 1) * PAIR_BLOCK)):
        b = shapes.body[i]
        kept.kind[i], kept.body_kind[i] = shapes.kind[i], filters.kind[b]
        own = max(room, far * norm((free[b, 0], free[b, 1], free[b, 2])))
        for k in range(3):
            kept.box[i, k] = shapes.box[i, k] - own
            kept.box[i, 3 + k] = shapes.box[i, 3 + k] + own


@blockwise(PAIR_BLOCK, "shapes.kind.size")
def pairs_of_kept(block, shapes, filters, planes, h, slack, kept, pairs):
    """Those of the kept pairs whose boxes meet now, and the pairs with planes."""
    m, base, found = shapes.kind.size, block * pairs.capacity, 0
    for i in range(block * PAIR_BLOCK, min(m, (block + 1) * PAIR_BLOCK)):
        if shapes.kind[i] != HALF_SPACE:
            found = _pairs_with_planes(i, shapes, filters, planes, h, slack, pairs, base, found)
    first = block * kept.pairs.capacity
    for k in range(first, first + kept.pairs.count[block]):
        i, j = kept.pairs.pair[k, 0], kept.pairs.pair[k, 1]
        if boxes_meet(shapes.box, i, j):
            found = _put_pair(pairs, base, found, i, j)
    pairs.count[block] = found


@loop
def kept_pairs_hold(shapes, filters, kept):
    """Whether all shapes are within the boxes that the kept pairs were found with; counts the searches they serve.

    kept.state: whether there are pairs, searches they have served, searches to go without keeping any.
    """
    if kept.state[0] == 0:
        return False
    _left_kept_box(shapes, filters, kept)
    for block in range(kept.left.size):
        if kept.left[block] != 0:
            if kept.state[1] < WORTH:
                kept.state[2] = WITHOUT
            kept.state[0] = 0
            return False
    kept.state[1] += 1
    return True


@loop
def spread_speed(pairs, body, body_kind, free, reach_speed, scratch):
    """reach_speed[b]: the largest speed among the neighbours (and theirs) of a dynamic body b. A body that is hit can
    move with it in the same step, into a third one that its own velocity does not announce."""
    for b in range(body_kind.size):
        reach_speed[b] = 0.0
        scratch[b] = norm((free[b, 0], free[b, 1], free[b, 2]))
    for _ in range(2):
        for block in range(pairs.count.size):
            for k in range(block * pairs.capacity, block * pairs.capacity + pairs.count[block]):
                a, b = body[pairs.pair[k, 0]], body[pairs.pair[k, 1]]
                if body_kind[a] == DYNAMIC:
                    reach_speed[a] = max(reach_speed[a], scratch[b])
                if body_kind[b] == DYNAMIC:
                    reach_speed[b] = max(reach_speed[b], scratch[a])
        for b in range(body_kind.size):
            scratch[b] = max(scratch[b], reach_speed[b])


@loop
def most_and_total(count):
    """Largest entry and sum of the counts of all blocks."""
    most, total = 0, 0
    for block in range(count.size):
        most = max(most, count[block])
        total += count[block]
    return most, total
