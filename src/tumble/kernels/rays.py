"""Where a ray meets boxes, planes, triangles and convex shapes."""

from __future__ import annotations

import math

import numpy as np

from .convex import Convex, Pair, triangle_corner
from .jit import formula
from .kinds import SPHERE
from .linalg import cross, dot, sub
from .pairs import first_touch

HIT = 1e-7
"""A ray that comes this near (relative to its length up to there) hits."""


@formula
def ray_meets_box(box, row, origin, direction, limit):
    """Whether the ray meets the box (low, high in a row of an array) before `limit`."""
    near, far = 0.0, limit
    for k in range(3):
        o = origin[0] if k == 0 else (origin[1] if k == 1 else origin[2])
        d = direction[0] if k == 0 else (direction[1] if k == 1 else direction[2])
        low, high = box[row, k] - o, box[row, 3 + k] - o
        if d == 0.0:
            if low > 0.0 or high < 0.0:
                return False
            continue
        a, b = low / d, high / d
        near, far = max(near, min(a, b)), min(far, max(a, b))
    return near <= far


@formula
def ray_plane(origin, direction, point, up):
    """Distance along the ray to a half-space, infinite if it never gets there."""
    height = dot(sub(origin, point), up)
    if height <= 0.0:
        return 0.0
    slope = dot(direction, up)
    return -height / slope if slope < 0.0 else math.inf


@formula
def ray_triangle(origin, direction, scratch, at):
    """Distance along the ray to a triangle, from either side; infinite if it misses. Edges belong to the triangle."""
    p = triangle_corner(scratch, at, 0)
    e, f = sub(triangle_corner(scratch, at, 1), p), sub(triangle_corner(scratch, at, 2), p)
    h = cross(direction, f)
    det = dot(e, h)
    if det == 0.0:
        return math.inf
    s = sub(origin, p)
    u = dot(s, h) / det
    q = cross(s, e)
    v = dot(direction, q) / det
    slack = 1e-12
    if u < -slack or v < -slack or u + v > 1.0 + slack:
        return math.inf
    t = dot(f, q) / det
    return t if t >= 0.0 else math.inf


@formula
def ray_convex(convex, origin, direction, limit, hulls, scratch):
    """Distance along the ray (in the shape's frame) to a convex shape; 0 if it starts inside, infinite if it misses."""
    identity = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    point, s = Convex(np.int64(SPHERE), (0.0, 0.0, 0.0, 0.0), np.int64(0)), convex.s
    pair = Pair(point, convex, identity, (-origin[0], -origin[1], -origin[2]))
    velocity = (-direction[0], -direction[1], -direction[2])
    t, gap = first_touch(pair, (hulls, scratch), velocity, limit)
    return t if gap <= HIT * max(t, s[0] + s[1] + s[2] + s[3]) else math.inf
