"""The z-buffer: depth, shape and normal of what each pixel sees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels import jit
from .camera import View

__all__ = ["BAND", "NO_SHAPE", "Buffers", "Canvas"]

NO_SHAPE = -1
TILE = 8
"""Pixels across the smallest tile of the pyramid of depths."""
BAND = 16
"""Rows that one thread draws at a time. A band is drawn by one thread in the order of the shapes, so a picture does not
depend on the number of threads."""


class Buffers(NamedTuple):
    """What kernels draw on, row by row."""

    depth: np.ndarray
    """(h w,) along the axis of the view [m], inf where nothing is"""
    owner: np.ndarray
    """(h w,) number of the shape"""
    normal: np.ndarray
    """(h w, 3) unit normals on the side of the eye, world axes; (0, 3) where they are not wanted"""


class Canvas:
    """Buffers of a view."""

    def __init__(self, view: View, *, with_normals: bool) -> None:
        self.shape = view.height, view.width
        count = view.height * view.width
        self.depth = np.full(count, np.inf, np.float32)
        self.owner = np.full(count, NO_SHAPE, np.int32)
        self.normal = np.zeros((count if with_normals else 0, 3), np.float32)
        self.buffers = Buffers(self.depth, self.owner, self.normal)
        self._levels: list[np.ndarray] = []

    def measure(self) -> None:
        """Find the largest depth in tiles of several sizes, for `hides`."""
        tiles = np.zeros([-(-n // TILE) for n in self.shape], np.float32)
        _farthest(self.depth, self.shape[1], tiles)
        self._levels = [tiles]
        while max(self._levels[-1].shape) > 1:
            fine = self._levels[-1]
            fine = np.pad(fine, [(0, fine.shape[0] % 2), (0, fine.shape[1] % 2)])
            self._levels.append(np.maximum.reduce([fine[i::2, j::2] for i in (0, 1) for j in (0, 1)]))

    def hides(self, low: np.ndarray, high: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Whether all is nearer than depth (k,) in windows from low to high (k, 2), pixels as (row, column)."""
        low, high = low // TILE, high // TILE
        level = np.ceil(np.log2(np.maximum((high - low).max(axis=1), 1))).astype(int).clip(0, len(self._levels) - 1)
        out = np.zeros(len(depth), bool)
        for number, values in enumerate(self._levels):
            rows = np.flatnonzero(level == number)
            (i0, j0), (i1, j1) = (low[rows] >> number).T, (high[rows] >> number).T
            farthest = np.maximum.reduce([values[i, j] for i in (i0, i1) for j in (j0, j1)])
            out[rows] = farthest <= depth[rows]
        return out


@jit.blockwise(1, "len(tiles)")
def _farthest(row, depth, width, tiles):
    """Largest depth in each tile of a row of tiles that starts with 0."""
    height = len(depth) // width
    for i in range(row * TILE, min(row * TILE + TILE, height)):
        for j in range(width):
            tiles[row, j // TILE] = max(tiles[row, j // TILE], depth[i * width + j])
