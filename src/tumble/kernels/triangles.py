"""Two triangles of solids that touch or cross, by separating axes, in the frame of the first.

As mere sheets they have no inside: where they touch, any direction that parts them is as good as another, and where
they cross the shortest way out may lead through the solid. But each is a piece of a surface with an outside, so a
normal counts only if it leads out of the first triangle's front and into the second one's.
"""

from __future__ import annotations

import math

import numpy as np

from .convex import Convex, Pair, separation, triangle_corner, triangle_normal
from .jit import formula
from .kinds import TRIANGLE
from .linalg import cross, dot, mat_vec, norm, sub

PREFERENCE = 1e-7
"""A later axis must separate better than the best before by this part of the scale: faces first, then edges."""
FRONT = 1e-6
"""How far, as a cosine, a normal may lean to a triangle's back."""
PARALLEL = 1e-4


@formula
def _front(at, side, scratch):
    n = triangle_normal(scratch, at)
    return (n[0], n[1], n[2]) if side >= 0.0 else (-n[0], -n[1], -n[2])


@formula
def _edge(scratch, at, k):
    return sub(triangle_corner(scratch, at, (k + 1) % 3), triangle_corner(scratch, at, k))


@formula
def _try(axis, fronts, best, best_n, pair, points, scratch, slack):
    """Take the axis, either way round, if it leads from front to front and separates better."""
    front_a, front_b = fronts
    kind, none = np.int64(TRIANGLE), np.int64(0)  # written out, so that the compiler knows the kinds
    pair = Pair(Convex(kind, pair.a.s, none), Convex(kind, pair.b.s, none), pair.turn, pair.shift)
    length = norm(axis)
    for k in range(2):
        s = (1.0 if k == 0 else -1.0) / length
        n = (s * axis[0], s * axis[1], s * axis[2])
        if dot(n, front_a) >= -FRONT and dot(n, front_b) <= FRONT:
            gap, _, _ = separation(pair, points, scratch, n)
            if gap > best + slack:
                best, best_n = gap, n
    return best, best_n


@formula
def triangle_axis(pair, points, scratch, scale):
    """Largest separation (negative: the depth) and its normal from A to B; -inf if the fronts do not see each other.

    The numbers of each: its place in scratch, and which side is the front (-1: the back).
    """
    sa, sb, turn = pair.a.s, pair.b.s, pair.turn
    at, bt = int(sa[0]), int(sb[0])
    front_a, front_b = _front(at, sa[1], scratch), mat_vec(turn, _front(bt, sb[1], scratch))
    fronts = front_a, front_b
    slack = PREFERENCE * scale
    best, n = -math.inf, front_a
    best, n = _try(front_b, fronts, best, n, pair, points, scratch, slack)
    best, n = _try(front_a, fronts, best, n, pair, points, scratch, slack)
    for k in range(3):
        a, b = _edge(scratch, at, k), mat_vec(turn, _edge(scratch, bt, k))
        best, n = _try(cross(a, front_a), fronts, best, n, pair, points, scratch, slack)
        best, n = _try(cross(b, front_b), fronts, best, n, pair, points, scratch, slack)
    for k in range(9):
        a, b = _edge(scratch, at, k // 3), mat_vec(turn, _edge(scratch, bt, k % 3))
        axis = cross(a, b)
        if norm(axis) > PARALLEL * norm(a) * norm(b):
            best, n = _try(axis, fronts, best, n, pair, points, scratch, slack)
    return best, n
