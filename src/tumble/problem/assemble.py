"""From contacts to the cone problem of a step, and from its solution to what the contacts remember."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Protocol

import numpy as np

from ..backends.base import (
    ArticulatedArrays,
    AssemblyRule,
    ContactArrays,
    GapArrays,
    KickArrays,
    MemoryArrays,
    RestRule,
    RollingArrays,
    RowArrays,
    TableArrays,
    TouchArrays,
    blocks,
)
from ..backends.joint_arrays import FactorArrays
from ..enums import BlockKind
from ..kernels import contact_rows as formulas
from ..kernels.direct import forget
from ..scene.model import GENTLE, ContactMemory, Model
from .cone_problem import BlockGroup, ConeProblem
from .joint_system import no_factor
from .joints import Joints
from .operators import ArticulatedOperator, ContactOperator, RollingOperator, StepOperator

__all__ = ["ContactTable", "Rows", "taken_back"]

NOISE, NOISE_OF_LARGEST = 1e-6, 1e-9
"""Parts of the lightest body's weight and of the largest impulse of the last step; below, a contact carried none."""
BAND = 0.1
"""Gaps of contacts at rest are left as they are within this part of g h^2, what gravity moves in a step: the scheme
itself knows them to O(h^2) only."""
SHARE = 1e-4
"""And within this part of the smaller shape at most."""
LEAST = 0.01
"""Of an overlap beyond the band at least this part is taken back in a step, `GENTLE` where steps are solved."""
IMMOVABLE = 1e-9
"""Contacts of jointed bodies that give way this much less than the bodies alone would do not give way at all."""
SIDE_PARTS, SIDES_FROM = 16, 20_000
"""Parts of the contacts whose sides are numbered at a time, from so many bodies on: whoever numbers them, the entries
are the same."""
SMALL_MOTION = 1e-6
"""In a step contacts that move by less than this part of the smallest shape count as moving so far (without gravity
there is no other measure)."""


def taken_back(solved: bool, left: float) -> float:
    """Part of an overlap beyond the band that the next step takes back, from how this one ended.

    left: part of the guess's stopping quantity that the solver has left. A step that asks for more than its solver can
    give drives the slow motions of a pile: their impulses lag, overlap and impulse swing, and a pile boils.
    """
    return GENTLE if solved else max(LEAST, GENTLE * (1.0 - left) ** 3)


class ContactTable(Protocol):
    """What assembling needs of the contacts (`collide.Contacts`)."""

    count: int
    capacity: int
    body_a: np.ndarray
    body_b: np.ndarray
    feature: np.ndarray
    friction: np.ndarray
    pair: np.ndarray
    size: np.ndarray
    gap: np.ndarray
    normal: np.ndarray
    point: np.ndarray


class Column(Protocol):
    """What a contact law remembers of every contact; three rows are a vector."""

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> int: ...


class Laws(Protocol):
    """What assembling needs of the contact laws (`sim.laws.ContactLaws`)."""

    is_soft: bool
    firm: np.ndarray

    @property
    def columns(self) -> Sequence[Column]: ...

    def soften(self, contacts: ContactTable, h: float, compliance: np.ndarray) -> None:
        """Compliance E of the contacts (2, cap)."""


