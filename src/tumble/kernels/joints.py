"""Coordinates of two frames on two bodies, with their Jacobians: what joints, motors and springs are made of.

Frame A belongs to body a, frame B to body b; ma, mb are their axes (columns x, y, z) in the world, p and q their
origins, xa and xb the centres of mass. A Jacobian is 12 numbers: linear and angular part of a, then of b (world axes).
"""

from __future__ import annotations

import math

from .jit import formula
from .linalg import column, cross, dot, sub

POINT, DOT, DISTANCE, ANGLE = 0, 1, 2, 3
"""Kinds: place of q along axis i of A; cosine of axis i of A and axis j of B; distance; angle about z of A."""


@formula
def coordinate(kind, i, j, p, ma, xa, q, mb, xb):
    """(value, second value, Jacobian). An angle comes as the sine and cosine of it, otherwise the second is 0."""
    d = sub(q, p)
    if kind == POINT:
        e = column(ma, i)
        return dot(e, d), 0.0, _straight(e, sub(q, xa), sub(q, xb))
    if kind == DISTANCE:
        length = math.sqrt(dot(d, d))
        e = (d[0] / length, d[1] / length, d[2] / length) if length > 0.0 else (0.0, 0.0, 1.0)
        return length, 0.0, _straight(e, sub(p, xa), sub(q, xb))
    if kind == DOT:
        a, b = column(ma, i), column(mb, j)
        c = cross(a, b)
        return dot(a, b), 0.0, (0.0, 0.0, 0.0, c[0], c[1], c[2], 0.0, 0.0, 0.0, -c[0], -c[1], -c[2])
    z, x = column(ma, 2), column(mb, 0)
    return (
        dot(column(ma, 1), x),
        dot(column(ma, 0), x),
        (0.0, 0.0, 0.0, -z[0], -z[1], -z[2], 0.0, 0.0, 0.0, z[0], z[1], z[2]),
    )


@formula
def _straight(e, ra, rb):
    """Velocity along e of a point of b (arm rb) against one of a (arm ra)."""
    ta, tb = cross(ra, e), cross(rb, e)
    return (-e[0], -e[1], -e[2], -ta[0], -ta[1], -ta[2], e[0], e[1], e[2], tb[0], tb[1], tb[2])


@formula
def arctangent(sine, cosine):
    """Angle of the point (cosine, sine) in (-pi, pi].

    By halving it twice and its series, and not by the library, whose last bit may differ between freshly compiled and
    cached kernels.
    """
    x, y = abs(cosine), abs(sine)
    if x == 0.0 and y == 0.0:
        return 0.0
    t = y / x if y <= x else x / y
    for _ in range(2):
        t = t / (1.0 + math.sqrt(1.0 + t * t))
    q = t * t
    total = 0.0
    for k in range(12, -1, -1):
        total = 1.0 / (2.0 * k + 1.0) - q * total
    angle = 4.0 * t * total
    if y > x:
        angle = 0.5 * math.pi - angle
    if cosine < 0.0:
        angle = math.pi - angle
    return -angle if sine < 0.0 else angle
