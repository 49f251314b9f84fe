"""From contacts to the cone problem of a step, and from its solution to what the contacts remember."""

from __future__ import annotations

from types import ModuleType
from typing import Protocol

import numpy as np

from ..backends.base import ContactArrays
from ..enums import BlockKind
from ..scene.model import ContactMemory, Model
from .cone_problem import BlockGroup, ConeProblem
from .joints import Joints
from .operators import ArticulatedOperator, ContactOperator

__all__ = ["ContactTable", "Rows"]


class ContactTable(Protocol):
    """What assembling needs of the contacts (`collide.Contacts`)."""

    count: int
    capacity: int
    body_a: np.ndarray
    body_b: np.ndarray
    feature: np.ndarray
    friction: np.ndarray
    size: np.ndarray
    gap: np.ndarray
    normal: np.ndarray
    point: np.ndarray


class Rows:
    """Buffers of the rows of one model's contacts; they grow with the number of contacts and are reused every step."""

    def __init__(self, model: Model, backend: ModuleType, joints: Joints | None = None) -> None:
        self._model, self._backend, self._joints = model, backend, joints
        n = model.body_count
        self._movable = np.any(model.body_inverse_mass > 0.0, axis=1) | (
            (model.body_mass > 0.0) & ~np.all(model.body_locked[:, 3:], axis=1)
        )
        self._entry_start = np.zeros(n + 1, np.int64)
        self._cursor = np.zeros(n, np.int64)
        self._body_velocity = np.zeros((n, 6))
        self._any_locked = bool(np.any(model.body_locked))
        self._gravity = float(np.linalg.norm(model.gravity)) or 9.81
        self._scratch: dict[str, np.ndarray] = {}
        self._operator: ContactOperator | None = None
        self._allocate(0)

    def _allocate(self, capacity: int) -> None:
        self._contact_capacity = capacity
        if self._joints is not None:  # the bounded rows come after the contacts
            capacity += len(self._joints.model.bounded_rows)
        self._capacity = capacity
        self._friction = np.zeros(capacity)
        self._frame = np.zeros((9, capacity))
        self._arms = np.zeros((6, capacity))
        self._slot_a = np.zeros(capacity, np.int32)
        self._slot_b = np.zeros(capacity, np.int32)
        self._entry_arm = np.zeros((2 * capacity + 1, 3))
        self._entry_force = np.zeros((2 * capacity + 1, 3))
        self._bias = np.zeros((3, capacity))
        self._scratch.clear()
        self._operator = None

    def assemble(
        self,
        contacts: ContactTable,
        center: np.ndarray,
        free: np.ndarray,
        inverse_inertia: np.ndarray,
        h: float,
        recovery: float,
    ) -> ConeProblem:
        """The cone problem of the step. Its arrays belong to this object and live until the next call."""
        if contacts.capacity != self._contact_capacity:
            self._allocate(contacts.capacity)
        b, c = self._backend, contacts
        b.fill_entries(
            c.count, c.body_a, c.body_b, self._movable, self._entry_start, self._cursor, self._slot_a, self._slot_b
        )
        b.build_rows(
            c.count,
            c.body_a,
            c.body_b,
            c.normal,
            c.point,
            c.gap,
            c.size,
            center,
            free,
            h,
            recovery,
            self._gravity,
            self._slot_a,
            self._slot_b,
            self._frame,
            self._arms,
            self._entry_arm,
            self._bias,
        )
        arrays = ContactArrays(
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
        )
        if self._joints is not None:
            return self._articulated(contacts, arrays, h)
        if self._operator is None:
            self._operator = ContactOperator(arrays, b)
        else:
            self._operator.arrays = arrays
        problem = ConeProblem(
            BlockGroup(BlockKind.CONE, 3, c.count, c.friction), self._bias, self._operator, h, self._scratch
        )
        diagonal = problem.buffer("diagonal", 6, self._capacity)
        self._operator.diagonal_blocks(diagonal)
        if self._any_locked:
            b.free_frozen_rows(c.count, diagonal, self._bias)
        return problem

    def with_new_bounds(self, contacts: ContactTable, h: float, shift: np.ndarray | None) -> ConeProblem:
        """The same problem with the bounded rows that the joints have now. shift: of cohesive contacts' impulses."""
        problem = self._articulated(contacts, self._arrays, h)
        if shift is not None:
            n = contacts.count
            pull, product = problem.vector("x_new"), problem.vector("product")
            pull[:] = 0.0
            pull[0, :n] = shift
            problem.operator.product(pull, product)
            self._bias[0, n : problem.count] -= product[0, n : problem.count]
        return problem

    def _articulated(self, contacts: ContactTable, arrays: ContactArrays, h: float) -> ConeProblem:
        """The problem of contacts and bounded rows on jointed bodies."""
        joints, b, n = self._joints, self._backend, contacts.count
        count = n + len(joints.active)
        self._arrays = arrays
        whole = joints.arrays(arrays)
        diagonal = self._scratch.setdefault("joint_diagonal", np.zeros((6, self._capacity)))
        b.contact_diagonal(
            n, arrays.body_a, arrays.body_b, arrays.frame, arrays.arms, arrays.inverse_mass, arrays.inverse_inertia,
            diagonal,
        )  # fmt: skip
        joints.diagonal(whole, diagonal)
        self._friction[:n] = contacts.friction[:n]
        self._friction[n:count] = joints.bound
        self._bias[:, n:count] = 0.0
        self._bias[0, n:count] = joints.bias
        operator = ArticulatedOperator(whole, b, diagonal)
        group = BlockGroup(BlockKind.CONE, 3, count, self._friction)
        problem = ConeProblem(group, self._bias, operator, h, self._scratch)
        b.free_frozen_rows(n, diagonal, self._bias)
        return problem

    def warm_start(self, contacts: ContactTable, memory: ContactMemory, out: np.ndarray) -> int:
        """Impulses of the same contacts a step ago into out (3, cap); returns how many were found."""
        return int(
            self._backend.warm_start(
                contacts.count,
                self._model.body_uid,
                contacts.body_a,
                contacts.body_b,
                contacts.feature,
                self._frame,
                memory.uid_a,
                memory.uid_b,
                memory.feature,
                memory.impulse,
                out,
            )
        )

    def remember(self, contacts: ContactTable, impulse: np.ndarray) -> ContactMemory:
        """What the next step needs to know of these contacts."""
        n = contacts.count
        memory = ContactMemory(
            np.empty(n, np.int64), np.empty(n, np.int64), contacts.feature[:n].copy(), np.empty((3, n))
        )
        self._backend.remember(
            n,
            self._model.body_uid,
            contacts.body_a,
            contacts.body_b,
            self._frame,
            impulse,
            memory.uid_a,
            memory.uid_b,
            memory.impulse,
        )
        return memory

    @property
    def nbytes(self) -> int:
        """Memory of the buffers that grow with the contacts."""
        own = [self._frame, self._arms, self._slot_a, self._slot_b, self._entry_arm, self._entry_force, self._bias]
        scaled = self._operator._scaled_frame if self._operator else None
        return sum(a.nbytes for a in [*own, *self._scratch.values()] + ([scaled] if scaled is not None else []))
