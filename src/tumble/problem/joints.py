"""Joints in a step: their rows, the elimination of the equalities, and the projection back onto the joints (SHAKE).

A row is g = weight . coordinates - offset. Equalities (joints, gears, driving motors, springs) obey
G^T v + b + E y = 0 with the impulse y: rigid b = g/h, springs E = 1 / (h (h k + d)), b = k g / (h k + d), speeds
b = -target. Limits, motors with a maximum and joint friction are bounded rows of the cone problem.
"""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

import numpy as np

from .. import checks
from ..backends.base import (
    ArticulatedArrays,
    ContactArrays,
    EqualityArrays,
    FrameArrays,
    KickedArrays,
)
from ..enums import BodyKind, MotorMode, RowRole
from ..errors import BlowUpError, SceneError, message
from ..kernels.joints import ANGLE
from ..scene import rotation
from ..scene.joint_model import Target
from ..scene.model import Model, State
from .drift_energy import DriftEnergy, common_motions, locked_twists, resisted_twists
from .elimination import row_bodies
from .joint_system import JointSystem, RowSet

__all__ = ["Joints"]

PROJECTED = 1e-13
"""Violation at which the projection ends [in sizes of the mechanism for lengths, rad for angles]."""
CLOSED = 1e-9
"""Violation up to which joints count as closed, likewise."""
HUGE = 1e30
"""Compliance of a row that does not count."""
LIMIT_SLACK = 0.02
"""A limit is a row from this distance on [rad, or of the limit's size]."""
LIMIT_RECOVERY = 10.0
"""A violated limit is restored at this rate [1/s]: softly, so that nothing is thrown off it."""
NO_IMPULSE = -1e-300
"""The interval of a row that cannot move anything."""


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
        self._bounded = j.bounded_rows
        self._exact = RowSet(model, backend, j.equality_rows, movable)
        self._pattern = p = self._exact.pattern
        self.equality, self._body = self._exact.rows, self._exact.body
        """Equality rows in the order of elimination"""
        self._movable = movable
        self._stops: RowSet | None = None
        self._all_bounded_body = np.ascontiguousarray(bodies[self._bounded])
        n, c = len(self.equality), j.coord_count
        self._value, self._second = np.zeros(c), np.zeros(c)
        self._coord_jacobian = np.zeros((c, 12))
        self._trial_jacobian = np.zeros((c, 12))
        self.system = self._exact.kick
        """The equality rows at the pose of the kick"""
        self._bias, self._reaction = np.zeros(n), np.zeros(n)
        self._kick_value = np.zeros(c)
        self.impulse = np.zeros(self.count)
        """(r,) impulses of all rows in this step's kick [N s or N m s]"""
        self.end_impulse = np.zeros(self.count)
        """(r,) impulses that belong to this step's kick: of Moreau's integrator those at its start and end, of Euler's
        those at the end of the step before, at the same pose"""
        self._symmetric, self._left = False, np.zeros(n)
        self._angles = np.flatnonzero(j.coord_kind == ANGLE)
        self._rigid = self._exact.rigid
        self._trial_position = model.initial.position.copy()
        self._trial_orientation = model.initial.orientation.copy()
        cluster_bodies = [np.flatnonzero(p.cluster_of == k) for k in range(len(p.cluster) - 1)]
        self._cluster_body = np.concatenate([*cluster_bodies, np.zeros(0, np.int64)]).astype(np.int64)
        self._cluster_body_start = np.cumsum([0] + [len(b) for b in cluster_bodies]).astype(np.int64)
        touched = np.unique(j.frame_body).astype(np.int64)
        self._unmoved = touched[p.cluster_of[touched] < 0]
        self._frames = FrameArrays(
            j.frame_body, j.frame_position, j.frame_orientation, j.coord_kind, j.coord_frame, j.coord_axis
        )
        clusters = len(p.cluster) - 1
        self._small, self._found = np.zeros((clusters, 6, 7)), np.zeros((clusters, 4))
        self._targets = np.zeros(len(j.motors))
        self._functions = [k for k, m in enumerate(j.motors) if callable(m.target)]
        self._constant = np.array([0.0 if callable(m.target) else float(m.target) for m in j.motors])
        self._told = {int(k) for controller in j.controllers for k in controller.motors}
        self.functions: dict[int, Target] = {}
        """Functions of time set during a run in place of a motor's target"""
        sizes = model.body_size[touched]
        moved = p.cluster_of[j.frame_body.ravel()] >= 0  # the ground is not as large as it is far
        size = max(np.abs(j.frame_position[moved]).max(initial=0.0), sizes[np.isfinite(sizes)].max(initial=0.0))
        self.size = float(size) if size > 0.0 else 1.0
        """Size of the largest jointed body [m], the scale of what counts as closed"""
        self._soft_rows, self._speed_rows = self._exact.spring, self._exact.speed
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
        self._kept = np.zeros(0, bool)
        self._start_position, self._start_orientation = model.initial.position, model.initial.orientation
        self.active = np.zeros(0, np.int64)
        """Bounded rows of this step, as numbers of rows"""
        self.drift = self.drift_before = 0.0
        self._worst = 0
        self.stuck: tuple[str, ...] = ()
        """Joints that something exact holds beyond their limits"""
        self.fighting: tuple[str, ...] = ()
        """Joints and motors that ask for different speeds of the same motion in this step"""
        self._dynamic = (model.body_kind == BodyKind.DYNAMIC)[:, None]
        self.bodies = touched
        """Bodies that joints touch"""
        self._inverse_inertia = np.zeros((model.body_count, 6))
        self._owed, self.strained = np.zeros(clusters), False
        """Whether the last step was too long for the motion of ideal joints, see `DriftEnergy.keep`"""
        self.energy = self._drift_energy()
        free = np.concatenate([[0], np.cumsum((~model.body_locked[self._cluster_body]).sum(axis=1))])
        self._freedoms = np.diff(free[self._cluster_body_start])
        held = np.isin(j.row_element, j.row_element[j.row_role == RowRole.RIGID])
        self._stop_rows = np.flatnonzero(held & ((j.row_role == RowRole.LOWER) | (j.row_role == RowRole.UPPER)))
        """Limits of joints that hold something rigidly besides"""
        self._tiny = np.where(j.coord_kind[j.row_coord[self._bounded, 0]] == ANGLE, CLOSED, CLOSED * self.size)
        self._start_violation, self._dt = np.zeros(self.count), 0.0
        self._inertia_at_kick = self._inverse_inertia
        self._pressed = np.zeros(0, np.int64)
        """Limits that are stood on throughout the step"""

    def _drift_energy(self) -> DriftEnergy:
        """Kept where nothing is driven: by motors, or joints to bodies of prescribed motion."""
        model, p = self._model, self._pattern
        driven = self._speed_rows | (self._rigid & (self.model.row_motor[self.equality] >= 0))
        kept, motions = [], []
        for c, (first, end) in enumerate(pairwise(p.cluster)):
            own = self._cluster_body[self._cluster_body_start[c] : self._cluster_body_start[c + 1]]
            sides = np.unique(self._body[first:end])
            moved = model.body_kind[sides[sides >= 0]] == BodyKind.KINEMATIC
            kept.append(not (driven[first:end].any() or moved.any()))
            resisted = self._resisted(np.flatnonzero(self._rigid[first:end]) + first)
            motions.append(
                common_motions(np.concatenate([resisted, locked_twists(model.body_locked[own].any(axis=0))]))
            )
        return DriftEnergy(
            model, self._backend, self._cluster_body_start, self._cluster_body, np.array(kept, bool), motions
        )

    def _resisted(self, rows: np.ndarray) -> np.ndarray:
        """Rows (k, 6) that vanish for twists of a whole cluster which its joints to unmoved bodies never resist."""
        j, start, out = self.model, self._model.initial, [np.zeros((0, 6))]
        for element in np.unique(j.row_element[self.equality[rows]]):
            e = j.elements[element]
            for side in range(2):
                body = j.frame_body[e.frame, side]
                if self._pattern.cluster_of[body] < 0:
                    k, q = 2 * e.frame + side, start.orientation[body]
                    place = start.position[body] + rotation.rotate(q, j.frame_position[k])
                    axes = rotation.matrix(rotation.multiply(q, j.frame_orientation[k]))
                    out.append(resisted_twists(e.kind, side, place, axes))
        return np.concatenate(out)

    @property
    def cluster_count(self) -> int:
        """Sets of bodies that are joined to each other."""
        return len(self._pattern.cluster) - 1

    # ------------------------------------------------------------------ the present step

    def prepare(
        self,
        kick: KickedArrays,
        state: State,
        h: float,
        inverse_inertia: np.ndarray,
        free: np.ndarray,
        *,
        theta: float | None = None,
        controllers: bool = True,
        again: bool = False,
    ) -> None:
        """Rows at the pose of the kick, targets of the motors, the factor; then `free` (n, 6) obeys the equalities.

        theta: of Moreau's integrator, whose rows hold in velocity: rigid ones leave the velocity across them as it is
        (their positions are closed by `begin` and `project`), springs take the mean force of the step. controllers:
        whether they are called. again: once more in the same step, with the same targets.
        """
        if theta is None:
            ahead = state.coordinate
        else:
            ahead = self.predicted(state.coordinate, kick.before, (1.0 - theta) * h, self._trial_jacobian)
        value = self._coordinates(kick.position, kick.orientation, ahead, self._coord_jacobian)
        self._kick_value = value
        self.system.assemble(self._coord_jacobian, inverse_inertia)
        self._dt, self._inertia_at_kick = h, inverse_inertia
        if not again:
            now = state.time + (0.0 if theta is None else (1.0 - theta) * h)
            self._set_targets(state, h, now, value, kick.before, controllers)
        g = self._violation(value)
        self._start_violation = g if theta is None or not len(state.coordinate) else self._violation(state.coordinate)
        self._set_equalities(g[self.equality], h, theta, kick.before)
        self.system.factor()
        self.impulse[:] = 0.0
        self._symmetric = theta is not None
        if not self._symmetric:
            self.end_impulse[self.equality] = state.row_impulse[self.equality]
        self._start_position, self._start_orientation = kick.position.copy(), kick.orientation.copy()
        self._push_torques(h, inverse_inertia, free)
        rhs = self.system.speeds(free) + self._bias
        self._rhs = rhs.copy()
        self._look_for_fights()
        self.system.solve(rhs)
        self.system.push(-rhs, free)
        self.impulse[self.equality] -= rhs
        self._set_bounded(g, h, theta, inverse_inertia, free, kick.before)

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
            near = before if len(before) else j.coord_start
            angle += 2.0 * np.pi * np.round((near[k] - angle) / (2.0 * np.pi))
            out[k] = angle
        return out

    def _violation(self, value: np.ndarray) -> np.ndarray:
        """g (r,) of every row."""
        j = self.model
        g = j.row_weight[:, 0] * value[j.row_coord[:, 0]] - self._wanted()
        if self._two.size:
            g[self._two] += j.row_weight[self._two, 1] * value[j.row_coord[self._two, 1]]
        return g

    def _wanted(self) -> np.ndarray:
        """weight . coordinates (r,) of rows that hold."""
        if not self._driven.size:
            return self._offset
        out = self._offset.copy()
        out[self._driven] += self._targets[self.model.row_motor[self._driven]]
        return out

    def _set_targets(
        self, state: State, h: float, now: float, value: np.ndarray, velocity: np.ndarray, controllers: bool
    ) -> None:
        """What the motors want at the end of the step; controllers are called with values and speeds of now."""
        j = self.model
        self._plain_targets(state, state.time + h)
        if not j.controllers or not controllers:
            return
        for controller in j.controllers:
            c = np.array([j.motors[k].coordinate for k in controller.motors])
            speed = np.einsum(
                "ks,ks->k", self._coord_jacobian[c], velocity[j.frame_body[j.coord_frame[c]]].reshape(-1, 12)
            )
            try:
                target = np.asarray(controller.callback(now, value[c].copy(), speed), float)
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
                        f"controller at t = {now:g} s",
                        "must return finite targets",
                        f"{target[~np.isfinite(target)][0]} for motor '{name}'",
                        "The state before this step is kept.",
                    )
                )
            self._targets[controller.motors] = target

    def _plain_targets(self, state: State, time: float) -> None:
        """Targets that are numbers or functions; `state.target` holds those set during a run (NaN: none)."""
        j = self.model
        self._targets[:] = self._constant
        for k in self._functions:
            self._targets[k] = _at(j.motors[k].target, time, f"motor '{j.motors[k].name}'")
        if len(state.target):
            given = ~np.isnan(state.target)
            self._targets[given] = state.target[given]
        for k, function in self.functions.items():
            self._targets[k] = _at(function, time, f"motor '{j.motors[k].name}'")

    def _set_equalities(self, g: np.ndarray, h: float, theta: float | None, before: np.ndarray) -> None:
        """Bias and compliance of the equality rows."""
        compliance = self.system.compliance
        compliance[:] = 0.0
        speeds = None if theta is None else self.system.speeds(before)
        if theta is None:
            np.multiply(g, 1.0 / h, out=self._bias)
        else:
            np.negative(speeds, out=self._bias)
        soft, speed = self._soft_rows, self._speed_rows
        if soft.any():
            rows = self.equality[soft]
            k, d = self.model.row_stiffness[rows], self.model.row_damping[rows]
            old = None if theta is None else speeds[soft]
            self._bias[soft], compliance[soft] = _soft(g[soft], k, d, h, theta, old)
        if speed.any():
            self._bias[speed] = -self._targets[self.model.row_motor[self.equality[speed]]]

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

    def _set_bounded(
        self,
        g: np.ndarray,
        h: float,
        theta: float | None,
        inverse_inertia: np.ndarray,
        free: np.ndarray,
        before: np.ndarray,
    ) -> None:
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
        # A limit holds until the next kick, the position of a motor at the end of the step.
        bias = g[rows] / np.where(limit, h, h if theta is None else theta * h)
        open_limit = limit & (g[rows] < 0.0)
        bias[open_limit] = LIMIT_RECOVERY * g[rows[open_limit]]
        bias[role == RowRole.FRICTION] = 0.0
        driven = role == RowRole.BOUNDED_SPEED
        bias[driven] = -self._targets[j.row_motor[rows[driven]]]
        compliance = np.zeros(n)
        soft = (role == RowRole.BOUNDED_POSITION) & (j.row_stiffness[rows] > 0.0)
        if soft.any():
            k, d, old = j.row_stiffness[rows[soft]], j.row_damping[rows[soft]], np.zeros(n)
            self._backend.row_speeds(self._all_bounded_body, jacobian, before, old)
            bias[soft], compliance[soft] = _soft(g[rows[soft]], k, d, h, theta, old[soft])
        # mu of the blocks: 0 for a limit, minus the largest impulse otherwise
        bound = np.where(limit, 0.0, -h * j.row_most[rows])
        self._all_bounded = (bias + speed, bound, jacobian, weighted, compliance)
        self._limit, self._limit_gap = limit, g[rows]
        self._choose(~limit | (g[rows] <= self._slack[rows] + 2.0 * h * np.abs(speed)))

    def _choose(self, keep: np.ndarray) -> None:
        """Take these bounded rows into the problem."""
        bias, bound, jacobian, weighted, compliance = self._all_bounded
        self._kept = keep
        self.active = self._bounded[keep]
        self.bias, self.bound = bias[keep], bound[keep]
        self._bounded_arrays = tuple(
            np.ascontiguousarray(x[keep]) for x in (self._all_bounded_body, jacobian, weighted, compliance)
        )

    def catch_limits(self, velocity: np.ndarray, h: float) -> bool:
        """Whether velocities (n, 6) pass limits that were thought far; they are rows from now on in this step."""
        if not len(self._bounded) or self._kept.all():
            return False
        speed = np.zeros(len(self._bounded))
        self._backend.row_speeds(self._all_bounded_body, self._all_bounded[2], velocity, speed)
        passed = ~self._kept & (self._limit_gap + h * speed < 0.0)
        if not passed.any():
            return False
        self._choose(self._kept | passed)
        return True

    def arrays(self, contacts: ContactArrays) -> ArticulatedArrays:
        """Everything the operator needs."""
        p = self._pattern
        return ArticulatedArrays(
            contacts, p.cluster, self._body, self.system.jacobian, self.system.weighted, p.l_start, self.system.l_row,
            self.system.l_value, self.system.inverse_pivot, self._reaction, *self._bounded_arrays,
        )  # fmt: skip

    def diagonal(self, arrays: ArticulatedArrays, out: np.ndarray) -> None:
        """Diagonal blocks with the joints; `out` has those of the contacts alone."""
        self._backend.articulated_diagonal(
            arrays, self._pattern.cluster_of, self._cluster_body_start, self._cluster_body, out
        )
        n = arrays.contacts.count
        stuck = out[0, n : n + len(self.active)] <= 0.0
        self.stuck = ()
        if stuck.any():  # the equalities leave such a row no freedom
            self.bias = np.where(stuck, 0.0, self.bias)
            self.bound = np.where(stuck, NO_IMPULSE, self.bound)
            past = stuck & self._limit[self._kept] & (self._limit_gap[self._kept] < -1e-6)
            self.stuck = tuple(self.model.names[self.model.row_element[r]] for r in self.active[past])

    # ------------------------------------------------------------------ after the solve

    def take_reactions(self, bounded: np.ndarray) -> None:
        """The impulses after the contacts have been solved: `bounded` (active,), and what the elimination answered."""
        self.impulse[self.equality] -= self._reaction
        self.impulse[self.active] = bounded

    def project(self, kick: KickedArrays, velocity: np.ndarray, rest: float, poses: dict[int, tuple]) -> float:
        """Change the new velocity (n, 6) so that the rigid rows hold exactly after the drift for `rest`; returns the
        motors' work in it [J]. Along M^-1 G of the kick, as SHAKE does: the change belongs to the impulses."""
        motor = self._exact.motor >= 0
        speed = self.system.speeds(velocity) if motor.any() else 0.0
        before, self._pressed = velocity[self.bodies], self._stood_on()
        while True:
            rows = self._rows_at_kick()
            self._close(rows, kick, velocity, rest, poses, np.iinfo(np.int64).max)
            y = np.zeros(self.count)
            y[rows.rows] = rows.closing.y
            pulled = self.impulse[self._pressed] + y[self._pressed] < 0.0
            if not pulled.any():
                break
            velocity[self.bodies] = before
            self._pressed = self._pressed[~pulled]
        self.impulse += y
        if not motor.any():
            return 0.0
        return float((0.5 * y[self.equality] * (speed + self.system.speeds(velocity)))[motor].sum())

    def _close(
        self,
        rows: RowSet,
        kick: KickedArrays,
        velocity: np.ndarray,
        rest: float,
        poses: dict[int, tuple],
        rounds: int,
    ) -> None:
        """Close the rigid rows of a set, and limits that are pressed: those that were passed, to a little less."""
        p, s, wanted = rows.pattern, rows.kick, self._wanted()
        closed = rows.rigid
        if self._pressed.size and rows is self._stops:
            closed, wanted = closed | np.isin(rows.rows, self._pressed), wanted.copy()
            passed = np.minimum(self._start_violation[self._pressed], 0.0)
            wanted[self._pressed] += max(0.0, 1.0 - LIMIT_RECOVERY * self._dt) * passed
        fixed = self._unmoved
        self._trial_position[fixed] = kick.position[fixed] + rest * velocity[fixed, :3]
        self._trial_orientation[fixed] = rotation.turned(kick.orientation[fixed], rest * velocity[fixed, 3:])
        for body, (position, orientation) in poses.items():
            self._trial_position[body], self._trial_orientation[body] = position, orientation
        arrays = EqualityArrays(
            p.cluster, self._cluster_body_start, self._cluster_body, rows.body, s.weighted, p.l_start, s.l_row,
            s.l_value, s.inverse_pivot, rows.coord, rows.weight, wanted[rows.rows], closed,
        )  # fmt: skip
        self._backend.close_joints(
            rest, PROJECTED * self.size, rounds, arrays, self._frames, kick, self._kick_value, self._coord_jacobian,
            velocity, self._trial_position, self._trial_orientation, rows.closing, self._small, self._found,
        )  # fmt: skip
        worst = int(np.argmax(self._found[:, 0])) if len(self._found) else -1
        self.drift = float(self._found[worst, 0]) if worst >= 0 else 0.0
        self.drift_before = float(self._found[:, 1].max(initial=0.0))
        self._worst = int(rows.rows[int(self._found[worst, 2])]) if worst >= 0 else 0

    def _stood_on(self) -> np.ndarray:
        """Limits that are reached or passed at the kick, as numbers of rows."""
        if not self._stop_rows.size:
            return self._stop_rows
        near = self._limit & self._kept & (self._limit_gap <= self._tiny)
        near[self._kept] &= self.bound != NO_IMPULSE
        return np.intersect1d(self._bounded[near], self._stop_rows)

    def _rows_at_kick(self) -> RowSet:
        """The rows to be closed: with the limits that are pressed, unless they depend on the others."""
        while self._pressed.size:
            if self._stops is None:
                rows = np.concatenate([self._model.joints.equality_rows, self._stop_rows])
                self._stops = RowSet(self._model, self._backend, rows, self._movable)
            s = self._stops
            own = np.full(self.count, HUGE)
            own[self.equality], own[self._pressed] = self.system.compliance, 0.0
            s.kick.assemble(self._coord_jacobian, self._inertia_at_kick)
            s.kick.compliance[:] = own[s.rows]
            s.kick.factor()
            dependent = s.kick.dropped_in > self.system.dropped_in
            if not dependent.any():
                return s
            self._pressed = np.setdiff1d(self._pressed, s.rows[dependent[s.cluster]])
        return self._exact

    def open(self, state: State) -> bool:
        """Whether the projection has left joints open that were closed before and do not contradict each other."""
        if self.drift <= CLOSED * self.size or self.fighting:
            return False
        before = np.abs(self._violation(state.coordinate)[self.equality])
        told = self.model.row_motor[self.equality] >= 0  # their targets may have moved since
        return float(before[self._rigid & ~told].max(initial=0.0)) <= CLOSED * self.size

    # ------------------------------------------------------------------ the ends of a step

    def inverse_inertia(self, state: State) -> np.ndarray:
        """World inverse inertia (n, 6) at the present pose, of the bodies that joints touch."""
        m = self._model
        self._backend.turn_inertia(
            self.bodies, self._dynamic[:, 0], m.body_inertia, m.body_locked, state.orientation, self._inverse_inertia
        )
        return self._inverse_inertia

    def _at_end(self, state: State, rows: RowSet, held: np.ndarray) -> JointSystem:
        """Rows at the state's own pose, with only those that are `held` (rows,) in its factor."""
        system = rows.end
        self._coordinates(state.position, state.orientation, state.coordinate, self._trial_jacobian)
        system.assemble(self._trial_jacobian, self.inverse_inertia(state))
        system.compliance[:] = np.where(held, 0.0, HUGE)
        system.factor()
        return system

    def begin(self, state: State) -> JointSystem:
        """The rows along which a step of Moreau's integrator is kicked at its start."""
        return self._at_end(state, self._exact, self._rigid | self._speed_rows)  # without a change of driven speeds

    def miss(self, kick: KickedArrays, velocity: np.ndarray, rest: float, poses: dict[int, tuple]) -> np.ndarray:
        """g (equalities,) of the rigid rows after a drift for `rest`; `self.drift` is the largest."""
        self._close(self._exact, kick, velocity, rest, poses, 1)
        return self._exact.closing.g.copy()

    def hold(self, state: State, velocity: np.ndarray, h: float, wanted: np.ndarray) -> tuple[float, float]:
        """Change velocities (n, 6) at the end of a step so that rigid rows and driven speeds hold, and clusters whose
        joints are ideal have the kinetic energies wanted (clusters,); returns the work of all rows, and of motors [J].

        The time and coordinates of the state must still be those of the step's start.
        """
        rows = self._stops if self._pressed.size else self._exact
        start, exact = state.coordinate, rows.rigid | rows.speed
        system = self._at_end(state, rows, exact | np.isin(rows.rows, self._pressed))
        ahead = self.predicted(start, velocity, h, self._trial_jacobian)
        value = self._coordinates(state.position, state.orientation, ahead, self._trial_jacobian)
        before, speed = self.energy.of(state.orientation, velocity), system.speeds(velocity)
        wrong = speed.copy()
        for row in np.flatnonzero(exact & (rows.motor >= 0)):
            k, c = int(rows.motor[row]), rows.coord[row, 0]
            if rows.speed[row]:
                wrong[row] -= self._targets[k]
            elif k in self._told or not np.isnan(state.target[k]):
                wrong[row] -= (value[c] - start[c]) / h  # nobody knows its derivative
            else:
                wrong[row] -= self._target_speed(k, state.time + h)
        while True:
            held = exact | np.isin(rows.rows, self._pressed)
            y = np.where(held, -wrong, 0.0)
            system.solve(y)
            pulled = held & ~exact & (y < 0.0)
            if not pulled.any():
                break
            self._pressed = np.setdiff1d(self._pressed, rows.rows[pulled])  # it leaves its stop
            system = self._at_end(state, rows, exact | np.isin(rows.rows, self._pressed))
        system.push(y, velocity)
        by_row = np.zeros(self.count)
        by_row[rows.rows] = y
        self._left = by_row[self.equality]
        self.impulse[self._pressed] += by_row[self._pressed]
        if self._symmetric:
            self.end_impulse[self.equality] += self._left
        self._owed, self.strained = state.energy_owed, False
        if self.drift <= CLOSED * self.size and not self.fighting:
            stiff = rows.in_clusters(rows.rigid | np.isin(rows.rows, self._pressed))
            self._owed, self.strained = self.energy.keep(
                state.position,
                state.orientation,
                velocity,
                wanted,
                state.energy_owed,
                self._freedoms - stiff + system.dropped_in,
                h,
                CLOSED * self.size,
            )
        gained = self.energy.of(state.orientation, velocity) - before
        by_motors = 0.5 * y * (speed + system.speeds(velocity))
        return float(gained.sum()), float(by_motors[rows.motor >= 0].sum())

    def _target_speed(self, motor: int, time: float) -> float:
        """Speed of a motor's target, by differences where it is a function."""
        target = self.functions.get(motor, self.model.motors[motor].target)
        if not callable(target):
            return 0.0
        e = 1e-6
        return (float(target(time + e)) - float(target(time - e))) / (2.0 * e)

    def predicted(self, value: np.ndarray, velocity: np.ndarray, h: float, jacobian: np.ndarray) -> np.ndarray:
        """Where angles will be after h at these velocities (n, 6): whole turns are counted from there."""
        if not self._angles.size:
            return value
        j, k = self.model, self._angles
        both = velocity[j.frame_body[j.coord_frame[k]]].reshape(-1, 12)
        out = value.copy()
        out[k] += h * np.einsum("ks,ks->k", jacobian[k], both)
        return out

    def finish(self, state: State, before: np.ndarray, velocity: np.ndarray, h: float) -> None:
        """After the step: coordinates (from those `before`) and impulses into the state."""
        ahead = self.predicted(before, velocity, h, self._coord_jacobian)
        state.coordinate = self._coordinates(state.position, state.orientation, ahead, self._trial_jacobian)
        state.row_impulse = self.impulse.copy()
        state.row_impulse[self.equality] = self._left
        state.energy_owed = self._owed

    def work_done(self, before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
        """Work on dynamic bodies over the step, with velocities (n, 6) before and after [J]: all rows, and motors."""
        relative = 0.5 * (before + after)
        mean = np.where(self._dynamic, relative, 0.0)
        motor = self.model.row_motor
        parts = [
            (self._body, self.system.jacobian, self.impulse[self.equality], motor[self.equality] >= 0),
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
                total += float(impulse @ speed)
                if is_motor.any():  # a motor's own power: also against bodies of prescribed motion
                    self._backend.row_speeds(body, jacobian, relative, speed)
                    by_motors += float(impulse[is_motor] @ speed[is_motor])
        return total, by_motors

    def recovered(self, before: np.ndarray, after: np.ndarray) -> float:
        """What of that work pushed joints back from beyond their limits, with velocities (n, 6) [J]."""
        if not len(self.active):
            return 0.0
        body, jacobian = self._bounded_arrays[:2]
        old, new = np.zeros(len(body)), np.zeros(len(body))
        self._backend.row_speeds(body, jacobian, before, old)
        self._backend.row_speeds(body, jacobian, after, new)
        y = self.impulse[self.active]
        given = np.clip(0.5 * y * (old + new), 0.0, np.maximum(y * new, 0.0))
        return float(given[(self._limit & (self._limit_gap < 0.0))[self._kept]].sum())

    def ideal_work(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """(clusters,) work of the rigid rows that nothing drives in the kick, with velocities (n, 6) [J]."""
        speed = self.system.speeds(0.5 * (before + after))
        work = np.where(self._rigid & (self.model.row_motor[self.equality] < 0), self.impulse[self.equality] * speed, 0)
        return np.array([work[first:end].sum() for first, end in pairwise(self._pattern.cluster)])

    def worst_joint(self) -> str:
        """Name of the joint that is open most after the last projection."""
        return self.model.names[int(self.model.row_element[self._worst])]

    # ------------------------------------------------------------------ forces

    def wrenches(self, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Force (e, 3) and torque (e, 3) of every element on its body b at its anchor, and the force or torque along
        its coordinate (e,) by motors, springs, friction and limits: means over the step, world axes."""
        j = self.model
        first = np.concatenate([j.row_coord[:, 0], [j.motors[k].coordinate for k in self._torque_motors]]).astype(int)
        element = np.concatenate([j.row_element, [j.motors[k].element for k in self._torque_motors]]).astype(int)
        weight = np.concatenate([j.row_weight[:, 0], np.ones(len(self._torque_motors))])
        extra = self._torque_impulse if self._torque_motors.size else np.zeros(0)
        impulse = self.impulse + self.end_impulse
        own = weight * np.concatenate([impulse, extra]) / h
        count = len(j.elements)
        force, torque, effort = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
        np.add.at(force, element, own[:, None] * self._coord_jacobian[first, 6:9])
        np.add.at(torque, element, own[:, None] * self._coord_jacobian[first, 9:12])
        frame = np.array([e.frame for e in j.elements], int)
        b = j.frame_body[frame, 1]
        for r in self._two:  # a gear's other coordinate, where it moves the same body (a screw)
            c, e = j.row_coord[r, 1], j.row_element[r]
            if j.frame_body[j.coord_frame[c], 1] == b[e]:
                own_second = j.row_weight[r, 1] * impulse[r] / h
                force[e] += own_second * self._coord_jacobian[c, 6:9]
                torque[e] += own_second * self._coord_jacobian[c, 9:12]
        arm = rotation.rotate(self._start_orientation[b], j.frame_position[2 * frame + 1])
        torque -= np.cross(arm, force)
        along = np.array([[e.turn, e.slide] for e in j.elements])[element]
        free = np.concatenate([j.row_role != RowRole.RIGID, np.ones(len(extra), bool)]) | (
            np.concatenate([j.row_motor >= 0, np.ones(len(extra), bool)])
        )
        free &= first == np.where(along[:, 0] >= 0, along[:, 0], along[:, 1])
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

    def close(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """One Newton step towards g = 0 at the present pose: displacements (n, 6) and the violations g (r,).

        Springs and speeds do not count (their compliance is huge).
        """
        self._plain_targets(state, state.time)
        return self._newton(state, self.system, self._coord_jacobian)

    def close_at_end(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """The same at the end of a step, with its targets."""
        return self._newton(state, self._exact.end, self._trial_jacobian)

    def _newton(self, state: State, system: JointSystem, jacobian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        g = self._violation(self.coordinates(state, jacobian))
        system.assemble(jacobian, self.inverse_inertia(state))
        system.compliance[:] = np.where(self._rigid, 0.0, HUGE)
        system.factor()
        y = np.where(self._rigid, -g[self.equality], 0.0)
        system.solve(y)
        move = np.zeros((len(state.position), 6))
        system.push(y, move)
        g[~np.isin(np.arange(self.count), self.equality[self._rigid])] = 0.0
        return move, g

    def still(self, state: State, velocity: np.ndarray) -> None:
        """Change velocities (n, 6) so that the rigid rows hold in velocity; after `close` at the same pose."""
        y = self.system.speeds(velocity)
        for row, motor in enumerate(self.model.row_motor[self.equality]):
            if motor >= 0 and self._rigid[row]:
                y[row] -= self._target_speed(int(motor), state.time)
        y = np.where(self._rigid, -y, 0.0)
        self.system.solve(y)
        self.system.push(y, velocity)

    # ------------------------------------------------------------------ what depends on what

    @property
    def redundant(self) -> int:
        """Rows that depend on others at the present pose."""
        return self.system.dropped

    def forget(self) -> None:
        """No forces yet."""
        self.impulse[:] = 0.0
        self.end_impulse[:] = 0.0
        self._torque_impulse = np.zeros(len(self._torque_motors))

    def redundant_names(self) -> list[tuple[str, ...]]:
        """For every row that depends on others: the joints involved, the one whose row was dropped first."""
        return [names for names, _ in self._dependencies(None)]

    def contradictions(self, tolerance: float) -> list[tuple[tuple[str, ...], float]]:
        """Dependent rows that the rows before them do not let be: the joints that fight and by how much."""
        return [(names, miss) for names, miss in self._dependencies(self._rhs) if miss > tolerance]

    def _look_for_fights(self) -> None:
        self.fighting = ()
        if not self.redundant:
            return
        left = self._rhs.copy()
        self.system.forward(left)
        scale = float(np.abs(self._rhs).max(initial=0.0))
        if np.abs(left[self.system.inverse_pivot == 0.0]).max(initial=0.0) > 1e-6 * scale + 1e-6:
            worst = max(self._dependencies(self._rhs), key=lambda found: found[1])
            self.fighting = worst[0]

    def _dependencies(self, rhs: np.ndarray | None) -> list[tuple[tuple[str, ...], float]]:
        p, out = self._pattern, []
        dropped = np.flatnonzero(self.system.inverse_pivot == 0.0)
        if not dropped.size:
            return out
        left = np.zeros(len(self.equality)) if rhs is None else rhs.copy()
        self.system.forward(left)
        names = self.model.names
        for k in dropped:
            z = np.zeros(len(self.equality))
            z[k] = 1.0
            for i in range(k - 1, -1, -1):  # z = L^-T e_k: the combination of rows that vanishes
                low, high = p.l_start[i], p.l_start[i + 1]
                z[i] = -(self.system.l_value[low:high] @ z[self.system.l_row[low:high]])
            involved = [int(k)] + [int(i) for i in np.argsort(-np.abs(z)) if i != k and abs(z[i]) > 1e-6]
            elements = dict.fromkeys(names[self.model.row_element[self.equality[i]]] for i in involved)
            out.append((tuple(elements), float(abs(left[k]))))
        return out

    def _close_gears(self, state: State) -> None:
        """Offsets that were left open (NaN): such that the row holds at the start."""
        open_rows = np.flatnonzero(np.isnan(self._offset))
        if open_rows.size:
            self._offset[open_rows] = 0.0
            value = self._coordinates(state.position, state.orientation, np.zeros(0), self._coord_jacobian)
            self._offset[open_rows] = self._violation(value)[open_rows]


def _soft(
    g: np.ndarray, k: np.ndarray, d: np.ndarray, h: float, theta: float | None, before: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Bias and compliance of springs and dampers, implicit.

    theta: Moreau's; the force is that of the mean stretch and speed of the step, g at the pose of the kick and `before`
    the speeds there.
    """
    if theta is None:
        s = h * k + d
        return k * g / s, 1.0 / (h * s)
    s = theta * (theta * h * k + d)
    old = (1.0 - theta) * (d - (1.0 - theta) * h * k)
    return (k * g + old * before) / s, 1.0 / (h * s)


def _at(target: Target, time: float, where: str) -> float:
    found = target(time) if callable(target) else target
    try:
        value = float(found)
    except (TypeError, ValueError):
        got, remedy = checks.short(found), "Let its function return a real number."
        raise SceneError(message(where, "its target must be a number", got, remedy)) from None
    if not np.isfinite(value):
        raise BlowUpError(message(where, "its target must be finite", value, f"At t = {time:g} s."))
    return value


def _world_spin(state: State) -> np.ndarray:
    return rotation.rotate(state.orientation, state.spin)
