"""Pairs with a mesh or a height field: triangle by triangle, then those points that are needed."""

from __future__ import annotations

import numpy as np

from ...kernels.cover import GATHERED, MOST, reduce_rows
from ...kernels.descent import after, box_in, boxes_apart, cell_range, triangle_apart, widened
from ...kernels.jit import blockwise, formula
from ...kernels.kinds import DYNAMIC, HALF_SPACE, MESH, SPHERE, TRIANGLE
from ...kernels.linalg import add, axpy, column, dot, mat_t_mat, mat_t_vec, mat_vec, norm, row3, row4, row9, sub
from ...kernels.manifold import COVER_AT, FOUND
from ...kernels.pair_contacts import is_convex_pair, ordered, point_velocity, spin_travel, write_row
from ...kernels.surface_rows import NAMES, append_rows, hand_over, label_rows
from ...kernels.surfaces import (
    TRIANGLE_A,
    TRIANGLE_B,
    load_field_triangle,
    load_mesh_triangle,
    mesh_corner,
)
from ...kernels.team import member
from ...kernels.triangle_contacts import triangle_contacts
from ..base import TREE_LEAF
from .place import local_box, turned_box

SURFACE_ROWS = GATHERED
SURFACE_COLUMNS = 9
"""Normal, point, gap, name, and a mark."""


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
    low, high = box_in(ka, sa, turn, shift, geometry.hull_point, scratch)
    middle = (0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), 0.5 * (low[2] + high[2]))
    low, high = widened(low, high, (-h * way[0], -h * way[1], -h * way[2]), near + h * handed_on)
    if kind == MESH:
        first, end = geometry.mesh_start[entry], geometry.mesh_start[entry + 1]
        root = geometry.tree_start[entry]
        leaves = (geometry.tree_start[entry + 1] - root + 1) // 2
        node = 0
        while True:
            if not boxes_apart(geometry.tree_box, root + node, low, high):
                if node < leaves - 1:
                    node = 2 * node + 1
                    continue
                start = first + TREE_LEAF * (node - leaves + 1)
                for triangle in range(start, min(end, start + TREE_LEAF)):
                    load_mesh_triangle(geometry.mesh_point, geometry.mesh_triangle, triangle, scratch, TRIANGLE_B)
                    if triangle_apart(scratch, low, high):
                        continue
                    if found + FOUND > GATHERED:
                        found = reduce_rows(rows, found, size, scratch, COVER_AT)
                    new = triangle_contacts(
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
                    label_rows(rows, found, new, triangle_a, triangle)
                    found = append_rows(rows, found, new, size)
            node = after(node)
            if node == 0:
                break
        return found
    count_x, count_y = geometry.field_shape[entry, 0], geometry.field_shape[entry, 1]
    first = geometry.field_start[entry]
    if low[2] > s[3]:
        return found
    x0, x1 = cell_range(low[0], high[0], s[0], count_x)
    y0, y1 = cell_range(low[1], high[1], s[1], count_y)
    for x in range(x0, x1):
        for y in range(y0, y1):
            for upper in range(2):
                load_field_triangle(geometry.field_height, first, count_x, count_y, s, x, y, upper, scratch, TRIANGLE_B)
                if triangle_apart(scratch, low, high):
                    continue
                if found + FOUND > GATHERED:
                    found = reduce_rows(rows, found, size, scratch, COVER_AT)
                new = triangle_contacts(
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
                label_rows(rows, found, new, triangle_a, 2 * (x * count_y + y) + upper)
                found = append_rows(rows, found, new, size)
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
        return hand_over(rows, found, size, scratch, out, row)
    low, high = _surface_box_in(j, shapes, geometry, ma, pa)
    way = mat_t_vec(ma, sub(vb, va))
    low, high = widened(low, high, (h * way[0], h * way[1], h * way[2]), near + h * handed_on)
    first, end = geometry.mesh_start[ha], geometry.mesh_start[ha + 1]
    root = geometry.tree_start[ha]
    leaves = (geometry.tree_start[ha + 1] - root + 1) // 2
    node = 0
    while True:
        if not boxes_apart(geometry.tree_box, root + node, low, high):
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
    return hand_over(rows, found, size, scratch, out, row)


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
                        found = append_rows(rows, found, 1, shapes.smallest[i])
        node = after(node)
        if node == 0:
            break
    return hand_over(rows, found, shapes.smallest[i], scratch, out, row)


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
    thread = member()
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
