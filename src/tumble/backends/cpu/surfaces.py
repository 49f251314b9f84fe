"""Pairs with a mesh or a height field: triangle by triangle, then those points that are needed."""

from __future__ import annotations

import math

import numpy as np
from numba import get_thread_id

from ...kernels.convex import (
    HALF_SPACE,
    MESH,
    SPHERE,
    TRIANGLE,
    separation,
    support,
    triangle_corner,
    triangle_normal,
)
from ...kernels.cover import GATHERED, MOST, reduce_rows
from ...kernels.jit import blockwise, formula
from ...kernels.linalg import add, axpy, column, dot, mat_t_mat, mat_t_vec, mat_vec, norm, row3, row4, row9, sub
from ...kernels.manifold import COINCIDE, CORNER_NAMES, COVER_AT, FACE_NAMES, FOUND, STEEP, manifold
from ...kernels.pairs import meeting
from ...kernels.surfaces import (
    TRIANGLE_A,
    TRIANGLE_B,
    load_field_triangle,
    load_mesh_triangle,
    mesh_corner,
    normal_is_real,
)
from ..base import TREE_LEAF
from .narrow import is_convex_pair, ordered, point_velocity, spin_travel, step_back, write_row
from .place import local_box, turned_box

DYNAMIC = 2
SURFACE_ROWS = GATHERED
SURFACE_COLUMNS = 9
"""Normal, point, gap, name, and a mark."""
NAMES = 65536
"""Names of points that a key can hold."""
TOUCHES = 1e-7
"""Part of the smaller size within which a core counts as touching a triangle."""
SAME_FACE = 0.999
"""Cosine above which two triangles of meshes count as lying flat on each other."""


@formula
def _triangle_contacts(
    ka,
    sa,
    ha,
    middle,
    pa,
    ma,
    turn,
    shift,
    va,
    v,
    local,
    kind,
    s,
    triangle,
    cell,
    field_first,
    rows,
    columns,
    geometry,
    h,
    size,
    near,
    handed_on,
    swept_normal,
    back,
    out,
    row,
    scratch,
    triangle_a,
):
    """Contacts of a convex shape with the triangle in hand; returns their number.

    triangle_a: if the convex shape is itself a triangle of a mesh its number there, else -1.
    middle: of the shape, in the surface's frame. A closed surface is met from outside only, an open one from both
    sides.
    """
    normal = triangle_normal(scratch, TRIANGLE_B)
    above = dot(normal, sub(middle, triangle_corner(scratch, TRIANGLE_B, 0)))
    two_sided = kind == MESH and s[0] > 0.0
    if above < (0.0 if triangle_a < 0 else -0.5 * size) and not two_sided:
        return 0  # a triangle may lie a little behind the other mesh's, a solid may not
    side = -1.0 if above < 0.0 and two_sided else 1.0
    normal = (side * normal[0], side * normal[1], side * normal[2])
    sb = (float(TRIANGLE_B), side, 0.0, 0.0)
    yes, t, gap, n, point, reach = meeting(
        ka,
        sa,
        ha,
        np.int64(TRIANGLE),
        sb,
        np.int64(0),
        turn,
        shift,
        geometry.hull_point,
        geometry.hull_face_start,
        geometry.face_plane,
        scratch,
        local,
        h,
        size,
        near,
        handed_on,
        swept_normal,
    )
    if not yes:
        return 0
    m = mat_t_vec(turn, (-n[0], -n[1], -n[2]))  # away from the surface, in its frame
    real, face = normal_is_real(
        kind,
        triangle,
        cell,
        field_first,
        rows,
        columns,
        s,
        m,
        scratch,
        TRIANGLE_B,
        geometry.mesh_point,
        geometry.mesh_triangle,
        geometry.mesh_opposite,
        geometry.ring_start,
        geometry.ring,
        geometry.field_height,
    )
    if real and triangle_a >= 0:  # a triangle of a moving mesh has inner edges, too
        real, _ = normal_is_real(
            np.int64(MESH),
            triangle_a,
            (np.int64(0), np.int64(0), np.int64(0)),
            np.int64(0),
            np.int64(0),
            np.int64(0),
            sa,
            n,
            scratch,
            TRIANGLE_A,
            geometry.mesh_point,
            geometry.mesh_triangle,
            geometry.mesh_opposite,
            geometry.ring_start,
            geometry.ring,
            geometry.field_height,
        )
    moved = axpy(t, local, shift)
    inside = t == 0.0 and gap + sa[3] <= TOUCHES * size
    if face and dot(m, normal) < 0.0:
        real, face = False, False
    flipped = False
    if triangle_a >= 0:
        facing = dot(triangle_normal(scratch, TRIANGLE_A), mat_vec(turn, normal))
        flipped = facing < -SAME_FACE and dot(m, normal) < -SAME_FACE  # flat on each other, and a little inside
        if facing > -STEEP and not real:
            return 0  # back to back, or across: another triangle of the first mesh is nearer
    if not real and not inside and not flipped:
        return 0
    if face or not real or flipped:
        # The face's own normal: exact, and the way out where the shape is deeper than the triangle is large. In the
        # latter case only points over the triangle count: the shape's lowest point may lie elsewhere.
        n = mat_vec(turn, (-normal[0], -normal[1], -normal[2]))
        gap, _, _ = separation(ka, sa, TRIANGLE, sb, turn, moved, geometry.hull_point, scratch, n)
        gap -= sa[3]
        if gap > reach:
            return 0
        if not real or flipped:
            gap = math.inf
    count = manifold(
        ka,
        sa,
        ha,
        np.int64(TRIANGLE),
        sb,
        np.int64(0),
        turn,
        moved,
        geometry.hull_point,
        geometry.hull_face_start,
        geometry.face_plane,
        geometry.face_loop_start,
        geometry.face_loop,
        scratch,
        gap,
        n,
        point,
        reach,
        size,
        axpy(t, va, pa),
        ma,
        out,
        row,
    )
    if count == 1 and not math.isfinite(out[row, 6]):
        return 0
    if t > 0.0:
        step_back(out, row, count, t, v, back)
    return count


