"""Two overlapping boxes by separating axes, in the frame of the first."""

from __future__ import annotations

import math

from .jit import formula
from .linalg import axpy, column, cross, dot, norm, sub

PREFERENCE = 1e-12
"""An edge must separate better than the best face by this part of the size."""
PARALLEL = 1e-10
AS_WELL = 1e-5
"""Faces separate as well as each other within this part of the smaller box's thickness."""
DIFFERENT = 0.999
"""Cosine below which the normals of two faces differ."""


@formula
def box_depth(sa, sb, turn, shift):
    """Largest separation over the 15 axes (negative: the depth), its normal from A to B, and a point of A there."""
    size = sa[0] + sa[1] + sa[2] + sb[0] + sb[1] + sb[2]
    best = -math.inf
    best_n = (0.0, 0.0, 1.0)
    edge_a, edge_b = -1, -1
    for i in range(6):
        if i < 3:
            axis = (1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0)
        else:
            axis = column(turn, i - 3)
        along = dot(shift, axis)
        gap = abs(along) - _reach(sa, sb, turn, axis)
        if gap > best + (PREFERENCE * size if i == 3 else 0.0):
            best = gap
            sign = 1.0 if along >= 0.0 else -1.0
            best_n = (sign * axis[0], sign * axis[1], sign * axis[2])
    for i in range(3):
        unit = (1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0)
        for j in range(3):
            axis = cross(unit, column(turn, j))
            length = norm(axis)
            if length * length < PARALLEL:
                continue
            axis = (axis[0] / length, axis[1] / length, axis[2] / length)
            along = dot(shift, axis)
            gap = abs(along) - _reach(sa, sb, turn, axis)
            if gap > best + PREFERENCE * size:
                best = gap
                sign = 1.0 if along >= 0.0 else -1.0
                best_n = (sign * axis[0], sign * axis[1], sign * axis[2])
                edge_a, edge_b = i, j
    if edge_a >= 0:
        return best, best_n, _edge_point(sa, sb, turn, shift, edge_a, edge_b, best_n)
    a = (
        sa[0] if best_n[0] >= 0.0 else -sa[0],
        sa[1] if best_n[1] >= 0.0 else -sa[1],
        sa[2] if best_n[2] >= 0.0 else -sa[2],
    )
    return best, best_n, a


@formula
def between_faces(sa, sb, turn, shift, gap, n):
    """Gap and normal n; or, where edge lies exactly on edge and one face of either box separates as well as n does,
    those of the mean of these two faces' normals.

    There every normal between the two is right. The mean does not depend on which box is the first, so a symmetric
    pair stays symmetric. It separates as well while the boxes touch; where they overlap it may not, and is left.
    """
    slack = AS_WELL * min(min(sa[0], min(sa[1], sa[2])), min(sb[0], min(sb[1], sb[2])))
    faces_a, faces_b = 0, 0
    of_a, of_b = n, n
    for i in range(6):
        if i < 3:
            axis = (1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0)
        else:
            axis = column(turn, i - 3)
        along = dot(shift, axis)
        if abs(along) - _reach(sa, sb, turn, axis) >= gap - slack:
            sign = 1.0 if along >= 0.0 else -1.0
            m = (sign * axis[0], sign * axis[1], sign * axis[2])
            if i < 3:
                faces_a, of_a = faces_a + 1, m
            else:
                faces_b, of_b = faces_b + 1, m
    if faces_a != 1 or faces_b != 1 or not 0.0 < dot(of_a, of_b) < DIFFERENT:
        return gap, n
    m = (of_a[0] + of_b[0], of_a[1] + of_b[1], of_a[2] + of_b[2])
    length = norm(m)
    m = (m[0] / length, m[1] / length, m[2] / length)
    between = dot(shift, m) - _reach(sa, sb, turn, m)
    if between < gap - slack:
        return gap, n
    return between, m


@formula
def _reach(sa, sb, turn, axis):
    """Half the extent of both boxes along an axis."""
    reach = sa[0] * abs(axis[0]) + sa[1] * abs(axis[1]) + sa[2] * abs(axis[2])
    for k in range(3):
        reach += sb[k] * abs(dot(column(turn, k), axis))
    return reach


@formula
def _edge_point(sa, sb, turn, shift, i, j, n):
    """The point of A's edge (along axis i) that is nearest to B's edge (along B's axis j)."""
    p = (
        0.0 if i == 0 else (sa[0] if n[0] >= 0.0 else -sa[0]),
        0.0 if i == 1 else (sa[1] if n[1] >= 0.0 else -sa[1]),
        0.0 if i == 2 else (sa[2] if n[2] >= 0.0 else -sa[2]),
    )
    q = shift
    for k in range(3):
        if k != j:
            b = column(turn, k)
            q = axpy(-sb[k] if dot(b, n) >= 0.0 else sb[k], b, q)
    v = column(turn, j)
    unit = (1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0)
    w = sub(q, p)
    c = dot(unit, v)
    s = (dot(unit, w) - c * dot(v, w)) / (1.0 - c * c)
    length = sa[0] if i == 0 else (sa[1] if i == 1 else sa[2])
    return axpy(min(max(s, -length), length), unit, p)
