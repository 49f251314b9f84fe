"""Limits, motors with a maximum, joint friction: rows of the cone problem, as many as count in a step."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.joint_arrays import BoundedState
from ..kernels import joint_steps as formulas
from ..kernels.joints import ANGLE
from ..scene.model import Model
from .joint_system import built_rows, joint_rows

__all__ = ["NO_IMPULSE", "BoundedRows"]

LIMIT_SLACK = 0.02
"""A limit is a row from this distance on [rad, or of the limit's size]."""
NO_IMPULSE = -1e-300
"""The interval of a row that cannot move anything."""


class BoundedRows:
    """Those of a model: their numbers, and in the present step bias, bound and Jacobians of the active ones."""

    def __init__(
        self,
        model: Model,
        backend: ModuleType,
        offset: np.ndarray,
        closed: tuple[float, float],
        impulse: np.ndarray,
    ) -> None:
        """offset and impulse: of every row; closed: violation up to which a limit counts as reached [rad, m]."""
        j, self._inverse_mass, self._backend = model.joints, model.body_inverse_mass, backend
        self.rows, n = j.bounded_rows, len(j.bounded_rows)
        self.data, self.built = joint_rows(model, self.rows, offset), built_rows(n)
        self.state = BoundedState(np.zeros(n), np.zeros(n, bool), np.zeros(n, bool), impulse)
        turn = j.coord_kind[j.row_coord[self.rows, 0]] == ANGLE
        self._slack = np.where(turn, LIMIT_SLACK, LIMIT_SLACK * np.abs(np.nan_to_num(offset[self.rows])))
        self._tiny = np.where(turn, *closed)
        self._taken = (
            np.zeros((n, 4), np.int32), np.zeros((n, 24)), np.zeros((n, 24)), np.zeros(n), np.zeros(n), np.zeros(n),
            np.zeros(n, np.int64),
        )  # fmt: skip
        self._take(0)
        self._passed = np.zeros(n, bool)
        self._set = backend.over_rows(formulas.bounded_row)
        self._passes = backend.over_rows(formulas.passes_limit)

    def _take(self, count: int) -> None:
        body, jacobian, weighted, compliance, bias, bound, active = (x[:count] for x in self._taken)
        self.arrays = (body, jacobian, weighted, compliance)
        """Bodies, Jacobian, Jacobian times inverse mass, compliance of the active rows"""
        self.bias, self.bound = bias, bound
        self.active: np.ndarray = active
        """Of the rows that count in this step; their numbers"""

    def set(
        self,
        value: np.ndarray,
        step: tuple[float, float],
        inverse_inertia: np.ndarray,
        velocities: tuple[np.ndarray, np.ndarray],
        targets: np.ndarray,
        jacobian: np.ndarray,
    ) -> None:
        """Which rows count, with their bias and bounds.

        value: of the coordinates (c,), and their Jacobian (c, 12); step: h, and theta of Moreau's integrator, negative:
        Euler's; velocities (n, 6): with and without the kick of the forces; targets: of the motors.
        """
        if len(self.rows):
            poses = (value, targets, jacobian, self._inverse_mass, inverse_inertia)
            self._set(len(self.rows), self.data, self._slack, step, velocities, poses, self.built, self.state)
            self._choose()

    def _choose(self) -> None:
        """Take the rows that are kept into the problem."""
        self._take(int(self._backend.take_rows(self.data, self.built, self.state, self._taken)))

    def catch(self, velocity: np.ndarray, h: float) -> bool:
        """Whether velocities (n, 6) pass limits that were thought far; they are rows from now on in this step."""
        n = len(self.rows)
        if n == len(self.active):
            return False
        self._passes(n, self.data, self.built, self.state, h, velocity, self._passed)
        if not self._backend.count_true(n, self._passed):
            return False
        self.state.kept[:] |= self._passed
        self._choose()
        return True

    def past(self, distance: float) -> np.ndarray:
        """(active,) bool: limits that are passed by more than this."""
        return (self.state.limit & (self.built.g < -distance))[self.state.kept]

    def reached(self) -> np.ndarray:
        """Numbers of the limits that are reached or passed, and can do something about it."""
        s = self.state
        near = s.limit & s.kept & (self.built.g <= self._tiny)
        near[s.kept] &= self.bound != NO_IMPULSE
        return self.rows[near]
