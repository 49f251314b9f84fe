"""Rows appended to datasets by HDF5's own calls: those of h5py ask each dataset for its shape, type and chunks several
times a row, which costs more than the writing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["Column", "Single"]

INDEX = 2**15
"""Bytes by which the index of a dataset's chunks grows at most in a frame."""


class Column:
    """A dataset whose first axis grows."""

    def __init__(self, dataset: Any) -> None:
        from h5py import h5s, h5t

        self._dataset = dataset
        self._id, self._tail, self._type = dataset.id, tuple(dataset.shape[1:]), dataset.dtype
        self._stored = h5t.py_create(self._type)
        self._place, self._source = (h5s.create_simple(dataset.shape) for _ in range(2))
        self._origin = (0,) * len(self._tail)
        self._rows_of_chunk, chunk = dataset.chunks[0], dataset.chunks
        self._across = math.prod(-(-length // part) for length, part in zip(self._tail, chunk[1:]))
        self._chunk = math.prod(chunk) * self._type.itemsize + 4096

    def __getitem__(self, row: int) -> Any:
        return self._dataset[row]

    def growth(self, rows: int) -> int:
        """Bytes that new rows take at most, with the index of their chunks."""
        return (-(-rows // self._rows_of_chunk) + 1) * self._across * self._chunk + INDEX

    def write(self, start: int, values: Any, rows: int) -> None:
        """Write so many rows from `start` on, after which the dataset ends there, and hand them to the system."""
        shape, end = (rows, *self._tail), (start + rows, *self._tail)
        array = np.ascontiguousarray(values, self._type).reshape(shape)
        self._id.set_extent(end)
        self._place.set_extent_simple(end)
        self._place.select_hyperslab((start, *self._origin), shape)
        self._source.set_extent_simple(shape)
        self._id.write(self._source, self._place, array, self._stored)
        self._id.flush()


class Single:
    """A dataset of one number."""

    def __init__(self, dataset: Any) -> None:
        self._id, self._type = dataset.id, dataset.dtype

    def set(self, value: float) -> None:
        """Write it, and hand it to the system."""
        from h5py import h5s

        self._id.write(h5s.ALL, h5s.ALL, np.array([value], self._type))
        self._id.flush()
