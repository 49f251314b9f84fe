"""Contacts of the pairs, sorted by key."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.base import blocks as blocks_of
from ..backends.shape_arrays import (
    AxisArrays,
    BodyArrays,
    ConvexPools,
    LocatedArrays,
    OrderArrays,
    RawArrays,
    SideArrays,
    pools_of,
)
from ..enums import BodyKind, ShapeKind, ShapeTrait
from ..kernels.contact_rows import placed
from ..kernels.jit import most_threads
from ..scene.model import Model
from .broadphase import PairSearch
from .contacts import Contacts

__all__ = ["ContactSearch", "families"]


AXES = 8
"""Places for axes a shape: somewhat more than it has pairs."""

SURFACES = ShapeKind.having(ShapeTrait.SURFACE)

BALL_PAIRS = (*ShapeKind.having(ShapeTrait.CLOSED), ShapeKind.HALF_SPACE)
"""Kinds that the pass for balls treats, see `is_ball_pair`."""


def families(model: Model, backend: ModuleType) -> tuple[bool, bool, bool]:
    """Whether there can be pairs of a ball and a closed form, of other convex shapes, and with surfaces.

    Each family has a kernel of its own, which is compiled when a scene first needs it.
    """
    shape_kind, body_kind, body = map(backend.fetch, (model.shape_kind, model.body_kind, model.shape_body))
    kinds, counts = np.unique(shape_kind, return_counts=True)
    movable = np.unique(shape_kind[body_kind[body] != BodyKind.STATIC])
    several = dict(zip(kinds.tolist(), (counts > 1).tolist()))
    balls = convex = surfaces = False
    for one in movable.tolist():
        for other in kinds.tolist():
            if one == other and not several[one]:
                continue
            a, b = min(one, other), max(one, other)
            if a in SURFACES or b in SURFACES:
                surfaces = True
            elif a == ShapeKind.SPHERE and b in BALL_PAIRS:
                balls = True
            else:
                convex = True
    return balls, convex, surfaces


class ContactSearch:
    """Buffers of the narrow phase for one model."""

    def __init__(self, model: Model, backend: ModuleType, blocks: int) -> None:
        self._model, self._backend = model, backend
        threads, zeros = most_threads(), backend.zeros
        self._scratch = zeros((threads, backend.SCRATCH))
        self._rows = zeros((threads, backend.SURFACE_ROWS, backend.SURFACE_COLUMNS))
        self._blocks = blocks
        self._has_balls, self._has_convex, self._has_surfaces = families(model, backend)
        places = 1 << int(np.ceil(np.log2(AXES * model.shape_count + 1))) if self._has_convex else 1
        self._axes = AxisArrays(zeros(places, np.int64) - 1, zeros((places, 3)))
        self._pools = pools_of(model.geometry)
        self._convex = ConvexPools(self._pools.hulls, self._pools.loops, self._axes)
        self._located = LocatedArrays(model.shape_rank, model.shape_local)
        bins, own = blocks_of(model.body_count, backend.SORT_BODIES), model.body_count if backend.HOSTED else 0
        self._bodies = zeros(own, np.int64), zeros(own, np.int64)
        self._bins = zeros((backend.SORT_PARTS, bins), np.int64), zeros(bins + 1, np.int64)
        self._order: OrderArrays | None = None
        self._sides = SideArrays(model.shape_rank, model.shape_material, model.shape_smallest, model.friction)
        by_rank = np.argsort(backend.fetch(model.body_uid)).astype(np.int32)
        in_order = np.array_equal(by_rank, np.arange(model.body_count))
        self._by_rank = backend.send(by_rank)
        self._place = None if in_order else backend.over_contacts(placed)
        self._reserve(max(4 * backend.PAIR_BLOCK, 2 * backend.MOST))

    def _reserve(self, capacity: int) -> None:
        room, zeros = self._blocks * capacity, self._backend.zeros
        self._raw = RawArrays(zeros((room, 8)), zeros((room, 2), np.int32), capacity, zeros(self._blocks, np.int64))

    def find(
        self, pairs: PairSearch, center: np.ndarray, free: np.ndarray, h: float, margin: float, contacts: Contacts
    ) -> None:
        """Fill `contacts`."""
        m, b = self._model, self._backend
        bodies = BodyArrays(m.body_kind, center, free, pairs.reach_speed)
        while True:
            pools, raw = self._pools, self._raw
            raw.count[:] = 0
            if self._has_balls:
                b.find_ball_contacts(pairs.closed, bodies, h, margin, pairs.pairs, raw, self._scratch)
            if self._has_convex:
                b.find_convex_contacts(pairs.shapes, bodies, self._convex, h, margin, pairs.pairs, raw, self._scratch)
            if self._has_surfaces:
                b.find_surface_contacts(
                    pairs.shapes, bodies, pools.surfaces, h, margin, pairs.pairs, raw, self._scratch, self._rows
                )
            most, total = b.most_and_total(raw.count)
            if most <= raw.capacity - b.MOST:
                break
            self._reserve(most + most // 4 + b.MOST)
        contacts.reserve(total)
        contacts.count = total
        if total > 0:
            if self._order is None or self._order.low is not contacts.unsorted[0]:
                self._order = OrderArrays._make((*self._bodies, *self._bins, *contacts.unsorted))
            b.order_contacts(total, raw, self._located, self._sides, self._order, contacts.sorted, contacts.arranged)
        if self._place is not None:  # so far bodies were numbered by uid
            self._place(contacts.count, self._by_rank, contacts.body_a, contacts.body_b)

    @property
    def nbytes(self) -> int:
        """Memory of the buffers that grow with the contacts."""
        return self._raw.row.nbytes + self._raw.shapes.nbytes
