"""Motion of one body: the inertia in world axes, and the drift, a torque-free rotation.

A step kicks the angular momentum at a fixed orientation and then drifts (`docs/adr/0006-kick-then-drift.md`). The drift
keeps the angular momentum in world axes and the energy to rounding, whatever the inertia and the step, and it is
symplectic: what joints and contacts kick between two drifts neither heats nor brakes a spinning body in the long run.
"""

from __future__ import annotations

import math

from .jit import formula, merged_formula
from .kinds import DYNAMIC, KINEMATIC
from .linalg import (
    add,
    cross,
    mat_t_vec,
    mat_vec,
    mul,
    norm,
    quat_exp,
    quat_matrix,
    quat_multiply,
    row3,
    row4,
    row9,
    sub,
    symmetric_vec,
)

NEWTON_LIMIT = 30
PART = 0.1
"""A general rotation is divided into parts of at most this angle [rad]: Newton's method has no solution from about a
radian on."""
MOST_PARTS = 1000
"""Beyond so many the body turns by more than 100 rad in a step, and its nutation cannot be resolved."""


@formula
def world_inverse_inertia(m, inertia, lx, ly, lz):
    """Inverse inertia (xx, yy, zz, xy, xz, yz) in world axes; locked rotations give zero rows.

    With locks it is the inverse of the inertia restricted to the free axes, not a part of the whole inverse.
    """
    a, b, c = inertia
    if not (lx or ly or lz):
        a, b, c = 1.0 / a, 1.0 / b, 1.0 / c
    xx = a * m[0] * m[0] + b * m[1] * m[1] + c * m[2] * m[2]
    yy = a * m[3] * m[3] + b * m[4] * m[4] + c * m[5] * m[5]
    zz = a * m[6] * m[6] + b * m[7] * m[7] + c * m[8] * m[8]
    xy = a * m[0] * m[3] + b * m[1] * m[4] + c * m[2] * m[5]
    xz = a * m[0] * m[6] + b * m[1] * m[7] + c * m[2] * m[8]
    yz = a * m[3] * m[6] + b * m[4] * m[7] + c * m[5] * m[8]
    if not (lx or ly or lz):
        return (xx, yy, zz, xy, xz, yz)
    if lx and ly and lz:
        return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if ly and lz:
        return (1.0 / xx, 0.0, 0.0, 0.0, 0.0, 0.0)
    if lx and lz:
        return (0.0, 1.0 / yy, 0.0, 0.0, 0.0, 0.0)
    if lx and ly:
        return (0.0, 0.0, 1.0 / zz, 0.0, 0.0, 0.0)
    if lx:
        det = yy * zz - yz * yz
        return (0.0, zz / det, yy / det, 0.0, 0.0, -yz / det)
    if ly:
        det = xx * zz - xz * xz
        return (zz / det, 0.0, xx / det, 0.0, -xz / det, 0.0)
    det = xx * yy - xy * xy
    return (yy / det, xx / det, 0.0, -xy / det, 0.0, 0.0)


@formula
def sum_of_velocities(i, x, y, out):
    """out = x + y of body i, (n, 6) each."""
    for k in range(6):
        out[i, k] = x[i, k] + y[i, k]


@formula
def difference_of_velocities(i, x, y, out):
    """out = x - y of body i, (n, 6) each."""
    for k in range(6):
        out[i, k] = x[i, k] - y[i, k]


@formula
def _normalised(q):
    s = 1.0 / math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return (s * q[0], s * q[1], s * q[2], s * q[3])


@formula
def turn(orientation, spin, h):
    """Orientation after turning with a constant spin (body axes) for h, normalised."""
    return _normalised(quat_multiply(orientation, quat_exp((h * spin[0], h * spin[1], h * spin[2]))))


