"""Pairs on their way through the narrow phase of a device: lists by kinds, where they meet, their points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...kernels.distance import is_ball_pair
from ...kernels.kinds import turn_of
from ...kernels.pair_contacts import is_convex_pair, ordered
from . import provider
from .launch import Kernel, device_function, pass_over

xp = provider.xp

NOT_HERE = 1 << 14
"""Family of the pairs that another pass treats."""
KINDS = 128
"""A family is the turn of the first kind times this, and that of the second."""
APART, MET, DEEP = 0, 1, 2
PART = 4
"""Scratch takes at most one part in so many of the memory that is free; with less, threads have more to do."""
ROOM = 4
"""Points that each touching pair has room for at first."""


class PairList(NamedTuple):
    """Pairs in the order of their blocks, p of them."""

    start: Any  # (blocks + 1,) int64
    first: Any  # (p,) int32: shapes in the order of their kinds
    second: Any  # (p,) int32
    family: Any  # (p,) int64: kinds of both


class Chosen(NamedTuple):
    """Some of the pairs of a list, in the order of their families."""

    place: Any  # (n,) int64: in the list
    first: Any  # (n,) int32
    second: Any  # (n,) int32

    def those(self, which: Any) -> Chosen:
        """Some of them."""
        return Chosen(*(column[which] for column in self))


class MetArrays(NamedTuple):
    """Where the pairs in hand meet, n of them; see `kernels.pairs.Touch`."""

    state: Any  # (n,) int8
    time: Any  # (n,)
    gap: Any  # (n,)
    normal: Any  # (n, 3)
    point: Any  # (n, 3)
    reach: Any  # (n,)


class PointRows(NamedTuple):
    """Points of the pairs in hand, `room` for each."""

    row: Any  # (n * room, 8)
    room: int
    count: Any  # (n,) int64; may exceed the room


def list_pairs(block, shapes, pairs, surfaces, found):
    """The pairs of a block, with their families: of those with surfaces, or of convex ones but balls."""
    k = found.start[block]
    for p in range(block * pairs.capacity, block * pairs.capacity + pairs.count[block]):
        i, j = ordered(pairs.pair[p, 0], pairs.pair[p, 1], shapes.kind, shapes.rank)
        found.first[k], found.second[k] = i, j
        convex = is_convex_pair(i, j, shapes.kind)
        found.family[k] = NOT_HERE
        if convex != (surfaces == 1) and not (convex and is_ball_pair(shapes.kind[i], shapes.kind[j])):
            found.family[k] = KINDS * turn_of(shapes.kind[i]) + turn_of(shapes.kind[j])
        k += 1


@device_function
def hand_out(c, new, own, points):
    """What a thread found for the pair c."""
    points.count[c] = new
    for k in range(min(new, points.room)):
        for n in range(8):
            points.row[c * points.room + k, n] = own[k, n]


def emit(block, found, place, points, raw):
    """The points of the pairs of a block, after those that stand there already; past the capacity only counted."""
    have = raw.count[block]
    for p in range(found.start[block], found.start[block + 1]):
        c = place[p]
        if c < 0:
            continue
        for k in range(points.count[c]):
            if have < raw.capacity:
                row = block * raw.capacity + have
                for n in range(8):
                    raw.row[row, n] = points.row[c * points.room + k, n]
                raw.shapes[row, 0], raw.shapes[row, 1] = found.first[p], found.second[p]
            have += 1
    raw.count[block] = have


_list_pairs, _emit = pass_over(list_pairs), pass_over(emit)


class Pool:
    """Scratch of threads that do one pair after the other; it grows with them and is kept."""

    def __init__(self, *shapes: tuple[int, ...], most: int = 1 << 15) -> None:
        """shapes: of each array, -1 where the threads stand; most: threads."""
        self._shapes, self._most, self._threads = shapes, most, 0
        self._each = 8 * sum(-math.prod(shape) for shape in shapes)
        self._arrays: tuple[Any, ...] = ()

    def run(self, kernel: Kernel, count: int, *arguments: Any, last: Any = None) -> None:
        """Launch a kernel for so many pairs, with the arrays as a group after its arguments. last: ends the group."""
        if count == 0:
            return
        threads = min(-(-count // kernel.threads) * kernel.threads, self._most)
        if threads > self._threads:
            self._arrays = ()  # they go first
            self._most = min(self._most, max(kernel.threads, provider.free_memory()[0] // (PART * self._each)))
            self._most -= self._most % kernel.threads
            self._threads = threads = min(threads, self._most)
            shapes = [tuple(threads if n < 0 else n for n in shape) for shape in self._shapes]
            self._arrays = tuple(xp.empty(shape, np.float64) for shape in shapes)
        room = self._arrays if last is None else (*self._arrays, last)
        kernel.launch(threads // kernel.threads, count, *arguments, room)


def listed(shapes: Any, pairs: Any, surfaces: bool) -> tuple[PairList, Chosen]:
    """All pairs in the order of their blocks, and those with surfaces, or those of convex shapes but balls, sorted."""
    start = provider.zeros(pairs.count.size + 1, np.int64)
    provider.cumulate(pairs.count, start)
    total = int(start[-1])
    found = PairList(start, *(xp.empty(total, dtype) for dtype in (np.int32, np.int32, np.int64)))
    _list_pairs(pairs.count.size, shapes, pairs, surfaces, found)
    place = provider.argsort(found.family)[: int(xp.count_nonzero(found.family < NOT_HERE))]
    return found, Chosen(place, found.first[place], found.second[place])


def run(kernel: Kernel, count: int, *arguments: Any) -> None:
    """Launch a kernel with a thread for each of so many pairs."""
    if count:
        kernel.launch(-(-count // kernel.threads), count, *arguments)


def unmet(count: int) -> MetArrays:
    """Room for where so many pairs meet."""
    shapes = {"normal": (count, 3), "point": (count, 3)}
    return MetArrays(
        *(xp.empty(shapes.get(name, count), np.int8 if name == "state" else np.float64) for name in MetArrays._fields)
    )


class Room:
    """How many points each pair has room for, as many as the last step needed."""

    def __init__(self) -> None:
        self._room = ROOM

    def points(self, count: int, find: Callable[[PointRows], None]) -> PointRows:
        """The points of so many pairs, which `find` writes; called again where one has more than there is room for."""
        while True:
            points = PointRows(xp.empty((count * self._room, 8), np.float64), self._room, xp.empty(count, np.int64))
            find(points)
            most = int(points.count.max())
            self._room = max(ROOM, most + most // 4)
            if most <= points.room:
                return points


def emit_points(chosen: Any, found: PairList, points: PointRows, raw: Any) -> None:
    """The points of the chosen pairs into the blocks that they belong to."""
    place = xp.full(found.first.size, -1, np.int64)
    place[chosen] = xp.arange(chosen.size)
    _emit(raw.count.size, found, place, points, raw)
