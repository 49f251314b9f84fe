"""Contacts of a step as component-first arrays, sorted by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.shape_arrays import ArrangedArrays, SortedArrays

__all__ = ["Contacts"]


class Contacts:
    """Buffers with room to grow; the first `count` columns are in use.

    The normal points from body a to body b, uid a < uid b. A contact's key is (uid a, uid b, feature).
    """

    def __init__(self, zeros: Callable[..., Any] = np.zeros, *, hosted: bool = True) -> None:
        """hosted: sorted by the processor; devices sort in their own way and need less room for it."""
        self._zeros, self._hosted = zeros, hosted
        self.count = 0
        self._allocate(0)

    def _allocate(self, capacity: int) -> None:
        self.capacity, zeros = capacity, self._zeros
        self.body_a = zeros(capacity, np.int32)
        self.body_b = zeros(capacity, np.int32)
        self.feature = zeros(capacity, np.int64)
        self.order = zeros(capacity, np.int32)
        self.friction = zeros(capacity)
        self.pair = zeros(capacity, np.int32)
        """Pair of materials, first * k + second"""
        self.size = zeros(capacity)
        self.gap = zeros(capacity)
        self.normal = zeros((3, capacity))
        self.point = zeros((3, capacity))
        room = capacity if self._hosted else 0
        self.unsorted = *(zeros(k, np.int32) for k in (room, room, capacity)), zeros(room, np.int64)
        """Scratch of sorting"""
        self.sorted = SortedArrays(self.order, self.body_b, self.feature)
        self.arranged = ArrangedArrays(
            self.body_a, self.friction, self.pair, self.size, self.normal, self.point, self.gap
        )

    def reserve(self, count: int) -> None:
        """Make room for so many contacts; what was there is dropped."""
        if count > self.capacity:
            self._allocate(grown(count))

    @property
    def nbytes(self) -> int:
        """Memory of the buffers."""
        own = [v for v in vars(self).values() if hasattr(v, "nbytes")]
        return sum(v.nbytes for v in (*own, *self.unsorted))


def grown(count: int) -> int:
    """Capacity to ask for when `count` is needed."""
    return max(64, count + count // 8)
