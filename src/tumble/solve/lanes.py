"""The arrays of a problem's contacts in lanes."""

from __future__ import annotations

import math
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
    groups, parts, shared = LANES * blocks(cap, LANES), blocks(cap, LANE_CONTACTS), problem.kept(_shared)

    def room(whole: np.ndarray, *shape: int) -> np.ndarray:
        return whole.view(dtype)[: math.prod(shape)].reshape(shape)

    ends = room(shared.ends, groups * END_ROWS)
    partial, totals = room(shared.partial, parts, 3 * LANES), room(shared.totals, parts, 4)
    contacts = LaneArrays(-1, 0, room(shared.block, groups * LANE_ROWS), ends)
    arm, inverse = room(shared.arm, entries, 4), room(shared.inverse, bodies, 9)
    lanes = LaneBodies(0, start, ends, shared.place, arm, inverse)
    return _Lanes([contacts], LaneSums(partial, shared.error, totals), [lanes])


def _single(problem: ConeProblem) -> _Lanes:
    return _make(problem, np.float32)


def _double(problem: ConeProblem) -> _Lanes:
    return _make(problem, np.float64)


def _shared(problem: ConeProblem) -> _Shared:
    cap, arrays = problem.bias.shape[1], problem.step_operator.contacts
    entries, bodies = len(arrays.entry_arm), len(arrays.inverse_mass)
    groups, parts = LANES * blocks(cap, LANES), blocks(cap, LANE_CONTACTS)
    return _Shared(
        np.zeros(entries, np.uint32),
        np.zeros((parts, 5 * LANES)),
        *map(np.zeros, (groups * LANE_ROWS, groups * END_ROWS, parts * 3 * LANES, parts * 4, 4 * entries, 9 * bodies)),
    )


class _Lanes(NamedTuple):  # the groups of the last problem of one precision
    contacts: list[LaneArrays]
    sums: LaneSums
    bodies: list[LaneBodies]


class _Shared(NamedTuple):  # by both precisions, which follow each other: single ones take half of the room
    place: np.ndarray
    error: np.ndarray
    block: np.ndarray
    ends: np.ndarray
    partial: np.ndarray
    totals: np.ndarray
    arm: np.ndarray
    inverse: np.ndarray
