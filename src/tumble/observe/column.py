"""Rows appended to datasets by HDF5's own calls: those of h5py ask each dataset for its shape, type and chunks several
times a row, which costs more than the writing."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

__all__ = ["Column", "Single", "Table"]

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


class Table(Column):
    """A dataset of rows with named numbers, which are written a whole chunk at a time, as bytes: else HDF5 compares
    the names with those of the file in each call, which takes ten times as long."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset)
        self._last = np.zeros((self._rows_of_chunk, self._type.itemsize), np.uint8)
        """Bytes of the chunk that is being filled"""
        self._filled = -1
        """Rows of the file up to which it is"""

    def write(self, start: int, values: Any, rows: int) -> None:
        """See `Column`; rows that are there already are written again as they were."""
        array, size = _bytes_of(np.ascontiguousarray(values, self._type)), self._rows_of_chunk
        if start != self._filled:
            self._last[: start % size] = _bytes_of(self._dataset[start - start % size : start])
        self._id.set_extent((start + rows,))
        done = 0
        while done < rows:
            at = (start + done) % size
            part = min(rows - done, size - at)
            self._last[at : at + part] = array[done : done + part]
            self._last[at + part :] = 0
            self._id.write_direct_chunk((start + done - at,), self._last)
            done += part
        self._filled = start + rows
        self._id.flush()


def _bytes_of(rows: np.ndarray) -> np.ndarray:
    return rows.view(np.uint8).reshape(len(rows), rows.dtype.itemsize)


class Single:
    """A dataset of one number, written where it lies: HDF5 has nothing to add, and takes twenty times as long."""

    def __init__(self, dataset: Any) -> None:
        self._type, self._place = dataset.dtype, dataset.id.get_offset()
        self._handle = int(dataset.file.id.get_vfd_handle())

    def set(self, value: float) -> None:
        """Hand it to the system."""
        os.pwrite(self._handle, np.array(value, self._type).tobytes(), self._place)
