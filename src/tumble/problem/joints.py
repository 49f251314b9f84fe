"""Joints in a step: their rows, the elimination of the equalities, and the projection back onto the joints (SHAKE).

A row is g = weight . coordinates - offset. Equalities (joints, gears, driving motors, springs) obey
G^T v + b + E y = 0 with the impulse y: rigid b = g/h, springs E = 1 / (h (h k + d)), b = k g / (h k + d), speeds
b = -target. Limits, motors with a maximum and joint friction are bounded rows of the cone problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from ..backends.base import ArticulatedArrays, ContactArrays, KickedArrays
from ..backends.joint_arrays import (
    ClosingRule,
    CoordinateArrays,
    EqualityArrays,
    FrameArrays,
    JointedBodies,
    TrialArrays,
)
from ..enums import BodyKind, RowRole
from ..kernels import joint_steps as formulas
from ..kernels.joint_steps import CROSSED, ENERGY, HUGE, IDEAL, LIMIT_RECOVERY, MOTORS, SUMS, WORK
from ..scene.model import Model, State
from .bounded_rows import NO_IMPULSE, BoundedRows
from .dependent_rows import dependencies, fighting
from .drift_energy import drift_energy
from .joint_system import JointSystem, RowSet, joint_rows, mobility_arrays
from .joint_targets import Targets
from .torque_motors import TorqueMotors

__all__ = ["Joints", "Projection", "Works"]

PROJECTED = 1e-13
"""Violation at which the projection ends [in sizes of the mechanism for lengths, rad for angles]."""
CLOSED = 1e-9
"""Violation up to which joints count as closed, likewise."""


@dataclass(frozen=True, slots=True)
class Works:
    """What the joints did at the kick [J]."""

    total: float
    """On dynamic bodies, by all rows"""
    motors: float
    recovered: float
    """Of it, by pushing joints back from beyond their limits"""
    ideal: float
    """By rigid rows that nothing drives"""
    energy: np.ndarray
    """(mechanisms,) kinetic, after it"""


@dataclass(frozen=True, slots=True)
class Projection:
    """What the projection did [J]."""

    motors: float
    crossed: float
    """Work that external impulses seem to do through the velocity that it added"""
    ideal: np.ndarray
    """(mechanisms,) work of rigid rows that nothing drives, since the start"""
    energy: np.ndarray
    """(mechanisms,) kinetic, after it"""


class Joints:
    """The joints of a model: fixed patterns and the numbers of the present step."""

    def __init__(self, model: Model, backend: ModuleType) -> None:
        j, self._model, self.backend = model.joints, model, backend
        self.model = j
        self.count = j.row_count
        movable = np.any(model.body_inverse_mass > 0.0, axis=1) | (
            (model.body_mass > 0.0) & ~np.all(model.body_locked[:, 3:], axis=1)
        )
        self._frames = FrameArrays(
            j.frame_body, j.frame_position, j.frame_orientation, j.coord_kind, j.coord_frame, j.coord_axis
        )
        self._run_formulas(backend)
        n, c = j.equality_rows.size, j.coord_count
        self.jacobian = np.zeros((c, 12))
        self.trial_jacobian = np.zeros((c, 12))
        self._kick_value, self._end_value = np.zeros(c), np.zeros(c)
        self.targets = Targets(j, backend)
        self._offset = j.row_offset.copy()
        self.two = np.flatnonzero(j.row_coord[:, 1] >= 0)
        self._any_row = joint_rows(model, np.arange(self.count), self._offset)
        self._close_gears(model.initial)
        self.exact = RowSet(model, backend, j.equality_rows, movable, self._offset)
        self._pattern = p = self.exact.pattern
        self.equality = self.exact.rows
        """Equality rows in the order of elimination"""
        self._movable = movable
        self._stops: RowSet | None = None
        self._answers = mobility_arrays(p)
        self.system = self.exact.kick
        """The equality rows at the pose of the kick"""
        self._reaction, self._rhs, self._y = np.zeros((3, n))
        self.impulse, self.end_impulse, self._end = np.zeros((3, self.count))
        """(r,) impulses of all rows in this step's kick [N s or N m s]; those that belong to this step's kick: of
        Moreau's integrator those at its start and end, of Euler's those at the end of the step before, at the same
        pose; and those at the end of this one"""
        self._symmetric = False
        self.rigid = self.exact.rigid
        self._trial_position = model.initial.position.copy()
        self._trial_orientation = model.initial.orientation.copy()
        mechanisms = len(p.mechanism) - 1
        by_mechanism = np.argsort(p.mechanism_of, kind="stable")
        self._mechanism_body = by_mechanism[np.count_nonzero(p.mechanism_of < 0) :]
        self._mechanism_body_start = np.searchsorted(
            p.mechanism_of[self._mechanism_body], np.arange(mechanisms + 1)
        ).astype(np.int64)
        touched = np.unique(j.frame_body).astype(np.int64)
        self._unmoved = touched[p.mechanism_of[touched] < 0]
        self._found, self._sums = np.zeros((mechanisms, 4)), np.zeros((SUMS, mechanisms))
        sizes = model.body_size[touched]
        moved = p.mechanism_of[j.frame_body.ravel()] >= 0  # the ground is not as large as it is far
        size = max(np.abs(j.frame_position[moved]).max(initial=0.0), sizes[np.isfinite(sizes)].max(initial=0.0))
        self.size = float(size) if size > 0.0 else 1.0
        """Size of the largest jointed body [m], the scale of what counts as closed"""
        self._has_motors = bool(np.any(self.exact.motor >= 0))
        self.bounded = BoundedRows(model, backend, self._offset, (CLOSED, CLOSED * self.size), self.impulse)
        self._bounded_work = np.zeros((3, len(self.bounded.rows)))
        self.torques = TorqueMotors(model, backend)
        self._torque_work = np.zeros((3, len(self.torques.motors)))
        self.kick_orientation = model.initial.orientation.copy()
        self.drift = self.drift_before = 0.0
        self._worst = 0
        self.stuck: tuple[str, ...] = ()
        """Joints that something exact holds beyond their limits"""
        self.fighting: tuple[str, ...] = ()
        """Joints and motors that ask for different speeds of the same motion in this step"""
        self.moves = model.body_kind == BodyKind.DYNAMIC
        self.bodies = touched
        """Bodies that joints touch"""
        self._inverse_inertia = np.zeros((model.body_count, 6))
        self._owed, self.strained = np.zeros(mechanisms), False
        """Whether the last step was too long for the motion of ideal joints, see `DriftEnergy.keep`"""
        self.energy = drift_energy(model, backend, self.exact, self._mechanism_body_start, self._mechanism_body)
        free = np.concatenate([[0], np.cumsum((~model.body_locked[self._mechanism_body]).sum(axis=1))])
        self._body_freedoms = np.diff(free[self._mechanism_body_start])
        self._freedoms = self._body_freedoms - self.exact.in_mechanisms(self.rigid)
        held = np.isin(j.row_element, j.row_element[j.row_role == RowRole.RIGID])
        self._stop_rows = np.flatnonzero(held & ((j.row_role == RowRole.LOWER) | (j.row_role == RowRole.UPPER)))
        """Limits of joints that hold something rigidly besides"""
        self._start_value, self._dt = np.zeros(c), 0.0
        self._inertia_at_kick = self._inverse_inertia
        self._pressed = np.zeros(0, np.int64)
        """Limits that are stood on throughout the step"""

    def _run_formulas(self, backend: ModuleType) -> None:
        rows, mechanisms = backend.over_rows, backend.over_mechanisms
        self._see, self._kick, self._row_work, self._take_bounded = map(
            rows, (formulas.coordinate_now, formulas.kick_row, formulas.row_work, formulas.take_bounded)
        )
        self._note, self._set_off, self._remember = map(
            rows, (formulas.note_orientation, formulas.set_off, formulas.remember_row)
        )
        self._obey, self._react, self._closed, self._still, self._push, self._gained = map(
            mechanisms,
            (formulas.obey, formulas.react, formulas.closed, formulas.still, formulas.push, formulas.gained),
        )

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
        nearly = -1.0 if theta is None else theta
        lead = 0.0 if theta is None else (1.0 - theta) * h
        value = self._kick_value
        self._look(kick, (state.coordinate, lead, kick.before, self.trial_jacobian), value, self.jacobian)
        self._dt, self._inertia_at_kick = h, inverse_inertia
        if not again:
            self.targets.take(state, state.time + h)
            if controllers:
                self.targets.ask(state.time + lead, value, kick.before, self.jacobian)
        target, n = self.targets.value, len(self.equality)
        self._start_value = value if theta is None or not len(state.coordinate) else state.coordinate
        self.system.assemble(value, target, self.jacobian, inverse_inertia)
        self._kick(n, self.system.rows, target, h, nearly, kick.before, self.system.built)
        self.system.factor()
        self._symmetric = theta is not None
        self._note(len(self.bodies), self.bodies, kick.orientation, self.kick_orientation)
        self.torques.push(h, value, target, self.jacobian, inverse_inertia, free)
        carried = state.row_impulse[:0] if self._symmetric else state.row_impulse
        out = (self._rhs, self._y, self.impulse, self.end_impulse)
        self._obey(self.mechanism_count, self.system.arrays, carried, free, out)
        self.fighting = fighting(self.model, self.exact, self.system, self._rhs)
        self.bounded.set(value, (h, nearly), inverse_inertia, (free, kick.before), target, self.jacobian)

    def coordinates(self, state: State, jacobian: np.ndarray) -> np.ndarray:
        """Values (c,) at a state; angles go on counting turns from `state.coordinate`."""
        value = np.zeros(self.model.coord_count)
        self._look(state, (state.coordinate, 0.0, self._inverse_inertia, jacobian), value, jacobian)
        return value

    def _look(
        self,
        poses: KickedArrays | State,
        ahead: tuple[np.ndarray, float, np.ndarray, np.ndarray],
        value: np.ndarray,
        jacobian: np.ndarray,
    ) -> None:
        """Coordinates (c,) at some poses and their Jacobians. ahead: see `joint_steps.coordinate_now`."""
        near, *way = ahead
        near = near if len(near) else self.model.coord_start
        self._see(len(value), self._frames, (poses.position, poses.orientation), (near, *way), (value, jacobian))

    def violation(self, value: np.ndarray) -> np.ndarray:
        """g (r,) of every row."""
        j = self.model
        wanted, k = self._offset.copy(), self._any_row.driven
        wanted[k] += self.targets.value[j.row_motor[k]]
        g = j.row_weight[:, 0] * value[j.row_coord[:, 0]] - wanted
        g[self.two] += j.row_weight[self.two, 1] * value[j.row_coord[self.two, 1]]
        return g

    def arrays(self, contacts: ContactArrays) -> ArticulatedArrays:
        """Everything the operator needs."""
        return ArticulatedArrays(
            contacts, self.system.body, self.system.built.jacobian, self.system.built.weighted, self.system.factors,
            self._reaction, *self.bounded.arrays,
        )  # fmt: skip

    def diagonal(self, arrays: ArticulatedArrays, out: np.ndarray) -> None:
        """Diagonal blocks with the joints; `out` has those of the contacts alone."""
        stuck = self.backend.articulated_diagonal(
            arrays, self._pattern.mechanism_of, self._mechanism_body_start, self._mechanism_body, self._answers, out
        )
        self.stuck = ()
        if stuck:  # the equalities leave such a row no freedom
            b, n = self.bounded, arrays.contacts.count
            held = out[0, n : n + len(b.active)] <= 0.0
            b.bias[held], b.bound[held] = 0.0, NO_IMPULSE
            past = held & b.past(1e-6)
            self.stuck = tuple(self.model.names[self.model.row_element[r]] for r in b.active[past])

    # ------------------------------------------------------------------ after the solve

    def _bodies_at(self, orientation: np.ndarray) -> JointedBodies:
        m = self._model
        return JointedBodies(
            self._mechanism_body_start, self._mechanism_body, m.body_kind, m.body_mass, m.body_inertia, orientation
        )

    def _sum(self, column: int) -> float:
        return float(self.backend.total(self.mechanism_count, self._sums[column]))

    def react(self, bounded: np.ndarray, orientation: np.ndarray, before: np.ndarray, velocity: np.ndarray) -> Works:
        """The impulses after the contacts have been solved, `bounded` (active,) and what the elimination answered, and
        what they did over the step, with velocities (n, 6) before and after it. orientation: at the kick."""
        b, n, kind = self.bounded, self.mechanism_count, self._model.body_kind
        self._take_bounded(len(bounded), b.active, bounded, self.impulse)
        bodies = self._bodies_at(orientation)
        self._react(n, self.system.arrays, self._reaction, bodies, self.impulse, before, velocity, self._sums)
        total, motors = self._sum(WORK), self._sum(MOTORS)
        limit, out, t = b.state.limit, self._bounded_work, self.torques
        self._row_work(len(b.rows), b.data, b.built, limit, self.impulse, before, velocity, kind, out)
        none, out = t.data.rigid, self._torque_work
        self._row_work(len(t.motors), t.data, t.built, none, t.impulse, before, velocity, kind, out)
        parts = [self.backend.total(x.shape[1], row) for x in (self._bounded_work, self._torque_work) for row in x]
        return Works(
            total + parts[0] + parts[3], motors + parts[1] + parts[4], float(parts[2]), self._sum(IDEAL),
            self._sums[ENERGY].copy(),
        )  # fmt: skip

    def project(
        self,
        kick: KickedArrays,
        velocity: np.ndarray,
        rest: float,
        poses: dict[int, tuple],
        loads: tuple[float, np.ndarray, np.ndarray],
    ) -> Projection:
        """Change the new velocity (n, 6) so that the rigid rows hold exactly after the drift for `rest`. Along M^-1 G
        of the kick, as SHAKE does: the change belongs to the impulses. loads: h, external forces and torques."""
        before, self._pressed = velocity[self.bodies] if self._stop_rows.size else None, self._stood_on()
        while True:
            rows = self._rows_at_kick()
            if self._has_motors:
                self.backend.row_speeds(rows.body, rows.kick.built.jacobian, velocity, rows.before)
            self._close(rows, kick, velocity, rest, poses, np.iinfo(np.int64).max)
            if not self._pressed.size:
                break
            y = np.zeros(self.count)
            y[rows.rows] = rows.closing.y
            pulled = self.impulse[self._pressed] + y[self._pressed] < 0.0
            if not pulled.any():
                break
            velocity[self.bodies] = before
            self._pressed = self._pressed[~pulled]
        closing, bodies = (rows.closing.base, rows.closing.y), self._bodies_at(kick.orientation)
        self._closed(
            self.mechanism_count, rows.kick.arrays, bodies, closing, loads, self.impulse, kick.before, velocity,
            rows.before, self._sums,
        )  # fmt: skip
        return Projection(self._sum(MOTORS), self._sum(CROSSED), self._sums[IDEAL].copy(), self._sums[ENERGY].copy())

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
        s, closed = rows.kick, rows.rigid
        if self._pressed.size and rows is self._stops:
            pressed = np.isin(rows.rows, self._pressed)
            start = self.violation(self._start_value)[rows.rows[pressed]]
            closed = closed | pressed
            s.built.wanted[pressed] += max(0.0, 1.0 - LIMIT_RECOVERY * self._dt) * np.minimum(start, 0.0)
        x, q = self._trial_position, self._trial_orientation
        self._set_off(len(self._unmoved), self._unmoved, kick, rest, velocity, x, q)
        for body, (position, orientation) in poses.items():
            x[body], q[body] = position, orientation
        arrays = EqualityArrays(
            self._mechanism_body_start, self._mechanism_body, rows.body, s.built.weighted, s.factors, rows.coord,
            rows.weight, s.built.wanted, closed,
        )  # fmt: skip
        rule = ClosingRule(rest, PROJECTED * self.size, rounds)
        coordinates = CoordinateArrays(self._kick_value, self.jacobian)
        trial = TrialArrays(velocity, x, q)
        self.backend.close_joints(rule, arrays, self._frames, kick, coordinates, trial, rows.closing, self._found)
        self.drift, self.drift_before, worst = self.backend.worst_of(self._found)
        self._worst = int(rows.rows[worst]) if len(rows.rows) else 0

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
                self._stops = RowSet(self._model, self.backend, rows, self._movable, self._offset)
            s = self._stops
            own = np.full(self.count, HUGE)
            own[self.equality], own[self._pressed] = self.system.compliance, 0.0
            s.kick.assemble(self._kick_value, self.targets.value, self.jacobian, self._inertia_at_kick)
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
        told = self.exact.motor >= 0  # their targets may have moved since
        return float(before[self.rigid & ~told].max(initial=0.0)) <= CLOSED * self.size

    # ------------------------------------------------------------------ the ends of a step

    def inverse_inertia(self, state: State) -> np.ndarray:
        """World inverse inertia (n, 6) at the present pose, of the bodies that joints touch."""
        m = self._model
        self.backend.turn_inertia(
            self.bodies, self.moves, m.body_inertia, m.body_locked, state.orientation, self._inverse_inertia
        )
        return self._inverse_inertia

    def _at_end(self, state: State, rows: RowSet, held: np.ndarray, ahead: tuple) -> JointSystem:
        """Rows at the state's own pose, with only those that are `held` (rows,) in its factor. ahead: see `_look`."""
        system = rows.end
        self._look(state, ahead, self._end_value, self.trial_jacobian)
        system.assemble(self._end_value, self.targets.value, self.trial_jacobian, self.inverse_inertia(state))
        system.hold(held)
        return system

    def begin(self, state: State) -> JointSystem:
        """The rows along which a step of Moreau's integrator is kicked at its start."""
        ahead = (state.coordinate, 0.0, self._inverse_inertia, self.trial_jacobian)
        return self._at_end(state, self.exact, self.exact.exact, ahead)  # without a change of driven speeds

    def miss(self, kick: KickedArrays, velocity: np.ndarray, rest: float, poses: dict[int, tuple]) -> np.ndarray:
        """g (equalities,) of the rigid rows after a drift for `rest`; `self.drift` is the largest."""
        self._close(self.exact, kick, velocity, rest, poses, 1)
        return self.exact.closing.g.copy()

    def hold(self, state: State, velocity: np.ndarray, h: float, wanted: np.ndarray) -> tuple[float, float]:
        """Change velocities (n, 6) at the end of a step so that rigid rows and driven speeds hold, and mechanisms whose
        joints are ideal have the energies wanted (mechanisms,); returns the work of all rows, and of motors [J].

        The time and coordinates of the state must still be those of the step's start.
        """
        n, pressed = self.mechanism_count, self._pressed.size > 0
        rows = self._stops if pressed and self._stops is not None else self.exact
        held = rows.exact | np.isin(rows.rows, self._pressed) if pressed else rows.exact
        start = state.coordinate if len(state.coordinate) else self.model.coord_start
        system = self._at_end(state, rows, held, (start, h, velocity, self.trial_jacobian))
        wants = (self.targets.value, self.targets.rates(state, h))
        motion, bodies = (start, self._end_value, h), self._bodies_at(state.orientation)
        y, speed = rows.closing.f, rows.before
        self._still(n, system.arrays, bodies, held, wants, motion, velocity, speed, y, self._sums)
        while pressed:
            pulled = held & ~rows.exact & (y < 0.0)
            if not pulled.any():
                break
            self._pressed = np.setdiff1d(self._pressed, rows.rows[pulled])  # it leaves its stop
            held = rows.exact | np.isin(rows.rows, self._pressed)
            system.hold(held)
            self._still(n, system.arrays, bodies, held, wants, motion, velocity, speed, y, self._sums)
        self._push(n, system.arrays, y, velocity, self._end)
        self.impulse[self._pressed] += self._end[self._pressed]
        self._owed, self.strained = state.energy_owed, False
        if self.drift <= CLOSED * self.size and not self.fighting:
            free = self._freedoms
            if pressed:
                free = self._body_freedoms - rows.in_mechanisms(rows.rigid | np.isin(rows.rows, self._pressed))
            self._owed, self.strained = self.energy.keep(
                state.position, state.orientation, velocity, wanted, state.energy_owed, (free, system.dropped_in),
                (h, CLOSED * self.size),
            )  # fmt: skip
        self._gained(n, system.arrays, bodies, velocity, speed, y, self._sums)
        return self._sum(ENERGY), self._sum(MOTORS)

    def finish(self, state: State, before: np.ndarray, velocity: np.ndarray, h: float) -> None:
        """After the step: coordinates (from those `before`) and impulses into the state."""
        value = np.empty(self.model.coord_count)
        self._look(state, (before, h, velocity, self.jacobian), value, self.trial_jacobian)
        state.coordinate = value
        self._remember(self.count, self._any_row.role, self.impulse, self._end, self._symmetric, self.end_impulse)
        state.row_impulse = self._end.copy()
        state.energy_owed = self._owed

    def worst_joint(self) -> str:
        """Name of the joint that is open most after the last projection."""
        return self.model.names[int(self.model.row_element[self._worst])]

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
            value = np.zeros(self.model.coord_count)
            self._look(state, (np.zeros(0), 0.0, self.jacobian, self.jacobian), value, self.jacobian)
            self._offset[open_rows] = self.violation(value)[open_rows]
