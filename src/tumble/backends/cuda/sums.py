"""Sums and maxima over items, in an order that depends on their number alone.

A thread does a chunk of items in a row and leaves a row of columns; rows are folded, so many at a time, until one is
left. No atomics: the same bits whatever the launch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from . import provider
from .launch import block_of, item_kernel, named, pass_over

__all__ = ["CHUNK", "Folded", "chunk_pass"]

CHUNK = 32


def fold(i, rows, columns, largest, partial, out):
    """Column i % columns of the rows of a chunk. largest: bits of the columns of which the largest entry is wanted."""
    row, k = i // columns, i % columns
    first, end = row * CHUNK, min(rows, (row + 1) * CHUNK)
    value = partial[first, k]
    if (largest >> k) & 1:
        for r in range(first + 1, end):
            value = max(value, partial[r, k])
    else:
        for r in range(first + 1, end):
            value += partial[r, k]
    out[row, k] = value


_fold = pass_over(fold)


class Folded:
    """Scratch of a pass with partial sums, kept between its calls."""

    def __init__(self, columns: int, largest: int = 0) -> None:
        self._columns, self._largest = columns, largest
        self._rows = [provider.zeros((0, columns)), provider.zeros((0, columns))]

    def partial(self, count: int) -> Any:
        """Room for the chunks of so many items."""
        need = max(1, -(-count // CHUNK))
        if len(self._rows[0]) < need:
            self._rows = [provider.zeros((need + need // 8, self._columns)) for _ in range(2)]
        return self._rows[0]

    def folded(self, count: int) -> Any:
        """The one row (1, columns) that is left of the chunks, on the device."""
        rows, (here, there) = -(-count // CHUNK), self._rows
        while rows > 1:
            left = -(-rows // CHUNK)
            _fold(left * self._columns, rows, self._columns, self._largest, here, there)
            rows, here, there = left, there, here
        return here[:1]

    def row(self, count: int) -> np.ndarray:
        """The same on the host; zeros where there is no item."""
        return provider.fetch(self.folded(count))[0] if count else np.zeros(self._columns)


def chunk_pass(pass_: Callable, columns: int, largest: tuple[int, ...], *, stays: bool = False) -> Callable:
    """A pass of the processors that leaves a row of `partial` for each block, over chunks: returns the row of all.

    largest: columns of which the largest entry is wanted, not the sum. stays: the row stays on the device."""
    parameters = list(inspect.signature(pass_.body).parameters)[1:]
    place = parameters.index("partial")
    count = eval(f"lambda {', '.join(parameters)}: {pass_.items}")
    kernel = item_kernel(pass_.body, parameters, block_of(pass_.body, CHUNK))
    folded = Folded(columns, sum(1 << k for k in largest))

    def run(*arguments: Any) -> np.ndarray:
        n = int(count(*arguments))
        if n > 0:
            partial = folded.partial(n)
            given = (*arguments[:place], partial, *arguments[place + 1 :])
            chunks = -(-n // CHUNK)
            kernel.launch(-(-chunks // kernel.threads), chunks, *given)
        return folded.folded(n)[0] if stays else folded.row(n)

    return named(run, pass_.body, parameters)
