"""Rows of typed columns that grow, one row at a time or in whole blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Table"]


class Table:
    """A structured array that grows. `rows` is a view: it is good until the next row comes."""

    def __init__(self, columns: list[tuple]) -> None:
        self._store = np.zeros(8, np.dtype(columns))
        self._count = 0

    @property
    def rows(self) -> np.ndarray:
        """All rows; to be read and to be changed."""
        return self._store[: self._count]

    def __len__(self) -> int:
        return self._count

    def append(self, *row: Any) -> int:
        """Add a row and return its number."""
        return self.extend(np.array([row], self._store.dtype))

    def extend(self, block: np.ndarray) -> int:
        """Add a block of rows and return the number of the first."""
        first, self._count = self._count, self._count + len(block)
        if self._count > len(self._store):
            grown = np.zeros(max(self._count, 2 * len(self._store)), self._store.dtype)
            grown[:first] = self._store[:first]
            self._store = grown
        self._store[first : self._count] = block
        return first

    def cut(self, count: int) -> None:
        """Forget all rows but the first so many."""
        self._count = min(self._count, count)
