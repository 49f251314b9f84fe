"""Rows of the joints that are solved for exactly: which they are, and at one pose their Jacobians and the factor of
S = G^T M^-1 G + E."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.base import sent_group
from ..backends.joint_arrays import (
    BodyFactor,
    BuiltRows,
    ClosingWork,
    FactorArrays,
    FactorWork,
    JointRows,
    MobilityArrays,
    PatternArrays,
    RowSystem,
    SetArrays,
    SystemArrays,
)
from ..enums import BodyKind, RowRole
from ..kernels import joint_steps as formulas
from ..kernels.joint_steps import SUMS
from ..kernels.joint_trees import MOST_ROWS
from ..scene.model import Model
from .elimination import Pattern, row_bodies

__all__ = ["JointSystem", "RowSet", "built_rows", "joint_rows", "mobility_arrays", "no_factor"]


class RowSet:
    """Some rows in the order of elimination, with a system at the pose of the kick and one at the end of the step.

    Arrays with a backend's name are where its passes read them; those without are NumPy's."""

    def __init__(
        self, model: Model, backend: ModuleType, rows: np.ndarray, movable: np.ndarray, offset: np.ndarray
    ) -> None:
        """offset: of all rows."""
        j, self._backend = model.joints, backend
        bodies = row_bodies(j.row_coord, j.coord_frame, j.frame_body)
        whole = np.where(model.body_mass > 0.0, model.body_inertia.min(axis=1, initial=np.inf), 0.0)
        free = (whole > 0.0) & ~np.any(model.body_locked, axis=1)
        self.pattern = Pattern.of(bodies[rows], j.row_element[rows], movable, free, by_bodies=not backend.HOSTED)
        self.rows = rows[self.pattern.order]
        """Numbers of the rows"""
        self.mechanism = np.repeat(np.arange(len(self.pattern.mechanism) - 1), np.diff(self.pattern.mechanism))
        """(rows,) mechanism of each"""
        self.arrays = joint_rows(model, self.rows, offset)
        self.body, self.coord, self.weight = self.arrays.body, self.arrays.coord, self.arrays.weight
        role = self.arrays.role
        self.rigid, self.speed, self.motor = self.arrays.rigid, role == RowRole.SPEED, self.arrays.motor
        self.exact = self.rigid | self.speed
        """Rows that hold in velocity"""
        self._inverse_mass = backend.send(model.body_inverse_mass)
        self._sent = sent_group(backend, self.arrays)
        self._pattern = pattern_arrays(self.pattern, backend)
        self.kick = self._system()
        self._end: JointSystem | None = None
        zeros, n, mechanisms = backend.zeros, len(rows), len(self.pattern.mechanism) - 1
        numbers, rounds = [zeros(n) for _ in range(6)], [zeros((6, n)) for _ in range(3)]
        closing = ClosingWork._make([*numbers, *rounds, zeros((model.body_count, 6)), zeros((mechanisms, 6, 7))])
        scratch = (backend.send(self.exact), *(zeros(n) for _ in range(4)), closing)
        self.kicked = SetArrays(*self.kick.groups, *scratch, zeros((SUMS, mechanisms)))
        """What passes read and write: at the kick, .."""
        self.closed = self.kicked._replace(sums=zeros((SUMS, mechanisms)))
        """.. when its joints are closed, .."""
        self._ended = scratch, zeros((SUMS, mechanisms))

    def _system(self) -> JointSystem:
        return JointSystem(self._backend, self.pattern, self._sent, self._pattern, self._inverse_mass)

    @property
    def end(self) -> JointSystem:
        """The rows at the end of the step."""
        if self._end is None:
            self._end = self._system()
            self._at_end = SetArrays(*self._end.groups, *self._ended[0], self._ended[1])
        return self._end

    @property
    def ended(self) -> SetArrays:
        """.. and at the end of the step."""
        assert self.end is not None
        return self._at_end

    def in_mechanisms(self, some: np.ndarray) -> np.ndarray:
        """(mechanisms,) how many of `some` rows (rows,) each mechanism has."""
        total = np.concatenate([[0], np.cumsum(some)])
        return np.diff(total[self.pattern.mechanism])


class JointSystem:
    """Rows in the order of elimination. `assemble` first, then the rest."""

    def __init__(
        self, backend: ModuleType, pattern: Pattern, rows: JointRows, entries: PatternArrays, inverse_mass: np.ndarray
    ) -> None:
        self._backend, self._inverse_mass, zeros = backend, inverse_mass, backend.zeros
        self.rows, self.body, n = rows, rows.body, len(rows.body)
        self.built = sent_group(backend, built_rows(n))
        self.compliance = self.built.compliance
        used, mark, path = (zeros(n, np.int64) for _ in range(3))
        self._scratch = FactorWork(used, zeros(n), mark, path)
        self._inverse_inertia = np.zeros((0, 6))
        p, count, send = pattern, int(pattern.l_start[-1]), backend.send
        self._pattern = entries
        self.factors = FactorArrays(
            send(p.mechanism), send(p.l_start), zeros(count, np.int64), zeros(count), zeros(n),
            zeros(len(p.mechanism) - 1, np.int64), sent_group(backend, p.tree), sent_group(backend, body_factor(p)),
        )  # fmt: skip
        self.arrays = RowSystem(rows, self.built, self.factors)
        self.groups = self.arrays, entries, self._scratch
        self._build, self._hold = backend.over_rows(formulas.build_row), backend.over_rows(formulas.hold_row)

    def assemble(
        self, value: np.ndarray, target: np.ndarray, coord_jacobian: np.ndarray, inverse_inertia: np.ndarray
    ) -> None:
        """The Jacobians G and M^-1 G and the violations from the coordinates (c,), theirs (c, 12), and motors'
        targets."""
        self._inverse_inertia = inverse_inertia
        self._build(
            len(self.body), self.rows, value, target, coord_jacobian, self._inverse_mass, inverse_inertia, self.built
        )

    def hold(self, held: np.ndarray) -> None:
        """Factor S of the rows that are `held` (rows,)."""
        self._hold(len(self.body), held, self.compliance)
        self.factor()

    def factor(self) -> None:
        """Factor S with the compliance that is set."""
        b = self.built
        system = SystemArrays(
            self.body, self._inverse_mass, self._inverse_inertia, b.jacobian, b.weighted, b.compliance, b.whole
        )
        self._backend.factor_joints(self._pattern, system, self.factors, self._scratch)

    @property
    def dropped(self) -> int:
        """Rows that depend on others."""
        return int(self._backend.total(len(self.factors.dropped), self.factors.dropped))

    @property
    def dropped_in(self) -> np.ndarray:
        """(mechanisms,) rows that depend on others."""
        return self.factors.dropped

    def speeds(self, velocity: np.ndarray) -> np.ndarray:
        """G^T v (rows,) of velocities (n, 6)."""
        out = np.zeros(len(self.body))
        self._backend.row_speeds(self.body, self.built.jacobian, velocity, out)
        return out

    def solve(self, y: np.ndarray) -> None:
        """y = S^+ y."""
        self._backend.solve_joints(self.factors, y)

    def stopping(self, velocity: np.ndarray) -> np.ndarray:
        """Impulses (rows,) after which velocities (n, 6) have no speed across the rows without compliance."""
        y = np.where(self.compliance == 0.0, -self.speeds(velocity), 0.0)
        self.solve(y)
        return y

    def push(self, y: np.ndarray, velocity: np.ndarray) -> None:
        """v += M^-1 G y."""
        self._backend.push_rows(self.body, self.built.weighted, y, velocity)


def joint_rows(model: Model, rows: np.ndarray, offset: np.ndarray) -> JointRows:
    """What is fixed of some rows; offset: of all."""
    j = model.joints
    body = np.ascontiguousarray(row_bodies(j.row_coord, j.coord_frame, j.frame_body)[rows])
    role, motor = j.row_role[rows], j.row_motor[rows].astype(np.int64)
    driven = (motor >= 0) & (role != RowRole.SPEED) & (role != RowRole.BOUNDED_SPEED)
    return JointRows(
        rows.astype(np.int64), body, np.ascontiguousarray(j.row_coord[rows]), np.ascontiguousarray(j.row_weight[rows]),
        offset[rows], role, role == RowRole.RIGID, motor, driven, j.row_stiffness[rows], j.row_damping[rows],
        j.row_most[rows], *_eases(model, body),
    )  # fmt: skip


def _eases(model: Model, body: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows, 4) inverse masses and inverse least moments of inertia of the rows' bodies, 0 where there is none."""
    dynamic = model.body_kind == BodyKind.DYNAMIC
    light = np.where(dynamic, 1.0 / np.where(dynamic, model.body_mass, 1.0), 0.0)
    least = np.where(dynamic, model.body_inertia.min(axis=1, initial=np.inf), 1.0)
    nimble = np.where(dynamic, 1.0 / np.where(least > 0.0, least, 1.0), 0.0)
    sides = np.maximum(body, 0)
    return np.where(body >= 0, light[sides], 0.0), np.where(body >= 0, nimble[sides], 0.0)


