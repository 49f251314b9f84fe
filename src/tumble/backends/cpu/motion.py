"""Bodies: predict (what kicks them), drift, advance."""

from __future__ import annotations

import math

from ...kernels.jit import blockwise, formula, loop
from ...kernels.kinds import DYNAMIC, KINEMATIC
from ...kernels.linalg import add, mat_t_vec, mat_vec, norm, quat_matrix, row3, row4, row9, sub
from ...kernels.motion import drift, turn, world_inverse_inertia
from ..base import BODY_BLOCK


@formula
def after_kick(m, spin, before, after, lx, ly, lz):
    """Spin (body axes of m) when the angular velocity (world axes) has changed from before to after.

    Only the difference is turned into body axes: turning the whole to and fro would lose angular momentum by rounding.
    """
    if lx or ly or lz:
        return mat_t_vec(m, after)
    return add(spin, mat_t_vec(m, sub(after, before)))


@blockwise(BODY_BLOCK, "masses.kind.size")
def predict(block, masses, loads, prescribed, orientation, velocity, spin, h, out):
    """Rotation matrices, world inverse inertia, velocity before the kick and free velocity v + h M^-1 f, into `out`
    (`FreeArrays`); all velocities (n, 6) in world axes. There is no gyroscopic term: the drift turns the bodies."""
    kind, inverse_mass, inertia, locked = masses
    gravity, force, torque = loads
    matrix, inverse_inertia, before, free = out
    n = kind.size
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


@blockwise(BODY_BLOCK, "kind.size")
def drift_bodies(block, kind, inertia, locked, prescribed, h, start, new_position, new_orientation, new_spin):
    """Poses and spins after h with the velocities at the start (`MotionArrays`); kinematic bodies with those
    prescribed (n, 6)."""
    position, orientation, velocity, spin = start
    n = kind.size
    for i in range(block * BODY_BLOCK, min(n, (block + 1) * BODY_BLOCK)):
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
        for k in range(3):
            new_position[i, k] = position[i, k] + h * v[k]
            new_spin[i, k] = s[k]
        for k in range(4):
            new_orientation[i, k] = q[k]


@blockwise(BODY_BLOCK, "weights.kind.size")
def _advance_blocks(block, weights, kick, loads, free, change, h, rest, motion, partial):
    """One row of partial a block: see `advance`."""
    kind, size, mass, inverse_mass = weights
    inertia, locked, kick_position, kick_orientation, matrix, kick_spin, before = kick
    gravity, force, torque = loads
    position, orientation, velocity, spin = motion
    n = kind.size
    t0, t1, p0, p1, work, top, bad, travel = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(block * BODY_BLOCK, min(n, (block + 1) * BODY_BLOCK)):
        dynamic = kind[i] == DYNAMIC
        if kind[i] != DYNAMIC and kind[i] != KINEMATIC:
            continue
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
    partial[block, 0], partial[block, 1], partial[block, 2], partial[block, 3] = t0, t1, p0, p1
    partial[block, 4], partial[block, 5], partial[block, 6], partial[block, 7] = work, top, bad, travel


@loop
def advance(weights, kick, loads, free, change, h, rest, motion, partial):
    """New velocity = free + change for dynamic bodies, then the drift for the `rest` of the step from the poses at
    which they were kicked (`KickedArrays`; they may be the state's own), into `motion`.

    Returns kinetic energy before and after, potential energy before and after, work of external forces, largest speed,
    number of bodies that are not finite, and the largest travel of a body in units of its smallest half-extent.
    """
    _advance_blocks(weights, kick, loads, free, change, h, rest, motion, partial)
    t0, t1, p0, p1, work, top, bad, travel = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for block in range((weights.kind.size + BODY_BLOCK - 1) // BODY_BLOCK):
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
