"""Mechanisms of jointed bodies: inertia and kinetic energy."""

from __future__ import annotations

from ...kernels.jit import blockwise
from ...kernels.mechanism_energy import mechanism_energy, turned_inertia


@blockwise(64, "body.size")
def turn_inertia(block, body, moves, inertia, locked, orientation, out):
    """World inverse inertia (n, 6) of the bodies listed, zero where they do not move."""
    for place in range(64 * block, min(64 * block + 64, body.size)):
        turned_inertia(place, body, moves, inertia, locked, orientation, out)


@blockwise(1, "start.size - 1")
def mechanism_energies(c, start, body, mass, inertia, orientation, velocity, out):
    """Kinetic energy of every mechanism with velocities (n, 6) [J]."""
    out[c] = mechanism_energy(c, start, body, mass, inertia, orientation, velocity)
