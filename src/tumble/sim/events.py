"""Which bodies came to touch, and which parted, in a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..scene.model import ContactMemory, Model

__all__ = ["TouchEvents", "touch_events"]


@dataclass(frozen=True)
class TouchEvents:
    """Pairs of bodies whose contact began or ended in a step, as sorted rows of indices a < b."""

    began: np.ndarray
    """(k, 2)"""
    ended: np.ndarray
    """(k, 2)"""


def touch_events(model: Model, before: ContactMemory, after: ContactMemory) -> TouchEvents:
    """Compare the pairs that pressed on each other in two steps: touching is carrying an impulse."""
    old, new = _touching(before), _touching(after)
    began, ended = np.setdiff1d(new, old), np.setdiff1d(old, new)
    return TouchEvents(_bodies(model, began), _bodies(model, ended))


def _touching(memory: ContactMemory) -> np.ndarray:
    """Pairs with an impulse, uid a * 2^32 + uid b, sorted and once each."""
    loaded = np.any(memory.impulse != 0.0, axis=0)
    return np.unique((memory.uid_a[loaded] << 32) + memory.uid_b[loaded])


def _bodies(model: Model, pairs: np.ndarray) -> np.ndarray:
    uid = np.stack([pairs >> 32, pairs & 0xFFFFFFFF], axis=1)
    order = np.argsort(model.body_uid)
    places = np.sort(order[np.searchsorted(model.body_uid, uid, sorter=order)], axis=1)
    return places[np.lexsort((places[:, 1], places[:, 0]))]
