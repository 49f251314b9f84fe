"""Broad phase (hierarchical hashed grid), narrow phase and sorting of contacts."""

from __future__ import annotations

import math

from ...kernels.jit import block_length, formula, item_index, loop, parallel_loop, prange
from ...kernels.linalg import add, axpy, cross, dot, norm, sub
from ...kernels.pairs import first_touch, pair_contacts, pair_gap, sphere_sphere, write_row
from ..base import BLOCK, BODY_BLOCK
from .motion import row3, row9

DYNAMIC = 2
SPHERE = 0
HALF_SPACE = 2
LEVELS = 256
LEVEL_ZERO = 128
NO_LEVEL = -1
FEW = 8
"""A level with at most this many shapes (container walls, a slab) is compared with everything directly."""
PAIR_BLOCK = 64
"""Shapes in a block of the pair search, pairs in a block of the narrow phase."""
FAST_TRAVEL = 0.25
"""A pair that moves more than this part of its smaller size in a step is swept."""


@formula
def _cell_key(level, x, y, z):
    """Level and cell in one integer; 18 bits a coordinate, wrapped (a wrapped cell is only a wasted comparison)."""
    return (level << 54) | ((x & 0x3FFFF) << 36) | ((y & 0x3FFFF) << 18) | (z & 0x3FFFF)


@formula
def _bucket(key, mask):
    """Hash of a cell key."""
    key = (key ^ (key >> 31)) * 0x1B873593A5F3B20D
    key = (key ^ (key >> 29)) * 0x2545F4914F6CDD1D
    return (key ^ (key >> 32)) & mask


@formula
def _cell_size(level, phase):
    """Edge of the cells of a level: its boxes are smaller, by less than a factor of two."""
    return math.ldexp(1.0 + 0.125 * phase, level - LEVEL_ZERO)


