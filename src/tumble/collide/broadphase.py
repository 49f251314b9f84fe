"""Pairs of shapes that may touch within the step: a hierarchical hashed grid, linear in the number of shapes.

Every shape lives in one cell of the level whose cells are as large as its bounding box (a power of two), so shapes of
very different size do not disturb each other. Levels with a handful of shapes (walls, a slab) and planes are compared
with everything directly.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.base import BODY_BLOCK, blocks
from ..backends.shape_arrays import (
    BoxedArrays,
    CarriedArrays,
    FilterArrays,
    GridArrays,
    LocalArrays,
    PairArrays,
    PlaneArrays,
    SearchRule,
    ShapeArrays,
    SpreadArrays,
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
        self._few = m <= backend.FEW
        if self._few:  # no grid: all are compared with all
            self._grid.single[:m] = backend.send(np.arange(m))
        kinds = backend.fetch(model.shape_kind)
        self._planes = backend.send(np.flatnonzero(kinds == ShapeKind.HALF_SPACE).astype(np.int32))
        self.blocks = blocks(m, backend.PAIR_BLOCK)
        self._reserve(4 * backend.PAIR_BLOCK)
        self.reach_speed = zeros(model.body_count)
        """Largest speed that a neighbour could hand on to a body within the step (n,) [m/s]"""
        self._spread = SpreadArrays(zeros(8 * backend.LEVELS, np.int64), self.reach_speed, zeros(model.body_count))
        self._stir = 0.0
        self._no_scratch, self._speeds = zeros(1), zeros(blocks(model.body_count, BODY_BLOCK))
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
        self._stir = self._backend.place_step(
            self.shapes,
            self._local,
            CarriedArrays(position, orientation, matrix, free),
            self._pools,
            h,
            margin,
            self._no_scratch,
            self._speeds,
            self.box,
        )

    def find(self, free: np.ndarray, h: float, margin: float) -> int:
        """Fill `pairs`; returns their number."""
        planes = PlaneArrays(self._planes, self.shapes.position, self.shapes.matrix, free)
        # Where nothing moves farther than the margin, no neighbour can hand on more than it covers.
        quiet = self._stir <= (self._smallest_margin if margin < 0.0 else margin)
        rule = SearchRule(h, 0.5 * max(0.0, margin), quiet)
        while True:
            most, total = self._backend.search_pairs(
                self._boxed, self._filters, planes, self._grid, self._few, rule, self.pairs, self._spread
            )
            if most <= self.pairs.capacity:
                return total
            self._reserve(most + most // 4)