@formula
def pushed(i, kind, push, h, position, orientation):
    """Move body i by a velocity (n, 6) for h, if it is dynamic; its own velocity stays."""
    if kind[i] == DYNAMIC:
        for k in range(3):
            position[i, k] += h * push[i, k]
        q = quat_exp((h * push[i, 3], h * push[i, 4], h * push[i, 5]))
        q = _normalised(quat_multiply(q, row4(orientation, i)))
        for k in range(4):
            orientation[i, k] = q[k]


@formula
def mean_velocity(i, some, kind, old, new, out):
    """The mean of two velocities (n, 6) of body some[i], if it is dynamic."""
    b = some[i]
    for k in range(6):
        out[b, k] = 0.5 * (old[b, k] + new[b, k]) if kind[b] == DYNAMIC else 0.0


@formula
def user_frame(i, position, orientation, spin, axes, center, frame):
    """The frame of body i as its user gave it, and its angular velocity in world axes: `frame` (three arrays)."""
    q, a = row4(orientation, i), row4(axes, i)
    given = quat_multiply(q, (a[0], -a[1], -a[2], -a[3]))
    x = sub(row3(position, i), mat_vec(quat_matrix(given), row3(center, i)))
    w = mat_vec(quat_matrix(q), row3(spin, i))
    for k in range(3):
        frame[0][i, k], frame[2][i, k] = x[k], w[k]
    for k in range(4):
        frame[1][i, k] = given[k]


@formula
def lifted(i, mass, gravity, before, after, energy):
    """Change of the potential energy of body i between two positions [J]."""
    total = 0.0
    for k in range(3):
        total -= mass[i] * gravity[k] * (after[i, k] - before[i, k])
    energy[i] = total


@formula
def drift(orientation, inertia, spin, lx, ly, lz, h):
    """Orientation and spin (body axes) after h without torque; lx, ly, lz: locked rotations about the world axes."""
    a, b, c = inertia
    p, q, r = spin
    locks = (1 if lx else 0) + (1 if ly else 0) + (1 if lz else 0)
    if locks == 1:
        return _one_axis_locked(orientation, inertia, spin, lx, ly, lz, h)
    principal = (p == 0.0 and q == 0.0) or (q == 0.0 and r == 0.0) or (p == 0.0 and r == 0.0)
    if locks > 1 or principal or (a == b and b == c):
        return turn(orientation, spin, h), spin  # about an axis that stays
    if b == c:
        d, spin = _symmetric(p, q, r, a, b, h)
        d = quat_multiply(quat_exp((h * a / b * p, h * q, h * r)), (d[0], d[1], 0.0, 0.0))
    elif a == c:
        d, new = _symmetric(q, r, p, b, c, h)
        spin = (new[2], new[0], new[1])
        d = quat_multiply(quat_exp((h * p, h * b / c * q, h * r)), (d[0], 0.0, d[1], 0.0))
    elif a == b:
        d, new = _symmetric(r, p, q, c, a, h)
        spin = (new[1], new[2], new[0])
        d = quat_multiply(quat_exp((h * p, h * q, h * c / a * r)), (d[0], 0.0, 0.0, d[1]))
    else:
        d, spin = _moser_veselov(inertia, spin, h)
    return _normalised(quat_multiply(orientation, d)), spin


@formula
def _symmetric(axial, u, v, axial_inertia, inertia, h):
    """Two equal moments, exactly: the body turns about its angular momentum and, against that, about its axis.

    Cosine and sine of half the second angle, and the spin (axial, u, v) after it.
    """
    angle = h * (1.0 - axial_inertia / inertia) * axial
    half = quat_exp((angle, 0.0, 0.0))
    c, s = half[0], half[1]
    # The same angle comes step after step, so c^2 + s^2 must not err to one side: the smaller gives the larger.
    if abs(c) >= abs(s):
        c = math.copysign(math.sqrt(1.0 - s * s), c)
    else:
        s = math.copysign(math.sqrt(1.0 - c * c), s)
    du, dv = 2.0 * s * (c * v - s * u), -2.0 * s * (c * u + s * v)
    return (c, s), (axial, u + du, v + dv)


