"""Contacts with meshes and height fields: the formulas of the processor, a thread for each triangle that may touch.

A thread for each pair lists what its walk over the surface visits; where a shape and a triangle meet is found for all
of them side by side, then the points of those that touch. The triangles of a pair are put together in their order by
one thread, as on a processor, which leaves out doubles and what other points cover.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba.cuda as cuda
import numpy as np

from ...kernels.cover import GATHERED, MOST
from ...kernels.distance import LATER
from ...kernels.epa import EPA_END
from ...kernels.kinds import HALF_SPACE, MESH
from ...kernels.linalg import row3
from ...kernels.manifold import COVER_AT, FOUND, MANIFOLD_END
from ...kernels.pairs import Touch
from ...kernels.surface_pairs import (
    encounter,
    mesh_on_plane,
    own_triangle,
    room_for,
    surface_in_step,
    walk_with,
)
from ...kernels.surface_rows import append_rows, hand_over, label_rows
from ...kernels.surfaces import (
    TRIANGLE_A,
    TRIANGLE_B,
    Piece,
    load_field_triangle,
    load_mesh_triangle,
)
from ...kernels.triangle_contacts import shallow_triangle_touch, triangle_points, triangle_touch
from ..cpu.surfaces import SURFACE_COLUMNS
from . import provider
from .launch import Kernel, device_function
from .pairs import (
    APART,
    DEEP,
    MET,
    Chosen,
    PairList,
    Pool,
    Room,
    emit_points,
    hand_out,
    listed,
    run,
    unmet,
)

xp = provider.xp

SURFACE_ROWS = 0
"""What callers make room for: here each pass keeps its own."""
IN_HAND = 64
"""Numbers of scratch for triangles in hand, and for a distance without the search all round."""


class VisitArrays(NamedTuple):
    """What the walks of the pairs visit, pair by pair in the order of the walk, v of them."""

    pair: Any  # (v,) int64: place among the chosen
    own: Any  # (v,) int64: triangle of the first shape, or -1
    number: Any  # (v,) int64: of the triangle in the surface


@device_function
def _counted(met, piece, number, pools, found, work):
    """A visit."""
    return found + 1


@device_function
def _noted(met, piece, number, pools, found, work):
    """A visit, written down."""
    _, (pair, visits) = work
    visits.pair[found], visits.own[found], visits.number[found] = pair, met.triangle, number
    return found + 1


_count_walk, _note_walk = walk_with(_counted), walk_with(_noted)


def count_visits(count, chosen, shapes, bodies, pools, times, visits):
    """How many triangles each pair visits."""
    k = cuda.grid(1)
    if k < count:
        scratch = cuda.local.array(IN_HAND, np.float64)
        step = surface_in_step(chosen.first[k], chosen.second[k], shapes, bodies, times)
        visits[k] = _count_walk(step, pools, np.int64(0), (scratch, 0))


def note_visits(count, chosen, shapes, bodies, pools, times, start, visits):
    """Which they are."""
    k = cuda.grid(1)
    if k < count and start[k] < start[k + 1]:
        scratch = cuda.local.array(IN_HAND, np.float64)
        step = surface_in_step(chosen.first[k], chosen.second[k], shapes, bodies, times)
        _note_walk(step, pools, start[k], (scratch, (np.int64(k), visits)))


@device_function
def visited(v, visits, chosen, shapes, bodies, pools, times, scratch):
    """Visit v again: the encounter and the piece of the surface, with the triangles in hand."""
    k, number = visits.pair[v], visits.number[v]
    step = surface_in_step(chosen.first[k], chosen.second[k], shapes, bodies, times)
    one = step.one
    if visits.own[v] >= 0:
        load_mesh_triangle(pools.meshes, visits.own[v], scratch, TRIANGLE_A)
        one = own_triangle(step.one)
    met, _, _ = encounter(one, visits.own[v], step.two, step.surface, step.limits, pools, scratch)
    none = np.int64(0)
    if step.surface.kind == MESH:
        load_mesh_triangle(pools.meshes, number, scratch, TRIANGLE_B)
        return met, Piece(number, (none, none, none))
    columns = pools.fields.shape[step.surface.entry, 1]
    cell = number // 2
    piece = Piece(none, (np.int64(cell // columns), np.int64(cell % columns), np.int64(number % 2)))
    load_field_triangle(pools.fields, step.surface, piece.cell, scratch, TRIANGLE_B)
    return met, piece


@device_function
def note_touch(v, yes, t, touch, met):
    """What was found about visit v."""
    met.state[v] = MET if yes else APART
    if yes:
        met.time[v], met.gap[v], met.reach[v] = t, touch.gap, touch.reach
        for c in range(3):
            met.normal[v, c], met.point[v, c] = touch.normal[c], touch.point[c]


def touch_triangles(count, visits, chosen, shapes, bodies, pools, times, met):
    """Where shapes and triangles meet, if it takes no search all round."""
    v = cuda.grid(1)
    if v < count:
        scratch = cuda.local.array(IN_HAND, np.float64)
        scratch[LATER] = 0.0
        of, piece = visited(v, visits, chosen, shapes, bodies, pools, times, scratch)
        yes, t, touch = shallow_triangle_touch(of, piece, pools, scratch)
        if scratch[LATER] == 0.0:
            note_touch(v, yes, t, touch, met)
        else:
            met.state[v] = DEEP


def touch_deep(count, which, visits, chosen, shapes, bodies, pools, times, met, room):
    """Where those meet that are left."""
    (scratch,) = room
    first, threads = cuda.grid(1), cuda.gridsize(1)
    own = scratch[first]
    for c in range(first, count, threads):
        v = which[c]
        of, piece = visited(v, visits, chosen, shapes, bodies, pools, times, own)
        yes, t, touch = triangle_touch(of, piece, pools, own)
        note_touch(v, yes, t, touch, met)


def find_triangle_points(count, which, visits, chosen, shapes, bodies, pools, times, met, room):
    """The points of the shapes and triangles that touch."""
    scratch, rows, points = room
    first, threads = cuda.grid(1), cuda.gridsize(1)
    for c in range(first, count, threads):
        v = which[c]
        work, own = scratch[:, first], rows[:, :, first]
        of, _ = visited(v, visits, chosen, shapes, bodies, pools, times, work)
        touch = Touch(met.gap[v], row3(met.normal, v), row3(met.point, v), met.reach[v])
        new = triangle_points(of, met.time[v], touch, pools, work, own, 0)
        label_rows(own, 0, new, of.triangle, visits.number[v])
        hand_out(c, new, own, points)


def gather_triangles(count, which, chosen, shapes, start, place, parts, room):
    """The points of each pair: those of its triangles in order. place: of the points of each visit, -1 for none."""
    scratch, rows, found_rows, points = room
    first, threads = cuda.grid(1), cuda.gridsize(1)
    for c in range(first, count, threads):
        k = which[c]
        work, mine, own = scratch[:, first], rows[:, :, first], found_rows[:, :, first]
        size = min(shapes.smallest[chosen.first[k]], shapes.smallest[chosen.second[k]])
        found = np.int64(0)
        for v in range(start[k], start[k + 1]):
            found = room_for(found, size, mine, work)
            p = place[v]
            if p >= 0:
                new = parts.count[p]
                for n in range(new):
                    for column in range(8):
                        mine[found + n, column] = parts.row[p * parts.room + n, column]
                found = append_rows(mine, found, new, size)
        hand_out(c, hand_over(mine, found, size, work, own, 0), own, points)


def find_plane_points(count, chosen, shapes, bodies, pools, times, room):
    """The points of meshes on planes."""
    scratch, rows, found_rows, points = room
    first, threads = cuda.grid(1), cuda.gridsize(1)
    for c in range(first, count, threads):
        work, own = (scratch[:, first], rows[:, :, first]), found_rows[:, :, first]
        i, j = chosen.first[c], chosen.second[c]
        hand_out(c, mesh_on_plane(i, j, shapes, bodies, pools, times, own, 0, work), own, points)


_count_visits, _note_visits = Kernel(count_visits, calls=True), Kernel(note_visits, calls=True)
_touch_triangles, _touch_deep = Kernel(touch_triangles, calls=True), Kernel(touch_deep, calls=True)
_find_triangle_points = Kernel(find_triangle_points, calls=True)
_gather_triangles, _find_plane_points = Kernel(gather_triangles, calls=True), Kernel(find_plane_points, calls=True)
_deep_pool, _triangle_pool = Pool((-1, EPA_END), most=1 << 13), Pool((COVER_AT, -1), (FOUND, 8, -1))
_pair_pool = Pool((MANIFOLD_END, -1), (GATHERED, SURFACE_COLUMNS, -1), (MOST, 8, -1))
_plane_room, _triangle_room, _pair_room = Room(), Room(), Room()


def find_surface_contacts(
    shapes: Any, bodies: Any, pools: Any, h: float, margin: float, pairs: Any, raw: Any, scratch: Any, rows: Any
) -> None:
    """See `backends.cpu.surfaces.find_surface_contacts`."""
    found, chosen = listed(shapes, pairs, True)
    times, on_plane = (h, margin), shapes.kind[chosen.second] == HALF_SPACE
    planes, chosen = chosen.those(xp.flatnonzero(on_plane)), chosen.those(xp.flatnonzero(~on_plane))
    if planes.place.size:
        points = _plane_room.points(
            planes.place.size,
            lambda points: _pair_pool.run(
                _find_plane_points, planes.place.size, planes, shapes, bodies, pools, times, last=points
            ),
        )
        emit_points(planes.place, found, points, raw)
    if chosen.place.size:
        _find_on_surfaces(chosen, found, (shapes, bodies, pools, times), raw)


def _find_on_surfaces(chosen: Chosen, found: PairList, what: tuple, raw: Any) -> None:
    """Contacts of the pairs that are visited triangle by triangle."""
    count = chosen.place.size
    each, start = xp.empty(count, np.int64), provider.zeros(count + 1, np.int64)
    run(_count_visits, count, chosen, *what, each)
    provider.cumulate(each, start)
    total = int(start[-1])
    visits = VisitArrays(*(xp.empty(total, np.int64) for _ in range(3)))
    run(_note_visits, count, chosen, *what, start, visits)
    met = unmet(total)
    run(_touch_triangles, total, visits, chosen, *what, met)
    deep = xp.flatnonzero(met.state == DEEP)
    _deep_pool.run(_touch_deep, deep.size, deep, visits, chosen, *what, met)
    touched = xp.flatnonzero(met.state == MET)
    if touched.size == 0:
        return
    parts = _triangle_room.points(
        touched.size,
        lambda parts: _triangle_pool.run(
            _find_triangle_points, touched.size, touched, visits, chosen, *what, met, last=parts
        ),
    )
    place = xp.full(total, -1, np.int64)
    place[touched] = xp.arange(touched.size)
    touches = provider.zeros(count, np.int64)
    touches[visits.pair[touched]] = 1
    which = xp.flatnonzero(touches)
    points = _pair_room.points(
        which.size,
        lambda points: _pair_pool.run(
            _gather_triangles, which.size, which, chosen, what[0], start, place, parts, last=points
        ),
    )
    emit_points(chosen.place[which], found, points, raw)
