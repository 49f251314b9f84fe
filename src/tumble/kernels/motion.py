"""Motion of one body: gyroscopic midpoint and the exponential map."""

from __future__ import annotations

import math

from .jit import formula
from .linalg import quat_exp, quat_multiply

NEWTON_LIMIT = 30


@formula
def gyroscopic_midpoint(inertia, spin, h):
    """New spin (body axes) after h of torque-free motion. Steps that turn by more than a radian are divided, so that
    Newton's method always converges; each part keeps the energy."""
    parts = 1 + int(min(1000.0, h * math.sqrt(spin[0] * spin[0] + spin[1] * spin[1] + spin[2] * spin[2])))
    for _ in range(parts):
        spin = _midpoint(inertia, spin, h / parts)
    return spin


@formula
def _midpoint(inertia, spin, h):
    """One step of the implicit midpoint rule, solved to rounding.

    I (w1 - w0) = h (I wm) x wm with wm = (w0 + w1)/2: conserves the kinetic energy and |I w| exactly. Unknown here is
    wm; Newton's matrix is I + h/2 (d/dw)(w x I w).
    """
    a, b, c = inertia
    p, q, r = spin
    if (a == b and b == c) or (p == 0.0 and q == 0.0) or (q == 0.0 and r == 0.0) or (p == 0.0 and r == 0.0):
        return spin  # a sphere, or a spin about a principal axis, stays
    x, y, z = p, q, r
    k = 0.5 * h
    last = math.inf
    for _ in range(NEWTON_LIMIT):
        f0 = a * (x - p) + k * (c - b) * y * z
        f1 = b * (y - q) + k * (a - c) * z * x
        f2 = c * (z - r) + k * (b - a) * x * y
        m01, m02 = k * (c - b) * z, k * (c - b) * y
        m10, m12 = k * (a - c) * z, k * (a - c) * x
        m20, m21 = k * (b - a) * y, k * (b - a) * x
        c00, c01, c02 = b * c - m12 * m21, m12 * m20 - m10 * c, m10 * m21 - b * m20
        det = a * c00 + m01 * c01 + m02 * c02
        d0 = (c00 * f0 + (m02 * m21 - m01 * c) * f1 + (m01 * m12 - m02 * b) * f2) / det
        d1 = (c01 * f0 + (a * c - m02 * m20) * f1 + (m02 * m10 - a * m12) * f2) / det
        d2 = (c02 * f0 + (m01 * m20 - a * m21) * f1 + (a * b - m01 * m10) * f2) / det
        x, y, z = x - d0, y - d1, z - d2
        change = abs(d0) + abs(d1) + abs(d2)
        if change == 0.0 or change >= last:
            break
        last = change
    return (2.0 * x - p, 2.0 * y - q, 2.0 * z - r)


@formula
def turn(orientation, spin, h):
    """Orientation after turning with a constant spin (body axes) for h, normalised."""
    q = quat_multiply(orientation, quat_exp((h * spin[0], h * spin[1], h * spin[2])))
    s = 1.0 / math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return (s * q[0], s * q[1], s * q[2], s * q[3])
