"""What a contact law is."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np

from ...problem.assemble import ContactTable
from ...problem.cone_problem import ConeProblem
from ...scene.materials import PairLaws

__all__ = ["Column", "ContactLaw", "Ended", "FoundContacts", "ReachArrays", "SideArrays", "fitting"]


class Column(NamedTuple):
    """What a law remembers of every contact from one step to the next; 0 for new contacts."""

    name: str
    rows: int = 1
    """3 for a vector n, u, w in the contact's frame, which is remembered in world axes"""


class ReachArrays(NamedTuple):
    """Which contacts are how far apart."""

    pair: np.ndarray  # (cap,) int32: of materials
    size: np.ndarray  # (cap,)
    gap: np.ndarray  # (cap,)


class SideArrays(NamedTuple):
    """The bodies of contacts, and the normal between them."""

    body_a: np.ndarray  # (cap,) int32
    body_b: np.ndarray
    normal: np.ndarray  # (3, cap)


class Ended(NamedTuple):
    """Contacts at the end of a step."""

    impulse: np.ndarray  # (3 or 6, cap)
    shift: np.ndarray  # (cap,) of cohesion, or empty
    after: np.ndarray  # (3 or 6, cap) relative velocities
    velocity: np.ndarray  # (n, 6) of the bodies
    h: float


class FoundContacts(NamedTuple):
    """The contacts of a step and their assembled problem."""

    touch: ReachArrays
    sides: SideArrays
    count: int
    friction: np.ndarray  # (cap,) while sliding
    problem: ConeProblem
    h: float
    before: np.ndarray  # (3 or 6, cap) relative velocities before the step
    free: np.ndarray  # (3 or 6, cap) after the kick of the forces, without contacts
    velocity_free: np.ndarray  # (n, 6) of the bodies, likewise
    remembered: dict[str, np.ndarray]  # columns that laws remember (rows, cap), vectors in the contacts' frames


class ContactLaw:
    """One law. What it does to a contact are formulas of `kernels/laws.py`, which the backend runs on all of them."""

    remembers: tuple[Column, ...] = ()
    soft = False
    """Whether contacts yield"""
    firm: np.ndarray | bool = True
    """(pairs,) of which pairs of materials a gap has no meaning of its own, so that one at rest may be left"""

    @staticmethod
    def acts(pairs: PairLaws) -> bool:
        """Whether any pair of materials has this law."""
        raise NotImplementedError

    def __init__(self, pairs: PairLaws, backend: ModuleType) -> None:
        self.backend = backend

    def soften(self, contacts: ContactTable, h: float, compliance: np.ndarray) -> None:
        """Write the compliance E (2, cap) of the contacts [1/kg]."""

    def change(self, found: FoundContacts) -> None:
        """Change friction and bias of the problem."""

    def start(self, found: FoundContacts, guess: np.ndarray) -> None:
        """Change the impulses (3 or 6, cap) that the solver starts from."""

    def end(self, found: FoundContacts, ended: Ended) -> float:
        """Write what contacts remember into `found.remembered`; returns the energy that they store [J]."""
        return 0.0


def fitting(buffer: np.ndarray, *shape: int) -> np.ndarray:
    """The buffer, or a new one of zeros where it has another shape."""
    return buffer if buffer.shape == shape else np.zeros_like(buffer, shape=shape)
