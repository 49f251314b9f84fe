"""Kinetic energy of a mechanism of jointed bodies, and velocities that keep it."""

from __future__ import annotations

import math

from .jit import formula
from .linalg import cross, mat_t_vec, mat_vec, quat_matrix, row3, row4
from .motion import world_inverse_inertia

SLOW = 3e-3
"""An inner motion with less than about this part of the energy is left alone: a little energy would change it a lot."""
MOST = 4.0
"""A step changes the energy of the inner motion by this factor at most."""
STILL = 1e-12
"""A body of prescribed motion that is off its first pose by less, in sizes and in the quaternion, has not moved."""
STRAIN = 0.1
"""A drift that changes the kinetic energy by more than this part is too long for the motion."""
LEFT = 0.01
"""And one after which more than this part could not be given back."""
TWIST_LEFT = 1e-12
"""A common motion counts as a combination of others if they leave less than this part of its energy."""


@formula
def _momentum(mass, inertia, orientation, b, v):
    """M v of body b for v = (linear, angular), world axes."""
    m = quat_matrix(row4(orientation, b))
    w = mat_t_vec(m, (v[3], v[4], v[5]))
    l = mat_vec(m, (inertia[b, 0] * w[0], inertia[b, 1] * w[1], inertia[b, 2] * w[2]))
    return mass[b] * v[0], mass[b] * v[1], mass[b] * v[2], l[0], l[1], l[2]


@formula
def _row6(x, i):
    return x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4], x[i, 5]


@formula
def _product(first, end, body, mass, inertia, orientation, x, y):
    """x . M y of two motions of a mechanism, (bodies of mechanisms, 6)."""
    total = 0.0
    for i in range(first, end):
        p = _momentum(mass, inertia, orientation, body[i], _row6(y, i))
        for k in range(6):
            total += x[i, k] * p[k]
    return total


@formula
def mechanism_energy(c, start, body, mass, inertia, orientation, velocity):
    """Kinetic energy of mechanism c with velocities (n, 6) [J]."""
    total = 0.0
    for i in range(start[c], start[c + 1]):
        v = _row6(velocity, body[i])
        p = _momentum(mass, inertia, orientation, body[i], v)
        for k in range(6):
            total += 0.5 * v[k] * p[k]
    return total


@formula
def keep_mechanism_energy(c, mechanisms, bodies, energies, velocity, inner, common):
    """Scale the inner motion of mechanism c, if it is kept, so that its kinetic energy is the one wanted.

    The inner motion is what is left of the velocities (n, 6) without the mechanism's common motions (`twist`: linear,
    angular about the origin), in the metric of the masses: changing it changes no momentum that belongs to them. What
    cannot be given back while it is slow, or slower than what counts as rest, stays owed. inner, common [6]: scratch
    (bodies of mechanisms, 6).
    """
    start, body, twist_start, twist = mechanisms
    mass, inertia, position, orientation = bodies
    kept, wanted, rest, owed = energies
    first, end = start[c], start[c + 1]
    if not kept[c]:
        return
    for i in range(first, end):
        for k in range(6):
            inner[i, k] = velocity[body[i], k]
    energy = 0.5 * _product(first, end, body, mass, inertia, orientation, inner, inner)
    for t in range(twist_start[c], twist_start[c + 1]):
        q = common[t - twist_start[c]]
        a, w = (twist[t, 0], twist[t, 1], twist[t, 2]), (twist[t, 3], twist[t, 4], twist[t, 5])
        for i in range(first, end):
            turned = cross(w, row3(position, body[i]))
            for k in range(3):
                q[i, k] = a[k] + turned[k]
                q[i, 3 + k] = w[k]
        whole = _product(first, end, body, mass, inertia, orientation, q, q)
        for _ in range(2):
            for s in range(t - twist_start[c]):
                along = _product(first, end, body, mass, inertia, orientation, common[s], q)
                for i in range(first, end):
                    for k in range(6):
                        q[i, k] -= along * common[s, i, k]
        left = _product(first, end, body, mass, inertia, orientation, q, q)
        scale = 1.0 / math.sqrt(left) if left > TWIST_LEFT * whole else 0.0
        for i in range(first, end):
            for k in range(6):
                q[i, k] *= scale
        for _ in range(2):
            along = _product(first, end, body, mass, inertia, orientation, q, inner)
            for i in range(first, end):
                for k in range(6):
                    inner[i, k] -= along * q[i, k]
    own = 0.5 * _product(first, end, body, mass, inertia, orientation, inner, inner)
    owed[c] += wanted[c] - energy
    most = energy + rest[c]
    owed[c] = min(max(owed[c], -most), most)
    slow = SLOW * most
    if not own > 0.0:
        return
    gain = owed[c] * own / (own * own + slow * slow)
    gain = min(max(gain, 1.0 / MOST - 1.0), MOST - 1.0)
    owed[c] -= gain * own
    factor = math.sqrt(1.0 + gain) - 1.0
    for i in range(first, end):
        for k in range(6):
            velocity[body[i], k] += factor * inner[i, k]


@formula
def _moved(c, ideal, bodies):
    """Whether a body of prescribed motion that mechanism c is joined to is not where it began: else it is as good as
    static."""
    for p in range(ideal.partner_start[c], ideal.partner_start[c + 1]):
        b = ideal.partner[p]
        for k in range(3):
            if abs(bodies.position[b, k] - ideal.position[b, k]) > STILL * ideal.size[b]:
                return True
        for k in range(4):
            if abs(bodies.orientation[b, k] - ideal.orientation[b, k]) > STILL:
                return True
    return False


@formula
def keep_ideal_energy(c, mechanisms, bodies, ideal, wanted, before, freedoms, step, velocity, work):
    """Give mechanism c the kinetic energy `wanted`, if its joints are ideal and it has an inner motion, and see whether
    the step was too long for it.

    before: what was owed. freedoms: of its bodies less its rigid rows, and rows dropped. step: its length, and the
    travel that is rest; rest is what gravity gives in a step besides. work: `KeptEnergy`."""
    (h, least), (free, dropped) = step, freedoms
    twists = mechanisms.twist_start[c + 1] - mechanisms.twist_start[c]
    energy = mechanism_energy(
        c, mechanisms.start, mechanisms.body, bodies.mass, bodies.inertia, bodies.orientation, velocity
    )
    is_ideal = ideal.ideal[c] and not _moved(c, ideal, bodies)
    work.kept[c] = is_ideal and free[c] + dropped[c] > twists
    work.rest[c] = ideal.fall[c] * h * h + 0.5 * ideal.mass[c] * (least / h) ** 2
    work.owed[c] = before[c]
    energies = (work.kept, wanted, work.rest, work.owed)
    keep_mechanism_energy(c, mechanisms, bodies, energies, velocity, work.inner, work.common)
    most = wanted[c] + work.rest[c]
    strained = abs(energy - wanted[c]) > STRAIN * most or abs(work.owed[c]) > abs(before[c]) + LEFT * most
    work.strained[c] = is_ideal and strained


@formula
def turned_inertia(place, body, moves, inertia, locked, orientation, out):
    """World inverse inertia of body[place], zero where it does not move."""
    i = body[place]
    m = quat_matrix(row4(orientation, i))
    inv = world_inverse_inertia(m, row3(inertia, i), locked[i, 3], locked[i, 4], locked[i, 5])
    for k in range(6):
        out[i, k] = inv[k] if moves[i] else 0.0
