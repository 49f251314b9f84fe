"""Mechanisms of jointed bodies: inertia, kinetic energy, and velocities that keep it."""

from __future__ import annotations

from ...kernels.jit import loop
from ...kernels.linalg import quat_matrix, row3, row4
from ...kernels.mechanism_energy import keep_mechanism_energy, mechanism_energy
from ...kernels.motion import world_inverse_inertia


@loop
def turn_inertia(body, moves, inertia, locked, orientation, out):
    """World inverse inertia (n, 6) of the bodies listed, zero where they do not move."""
    for i in body:
        m = quat_matrix(row4(orientation, i))
        inv = world_inverse_inertia(m, row3(inertia, i), locked[i, 3], locked[i, 4], locked[i, 5])
        for k in range(6):
            out[i, k] = inv[k] if moves[i] else 0.0


@loop
def mechanism_energies(start, body, mass, inertia, orientation, velocity, out):
    """Kinetic energy of every mechanism with velocities (n, 6) [J]."""
    for c in range(start.size - 1):
        out[c] = mechanism_energy(c, start, body, mass, inertia, orientation, velocity)


@loop
def keep_energy(mechanisms, bodies, energies, velocity, inner, common):
    """Scale the inner motion of every mechanism that is kept so that its kinetic energy is the one wanted.

    The inner motion is what is left of the velocities (n, 6) without the mechanism's common motions (`twist`: linear,
    angular about the origin), in the metric of the masses: changing it changes no momentum that belongs to them. What
    cannot be given back while it is slow, or slower than what counts as rest, stays owed. inner, common [6]: scratch
    (bodies of mechanisms, 6).
    """
    for c in range(mechanisms.start.size - 1):
        keep_mechanism_energy(c, mechanisms, bodies, energies, velocity, inner, common)