def pattern_arrays(pattern: Pattern, backend: ModuleType) -> PatternArrays:
    """Which rows touch which."""
    p = pattern
    return sent_group(backend, PatternArrays(p.start, p.column, p.pair_start, p.pair, p.parent))


def built_rows(n: int) -> BuiltRows:
    """Room for n rows."""
    return BuiltRows(np.zeros((n, 24)), np.zeros((n, 24)), *(np.zeros(n) for _ in range(5)))


def body_factor(pattern: Pattern) -> BodyFactor:
    """Room for what eliminating bodies leaves."""
    nodes, rows = len(pattern.tree.body), len(pattern.order) if len(pattern.tree.body) else 0
    six = [np.zeros((rows, 6)) for _ in range(3)]
    whole, own = np.zeros(len(pattern.mechanism) - 1, bool), np.zeros((nodes, 36))
    return BodyFactor._make([whole, own, *six, np.zeros((rows, MOST_ROWS)), np.zeros((nodes, 6))])


def mobility_arrays(pattern: Pattern) -> MobilityArrays:
    """Room for the answers of nodes."""
    nodes, rows = len(pattern.tree.body), len(pattern.order) if len(pattern.tree.body) else 0
    three = [np.zeros((nodes, 36)) for _ in range(3)]
    return MobilityArrays._make([*three, np.zeros((rows, 6)), np.zeros((nodes, 6))])


def no_factor(bodies: int) -> FactorArrays:
    """That of no joints at all."""
    p = Pattern.of(np.zeros((0, 4), np.int32), np.zeros(0, np.int64), np.zeros(bodies, bool))
    none = np.zeros(0)
    return FactorArrays(
        p.mechanism, p.l_start, np.zeros(0, np.int64), none, none, np.zeros(0, np.int64), p.tree, body_factor(p)
    )
