"""Contacts of the pairs, sorted by key."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.base import BodyArrays
from ..enums import BodyKind, ShapeKind
from ..kernels.distance import is_ball_pair
from ..kernels.jit import interpreted, most_threads
from ..scene.model import Model
from .broadphase import PairSearch
from .contacts import Contacts

__all__ = ["ContactSearch"]


SURFACES = (ShapeKind.MESH, ShapeKind.HEIGHT_FIELD)


def _families(model: Model) -> tuple[bool, bool, bool]:
    """Whether there can be pairs of a ball and a closed form, of other convex shapes, and with surfaces.

    Each family has a kernel of its own, which is compiled when a scene first needs it.
    """
    kinds, counts = np.unique(model.shape_kind, return_counts=True)
    movable = np.unique(model.shape_kind[model.body_kind[model.shape_body] != BodyKind.STATIC])
    several = dict(zip(kinds.tolist(), (counts > 1).tolist()))
    balls = convex = surfaces = False
    for one in movable.tolist():
        for other in kinds.tolist():
            if one == other and not several[one]:
                continue
            a, b = min(one, other), max(one, other)
            if a in SURFACES or b in SURFACES:
                surfaces = True
            elif interpreted(is_ball_pair)(a, b):
                balls = True
            else:
                convex = True
    return balls, convex, surfaces


class ContactSearch:
    """Buffers of the narrow phase for one model."""

    def __init__(self, model: Model, backend: ModuleType, blocks: int) -> None:
        self._model, self._backend = model, backend
        self._blocks = blocks
        threads = most_threads()
        self._scratch = np.zeros((threads, backend.SCRATCH))
        self._rows = np.zeros((threads, backend.SURFACE_ROWS, backend.SURFACE_COLUMNS))
        self._count = np.zeros(blocks, np.int64)
        self._has_balls, self._has_convex, self._has_surfaces = _families(model)
        self._start = np.zeros(model.body_count + 1, np.int64)
        self._cursor = np.zeros(model.body_count, np.int64)
        self._pairs = np.arange(model.friction.size, dtype=float).reshape(model.friction.shape)
        self._reserve(4 * backend.PAIR_BLOCK)

    def _reserve(self, capacity: int) -> None:
        self._capacity = capacity
        self._raw = np.zeros((self._blocks * capacity, 8))
        self._shapes = np.zeros((self._blocks * capacity, 2), np.int32)

    def find(
        self, pairs: PairSearch, center: np.ndarray, free: np.ndarray, h: float, margin: float, contacts: Contacts
    ) -> None:
        """Fill `contacts`."""
        m, b = self._model, self._backend
        bodies = BodyArrays(m.body_kind, center, free, pairs.reach_speed)
        while True:
            given = pairs.shapes, bodies, m.geometry, h, margin, pairs.pair, pairs.capacity, pairs.count, self._blocks
            found = self._raw, self._shapes, self._capacity, self._count
            self._count[:] = 0
            if self._has_balls:
                b.find_ball_contacts(*given, *found, self._scratch)
            if self._has_convex:
                b.find_convex_contacts(*given, *found, self._scratch)
            if self._has_surfaces:
                b.find_surface_contacts(*given, *found, self._scratch, self._rows)
            most, total = b.most_and_total(self._count)
            if most <= self._capacity - b.MOST:
                break
            self._reserve(most + most // 4 + b.MOST)
        contacts.reserve(int(total))
        contacts.count = int(
            b.sort_contacts(
                self._raw,
                self._shapes,
                self._capacity,
                self._count,
                self._blocks,
                m.shape_body,
                m.shape_local,
                self._start,
                self._cursor,
                contacts.order,
                contacts.body_a,
                contacts.body_b,
                contacts.feature,
            )
        )
        b.arrange_contacts(
            contacts.count,
            contacts.order,
            self._raw,
            self._shapes,
            m.shape_body,
            m.shape_material,
            self._pairs if m.pair_laws.active else m.friction,
            m.shape_smallest,
            contacts.body_a,
            contacts.friction,
            contacts.size,
            contacts.normal,
            contacts.point,
            contacts.gap,
        )
        if m.pair_laws.active:  # the table of pairs took the place of friction
            n = contacts.count
            contacts.pair[:n] = contacts.friction[:n]
            contacts.friction[:n] = m.friction.ravel()[contacts.pair[:n]]

    @property
    def nbytes(self) -> int:
        """Memory of the buffers that grow with the contacts."""
        return self._raw.nbytes + self._shapes.nbytes
