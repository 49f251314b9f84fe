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
    ClosedArrays,
    FilterArrays,
    GridArrays,
    KeptArrays,
    LocalArrays,
    PairArrays,
    PlacedArrays,
    PlaneArrays,
    SearchRule,
    ShapeArrays,
    SpreadArrays,
    part_of,
    pools_of,
)
from ..enums import ShapeKind
from ..scene.model import Model

__all__ = ["PairSearch"]

ROOM, CALM = 0.1, 4.0
"""Boxes are wider by this part of the smallest half-extent for pairs that are kept from step to step, those of faster
bodies by their way in so many steps; pairs are kept where bodies have that room for so many steps on average."""


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
        self.closed = part_of(self.shapes, ClosedArrays)
        self._placed = part_of(self.shapes, PlacedArrays)
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
        self.pairs = self._room(4 * backend.PAIR_BLOCK)
        kept = m if backend.HOSTED else 0  # a device seeks anew in every step
        self._kept = KeptArrays(
            zeros((kept, 6)),
            zeros(kept, np.int8),
            zeros(kept, np.int8),
            self._room(4 * backend.PAIR_BLOCK if kept else 0),
            zeros(self.blocks if kept else 0, np.int64),
            zeros(3, np.int64),
            zeros(0, np.int32),
        )
        self._smallest = float(np.min(backend.fetch(model.shape_smallest), initial=np.inf))
        self.reach_speed = zeros(model.body_count)
        """Largest speed that a neighbour could hand on to a body within the step (n,) [m/s]"""
        self._spread = SpreadArrays(
            zeros(8 * backend.LEVELS, np.int64),
            self.reach_speed,
            zeros(model.body_count),
        )
        self._stir = self._mean = 0.0
        self._no_scratch, self._speeds = zeros(1), zeros((blocks(model.body_count, BODY_BLOCK), 2))
        self._smallest_margin = 0.05 * self._smallest

    def _room(self, capacity: int) -> PairArrays:
        """Room for so many pairs a block."""
        zeros = self._backend.zeros
        pair = zeros((self.blocks * capacity, 2), np.int32)
        return PairArrays(pair, capacity, zeros(self.blocks, np.int64))

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
        self._stir, self._mean = self._backend.place_step(
            self._placed,
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
        room = ROOM * self._smallest if np.isfinite(self._smallest) else 0.0
        if CALM * self._mean > room:
            room = 0.0
        rule = SearchRule(h, 0.5 * max(0.0, margin), quiet, self._few, room, CALM * h)
        while True:
            most, most_kept, total = self._backend.search_pairs(
                self._boxed, self._filters, planes, self._grid, rule, self._kept, self.pairs, self._spread
            )
            if most_kept > self._kept.pairs.capacity:
                self._kept = self._kept._replace(pairs=self._room(most_kept + most_kept // 4))
            elif most > self.pairs.capacity:
                self.pairs = self._room(most + most // 4)
            else:
                return total
