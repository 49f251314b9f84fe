"""Contacts of convex pairs: the formulas of the processor, stage by stage over pairs that are sorted by kinds.

One kernel for all that a pair may need takes minutes to compile and lets a whole warp wait for the one pair of it that
goes deep. Here pairs of the same two kinds stand side by side; those that their axis still tells apart are left out;
`meet` finds where the rest meet, but for the few that overlap so deeply that all directions are searched, which
`meet_deep` does; those that touch get their points, which are put in the order of the pairs at the end.
"""

from __future__ import annotations

from typing import Any

import numba.cuda as cuda
import numpy as np

from ...kernels.cover import MOST, cover_size
from ...kernels.distance import LATER
from ...kernels.epa import EPA_END
from ...kernels.gjk import SIMPLEX
from ...kernels.linalg import norm, row3
from ...kernels.manifold import COVER_AT, FOUND
from ...kernels.pair_contacts import axis_slot, keep_axis, keeps_axis, pair_in_step, points_of, still_apart
from ...kernels.pairs import Touch, meeting, shallow_meeting
from . import provider
from .launch import Kernel, device_function
from .pairs import APART, DEEP, MET, Pool, Room, emit_points, hand_out, listed, run, unmet

xp = provider.xp

MEETING = SIMPLEX + 24
"""Numbers of scratch for a distance without the search all round."""
POINTS = COVER_AT + cover_size(FOUND)
"""Numbers of scratch for the points of a convex pair."""


def screen(count, chosen, shapes, bodies, hulls, axes, times, left):
    """Which pairs are left when those go that their axis still tells apart.

    Two pairs may have written to one place at once, and left parts of two axes: any unit vector may be asked."""
    k = cuda.grid(1)
    if k < count:
        i, j = chosen.first[k], chosen.second[k]
        name, slot = axis_slot(i, j, axes)
        n = row3(axes.axis, slot)
        length = norm(n)
        left[k] = 1
        if axes.name[slot] == name and length > 0.0:
            step = pair_in_step(i, j, shapes, bodies, times)
            n = (n[0] / length, n[1] / length, n[2] / length)
            scratch = cuda.local.array(1, np.float64)
            if keeps_axis(step) and still_apart(step, hulls.point, scratch, n):
                left[k] = 0


@device_function
def note(k, i, j, answer, step, axes, met):
    """What was found about the pair k."""
    yes, t, touch = answer
    met.state[k] = MET if yes else APART
    if yes:
        met.time[k], met.gap[k], met.reach[k] = t, touch.gap, touch.reach
        for c in range(3):
            met.normal[k, c], met.point[k, c] = touch.normal[c], touch.point[c]
    elif keeps_axis(step):
        name, slot = axis_slot(i, j, axes)
        keep_axis(axes, slot, name, touch.normal)


def meet(count, chosen, shapes, bodies, hulls, axes, times, met):
    """Where the pairs meet, if it takes no search all round."""
    k = cuda.grid(1)
    if k < count:
        i, j = chosen.first[k], chosen.second[k]
        step = pair_in_step(i, j, shapes, bodies, times)
        scratch = cuda.local.array(MEETING, np.float64)
        scratch[LATER] = 0.0
        answer = shallow_meeting(step.pair, (hulls, scratch), step.local, step.limits)
        if scratch[LATER] == 0.0:
            note(k, i, j, answer, step, axes, met)
        else:
            met.state[k] = DEEP


def meet_deep(count, which, chosen, shapes, bodies, hulls, axes, times, met, room):
    """Where those meet that are left."""
    (scratch,) = room
    first, threads = cuda.grid(1), cuda.gridsize(1)
    for c in range(first, count, threads):
        k = which[c]
        i, j = chosen.first[k], chosen.second[k]
        step = pair_in_step(i, j, shapes, bodies, times)
        answer = meeting(step.pair, (hulls, scratch[first]), step.local, step.limits)
        note(k, i, j, answer, step, axes, met)


def find_points(count, which, chosen, shapes, bodies, pools, times, met, room):
    """The points of the pairs that touch."""
    scratch, rows, points = room
    first, threads = cuda.grid(1), cuda.gridsize(1)
    for c in range(first, count, threads):
        k = which[c]
        step = pair_in_step(chosen.first[k], chosen.second[k], shapes, bodies, times)
        touch = Touch(met.gap[k], row3(met.normal, k), row3(met.point, k), met.reach[k])
        own = rows[:, :, first]
        new = points_of(step, met.time[k], touch, pools.hulls, pools.loops, own, 0, scratch[:, first])
        hand_out(c, new, own, points)


_screen, _meet = Kernel(screen, calls=True), Kernel(meet, calls=True)
_meet_deep, _find_points = Kernel(meet_deep, calls=True), Kernel(find_points, calls=True)
_deep_pool, _points_pool = Pool((-1, EPA_END), most=1 << 13), Pool((POINTS, -1), (MOST, 8, -1))
_room = Room()


def find_convex_contacts(
    shapes: Any, bodies: Any, pools: Any, h: float, margin: float, pairs: Any, raw: Any, scratch: Any
) -> None:
    """See `backends.cpu.narrow.find_convex_contacts`."""
    found, chosen = listed(shapes, pairs, False)
    seen, times = (shapes, bodies, pools.hulls, pools.axes), (h, margin)
    left = xp.empty(chosen.place.size, np.int8)
    run(_screen, left.size, chosen, *seen, times, left)
    chosen = chosen.those(xp.flatnonzero(left))
    met = unmet(chosen.place.size)
    run(_meet, chosen.place.size, chosen, *seen, times, met)
    deep = xp.flatnonzero(met.state == DEEP)
    _deep_pool.run(_meet_deep, deep.size, deep, chosen, *seen, times, met)
    which = xp.flatnonzero(met.state == MET)
    if which.size:
        points = _room.points(
            which.size,
            lambda points: _points_pool.run(
                _find_points, which.size, which, chosen, shapes, bodies, pools, times, met, last=points
            ),
        )
        emit_points(chosen.place[which], found, points, raw)