@formula
def _boxes_apart(tree_box, node, low, high):
    return (
        tree_box[node, 0] > high[0]
        or tree_box[node, 3] < low[0]
        or tree_box[node, 1] > high[1]
        or tree_box[node, 4] < low[1]
        or tree_box[node, 2] > high[2]
        or tree_box[node, 5] < low[2]
    )


@formula
def after(node):
    """The next node of a heap in depth-first order when its children are skipped; 0 at the end."""
    while node > 0 and node % 2 == 0:
        node = (node - 1) // 2
    return node + 1 if node > 0 else 0


@formula
def _extent(ka, sa, points, scratch, d):
    """How far a shape reaches along the unit vector d, in its frame."""
    return dot(d, support(ka, sa, points, scratch, d)) + sa[3]


@formula
def _box_in(ka, sa, turn, shift, points, scratch):
    """Box of a convex shape A in the frame of B, whose pose in A's frame is (turn, shift): low, high."""
    origin = mat_t_vec(turn, (-shift[0], -shift[1], -shift[2]))
    x, y, z = column(turn, 0), column(turn, 1), column(turn, 2)
    high = (
        origin[0] + _extent(ka, sa, points, scratch, x),
        origin[1] + _extent(ka, sa, points, scratch, y),
        origin[2] + _extent(ka, sa, points, scratch, z),
    )
    low = (
        origin[0] - _extent(ka, sa, points, scratch, (-x[0], -x[1], -x[2])),
        origin[1] - _extent(ka, sa, points, scratch, (-y[0], -y[1], -y[2])),
        origin[2] - _extent(ka, sa, points, scratch, (-z[0], -z[1], -z[2])),
    )
    return low, high


@formula
def _widened(low, high, way, reach):
    """A box grown by `reach` all round, and along a way it travels."""
    return (
        (
            low[0] - reach + min(0.0, way[0]),
            low[1] - reach + min(0.0, way[1]),
            low[2] - reach + min(0.0, way[2]),
        ),
        (
            high[0] + reach + max(0.0, way[0]),
            high[1] + reach + max(0.0, way[1]),
            high[2] + reach + max(0.0, way[2]),
        ),
    )


@formula
def _cell_range(low, high, step, count):
    """Cells of a height field between two coordinates along an axis with `count` points: first, last + 1."""
    middle = 0.5 * (count - 1)
    first = math.floor(low / step + middle)
    last = math.floor(high / step + middle)
    return int(min(max(first, 0.0), count - 1.0)), int(min(max(last + 1.0, 0.0), count - 1.0))


