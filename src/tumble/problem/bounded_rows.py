"""Limits, motors with a maximum, joint friction: rows of the cone problem, as many as count in a step."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..enums import RowRole
from ..kernels.joints import ANGLE
from ..scene.model import Model
from .elimination import row_bodies
from .springs import implicit_spring

__all__ = ["NO_IMPULSE", "BoundedRows"]

LIMIT_SLACK = 0.02
"""A limit is a row from this distance on [rad, or of the limit's size]."""
LIMIT_RECOVERY = 10.0
"""A violated limit is restored at this rate [1/s]: softly, so that nothing is thrown off it."""
NO_IMPULSE = -1e-300
"""The interval of a row that cannot move anything."""


class BoundedRows:
    """Those of a model: their numbers, and in the present step bias, bound and Jacobians of the active ones."""

    def __init__(self, model: Model, backend: ModuleType, offset: np.ndarray, closed: tuple[float, float]) -> None:
        """offset: of every row; closed: violation up to which a limit counts as reached [rad, m]."""
        j = model.joints
        self._joints, self._inverse_mass, self._backend = j, model.body_inverse_mass, backend
        self.rows = j.bounded_rows
        self._body = np.ascontiguousarray(row_bodies(j.row_coord, j.coord_frame, j.frame_body)[self.rows])
        turn = j.coord_kind[j.row_coord[:, 0]] == ANGLE
        self._slack = np.where(turn, LIMIT_SLACK, LIMIT_SLACK * np.abs(np.nan_to_num(offset)))
        self._tiny = np.where(turn[self.rows], *closed)
        self.arrays = (np.zeros((0, 4), np.int32), np.zeros((0, 24)), np.zeros((0, 24)), np.zeros(0))
        """Bodies, Jacobian, Jacobian times inverse mass, compliance of the active rows"""
        self.bias, self.bound = np.zeros(0), np.zeros(0)
        self.active = np.zeros(0, np.int64)
        """Numbers of the rows that count in this step"""
        self._kept = np.zeros(0, bool)

    def set(
        self,
        g: np.ndarray,
        h: float,
        theta: float | None,
        inverse_inertia: np.ndarray,
        free: np.ndarray,
        before: np.ndarray,
        targets: np.ndarray,
        jacobian: np.ndarray,
    ) -> None:
        """Which rows count, with their bias and bounds.

        g: violations (r,); theta: of Moreau's integrator; free, before: velocities (n, 6) with and without the kick of
        the forces; targets: of the motors; jacobian: of the coordinates (c, 12).
        """
        j, rows = self._joints, self.rows
        n = len(rows)
        if n == 0:
            return
        own, weighted = np.zeros((n, 24)), np.zeros((n, 24))
        self._backend.row_jacobians(
            rows, j.row_coord, j.row_weight, self._body, jacobian, self._inverse_mass, inverse_inertia, own, weighted,
        )  # fmt: skip
        speed = np.zeros(n)
        self._backend.row_speeds(self._body, own, free, speed)
        role = j.row_role[rows]
        limit = (role == RowRole.LOWER) | (role == RowRole.UPPER)
        # A limit holds until the next kick, the position of a motor at the end of the step.
        bias = g[rows] / np.where(limit, h, h if theta is None else theta * h)
        open_limit = limit & (g[rows] < 0.0)
        bias[open_limit] = LIMIT_RECOVERY * g[rows[open_limit]]
        bias[role == RowRole.FRICTION] = 0.0
        driven = role == RowRole.BOUNDED_SPEED
        bias[driven] = -targets[j.row_motor[rows[driven]]]
        compliance = np.zeros(n)
        soft = (role == RowRole.BOUNDED_POSITION) & (j.row_stiffness[rows] > 0.0)
        if soft.any():
            k, d, old = j.row_stiffness[rows[soft]], j.row_damping[rows[soft]], np.zeros(n)
            self._backend.row_speeds(self._body, own, before, old)
            bias[soft], compliance[soft] = implicit_spring(g[rows[soft]], k, d, h, theta, old[soft])
        # mu of the blocks: 0 for a limit, minus the largest impulse otherwise
        bound = np.where(limit, 0.0, -h * j.row_most[rows])
        self._all = (bias + speed, bound, own, weighted, compliance)
        self._limit, self._limit_gap = limit, g[rows]
        self._choose(~limit | (g[rows] <= self._slack[rows] + 2.0 * h * np.abs(speed)))

    def _choose(self, keep: np.ndarray) -> None:
        """Take these bounded rows into the problem."""
        bias, bound, jacobian, weighted, compliance = self._all
        self._kept = keep
        self.active = self.rows[keep]
        self.bias, self.bound = bias[keep], bound[keep]
        self.arrays = tuple(np.ascontiguousarray(x[keep]) for x in (self._body, jacobian, weighted, compliance))

    def catch(self, velocity: np.ndarray, h: float) -> bool:
        """Whether velocities (n, 6) pass limits that were thought far; they are rows from now on in this step."""
        if not len(self.rows) or self._kept.all():
            return False
        speed = np.zeros(len(self.rows))
        self._backend.row_speeds(self._body, self._all[2], velocity, speed)
        passed = ~self._kept & (self._limit_gap + h * speed < 0.0)
        if not passed.any():
            return False
        self._choose(self._kept | passed)
        return True

    @property
    def beyond(self) -> np.ndarray:
        """(active,) bool: limits that are passed."""
        return (self._limit & (self._limit_gap < 0.0))[self._kept]

    def past(self, distance: float) -> np.ndarray:
        """(active,) bool: limits that are passed by more than this."""
        return self._limit[self._kept] & (self._limit_gap[self._kept] < -distance)

    def reached(self) -> np.ndarray:
        """Numbers of the limits that are reached or passed, and can do something about it."""
        near = self._limit & self._kept & (self._limit_gap <= self._tiny)
        near[self._kept] &= self.bound != NO_IMPULSE
        return self.rows[near]
