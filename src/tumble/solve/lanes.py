"""The arrays of a problem's contacts in lanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..backends.base import (
    END_ROWS,
    LANE_BODIES,
    LANE_CONTACTS,
    LANE_FEW,
    LANE_ROWS,
    LANES,
    LaneArrays,
    LaneBodies,
    blocks,
)
from ..problem.cone_problem import ConeProblem

__all__ = ["lanes_of"]


def lanes_of(problem: ConeProblem, dtype: type) -> tuple[LaneArrays, LaneBodies]:
    """Lanes for a problem, kept between steps; their content is whatever was left there."""
    cap = problem.bias.shape[1]
    arrays = problem.step_operator.contacts
    entries, bodies = len(arrays.entry_arm), len(arrays.inverse_mass)
    groups, parts = LANES * blocks(cap, LANES), blocks(cap, LANE_CONTACTS)

    made = problem.scratch_of(
        _Numbers, dtype, dtype=dtype, block=(groups * LANE_ROWS,), ends=(groups * END_ROWS,), arm=(entries, 4),
        inverse=(bodies, 9), partial=(parts, 3 * LANES),
    )  # fmt: skip
    few = problem.count <= LANE_FEW
    contacts = LaneArrays(
        problem.count,
        LANE_FEW if few else LANE_CONTACTS,
        made.block,
        made.ends,
        made.partial,
        problem.scratch_of(_Sums, sums=(parts, 5 * LANES)).sums,
    )
    place = problem.scratch_of(_Places, dtype=np.uint32, place=(entries,)).place
    part, start = max(1, bodies) if few else LANE_BODIES, arrays.entry_start
    return contacts, LaneBodies(part, start, made.ends, place, made.arm, made.inverse)


class _Numbers(NamedTuple):  # of one precision, see `LaneArrays` and `LaneBodies`
    block: np.ndarray
    ends: np.ndarray
    arm: np.ndarray
    inverse: np.ndarray
    partial: np.ndarray


class _Places(NamedTuple):
    place: np.ndarray


class _Sums(NamedTuple):
    sums: np.ndarray