class Rows:
    """Buffers of the rows of one model's contacts; they grow with the number of contacts and are reused every step."""

    def __init__(self, model: Model, backend: ModuleType, joints: Joints | None, laws: Laws) -> None:
        self._model, self._backend, self._joints, self._laws = model, backend, joints, laws
        n = model.body_count
        zeros, fetch = backend.zeros, backend.fetch
        inverse_mass, mass, locked = map(fetch, (model.body_inverse_mass, model.body_mass, model.body_locked))
        turns = (mass > 0.0) & ~np.all(locked[:, 3:], axis=1)
        self._movable = backend.send(np.any(inverse_mass > 0.0, axis=1) | turns)
        self._entry_start = zeros(n + 1, np.int64)
        self._cursor = zeros(n, np.int64)
        self._sides = zeros((SIDE_PARTS, n) if n >= SIDES_FROM else (1, 0), np.int32)
        self._body_velocity = zeros((n, 6))
        self._any_locked = bool(np.any(locked))
        self._fall = float(np.linalg.norm(fetch(model.gravity)))
        self._gravity = self._fall or 9.81
        sizes = fetch(model.shape_smallest)
        sizes = sizes[np.isfinite(sizes)]
        self._smallest = float(sizes.min()) if sizes.size else 0.0
        heavy = mass[mass > 0.0]
        self._lightest = float(heavy.min()) if heavy.size else 0.0
        self._rolls, self._soft = model.pair_laws.rolls, laws.is_soft
        pairs = model.pair_laws
        self._spin = backend.send(pairs.of_pairs("spinning_friction"))
        self._roll = backend.send(pairs.of_pairs("rolling_friction"))
        self._firm = backend.send(laws.firm)
        run = backend.over_contacts
        self._set_turns, self._take_turns = run(formulas.turning_friction), run(formulas.taken_turns)
        self._recall_numbers = run(formulas.recalled_numbers)
        self._no_factor = no_factor(n if joints is None and self._rolls else 0)
        self._scratch: dict[tuple, tuple] = {}
        self._operator: ContactOperator | None = None
        self._groups: tuple[TouchArrays, RowArrays, TableArrays] | None = None
        self._allocate(0)

    def _allocate(self, capacity: int) -> None:
        self._contact_capacity, zeros = capacity, self._backend.zeros
        if self._joints is not None:  # the bounded rows come after the contacts
            capacity += len(self._joints.model.bounded_rows)
        self._capacity = capacity
        self._friction = zeros((3, capacity) if self._rolls else capacity)
        self._compliance = zeros((2, capacity if self._soft else 0))
        self._remembered = {c.name: zeros((c.rows, capacity)) for c in self._laws.columns}
        self._shift_partial, self._surveyed = zeros(blocks(capacity)), zeros((blocks(capacity), 2))
        linked = self._rolls or self._joints is not None
        self._diagonal = zeros((6, capacity if linked or self._any_locked else 0))
        self._entry_torque = zeros((2 * capacity + 1 if self._rolls else 0, 3))
        self._frame = zeros((9, capacity))
        self._arms = zeros((6, capacity))
        self._gap = zeros(capacity)
        self._found = zeros(capacity, np.int64)
        self._slot_a = zeros(capacity, np.int32)
        self._slot_b = zeros(capacity, np.int32)
        self._entry_arm = zeros((2 * capacity + 1, 3))
        self._entry_force = zeros((2 * capacity + 1, 3))
        self._bias = zeros((6 if self._rolls else 3, capacity))
        self._rows = zeros((len(self._bias), capacity if linked else 0))
        self.before = zeros(self._bias.shape)
        """Relative velocities of the contacts before the step, rows n, u, w (and turns)"""
        self.overlap = 0.0
        """The largest at the start of the step [m]"""
        self._scratch.clear()
        self._operator = self._groups = None
        self._jointed: ArticulatedOperator | None = None
        self._joined: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        forget()  # what these buffers replace

    def assemble(
        self,
        contacts: ContactTable,
        center: np.ndarray,
        free: np.ndarray,
        inverse_inertia: np.ndarray,
        h: float,
        recovery: float,
        before: np.ndarray,
        memory: ContactMemory,
        *,
        recovers: float | None = GENTLE,
    ) -> ConeProblem:
        """The cone problem of the step. Its arrays belong to this object and live until the next call.

        before: velocities at the start of the step. memory: of the contacts a step ago. recovers: gaps within the band
        of contacts at rest are left, and this part of what overlaps beyond it is taken back; None: all gaps are closed.
        """
        if contacts.capacity != self._contact_capacity:
            self._allocate(contacts.capacity)
        b, c, (touch, rows, table) = self._backend, contacts, self._groups_of(contacts)
        arrays = self._arrays_of(contacts, inverse_inertia)
        band = 0.0 if recovers is None else BAND * self._fall * h * h  # none without gravity: the true gaps
        rest = RestRule(NOISE * self._lightest * self._fall * h, band, SHARE, 0.0 if recovers is None else recovers)
        self._hits, self._gap_shift, self._motion, self.overlap = b.assemble_rows(
            arrays,
            touch,
            rows,
            table,
            MemoryArrays(memory.uid_a, memory.uid_b, memory.feature, memory.impulse),
            KickArrays(center, free, before),
            AssemblyRule(h, recovery, self._gravity, NOISE_OF_LARGEST, rest),
        )
        if self._soft:
            self._laws.soften(contacts, h, self._compliance)
        if self._rolls:
            problem = self._rolling(contacts, arrays, free, h)
            problem.step_operator.relative(before, self.before)
            return problem
        if self._joints is not None:
            return self._articulated(contacts, arrays, h)
        if self._operator is None:
            self._operator = ContactOperator(arrays, b)
        else:
            self._operator.arrays = arrays
        problem = self._problem(BlockGroup(BlockKind.CONE, 3, c.count, c.friction), self._operator, h)
        if self._any_locked:
            self._operator.diagonal_blocks(self._diagonal)
            b.free_frozen_rows(c.count, self._diagonal, self._bias)
        return problem

    def _groups_of(self, contacts: ContactTable) -> tuple[TouchArrays, RowArrays, TableArrays]:
        """What the pass reads and writes, made once for the buffers."""
        c = contacts
        if self._groups is None or self._groups[0].point is not c.point:
            gaps = GapArrays(c.gap, c.size, c.pair, self._firm)
            self._groups = (
                TouchArrays(c.body_a, c.body_b, self._slot_a, self._slot_b, c.normal, c.point, self._gap, c.size),
                RowArrays(self._frame, self._arms, self._entry_arm, self._bias),
                TableArrays(
                    self._movable,
                    self._cursor,
                    self._sides,
                    self._model.body_uid,
                    c.feature,
                    self._found,
                    gaps,
                    self._shift_partial,
                    self._backend.zeros(64),
                    self._surveyed,
                    self.before,
                ),
            )
        return self._groups

    def _arrays_of(self, contacts: ContactTable, inverse_inertia: np.ndarray) -> ContactArrays:
        """The operator's arrays; those of the last step where nothing of them has changed."""
        c, operator = contacts, self._operator if self._joints is None else self._jointed
        last = None if operator is None else operator.contacts
        if last is not None and last.count == c.count and last.body_a is c.body_a:
            if last.inverse_inertia is inverse_inertia:
                return last
        return ContactArrays(
            c.count,
            c.body_a,
            c.body_b,
            self._frame,
            self._arms,
            self._slot_a,
            self._slot_b,
            self._entry_start,
            self._entry_arm,
            self._entry_force,
            self._model.body_inverse_mass,
            inverse_inertia,
            self._body_velocity,
            self._compliance,
        )

    def _problem(self, group: BlockGroup, operator: StepOperator, h: float) -> ConeProblem:
        speed = self._fall * h + SMALL_MOTION * self._smallest / h
        return ConeProblem(group, self._bias, operator, h, self._scratch, speed, self._motion, self._gap_shift)

    def with_new_bounds(self, contacts: ContactTable, h: float, pull: np.ndarray | None) -> ConeProblem:
        """The same problem with the bounded rows that the joints have now. pull: impulses by which cohesion shifts the
        cones (3 or 6, cap)."""
        friction = self._friction[..., : contacts.count].copy()  # as the laws have left it
        if self._rolls:
            problem = self._rolling(contacts, self._arrays, None, h)
        else:
            problem = self._articulated(contacts, self._arrays, h)
        self._friction[..., : contacts.count] = friction
        if pull is not None:
            n, product = contacts.count, self._rows
            problem.operator.product(pull, product)
            self._bias[0, n : problem.count] -= product[0, n : problem.count]
        return problem

    def _articulated(self, contacts: ContactTable, arrays: ContactArrays, h: float) -> ConeProblem:
        """The problem of contacts and bounded rows on jointed bodies."""
        operator, count = self._joint_operator(contacts, arrays, h)
        group = BlockGroup(BlockKind.CONE, 3, count, self._friction)
        return self._problem(group, operator, h)

    def _rolling(self, contacts: ContactTable, arrays: ContactArrays, free: np.ndarray | None, h: float) -> ConeProblem:
        """The problem with six rows a contact. free: velocities, None where the bias of the contacts stays."""
        articulated, count = self._joint_operator(contacts, arrays, h)
        whole = RollingArrays(articulated.arrays, self._frame, self._entry_torque)
        operator = RollingOperator(whole, self._backend, articulated)
        n = contacts.count
        if free is not None:
            operator.relative(free, self._rows)
            self._take_turns(n, self._rows, self._bias)
        self._set_turns(n, contacts.pair, self._spin, self._roll, self._friction)
        self._friction[1:, n:count] = 0.0
        group = BlockGroup(BlockKind.ROLLING, 6, count, self._friction)
        return self._problem(group, operator, h)

    def _joint_operator(
        self, contacts: ContactTable, arrays: ContactArrays, h: float
    ) -> tuple[ArticulatedOperator, int]:
        """N of contacts and bounded rows, and the number of both."""
        joints, b, n, diagonal = self._joints, self._backend, contacts.count, self._diagonal
        self._arrays = arrays
        cones = self._friction[0] if self._rolls else self._friction
        if joints is not None:
            rule = (IMMOVABLE, self._gravity * h)
            whole = joints.operator_arrays(arrays)
            if self._joined is None:
                self._joined = b.zeros(self._capacity), cones, self._bias
            joints.join(whole, contacts.friction, rule, diagonal, self._joined)
            return self._articulated_operator(whole), n + len(joints.bounded.active)
        b.contact_diagonal(
            n, arrays.body_a, arrays.body_b, arrays.frame, arrays.arms, arrays.inverse_mass, arrays.inverse_inertia,
            diagonal,
        )  # fmt: skip
        if self._soft:
            diagonal[0, :n] += self._compliance[0, :n]
            diagonal[1:3, :n] += self._compliance[1, :n]
        b.free_frozen_rows(n, diagonal, self._bias)
        cones[:n] = contacts.friction[:n]
        return ArticulatedOperator(without_joints(arrays, self._no_factor, b.zeros), b, diagonal), n

    def _articulated_operator(self, arrays: ArticulatedArrays) -> ArticulatedOperator:
        """The last one where its arrays are the same: its buffers serve again."""
        if self._jointed is None or self._jointed.arrays is not arrays:
            self._jointed = ArticulatedOperator(arrays, self._backend, self._diagonal, self._jointed)
        return self._jointed

    def warm_start(self, contacts: ContactTable, memory: ContactMemory, out: np.ndarray) -> int:
        """Impulses of the same contacts a step ago into out (3 or 6, cap); returns how many were found."""
        if self._rolls:
            self._recall(contacts, memory, memory.torque, out[3:])
        self._recall(contacts, memory, memory.impulse, out[:3])
        return self._hits

    def recall(self, contacts: ContactTable, memory: ContactMemory) -> dict[str, np.ndarray]:
        """What the laws of these contacts remember, (rows, cap) a column; vectors in their frames of now."""
        for column in self._laws.columns:
            found, out = memory.laws.get(column.name), self._remembered[column.name]
            if found is None or found.shape != (column.rows, len(memory.uid_a)):  # a state of a run without this law
                out[:] = 0.0
            elif column.rows == 3:
                self._backend.recall(contacts.count, self._found, False, self._frame, found, out)
            else:
                self._recall_numbers(contacts.count, self._found, found, out)
        return self._remembered

    def _recall(self, contacts: ContactTable, memory: ContactMemory, column: np.ndarray, out: np.ndarray) -> None:
        """Impulses (3, k) that contacts remembered, or zero; a new contact takes those of one of its pair that is
        gone."""
        if column.shape[1] != len(memory.uid_a):  # a state of a run without this law
            out[:] = 0.0
        else:
            self._backend.recall(contacts.count, self._found, True, self._frame, column, out)

    def remember(self, contacts: ContactTable, impulse: np.ndarray) -> ContactMemory:
        """What the next step needs to know of these contacts: their impulses, and what `recall` gave and the laws have
        brought up to date."""
        n, laws = contacts.count, {}
        empty = np.empty if self._backend.HOSTED else self._backend.zeros  # every entry is written
        memory = ContactMemory(
            empty(n, np.int64), empty(n, np.int64), contacts.feature[:n].copy(), empty((3, n)), empty((3, 0)), laws
        )
        vectors = [(impulse[:3], memory.impulse)]
        if self._rolls:
            memory.torque = empty((3, n))
            vectors.append((impulse[3:], memory.torque))
        for column in self._laws.columns:
            found = self._remembered[column.name]
            if column.rows == 3:
                laws[column.name] = empty((3, n))
                vectors.append((found, laws[column.name]))
            else:
                laws[column.name] = found[:, :n].copy()
        for rows, out in vectors:
            self._backend.remember(
                n,
                self._model.body_uid,
                contacts.body_a,
                contacts.body_b,
                self._frame,
                rows,
                memory.uid_a,
                memory.uid_b,
                out,
            )
        return memory

    @property
    def nbytes(self) -> int:
        """Memory of the buffers that grow with the contacts."""
        own = [self._frame, self._arms, self._slot_a, self._slot_b, self._entry_arm, self._entry_force, self._bias]
        own += [self._friction, self._compliance, self._entry_torque, self.before, *self._remembered.values()]
        own += self._operator.buffers if self._operator else ()
        own += [a for _, kept in self._scratch.values() for a in _arrays(kept)]
        return sum(a.nbytes for a in own)


def _arrays(kept: object) -> list[np.ndarray]:
    """All arrays in what is kept between steps."""
    if isinstance(kept, np.ndarray):
        return [kept]
    return [a for part in kept for a in _arrays(part)] if isinstance(kept, (tuple, list)) else []


def without_joints(contacts: ContactArrays, none_at_all: FactorArrays, zeros: Callable) -> ArticulatedArrays:
    """The arrays of contacts alone in the form of those with joints."""
    none, rows, bodies = zeros(0), zeros((0, 24)), zeros((0, 4), np.int32)
    start = zeros(1, np.int64)
    return ArticulatedArrays(contacts, bodies, rows, rows, none_at_all, none, bodies, rows, rows, none, start)
