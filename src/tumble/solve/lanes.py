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
    LaneSums,
    blocks,
)
from ..problem.cone_problem import ConeProblem

__all__ = ["lanes_of"]


def lanes_of(problem: ConeProblem, dtype: type) -> tuple[LaneArrays, LaneSums, LaneBodies]:
    """Lanes for a problem, kept between steps; their content is whatever was left there."""
    last = problem.kept(_single if dtype is np.float32 else _double)
    few, start = problem.count <= LANE_FEW, problem.step_operator.contacts.entry_start
    contacts, bodies = last.contacts[0], last.bodies[0]
    if contacts.count != problem.count or bodies.start is not start:
        n = len(bodies.inverse)
        contacts = contacts._replace(count=problem.count, part=LANE_FEW if few else LANE_CONTACTS)
        bodies = bodies._replace(part=max(1, n) if few else LANE_BODIES, start=start)
        last.contacts[0], last.bodies[0] = contacts, bodies
    return contacts, last.sums, bodies


def _make(problem: ConeProblem, dtype: type) -> _Lanes:
    cap, start = problem.bias.shape[1], problem.step_operator.contacts.entry_start
    entries, bodies = len(problem.step_operator.contacts.entry_arm), len(problem.step_operator.contacts.inverse_mass)
    groups, parts = LANES * blocks(cap, LANES), blocks(cap, LANE_CONTACTS)
    ends, shared = np.zeros(groups * END_ROWS, dtype), problem.kept(_shared)
    block, partial = np.zeros(groups * LANE_ROWS, dtype), np.zeros((parts, 3 * LANES), dtype)
    contacts = LaneArrays(-1, 0, block, ends)
    return _Lanes(
        [contacts],
        LaneSums(partial, shared.error),
        [LaneBodies(0, start, ends, shared.place, np.zeros((entries, 4), dtype), np.zeros((bodies, 9), dtype))],
    )


def _single(problem: ConeProblem) -> _Lanes:
    return _make(problem, np.float32)


def _double(problem: ConeProblem) -> _Lanes:
    return _make(problem, np.float64)


def _shared(problem: ConeProblem) -> _Shared:
    entries, parts = len(problem.step_operator.contacts.entry_arm), blocks(problem.bias.shape[1], LANE_CONTACTS)
    return _Shared(np.zeros(entries, np.uint32), np.zeros((parts, 5 * LANES)))


class _Lanes(NamedTuple):  # the groups of the last problem of one precision
    contacts: list[LaneArrays]
    sums: LaneSums
    bodies: list[LaneBodies]


class _Shared(NamedTuple):  # by both precisions
    place: np.ndarray
    error: np.ndarray
