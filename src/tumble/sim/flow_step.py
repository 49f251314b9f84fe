"""Bodies that come, go and pass: emitters, sinks and measuring planes at the end of each step."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np

from ..collide.broadphase import PairSearch
from ..collide.narrowphase import ContactSearch
from ..enums import BodyKind, Presence
from ..errors import SceneError, TumbleWarning, message
from ..kernels import passing
from ..scene import rotation
from ..scene.flow_model import EMITTER_COLUMNS, PLANE_COLUMNS, SINK_COLUMNS, Emitter, MeasuringArrays, SinkArrays
from ..scene.model import Model, State
from ..scene.presence import Seen
from .room import Room

__all__ = ["FlowStep", "blocked", "no_room"]

PATIENCE = 1000
"""Steps without a free place after which an emitter says so."""
LAG = 0.1
"""An emitter that is late by more than this part of its time says so at the end of a run."""


class FlowStep:
    """Scratch of a model's flow. `begin` and `end` frame the part of a step that moves the bodies."""

    def __init__(
        self, model: Model, seen: Seen | None, pairs: PairSearch, narrow: ContactSearch, backend: ModuleType
    ) -> None:
        self._model, self._flow, self._seen = model, model.flow, seen
        self._room = Room(model, seen, pairs, narrow, backend) if seen is not None and model.flow.emitters else None
        send, removable = backend.send, model.body_kind == BodyKind.DYNAMIC
        removable[model.flow.keep] = False
        self._backend, self._kind, self._removable = backend, send(model.body_kind), send(removable)
        self._mass = model.body_mass
        self._flags = backend.zeros((2, model.body_count), bool)
        self._sinks = [_sent(sink.arrays, backend) for sink in model.flow.sinks]
        self._planes = [_sent(plane.arrays, backend) for plane in model.flow.planes]
        self._cross, self._take = backend.over_bodies(passing.crossed), backend.over_bodies(passing.taken)
        self._waits, self._list = backend.over_bodies(passing.waits), backend.list_true
        self._index = backend.zeros(model.body_count, np.int64)
        self._height: list[np.ndarray] = []
        self._before: np.ndarray | None = None
        self._since = [-1] * len(model.flow.emitters)
        """Step since which an emitter has found no place, -1: it has not been blocked"""

    def begin(self, state: State) -> None:
        """Before positions change."""
        if self._flow.planes:
            self._before = state.position.copy()

    def end(self, state: State) -> tuple[float, float]:
        """Count, take out, let in; returns the kinetic and potential energy that came in (negative: left) [J].

        `State.presence` and `State.flow` are replaced, not written into: the state before the step keeps its own.
        """
        flow, total, at = self._flow, state.flow.copy(), 0
        came, went = np.zeros(0, np.int64), np.zeros(0, np.int64)
        at += len(flow.emitters) * len(EMITTER_COLUMNS) + len(flow.sinks) * len(SINK_COLUMNS)
        for plane in self._planes:
            total[at : at + len(PLANE_COLUMNS)] += self._crossed(plane, state)
            at += len(PLANE_COLUMNS)
        energy = np.zeros(2)
        if flow.changes:
            used = state.presence
            went = self._remove(state, total)
            energy -= self._energy(state, went)
            if went.size:
                there = self._backend.send(went)
                state.velocity[there], state.spin[there] = 0.0, 0.0
            came = self._emit(state, total)
            energy += self._energy(state, came)
            if self._seen is not None and self._room is not None:
                self._seen.show(used)  # what the step just taken worked with, for those who ask about it
        state.flow = total
        return float(energy[0]), float(energy[1])

    def _crossed(self, plane: MeasuringArrays, state: State) -> tuple[float, float, float, float]:
        """Bodies and masses that crossed a plane in this step, forward and backward."""
        n, (forward, backward) = len(self._mass), self._flags
        self._cross(n, self._kind, state.presence, self._before, state.position, plane, forward, backward)
        there, back = self._chosen(forward), self._chosen(backward)
        return float(len(there)), float(len(back)), float(self._mass[there].sum()), float(self._mass[back].sum())

    def _chosen(self, flags: np.ndarray) -> np.ndarray:
        """Bodies whose flag is set, on the host: none as a rule."""
        found = self._list(len(flags), flags, self._index)
        return self._backend.fetch(self._index[:found].copy()) if found else np.zeros(0, np.int64)

    def _remove(self, state: State, total: np.ndarray) -> np.ndarray:
        """Bodies that sinks take, each by the first sink that wants it."""
        gone = []
        presence = state.presence
        for i, sink in enumerate(self._sinks):
            self._take(len(self._mass), self._removable, presence, state.position, sink, self._flags[0])
            k = self._chosen(self._flags[0])
            at = len(self._flow.emitters) * len(EMITTER_COLUMNS) + i * len(SINK_COLUMNS)
            total[at] += len(k)
            total[at + 1] += self._mass[k].sum()
            if k.size:
                presence = presence.copy()
                presence[self._backend.send(k)] = Presence.REMOVED
                gone.append(k)
        state.presence = presence
        return np.concatenate(gone) if gone else np.zeros(0, np.int64)

    def _emit(self, state: State, total: np.ndarray) -> np.ndarray:
        """Bodies that emitters let in."""
        new = []
        for i, e in enumerate(self._flow.emitters):
            at, due = i * len(EMITTER_COLUMNS), e.due(state.time)
            waiting = np.zeros(0, np.int64)
            if due > total[at]:  # more than have been placed
                self._waits(due, e.first, state.presence, self._flags[0])
                waiting = e.first + self._chosen(self._flags[0, :due])
            placed = self._room.place(e, i, state, waiting) if self._room is not None and waiting.size else waiting
            if placed.size:
                send, there = self._backend.send, self._backend.send(placed)
                turned = rotation.conjugate(self._backend.fetch(state.orientation[there]))
                state.presence = state.presence.copy()
                state.presence[there] = Presence.PRESENT
                state.velocity[there] = send(e.velocity)
                state.spin[there] = send(rotation.rotate(turned, np.tile(e.angular_velocity, (len(placed), 1))))
                new.append(placed)
            total[at] += len(placed)
            total[at + 1] += self._mass[placed].sum()
            total[at + 2] = len(waiting) - len(placed)
            self._watch(i, e, state, int(total[at]), int(total[at + 2]), len(placed))
        return np.concatenate(new) if new else np.zeros(0, np.int64)

    def _watch(self, i: int, e: Emitter, state: State, placed: int, waiting: int, now: int) -> None:
        """Say when an emitter finds no room for long, and refuse one that never will."""
        if now or not waiting:
            self._since[i] = -1
            return
        if self._since[i] == -1:
            self._since[i] = state.step
            if placed == 0 and self._room is not None and self._room.hopeless(e, i, state):
                raise SceneError(
                    message(
                        f"emitter '{e.name}' at t = {state.time:g} s",
                        "its region must have room for a body beside the static bodies",
                        f"placed {placed} of {e.count} bodies",
                        "Move or enlarge the region, or use smaller bodies.",
                    )
                )
        if state.step - self._since[i] == PATIENCE:
            warnings.warn(no_room(e, state.time, placed, waiting), TumbleWarning, stacklevel=6)

    def _energy(self, state: State, bodies: np.ndarray) -> np.ndarray:
        """Kinetic and potential energy of some bodies (2,) [J]."""
        if not bodies.size:
            return np.zeros(2)
        m, inertia, there = self._mass[bodies], self._model.body_inertia[bodies], self._backend.send(bodies)
        fetch = self._backend.fetch
        position, velocity, spin = (fetch(x[there]) for x in (state.position, state.velocity, state.spin))
        kinetic = 0.5 * (m @ (velocity**2).sum(axis=1) + (inertia * spin**2).sum())
        return np.array([kinetic, -(m @ (position @ self._model.gravity))])


def _sent(arrays: SinkArrays | MeasuringArrays, backend: ModuleType) -> tuple:
    """The group with its vectors where the passes read them."""
    return type(arrays)._make(backend.send(part) if isinstance(part, np.ndarray) else part for part in arrays)


def blocked(model: Model, state: State) -> list[tuple[Emitter, int, int]]:
    """Emitters that are late because bodies found no room: how many each placed, and how many wait."""
    out = []
    for i, e in enumerate(model.flow.emitters):
        placed, _, waiting = state.flow[i * len(EMITTER_COLUMNS) : (i + 1) * len(EMITTER_COLUMNS)]
        if state.time > e.start and placed < e.due(state.time - LAG * (state.time - e.start)):
            out.append((e, int(placed), int(waiting)))
    return out


def no_room(e: Emitter, time: float, placed: int, waiting: int) -> str:
    """The words for an emitter that is blocked."""
    return message(
        f"emitter '{e.name}' at t = {time:g} s",
        "bodies that are due must find room",
        f"placed {placed} of {placed + waiting} due, {waiting} wait",
        "Lower the rate, enlarge the region, or give the bodies a velocity that takes them away.",
    )
