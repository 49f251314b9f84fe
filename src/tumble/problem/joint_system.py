"""Rows of the joints that are solved for exactly: which they are, and at one pose their Jacobians and the factor of
S = G^T M^-1 G + E."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.joint_arrays import (
    BodyFactor,
    ClosingWork,
    FactorArrays,
    FactorWork,
    MobilityArrays,
    PatternArrays,
    SystemArrays,
)
from ..enums import BodyKind, RowRole
from ..kernels.joint_trees import MOST_ROWS
from ..scene.joint_model import JointModel
from ..scene.model import Model
from .elimination import Pattern, row_bodies

__all__ = ["JointSystem", "RowSet", "mobility_arrays", "no_factor"]


class RowSet:
    """Some rows in the order of elimination, with a system at the pose of the kick and one at the end of the step."""

    def __init__(self, model: Model, backend: ModuleType, rows: np.ndarray, movable: np.ndarray) -> None:
        j, self._model, self._backend = model.joints, model, backend
        bodies = row_bodies(j.row_coord, j.coord_frame, j.frame_body)
        whole = np.where(model.body_mass > 0.0, model.body_inertia.min(axis=1, initial=np.inf), 0.0)
        free = (whole > 0.0) & ~np.any(model.body_locked, axis=1)
        self.pattern = Pattern.of(bodies[rows], j.row_element[rows], movable, free)
        self.rows = rows[self.pattern.order]
        """Numbers of the rows"""
        self.mechanism = np.repeat(np.arange(len(self.pattern.mechanism) - 1), np.diff(self.pattern.mechanism))
        """(rows,) mechanism of each"""
        self.body = np.ascontiguousarray(bodies[self.rows])
        self.coord = np.ascontiguousarray(j.row_coord[self.rows])
        self.weight = np.ascontiguousarray(j.row_weight[self.rows])
        role, n = j.row_role[self.rows], len(rows)
        self.rigid, self.speed, self.spring = role == RowRole.RIGID, role == RowRole.SPEED, role == RowRole.SPRING
        self.motor = j.row_motor[self.rows]
        self.closing = ClosingWork(
            *(np.zeros(n) for _ in range(6)), *(np.zeros((6, n)) for _ in range(3)), np.zeros((model.body_count, 6)),
            np.zeros((len(self.pattern.mechanism) - 1, 6, 7)),
        )  # fmt: skip
        self.kick = JointSystem(model, backend, self.pattern, self.rows, self.body)
        self._end: JointSystem | None = None

    @property
    def end(self) -> JointSystem:
        """The rows at the end of the step."""
        if self._end is None:
            self._end = JointSystem(self._model, self._backend, self.pattern, self.rows, self.body)
        return self._end

    def in_mechanisms(self, some: np.ndarray) -> np.ndarray:
        """(mechanisms,) how many of `some` rows (rows,) each mechanism has."""
        total = np.concatenate([[0], np.cumsum(some)])
        return np.diff(total[self.pattern.mechanism])


class JointSystem:
    """Rows in the order of elimination. `assemble` first, then the rest."""

    def __init__(
        self, model: Model, backend: ModuleType, pattern: Pattern, equality: np.ndarray, body: np.ndarray
    ) -> None:
        self._model, self._backend = model, backend
        self._joints: JointModel = model.joints
        self._equality, self.body = equality, body
        n, entries = len(equality), int(pattern.l_start[-1])
        self.jacobian, self.weighted = np.zeros((n, 24)), np.zeros((n, 24))
        self.compliance = np.zeros(n)
        used, mark, path = (np.zeros(n, np.int64) for _ in range(3))
        self._scratch = FactorWork(used, np.zeros(n), mark, path)
        self._inverse_inertia = np.zeros((0, 6))
        p = pattern
        self._rows = PatternArrays(p.start, p.column, p.pair_start, p.pair, p.parent)
        self.factors = FactorArrays(
            p.mechanism, p.l_start, np.zeros(entries, np.int64), np.zeros(entries), np.zeros(n),
            np.zeros(len(p.mechanism) - 1, np.int64), p.tree, body_factor(p),
        )  # fmt: skip
        dynamic = model.body_kind == BodyKind.DYNAMIC
        light = np.where(dynamic, 1.0 / np.where(dynamic, model.body_mass, 1.0), 0.0)
        least = np.where(dynamic, model.body_inertia.min(axis=1, initial=np.inf), 1.0)
        nimble = np.where(dynamic, 1.0 / np.where(least > 0.0, least, 1.0), 0.0)
        sides = np.maximum(body, 0)
        self._light = np.where(body >= 0, light[sides], 0.0)
        self._nimble = np.where(body >= 0, nimble[sides], 0.0)

    def assemble(self, coord_jacobian: np.ndarray, inverse_inertia: np.ndarray) -> None:
        """The Jacobians G and M^-1 G from those of the coordinates (c, 12)."""
        j, self._inverse_inertia = self._joints, inverse_inertia
        self._backend.row_jacobians(
            self._equality, j.row_coord, j.row_weight, self.body, coord_jacobian, self._model.body_inverse_mass,
            inverse_inertia, self.jacobian, self.weighted,
        )  # fmt: skip

    def factor(self) -> None:
        """Factor S with the compliance that is set."""
        whole = self._whole_diagonal()
        system = SystemArrays(
            self.body, self._model.body_inverse_mass, self._inverse_inertia, self.jacobian, self.weighted,
            self.compliance, whole,
        )  # fmt: skip
        self._backend.factor_joints(self._rows, system, self.factors, self._scratch)

    def _whole_diagonal(self) -> np.ndarray:
        """What the diagonal of each row would be without locked directions, roughly: the scale of its pivot."""
        j = self.jacobian.reshape(-1, 4, 6)
        linear, angular = np.sum(j[:, :, :3] ** 2, axis=2), np.sum(j[:, :, 3:] ** 2, axis=2)
        return np.sum(linear * self._light + angular * self._nimble, axis=1) + self.compliance

    @property
    def dropped(self) -> int:
        """Rows that depend on others."""
        return int(self.dropped_in.sum())

    @property
    def dropped_in(self) -> np.ndarray:
        """(mechanisms,) rows that depend on others."""
        return self.factors.dropped

    def speeds(self, velocity: np.ndarray) -> np.ndarray:
        """G^T v (rows,) of velocities (n, 6)."""
        out = np.zeros(len(self.body))
        self._backend.row_speeds(self.body, self.jacobian, velocity, out)
        return out

    def solve(self, y: np.ndarray) -> None:
        """y = S^+ y."""
        self._backend.solve_joints(self.factors, y)

    def stopping(self, velocity: np.ndarray) -> np.ndarray:
        """Impulses (rows,) after which velocities (n, 6) have no speed across the rows without compliance."""
        y = np.where(self.compliance == 0.0, -self.speeds(velocity), 0.0)
        self.solve(y)
        return y

    def forward(self, y: np.ndarray) -> None:
        """y = L^-1 y: what is left at a dropped row is how far it contradicts the rows before it."""
        self._backend.forward_joints(self.factors, y)

    def push(self, y: np.ndarray, velocity: np.ndarray) -> None:
        """v += M^-1 G y."""
        self._backend.push_rows(self.body, self.weighted, y, velocity)


def body_factor(pattern: Pattern) -> BodyFactor:
    """Room for what eliminating bodies leaves."""
    nodes, rows = len(pattern.tree.body), len(pattern.order) if len(pattern.tree.body) else 0
    return BodyFactor(
        np.zeros(len(pattern.mechanism) - 1, bool), np.zeros((nodes, 36)), *(np.zeros((rows, 6)) for _ in range(3)),
        np.zeros((rows, MOST_ROWS)), np.zeros((nodes, 6)),
    )  # fmt: skip


def mobility_arrays(pattern: Pattern) -> MobilityArrays:
    """Room for the answers of nodes."""
    nodes, rows = len(pattern.tree.body), len(pattern.order) if len(pattern.tree.body) else 0
    return MobilityArrays(*(np.zeros((nodes, 36)) for _ in range(3)), np.zeros((rows, 6)), np.zeros((nodes, 6)))


def no_factor(bodies: int) -> FactorArrays:
    """That of no joints at all."""
    p = Pattern.of(np.zeros((0, 4), np.int32), np.zeros(0, np.int64), np.zeros(bodies, bool))
    none = np.zeros(0)
    return FactorArrays(
        p.mechanism, p.l_start, np.zeros(0, np.int64), none, none, np.zeros(0, np.int64), p.tree, body_factor(p)
    )
