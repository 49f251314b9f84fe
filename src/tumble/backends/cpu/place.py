"""World poses and bounding boxes of shapes."""

from __future__ import annotations

import numpy as np

from ...kernels.convex import Convex, support
from ...kernels.descent import local_box, turned_box
from ...kernels.jit import blockwise, formula
from ...kernels.kinds import CONVEX, HALF_SPACE, SPHERE, among
from ...kernels.linalg import add, cross, dot, mat_vec, norm, quat_matrix, quat_multiply, row3, row4, row9
from ...kernels.surfaces import Surface
from ..base import BODY_BLOCK


@formula
def _reach(convex, m, pools, scratch, k):
    """How far a shape turned by m reaches from its origin along the world axis k: down (negative) and up."""
    if not among(CONVEX, convex.kind):
        surface = Surface(convex.kind, convex.s, convex.hull)
        low, high = local_box(surface, pools.trees, pools.field_shape)
        middle, reach = turned_box(low, high, m)
        c, r = (middle[0], reach[0]) if k == 0 else ((middle[1], reach[1]) if k == 1 else (middle[2], reach[2]))
        return c - r, c + r
    d = (m[3 * k], m[3 * k + 1], m[3 * k + 2])  # the world axis in the shape's frame
    up = dot(d, support(convex, pools.hull_point, scratch, d)) + convex.s[3]
    d = (-d[0], -d[1], -d[2])
    return -dot(d, support(convex, pools.hull_point, scratch, d)) - convex.s[3], up


@blockwise(BODY_BLOCK, "shapes.kind.size")
def place_shapes(block, shapes, local, bodies, pools, h, margin, stir, scratch, box):
    """World pose of every shape (into `shapes`) and the bounding box (m, 6: low, high) of its way through the step.

    margin < 0: a twentieth of the shape's smallest half-extent. stir: largest travel of any body in the step [m]; a
    body at rest that is hit moves on at once, so boxes grow by half of it, up to a tenth of the shape.
    """
    m = shapes.kind.size
    for i in range(block * BODY_BLOCK, min(m, (block + 1) * BODY_BLOCK)):
        b, kind = shapes.body[i], np.int64(shapes.kind[i])
        arm = mat_vec(row9(bodies.matrix, b), row3(local.position, i))
        p = add(row3(bodies.position, b), arm)
        r = quat_matrix(quat_multiply(row4(bodies.orientation, b), row4(local.orientation, i)))
        for k in range(3):
            shapes.position[i, k] = p[k]
        for k in range(9):
            shapes.matrix[i, k] = r[k]
        if kind == HALF_SPACE:
            continue
        w = (bodies.free[b, 3], bodies.free[b, 4], bodies.free[b, 5])
        v = add((bodies.free[b, 0], bodies.free[b, 1], bodies.free[b, 2]), cross(w, arm))
        smallest = shapes.smallest[i]
        extra = (0.05 * smallest if margin < 0.0 else 0.5 * margin) + min(0.1 * smallest, 0.5 * stir)
        if kind != SPHERE:
            extra += h * norm(w) * shapes.bound[i]
        s = row4(shapes.parameters, i)
        if kind == SPHERE:
            for k in range(3):
                box[i, k] = p[k] - s[3] - extra + min(0.0, h * v[k])
                box[i, 3 + k] = p[k] + s[3] + extra + max(0.0, h * v[k])
            continue
        convex = Convex(kind, s, np.int64(shapes.geometry[i]))
        for k in range(3):
            low, high = _reach(convex, r, pools, scratch, k)
            box[i, k] = p[k] + low - extra + min(0.0, h * v[k])
            box[i, 3 + k] = p[k] + high + extra + max(0.0, h * v[k])
