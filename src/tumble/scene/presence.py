"""The model as a step sees it: without the bodies that are absent."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np

from ..enums import Presence
from ..kernels.passing import shown_body, shown_shape
from .model import Model, State

__all__ = ["Seen", "present"]


class Seen:
    """A copy of a model whose bodies can be taken out and put back.

    An absent body is static and has no inverse mass, so nothing moves it and no energy counts it. Its shapes are
    half-spaces that are in nobody's list of planes, which the broad phase passes over: they are in no cell and in no
    pair, however many lie at one place. Searches must be made (`PairSearch`) while all bodies are there.
    """

    def __init__(self, model: Model, backend: ModuleType) -> None:
        self._whole = model.sent(backend)
        self._none = backend.send(np.zeros(0, bool))
        self._show_body, self._show_shape = backend.over_bodies(shown_body), backend.over_bodies(shown_shape)
        self._shown: np.ndarray | None = None
        own = model.body_kind.copy(), model.shape_kind.copy(), model.body_inverse_mass.copy()
        self._kind, self._shape_kind, self._inverse_mass = map(backend.send, own)
        self.sent = replace(
            self._whole,  # views, because a model closes its arrays against writing
            body_kind=self._kind.view(),
            shape_kind=self._shape_kind.view(),
            body_inverse_mass=self._inverse_mass.view(),
        )
        """What the passes read"""
        vars(self.sent)["shape_rank"] = self._whole.shape_rank
        self.model = self.sent if backend.HOSTED else model
        """The same with NumPy's arrays; where the passes run elsewhere it has all bodies"""

    def show(self, presence: np.ndarray, *, moving: np.ndarray | None = None) -> None:
        """Only bodies that are PRESENT in `presence` (n,) are there. moving (n,) bool: the others of them are static.

        An array that is shown must not be changed any more: the same one again is taken for no change.
        """
        if presence is self._shown and moving is None:
            return
        self._shown = presence if moving is None else None
        m, moves = self._whole, self._none if moving is None else moving
        kind, mass = m.body_kind, m.body_inverse_mass
        self._show_body(len(kind), presence, moves, kind, mass, self._kind, self._inverse_mass)
        self._show_shape(len(m.shape_kind), presence, m.shape_body, m.shape_kind, self._shape_kind)


def present(model: Model, state: State) -> np.ndarray:
    """(n,) bool: bodies that are there."""
    return state.presence == Presence.PRESENT if len(state.presence) else np.ones(model.body_count, bool)
