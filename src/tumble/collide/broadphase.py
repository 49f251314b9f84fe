"""Pairs of shapes that may touch within the step: a hierarchical hashed grid, linear in the number of shapes.

Every shape lives in one cell of the level whose cells are as large as its bounding box (a power of two), so shapes of
very different size do not disturb each other. Levels with a handful of shapes (walls, a slab) and planes are compared
with everything directly.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.base import ShapeArrays, blocks
from ..enums import ShapeKind
from ..scene.model import Model

__all__ = ["PairSearch"]


class PairSearch:
    """Buffers of the broad phase for one model."""

    def __init__(self, model: Model, backend: ModuleType) -> None:
        self._model, self._backend = model, backend
        m = model.shape_count
        self.shapes = ShapeArrays(
            model.shape_kind,
            model.shape_parameters,
            model.shape_geometry,
            model.shape_body,
            model.shape_bound,
            model.shape_smallest,
            np.zeros((m, 3)),
            np.zeros((m, 9)),
        )
        self.box = np.zeros((m, 6))
        self._level = np.zeros(m, np.int64)
        self._key = np.zeros(m, np.int64)
        self._level_count = np.zeros(backend.LEVELS, np.int64)
        self._histogram = np.zeros(8 * backend.LEVELS, np.int64)
        buckets = 1 << max(4, int(np.ceil(np.log2(max(1, m)))))
        self._bucket_start = np.zeros(buckets + 2, np.int64)
        self._item = np.zeros(m, np.int32)
        self._single = np.zeros(backend.FEW * backend.LEVELS, np.int32)
        self._levels = np.zeros(backend.LEVELS, np.int64)
        self._planes = np.flatnonzero(model.shape_kind == ShapeKind.HALF_SPACE).astype(np.int32)
        self.blocks = blocks(m, backend.PAIR_BLOCK)
        self.capacity = 4 * backend.PAIR_BLOCK
        self.pair = np.zeros((self.blocks * self.capacity, 2), np.int32)
        self.count = np.zeros(self.blocks, np.int64)
        self.reach_speed = np.zeros(model.body_count)
        """Largest speed that a neighbour could hand on to a body within the step (n,) [m/s]"""
        self._scratch = np.zeros(model.body_count)
        self._stir = 0.0
        self._no_scratch = np.zeros(1)
        self._smallest_margin = 0.05 * float(np.min(model.shape_smallest, initial=np.inf))

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
            m.geometry,
            m.shape_position,
            m.shape_orientation,
            position,
            orientation,
            matrix,
            free,
            h,
            margin,
            stir,
            self._no_scratch,
            self.box,
        )

    def find(self, free: np.ndarray, h: float, margin: float) -> int:
        """Fill `pair`, `capacity` places a block; returns the number of pairs."""
        m, b = self._model, self._backend
        phase = b.choose_phase(m.shape_kind, self.box, self._level, self._histogram)
        b.cell_keys(m.shape_kind, self.box, phase, self._level, self._key)
        singles, used = b.build_grid(
            self._level, self._key, self._level_count, self._bucket_start, self._item, self._single, self._levels
        )
        while True:
            b.find_pairs(
                m.shape_kind,
                m.shape_body,
                m.body_kind,
                m.body_group,
                m.body_mask,
                m.excluded,
                self.box,
                self.shapes.position,
                self.shapes.matrix,
                free,
                h,
                0.5 * max(0.0, margin),
                phase,
                self._level,
                self._key,
                self._level_count,
                self._bucket_start,
                self._item,
                self._single,
                singles,
                self._levels,
                used,
                self._planes,
                len(self._planes),
                self.pair,
                self.capacity,
                self.count,
            )
            most, total = b.most_and_total(self.count)
            if most <= self.capacity:
                break
            self.capacity = most + most // 4
            self.pair = np.zeros((self.blocks * self.capacity, 2), np.int32)
        # Where nothing moves farther than the margin, no neighbour can hand on more than it covers.
        if self._stir <= (self._smallest_margin if margin < 0.0 else margin):
            self.reach_speed[:] = 0.0
            return int(total)
        b.spread_speed(
            self.pair,
            self.capacity,
            self.count,
            self.blocks,
            m.shape_body,
            m.body_kind,
            free,
            self.reach_speed,
            self._scratch,
        )
        return int(total)
