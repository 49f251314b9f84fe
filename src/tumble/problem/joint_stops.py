"""Limits that are stood on: closed through the drift and held in velocity like joints, as long as they push."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.joint_arrays import SetArrays, StepArrays
from ..enums import RowRole
from ..kernels import joint_stops as formulas
from ..kernels.joint_steps import HUGE
from ..scene.model import Model
from .bounded_rows import BoundedRows
from .joint_system import RowSet

__all__ = ["Stops"]


class Stops:
    """Limits of joints that hold something rigidly besides, and which of them are stood on in the present step."""

    def __init__(self, model: Model, backend: ModuleType, movable: np.ndarray, offset: np.ndarray) -> None:
        """movable (bodies,); offset: of all rows."""
        j, self._backend = model.joints, backend
        held = np.isin(j.row_element, j.row_element[j.row_role == RowRole.RIGID])
        is_stop = held & ((j.row_role == RowRole.LOWER) | (j.row_role == RowRole.UPPER))
        self.any = bool(is_stop.any())
        """Whether there are such limits"""
        self.pressing = 0
        """How many are stood on"""
        self._make = model, movable, offset, np.flatnonzero(is_stop)
        zeros = backend.zeros
        self._stop, self.stuck = backend.send(is_stop), zeros(j.row_count, bool)
        """(r,) bool; rows that nothing moves in this step"""
        self._pressed = zeros(j.row_count, bool)
        self._own = zeros(j.row_count) + HUGE
        self._set: RowSet | None = None
        self._taken: dict = {}

    @property
    def rows(self) -> RowSet:
        """The rows of the joints and these limits."""
        if self._set is None:
            model, movable, offset, stops = self._make
            b, rows = self._backend, np.concatenate([model.joints.equality_rows, stops])
            self._set = s = RowSet(model, b, rows, movable, offset)
            self._mechanism, n = b.send(s.mechanism.astype(np.int64)), len(s.rows)
            self.closed, self.held = b.zeros(n, bool), b.zeros(n, bool)
            """(rows,) which are closed, and which are held in velocity"""
            self._left = b.zeros(n, bool)
            self._freedoms = b.zeros(len(s.pattern.mechanism) - 1, np.int64)
        return self._set

    def stand(self, bounded: BoundedRows, exact: RowSet) -> None:
        """Which limits are stood on at the kick."""
        self.pressing = 0
        if not self.any:
            return
        a, count = bounded.arrays, len(self._pressed)
        self._run(
            "stood_on", len(a.slack), a.rows, a.built, a.state, bounded.tiny, self._stop, self.stuck, self._pressed
        )
        self.pressing = int(self._backend.count_true(count, self._pressed))
        if self.pressing:
            self._run("take_compliance", len(exact.rows), exact.kick.rows.number, exact.kick.compliance, self._own)

    def at_kick(self, joints: StepArrays, exact: RowSet, inverse_inertia: np.ndarray) -> bool:
        """The system at the kick with the limits that are stood on; those that depend on other rows are left. Whether
        there are any."""
        b = self._backend
        while self.pressing:
            s = self.rows
            s.kick.assemble(joints.value, joints.target, joints.jacobian, inverse_inertia)
            built = s.kick.built
            self._run(
                "stop_compliance",
                len(s.rows),
                s.kick.rows.number,
                self._own,
                self._stop,
                self._pressed,
                built.compliance,
            )
            s.kick.factor()
            dropped = s.kick.dropped_in, exact.kick.dropped_in
            self._run("leave_dependent", len(s.rows), s.kick.rows, self._mechanism, *dropped, self._pressed, self._left)
            left = int(b.count_true(len(s.rows), self._left))
            if not left:
                return True
            self.pressing -= left
        return False

    def close(self, start: np.ndarray, h: float) -> np.ndarray:
        """(rows,) which are closed; start: coordinates at the start of the step."""
        s = self.rows
        self._run("close_stop", len(s.rows), s.kick.rows, start, h, self._pressed, s.kick.built.wanted, self.closed)
        return self.closed

    def let_go(self, base: np.ndarray, y: np.ndarray) -> bool:
        """Leave limits that would pull with base (by number) and y; whether there are any."""
        s = self.rows
        self._run("let_go", len(s.rows), s.kick.rows, base, y, self._pressed, self._left)
        left = int(self._backend.count_true(len(s.rows), self._left))
        self.pressing -= left
        return left > 0

    def hold(self, rows: SetArrays) -> np.ndarray:
        """(rows,) which are held in velocity."""
        self._run("hold_stop", len(self.held), rows.system.rows, rows.exact, self._pressed, self.held)
        return self.held

    def add_held(self, joints: StepArrays) -> None:
        """What held limits at the end of the step belongs to their impulses."""
        s = self.rows
        self._run("add_held", len(s.rows), s.kick.rows, self._pressed, joints.end, joints.impulse)

    def freedoms(self, freedoms: np.ndarray) -> np.ndarray:
        """(mechanisms,) freedoms of bodies less rigid rows and limits that are stood on."""
        k, out = self.rows.kick, self._freedoms
        self._run(
            "freedoms_left", len(out), k.factors.mechanism, k.rows.number, k.rows.rigid, self._pressed, freedoms, out
        )
        return out

    def restore(self, bodies: np.ndarray, velocity: np.ndarray) -> None:
        """Velocities of these bodies as they were before the joints were closed."""
        self._run("restore", len(bodies), bodies, self.rows.closed.closing.base, velocity)

    def _run(self, name: str, *arguments: object) -> None:
        if name not in self._taken:
            maker = self._backend.over_mechanisms if name == "freedoms_left" else self._backend.over_rows
            self._taken[name] = maker(getattr(formulas, name))
        self._taken[name](*arguments)