@formula
def _moser_veselov(inertia, spin, h):
    """Three different moments: the discrete Moser-Veselov map with modified moments (Hairer and Vilmart), order 4.

    The rotation of a part, a unit quaternion (e0, e), obeys e0 J e + e x J e = k y / 2 with the angular momentum y. J
    are the modified moments 1/J = (1 + k^2 s)/I + k^2 d, whose s and d depend on the two invariants alone; the map
    keeps the energy of J, hence that of I.
    """
    a, b, c = inertia
    y = mul(inertia, spin)
    energy = 0.5 * (y[0] * spin[0] + y[1] * spin[1] + y[2] * spin[2])
    parts = h * math.sqrt(2.0 * energy / min(a, min(b, c))) / PART
    if not parts < MOST_PARTS:  # about the angular momentum: keeps both invariants
        rate = 2.0 * energy / (y[0] * y[0] + y[1] * y[1] + y[2] * y[2])
        return quat_exp((h * rate * y[0], h * rate * y[1], h * rate * y[2])), spin
    count = 1 + int(parts)
    k = h / count
    product = a * b * c
    square = 0.5 * (y[0] * y[0] + y[1] * y[1] + y[2] * y[2])
    t = (a + b + c) / (6.0 * product)
    s = k * k * (t * square - (1.0 / a + 1.0 / b + 1.0 / c) * energy / 3.0)
    d = k * k * (t * energy - square / (3.0 * product))
    modified = (1.0 / ((1.0 + s) / a + d), 1.0 / ((1.0 + s) / b + d), 1.0 / ((1.0 + s) / c + d))
    whole = (1.0, 0.0, 0.0, 0.0)
    for _ in range(count):
        e0, e = _part(modified, (0.5 * k * y[0], 0.5 * k * y[1], 0.5 * k * y[2]))
        once = cross(e, y)
        twice = cross(e, once)
        y = (
            y[0] + 2.0 * (twice[0] - e0 * once[0]),
            y[1] + 2.0 * (twice[1] - e0 * once[1]),
            y[2] + 2.0 * (twice[2] - e0 * once[2]),
        )
        whole = quat_multiply(whole, (e0, e[0], e[1], e[2]))
    return whole, (y[0] / a, y[1] / b, y[2] / c)


@formula
def _part(j, half):
    """The quaternion (e0, e) with e0 J e + e x J e = half, by Newton's method to rounding."""
    a, b, c = j
    x, y, z = half[0] / a, half[1] / b, half[2] / c
    last = math.inf
    e0 = 1.0
    for _ in range(NEWTON_LIMIT):
        e0 = math.sqrt(1.0 - (x * x + y * y + z * z))
        f0 = e0 * a * x + (c - b) * y * z - half[0]
        f1 = e0 * b * y + (a - c) * z * x - half[1]
        f2 = e0 * c * z + (b - a) * x * y - half[2]
        u, v, w = x / e0, y / e0, z / e0
        m00, m01, m02 = a * (e0 - x * u), (c - b) * z - a * x * v, (c - b) * y - a * x * w
        m10, m11, m12 = (a - c) * z - b * y * u, b * (e0 - y * v), (a - c) * x - b * y * w
        m20, m21, m22 = (b - a) * y - c * z * u, (b - a) * x - c * z * v, c * (e0 - z * w)
        c00, c01, c02 = m11 * m22 - m12 * m21, m12 * m20 - m10 * m22, m10 * m21 - m11 * m20
        det = m00 * c00 + m01 * c01 + m02 * c02
        d0 = (c00 * f0 + (m02 * m21 - m01 * m22) * f1 + (m01 * m12 - m02 * m11) * f2) / det
        d1 = (c01 * f0 + (m00 * m22 - m02 * m20) * f1 + (m02 * m10 - m00 * m12) * f2) / det
        d2 = (c02 * f0 + (m01 * m20 - m00 * m21) * f1 + (m00 * m11 - m01 * m10) * f2) / det
        x, y, z = x - d0, y - d1, z - d2
        change = abs(d0) + abs(d1) + abs(d2)
        if change == 0.0 or change >= last:
            break
        last = change
    return math.sqrt(1.0 - (x * x + y * y + z * z)), (x, y, z)