@loop
def choose_phase(kind, box, level, histogram):
    """Bins of eight to the octave for all boxes (left in `level`), and the phase (0..7) of the levels for which cells
    fit their boxes best: equal bodies then share one level with cells of their own size."""
    histogram[:] = 0
    for i in range(kind.size):
        if kind[i] == HALF_SPACE:
            level[i] = NO_LEVEL
            continue
        extent = max(box[i, 3] - box[i, 0], max(box[i, 4] - box[i, 1], box[i, 5] - box[i, 2]))
        mantissa, e = math.frexp(extent)
        e = min(LEVELS - 4, max(2, e + LEVEL_ZERO))
        level[i] = 8 * e + min(7, max(0, int((mantissa - 0.5) * 16.0)))
        histogram[level[i]] += 1
    best, phase = math.inf, 0
    for p in range(8):
        cost = 0.0
        for f in range(8, 8 * (LEVELS - 2)):
            if histogram[f] > 0:
                ratio = _cell_size((f - p) // 8, p) / _cell_size(f // 8 - 1, f % 8)
                cost += histogram[f] * ratio * ratio * ratio
        if cost < best:
            best, phase = cost, p
    return phase


@parallel_loop
def cell_keys(kind, box, phase, level, key):
    """From bins to levels, and the cell of each box centre."""
    m = kind.size
    for block in prange((m + BODY_BLOCK - 1) // BODY_BLOCK):
        for i in range(block * BODY_BLOCK, min(m, (block + 1) * BODY_BLOCK)):
            if kind[i] == HALF_SPACE:
                continue
            e = (level[i] - phase) // 8
            size = _cell_size(e, phase)
            level[i] = e
            x = int(math.floor(0.5 * (box[i, 0] + box[i, 3]) / size))
            y = int(math.floor(0.5 * (box[i, 1] + box[i, 4]) / size))
            z = int(math.floor(0.5 * (box[i, 2] + box[i, 5]) / size))
            key[i] = _cell_key(e, x, y, z)


@loop
def build_grid(level, key, level_count, bucket_start, item, single, levels):
    """Counting sort of the shapes into buckets. Returns (number of single shapes, number of grid levels).

    single: shapes compared with everything (planes are not among them); levels: grid levels in use.
    """
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
            single[singles] = i
            singles += 1
        else:
            bucket_start[_bucket(key[i], mask) + 1] += 1
    used = 0
    for e in range(LEVELS):
        if level_count[e] > FEW:
            levels[used] = e
            used += 1
    for b in range(1, bucket_start.size):
        bucket_start[b] += bucket_start[b - 1]
    for i in range(level.size - 1, -1, -1):
        if level[i] != NO_LEVEL and level_count[level[i]] > FEW:
            b = _bucket(key[i], mask) + 1
            # bucket_start[b] is the end of bucket b - 1 now and its start when all are placed, one bucket up.
            bucket_start[b] -= 1
            item[bucket_start[b]] = i
    return singles, used


@formula
def _may_collide(i, j, body, body_kind, group, mask, excluded):
    """Different bodies, one of them dynamic, groups and masks agree, not excluded."""
    a, b = body[i], body[j]
    if a == b or (body_kind[a] != DYNAMIC and body_kind[b] != DYNAMIC):
        return False
    if (group[a] & mask[b]) == 0 or (group[b] & mask[a]) == 0:
        return False
    if excluded.size > 0:
        wanted = (min(a, b) << 32) + max(a, b)
        low, high = 0, excluded.size
        while low < high:
            middle = (low + high) // 2
            if excluded[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        if low < excluded.size and excluded[low] == wanted:
            return False
    return True


@formula
def _boxes_meet(box, i, j):
    return (
        box[i, 0] <= box[j, 3]
        and box[j, 0] <= box[i, 3]
        and box[i, 1] <= box[j, 4]
        and box[j, 1] <= box[i, 4]
        and box[i, 2] <= box[j, 5]
        and box[j, 2] <= box[i, 5]
    )


@formula
def _above_plane(i, p, box, position, matrix):
    """Height of the lowest corner of a box over plane p."""
    height = 0.0
    for k in range(3):
        n = matrix[p, 3 * k + 2]
        height += n * ((box[i, k] if n > 0.0 else box[i, 3 + k]) - position[p, k])
    return height


@parallel_loop
def find_pairs(
    kind,
    body,
    body_kind,
    group,
    mask,
    excluded,
    box,
    position,
    matrix,
    free,
    h,
    slack,
    phase,
    level,
    key,
    level_count,
    bucket_start,
    item,
    single,
    singles,
    levels,
    used,
    planes,
    plane_count,
    pair,
    capacity,
    count,
):
    """Pairs of shapes whose boxes meet, `capacity` places for each block of shapes; count may exceed it (try again).

    Within a level a pair is found from the shape in the lower cell. slack: what a user's margin adds for planes [m].
    """
    m = kind.size
    hash_mask = bucket_start.size - 3
    for block in prange((m + PAIR_BLOCK - 1) // PAIR_BLOCK):
        found = 0
        base = block * capacity
        for i in range(block * PAIR_BLOCK, min(m, (block + 1) * PAIR_BLOCK)):
            if kind[i] == HALF_SPACE:
                continue
            for s in range(plane_count):
                p = planes[s]
                b = body[p]
                v = (free[b, 0], free[b, 1], free[b, 2])
                w = (free[b, 3], free[b, 4], free[b, 5])
                reach = h * (norm(v) + norm(w) * norm(sub(row3(position, i), row3(position, p))))
                if _above_plane(i, p, box, position, matrix) <= reach + slack and _may_collide(
                    i, p, body, body_kind, group, mask, excluded
                ):
                    if found < capacity:
                        pair[base + found, 0], pair[base + found, 1] = i, p
                    found += 1
            mine = level[i]
            in_grid = level_count[mine] > FEW
            for s in range(singles):
                j = single[s]
                if (
                    j != i
                    and (in_grid or i < j)
                    and _boxes_meet(box, i, j)
                    and _may_collide(i, j, body, body_kind, group, mask, excluded)
                ):
                    if found < capacity:
                        pair[base + found, 0], pair[base + found, 1] = i, j
                    found += 1
            if not in_grid:
                continue
            for s in range(used):
                e = levels[s]
                if e < mine:
                    continue
                size = _cell_size(e, phase)
                x0 = int(math.floor(box[i, 0] / size - 0.5))
                x1 = int(math.floor(box[i, 3] / size + 0.5))
                y0 = int(math.floor(box[i, 1] / size - 0.5))
                y1 = int(math.floor(box[i, 4] / size + 0.5))
                z0 = int(math.floor(box[i, 2] / size - 0.5))
                z1 = int(math.floor(box[i, 5] / size + 0.5))
                same = e == mine
                cx, cy, cz = x0, y0, z0
                if same:
                    cx = int(math.floor(0.5 * (box[i, 0] + box[i, 3]) / size))
                    cy = int(math.floor(0.5 * (box[i, 1] + box[i, 4]) / size))
                    cz = int(math.floor(0.5 * (box[i, 2] + box[i, 5]) / size))
                for x in range(cx, x1 + 1):
                    for y in range(cy if same and x == cx else y0, y1 + 1):
                        for z in range(cz if same and x == cx and y == cy else z0, z1 + 1):
                            home = same and x == cx and y == cy and z == cz
                            wanted = _cell_key(e, x, y, z)
                            b = _bucket(wanted, hash_mask) + 1
                            for t in range(bucket_start[b], bucket_start[b + 1]):
                                j = item[t]
                                if key[j] != wanted or (home and j <= i):
                                    continue
                                if _boxes_meet(box, i, j) and _may_collide(
                                    i, j, body, body_kind, group, mask, excluded
                                ):
                                    if found < capacity:
                                        pair[base + found, 0], pair[base + found, 1] = i, j
                                    found += 1
        count[block] = found


@formula
def _point_velocity(free, b, p, x):
    """Velocity of the point p of body b whose centre is x."""
    w = (free[b, 3], free[b, 4], free[b, 5])
    return add((free[b, 0], free[b, 1], free[b, 2]), cross(w, sub(p, x)))


@formula
def _pair(
    i,
    j,
    kind,
    parameters,
    shape_position,
    shape_matrix,
    bound,
    smallest,
    body,
    body_kind,
    center,
    free,
    reach_speed,
    h,
    margin,
    out,
    row,
    scratch,
):
    """Contacts of one ordered pair, with gaps as the step's bias needs them; returns their number.

    A slow pair is taken as it stands: contacts within the margin plus h times the approach speed, or the speed that a
    neighbour could hand on to one of the two within the step. A fast one is swept: it has a contact only if the paths
    meet within the step, so that a near miss is not deflected. Against a body of prescribed motion the contact is that
    of the first touch, or of the nearest approach within half the smaller size, its gap continued back to now with the
    approach speed. Between two dynamic bodies the present normal is kept: with one application point on the line of
    centres no angular momentum is made.
    """
    pa, pb = row3(shape_position, i), row3(shape_position, j)
    ka, kb = kind[i], kind[j]
    a, b = body[i], body[j]
    xa, xb = row3(center, a), row3(center, b)
    size = min(smallest[i], smallest[j])
    near = 0.05 * size if margin < 0.0 else margin
    if kb == SPHERE:  # two spheres, the most frequent pair
        gap, n = sphere_sphere(pa, parameters[i, 0], pb, parameters[j, 0])
        v = sub(_point_velocity(free, b, pb, xb), _point_velocity(free, a, pa, xa))
        if h * norm(v) <= FAST_TRAVEL * size:
            if gap > near + h * max(-dot(v, n), max(reach_speed[a], reach_speed[b])):
                return 0
            write_row(out, row, n, axpy(parameters[i, 0] + 0.5 * gap, n, pa), gap, 0.0)
            return 1
    ma, mb = row9(shape_matrix, i), row9(shape_matrix, j)
    sa, sb = row3(parameters, i), row3(parameters, j)
    turning = 0.0
    if ka != 0:
        turning += h * norm((free[a, 3], free[a, 4], free[a, 5])) * bound[i]
    if kb == 1:
        turning += h * norm((free[b, 3], free[b, 4], free[b, 5])) * bound[j]
    va, vb = _point_velocity(free, a, pa, xa), _point_velocity(free, b, pb if kb != HALF_SPACE else pa, xb)
    v = sub(vb, va)
    travel = h * norm(v)
    fixed_a, fixed_b = body_kind[a] != DYNAMIC, body_kind[b] != DYNAMIC
    t = 0.0
    reach = near + turning
    if travel <= FAST_TRAVEL * size or kb == HALF_SPACE:
        gap, n = pair_gap(ka, pa, ma, sa, kb, pb, mb, sb)
        reach += h * max(-dot(v, n), max(reach_speed[a], reach_speed[b]))
        if gap > reach:
            return 0
    else:
        t, gap = first_touch(ka, pa, ma, sa, kb, pb, mb, sb, v, h)
        if fixed_a or fixed_b:
            reach = max(near, 0.5 * size) + turning
        if gap > reach:
            return 0
        if not (fixed_a or fixed_b):
            t = 0.0
            reach += travel
    count = pair_contacts(ka, axpy(t, va, pa), ma, sa, kb, axpy(t, vb, pb), mb, sb, reach, out, row, scratch)
    if t > 0.0:
        # Back to the present: the dynamic body's point, and the gap that shrinks to the one found at time t.
        back = va if fixed_b else vb
        for k in range(row, row + count):
            approach = dot(v, (out[k, 0], out[k, 1], out[k, 2]))
            out[k, 6] -= t * approach
            for c in range(3):
                out[k, 3 + c] -= t * back[c]
    return count


@parallel_loop
def find_contacts(
    kind,
    parameters,
    shape_position,
    shape_matrix,
    bound,
    smallest,
    body,
    body_kind,
    center,
    free,
    reach_speed,
    h,
    margin,
    pair,
    pair_capacity,
    pair_count,
    blocks,
    raw,
    raw_shapes,
    raw_capacity,
    raw_count,
    scratch,
):
    """Contacts of all pairs. raw (.., 8): normal from the first to the second shape, point, gap, feature."""
    for block in prange(blocks):
        found = 0
        base = block * raw_capacity
        for k in range(block * pair_capacity, block * pair_capacity + pair_count[block]):
            i, j = pair[k, 0], pair[k, 1]
            if kind[j] < kind[i] or (kind[j] == kind[i] and body[j] < body[i]):
                i, j = j, i
            if found + 4 > raw_capacity:
                found += 4  # no room: the caller enlarges and comes again
                continue
            new = _pair(
                i,
                j,
                kind,
                parameters,
                shape_position,
                shape_matrix,
                bound,
                smallest,
                body,
                body_kind,
                center,
                free,
                reach_speed,
                h,
                margin,
                raw,
                base + found,
                scratch[block],
            )
            for c in range(found, found + new):
                raw_shapes[base + c, 0], raw_shapes[base + c, 1] = i, j
            found += new
        raw_count[block] = found


@loop
def sort_contacts(
    raw, raw_shapes, raw_capacity, raw_count, blocks, body, local, start, cursor, order, first, body_b, feature
):
    """Order of the contacts by (body a, body b, feature), a < b; `order` holds places in raw. Returns their number.

    Two stable counting sorts, by b (into `first`) and by a; what is left are the few points of one pair of bodies.
    """
    start[:] = 0
    for block in range(blocks):
        for c in range(block * raw_capacity, block * raw_capacity + raw_count[block]):
            start[max(body[raw_shapes[c, 0]], body[raw_shapes[c, 1]]) + 1] += 1
    for b in range(1, start.size):
        start[b] += start[b - 1]
        cursor[b - 1] = start[b - 1]
    for block in range(blocks):
        for c in range(block * raw_capacity, block * raw_capacity + raw_count[block]):
            b = max(body[raw_shapes[c, 0]], body[raw_shapes[c, 1]])
            first[cursor[b]] = c
            cursor[b] += 1
    total = start[start.size - 1]
    start[:] = 0
    for k in range(total):
        c = first[k]
        start[min(body[raw_shapes[c, 0]], body[raw_shapes[c, 1]]) + 1] += 1
    for a in range(1, start.size):
        start[a] += start[a - 1]
        cursor[a - 1] = start[a - 1]
    for n in range(total):
        c = first[n]
        i, j = raw_shapes[c, 0], raw_shapes[c, 1]
        if body[i] > body[j]:
            i, j = j, i
        a, b = body[i], body[j]
        code = (local[i] << 36) | (local[j] << 16) | int(raw[c, 7])
        k = cursor[a]
        while k > start[a] and body_b[k - 1] == b and feature[k - 1] > code:
            body_b[k], feature[k], order[k] = body_b[k - 1], feature[k - 1], order[k - 1]
            k -= 1
        body_b[k], feature[k], order[k] = b, code, c
        cursor[a] += 1
    return total


@parallel_loop
def arrange_contacts(
    count, order, raw, raw_shapes, body, material, friction, smallest, body_a, mu, size, normal, point, gap
):
    """Copy the sorted contacts into component-first arrays."""
    for block in prange((count + BLOCK - 1) // BLOCK):
        for item in range(block_length(block, count)):
            k = item_index(block, item)
            c = order[k]
            i, j = raw_shapes[c, 0], raw_shapes[c, 1]
            sign = 1.0 if body[i] < body[j] else -1.0
            body_a[k] = min(body[i], body[j])
            mu[k] = friction[material[i], material[j]]
            size[k] = min(smallest[i], smallest[j])
            for d in range(3):
                normal[d, k] = sign * raw[c, d]
                point[d, k] = raw[c, 3 + d]
            gap[k] = raw[c, 6]


@loop
def spread_speed(pair, capacity, count, blocks, body, body_kind, free, reach_speed, scratch):
    """reach_speed[b]: the largest speed among the neighbours (and theirs) of a dynamic body b. A body that is hit can
    move with it in the same step, into a third one that its own velocity does not announce."""
    for b in range(body_kind.size):
        reach_speed[b] = 0.0
        scratch[b] = norm((free[b, 0], free[b, 1], free[b, 2]))
    for _ in range(2):
        for block in range(blocks):
            for k in range(block * capacity, block * capacity + count[block]):
                a, b = body[pair[k, 0]], body[pair[k, 1]]
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
