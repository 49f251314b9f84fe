"""Joints in a step: their rows, the elimination of the equalities, and the projection back onto the joints (SHAKE).

A row is g = weight . coordinates - offset. Equalities (joints, gears, driving motors, springs) obey
G^T v + b + E y = 0 with the impulse y: rigid b = g/h, springs E = 1 / (h (h k + d)), b = k g / (h k + d), speeds
b = -target. Limits, motors with a maximum and joint friction are bounded rows of the cone problem.

A step's work is done by the passes of `backends.cpu.joint_stages`, a few calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from .. import backends
from ..backends.base import ArticulatedArrays, ContactArrays, KickedArrays, MotionArrays, fetched_group, sent_group
from ..backends.joint_arrays import (
    ClosingRule,
    EqualityArrays,
    FrameArrays,
    JointedBodies,
    MechanismBodies,
    StepArrays,
    TrialArrays,
    frame_arrays,
)
from ..enums import BodyKind
from ..kernels.joint_steps import ENERGY, IDEAL, coordinates_now
from ..scene.model import Model, State
from .bounded_rows import BoundedRows
from .dependent_rows import dependencies, fighting
from .drift_energy import drift_energy
from .joint_stops import Stops
from .joint_system import JointSystem, RowSet, joint_rows, mobility_arrays
from .joint_targets import Targets
from .torque_motors import torque_motors

__all__ = ["Joints", "Projection", "Works"]

PROJECTED = 1e-13
"""Violation at which the projection ends [in sizes of the mechanism for lengths, rad for angles]."""
CLOSED = 1e-9
"""Violation up to which joints count as closed, likewise."""
FIGHTING = 1e-6
"""Rows that depend on others contradict them from this part of what is wanted on."""


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
    energy: float
    """Kinetic, after it"""


@dataclass(frozen=True, slots=True)
class Projection:
    """What the projection did [J]."""

    motors: float
    crossed: float
    """Work that external impulses seem to do through the velocity that it added"""
    energy: float
    """Kinetic, after it"""


class Joints:
    """The joints of a model: fixed patterns and the numbers of the present step."""

    def __init__(self, model: Model, backend: ModuleType) -> None:
        """model: with NumPy's arrays."""
        j, self._model, self.backend = model.joints, model, backend
        self.model = j
        self.count, n, zeros, send = j.row_count, model.body_count, backend.zeros, backend.send
        movable = np.any(model.body_inverse_mass > 0.0, axis=1) | (
            (model.body_mass > 0.0) & ~np.all(model.body_locked[:, 3:], axis=1)
        )
        frames = frame_arrays(
            j.frame_body, j.frame_position, j.frame_orientation, j.coord_kind, j.coord_frame, j.coord_axis
        )
        c, self._coord_start = j.coord_count, send(j.coord_start)
        self.targets = Targets(j, backend)
        self.host: Joints = self if backend.HOSTED else Joints(model, backends.choose("cpu"))
        """The same on the processor, which assembles scenes"""
        self.host.targets.functions = self.targets.functions
        self._offset = j.row_offset.copy()
        self.two = np.flatnonzero(j.row_coord[:, 1] >= 0)
        """Rows with two coordinates"""
        self._any_row = joint_rows(model, np.arange(self.count), self._offset)
        if np.isnan(self._offset).any():
            self._close_gears(model.initial, frames)
        self.exact = RowSet(model, backend, j.equality_rows, movable, self._offset)
        self.equality = self.exact.rows
        """Equality rows in the order of elimination"""
        self.rigid, p = self.exact.rigid, self.exact.pattern
        touched = np.unique(j.frame_body).astype(np.int64)
        self.bodies = send(touched)
        """Bodies that joints touch"""
        self.arrays = StepArrays(
            sent_group(backend, frames), self.bodies, send(touched[p.mechanism_of[touched] < 0]), zeros(c),
            zeros((c, 12)), zeros(c), zeros((c, 12)), self.targets.value, send(j.row_role), zeros(self.count),
            zeros(self.count), zeros(self.count), send(model.initial.orientation.copy()), send(model.body_inverse_mass),
        )  # fmt: skip
        self.jacobian, self.trial_jacobian = self.arrays.jacobian, self.arrays.end_jacobian
        self.impulse, self.end_impulse = self.arrays.impulse, self.arrays.end_impulse
        """(r,) impulses of all rows in this step's kick [N s or N m s]; those that belong to this step's kick: of
        Moreau's integrator those at its start and end, of Euler's those at the end of the step before, at the same
        pose"""
        self.kick_orientation = self.arrays.kick_orientation
        self._answers = sent_group(backend, mobility_arrays(p))
        self.system = self.exact.kick
        """The equality rows at the pose of the kick"""
        self._symmetric = False
        self._trial_position, self._trial_orientation = map(
            send, (model.initial.position.copy(), model.initial.orientation.copy())
        )
        self._set_mechanisms(model, backend)
        sizes = model.body_size[touched]
        moved = p.mechanism_of[j.frame_body.ravel()] >= 0  # the ground is not as large as it is far
        size = max(np.abs(j.frame_position[moved]).max(initial=0.0), sizes[np.isfinite(sizes)].max(initial=0.0))
        self.size = float(size) if size > 0.0 else 1.0
        """Size of the largest jointed body [m], the scale of what counts as closed"""
        closed = (CLOSED, CLOSED * self.size)
        self.bounded = BoundedRows(model, backend, self._offset, closed, self.impulse, p)
        self.torques = torque_motors(model, backend, p)
        self.stops = Stops(model, backend, movable, self._offset)
        self.drift = self.drift_before = 0.0
        self._worst, self._dropped = 0, 0
        self.stuck: tuple[str, ...] = ()
        """Joints that something exact holds beyond their limits"""
        self._any_stuck = False
        self.fighting: tuple[str, ...] = ()
        """Joints and motors that ask for different speeds of the same motion in this step"""
        self._inverse_inertia = zeros((n, 6))
        self._owed, self.strained = zeros(self.mechanism_count), False
        """Whether the last step was too long for the motion of ideal joints, see `DriftEnergy.keep`"""
        self._start_value, self._dt = self.arrays.value, 0.0
        self._inertia_at_kick = self._inverse_inertia
        self._kept: dict[str, tuple] = {}
        self._made: tuple[ContactArrays, int, ArticulatedArrays] | None = None

    def _set_mechanisms(self, model: Model, backend: ModuleType) -> None:
        p, send = self.exact.pattern, backend.send
        self.mechanism_count = n = len(p.mechanism) - 1
        """Sets of bodies that are joined to each other"""
        by_mechanism = np.argsort(p.mechanism_of, kind="stable")
        body = by_mechanism[np.count_nonzero(p.mechanism_of < 0) :]
        start = np.searchsorted(p.mechanism_of[body], np.arange(n + 1)).astype(np.int64)
        self.energy = drift_energy(model, backend, self.exact, start, body)
        free = np.concatenate([[0], np.cumsum((~model.body_locked[body]).sum(axis=1))])
        freedoms = np.diff(free[start])
        self._body_freedoms = send(freedoms)
        self._freedoms = send(freedoms - self.exact.in_mechanisms(self.rigid))
        self.where = sent_group(backend, MechanismBodies(
            start, body, p.mechanism_of, model.body_kind, model.body_mass, model.body_inertia, model.body_locked,
            model.body_kind == BodyKind.DYNAMIC,
        ))  # fmt: skip
        self._found = backend.zeros((n, 4))

    def _once(self, name: str, of: object, make: Callable[[], tuple]) -> tuple:
        """A group that belongs to `of`: the last one where that is the same, which a call recognises at once."""
        last = self._kept.get(name)
        if last is None or last[0] is not of:
            last = self._kept[name] = of, make()
        return last[1]

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
        b, a, near = self.backend, self.arrays, self._near(state)
        step = (h, -1.0 if theta is None else theta, 0.0 if theta is None else (1.0 - theta) * h)
        self._dt, self._inertia_at_kick, self._symmetric = h, inverse_inertia, theta is not None
        if not again and len(self.model.motors):
            self.targets.take(state, state.time + h)
            if controllers and self.model.controllers:
                ahead = (near, step[2], kick.before, self.trial_jacobian)
                b.look_at_joints(a, kick.position, kick.orientation, ahead, a.value, a.jacobian)
                found = map(b.fetch, (a.value, kick.before, a.jacobian))
                self.targets.ask(state.time + step[2], *found)
        self._start_value = a.value if theta is None or not len(state.coordinate) else state.coordinate
        carried = state.row_impulse[:0] if self._symmetric else state.row_impulse
        dropped, most, miss, active = b.prepare_joints(
            a, self.exact.kicked, self.torques, self.bounded.arrays, kick, step, near, inverse_inertia, carried, free
        )
        self._dropped = int(dropped)
        self.bounded.take(int(active))
        self.fighting = ()
        if dropped and not miss <= FIGHTING * most + FIGHTING:
            factors = fetched_group(b, self.system.factors)
            self.fighting = fighting(self.model, self.exact, factors, b.fetch(self.exact.kicked.wanted))

    def _near(self, state: State) -> np.ndarray:
        return state.coordinate if len(state.coordinate) else self._coord_start

    def coordinates(self, state: State, jacobian: np.ndarray) -> np.ndarray:
        """Values (c,) at a state; angles go on counting turns from `state.coordinate`."""
        value = self.backend.zeros(self.model.coord_count)
        ahead = (self._near(state), 0.0, self._inverse_inertia, jacobian)
        self.backend.look_at_joints(self.arrays, state.position, state.orientation, ahead, value, jacobian)
        return value

    def violation(self, value: np.ndarray) -> np.ndarray:
        """g (r,) of every row, on the host."""
        j = self.model
        wanted, k = self._offset.copy(), self._any_row.driven
        wanted[k] += self.targets.host[j.row_motor[k]]
        g = j.row_weight[:, 0] * value[j.row_coord[:, 0]] - wanted
        g[self.two] += j.row_weight[self.two, 1] * value[j.row_coord[self.two, 1]]
        return g

    def operator_arrays(self, contacts: ContactArrays) -> ArticulatedArrays:
        """Everything the operator needs."""
        last, count = self._made, len(self.bounded.active)
        if last is None or last[0] is not contacts or last[1] != count:
            built, rows = self.system.built, self.exact.kicked
            made = ArticulatedArrays(
                contacts, self.system.body, built.jacobian, built.weighted, self.system.factors, rows.reaction,
                *self.bounded.kept,
            )  # fmt: skip
            self._made = last = contacts, count, made
        return last[2]

    def join(
        self,
        op: ArticulatedArrays,
        friction: np.ndarray,
        rule: tuple[float, float],
        diagonal: np.ndarray,
        out: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        """Diagonal blocks of contacts and bounded rows, their cones and bias; see the pass `join_contacts`."""
        b = self.bounded
        if self._any_stuck:
            self.stops.stuck[:] = False
        limits = self._once("limits", b.bias, lambda: (b.bias, b.bound, b.active, self.stops.stuck))
        stuck = self.backend.join_contacts(op, self.where, self._answers, friction, limits, rule, diagonal, out)
        self._any_stuck, self.stuck = bool(stuck), ()
        if stuck:  # the equalities leave such a row no freedom
            fetch, names = self.backend.fetch, self.model.names
            past = fetch(self.stops.stuck)[fetch(b.active)] & b.past(1e-6)
            self.stuck = tuple(names[self.model.row_element[r]] for r in fetch(b.active)[past])

    # ------------------------------------------------------------------ after the solve

    def _bodies_at(self, when: str, orientation: np.ndarray) -> JointedBodies:
        w = self.where
        return self._once(
            when, orientation, lambda: JointedBodies(w.start, w.body, w.kind, w.mass, w.inertia, orientation)
        )

    def react(self, bounded: np.ndarray, orientation: np.ndarray, before: np.ndarray, velocity: np.ndarray) -> Works:
        """The impulses after the contacts have been solved, `bounded` (active,) and what the elimination answered, and
        what they did over the step, with velocities (n, 6) before and after it. orientation: at the kick."""
        return Works(
            *self.backend.react_joints(
                self.arrays, self.exact.kicked, self.torques, self.bounded.arrays, self._bodies_at("kick", orientation),
                bounded, before, velocity,
            )
        )  # fmt: skip

    @property
    def kicked_energy(self) -> np.ndarray:
        """(mechanisms,) kinetic, after `react` [J]"""
        return self.exact.kicked.sums[ENERGY]

    @property
    def closed_energies(self) -> tuple[np.ndarray, np.ndarray]:
        """(mechanisms,) kinetic after `project`, and the work of rigid rows that nothing drives [J]"""
        sums = self._closing.closed.sums
        return sums[ENERGY], sums[IDEAL]

    def project(
        self,
        kick: KickedArrays,
        velocity: np.ndarray,
        rest: float,
        poses: dict[int, tuple],
        loads: tuple[float, np.ndarray, np.ndarray],
        change: np.ndarray,
        free: np.ndarray,
    ) -> Projection:
        """Change the new velocity (n, 6) so that the rigid rows hold exactly after the drift for `rest`. Along M^-1 G
        of the kick, as SHAKE does: the change belongs to the impulses. loads: h, external forces and torques. Then
        `change` is that of `free` velocities."""
        stops = self.stops
        stops.stand(self.bounded, self.exact)
        while True:
            pressed = stops.at_kick(self.arrays, self.exact, self._inertia_at_kick)
            rows = stops.rows if pressed else self.exact
            self._close(rows, kick, velocity, rest, poses, np.iinfo(np.int64).max)
            if not pressed or not stops.let_go(self.impulse, rows.closed.closing.y):
                break
            stops.restore(self.where.body, velocity)
        self._closing, bodies = rows, self._bodies_at("kick", kick.orientation)
        return Projection(
            *self.backend.book_closing(self.arrays, rows.closed, bodies, loads, kick.before, velocity, free, change)
        )

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
        b, s, w = self.backend, rows.kick, self.where
        x, q = self._trial_position, self._trial_orientation
        closed = s.rows.rigid if rows is self.exact else self.stops.close(self._start_value, self._dt)
        if len(self.arrays.still):
            b.place_unmoved(self.arrays, kick, rest, velocity, x, q)
        for body, (position, orientation) in poses.items():
            x[body], q[body] = position, orientation
        equality = self._once("equality" if rows is self.exact else "stops", closed, lambda: EqualityArrays(
            w.start, w.body, s.body, s.built.weighted, s.factors, s.rows.coord, s.rows.weight, s.built.wanted, closed,
        ))  # fmt: skip
        trial = self._once("trial", velocity, lambda: TrialArrays(velocity, x, q))
        rule = ClosingRule(rest, PROJECTED * self.size, rounds)
        self.drift, self.drift_before, worst = b.close_rows(
            self.arrays, rows.closed, equality, kick, rule, trial, self._found
        )
        self._worst = int(rows.rows[worst]) if len(rows.rows) else 0

    def open(self, state: State) -> bool:
        """Whether the projection has left joints open that were closed before and do not contradict each other."""
        if self.drift <= CLOSED * self.size or self.fighting:
            return False
        before = np.abs(self.violation(self.backend.fetch(state.coordinate))[self.equality])
        told = self.exact.motor >= 0  # their targets may have moved since
        return float(before[self.rigid & ~told].max(initial=0.0)) <= CLOSED * self.size

    # ------------------------------------------------------------------ the ends of a step

    def inverse_inertia(self, state: State) -> np.ndarray:
        """World inverse inertia (n, 6) at the present pose, of the bodies that joints touch."""
        w = self.where
        self.backend.turn_inertia(self.bodies, w.moves, w.inertia, w.locked, state.orientation, self._inverse_inertia)
        return self._inverse_inertia

    def begin(self, state: State) -> JointSystem:
        """The rows along which a step of Moreau's integrator is kicked at its start."""
        system, near = self.exact.end, self._near(state)  # without a change of driven speeds
        self.backend.rows_at_end(
            self.arrays, self.exact.ended, self.where, motion_of(state), (near, 0.0, self._inverse_inertia),
            self.exact.ended.exact, self._inverse_inertia,
        )  # fmt: skip
        return system

    def miss(self, kick: KickedArrays, velocity: np.ndarray, rest: float, poses: dict[int, tuple]) -> np.ndarray:
        """g (equalities,) of the rigid rows after a drift for `rest`; `self.drift` is the largest."""
        self._close(self.exact, kick, velocity, rest, poses, 1)
        return self.exact.closed.closing.g.copy()

    def hold(self, state: State, velocity: np.ndarray, h: float, wanted: np.ndarray) -> tuple[float, float]:
        """Velocities of the state at the end of a step such that rigid rows and driven speeds hold, and mechanisms
        whose joints are ideal have the energies wanted (mechanisms,); returns the work of all rows, and of motors [J].
        velocity (n, 6): scratch.

        The time and coordinates of the state must still be those of the step's start.
        """
        b, stops, rows = self.backend, self.stops, self.exact
        motion, at, bodies = self._motion_of(state), (self._near(state), h), self._bodies_at("end", state.orientation)
        keeps = self.drift <= CLOSED * self.size and not self.fighting
        step, inertia, owed = (h, CLOSED * self.size), self._inverse_inertia, state.energy_owed
        groups, rates = self.energy.groups(state.position, state.orientation, keeps), self.targets.rates(state, h)
        if not stops.pressing:
            assert rows.end is not None
            keeping = (groups, wanted, owed, (self._freedoms, rows.end.dropped_in), step)
            done = b.hold_joints(
                self.arrays, rows.ended, self.where, bodies, motion, at, velocity, inertia, rates, keeping
            )
        else:
            rows = stops.rows
            a, ended = self.arrays, rows.ended
            held = stops.hold(ended)
            b.find_velocities(a, motion, velocity)
            b.rows_at_end(a, ended, self.where, motion, (*at, velocity), held, inertia)
            b.still_rows(a, ended, bodies, held, rates, at, velocity)
            while stops.let_go(self._none, ended.closing.f):
                held = stops.hold(ended)
                b.hold_rows(a, ended, held, inertia)
                b.still_rows(a, ended, bodies, held, rates, at, velocity)
            assert rows.end is not None
            free = stops.freedoms(self._body_freedoms), rows.end.dropped_in
            done = b.keep_velocities(a, ended, bodies, groups, wanted, owed, free, step, motion, velocity)
            stops.add_held(a)
        self._owed = self.energy.owed.copy() if keeps else state.energy_owed
        self.strained = bool(done[2])
        return done[0], done[1]

    def _motion_of(self, state: State) -> MotionArrays:
        last = self._once("motion", state.position, lambda: motion_of(state))
        same = last.orientation is state.orientation and last.velocity is state.velocity and last.spin is state.spin
        return last if same else motion_of(state)

    @property
    def _none(self) -> np.ndarray:
        return self._once("none", None, lambda: (self.backend.zeros(self.count),))[0]

    def finish(self, state: State, velocity: np.ndarray, h: float) -> None:
        """After the step: coordinates (from those before) and impulses into the state."""
        value = self.backend.zeros(self.model.coord_count)
        self.backend.remember_joints(
            self.arrays, self._motion_of(state), self._near(state), h, velocity, self._symmetric, value
        )
        state.coordinate, state.row_impulse, state.energy_owed = value, self.arrays.end.copy(), self._owed

    def worst_joint(self) -> str:
        """Name of the joint that is open most after the last projection."""
        return self.model.names[int(self.model.row_element[self._worst])]

    # ------------------------------------------------------------------ what depends on what

    @property
    def redundant(self) -> int:
        """Rows that depend on others at the pose of the kick."""
        return self._dropped

    def forget(self) -> None:
        """No forces yet."""
        self.impulse[:] = 0.0
        self.end_impulse[:] = 0.0
        self.torques.impulse[:] = 0.0

    def redundant_names(self) -> list[tuple[str, ...]]:
        """For every row that depends on others: the joints involved, the one whose row was dropped first."""
        return [names for names, _ in dependencies(self.model, self.exact, self.system.factors, None)]

    def contradictions(self, tolerance: float) -> list[tuple[tuple[str, ...], float]]:
        """Dependent rows that the rows before them do not let be: the joints that fight and by how much."""
        found = dependencies(self.model, self.exact, self.system.factors, self.exact.kicked.wanted)
        return [(names, miss) for names, miss in found if miss > tolerance]

    def catch_limits(self, velocity: np.ndarray, h: float) -> bool:
        """Whether velocities (n, 6) pass limits that were thought far; they are rows from now on in this step."""
        return self.bounded.catch(velocity, h)

    def _close_gears(self, state: State, frames: FrameArrays) -> None:
        """Offsets that were left open (NaN): such that the row holds at the start."""
        open_rows, cpu, j = np.flatnonzero(np.isnan(self._offset)), backends.choose("cpu"), self.model
        self._offset[open_rows] = 0.0
        value, jacobian = np.zeros(j.coord_count), np.zeros((j.coord_count, 12))
        see, way = cpu.over_rows(coordinates_now), (j.coord_start, 0.0, jacobian, jacobian)
        see(len(j.frame_body), frames, (state.position, state.orientation), way, (value, jacobian))
        self._offset[open_rows] = self.violation(value)[open_rows]


def motion_of(state: State) -> MotionArrays:
    """Poses and velocities."""
    return MotionArrays(state.position, state.orientation, state.velocity, state.spin)
