"""Bodies: predict, advance."""

from __future__ import annotations

import math

from ...kernels.jit import formula, loop, parallel_loop, prange
from ...kernels.linalg import add, mat_t_vec, mat_vec, mul, norm, quat_matrix, row3, row4, row9, symmetric_vec
from ...kernels.motion import gyroscopic_midpoint, turn
from ..base import BODY_BLOCK

DYNAMIC, KINEMATIC = 2, 1


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
def _free_turning(orientation, m, inertia, spin, locked, i, h):
    """Angular velocity (world axes) after h without torque.

    All axes free: the gyroscopic midpoint. Two or three locked: it stays, since the inertia about a fixed axis does
    not change. One locked: the angular momentum about the two free axes stays (energy then to first order in h).
    """
    count = 0
    for k in range(3):
        count += 1 if locked[i, 3 + k] else 0
    if count == 0:
        return mat_vec(m, gyroscopic_midpoint(inertia, spin, h))
    w = mat_vec(m, spin)
    w = (0.0 if locked[i, 3] else w[0], 0.0 if locked[i, 4] else w[1], 0.0 if locked[i, 5] else w[2])
    if count > 1:
        return w
    momentum = mat_vec(m, mul(inertia, mat_t_vec(m, w)))
    ahead = quat_matrix(turn(orientation, mat_t_vec(m, w), h))
    new = world_inverse_inertia(ahead, inertia, locked[i, 3], locked[i, 4], locked[i, 5])
    return symmetric_vec(new, momentum)


@parallel_loop
def predict(
    kind,
    inverse_mass,
    inertia,
    locked,
    gravity,
    orientation,
    velocity,
    spin,
    force,
    torque,
    prescribed,
    h,
    matrix,
    inverse_inertia,
    before,
    free,
):
    """Rotation matrices, world inverse inertia, velocity before the step (after the gyroscopic term) and free velocity
    v_old + h M^-1 f; all velocities (n, 6) in world axes."""
    n = kind.size
    for block in prange((n + BODY_BLOCK - 1) // BODY_BLOCK):
        for i in range(block * BODY_BLOCK, min(n, (block + 1) * BODY_BLOCK)):
            m = quat_matrix(row4(orientation, i))
            for k in range(9):
                matrix[i, k] = m[k]
            if kind[i] != DYNAMIC:
                for k in range(6):
                    inverse_inertia[i, k] = 0.0
                    v = prescribed[i, k] if kind[i] == KINEMATIC else 0.0
                    before[i, k] = v
                    free[i, k] = v
                continue
            inv = world_inverse_inertia(m, row3(inertia, i), locked[i, 3], locked[i, 4], locked[i, 5])
            w = _free_turning(row4(orientation, i), m, row3(inertia, i), row3(spin, i), locked, i, h)
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


@parallel_loop
def _advance_blocks(
    kind,
    size,
    inertia,
    inverse_mass,
    mass,
    gravity,
    matrix,
    before,
    free,
    change,
    force,
    torque,
    h,
    position,
    orientation,
    velocity,
    spin,
    partial,
):
    """One row of partial a block: see `advance`."""
    n = kind.size
    for block in prange((n + BODY_BLOCK - 1) // BODY_BLOCK):
        t0, t1, p0, p1, work, top, bad, travel = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(block * BODY_BLOCK, min(n, (block + 1) * BODY_BLOCK)):
            dynamic = kind[i] == DYNAMIC
            if kind[i] != DYNAMIC and kind[i] != KINEMATIC:
                continue
            v = row3(free, i)
            w = (free[i, 3], free[i, 4], free[i, 5])
            r = row9(matrix, i)
            if dynamic:
                v = add(v, row3(change, i))
                w = add(w, (change[i, 3], change[i, 4], change[i, 5]))
                for k in range(3):
                    p0 -= mass[i] * gravity[k] * position[i, k]
            s = mat_t_vec(r, w)
            if dynamic:
                for k in range(3):
                    t0 += 0.5 * (mass[i] * velocity[i, k] * velocity[i, k] + inertia[i, k] * spin[i, k] * spin[i, k])
                    t1 += 0.5 * (mass[i] * v[k] * v[k] + inertia[i, k] * s[k] * s[k])
                    free_axis = 1.0 if inverse_mass[i, k] > 0.0 else 0.0
                    work += 0.5 * h * free_axis * force[i, k] * (before[i, k] + v[k])
                    work += 0.5 * h * torque[i, k] * (before[i, 3 + k] + w[k])
            q = turn(row4(orientation, i), s, h)
            total = 0.0
            for k in range(3):
                velocity[i, k] = v[k]
                spin[i, k] = s[k]
                position[i, k] += h * v[k]
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
        partial[block, 0], partial[block, 1], partial[block, 2], partial[block, 3] = t0, t1, p0, p1
        partial[block, 4], partial[block, 5], partial[block, 6], partial[block, 7] = work, top, bad, travel


@loop
def advance(
    kind,
    size,
    inertia,
    inverse_mass,
    mass,
    gravity,
    matrix,
    before,
    free,
    change,
    force,
    torque,
    h,
    position,
    orientation,
    velocity,
    spin,
    partial,
):
    """New velocity = free + change for dynamic bodies, then positions with the new velocity.

    Returns kinetic energy before and after, potential energy before and after, work of external forces, largest speed,
    number of bodies that are not finite, and the largest travel of a body in units of its smallest half-extent.
    """
    _advance_blocks(
        kind,
        size,
        inertia,
        inverse_mass,
        mass,
        gravity,
        matrix,
        before,
        free,
        change,
        force,
        torque,
        h,
        position,
        orientation,
        velocity,
        spin,
        partial,
    )
    t0, t1, p0, p1, work, top, bad, travel = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for block in range((kind.size + BODY_BLOCK - 1) // BODY_BLOCK):
        t0 += partial[block, 0]
        t1 += partial[block, 1]
        p0 += partial[block, 2]
        p1 += partial[block, 3]
        work += partial[block, 4]
        top = max(top, partial[block, 5])
        bad += partial[block, 6]
        travel = max(travel, partial[block, 7])
    return t0, t1, p0, p1, work, top, bad, travel


@loop
def largest_speed(kind, free):
    """Largest speed of a body in the step [m/s]."""
    top = 0.0
    for i in range(kind.size):
        top = max(top, norm((free[i, 0], free[i, 1], free[i, 2])))
    return top
