"""Joints in a step: their rows, the elimination of the equalities, and the projection back onto the joints (SHAKE).

A row is g = weight . coordinates - offset. Equalities (joints, gears, driving motors, springs) obey
G^T v + b + E y = 0 with the impulse y: rigid b = g/h, springs E = 1 / (h (h k + d)), b = k g / (h k + d), speeds
b = -target. Limits, motors with a maximum and joint friction are bounded rows of the cone problem.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.base import ArticulatedArrays, ContactArrays, KickedArrays
from ..backends.joint_arrays import (
    ClosingRule,
    CoordinateArrays,
    EqualityArrays,
    FrameArrays,
    TrialArrays,
)
from ..enums import BodyKind, RowRole
from ..kernels.joints import ANGLE
from ..scene import rotation
from ..scene.model import Model, State
from .bounded_rows import LIMIT_RECOVERY, NO_IMPULSE, BoundedRows
from .dependent_rows import dependencies, fighting
from .drift_energy import drift_energy
from .joint_system import JointSystem, RowSet, mobility_arrays
from .joint_targets import Targets
from .springs import implicit_spring
from .torque_motors import TorqueMotors

__all__ = ["Joints"]

PROJECTED = 1e-13
"""Violation at which the projection ends [in sizes of the mechanism for lengths, rad for angles]."""
CLOSED = 1e-9
"""Violation up to which joints count as closed, likewise."""
HUGE = 1e30
"""Compliance of a row that does not count."""


class Joints:
    """The joints of a model: fixed patterns and the numbers of the present step."""

    def __init__(self, model: Model, backend: ModuleType) -> None:
        j, self._model, self.backend = model.joints, model, backend
        self.model = j
        self.count = j.row_count
        movable = np.any(model.body_inverse_mass > 0.0, axis=1) | (
            (model.body_mass > 0.0) & ~np.all(model.body_locked[:, 3:], axis=1)
        )
        self.exact = RowSet(model, backend, j.equality_rows, movable)
        self._pattern = p = self.exact.pattern
        self.equality, self._body = self.exact.rows, self.exact.body
        """Equality rows in the order of elimination"""
        self._movable = movable
        self._stops: RowSet | None = None
        self._answers = mobility_arrays(p)
        n, c = len(self.equality), j.coord_count
        self._value, self._second = np.zeros(c), np.zeros(c)
        self.jacobian = np.zeros((c, 12))
        self.trial_jacobian = np.zeros((c, 12))
        self.system = self.exact.kick
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
        self.rigid = self.exact.rigid
        self._trial_position = model.initial.position.copy()
        self._trial_orientation = model.initial.orientation.copy()
        mechanism_bodies = [np.flatnonzero(p.mechanism_of == k) for k in range(len(p.mechanism) - 1)]
        self._mechanism_body = np.concatenate([*mechanism_bodies, np.zeros(0, np.int64)]).astype(np.int64)
        self._mechanism_body_start = np.cumsum([0] + [len(b) for b in mechanism_bodies]).astype(np.int64)
        touched = np.unique(j.frame_body).astype(np.int64)
        self._unmoved = touched[p.mechanism_of[touched] < 0]
        self._frames = FrameArrays(
            j.frame_body, j.frame_position, j.frame_orientation, j.coord_kind, j.coord_frame, j.coord_axis
        )
        mechanisms = len(p.mechanism) - 1
        self._found = np.zeros((mechanisms, 4))
        self.targets = Targets(j)
        sizes = model.body_size[touched]
        moved = p.mechanism_of[j.frame_body.ravel()] >= 0  # the ground is not as large as it is far
        size = max(np.abs(j.frame_position[moved]).max(initial=0.0), sizes[np.isfinite(sizes)].max(initial=0.0))
        self.size = float(size) if size > 0.0 else 1.0
        """Size of the largest jointed body [m], the scale of what counts as closed"""
        self._soft_rows, self._speed_rows = self.exact.spring, self.exact.speed
        self.two = np.flatnonzero(j.row_coord[:, 1] >= 0)
        self._driven = np.flatnonzero(
            (j.row_motor >= 0) & (j.row_role != RowRole.SPEED) & (j.row_role != RowRole.BOUNDED_SPEED)
        )
        self._offset = j.row_offset.copy()
        self._close_gears(model.initial)
        self.bounded = BoundedRows(model, backend, self._offset, (CLOSED, CLOSED * self.size))
        self.torques = TorqueMotors(model, backend)
        self._kick_position, self.kick_orientation = model.initial.position, model.initial.orientation
        self.drift = self.drift_before = 0.0
        self._worst = 0
        self.stuck: tuple[str, ...] = ()
        """Joints that something exact holds beyond their limits"""
        self.fighting: tuple[str, ...] = ()
        """Joints and motors that ask for different speeds of the same motion in this step"""
        self.dynamic = (model.body_kind == BodyKind.DYNAMIC)[:, None]
        self.bodies = touched
        """Bodies that joints touch"""
        self._inverse_inertia = np.zeros((model.body_count, 6))
        self._owed, self.strained = np.zeros(mechanisms), False
        """Whether the last step was too long for the motion of ideal joints, see `DriftEnergy.keep`"""
        self.energy = drift_energy(model, backend, self.exact, self._mechanism_body_start, self._mechanism_body)
        free = np.concatenate([[0], np.cumsum((~model.body_locked[self._mechanism_body]).sum(axis=1))])
        self._freedoms = np.diff(free[self._mechanism_body_start])
        held = np.isin(j.row_element, j.row_element[j.row_role == RowRole.RIGID])
        self._stop_rows = np.flatnonzero(held & ((j.row_role == RowRole.LOWER) | (j.row_role == RowRole.UPPER)))
        """Limits of joints that hold something rigidly besides"""
        self._start_violation, self._dt = np.zeros(self.count), 0.0
        self._inertia_at_kick = self._inverse_inertia
        self._pressed = np.zeros(0, np.int64)
        """Limits that are stood on throughout the step"""

    @property
    def mechanism_count(self) -> int:
        """Sets of bodies that are joined to each other."""
        return len(self._pattern.mechanism) - 1

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
            ahead = self.predicted(state.coordinate, kick.before, (1.0 - theta) * h, self.trial_jacobian)
        value = self._coordinates(kick.position, kick.orientation, ahead, self.jacobian)
        self._kick_value = value
        self.system.assemble(self.jacobian, inverse_inertia)
        self._dt, self._inertia_at_kick = h, inverse_inertia
        if not again:
            now = state.time + (0.0 if theta is None else (1.0 - theta) * h)
            self.targets.take(state, state.time + h)
            if controllers:
                self.targets.ask(now, value, kick.before, self.jacobian)
        g = self.violation(value)
        self._start_violation = g if theta is None or not len(state.coordinate) else self.violation(state.coordinate)
        self._set_equalities(g[self.equality], h, theta, kick.before)
        self.system.factor()
        self.impulse[:] = 0.0
        self._symmetric = theta is not None
        if not self._symmetric:
            self.end_impulse[self.equality] = state.row_impulse[self.equality]
        self._kick_position, self.kick_orientation = kick.position.copy(), kick.orientation.copy()
        self.torques.push(h, self.targets.value, self.jacobian, inverse_inertia, free)
        rhs = self.system.speeds(free) + self._bias
        self._rhs = rhs.copy()
        self.fighting = fighting(self.model, self.exact, self.system, self._rhs)
        self.system.solve(rhs)
        self.system.push(-rhs, free)
        self.impulse[self.equality] -= rhs
        self.bounded.set(g, h, theta, inverse_inertia, free, kick.before, self.targets.value, self.jacobian)

    def coordinates(self, state: State, jacobian: np.ndarray) -> np.ndarray:
        """Values (c,) at a state; angles go on counting turns from `state.coordinate`."""
        return self._coordinates(state.position, state.orientation, state.coordinate, jacobian)

    def _coordinates(
        self, position: np.ndarray, orientation: np.ndarray, before: np.ndarray, jacobian: np.ndarray
    ) -> np.ndarray:
        self.backend.coordinates(self._frames, position, orientation, self._value, self._second, jacobian)
        out = self._value.copy()
        if self._angles.size:
            k = self._angles
            angle = np.arctan2(out[k], self._second[k])
            near = before if len(before) else self.model.coord_start
            angle += 2.0 * np.pi * np.round((near[k] - angle) / (2.0 * np.pi))
            out[k] = angle
        return out

    def violation(self, value: np.ndarray) -> np.ndarray:
        """g (r,) of every row."""
        j = self.model
        g = j.row_weight[:, 0] * value[j.row_coord[:, 0]] - self._wanted()
        if self.two.size:
            g[self.two] += j.row_weight[self.two, 1] * value[j.row_coord[self.two, 1]]
        return g

    def _wanted(self) -> np.ndarray:
        """weight . coordinates (r,) of rows that hold."""
        if not self._driven.size:
            return self._offset
        out = self._offset.copy()
        out[self._driven] += self.targets.value[self.model.row_motor[self._driven]]
        return out

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
            self._bias[soft], compliance[soft] = implicit_spring(g[soft], k, d, h, theta, old)
        if speed.any():
            self._bias[speed] = -self.targets.value[self.model.row_motor[self.equality[speed]]]

    def arrays(self, contacts: ContactArrays) -> ArticulatedArrays:
        """Everything the operator needs."""
        return ArticulatedArrays(
            contacts, self._body, self.system.jacobian, self.system.weighted, self.system.factors, self._reaction,
            *self.bounded.arrays,
        )  # fmt: skip

    def diagonal(self, arrays: ArticulatedArrays, out: np.ndarray) -> None:
        """Diagonal blocks with the joints; `out` has those of the contacts alone."""
        self.backend.articulated_diagonal(
            arrays, self._pattern.mechanism_of, self._mechanism_body_start, self._mechanism_body, self._answers, out
        )
        n = arrays.contacts.count
        stuck = out[0, n : n + len(self.bounded.active)] <= 0.0
        self.stuck = ()
        if stuck.any():  # the equalities leave such a row no freedom
            b = self.bounded
            b.bias, b.bound = np.where(stuck, 0.0, b.bias), np.where(stuck, NO_IMPULSE, b.bound)
            past = stuck & b.past(1e-6)
            self.stuck = tuple(self.model.names[self.model.row_element[r]] for r in self.bounded.active[past])

    # ------------------------------------------------------------------ after the solve

    def take_reactions(self, bounded: np.ndarray) -> None:
        """The impulses after the contacts have been solved: `bounded` (active,), and what the elimination answered."""
        self.impulse[self.equality] -= self._reaction
        self.impulse[self.bounded.active] = bounded

    def project(self, kick: KickedArrays, velocity: np.ndarray, rest: float, poses: dict[int, tuple]) -> float:
        """Change the new velocity (n, 6) so that the rigid rows hold exactly after the drift for `rest`; returns the
        motors' work in it [J]. Along M^-1 G of the kick, as SHAKE does: the change belongs to the impulses."""
        motor = self.exact.motor >= 0
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
        s, wanted = rows.kick, self._wanted()
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
            self._mechanism_body_start, self._mechanism_body, rows.body, s.weighted, s.factors, rows.coord,
            rows.weight, wanted[rows.rows], closed,
        )  # fmt: skip
        rule = ClosingRule(rest, PROJECTED * self.size, rounds)
        coordinates = CoordinateArrays(self._kick_value, self.jacobian)
        trial = TrialArrays(velocity, self._trial_position, self._trial_orientation)
        self.backend.close_joints(rule, arrays, self._frames, kick, coordinates, trial, rows.closing, self._found)
        worst = int(np.argmax(self._found[:, 0])) if len(self._found) else -1
        self.drift = float(self._found[worst, 0]) if worst >= 0 else 0.0
        self.drift_before = float(self._found[:, 1].max(initial=0.0))
        self._worst = int(rows.rows[int(self._found[worst, 2])]) if worst >= 0 else 0

    def _stood_on(self) -> np.ndarray:
        """Limits that are reached or passed at the kick, as numbers of rows."""
        if not self._stop_rows.size:
            return self._stop_rows
        return np.intersect1d(self.bounded.reached(), self._stop_rows)

    def _rows_at_kick(self) -> RowSet:
        """The rows to be closed: with the limits that are pressed, unless they depend on the others."""
        while self._pressed.size:
            if self._stops is None:
                rows = np.concatenate([self._model.joints.equality_rows, self._stop_rows])
                self._stops = RowSet(self._model, self.backend, rows, self._movable)
            s = self._stops
            own = np.full(self.count, HUGE)
            own[self.equality], own[self._pressed] = self.system.compliance, 0.0
            s.kick.assemble(self.jacobian, self._inertia_at_kick)
            s.kick.compliance[:] = own[s.rows]
            s.kick.factor()
            dependent = s.kick.dropped_in > self.system.dropped_in
            if not dependent.any():
                return s
            self._pressed = np.setdiff1d(self._pressed, s.rows[dependent[s.mechanism]])
        return self.exact

    def open(self, state: State) -> bool:
        """Whether the projection has left joints open that were closed before and do not contradict each other."""
        if self.drift <= CLOSED * self.size or self.fighting:
            return False
        before = np.abs(self.violation(state.coordinate)[self.equality])
        told = self.model.row_motor[self.equality] >= 0  # their targets may have moved since
        return float(before[self.rigid & ~told].max(initial=0.0)) <= CLOSED * self.size

    # ------------------------------------------------------------------ the ends of a step

    def inverse_inertia(self, state: State) -> np.ndarray:
        """World inverse inertia (n, 6) at the present pose, of the bodies that joints touch."""
        m = self._model
        self.backend.turn_inertia(
            self.bodies, self.dynamic[:, 0], m.body_inertia, m.body_locked, state.orientation, self._inverse_inertia
        )
        return self._inverse_inertia

    def _at_end(self, state: State, rows: RowSet, held: np.ndarray) -> JointSystem:
        """Rows at the state's own pose, with only those that are `held` (rows,) in its factor."""
        system = rows.end
        self._coordinates(state.position, state.orientation, state.coordinate, self.trial_jacobian)
        system.assemble(self.trial_jacobian, self.inverse_inertia(state))
        system.compliance[:] = np.where(held, 0.0, HUGE)
        system.factor()
        return system

    def begin(self, state: State) -> JointSystem:
        """The rows along which a step of Moreau's integrator is kicked at its start."""
        return self._at_end(state, self.exact, self.rigid | self._speed_rows)  # without a change of driven speeds

    def miss(self, kick: KickedArrays, velocity: np.ndarray, rest: float, poses: dict[int, tuple]) -> np.ndarray:
        """g (equalities,) of the rigid rows after a drift for `rest`; `self.drift` is the largest."""
        self._close(self.exact, kick, velocity, rest, poses, 1)
        return self.exact.closing.g.copy()

    def hold(self, state: State, velocity: np.ndarray, h: float, wanted: np.ndarray) -> tuple[float, float]:
        """Change velocities (n, 6) at the end of a step so that rigid rows and driven speeds hold, and mechanisms whose
        joints are ideal have the energies wanted (mechanisms,); returns the work of all rows, and of motors [J].

        The time and coordinates of the state must still be those of the step's start.
        """
        rows = self._stops if self._pressed.size else self.exact
        start, exact = state.coordinate, rows.rigid | rows.speed
        system = self._at_end(state, rows, exact | np.isin(rows.rows, self._pressed))
        ahead = self.predicted(start, velocity, h, self.trial_jacobian)
        value = self._coordinates(state.position, state.orientation, ahead, self.trial_jacobian)
        before, speed = self.energy.of(state.orientation, velocity), system.speeds(velocity)
        wrong = speed.copy()
        for row in np.flatnonzero(exact & (rows.motor >= 0)):
            k, c = int(rows.motor[row]), rows.coord[row, 0]
            if rows.speed[row]:
                wrong[row] -= self.targets.value[k]
            elif k in self.targets.told or not np.isnan(state.target[k]):
                wrong[row] -= (value[c] - start[c]) / h  # nobody knows its derivative
            else:
                wrong[row] -= self.targets.speed(k, state.time + h)
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
            stiff = rows.in_mechanisms(rows.rigid | np.isin(rows.rows, self._pressed))
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
        ahead = self.predicted(before, velocity, h, self.jacobian)
        state.coordinate = self._coordinates(state.position, state.orientation, ahead, self.trial_jacobian)
        state.row_impulse = self.impulse.copy()
        state.row_impulse[self.equality] = self._left
        state.energy_owed = self._owed

    def worst_joint(self) -> str:
        """Name of the joint that is open most after the last projection."""
        return self.model.names[int(self.model.row_element[self._worst])]

    # ------------------------------------------------------------------ forces

    # ------------------------------------------------------------------ what depends on what

    @property
    def redundant(self) -> int:
        """Rows that depend on others at the present pose."""
        return self.system.dropped

    def forget(self) -> None:
        """No forces yet."""
        self.impulse[:] = 0.0
        self.end_impulse[:] = 0.0
        self.torques.impulse[:] = 0.0

    def redundant_names(self) -> list[tuple[str, ...]]:
        """For every row that depends on others: the joints involved, the one whose row was dropped first."""
        return [names for names, _ in dependencies(self.model, self.exact, self.system, None)]

    def contradictions(self, tolerance: float) -> list[tuple[tuple[str, ...], float]]:
        """Dependent rows that the rows before them do not let be: the joints that fight and by how much."""
        found = dependencies(self.model, self.exact, self.system, self._rhs)
        return [(names, miss) for names, miss in found if miss > tolerance]

    def catch_limits(self, velocity: np.ndarray, h: float) -> bool:
        """Whether velocities (n, 6) pass limits that were thought far; they are rows from now on in this step."""
        return self.bounded.catch(velocity, h)

    def _close_gears(self, state: State) -> None:
        """Offsets that were left open (NaN): such that the row holds at the start."""
        open_rows = np.flatnonzero(np.isnan(self._offset))
        if open_rows.size:
            self._offset[open_rows] = 0.0
            value = self._coordinates(state.position, state.orientation, np.zeros(0), self.jacobian)
            self._offset[open_rows] = self.violation(value)[open_rows]
