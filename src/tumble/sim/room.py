"""Places for new bodies, where they touch nothing."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..collide.broadphase import PairSearch
from ..collide.contacts import Contacts
from ..collide.narrowphase import ContactSearch
from ..enums import BodyKind, Presence, ShapeKind
from ..kernels import passing
from ..scene import rotation
from ..scene.flow_model import Emitter
from ..scene.model import Model, State
from ..scene.presence import Seen

__all__ = ["Room"]

ROUNDS = 4
"""A body tries so many places in a step."""
CLEARANCE = 0.01
"""Gap that a new body keeps from others, in its own smallest half-extents: their sizes are known to rounding only."""
CROWD = 0.3
"""So much of the region may the bounding balls of one round fill: beyond it most are in each other's way."""


class Room:
    """Tries places by the same collision search as a step, so for every shape there is.

    Of the dynamic bodies only those near the region take part.
    """

    def __init__(self, model: Model, seen: Seen, pairs: PairSearch, narrow: ContactSearch, backend: ModuleType) -> None:
        self._model, self._seen, self._pairs, self._narrow, self._backend = model, seen, pairs, narrow, backend
        self._contacts = Contacts(backend.zeros, hosted=backend.HOSTED)
        n, zeros = model.body_count, backend.zeros
        self._still, self._matrix = zeros((n, 6)), zeros((n, 9))
        self._there, self._new, self._order = zeros(n, np.int8), zeros(n, bool), zeros(n, np.int64) - 1
        self._kind = backend.send(model.body_kind)
        self._beside = backend.over_bodies(passing.beside)
        bounded = model.shape_kind != ShapeKind.HALF_SPACE
        reach = np.where(bounded, np.linalg.norm(model.shape_position, axis=1) + model.shape_bound, 0.0)
        self._reach = np.zeros(n)
        np.maximum.at(self._reach, model.shape_body, reach)
        self._reaches = backend.send(self._reach)

    def place(self, emitter: Emitter, number: int, state: State, bodies: np.ndarray) -> np.ndarray:
        """Poses for those of `bodies` (k,), which wait, that find room: into `state`; returns their indices, rising.

        The random numbers depend on seed, emitter and step only, so a restart needs nothing of them.
        """
        rng = np.random.default_rng([emitter.seed, 1, number, state.step])
        bodies = bodies[: self._crowd(emitter, bodies)]
        placed = np.zeros(0, np.int64)
        for _ in range(ROUNDS):
            if not bodies.size:
                break
            self._throw(emitter, state, bodies, rng)
            fits = self._fit(emitter, state, bodies, placed)
            placed, bodies = np.concatenate([placed, bodies[fits]]), bodies[~fits]
        self._park(emitter, state, bodies)
        return np.sort(placed)

    def hopeless(self, emitter: Emitter, number: int, state: State) -> bool:
        """Whether the first body of an emitter finds no place even with nothing but static bodies there."""
        rng = np.random.default_rng([emitter.seed, 2, number, state.step])
        body = np.array([emitter.first])
        static = np.where(self._model.body_kind == BodyKind.STATIC, Presence.PRESENT, Presence.WAITING).astype(np.int8)
        alone = State(state.time, state.step, state.position, state.orientation, state.velocity, state.spin)
        alone.presence = self._backend.send(static)
        fits = False
        for _ in range(16 * ROUNDS):
            self._throw(emitter, alone, body, rng)
            fits = bool(self._fit(emitter, alone, body, body[:0])[0])
            if fits:
                break
        self._park(emitter, state, body)
        return not fits

    def _crowd(self, emitter: Emitter, bodies: np.ndarray) -> int:
        """How many bodies to try at once."""
        r = float(self._reach[bodies].max())
        low, high = emitter.region.box
        room = float(np.prod(high - low + 2.0 * r))
        return max(1, int(CROWD * room / (4.0 / 3.0 * np.pi * r**3)))

    def _throw(self, emitter: Emitter, state: State, bodies: np.ndarray, rng: np.random.Generator) -> None:
        """Random poses."""
        send, there = self._backend.send, self._backend.send(bodies)
        state.position[there] = send(emitter.region.points(rng, len(bodies)))
        turn = rng.normal(size=(len(bodies), 4))
        if emitter.orientation is None:
            turn /= np.linalg.norm(turn, axis=1)[:, None]
        else:
            turn[:] = emitter.orientation
        state.orientation[there] = send(rotation.multiply(turn, self._model.body_axes[bodies]))

    def _park(self, emitter: Emitter, state: State, bodies: np.ndarray) -> None:
        """Back to where they wait."""
        if not bodies.size:
            return
        start, send = self._model.initial, self._backend.send
        there = send(bodies)
        state.position[there], state.orientation[there] = send(start.position[bodies]), send(start.orientation[bodies])

    def _fit(self, emitter: Emitter, state: State, bodies: np.ndarray, placed: np.ndarray) -> np.ndarray:
        """Which of `bodies` (k,) touch no body that is there and none before them in the list (k,) bool."""
        m, backend, send = self._model, self._backend, self._backend.send
        n, gap = m.body_count, CLEARANCE * float(m.body_size[bodies].min())
        low, high = (send(np.asarray(corner, float)) for corner in emitter.region.box)
        box = (low, high, float(self._reach[bodies].max()) + gap)
        self._beside(
            n,
            state.presence,
            self._kind,
            self._reaches,
            box,
            state.position,
            state.orientation,
            self._there,
            self._matrix,
        )
        come, new = send(np.concatenate([placed, bodies])), send(bodies)
        self._there[come] = Presence.PRESENT
        turned = rotation.matrix(backend.fetch(state.orientation[come])).reshape(-1, 9)
        self._matrix[come] = send(turned)
        self._new[new], self._order[new] = True, send(np.arange(len(bodies)))  # those there: before all new ones
        self._seen.show(self._there, moving=self._new)
        self._pairs.place(state.position, state.orientation, self._matrix, self._still, 0.0, gap)
        self._pairs.find(self._still, 0.0, gap)
        self._narrow.find(self._pairs, state.position, self._still, 0.0, gap, self._contacts)
        c, fits = self._contacts, send(np.ones(len(bodies), bool))
        backend.over_contacts(passing.crowded)(c.count, c.gap, gap, c.body_a, c.body_b, self._order, fits)
        self._new[new], self._order[new] = False, -1
        return backend.fetch(fits)
