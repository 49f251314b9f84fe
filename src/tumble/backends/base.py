"""What every backend offers, and the flat arrays that its passes share."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ..kernels.jit import BLOCK

BODY_BLOCK = 256
"""Bodies or shapes in a block."""
MEASURES = 16
"""Numbers that one measuring pass gives, see `Measure`."""


class ContactArrays(NamedTuple):
    """The operator N = D^T M^-1 D of contacts without a matrix: one frame and two arms a contact.

    An impulse is turned into world axes and laid down at its two *entries*, which are sorted by body; each body sums
    its own entries in order (no atomics, fixed sums); then each contact reads its two bodies.
    """

    count: int
    body_a: np.ndarray  # (cap,) int32
    body_b: np.ndarray  # (cap,) int32
    frame: np.ndarray  # (9, cap): n, u, w (scaled where the problem is)
    arms: np.ndarray  # (6, cap): from the centres of mass of A and B to the point
    slot_a: np.ndarray  # (cap,) int32: entry of side A; the last entry is a dump for bodies that cannot move
    slot_b: np.ndarray  # (cap,) int32
    entry_start: np.ndarray  # (bodies + 1,) int64
    entry_arm: np.ndarray  # (2 cap + 1, 3)
    entry_force: np.ndarray  # (2 cap + 1, 3) scratch
    inverse_mass: np.ndarray  # (bodies, 3)
    inverse_inertia: np.ndarray  # (bodies, 6): xx, yy, zz, xy, xz, yz in world axes
    body_velocity: np.ndarray  # (bodies, 6) scratch: M^-1 D x


class MatrixArrays(NamedTuple):
    """The operator as a sparse matrix. Rows are grouped by contact: row = dim * contact + component."""

    count: int
    dim: int
    start: np.ndarray  # (dim * count + 1,) int64
    contact: np.ndarray  # (nz,) int32: contact of the column
    component: np.ndarray  # (nz,) int32: its component
    value: np.ndarray  # (nz,)


class Measure(IntEnum):
    """Places in the result of a measuring pass (`backends.cpu.measure`)."""

    NATURAL = 0
    SCALE = 1
    EQ25 = 2
    CLASSIC = 3
    CLASSIC_SCALE = 4
    GAP = 5
    SHIFT = 6
    SHIFT_HAT = 7
    COMPLEMENTARITY = 8
    PENETRATION_SPEED = 9
    OBJECTIVE = 10


def blocks(count: int, block: int = BLOCK) -> int:
    """Number of blocks for so many items, at least one."""
    return max(1, -(-count // block))
