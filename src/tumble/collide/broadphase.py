"""Pairs of shapes that may touch within the step: a hierarchical hashed grid, linear in the number of shapes.

Every shape lives in one cell of the level whose cells are as large as its bounding box (a power of two), so shapes of
very different size do not disturb each other. Levels with a handful of shapes (walls, a slab) and planes are compared
with everything directly.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.base import blocks
from ..backends.shape_arrays import (
    BoxedArrays,
    CarriedArrays,
    FilterArrays,
    GridArrays,
    LocalArrays,
    PairArrays,
    PlaneArrays,
    ShapeArrays,
    pools_of,
)
from ..enums import ShapeKind
from ..scene.model import Model

__all__ = ["PairSearch"]


class PairSearch:
    """Buffers of the broad phase for one model."""

    def __init__(self, model: Model, backend: ModuleType) -> None:
        self._model, self._backend = model, backend
        m, zeros = model.shape_count, backend.zeros
        self.shapes = ShapeArrays(
            model.shape_kind,
            model.shape_parameters,
            model.shape_geometry,
            model.shape_body,
            model.shape_bound,
            model.shape_smallest,
            zeros((m, 3)),
            zeros((m, 9)),
            model.shape_rank,
        )
        self.box = zeros((m, 6))
        self._local = LocalArrays(model.shape_position, model.shape_orientation)
        self._pools = pools_of(model.geometry).boxes
        self._boxed = BoxedArrays(model.shape_kind, model.shape_body, self.box)
        self._filters = FilterArrays(model.body_kind, model.body_group, model.body_mask, model.excluded)
        self._histogram = zeros(8 * backend.LEVELS, np.int64)
        buckets = 1 << max(4, int(np.ceil(np.log2(max(1, m)))))
        self._grid = GridArrays(
            zeros(m, np.int64),
            zeros(m, np.int64),
            zeros(backend.LEVELS, np.int64),
            zeros(buckets + 2, np.int64),
            zeros(m, np.int32),
            zeros(backend.FEW * backend.LEVELS, np.int32),
            zeros(backend.LEVELS, np.int64),
        )
        self._few = None
        if m <= backend.FEW:  # no grid: all are compared with all
            self._few = (0, m, 0)
            self._grid.single[:m] = backend.send(np.arange(m))
        kinds = backend.fetch(model.shape_kind)
        self._planes = backend.send(np.flatnonzero(kinds == ShapeKind.HALF_SPACE).astype(np.int32))
        self.blocks = blocks(m, backend.PAIR_BLOCK)
        self._reserve(4 * backend.PAIR_BLOCK)
        self.reach_speed = zeros(model.body_count)
        """Largest speed that a neighbour could hand on to a body within the step (n,) [m/s]"""
        self._scratch = zeros(model.body_count)
        self._stir = 0.0
        self._no_scratch = zeros(1)
        self._smallest_margin = 0.05 * float(np.min(backend.fetch(model.shape_smallest), initial=np.inf))

    def _reserve(self, capacity: int) -> None:
        pair = self._backend.zeros((self.blocks * capacity, 2), np.int32)
        self.pairs = PairArrays(pair, capacity, self._backend.zeros(self.blocks, np.int64))

    def place(
        self,
        position: np.ndarray,
        orientation: np.ndarray,
        matrix: np.ndarray,
        free: np.ndarray,
        h: float,
        margin: float,
    ) -> None:
        """World poses and bounding boxes of all shapes over the step."""
        m = self._model
        self._stir = stir = h * self._backend.largest_speed(m.body_kind, free)
        self._backend.place_shapes(
            self.shapes,
            self._local,
            CarriedArrays(position, orientation, matrix, free),
            self._pools,
            h,
            margin,
            stir,
            self._no_scratch,
            self.box,
        )

    def find(self, free: np.ndarray, h: float, margin: float) -> int:
        """Fill `pairs`; returns their number."""
        m, b = self._model, self._backend
        grid, used = self._grid, self._few
        if used is None:
            phase = b.choose_phase(m.shape_kind, self.box, grid.level, self._histogram)
            b.cell_keys(m.shape_kind, self.box, phase, grid.level, grid.key)
            used = phase, *b.build_grid(grid)
        planes = PlaneArrays(self._planes, self.shapes.position, self.shapes.matrix, free)
        while True:
            b.find_pairs(self._boxed, self._filters, planes, grid, used, h, 0.5 * max(0.0, margin), self.pairs)
            most, total = b.most_and_total(self.pairs.count)
            if most <= self.pairs.capacity:
                break
            self._reserve(most + most // 4)
        # Where nothing moves farther than the margin, no neighbour can hand on more than it covers.
        if self._stir <= (self._smallest_margin if margin < 0.0 else margin):
            self.reach_speed[:] = 0.0
        else:
            b.spread_speed(self.pairs, m.shape_body, m.body_kind, free, self.reach_speed, self._scratch)
        return int(total)
