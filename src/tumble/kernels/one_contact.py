"""One contact at a time, as Gauss-Seidel's sweeps take them: its velocity, and what a change of its impulse does.

The products of `operators` take all contacts at once.
"""

from __future__ import annotations

from .jit import merged_formula


@merged_formula
def contact_velocity(op, c, bias, soft, x):
    """Velocity (N x + bias) of contact c from the body velocities, with its compliance where the contacts are soft."""
    g, arms, v = op.frame, op.arms, op.body_velocity
    i, j = op.body_a[c], op.body_b[c]
    ax, ay, az = arms[0, c], arms[1, c], arms[2, c]
    bx, by, bz = arms[3, c], arms[4, c], arms[5, c]
    vx = v[j, 0] - v[i, 0] + (v[j, 4] * bz - v[j, 5] * by) - (v[i, 4] * az - v[i, 5] * ay)
    vy = v[j, 1] - v[i, 1] + (v[j, 5] * bx - v[j, 3] * bz) - (v[i, 5] * ax - v[i, 3] * az)
    vz = v[j, 2] - v[i, 2] + (v[j, 3] * by - v[j, 4] * bx) - (v[i, 3] * ay - v[i, 4] * ax)
    u0 = g[0, c] * vx + g[1, c] * vy + g[2, c] * vz + bias[0, c]
    u1 = g[3, c] * vx + g[4, c] * vy + g[5, c] * vz + bias[1, c]
    u2 = g[6, c] * vx + g[7, c] * vy + g[8, c] * vz + bias[2, c]
    if soft:
        u0 += op.compliance[0, c] * x[0, c]
        u1 += op.compliance[1, c] * x[1, c]
        u2 += op.compliance[1, c] * x[2, c]
    return u0, u1, u2


@merged_formula
def push_bodies(op, c, d0, d1, d2):
    """Add what a change (d0, d1, d2) of the impulse of contact c does to the body velocities."""
    g, arms, v, im, ii = op.frame, op.arms, op.body_velocity, op.inverse_mass, op.inverse_inertia
    i, j = op.body_a[c], op.body_b[c]
    ax, ay, az = arms[0, c], arms[1, c], arms[2, c]
    bx, by, bz = arms[3, c], arms[4, c], arms[5, c]
    fx = g[0, c] * d0 + g[3, c] * d1 + g[6, c] * d2
    fy = g[1, c] * d0 + g[4, c] * d1 + g[7, c] * d2
    fz = g[2, c] * d0 + g[5, c] * d1 + g[8, c] * d2
    for side in range(2):
        b = j if side else i
        s = 1.0 if side else -1.0
        rx, ry, rz = (bx, by, bz) if side else (ax, ay, az)
        tx, ty, tz = s * (ry * fz - rz * fy), s * (rz * fx - rx * fz), s * (rx * fy - ry * fx)
        v[b, 0] += s * im[b, 0] * fx
        v[b, 1] += s * im[b, 1] * fy
        v[b, 2] += s * im[b, 2] * fz
        v[b, 3] += ii[b, 0] * tx + ii[b, 3] * ty + ii[b, 4] * tz
        v[b, 4] += ii[b, 3] * tx + ii[b, 1] * ty + ii[b, 5] * tz
        v[b, 5] += ii[b, 4] * tx + ii[b, 5] * ty + ii[b, 2] * tz


@merged_formula
def matrix_velocity(op, c, bias, x):
    """Velocity (W x + bias) of contact c; components that do not exist keep their bias."""
    u0, u1, u2 = bias[0, c], bias[1, c], bias[2, c]
    for k in range(op.dim):
        s = 0.0
        for e in range(op.start[op.dim * c + k], op.start[op.dim * c + k + 1]):
            s += op.value[e] * x[op.component[e], op.contact[e]]
        if k == 0:
            u0 += s
        elif k == 1:
            u1 += s
        else:
            u2 += s
    return u0, u1, u2
