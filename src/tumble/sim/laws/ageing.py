"""Friction that grows with the age of a contact: mu + b ln(1 + age / t_a), beside what depends on the speed.

The age obeys d(age)/dt = 1 - v age / D (Dieterich's law of ageing): a contact at rest grows older with the time, one
that slides at a steady speed v has the age D / v. A contact that carries nothing forgets its age.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np

from ...kernels import laws as formulas
from ...scene.materials import PairLaws
from .base import Column, ContactLaw, Ended, FoundContacts

__all__ = ["Ageing"]

AGE = Column("age")
"""[s]"""


class AgeingArrays(NamedTuple):
    """Ageing by pair of materials (k * k,)."""

    ageing: np.ndarray
    ageing_time: np.ndarray
    ageing_length: np.ndarray


class Ageing(ContactLaw):
    """Contacts that hold better the longer they rest."""

    remembers = (AGE,)

    @staticmethod
    def acts(pairs: PairLaws) -> bool:
        """Where any pair ages."""
        return bool(np.any(pairs.ageing))

    def __init__(self, pairs: PairLaws, backend: ModuleType) -> None:
        super().__init__(pairs, backend)
        self._tables = AgeingArrays(*(backend.send(pairs.of_pairs(name)) for name in AgeingArrays._fields))
        self._hold, self._grow = (
            backend.over_contacts(formulas.aged_friction),
            backend.over_contacts(formulas.grown_age),
        )

    def change(self, found: FoundContacts) -> None:
        """More friction, by the age before the step."""
        age, friction = found.remembered[AGE.name], found.problem.sliding_friction
        self._hold(found.count, found.touch.pair, self._tables, age, friction)

    def end(self, found: FoundContacts, ended: Ended) -> float:
        """The age after the step."""
        age = found.remembered[AGE.name]
        self._grow(found.count, found.touch.pair, self._tables, ended.impulse, ended.after, ended.h, age)
        return 0.0
