"""Where the energy of a step came from and went to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..problem.cone_problem import ConeProblem

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

    def __init__(self) -> None:
        self._after = np.zeros((0, 0))

    def contacts(
        self, problem: ConeProblem, impulse: np.ndarray, change: np.ndarray, work: Workspace, h: float
    ) -> tuple[Books, np.ndarray]:
        """Works of normal and tangential impulses, of the recovery of overlaps, and of prescribed motion; and the
        relative velocities (rows, cap) of the contacts after the impulses, which change the velocities of the bodies by
        (n, 6)."""
        contacts, model = work.contacts, work.model
        if self._after.shape != problem.bias.shape:
            self._after = np.zeros_like(problem.bias)
        if contacts.count == 0:
            return Books(0.0, 0.0, 0.0, 0.0), self._after
        work.set_velocity(change)
        problem.step_operator.relative(work.velocity, self._after)
        arrays = problem.step_operator.contacts
        normal, friction, recovery = work.backend.contact_work(
            contacts.count, impulse, self._after, work.rows.before, contacts.gap, arrays.compliance, h
        )
        driven = 0.0
        if work.kinematic.size:
            driven = work.backend.driven_work(
                contacts.count,
                model.body_kind,
                contacts.body_a,
                contacts.body_b,
                arrays.frame,
                arrays.arms,
                impulse,
                work.free,
            )
        return Books(float(normal), float(friction), float(recovery), float(driven)), self._after
