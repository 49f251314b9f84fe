"""The arrays of a problem's contacts in lanes."""

from __future__ import annotations

import numpy as np

from ..backends.base import END_ROWS, LANE_BODIES, LANE_CONTACTS, LANE_FEW, LANE_ROWS, LANES, LaneArrays, blocks
from ..problem.cone_problem import ConeProblem

__all__ = ["lanes_of"]


def lanes_of(problem: ConeProblem, dtype: type) -> LaneArrays:
    """Lanes for a problem, kept between steps; their content is whatever was left there."""
    cap, kind = problem.bias.shape[1], np.dtype(dtype).name
    entries, bodies = len(problem.operator.arrays.entry_arm), len(problem.operator.arrays.inverse_mass)
    groups, parts = LANES * blocks(cap, LANES), blocks(cap, LANE_CONTACTS)

    def array(name: str, *shape: int, dtype: type = dtype) -> np.ndarray:
        return problem.buffer(f"lanes.{kind}.{name}", *shape, dtype=dtype)

    few = problem.count <= LANE_FEW
    return LaneArrays(
        problem.count,
        LANE_FEW if few else LANE_CONTACTS,
        max(1, bodies) if few else LANE_BODIES,
        array("block", groups * LANE_ROWS),
        array("ends", groups * END_ROWS),
        array("place", entries, dtype=np.uint32),
        array("arm", entries, 4),
        array("inverse", bodies, 9),
        array("partial", parts, 3 * LANES),
        array("sums", parts, 5 * LANES, dtype=np.float64),
    )
