"""Contacts of convex pairs: the formulas of the processor, stage by stage over pairs that are sorted by kinds.

One kernel for all that a pair may need takes minutes to compile and lets a whole warp wait for the one pair of it that
goes deep. Here pairs of the same two kinds stand side by side; those that their axis still tells apart are left out;
`meet` finds where the rest meet, but for the few that overlap so deeply that all directions are searched, which
`meet_deep` does; those that touch get their points, which are put in the order of the pairs at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba.cuda as cuda
import numpy as np

from ...kernels.cover import MOST as MOST_POINTS
from ...kernels.cover import cover_size
from ...kernels.distance import LATER, is_ball_pair
from ...kernels.epa import EPA_END
from ...kernels.gjk import SIMPLEX
from ...kernels.kinds import turn_of
from ...kernels.linalg import norm, row3
from ...kernels.manifold import COVER_AT, FOUND
from ...kernels.pair_contacts import (
    axis_slot,
    is_convex_pair,
    keep_axis,
    keeps_axis,
    ordered,
    pair_in_step,
    points_of,
    still_apart,
)
from ...kernels.pairs import Touch, meeting, shallow_meeting
from . import provider
from .launch import Kernel, device_function, pass_over

xp = provider.xp

MEETING = SIMPLEX + 24
"""Numbers of scratch for a distance without the search all round."""
POINTS = COVER_AT + cover_size(FOUND)
"""Numbers of scratch for the points of a convex pair."""
NOT_HERE = 1 << 14
"""Family of the pairs that another pass treats."""
APART, MET, DEEP = 0, 1, 2
ROOM = 4
"""Points that each touching pair has room for at first; doubled where one has more."""
RESIDENT = 1 << 15
"""Threads at most with scratch of their own: each does one pair after the other."""


class PairList(NamedTuple):
    """Pairs in the order of their blocks, p of them."""

    start: Any  # (blocks + 1,) int64
    first: Any  # (p,) int32: shapes in the order of their kinds
    second: Any  # (p,) int32
    family: Any  # (p,) int64: kinds of both


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


def list_pairs(block, shapes, pairs, found):
    """The pairs of a block, with their families."""
    k = found.start[block]
    for p in range(block * pairs.capacity, block * pairs.capacity + pairs.count[block]):
        i, j = ordered(pairs.pair[p, 0], pairs.pair[p, 1], shapes.kind, shapes.rank)
        found.first[k], found.second[k] = i, j
        found.family[k] = NOT_HERE
        if is_convex_pair(i, j, shapes.kind) and not is_ball_pair(shapes.kind[i], shapes.kind[j]):
            found.family[k] = 128 * turn_of(shapes.kind[i]) + turn_of(shapes.kind[j])
        k += 1


def screen(count, order, found, shapes, bodies, hulls, axes, times, left):
    """Which pairs are left when those go that their axis still tells apart.

    Two pairs may have written to one place at once, and left parts of two axes: any unit vector may be asked."""
    k = cuda.grid(1)
    if k < count:
        i, j = found.first[order[k]], found.second[order[k]]
        name, slot = axis_slot(i, j, axes)
        left[k] = 1
        n = row3(axes.axis, slot)
        length = norm(n)
        if axes.name[slot] == name and length > 0.0:
            step = pair_in_step(i, j, shapes, bodies, times)
            n = (n[0] / length, n[1] / length, n[2] / length)
            scratch = cuda.local.array(1, np.float64)
            if keeps_axis(step) and still_apart(step, hulls.point, scratch, n):
                left[k] = 0


@device_function
def note(k, i, j, yes, t, touch, step, axes, met):
    """What was found about the pair k."""
    met.state[k] = MET if yes else APART
    if yes:
        met.time[k], met.gap[k], met.reach[k] = t, touch.gap, touch.reach
        for c in range(3):
            met.normal[k, c], met.point[k, c] = touch.normal[c], touch.point[c]
    elif keeps_axis(step):
        name, slot = axis_slot(i, j, axes)
        keep_axis(axes, slot, name, touch.normal)


def meet(count, order, found, shapes, bodies, hulls, axes, times, met):
    """Where the pairs meet, if it takes no search all round."""
    k = cuda.grid(1)
    if k < count:
        i, j = found.first[order[k]], found.second[order[k]]
        step = pair_in_step(i, j, shapes, bodies, times)
        scratch = cuda.local.array(MEETING, np.float64)
        scratch[LATER] = 0.0
        yes, t, touch = shallow_meeting(step.pair, (hulls, scratch), step.local, step.limits)
        met.state[k] = DEEP
        if scratch[LATER] == 0.0:
            note(k, i, j, yes, t, touch, step, axes, met)


def meet_deep(count, chosen, order, found, shapes, bodies, hulls, axes, times, met, scratch):
    """Where the chosen ones meet."""
    first, threads = cuda.grid(1), cuda.gridsize(1)
    for c in range(first, count, threads):
        k = chosen[c]
        i, j = found.first[order[k]], found.second[order[k]]
        step = pair_in_step(i, j, shapes, bodies, times)
        yes, t, touch = meeting(step.pair, (hulls, scratch[first]), step.local, step.limits)
        note(k, i, j, yes, t, touch, step, axes, met)


def find_points(count, chosen, order, found, shapes, bodies, pools, times, met, scratch, rows, points):
    """The points of the chosen pairs, which touch."""
    first, threads = cuda.grid(1), cuda.gridsize(1)
    own = rows[:, :, first]
    for c in range(first, count, threads):
        k = chosen[c]
        i, j = found.first[order[k]], found.second[order[k]]
        step = pair_in_step(i, j, shapes, bodies, times)
        touch = Touch(met.gap[k], row3(met.normal, k), row3(met.point, k), met.reach[k])
        new = points_of(step, met.time[k], touch, pools.hulls, pools.loops, own, 0, scratch[:, first])
        points.count[c] = new
        for p in range(min(new, points.room)):
            for n in range(8):
                points.row[c * points.room + p, n] = own[p, n]


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
_screen, _meet = Kernel(screen, calls=True), Kernel(meet, calls=True)
_meet_deep, _find_points = Kernel(meet_deep, calls=True), Kernel(find_points, calls=True)


class Pool:
    """Scratch of threads that do one pair after the other; it grows with them and is kept."""

    def __init__(self, *shapes: tuple[int, ...]) -> None:
        """shapes: of each array, -1 where the threads stand."""
        self._shapes, self._threads, self._arrays = shapes, 0, ()

    def blocks(self, count: int, kernel: Kernel) -> int:
        """Blocks to launch for so many pairs."""
        return min(-(-count // kernel.threads), RESIDENT // kernel.threads)

    def arrays(self, blocks: int, kernel: Kernel) -> tuple[Any, ...]:
        """The arrays for so many blocks."""
        threads = blocks * kernel.threads
        if threads > self._threads:
            self._threads, self._arrays = threads, ()  # those of before go first
            self._arrays = tuple(
                xp.empty(tuple(threads if n < 0 else n for n in shape), np.float64) for shape in self._shapes
            )
        return self._arrays


_deep_pool, _points_pool = Pool((-1, EPA_END)), Pool((POINTS, -1), (MOST_POINTS, 8, -1))


def listed(shapes: Any, pairs: Any) -> PairList:
    """All pairs in the order of their blocks."""
    start = provider.zeros(pairs.count.size + 1, np.int64)
    provider.cumulate(pairs.count, start)
    total = int(start[-1])
    found = PairList(start, *(xp.empty(total, dtype) for dtype in (np.int32, np.int32, np.int64)))
    _list_pairs(pairs.count.size, shapes, pairs, found)
    return found


def find_convex_contacts(
    shapes: Any, bodies: Any, pools: Any, h: float, margin: float, pairs: Any, raw: Any, scratch: Any
) -> None:
    """See `backends.cpu.narrow.find_convex_contacts`."""
    found, times = listed(shapes, pairs), (h, margin)
    order = provider.argsort(found.family)
    order = order[: int(xp.count_nonzero(found.family < NOT_HERE))]
    what = found, shapes, bodies, pools.hulls, pools.axes, times
    left = xp.empty(order.size, np.int8)
    _run(_screen, order.size, order, *what, left)
    order = order[xp.flatnonzero(left)]
    met = _met(order.size)
    _run(_meet, order.size, order, *what, met)
    deep = xp.flatnonzero(met.state == DEEP)
    if deep.size:
        blocks = _deep_pool.blocks(deep.size, _meet_deep)
        _meet_deep.launch(blocks, deep.size, deep, order, *what, met, *_deep_pool.arrays(blocks, _meet_deep))
    touching = xp.flatnonzero(met.state == MET)
    if touching.size:
        place = xp.full(found.first.size, -1, np.int64)
        place[order[touching]] = xp.arange(touching.size)
        points = _points(touching, order, found, shapes, bodies, pools, times, met)
        _emit(pairs.count.size, found, place, points, raw)


def _run(kernel: Kernel, count: int, *arguments: Any) -> None:
    """Launch a kernel with a thread for each of so many pairs."""
    if count:
        kernel.launch(-(-count // kernel.threads), count, *arguments)


def _met(count: int) -> MetArrays:
    """Room for where so many pairs meet."""
    shapes = {"normal": (count, 3), "point": (count, 3)}
    return MetArrays(
        *(xp.empty(shapes.get(name, count), np.int8 if name == "state" else np.float64) for name in MetArrays._fields)
    )


def _points(
    touching: Any, order: Any, found: PairList, shapes: Any, bodies: Any, pools: Any, times: Any, met: Any
) -> Any:
    """Points of the pairs that touch."""
    count, room = touching.size, ROOM
    blocks = _points_pool.blocks(count, _find_points)
    own = _points_pool.arrays(blocks, _find_points)
    while True:
        points = PointRows(xp.empty((count * room, 8), np.float64), room, xp.empty(count, np.int64))
        _find_points.launch(blocks, count, touching, order, found, shapes, bodies, pools, times, met, *own, points)
        most = int(points.count.max())
        if most <= room:
            return points
        room = 2 * room if most <= 2 * room else most