@formula
def _convex_on_surface(
    ka,
    sa,
    ha,
    pa,
    ma,
    j,
    shapes,
    geometry,
    va,
    vb,
    h,
    size,
    near,
    handed_on,
    swept_normal,
    back,
    found,
    rows,
    scratch,
    triangle_a,
):
    """Contacts of a convex shape with the mesh or height field j, appended to `rows`; returns their number.

    triangle_a: if the convex shape is itself a triangle of a mesh its number there, else -1.
    """
    kind, s, entry = np.int64(shapes.kind[j]), row4(shapes.parameters, j), np.int64(shapes.geometry[j])
    mb = row9(shapes.matrix, j)
    turn, shift = mat_t_mat(ma, mb), mat_t_vec(ma, sub(row3(shapes.position, j), pa))
    none = np.int64(0)
    v = sub(vb, va)
    local, way = mat_t_vec(ma, v), mat_t_vec(mb, v)
    low, high = _box_in(ka, sa, turn, shift, geometry.hull_point, scratch)
    middle = (0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), 0.5 * (low[2] + high[2]))
    low, high = _widened(low, high, (-h * way[0], -h * way[1], -h * way[2]), near + h * handed_on)
    if kind == MESH:
        first, end = geometry.mesh_start[entry], geometry.mesh_start[entry + 1]
        root = geometry.tree_start[entry]
        leaves = (geometry.tree_start[entry + 1] - root + 1) // 2
        node = 0
        while True:
            if not _boxes_apart(geometry.tree_box, root + node, low, high):
                if node < leaves - 1:
                    node = 2 * node + 1
                    continue
                start = first + TREE_LEAF * (node - leaves + 1)
                for triangle in range(start, min(end, start + TREE_LEAF)):
                    load_mesh_triangle(geometry.mesh_point, geometry.mesh_triangle, triangle, scratch, TRIANGLE_B)
                    if _triangle_apart(scratch, low, high):
                        continue
                    if found + FOUND > GATHERED:
                        found = reduce_rows(rows, found, size, scratch, COVER_AT)
                    new = _triangle_contacts(
                        ka,
                        sa,
                        ha,
                        middle,
                        pa,
                        ma,
                        turn,
                        shift,
                        va,
                        v,
                        local,
                        kind,
                        s,
                        np.int64(triangle),
                        (none, none, none),
                        none,
                        none,
                        none,
                        geometry,
                        h,
                        size,
                        near,
                        handed_on,
                        swept_normal,
                        back,
                        rows,
                        found,
                        scratch,
                        triangle_a,
                    )
                    _label(rows, found, new, triangle_a, triangle)
                    found = _appended(rows, found, new, size)
            node = after(node)
            if node == 0:
                break
        return found
    count_x, count_y = geometry.field_shape[entry, 0], geometry.field_shape[entry, 1]
    first = geometry.field_start[entry]
    if low[2] > s[3]:
        return found
    x0, x1 = _cell_range(low[0], high[0], s[0], count_x)
    y0, y1 = _cell_range(low[1], high[1], s[1], count_y)
    for x in range(x0, x1):
        for y in range(y0, y1):
            for upper in range(2):
                load_field_triangle(geometry.field_height, first, count_x, count_y, s, x, y, upper, scratch, TRIANGLE_B)
                if _triangle_apart(scratch, low, high):
                    continue
                if found + FOUND > GATHERED:
                    found = reduce_rows(rows, found, size, scratch, COVER_AT)
                new = _triangle_contacts(
                    ka,
                    sa,
                    ha,
                    middle,
                    pa,
                    ma,
                    turn,
                    shift,
                    va,
                    v,
                    local,
                    kind,
                    s,
                    none,
                    (np.int64(x), np.int64(y), np.int64(upper)),
                    first,
                    count_x,
                    count_y,
                    geometry,
                    h,
                    size,
                    near,
                    handed_on,
                    swept_normal,
                    back,
                    rows,
                    found,
                    scratch,
                    triangle_a,
                )
                _label(rows, found, new, triangle_a, 2 * (x * count_y + y) + upper)
                found = _appended(rows, found, new, size)
    return found


@formula
def _label(rows, found, new, triangle_a, triangle):
    """Tell the names of one triangle from those of another; a corner of a convex shape keeps its name."""
    for k in range(found, found + new):
        name = int(rows[k, 7])
        if triangle_a >= 0 or name < FACE_NAMES or name >= FACE_NAMES + CORNER_NAMES:
            name += CORNER_NAMES + 4093 * triangle + 769 * (triangle_a + 1)
        rows[k, 7] = name % NAMES


@formula
def _appended(rows, found, new, size):
    """Number of rows when those of the new ones that are there already are left out (triangles share their corners)."""
    near = COINCIDE * size
    for k in range(found, found + new):
        known = False
        for o in range(found):
            if (
                abs(rows[o, 3] - rows[k, 3]) <= near
                and abs(rows[o, 4] - rows[k, 4]) <= near
                and abs(rows[o, 5] - rows[k, 5]) <= near
                and abs(rows[o, 6] - rows[k, 6]) <= near
                and dot(row3(rows, o), row3(rows, k)) > 1.0 - COINCIDE
            ):
                known = True
                break
        if not known:
            if found < k:
                for c in range(8):
                    rows[found, c] = rows[k, c]
            found += 1
    return found


