"""Cohesion c [N]: the cone is shifted, g + s e_n in K, while gap <= range.

With g' = g + s e_n this is the plain problem with the bias r - N s e_n, so every solver and measure takes it; the shift
is taken off after the solve. s = h c, less where the pair parts so fast that it leaves the range within the step: then
cohesion takes what is left of the energy c (range - gap) and no more, whatever the step.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np

from ...kernels import laws as formulas
from ...scene.materials import PairLaws
from .base import ContactLaw, FoundContacts, fitting

__all__ = ["Cohesion", "cohesion_reach"]

DEFAULT_RANGE = 1e-6
"""Range of cohesion in half-extents of the smaller shape."""


class CohesionArrays(NamedTuple):
    """Cohesion by pair of materials (k * k,)."""

    cohesion: np.ndarray
    cohesion_range: np.ndarray
    compliance: np.ndarray


class Cohesion(ContactLaw):
    """Contacts that pull."""

    @staticmethod
    def acts(pairs: PairLaws) -> bool:
        """Where any pair pulls."""
        return bool(np.any(pairs.cohesion))

    def __init__(self, pairs: PairLaws, backend: ModuleType) -> None:
        super().__init__(pairs, backend)
        self._tables = CohesionArrays(*(backend.send(pairs.of_pairs(name)) for name in CohesionArrays._fields))
        self.firm = pairs.of_pairs("cohesion") == 0.0
        self.shift = backend.zeros(0)
        """(cap,) of the normal impulses [N s]"""
        self._pull = self._product = self._own = backend.zeros((0, 0))
        self._diagonal = backend.zeros((6, 0))
        self._any = False
        run = backend.over_contacts
        self._shift, self._pulled = run(formulas.cohesion_shift), run(formulas.pulled)
        self._subtract = run(formulas.subtracted)
        self._add, self._take = run(formulas.shifted), run(formulas.unshifted)

    @property
    def pull(self) -> np.ndarray | None:
        """The shift as impulses (3 or 6, cap), or None where no contact pulls in this step."""
        return self._pull if self._any else None

    def change(self, found: FoundContacts) -> None:
        """Shift the cones: bias -= N (shift)."""
        problem, n = found.problem, found.count
        rows, capacity = problem.bias.shape
        self._diagonal, self.shift = fitting(self._diagonal, 6, capacity), fitting(self.shift, capacity)
        problem.operator.diagonal_blocks(self._diagonal)
        self._shift(
            n, found.touch, self._tables, DEFAULT_RANGE, found.before, self._diagonal,
            problem.step_operator.contacts.compliance, found.h, self.shift,
        )  # fmt: skip
        self._any = self.backend.largest(n, self.shift) > 0.0
        if self._any:
            self._pull, self._product = fitting(self._pull, rows, capacity), fitting(self._product, rows, capacity)
            self._pulled(capacity, n, self.shift, self._pull)
            problem.operator.product(self._pull, self._product)
            self._subtract(problem.count, self._product, problem.bias)

    def start(self, found: FoundContacts, guess: np.ndarray) -> None:
        """Impulses of the shifted cones."""
        if self._any:
            self._add(found.count, self.shift, guess)

    def unshifted(self, impulse: np.ndarray) -> np.ndarray:
        """Impulses (3 or 6, cap) of the contacts themselves."""
        self._own = fitting(self._own, *impulse.shape)
        self._take(impulse.shape[1], impulse, self.shift, self._own)
        return self._own


def cohesion_reach(pairs: PairLaws, sizes: np.ndarray) -> float:
    """Largest gap at which cohesion acts [m], for shapes of these smallest half-extents."""
    finite = sizes[np.isfinite(sizes)]
    default = DEFAULT_RANGE * float(finite.max(initial=0.0))
    ranges = np.where(pairs.cohesion_range < 0.0, default, pairs.cohesion_range) + pairs.cohesion * pairs.compliance
    return float(ranges[pairs.cohesion > 0.0].max(initial=0.0))
