"""Rows of different lengths in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["portions", "ranges", "starts"]


def starts(count: np.ndarray) -> np.ndarray:
    """(n + 1,) int64: where each of n rows of the given lengths begins."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(count, dtype=np.int64)])


def ranges(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row (k,) of every item, and first[row], first[row] + 1, ..., of count[row] items."""
    row = np.repeat(np.arange(len(count)), count)
    begin = starts(count)
    return row, np.arange(begin[-1]) + np.repeat(first - begin[:-1], count)


def portions(count: np.ndarray, limit: int) -> Iterator[slice]:
    """Rows in slices of at most `limit` items, or of one row that has more."""
    end = np.cumsum(count)
    start = done = 0
    while start < len(count):
        stop = max(int(np.searchsorted(end, done + limit, side="right")), start + 1)
        yield slice(start, stop)
        start, done = stop, int(end[stop - 1])