@formula
def _triangle_apart(scratch, low, high):
    """Whether the box of the triangle in hand misses a box."""
    for c in range(3):
        a, b, d = scratch[TRIANGLE_B + c], scratch[TRIANGLE_B + 3 + c], scratch[TRIANGLE_B + 6 + c]
        lo = low[0] if c == 0 else (low[1] if c == 1 else low[2])
        hi = high[0] if c == 0 else (high[1] if c == 1 else high[2])
        if min(a, min(b, d)) > hi or max(a, max(b, d)) < lo:
            return True
    return False


@formula
def _hand_over(rows, found, size, scratch, out, row):
    """Reduce the rows to those that are needed and write them, each with a name of its own; returns their number."""
    found = reduce_rows(rows, found, size, scratch, COVER_AT)
    for k in range(found):
        name = int(rows[k, 7]) % NAMES
        c = 0
        while c < k:
            if out[row + c, 7] == name:
                name, c = (name + 1) % NAMES, 0
            else:
                c += 1
        for c in range(7):
            out[row + k, c] = rows[k, c]
        out[row + k, 7] = name
    return found


@formula
def surface_pair(i, j, shapes, bodies, geometry, va, vb, handed_on, h, margin, out, row, scratch, rows):
    """Contacts of a convex shape or a mesh (i) with a mesh or height field (j); at most MOST.

    Two meshes: every triangle of the first near the second is a convex shape of its own. The depth is then that of
    the two triangles alone: right while it is small against them, an approximation beyond.
    """
    a, b = shapes.body[i], shapes.body[j]
    size = min(shapes.smallest[i], shapes.smallest[j])
    near = 0.05 * size if margin < 0.0 else margin
    if shapes.kind[i] != SPHERE:
        near += spin_travel(bodies.free, a, h, shapes.bound[i])
    pa, ma = row3(shapes.position, i), row9(shapes.matrix, i)
    away = norm(sub(row3(shapes.position, j), pa))
    near += h * norm((bodies.free[b, 3], bodies.free[b, 4], bodies.free[b, 5])) * min(shapes.bound[j], away)
    fixed_a, fixed_b = bodies.kind[a] != DYNAMIC, bodies.kind[b] != DYNAMIC
    swept_normal = fixed_a or fixed_b
    back = va if fixed_b else vb
    kind, sa, ha = np.int64(shapes.kind[i]), row4(shapes.parameters, i), np.int64(shapes.geometry[i])
    none = np.int64(0)
    found = none
    if kind != MESH:
        found = _convex_on_surface(
            kind,
            sa,
            ha,
            pa,
            ma,
            j,
            shapes,
            geometry,
            va,
            vb,
            h,
            size,
            near,
            handed_on,
            swept_normal,
            back,
            found,
            rows,
            scratch,
            np.int64(-1),
        )
        return _hand_over(rows, found, size, scratch, out, row)
    low, high = _surface_box_in(j, shapes, geometry, ma, pa)
    way = mat_t_vec(ma, sub(vb, va))
    low, high = _widened(low, high, (h * way[0], h * way[1], h * way[2]), near + h * handed_on)
    first, end = geometry.mesh_start[ha], geometry.mesh_start[ha + 1]
    root = geometry.tree_start[ha]
    leaves = (geometry.tree_start[ha + 1] - root + 1) // 2
    node = 0
    while True:
        if not _boxes_apart(geometry.tree_box, root + node, low, high):
            if node < leaves - 1:
                node = 2 * node + 1
                continue
            start = first + TREE_LEAF * (node - leaves + 1)
            for triangle in range(start, min(end, start + TREE_LEAF)):
                load_mesh_triangle(geometry.mesh_point, geometry.mesh_triangle, triangle, scratch, TRIANGLE_A)
                found = _convex_on_surface(
                    np.int64(TRIANGLE),
                    (float(TRIANGLE_A), 1.0, 0.0, 0.0),
                    none,
                    pa,
                    ma,
                    j,
                    shapes,
                    geometry,
                    va,
                    vb,
                    h,
                    size,
                    near,
                    handed_on,
                    swept_normal,
                    back,
                    found,
                    rows,
                    scratch,
                    np.int64(triangle),
                )
        node = after(node)
        if node == 0:
            break
    return _hand_over(rows, found, size, scratch, out, row)


