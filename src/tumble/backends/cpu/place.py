"""World poses and bounding boxes of shapes."""

from __future__ import annotations

import numpy as np

from ...kernels.convex import support
from ...kernels.jit import blockwise, formula
from ...kernels.kinds import HALF_SPACE, MESH, SPHERE
from ...kernels.linalg import add, cross, dot, mat_vec, norm, quat_matrix, quat_multiply, row3, row4, row9
from ..base import BODY_BLOCK


@formula
def local_box(kind, s, entry, geometry):
    """Low and high corner of a mesh or height field in its own frame."""
    if kind == MESH:
        node = geometry.tree_start[entry]
        b = geometry.tree_box
        return (b[node, 0], b[node, 1], b[node, 2]), (b[node, 3], b[node, 4], b[node, 5])
    x = 0.5 * s[0] * (geometry.field_shape[entry, 0] - 1)
    y = 0.5 * s[1] * (geometry.field_shape[entry, 1] - 1)
    return (-x, -y, s[2]), (x, y, s[3])


@formula
def turned_box(low, high, m):
    """The box (low, high) after turning by m: its middle and its half-extents."""
    half = (0.5 * (high[0] - low[0]), 0.5 * (high[1] - low[1]), 0.5 * (high[2] - low[2]))
    middle = mat_vec(m, (0.5 * (high[0] + low[0]), 0.5 * (high[1] + low[1]), 0.5 * (high[2] + low[2])))
    reach = (
        abs(m[0]) * half[0] + abs(m[1]) * half[1] + abs(m[2]) * half[2],
        abs(m[3]) * half[0] + abs(m[4]) * half[1] + abs(m[5]) * half[2],
        abs(m[6]) * half[0] + abs(m[7]) * half[1] + abs(m[8]) * half[2],
    )
    return middle, reach


@formula
def _reach(kind, s, entry, m, geometry, scratch, k):
    """How far a shape turned by m reaches from its origin along the world axis k: down (negative) and up."""
    if kind >= MESH:
        low, high = local_box(kind, s, entry, geometry)
        middle, reach = turned_box(low, high, m)
        c, r = (middle[0], reach[0]) if k == 0 else ((middle[1], reach[1]) if k == 1 else (middle[2], reach[2]))
        return c - r, c + r
    d = (m[3 * k], m[3 * k + 1], m[3 * k + 2])  # the world axis in the shape's frame
    up = dot(d, support(kind, s, geometry.hull_point, scratch, d)) + s[3]
    d = (-d[0], -d[1], -d[2])
    return -dot(d, support(kind, s, geometry.hull_point, scratch, d)) - s[3], up


@blockwise(BODY_BLOCK, "shapes.kind.size")
def place_shapes(
    block,
    shapes,
    geometry,
    local_position,
    local_orientation,
    position,
    orientation,
    matrix,
    free,
    h,
    margin,
    stir,
    scratch,
    box,
):
    """World pose of every shape (into `shapes`) and the bounding box (m, 6: low, high) of its way through the step.

    margin < 0: a twentieth of the shape's smallest half-extent. stir: largest travel of any body in the step [m]; a
    body at rest that is hit moves on at once, so boxes grow by half of it, up to a tenth of the shape.
    """
    m = shapes.kind.size
    world_position, world_matrix = shapes.position, shapes.matrix  # out of the tuple: see find_ball_contacts
    shape_kind, shape_body, parameters, entry = shapes.kind, shapes.body, shapes.parameters, shapes.geometry
    smallest_half, bound = shapes.smallest, shapes.bound
    for i in range(block * BODY_BLOCK, min(m, (block + 1) * BODY_BLOCK)):
        b, kind = shape_body[i], np.int64(shape_kind[i])
        arm = mat_vec(row9(matrix, b), row3(local_position, i))
        p = add(row3(position, b), arm)
        r = quat_matrix(quat_multiply(row4(orientation, b), row4(local_orientation, i)))
        for k in range(3):
            world_position[i, k] = p[k]
        for k in range(9):
            world_matrix[i, k] = r[k]
        if kind == HALF_SPACE:
            continue
        w = (free[b, 3], free[b, 4], free[b, 5])
        v = add((free[b, 0], free[b, 1], free[b, 2]), cross(w, arm))
        smallest = smallest_half[i]
        extra = (0.05 * smallest if margin < 0.0 else 0.5 * margin) + min(0.1 * smallest, 0.5 * stir)
        if kind != SPHERE:
            extra += h * norm(w) * bound[i]
        s = row4(parameters, i)
        if kind == SPHERE:
            for k in range(3):
                box[i, k] = p[k] - s[3] - extra + min(0.0, h * v[k])
                box[i, 3 + k] = p[k] + s[3] + extra + max(0.0, h * v[k])
            continue
        for k in range(3):
            low, high = _reach(kind, s, np.int64(entry[i]), r, geometry, scratch, k)
            box[i, k] = p[k] + low - extra + min(0.0, h * v[k])
            box[i, 3 + k] = p[k] + high + extra + max(0.0, h * v[k])