@formula
def _one_axis_locked(orientation, inertia, spin, lx, ly, lz, h):
    """One world axis locked: the implicit midpoint rule that keeps the angular momentum about the two others."""
    m = quat_matrix(orientation)
    w = mat_vec(m, spin)
    w = (0.0 if lx else w[0], 0.0 if ly else w[1], 0.0 if lz else w[2])
    y = mul(inertia, mat_t_vec(m, w))
    momentum = mat_vec(m, y)
    energy = 0.5 * (w[0] * momentum[0] + w[1] * momentum[1] + w[2] * momentum[2])
    parts = h * math.sqrt(2.0 * energy / min(inertia[0], min(inertia[1], inertia[2]))) / PART
    count = 1 + int(parts) if parts < MOST_PARTS else MOST_PARTS
    k = h / count
    for _ in range(count):
        last = math.inf
        for _ in range(NEWTON_LIMIT):
            middle = quat_matrix(quat_multiply(quat_exp((0.5 * k * w[0], 0.5 * k * w[1], 0.5 * k * w[2])), orientation))
            new = symmetric_vec(world_inverse_inertia(middle, inertia, lx, ly, lz), momentum)
            change = abs(new[0] - w[0]) + abs(new[1] - w[1]) + abs(new[2] - w[2])
            w = new
            if change == 0.0 or change >= last:
                break
            last = change
        orientation = _normalised(quat_multiply(quat_exp((k * w[0], k * w[1], k * w[2])), orientation))
    m = quat_matrix(orientation)
    w = symmetric_vec(world_inverse_inertia(m, inertia, lx, ly, lz), momentum)
    return orientation, mat_t_vec(m, w)


# ---------------------------------------------------------------------- one body in a step


@formula
def after_kick(m, spin, before, after, lx, ly, lz):
    """Spin (body axes of m) when the angular velocity (world axes) has changed from before to after.

    Only the difference is turned into body axes: turning the whole to and fro would lose angular momentum by rounding.
    """
    if lx or ly or lz:
        return mat_t_vec(m, after)
    return add(spin, mat_t_vec(m, sub(after, before)))


@merged_formula
def kicked_by_forces(i, masses, loads, prescribed, orientation, velocity, spin, h, out):
    """See `backends.cpu.predict`: body i."""
    kind, inverse_mass, inertia, locked = masses
    gravity, force, torque = loads
    matrix, inverse_inertia, before, free = out
    m = quat_matrix(row4(orientation, i))
    for k in range(9):
        matrix[i, k] = m[k]
    if kind[i] != DYNAMIC:
        for k in range(6):
            inverse_inertia[i, k] = 0.0
            v = prescribed[i, k] if kind[i] == KINEMATIC else 0.0
            before[i, k] = v
            free[i, k] = v
        return
    inv = world_inverse_inertia(m, row3(inertia, i), locked[i, 3], locked[i, 4], locked[i, 5])
    w = mat_vec(m, row3(spin, i))
    t = row3(torque, i)
    dw = (
        inv[0] * t[0] + inv[3] * t[1] + inv[4] * t[2],
        inv[3] * t[0] + inv[1] * t[1] + inv[5] * t[2],
        inv[4] * t[0] + inv[5] * t[1] + inv[2] * t[2],
    )
    for k in range(6):
        inverse_inertia[i, k] = inv[k]
    for k in range(3):
        im = inverse_mass[i, k]
        before[i, k] = velocity[i, k] if im > 0.0 else 0.0
        free[i, k] = before[i, k] + (h * (gravity[k] + im * force[i, k]) if im > 0.0 else 0.0)
        before[i, 3 + k] = 0.0 if locked[i, 3 + k] else w[k]
        free[i, 3 + k] = before[i, 3 + k] + h * dw[k]


