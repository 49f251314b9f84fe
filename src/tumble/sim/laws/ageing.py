"""Friction that grows with the age of a contact: mu + b ln(1 + age / t_a), beside what depends on the speed.

The age obeys d(age)/dt = 1 - v age / D (Dieterich's law of ageing): a contact at rest grows older with the time, one
that slides at a steady speed v has the age D / v. A contact that carries nothing forgets its age.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ...kernels import laws as formulas
from ...scene.materials import PairLaws
from .base import Column, ContactLaw, Ended, FoundContacts

__all__ = ["Ageing"]

AGE = Column("age")
"""[s]"""


class Ageing(ContactLaw):
    """Contacts that hold better the longer they rest."""

    remembers = (AGE,)

    @staticmethod
    def acts(pairs: PairLaws) -> bool:
        """Where any pair ages."""
        return bool(np.any(pairs.ageing))

    def __init__(self, pairs: PairLaws, backend: ModuleType) -> None:
        super().__init__(pairs, backend)
        names = ("ageing", "ageing_time", "ageing_length")
        self._strength, self._time, self._length = (backend.send(pairs.of_pairs(name)) for name in names)
        self._hold, self._grow = (
            backend.over_contacts(formulas.aged_friction),
            backend.over_contacts(formulas.grown_age),
        )

    def change(self, found: FoundContacts) -> None:
        """More friction, by the age before the step."""
        age, friction = found.remembered[AGE.name], found.problem.sliding_friction
        self._hold(found.count, found.touch.pair, self._strength, self._time, age, friction)

    def end(self, found: FoundContacts, ended: Ended) -> float:
        """The age after the step."""
        age = found.remembered[AGE.name]
        self._grow(found.count, found.touch.pair, self._length, ended.impulse, ended.after, ended.h, age)
        return 0.0
