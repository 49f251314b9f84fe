"""Contact laws beyond Coulomb's friction with one coefficient, one a file. Rolling friction has rows of its own.

A law changes the assembled problem, and may remember numbers of every contact from step to step (`base.ContactLaw`). To
add one: its keys in `scene/materials.py`, its formulas in `kernels/laws.py`, the law here, and a line in LAWS.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from ...collide.contacts import Contacts
from ...enums import Law
from ...problem.assemble import ContactTable
from ...problem.cone_problem import ConeProblem
from ...scene.materials import PairLaws
from ...solve.base import Solution, Solver
from .ageing import Ageing
from .base import Column, Ended, FoundContacts, ReachArrays, SideArrays, fitting
from .cohesion import Cohesion, cohesion_reach
from .falling_friction import FallingFriction
from .restitution import Restitution
from .springs import Springs

__all__ = ["ContactLaws", "cohesion_reach"]

LAWS = (FallingFriction, Ageing, Restitution, Springs, Cohesion)
"""In the order in which they change the problem. They change the guess the other way round."""


class ContactLaws:
    """The laws that a scene's materials have, with their scratch."""

    def __init__(self, pairs: PairLaws, backend: ModuleType) -> None:
        self._laws = [law(pairs, backend) for law in LAWS if pairs.active and law.acts(pairs)]
        self._by_kind = {type(law): law for law in self._laws}
        self._backend = backend
        self.columns: tuple[Column, ...] = tuple(column for law in self._laws for column in law.remembers)
        """What contacts remember"""
        self.is_soft = any(law.soft for law in self._laws)
        """Whether contacts yield"""
        self.firm = np.full(pairs.cohesion.size, True)
        """(pairs,) whose gap has no meaning of its own"""
        for law in self._laws:
            self.firm &= law.firm
        self._found: FoundContacts | None = None
        self._free = backend.zeros((0, 0))

    def soften(self, contacts: ContactTable, h: float, compliance: np.ndarray) -> None:
        """Compliance E of the contacts (2, cap) [1/kg]."""
        for law in self._laws:
            law.soften(contacts, h, compliance)

    def change(
        self,
        contacts: Contacts,
        problem: ConeProblem,
        before: np.ndarray,
        free: np.ndarray,
        h: float,
        remembered: dict[str, np.ndarray],
    ) -> None:
        """Friction and bias of the problem. before: relative velocities (3 or 6, cap) before the step; free: velocities
        of the bodies after the kick of the forces (n, 6); remembered: the columns of these contacts, in their frames.
        """
        self._found = None
        if self._laws and contacts.count:
            self._free = fitting(self._free, *problem.bias.shape)
            problem.step_operator.relative(free, self._free)
            c = contacts
            touch, sides = ReachArrays(c.pair, c.size, c.gap), SideArrays(c.body_a, c.body_b, c.normal)
            self._found = FoundContacts(
                touch, sides, c.count, c.friction, problem, h, before, self._free, free, remembered
            )
            for law in self._laws:
                law.change(self._found)

    def start(self, guess: np.ndarray) -> None:
        """Change the impulses that the solver starts from."""
        if self._found is not None:
            for law in reversed(self._laws):
                law.start(self._found, guess)

    @property
    def pull(self) -> np.ndarray | None:
        """Impulses by which cohesion shifts the cones, or None."""
        cohesion = self._of(Cohesion)
        return None if cohesion is None else cohesion.pull

    @property
    def hit(self) -> np.ndarray | None:
        """Contacts that bounce (count,), or None."""
        restitution, found = self._of(Restitution), self._found
        return None if restitution is None or found is None else restitution.hit[: found.count]

    def unshifted(self, solution: Solution) -> np.ndarray:
        """Impulses of the contacts themselves: without what cohesion shifted."""
        cohesion = self._of(Cohesion)
        if cohesion is None or cohesion.pull is None:
            return solution.impulse
        return cohesion.unshifted(solution.impulse)

    def _of(self, kind: type) -> Any:
        """The law of this kind, or None where the scene or the step has none."""
        return self._by_kind.get(kind) if self._found is not None else None

    def rebounds(
        self, problem: ConeProblem, solution: Solution, *, solver: Solver, law: Law | str
    ) -> tuple[ConeProblem, Solution, np.ndarray]:
        """The impulses of the contacts themselves (3 or 6, cap) [N s], with those of further rounds of hits, and the
        problem and solution of the last one."""
        restitution, found, impulse = self._of(Restitution), self._found, self.unshifted(solution)
        if restitution is None or found is None or not self._backend.largest(found.count, impulse[0]) > 0.0:
            return problem, solution, impulse
        return restitution.rebounds(found, problem, solution, self.pull, solver=solver, law=law)

    def end(self, impulse: np.ndarray, after: np.ndarray, velocity: np.ndarray, h: float) -> float:
        """Write what contacts remember of this step into the columns given to `change`; returns the energy that they
        store [J]. impulse, after: impulses and relative velocities of the contacts after the step; velocity: of the
        bodies (n, 6)."""
        if self._found is None:
            return 0.0
        cohesion = self._of(Cohesion)
        shift = cohesion.shift if cohesion is not None and cohesion.pull is not None else self._backend.zeros(0)
        ended = Ended(impulse, shift, after, velocity, h)
        return sum((law.end(self._found, ended) for law in self._laws), 0.0)