@formula
def _surface_box_in(j, shapes, geometry, ma, pa):
    """Box of the surface j in the frame (pa, ma)."""
    low, high = local_box(np.int64(shapes.kind[j]), row4(shapes.parameters, j), np.int64(shapes.geometry[j]), geometry)
    middle, reach = turned_box(low, high, mat_t_mat(ma, row9(shapes.matrix, j)))
    middle = add(middle, mat_t_vec(ma, sub(row3(shapes.position, j), pa)))
    return sub(middle, reach), add(middle, reach)


@formula
def mesh_on_plane(i, j, shapes, bodies, geometry, va, vb, handed_on, h, margin, out, row, scratch, rows):
    """Corners of a mesh that are near a plane and needed."""
    entry = np.int64(shapes.geometry[i])
    pa, ma = row3(shapes.position, i), row9(shapes.matrix, i)
    up = column(row9(shapes.matrix, j), 2)
    near = 0.05 * shapes.smallest[i] if margin < 0.0 else margin
    near += spin_travel(bodies.free, shapes.body[i], h, shapes.bound[i])
    reach = near + h * max(-dot(sub(va, vb), up), handed_on)
    level = dot(sub(row3(shapes.position, j), pa), up)
    d = mat_t_vec(ma, up)
    first, end = geometry.mesh_start[entry], geometry.mesh_start[entry + 1]
    root = geometry.tree_start[entry]
    leaves = (geometry.tree_start[entry + 1] - root + 1) // 2
    n = (-up[0], -up[1], -up[2])
    found = np.int64(0)
    node = 0
    while True:
        lowest = -level
        for c in range(3):
            along = d[0] if c == 0 else (d[1] if c == 1 else d[2])
            lowest += along * geometry.tree_box[root + node, c if along > 0.0 else 3 + c]
        if lowest <= reach:
            if node < leaves - 1:
                node = 2 * node + 1
                continue
            start = first + TREE_LEAF * (node - leaves + 1)
            for triangle in range(start, min(end, start + TREE_LEAF)):
                for k in range(3):
                    corner = geometry.mesh_triangle[triangle, k]
                    p = mesh_corner(geometry.mesh_point, corner)
                    gap = dot(d, p) - level
                    if gap <= reach:
                        if found == GATHERED:
                            found = reduce_rows(rows, found, shapes.smallest[i], scratch, COVER_AT)
                        p = axpy(-0.5 * gap, up, add(mat_vec(ma, p), pa))
                        write_row(rows, found, n, p, gap, float(corner % NAMES))
                        found = _appended(rows, found, 1, shapes.smallest[i])
        node = after(node)
        if node == 0:
            break
    return _hand_over(rows, found, shapes.smallest[i], scratch, out, row)


@formula
def _motion_of(i, j, shapes, bodies):
    """Velocities of the two shapes at the place of the first, and the speed handed on."""
    a, b = shapes.body[i], shapes.body[j]
    p = row3(shapes.position, i)
    va = point_velocity(bodies.free, a, p, row3(bodies.center, a))
    vb = point_velocity(bodies.free, b, p, row3(bodies.center, b))
    return va, vb, max(bodies.handed_on[a], bodies.handed_on[b])


@blockwise(1, "blocks")
def find_surface_contacts(
    block,
    shapes,
    bodies,
    geometry,
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
    rows,
):
    """Contacts of the pairs with a mesh or height field, after those that other pairs left in each block."""
    thread = get_thread_id()
    mine = scratch[thread]
    found = raw_count[block]
    base = block * raw_capacity
    for k in range(block * pair_capacity, block * pair_capacity + pair_count[block]):
        i, j = ordered(pair[k, 0], pair[k, 1], shapes.kind, shapes.body)
        if is_convex_pair(i, j, shapes.kind):
            continue
        row = base + min(found, raw_capacity - MOST)
        va, vb, handed_on = _motion_of(i, j, shapes, bodies)
        if shapes.kind[j] == HALF_SPACE:
            new = mesh_on_plane(
                i, j, shapes, bodies, geometry, va, vb, handed_on, h, margin, raw, row, mine, rows[thread]
            )
        else:
            new = surface_pair(
                i,
                j,
                shapes,
                bodies,
                geometry,
                va,
                vb,
                handed_on,
                h,
                margin,
                raw,
                row,
                mine,
                rows[thread],
            )
        for c in range(row, row + new):
            raw_shapes[c, 0], raw_shapes[c, 1] = i, j
        found += new
    raw_count[block] = found
