"""Compliant contacts: a spring c [m/N] with a dashpot d [N s/m], along the normal and in the tangent plane.

The force -(gap + h u) / c - d u of the end of the step, so u + E g + gap / (h + c d) with E = c / (h (h + c d)) is
complementary to g; the overlap is wanted, so its recovery is not capped. In the tangent plane the stretch that contacts
remember takes the place of the gap, and the dashpot follows the stretch: what slides beyond it has friction alone.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np

from ...kernels import laws as formulas
from ...problem.assemble import ContactTable
from ...scene.materials import PairLaws
from .base import Column, ContactLaw, Ended, FoundContacts, fitting

__all__ = ["Springs"]

STRETCH = Column("stretch", rows=3)
"""Of the tangential spring [m]"""


class SpringArrays(NamedTuple):
    """Springs by pair of materials (k * k,)."""

    compliance: np.ndarray
    damping: np.ndarray
    tangential_compliance: np.ndarray
    tangential_damping: np.ndarray


class Springs(ContactLaw):
    """Springs and dashpots of contacts."""

    remembers = (STRETCH,)
    soft = True

    @staticmethod
    def acts(pairs: PairLaws) -> bool:
        """Where any pair is compliant."""
        return pairs.is_soft

    def __init__(self, pairs: PairLaws, backend: ModuleType) -> None:
        super().__init__(pairs, backend)
        self._springs = SpringArrays(*(backend.send(pairs.of_pairs(name)) for name in SpringArrays._fields))
        self.firm = pairs.of_pairs("compliance") == 0.0
        self._energy = backend.zeros(0)
        self._soften = backend.over_contacts(formulas.spring_compliance)
        self._turn = backend.over_contacts(formulas.turned_stretch)
        self._bias = backend.over_contacts(formulas.spring_bias)
        self._end = backend.over_contacts(formulas.spring_end)

    def soften(self, contacts: ContactTable, h: float, compliance: np.ndarray) -> None:
        """E of every contact; the damper of the normal acts on contacts that touch already."""
        self._soften(contacts.count, contacts.pair, contacts.gap, self._springs, h, compliance)

    def change(self, found: FoundContacts) -> None:
        """The bias of the springs."""
        n, touch, stretch = found.count, found.touch, found.remembered[STRETCH.name]
        self._turn(n, stretch)
        self._bias(n, touch.pair, touch.gap, self._springs, stretch, found.free, found.h, found.problem.bias)

    def end(self, found: FoundContacts, ended: Ended) -> float:
        """The new stretch; the energy in all springs."""
        n, stretch = found.count, found.remembered[STRETCH.name]
        self._energy = fitting(self._energy, stretch.shape[1])
        touch = found.touch
        self._end(n, touch.pair, touch.gap, found.sides, self._springs, ended, stretch, self._energy)
        return float(self.backend.total(n, self._energy))