@merged_formula
def drifted(i, kind, inertia, locked, prescribed, h, start):
    """Position, orientation and spin of body i after h with the velocities at the start."""
    position, orientation, velocity, spin = start
    q, s = row4(orientation, i), row3(spin, i)
    v = row3(velocity, i)
    if kind[i] == DYNAMIC:
        q, s = drift(q, row3(inertia, i), s, locked[i, 3], locked[i, 4], locked[i, 5], h)
    elif kind[i] == KINEMATIC:
        v = row3(prescribed, i)
        w = (prescribed[i, 3], prescribed[i, 4], prescribed[i, 5])
        q = turn(q, mat_t_vec(quat_matrix(q), w), h)
    else:
        v = (0.0, 0.0, 0.0)
    x = row3(position, i)
    return (x[0] + h * v[0], x[1] + h * v[1], x[2] + h * v[2]), q, s


@merged_formula
def moved(i, weights, kick, loads, free, change, h, rest, motion, sums):
    """Velocity and pose of body i after the kick and the drift, into `motion`; returns the sums of `advance` with what
    it adds to them."""
    kind, size, mass, inverse_mass = weights
    inertia, locked, kick_position, kick_orientation, matrix, kick_spin, before = kick
    gravity, force, torque = loads
    position, orientation, velocity, spin = motion
    dynamic = kind[i] == DYNAMIC
    if kind[i] != DYNAMIC and kind[i] != KINEMATIC:
        return sums
    t0, t1, p0, p1, work, top, bad, travel = sums
    v = row3(free, i)
    w = (free[i, 3], free[i, 4], free[i, 5])
    r = row9(matrix, i)
    q = row4(kick_orientation, i)
    if dynamic:
        lx, ly, lz = locked[i, 3], locked[i, 4], locked[i, 5]
        v = add(v, row3(change, i))
        w = add(w, (change[i, 3], change[i, 4], change[i, 5]))
        for k in range(3):
            p0 -= mass[i] * gravity[k] * position[i, k]
            t0 += 0.5 * (mass[i] * velocity[i, k] * velocity[i, k] + inertia[i, k] * spin[i, k] * spin[i, k])
            free_axis = 1.0 if inverse_mass[i, k] > 0.0 else 0.0
            work += 0.5 * h * free_axis * force[i, k] * (before[i, k] + v[k])
            work += 0.5 * h * torque[i, k] * (before[i, 3 + k] + w[k])
        s = after_kick(r, row3(kick_spin, i), (before[i, 3], before[i, 4], before[i, 5]), w, lx, ly, lz)
        q, s = drift(q, row3(inertia, i), s, lx, ly, lz, rest)
        for k in range(3):
            t1 += 0.5 * (mass[i] * v[k] * v[k] + inertia[i, k] * s[k] * s[k])
    else:
        s = mat_t_vec(r, w)
        q = turn(q, s, rest)
    total = 0.0
    for k in range(3):
        velocity[i, k] = v[k]
        spin[i, k] = s[k]
        position[i, k] = kick_position[i, k] + rest * v[k]
        total += position[i, k] + s[k]
        if dynamic:
            p1 -= mass[i] * gravity[k] * position[i, k]
    for k in range(4):
        orientation[i, k] = q[k]
        total += q[k]
    speed = norm(v)
    if dynamic:
        top = max(top, speed)
        travel = max(travel, h * speed / size[i])
    if not math.isfinite(total + speed):
        bad += 1.0
    return t0, t1, p0, p1, work, top, bad, travel
