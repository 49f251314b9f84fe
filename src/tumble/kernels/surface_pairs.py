"""Contact points of pairs with a mesh or a height field: triangle by triangle, then those points that are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .convex import Convex
from .cover import GATHERED, reduce_rows
from .descent import (
    TREE_LEAF,
    after,
    box_in,
    boxes_apart,
    cell_range,
    local_box,
    triangle_apart,
    turned_box,
    widened,
)
from .jit import formula, merged_formula
from .kinds import MESH, SPHERE, TRIANGLE
from .linalg import add, axpy, column, dot, mat_t_mat, mat_t_vec, mat_vec, norm, row3, row4, row9, sub
from .manifold import COVER_AT, FOUND
from .pair_contacts import Moving, moving, near_gap, spin_travel, write_row
from .pairs import Limits
from .surface_rows import NAMES, append_rows, hand_over, label_rows
from .surfaces import (
    TRIANGLE_A,
    TRIANGLE_B,
    Piece,
    Surface,
    load_field_triangle,
    load_mesh_triangle,
    mesh_corner,
)
from .triangle_contacts import Encounter, triangle_points, triangle_touch

__all__ = ["mesh_on_plane", "surface_pair"]


@merged_formula
def _surface(j, shapes):
    """Shape j, a mesh or height field."""
    return Surface(np.int64(shapes.kind[j]), row4(shapes.parameters, j), np.int64(shapes.geometry[j]))


class Meeting(NamedTuple):
    """A convex shape or a mesh and a surface in a step."""

    one: Moving
    two: Moving
    surface: Surface
    limits: Limits


@formula
def surface_in_step(i, j, shapes, bodies, times):
    """Shape i and the mesh or height field j in this step. times: (h, margin)"""
    h, margin = times
    a, b = shapes.body[i], shapes.body[j]
    size, near = near_gap(shapes, i, j, margin)
    if shapes.kind[i] != SPHERE:
        near += spin_travel(bodies.free, a, h, shapes.bound[i])
    place = row3(shapes.position, i)
    away = norm(sub(row3(shapes.position, j), place))
    near += h * norm((bodies.free[b, 3], bodies.free[b, 4], bodies.free[b, 5])) * min(shapes.bound[j], away)
    one = moving(i, shapes, bodies, np.int64(shapes.geometry[i]), place)
    two = moving(j, shapes, bodies, np.int64(shapes.geometry[j]), place)
    handed_on = max(bodies.handed_on[a], bodies.handed_on[b])
    limits = Limits(h, size, near, handed_on, one.fixed or two.fixed)
    return Meeting(one, two, _surface(j, shapes), limits)


@merged_formula
def own_triangle(one):
    """The triangle in hand of a mesh as a convex shape that moves with it."""
    shape = Convex(np.int64(TRIANGLE), (float(TRIANGLE_A), 1.0, 0.0, 0.0), np.int64(0))
    return Moving(shape, one.pose, one.velocity, one.fixed)


@merged_formula
def _surface_box_in(two, surface, pools, pose):
    """Box of a surface in the frame of a pose."""
    low, high = local_box(surface, pools.trees, pools.fields.shape)
    middle, reach = turned_box(low, high, mat_t_mat(pose.matrix, two.pose.matrix))
    middle = add(middle, mat_t_vec(pose.matrix, sub(two.pose.position, pose.position)))
    return sub(middle, reach), add(middle, reach)


@merged_formula
def encounter(one, triangle, two, surface, limits, pools, scratch):
    """A convex shape that comes near a surface, and the box of its way in the surface's frame.

    triangle: if the convex shape is itself a triangle of a mesh its number there, else -1.
    """
    ma, mb, h = one.pose.matrix, two.pose.matrix, limits.h
    turn, shift = mat_t_mat(ma, mb), mat_t_vec(ma, sub(two.pose.position, one.pose.position))
    v = sub(two.velocity, one.velocity)
    local, way = mat_t_vec(ma, v), mat_t_vec(mb, v)
    low, high = box_in(one.convex, turn, shift, pools.hulls.point, scratch)
    middle = (0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), 0.5 * (low[2] + high[2]))
    low, high = widened(low, high, (-h * way[0], -h * way[1], -h * way[2]), limits.near + h * limits.handed_on)
    back = one.velocity if two.fixed else two.velocity
    met = Encounter(one.convex, triangle, one.pose, middle, surface, turn, shift, one.velocity, v, local, back, limits)
    return met, low, high


def walk_with(visit: Callable) -> Callable:
    """What visits all pairs of a convex shape, or a triangle of a mesh, and a triangle of a surface that may touch, in
    a fixed order: visit(encounter, piece, number, pools, found, work), which returns the next `found`. number: of the
    triangle in the surface; work: (scratch, what the visitor writes to)."""

    @merged_formula
    def _on_mesh(met, low, high, pools, found, work):
        """Visit the triangles of a mesh that meet a box."""
        scratch, _ = work
        entry, none = met.surface.entry, np.int64(0)
        first, end = pools.meshes.start[entry], pools.meshes.start[entry + 1]
        root = pools.trees.start[entry]
        leaves = (pools.trees.start[entry + 1] - root + 1) // 2
        node = 0
        while True:
            if not boxes_apart(pools.trees.box, root + node, low, high):
                if node < leaves - 1:
                    node = 2 * node + 1
                    continue
                start = first + TREE_LEAF * (node - leaves + 1)
                for triangle in range(start, min(end, start + TREE_LEAF)):
                    load_mesh_triangle(pools.meshes, triangle, scratch, TRIANGLE_B)
                    if not triangle_apart(scratch, low, high):
                        piece = Piece(np.int64(triangle), (none, none, none))
                        found = visit(met, piece, triangle, pools, found, work)
            node = after(node)
            if node == 0:
                break
        return found

    @merged_formula
    def _on_field(met, low, high, pools, found, work):
        """Visit the triangles of a height field that meet a box."""
        scratch, _ = work
        s, entry, none = met.surface.s, met.surface.entry, np.int64(0)
        count_x, count_y = pools.fields.shape[entry, 0], pools.fields.shape[entry, 1]
        if low[2] > s[3]:
            return found
        x0, x1 = cell_range(low[0], high[0], s[0], count_x)
        y0, y1 = cell_range(low[1], high[1], s[1], count_y)
        for x in range(x0, x1):
            for y in range(y0, y1):
                for upper in range(2):
                    cell = (np.int64(x), np.int64(y), np.int64(upper))
                    load_field_triangle(pools.fields, met.surface, cell, scratch, TRIANGLE_B)
                    if not triangle_apart(scratch, low, high):
                        number = 2 * (x * count_y + y) + upper
                        found = visit(met, Piece(none, cell), number, pools, found, work)
        return found

    @formula
    def _convex_on_surface(one, triangle, two, surface, limits, pools, found, work):
        """Visit the triangles of a surface that a convex shape comes near. triangle: see `encounter`."""
        scratch, _ = work
        met, low, high = encounter(one, triangle, two, surface, limits, pools, scratch)
        if surface.kind == MESH:
            return _on_mesh(met, low, high, pools, found, work)
        return _on_field(met, low, high, pools, found, work)

    @formula
    def _mesh_on_surface(one, two, surface, limits, pools, found, work):
        """Visit what the triangles of a mesh come near."""
        scratch, _ = work
        pose, entry = one.pose, one.convex.hull
        low, high = _surface_box_in(two, surface, pools, pose)
        h, way = limits.h, mat_t_vec(pose.matrix, sub(two.velocity, one.velocity))
        low, high = widened(low, high, (h * way[0], h * way[1], h * way[2]), limits.near + h * limits.handed_on)
        first, end = pools.meshes.start[entry], pools.meshes.start[entry + 1]
        root = pools.trees.start[entry]
        leaves = (pools.trees.start[entry + 1] - root + 1) // 2
        piece = own_triangle(one)
        node = 0
        while True:
            if not boxes_apart(pools.trees.box, root + node, low, high):
                if node < leaves - 1:
                    node = 2 * node + 1
                    continue
                start = first + TREE_LEAF * (node - leaves + 1)
                for triangle in range(start, min(end, start + TREE_LEAF)):
                    load_mesh_triangle(pools.meshes, triangle, scratch, TRIANGLE_A)
                    found = _convex_on_surface(piece, np.int64(triangle), two, surface, limits, pools, found, work)
            node = after(node)
            if node == 0:
                break
        return found

    @formula
    def walk(step, pools, found, work):
        """Visit what a shape comes near."""
        one, two, surface, limits = step
        if one.convex.kind != MESH:
            return _convex_on_surface(one, np.int64(-1), two, surface, limits, pools, found, work)
        return _mesh_on_surface(one, two, surface, limits, pools, found, work)

    return walk


@merged_formula
def room_for(found, size, rows, scratch):
    """Number of rows when they were reduced if those of another triangle may not fit."""
    return reduce_rows(rows, found, size, scratch, COVER_AT) if found + FOUND > GATHERED else found


@merged_formula
def _append(met, piece, number, pools, found, work):
    """Contacts with the triangle in hand, appended to the rows."""
    scratch, rows = work
    size = met.limits.size
    found = room_for(found, size, rows, scratch)
    yes, t, touch = triangle_touch(met, piece, pools, scratch)
    if not yes:
        return found
    new = triangle_points(met, t, touch, pools, scratch, rows, found)
    label_rows(rows, found, new, met.triangle, number)
    return append_rows(rows, found, new, size)


_append_all = walk_with(_append)


@formula
def surface_pair(i, j, shapes, bodies, pools, times, out, row, work):
    """Contacts of a convex shape or a mesh (i) with a mesh or height field (j); at most MOST.

    Two meshes: every triangle of the first near the second is a convex shape of its own. The depth is then that of
    the two triangles alone: right while it is small against them, an approximation beyond. times: (h, margin); work:
    (scratch, rows).
    """
    scratch, rows = work
    step = surface_in_step(i, j, shapes, bodies, times)
    found = _append_all(step, pools, np.int64(0), work)
    return hand_over(rows, found, step.limits.size, scratch, out, row)


@formula
def mesh_on_plane(i, j, shapes, bodies, pools, times, out, row, work):
    """Corners of a mesh that are near a plane and needed."""
    h, margin = times
    scratch, rows = work
    size, entry = shapes.smallest[i], np.int64(shapes.geometry[i])
    pa, ma = row3(shapes.position, i), row9(shapes.matrix, i)
    one = moving(i, shapes, bodies, entry, pa)
    two = moving(j, shapes, bodies, np.int64(0), pa)
    up = column(row9(shapes.matrix, j), 2)
    near = 0.05 * size if margin < 0.0 else margin
    near += spin_travel(bodies.free, shapes.body[i], h, shapes.bound[i])
    handed_on = max(bodies.handed_on[shapes.body[i]], bodies.handed_on[shapes.body[j]])
    reach = near + h * max(-dot(sub(one.velocity, two.velocity), up), handed_on)
    level = dot(sub(row3(shapes.position, j), pa), up)
    d = mat_t_vec(ma, up)
    first, end = pools.meshes.start[entry], pools.meshes.start[entry + 1]
    root = pools.trees.start[entry]
    leaves = (pools.trees.start[entry + 1] - root + 1) // 2
    n = (-up[0], -up[1], -up[2])
    found = np.int64(0)
    node = 0
    while True:
        lowest = -level
        for c in range(3):
            along = d[0] if c == 0 else (d[1] if c == 1 else d[2])
            lowest += along * pools.trees.box[root + node, c if along > 0.0 else 3 + c]
        if lowest <= reach:
            if node < leaves - 1:
                node = 2 * node + 1
                continue
            start = first + TREE_LEAF * (node - leaves + 1)
            for triangle in range(start, min(end, start + TREE_LEAF)):
                for k in range(3):
                    corner = pools.meshes.triangle[triangle, k]
                    p = mesh_corner(pools.meshes.point, corner)
                    gap = dot(d, p) - level
                    if gap <= reach:
                        if found == GATHERED:
                            found = reduce_rows(rows, found, size, scratch, COVER_AT)
                        p = axpy(-0.5 * gap, up, add(mat_vec(ma, p), pa))
                        write_row(rows, found, n, p, gap, float(corner % NAMES))
                        found = append_rows(rows, found, 1, size)
        node = after(node)
        if node == 0:
            break
    return hand_over(rows, found, size, scratch, out, row)
