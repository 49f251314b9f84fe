"""Joints in a step: their rows, the elimination of the equalities, and the projection back onto the joints (SHAKE).

A row is g = weight . coordinates - offset. Equalities (joints, gears, driving motors, springs) obey
G^T v + b + E y = 0 with the impulse y: rigid b = g/h, springs E = 1 / (h (h k + d)), b = k g / (h k + d), speeds
b = -target. Limits, motors with a maximum and joint friction are bounded rows of the cone problem.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.base import ArticulatedArrays, ContactArrays
from ..enums import BodyKind, MotorMode, RowRole
from ..errors import BlowUpError, SceneError, message
from ..kernels.joints import ANGLE
from ..scene import rotation
from ..scene.joint_model import Target
from ..scene.model import Model, State
from .elimination import Pattern, row_bodies

__all__ = ["Joints"]

PROJECTIONS = 12
"""Rounds of the projection at most; two or three are usual."""
PROJECTED = 1e-13
"""Violation at which it ends [m or rad, times the size of the mechanism where that is larger than 1]."""
LIMIT_SLACK = 0.02
"""A limit is a row from this distance on [rad, or of the limit's size]."""
LIMIT_RECOVERY = 1.0
"""Speed at which a violated limit is restored at most [rad/s or m/s]."""


class Joints:
    """The joints of a model: fixed patterns and the numbers of the present step."""

    def __init__(self, model: Model, backend: ModuleType) -> None:
        j, self._model, self._backend = model.joints, model, backend
        self.model = j
        self.count = j.row_count
        movable = np.any(model.body_inverse_mass > 0.0, axis=1) | (
            (model.body_mass > 0.0) & ~np.all(model.body_locked[:, 3:], axis=1)
        )
        bodies = row_bodies(j.row_coord, j.coord_frame, j.frame_body)
        equality, self._bounded = j.equality_rows, j.bounded_rows
        self._pattern = p = Pattern.of(bodies[equality], j.row_element[equality], movable)
        self._equality = equality[p.order]  # rows in the order of elimination
        self._body = np.ascontiguousarray(bodies[self._equality])
        self._all_bounded_body = np.ascontiguousarray(bodies[self._bounded])
        n, c = len(self._equality), j.coord_count
        self._value, self._second = np.zeros(c), np.zeros(c)
        self._coord_jacobian = np.zeros((c, 12))
        self._trial_jacobian = np.zeros((c, 12))
        self._jacobian, self._weighted = np.zeros((n, 24)), np.zeros((n, 24))
        self._compliance, self._bias = np.zeros(n), np.zeros(n)
        self._l_row = np.zeros(int(p.l_start[-1]), np.int64)
        self._l_value = np.zeros(int(p.l_start[-1]))
        self._l_used, self._mark, self._path = (np.zeros(n, np.int64) for _ in range(3))
        self._inverse_pivot, self._work, self._reaction = np.zeros(n), np.zeros(n), np.zeros(n)
        self._dropped = np.zeros(max(1, len(p.cluster) - 1), np.int64)
        self.impulse = np.zeros(self.count)
        """(r,) impulses of all rows in this step [N s or N m s]"""
        self._angles = np.flatnonzero(j.coord_kind == ANGLE)
        self._rigid = j.row_role[self._equality] == RowRole.RIGID
        self._touched = np.unique(j.frame_body).astype(np.int64)
        self._trial_position = model.initial.position.copy()
        self._trial_orientation = model.initial.orientation.copy()
        cluster_bodies = [np.flatnonzero(p.cluster_of == k) for k in range(len(p.cluster) - 1)]
        self._cluster_body = np.concatenate([*cluster_bodies, np.zeros(0, np.int64)]).astype(np.int64)
        self._cluster_body_start = np.cumsum([0] + [len(b) for b in cluster_bodies]).astype(np.int64)
        self._targets = np.zeros(len(j.motors))
        self.targets: list[Target] = [m.target for m in j.motors]
        """What each motor is to reach; may be changed between steps"""
        self._size = max(1.0, float(np.abs(j.frame_position).max(initial=0.0)))
        role = j.row_role[self._equality]
        self._soft_rows, self._speed_rows = role == RowRole.SPRING, role == RowRole.SPEED
        self._two = np.flatnonzero(j.row_coord[:, 1] >= 0)
        self._driven = np.flatnonzero(
            (j.row_motor >= 0) & (j.row_role != RowRole.SPEED) & (j.row_role != RowRole.BOUNDED_SPEED)
        )
        self._offset = j.row_offset.copy()
        self._close_gears(model.initial)
        self._slack = np.where(
            j.coord_kind[j.row_coord[:, 0]] == ANGLE, LIMIT_SLACK, LIMIT_SLACK * np.abs(np.nan_to_num(self._offset))
        )
        self._torque_motors = np.array([k for k, m in enumerate(j.motors) if m.mode == MotorMode.TORQUE], np.int64)
        self._bounded_arrays = (
            np.zeros((0, 4), np.int32), np.zeros((0, 24)), np.zeros((0, 24)), np.zeros(0),
        )  # fmt: skip
        self.bias, self.bound = np.zeros(0), np.zeros(0)
        self._start_position, self._start_orientation = model.initial.position, model.initial.orientation
        self.active = np.zeros(0, np.int64)
        """Bounded rows of this step, as numbers of rows"""
        self.drift = self.drift_before = 0.0
        self._worst = 0
        self._dynamic = (model.body_kind == BodyKind.DYNAMIC)[:, None]
        self._arrays: ArticulatedArrays | None = None

    # ------------------------------------------------------------------ the present step

    def prepare(self, state: State, h: float, inverse_inertia: np.ndarray, free: np.ndarray) -> None:
        """Rows at the present pose, targets of the motors, the factor; then `free` (n, 6) obeys the equalities."""
        j, b = self.model, self._backend
        value = self.coordinates(state, self._coord_jacobian)
        b.row_jacobians(
            self._equality, j.row_coord, j.row_weight, self._body, self._coord_jacobian,
            self._model.body_inverse_mass, inverse_inertia, self._jacobian, self._weighted,
        )  # fmt: skip
        self._set_targets(state, h, value)
        g = self._violation(value)
        self._set_equalities(g[self._equality], h)
        p = self._pattern
        b.factor_joints(
            p.cluster, p.start, p.column, p.pair_start, p.pair, self._jacobian, self._weighted, self._compliance,
            p.parent, p.l_start, self._l_row, self._l_value, self._l_used, self._inverse_pivot, self._work,
            self._mark, self._path, self._dropped,
        )  # fmt: skip
        self.impulse[:] = 0.0
        self._start_position, self._start_orientation = state.position.copy(), state.orientation.copy()
        self._push_torques(h, inverse_inertia, free)
        rhs = np.zeros(len(self._equality))
        b.row_speeds(self._body, self._jacobian, free, rhs)
        rhs += self._bias
        self._rhs = rhs.copy()
        b.solve_joints(p.cluster, p.l_start, self._l_row, self._l_value, self._inverse_pivot, rhs)
        b.push_rows(self._body, self._weighted, -rhs, free)
        self.impulse[self._equality] -= rhs
        self._set_bounded(g, h, inverse_inertia, free)

    def coordinates(self, state: State, jacobian: np.ndarray) -> np.ndarray:
        """Values (c,) at a state; angles go on counting turns from `state.coordinate`."""
        return self._coordinates(state.position, state.orientation, state.coordinate, jacobian)

    def _coordinates(
        self, position: np.ndarray, orientation: np.ndarray, before: np.ndarray, jacobian: np.ndarray
    ) -> np.ndarray:
        j = self.model
        self._backend.coordinates(
            j.frame_body, j.frame_position, j.frame_orientation, j.coord_kind, j.coord_frame, j.coord_axis, position,
            orientation, self._value, self._second, jacobian,
        )  # fmt: skip
        out = self._value.copy()
        if self._angles.size:
            k = self._angles
            angle = np.arctan2(out[k], self._second[k])
            if len(before):
                angle += 2.0 * np.pi * np.round((before[k] - angle) / (2.0 * np.pi))
            out[k] = angle
        return out

    def _violation(self, value: np.ndarray) -> np.ndarray:
        """g (r,) of every row."""
        j = self.model
        g = j.row_weight[:, 0] * value[j.row_coord[:, 0]] - self._offset
        if self._two.size:
            g[self._two] += j.row_weight[self._two, 1] * value[j.row_coord[self._two, 1]]
        if self._driven.size:
            g[self._driven] -= self._targets[j.row_motor[self._driven]]
        return g

    def _set_targets(self, state: State, h: float, value: np.ndarray) -> None:
        """What the motors want at the end of the step; controllers are called with values and speeds."""
        j = self.model
        for k, motor in enumerate(j.motors):
            self._targets[k] = _at(self.targets[k], state.time + h, f"motor '{motor.name}'")
        if not j.controllers:
            return
        velocity = np.concatenate([state.velocity, _world_spin(state)], axis=1)
        for controller in j.controllers:
            c = np.array([j.motors[k].coordinate for k in controller.motors])
            speed = np.einsum(
                "ks,ks->k", self._coord_jacobian[c], velocity[j.frame_body[j.coord_frame[c]]].reshape(-1, 12)
            )
            try:
                target = np.asarray(controller.callback(state.time, value[c].copy(), speed), float)
                if target.shape != c.shape:
                    raise ValueError(f"shape {target.shape}")
            except (TypeError, ValueError) as cause:
                raise SceneError(
                    message(
                        f"controller '{getattr(controller.callback, '__name__', 'callback')}'",
                        f"must return targets of shape {c.shape}",
                        cause,
                        "One number for each of its motors.",
                    )
                ) from cause
            if not np.all(np.isfinite(target)):
                name = j.motors[int(controller.motors[int(np.argmax(~np.isfinite(target)))])].name
                raise BlowUpError(
                    message(
                        f"controller at t = {state.time:g} s",
                        "must return finite targets",
                        f"{target[~np.isfinite(target)][0]} for motor '{name}'",
                        "The state before this step is kept.",
                    )
                )
            self._targets[controller.motors] = target

    def _set_equalities(self, g: np.ndarray, h: float) -> None:
        """Bias and compliance of the equality rows."""
        np.multiply(g, 1.0 / h, out=self._bias)
        self._compliance[:] = 0.0
        soft, speed = self._soft_rows, self._speed_rows
        if soft.any():
            rows = self._equality[soft]
            k, d = self.model.row_stiffness[rows], self.model.row_damping[rows]
            self._bias[soft], self._compliance[soft] = _soft(g[soft], k, d, h)
        if speed.any():
            self._bias[speed] = -self._targets[self.model.row_motor[self._equality[speed]]]

    def _push_torques(self, h: float, inverse_inertia: np.ndarray, free: np.ndarray) -> None:
        """Impulses of torque motors into the free velocity."""
        j = self.model
        if not self._torque_motors.size:
            return
        c = np.array([[j.motors[k].coordinate, -1] for k in self._torque_motors], np.int64)
        n = len(c)
        body = row_bodies(c, j.coord_frame, j.frame_body)
        self._torque_body, self._torque_jacobian, weighted = body, np.zeros((n, 24)), np.zeros((n, 24))
        self._backend.row_jacobians(
            np.arange(n), c, np.ones((n, 2)), body, self._coord_jacobian, self._model.body_inverse_mass,
            inverse_inertia, self._torque_jacobian, weighted,
        )  # fmt: skip
        self._torque_impulse = h * self._targets[self._torque_motors]
        self._backend.push_rows(body, weighted, self._torque_impulse, free)

    def _set_bounded(self, g: np.ndarray, h: float, inverse_inertia: np.ndarray, free: np.ndarray) -> None:
        """The bounded rows that count in this step, with their bias and bounds."""
        j, rows = self.model, self._bounded
        n = len(rows)
        if n == 0:
            return
        jacobian, weighted = np.zeros((n, 24)), np.zeros((n, 24))
        self._backend.row_jacobians(
            rows, j.row_coord, j.row_weight, self._all_bounded_body, self._coord_jacobian,
            self._model.body_inverse_mass, inverse_inertia, jacobian, weighted,
        )  # fmt: skip
        speed = np.zeros(n)
        self._backend.row_speeds(self._all_bounded_body, jacobian, free, speed)
        role = j.row_role[rows]
        limit = (role == RowRole.LOWER) | (role == RowRole.UPPER)
        bias = g[rows] / h
        bias[limit] = np.maximum(bias[limit], -LIMIT_RECOVERY)
        bias[role == RowRole.FRICTION] = 0.0
        driven = role == RowRole.BOUNDED_SPEED
        bias[driven] = -self._targets[j.row_motor[rows[driven]]]
        compliance = np.zeros(n)
        soft = (role == RowRole.BOUNDED_POSITION) & (j.row_stiffness[rows] > 0.0)
        bias[soft], compliance[soft] = _soft(g[rows[soft]], j.row_stiffness[rows[soft]], j.row_damping[rows[soft]], h)
        keep = ~limit | (g[rows] <= self._slack[rows] + 2.0 * h * np.abs(speed))
        self.active = rows[keep]
        self.bias = (bias + speed)[keep]
        # mu of the blocks: 0 for a limit, minus the largest impulse otherwise
        self.bound = np.where(limit, 0.0, -h * j.row_most[rows])[keep]
        self._bounded_arrays = tuple(
            np.ascontiguousarray(x[keep]) for x in (self._all_bounded_body, jacobian, weighted, compliance)
        )

    def arrays(self, contacts: ContactArrays) -> ArticulatedArrays:
        """Everything the operator needs."""
        p = self._pattern
        self._arrays = ArticulatedArrays(
            contacts, p.cluster, self._body, self._jacobian, self._weighted, p.l_start, self._l_row, self._l_value,
            self._inverse_pivot, self._reaction, *self._bounded_arrays,
        )  # fmt: skip
        return self._arrays

    def diagonal(self, arrays: ArticulatedArrays, out: np.ndarray) -> None:
        """Diagonal blocks with the joints; `out` has those of the contacts alone."""
        self._backend.articulated_diagonal(
            arrays, self._pattern.cluster_of, self._cluster_body_start, self._cluster_body, out
        )

    # ------------------------------------------------------------------ after the solve

    def take_reactions(self, bounded: np.ndarray) -> None:
        """The impulses after the contacts have been solved: `bounded` (active,), and what the elimination answered."""
        self.impulse[self._equality] -= self._reaction
        self.impulse[self.active] = bounded

    def project(
        self, state: State, matrix: np.ndarray, velocity: np.ndarray, h: float, poses: dict[int, tuple]
    ) -> None:
        """Change the new velocity (n, 6) so that the rigid rows hold exactly at the end of the step.

        Along M^-1 G^T of the old pose, as SHAKE does: the change belongs to the impulses, and the energy stays.
        """
        b, p = self._backend, self._pattern
        g = np.zeros(len(self._equality))
        last = np.inf
        self.drift = self.drift_before = 0.0
        for k in range(PROJECTIONS):
            violation = self.violation_at(state, matrix, velocity, h, poses)[self._equality]
            g[:] = np.where(self._rigid, violation, 0.0)
            self._worst = int(np.argmax(np.abs(g))) if len(g) else 0
            worst = float(abs(g[self._worst])) if len(g) else 0.0
            self.drift_before = worst if k == 0 else self.drift_before
            self.drift = worst
            if worst <= PROJECTED * self._size or (worst >= 0.5 * last and k > 2) or not np.isfinite(worst):
                break
            last = worst
            y = g / -h
            b.solve_joints(p.cluster, p.l_start, self._l_row, self._l_value, self._inverse_pivot, y)
            b.push_rows(self._body, self._weighted, y, velocity)
            self.impulse[self._equality] += y

    def violation_at(
        self, state: State, matrix: np.ndarray, velocity: np.ndarray, h: float, poses: dict[int, tuple]
    ) -> np.ndarray:
        """g (r,) of all rows after moving with `velocity` for h."""
        self._backend.trial_pose(
            self._touched, matrix, state.position, state.orientation, velocity, h, self._trial_position,
            self._trial_orientation,
        )  # fmt: skip
        for body, (position, orientation) in poses.items():
            self._trial_position[body], self._trial_orientation[body] = position, orientation
        value = self._coordinates(self._trial_position, self._trial_orientation, state.coordinate, self._trial_jacobian)
        return self._violation(value)

    def work_done(self, before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
        """Work on dynamic bodies over the step, with velocities (n, 6) before and after [J]: all rows, and motors."""
        mean = np.where(self._dynamic, 0.5 * (before + after), 0.0)
        motor = self.model.row_motor
        parts = [
            (self._body, self._jacobian, self.impulse[self._equality], motor[self._equality] >= 0),
            (*self._bounded_arrays[:2], self.impulse[self.active], motor[self.active] >= 0),
        ]
        if self._torque_motors.size:
            own = np.ones(len(self._torque_body), bool)
            parts.append((self._torque_body, self._torque_jacobian, self._torque_impulse, own))
        total = by_motors = 0.0
        for body, jacobian, impulse, is_motor in parts:
            if len(body):
                speed = np.zeros(len(body))
                self._backend.row_speeds(body, jacobian, mean, speed)
                work = impulse * speed
                total += float(work.sum())
                by_motors += float(work[is_motor].sum())
        return total, by_motors

    def worst_joint(self) -> str:
        """Name of the joint that is open most after the last projection."""
        return self.model.names[int(self.model.row_element[self._equality[self._worst]])]

    # ------------------------------------------------------------------ forces

    def wrenches(self, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Force (e, 3) and torque (e, 3) of every element on its body b at its anchor, and the force or torque along
        its coordinate (e,) by motors, springs, friction and limits: means over the step, world axes."""
        j = self.model
        first = np.concatenate([j.row_coord[:, 0], [j.motors[k].coordinate for k in self._torque_motors]]).astype(int)
        element = np.concatenate([j.row_element, [j.motors[k].element for k in self._torque_motors]]).astype(int)
        weight = np.concatenate([j.row_weight[:, 0], np.ones(len(self._torque_motors))])
        extra = self._torque_impulse if self._torque_motors.size else np.zeros(0)
        own = weight * np.concatenate([self.impulse, extra]) / h
        count = len(j.elements)
        force, torque, effort = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
        np.add.at(force, element, own[:, None] * self._coord_jacobian[first, 6:9])
        np.add.at(torque, element, own[:, None] * self._coord_jacobian[first, 9:12])
        frame = np.array([e.frame for e in j.elements], int)
        b = j.frame_body[frame, 1]
        arm = rotation.rotate(self._start_orientation[b], j.frame_position[2 * frame + 1])
        torque -= np.cross(arm, force)
        along = np.array([[e.turn, e.slide] for e in j.elements])[element]
        free = np.concatenate([j.row_role != RowRole.RIGID, np.ones(len(extra), bool)]) | (
            np.concatenate([j.row_motor >= 0, np.ones(len(extra), bool)])
        )
        free &= (first == along[:, 0]) | (first == along[:, 1])
        np.add.at(effort, element[free], own[free])
        return force, torque, effort

    def speeds(self, state: State) -> np.ndarray:
        """(c,) speeds of the coordinates now."""
        j = self.model
        self.coordinates(state, self._trial_jacobian)
        velocity = np.concatenate([state.velocity, _world_spin(state)], axis=1)
        return np.einsum("ks,ks->k", self._trial_jacobian, velocity[j.frame_body[j.coord_frame]].reshape(-1, 12))

    def frame_orientations(self) -> np.ndarray:
        """(e, 4) frames A of the elements at the start of the step."""
        j = self.model
        frame = np.array([e.frame for e in j.elements], int)
        return rotation.multiply(self._start_orientation[j.frame_body[frame, 0]], j.frame_orientation[2 * frame])

    # ------------------------------------------------------------------ assembling

    def close(self, state: State, inverse_inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One Newton step towards g = 0 at the present pose: displacements (n, 6) and the violations g (r,).

        Springs and speeds do not count (their compliance is huge).
        """
        b, p, j = self._backend, self._pattern, self.model
        value = self.coordinates(state, self._coord_jacobian)
        b.row_jacobians(
            self._equality, j.row_coord, j.row_weight, self._body, self._coord_jacobian,
            self._model.body_inverse_mass, inverse_inertia, self._jacobian, self._weighted,
        )  # fmt: skip
        for k, motor in enumerate(j.motors):
            self._targets[k] = _at(self.targets[k], state.time, f"motor '{motor.name}'")
        g = self._violation(value)
        self._compliance[:] = np.where(self._rigid, 0.0, 1e30)
        b.factor_joints(
            p.cluster, p.start, p.column, p.pair_start, p.pair, self._jacobian, self._weighted, self._compliance,
            p.parent, p.l_start, self._l_row, self._l_value, self._l_used, self._inverse_pivot, self._work,
            self._mark, self._path, self._dropped,
        )  # fmt: skip
        y = np.where(self._rigid, -g[self._equality], 0.0)
        b.solve_joints(p.cluster, p.l_start, self._l_row, self._l_value, self._inverse_pivot, y)
        move = np.zeros((len(state.position), 6))
        b.push_rows(self._body, self._weighted, y, move)
        g[~np.isin(np.arange(self.count), self._equality[self._rigid])] = 0.0
        return move, g

    def still(self, state: State, velocity: np.ndarray) -> None:
        """Change velocities (n, 6) so that the rigid rows hold in velocity; after `close` at the same pose."""
        b, p, j = self._backend, self._pattern, self.model
        y = np.zeros(len(self._equality))
        b.row_speeds(self._body, self._jacobian, velocity, y)
        for row, motor in enumerate(j.row_motor[self._equality]):
            if motor >= 0 and callable(j.motors[motor].target):
                e = 1e-6
                rate = (j.motors[motor].target(state.time + e) - j.motors[motor].target(state.time)) / e
                y[row] -= float(rate)
        y = np.where(self._rigid, -y, 0.0)
        b.solve_joints(p.cluster, p.l_start, self._l_row, self._l_value, self._inverse_pivot, y)
        b.push_rows(self._body, self._weighted, y, velocity)

    # ------------------------------------------------------------------ what depends on what

    @property
    def redundant(self) -> int:
        """Rows that depend on others at the present pose."""
        return int(self._dropped.sum()) if len(self._pattern.cluster) > 1 else 0

    def redundant_names(self) -> list[tuple[str, ...]]:
        """For every row that depends on others: the joints involved, the one whose row was dropped first."""
        return [names for names, _ in self._dependencies(None)]

    def contradictions(self, tolerance: float) -> list[tuple[tuple[str, ...], float]]:
        """Dependent rows that the rows before them do not let be: the joints that fight and by how much."""
        return [(names, miss) for names, miss in self._dependencies(self._rhs) if miss > tolerance]

    def _dependencies(self, rhs: np.ndarray | None) -> list[tuple[tuple[str, ...], float]]:
        p, out = self._pattern, []
        dropped = np.flatnonzero(self._inverse_pivot == 0.0)
        if not dropped.size:
            return out
        left = np.zeros(len(self._equality)) if rhs is None else rhs.copy()
        self._backend.forward_joints(p.cluster, p.l_start, self._l_row, self._l_value, left)
        names = self.model.names
        for k in dropped:
            z = np.zeros(len(self._equality))
            z[k] = 1.0
            for i in range(k - 1, -1, -1):  # z = L^-T e_k: the combination of rows that vanishes
                low, high = p.l_start[i], p.l_start[i + 1]
                z[i] = -(self._l_value[low:high] @ z[self._l_row[low:high]])
            involved = [int(k)] + [int(i) for i in np.argsort(-np.abs(z)) if i != k and abs(z[i]) > 1e-6]
            elements = dict.fromkeys(names[self.model.row_element[self._equality[i]]] for i in involved)
            out.append((tuple(elements), float(abs(left[k]))))
        return out

    def _close_gears(self, state: State) -> None:
        """Offsets that were left open (NaN): such that the row holds at the start."""
        open_rows = np.flatnonzero(np.isnan(self._offset))
        if open_rows.size:
            self._offset[open_rows] = 0.0
            value = self._coordinates(state.position, state.orientation, np.zeros(0), self._coord_jacobian)
            self._offset[open_rows] = self._violation(value)[open_rows]


def _soft(g: np.ndarray, k: np.ndarray, d: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Bias and compliance of springs and dampers, implicit."""
    s = h * k + d
    return k * g / s, 1.0 / (h * s)


def _at(target: Target, time: float, where: str) -> float:
    value = float(target(time)) if callable(target) else float(target)
    if not np.isfinite(value):
        raise BlowUpError(message(where, "its target must be finite", value, f"At t = {time:g} s."))
    return value


def _world_spin(state: State) -> np.ndarray:
    return rotation.rotate(state.orientation, state.spin)
