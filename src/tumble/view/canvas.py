"""The z-buffer: depth, shape and normal of what each pixel sees."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .camera import View

__all__ = ["NO_SHAPE", "Canvas"]

NO_SHAPE = -1
TILE = 8
"""Pixels across the smallest tile of the pyramid of depths."""


class Canvas:
    """Buffers (h w,) of a view, row by row."""

    def __init__(self, view: View, *, with_normals: bool) -> None:
        self.shape = view.height, view.width
        self.depth = np.full(view.height * view.width, np.inf, np.float32)
        """along the axis of the view [m], inf where nothing is"""
        self.owner = np.full(view.height * view.width, NO_SHAPE, np.int32)
        """number of the shape"""
        self.normal = np.zeros((view.height * view.width, 3), np.float32) if with_normals else None
        """(h w, 3) unit normals on the side of the eye, world axes"""
        self._levels: list[np.ndarray] = []

    def offer(
        self, pixel: np.ndarray, depth: np.ndarray, shape: np.ndarray, normals: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        """Draw fragments (k,) of shapes (k,) where they are in front; `normals` gives those of some of them."""
        depth = depth.astype(np.float32)
        seen = np.flatnonzero((depth < self.depth[pixel]) & (depth > 0.0))
        place, near = pixel[seen], depth[seen]
        np.minimum.at(self.depth, place, near)
        won = np.flatnonzero(self.depth[place] == near)
        place, seen = place[won], seen[won]
        self.owner[place] = shape[seen]
        if self.normal is not None and seen.size:
            self.normal[place] = normals(seen)

    def measure(self) -> None:
        """Find the largest depth in tiles of several sizes, for `hides`."""
        height, width = (-(-n // TILE) * TILE for n in self.shape)
        padded = np.zeros((height, width), np.float32)
        padded[: self.shape[0], : self.shape[1]] = self.depth.reshape(self.shape)
        rows = padded.reshape(height // TILE, TILE, width).max(axis=1)
        self._levels = [rows.reshape(height // TILE, width // TILE, TILE).max(axis=2)]
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
