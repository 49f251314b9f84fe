"""Bodies: predict (what kicks them), drift, advance."""

from __future__ import annotations

from ...kernels.jit import blockwise, loop
from ...kernels.linalg import norm
from ...kernels.motion import drifted, kicked_by_forces, moved, sum_of_velocities
from ..base import BODY_BLOCK


@blockwise(BODY_BLOCK, "masses.kind.size")
def predict(block, masses, loads, prescribed, orientation, velocity, spin, h, out):
    """Rotation matrices, world inverse inertia, velocity before the kick and free velocity v + h M^-1 f, into `out`
    (`FreeArrays`); all velocities (n, 6) in world axes. There is no gyroscopic term: the drift turns the bodies."""
    for i in range(block * BODY_BLOCK, min(masses.kind.size, (block + 1) * BODY_BLOCK)):
        kicked_by_forces(i, masses, loads, prescribed, orientation, velocity, spin, h, out)


@blockwise(BODY_BLOCK, "kind.size")
def drift_bodies(block, kind, inertia, locked, prescribed, h, start, new_position, new_orientation, new_spin):
    """Poses and spins after h with the velocities at the start (`MotionArrays`); kinematic bodies with those
    prescribed (n, 6)."""
    for i in range(block * BODY_BLOCK, min(kind.size, (block + 1) * BODY_BLOCK)):
        position, q, s = drifted(i, kind, inertia, locked, prescribed, h, start)
        for k in range(3):
            new_position[i, k] = position[k]
            new_spin[i, k] = s[k]
        for k in range(4):
            new_orientation[i, k] = q[k]


@blockwise(BODY_BLOCK, "weights.kind.size")
def _advance_blocks(block, weights, kick, loads, free, change, h, rest, motion, partial):
    """One row of partial a block: see `advance`."""
    sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(block * BODY_BLOCK, min(weights.kind.size, (block + 1) * BODY_BLOCK)):
        sums = moved(i, weights, kick, loads, free, change, h, rest, motion, sums)
    for k in range(8):
        partial[block, k] = sums[k]


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


@blockwise(BODY_BLOCK, "free.shape[0]")
def speed_blocks(block, free, partial):
    """The largest speed of each block of bodies, and their sum [m/s]."""
    top, total = 0.0, 0.0
    for i in range(block * BODY_BLOCK, min(free.shape[0], (block + 1) * BODY_BLOCK)):
        speed = norm((free[i, 0], free[i, 1], free[i, 2]))
        top, total = max(top, speed), total + speed
    partial[block, 0], partial[block, 1] = top, total


@loop
def largest_speed(kind, free):
    """Largest speed of a body in the step [m/s]."""
    top = 0.0
    for i in range(kind.size):
        top = max(top, norm((free[i, 0], free[i, 1], free[i, 2])))
    return top


@blockwise(BODY_BLOCK, "free.shape[0]")
def add_velocities(block, free, change, out):
    """out = free + change, (n, 6)."""
    for i in range(block * BODY_BLOCK, min(free.shape[0], (block + 1) * BODY_BLOCK)):
        sum_of_velocities(i, free, change, out)
