"""Friction that falls with speed: mu + (mu_s - mu) exp(-(v / v_s)^2), v the sliding speed at the start of the step."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ...kernels import laws as formulas
from ...scene.materials import PairLaws
from .base import ContactLaw, FoundContacts

__all__ = ["FallingFriction"]


class FallingFriction(ContactLaw):
    """Static friction above that of sliding."""

    @staticmethod
    def acts(pairs: PairLaws) -> bool:
        """Where more holds at rest than while sliding."""
        return bool(np.any(pairs.static_friction > pairs.friction))

    def __init__(self, pairs: PairLaws, backend: ModuleType) -> None:
        super().__init__(pairs, backend)
        self._static = backend.send(pairs.of_pairs("static_friction"))
        self._speed = backend.send(pairs.of_pairs("friction_speed"))
        self._fall = backend.over_contacts(formulas.falling_friction)

    def change(self, found: FoundContacts) -> None:
        """Friction at the speed before the step."""
        n, touch = found.count, found.touch
        friction = found.problem.sliding_friction
        self._fall(n, touch.pair, self._static, self._speed, found.friction, found.before, friction)
