"""Where the energy of a step came from and went to."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from ..backends.base import blocks
from ..problem.cone_problem import ConeProblem
from ..problem.operators import ArticulatedOperator, ContactOperator

if TYPE_CHECKING:
    from .workspace import Workspace

__all__ = ["Bookkeeper", "Books"]


@dataclass(slots=True)
class Books:
    """Energies and works of one step [J]."""

    normal: float
    friction: float
    recovery: float
    driven: float
    """Put in by bodies of prescribed motion"""
    joints: float = 0.0
    motors: float = 0.0
    external: float = 0.0
    elastic: float = 0.0
    """In the springs of contacts at the end"""
    before: float = 0.0
    """Kinetic energy at the start"""
    kinetic: float = 0.0
    potential_before: float = 0.0
    potential: float = 0.0
    came: tuple[float, float] = (0.0, 0.0)
    """Kinetic and potential energy of bodies that came, less those that went"""
    largest_speed: float = 0.0
    """[m/s]"""
    not_finite: int = 0
    """Bodies"""
    travel: float = 0.0
    """Of a body in units of its smallest half-extent"""

    def take_sums(self, sums: np.ndarray) -> None:
        """What the pass that moves the bodies summed up."""
        self.before, self.kinetic, self.potential_before, self.potential, self.external = map(float, sums[:5])
        self.largest_speed, self.not_finite, self.travel = float(sums[5]), int(sums[6]), float(sums[7])

    def lift(self, energy: float) -> None:
        """Overlapping bodies were pushed apart without touching velocities, in gravity."""
        self.recovery += energy
        self.potential += energy

    def resist(self, energy: float) -> None:
        """Joints took this of what overlaps gave: a mechanism that has no way out recovers nothing."""
        taken = min(self.recovery, energy)
        self.recovery -= taken
        self.joints += taken

    @property
    def defect(self) -> float:
        """Change of the energies less all works."""
        works = self.normal + self.recovery + self.friction + self.driven + self.joints + self.external
        return self.kinetic + self.potential - self.before - self.potential_before - works


class Bookkeeper:
    """Works of the contacts, with their scratch."""

    def __init__(self, backend: ModuleType) -> None:
        self._partial = backend.zeros((0, 4))

    def contacts(
        self, problem: ConeProblem, impulse: np.ndarray, work: Workspace, h: float
    ) -> tuple[Books, np.ndarray, np.ndarray]:
        """Works of normal and tangential impulses, of the recovery of overlaps, and of prescribed motion; what the
        impulses change the velocities of the bodies by (n, 6); and the relative velocities (rows, cap) of the contacts
        after them. Leaves the velocities of the bodies in work.velocity."""
        contacts, model, operator = work.contacts, work.model, problem.step_operator
        after = problem.product_room  # the solver is done with it
        if len(self._partial) != blocks(after.shape[1]):
            self._partial = work.backend.zeros((blocks(after.shape[1]), 4))
        rows, b = operator.contacts, work.backend
        if isinstance(operator, ContactOperator):
            change = rows.body_velocity
            works = b.act_impulses(
                rows, impulse, work.free, work.rows.before, contacts.gap, h, work.velocity, after, self._partial
            )
        elif isinstance(operator, ArticulatedOperator):
            change = rows.body_velocity
            works = b.act_articulated(
                operator.arrays, impulse, work.free, work.rows.before, contacts.gap, h, work.velocity, after,
                self._partial,
            )  # fmt: skip
        else:
            change = operator.velocity(impulse)
            work.set_velocity(change)
            operator.relative(work.velocity, after)
            works = b.contact_work(
                contacts.count, impulse, after, work.rows.before, contacts.gap, rows.compliance, h, self._partial
            )
        driven = 0.0
        if work.kinematic.size and contacts.count:
            driven = b.driven_work(
                contacts.count,
                model.body_kind,
                contacts.body_a,
                contacts.body_b,
                rows.frame,
                rows.arms,
                impulse,
                work.free,
            )
        normal, friction, recovery = works
        return Books(normal, friction, recovery, driven), change, after
