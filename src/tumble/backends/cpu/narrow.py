"""Narrow phase: contact points of all pairs."""

from __future__ import annotations

from ...kernels.cover import MOST
from ...kernels.distance import is_ball_pair
from ...kernels.epa import EPA_END
from ...kernels.jit import blockwise
from ...kernels.kinds import SPHERE
from ...kernels.manifold import MANIFOLD_END
from ...kernels.pair_contacts import ball_pair, convex_pair, is_convex_pair, ordered, sphere_pair
from ...kernels.team import member

SCRATCH = max(EPA_END, MANIFOLD_END)
"""Numbers of scratch a thread needs for a pair."""


@blockwise(1, "blocks")
def find_ball_contacts(
    block,
    shapes,
    bodies,
    geometry,
    h,
    margin,
    pair,
    pair_capacity,
    pair_count,
    blocks,
    raw,
    raw_shapes,
    raw_capacity,
    raw_count,
    scratch,
):
    """Contacts of all pairs of a ball and a shape of closed form. raw (.., 8): normal from the first to the second
    shape, point, gap, name.

    Each block has room for raw_capacity contacts. Past the last MOST they are overwritten and only counted: the caller
    enlarges and comes again. scratch has one row a thread. The arrays are taken out of their tuples first: taking one
    out counts a reference, and within the loop the threads would wait for each other's counts.
    """
    kind, body, position, matrix = shapes.kind, shapes.body, shapes.position, shapes.matrix
    parameters, smallest, bound = shapes.parameters, shapes.smallest, shapes.bound
    body_kind, center, free, handed_on = bodies.kind, bodies.center, bodies.free, bodies.handed_on
    points, faces, planes = geometry.hull_point, geometry.hull_face_start, geometry.face_plane
    mine = scratch[member()]
    found = 0
    base = block * raw_capacity
    for k in range(block * pair_capacity, block * pair_capacity + pair_count[block]):
        i, j = ordered(pair[k, 0], pair[k, 1], kind, body)
        if not is_ball_pair(kind[i], kind[j]):
            continue
        new, row = -1, base + min(found, raw_capacity - MOST)
        if kind[j] == SPHERE:
            new = sphere_pair(i, j, parameters, position, smallest, body, center, free, handed_on, h, margin, raw, row)
        if new < 0:
            new = ball_pair(
                i, j, kind, body, position, matrix, parameters, smallest, bound, body_kind, center, free, handed_on,
                h, margin, points, faces, planes, raw, row, mine,
            )  # fmt: skip
        for c in range(row, row + new):
            raw_shapes[c, 0], raw_shapes[c, 1] = i, j
        found += new
    raw_count[block] = found


@blockwise(1, "blocks")
def find_convex_contacts(
    block,
    shapes,
    bodies,
    geometry,
    h,
    margin,
    pair,
    pair_capacity,
    pair_count,
    blocks,
    raw,
    raw_shapes,
    raw_capacity,
    raw_count,
    scratch,
):
    """Contacts of the other pairs of convex shapes, after those that `find_ball_contacts` left in each block."""
    kind, body, position, matrix = shapes.kind, shapes.body, shapes.position, shapes.matrix
    parameters, entry, smallest, bound = shapes.parameters, shapes.geometry, shapes.smallest, shapes.bound
    body_kind, center, free, handed_on = bodies.kind, bodies.center, bodies.free, bodies.handed_on
    points, face_start, face_plane = geometry.hull_point, geometry.hull_face_start, geometry.face_plane
    loop_start, loop = geometry.face_loop_start, geometry.face_loop
    mine = scratch[member()]
    found = raw_count[block]
    base = block * raw_capacity
    for k in range(block * pair_capacity, block * pair_capacity + pair_count[block]):
        i, j = ordered(pair[k, 0], pair[k, 1], kind, body)
        if not is_convex_pair(i, j, kind) or is_ball_pair(kind[i], kind[j]):
            continue
        row = base + min(found, raw_capacity - MOST)
        new = convex_pair(
            i,
            j,
            kind,
            body,
            position,
            matrix,
            parameters,
            entry,
            smallest,
            bound,
            body_kind,
            center,
            free,
            handed_on,
            points,
            face_start,
            face_plane,
            loop_start,
            loop,
            h,
            margin,
            raw,
            row,
            mine,
        )
        for c in range(row, row + new):
            raw_shapes[c, 0], raw_shapes[c, 1] = i, j
        found += new
    raw_count[block] = found
