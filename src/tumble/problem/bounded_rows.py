"""Limits, motors with a maximum, joint friction: rows of the cone problem, as many as count in a step."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.base import sent_group
from ..backends.joint_arrays import BoundedArrays, BoundedState
from ..kernels import joint_steps as formulas
from ..kernels.joint_stops import NO_IMPULSE
from ..kernels.joints import ANGLE
from ..scene.model import Model
from .elimination import Pattern
from .joint_system import built_rows, joint_rows

__all__ = ["NO_IMPULSE", "BoundedRows"]

LIMIT_SLACK = 0.02
"""A limit is a row from this distance on [rad, or of the limit's size]."""


class BoundedRows:
    """Those of a model: their numbers, and in the present step bias, bound and Jacobians of the active ones."""

    def __init__(
        self,
        model: Model,
        backend: ModuleType,
        offset: np.ndarray,
        closed: tuple[float, float],
        impulse: np.ndarray,
        pattern: Pattern,
    ) -> None:
        """offset and impulse: of every row; closed: violation up to which a limit counts as reached [rad, m];
        pattern: of the equality rows. They lie mechanism by mechanism."""
        j, self._backend = model.joints, backend
        rows = j.bounded_rows
        sides = joint_rows(model, rows, offset).body
        mechanism = np.where(sides >= 0, pattern.mechanism_of[np.maximum(sides, 0)], -1).max(axis=1, initial=-1)
        self.rows, n = rows[np.argsort(mechanism, kind="stable")], len(rows)
        self.mechanism = np.sort(mechanism)
        """(rows,) of each"""
        count = len(pattern.mechanism) - 1
        first = np.searchsorted(self.mechanism, np.arange(count + 1)).astype(np.int64)
        turn = j.coord_kind[j.row_coord[self.rows, 0]] == ANGLE
        slack = np.where(turn, LIMIT_SLACK, LIMIT_SLACK * np.abs(np.nan_to_num(offset[self.rows])))
        zeros = backend.zeros
        self.tiny = backend.send(np.where(turn, *closed))
        self._taken = (
            zeros((n, 4), np.int32), zeros((n, 24)), zeros((n, 24)), zeros(n), zeros(n), zeros(n), zeros(n, np.int64),
        )  # fmt: skip
        self._start = zeros(count + 1, np.int64)
        self.arrays = BoundedArrays(
            sent_group(backend, joint_rows(model, self.rows, offset)), sent_group(backend, built_rows(n)),
            BoundedState(zeros(n), zeros(n, bool), zeros(n, bool), impulse), backend.send(slack),
            backend.send(first), (*self._taken, self._start), zeros((3, n)),
        )  # fmt: skip
        self._count = -1
        self.take(0)
        self._passed = zeros(n, bool)
        self._passes = backend.over_rows(formulas.passes_limit)

    def take(self, count: int) -> None:
        """So many rows count."""
        if count != self._count:
            self._count = count
            body, jacobian, weighted, compliance, bias, bound, active = (x[:count] for x in self._taken)
            self.kept = (body, jacobian, weighted, compliance, self._start)
            """Bodies, Jacobian, Jacobian times inverse mass, compliance of the active rows, and the first of each
            mechanism"""
            self.bias, self.bound = bias, bound
            self.active: np.ndarray = active
            """Of the rows that count in this step; their numbers"""

    @property
    def all_count(self) -> bool:
        """Whether every row counts in this step."""
        return len(self.rows) == self._count

    def catch(self, velocity: np.ndarray, h: float) -> bool:
        """Whether velocities (n, 6) pass limits that were thought far; they are rows from now on in this step."""
        n, a = len(self.rows), self.arrays
        if self.all_count:
            return False
        self._passes(n, a.rows, a.built, a.state, h, velocity, self._passed)
        if not self._backend.count_true(n, self._passed):
            return False
        a.state.kept[:] |= self._passed
        self.take(int(self._backend.take_rows(a.rows, a.first, a.built, a.state, a.active)))
        return True

    def past(self, distance: float) -> np.ndarray:
        """(active,) bool on the host: limits that are passed by more than this."""
        fetch, a = self._backend.fetch, self.arrays
        return (fetch(a.state.limit) & (fetch(a.built.g) < -distance))[fetch(a.state.kept)]
