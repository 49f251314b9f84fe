"""The model as a step sees it: without the bodies that are absent."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..enums import BodyKind, Presence, ShapeKind
from .model import Model, State

__all__ = ["Seen", "present"]


class Seen:
    """A copy of a model whose bodies can be taken out and put back.

    An absent body is static and has no inverse mass, so nothing moves it and no energy counts it. Its shapes are
    half-spaces that are in nobody's list of planes, which the broad phase passes over: they are in no cell and in no
    pair, however many lie at one place. Searches must be made (`PairSearch`) while all bodies are there.
    """

    def __init__(self, model: Model) -> None:
        self._whole = model
        self._kind, self._shape_kind = model.body_kind.copy(), model.shape_kind.copy()
        self._inverse_mass = model.body_inverse_mass.copy()
        self._shown: np.ndarray | None = None
        self.model = dataclasses.replace(
            model,  # views, because a model closes its arrays against writing
            body_kind=self._kind.view(),
            shape_kind=self._shape_kind.view(),
            body_inverse_mass=self._inverse_mass.view(),
        )

    def show(self, presence: np.ndarray, *, moving: np.ndarray | None = None) -> None:
        """Only bodies that are PRESENT in `presence` (n,) are there. moving (n,) bool: the others of them are static.

        An array that is shown must not be changed any more: the same one again is taken for no change.
        """
        if presence is self._shown and moving is None:
            return
        self._shown = presence if moving is None else None
        here, m = presence == Presence.PRESENT, self._whole
        np.copyto(self._kind, np.where(here if moving is None else moving, m.body_kind, np.int8(BodyKind.STATIC)))
        np.copyto(self._inverse_mass, np.where(here[:, None], m.body_inverse_mass, 0.0))
        np.copyto(self._shape_kind, np.where(here[m.shape_body], m.shape_kind, np.int8(ShapeKind.HALF_SPACE)))


def present(model: Model, state: State) -> np.ndarray:
    """(n,) bool: bodies that are there."""
    return state.presence == Presence.PRESENT if len(state.presence) else np.ones(model.body_count, bool)
