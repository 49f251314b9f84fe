"""Which contact points of a pair are needed: the rest follow from them.

Points with one normal have places (x, y) across it and gaps z. A small motion of the pair adds to the gaps a plane
c + a . (x, y): it lifts by c and tilts by a; sliding and spinning add nothing. An omitted point can only be reached if
it lies below the lower hull of the kept ones, so the kept ones are corners of that hull: those that some tilt up to
`TURN` brings to the ground first. They are added one by one, the one farthest below the hull first, until none lies
deeper than the tolerance. Whatever motion keeps the kept gaps open then keeps the omitted ones open, up to it.
"""

from __future__ import annotations

import math

from .jit import formula
from .linalg import dot, row3, tangents

MOST = 64
"""Contact points that a pair may have."""
COVERED = 1e-4
"""Depth to which an omitted point may come, in sizes of the smaller shape, when no kept gap closes."""
TURN = 0.1
"""Largest tilt of a pair in a step [rad] for which that holds."""
WITHIN = 0.01
"""Part of COVERED for a point between kept ones, which a body reaches by lying down on them, without such a tilt."""
GATHERED = 512
"""Points of a pair that are collected before they are reduced."""
SAME_NORMAL = 6e-4
"""One less the cosine (2 degrees) within which normals count as one: a slide of 3e-3 sizes then costs the tolerance."""
AS_DEEP = 0.01
"""Points count as equally deep, or as equally far below the hull, within this part: rounding changes no choice."""
POINT = 6  # x, y, z, height of the hull over it, its facet, kept or not
FACET = 6  # three corners, plane z = p x + q y + r
_OUTER = 8
_FACETS = 2 * (MOST + _OUTER)
_FAR = 1e3
_EIGHTH = 0.7071067811865476


def cover_size(count: int) -> int:
    """Numbers of scratch that `cover` needs for so many points."""
    return POINT * (count + _OUTER) + (FACET + 1 + 3) * _FACETS


COVER_SIZE = cover_size(GATHERED)


@formula
def put_point(scratch, at, k, x, y, z):
    """Point k for `cover`."""
    i = at + POINT * k
    scratch[i], scratch[i + 1], scratch[i + 2] = x, y, z
    scratch[i + 5] = 0.0


@formula
def is_kept(scratch, at, k):
    """Whether `cover` kept the point k."""
    return scratch[at + POINT * k + 5] != 0.0


@formula
def _put_facet(scratch, at, facet, i, j, k):
    """Facet with corners i, j, k, counter-clockwise. One without area lies nowhere above the ground."""
    xi, yi, zi = scratch[at + POINT * i], scratch[at + POINT * i + 1], scratch[at + POINT * i + 2]
    ax, ay = scratch[at + POINT * j] - xi, scratch[at + POINT * j + 1] - yi
    bx, by = scratch[at + POINT * k] - xi, scratch[at + POINT * k + 1] - yi
    az, bz = scratch[at + POINT * j + 2] - zi, scratch[at + POINT * k + 2] - zi
    area = ax * by - ay * bx
    scratch[facet], scratch[facet + 1], scratch[facet + 2] = i, j, k
    if area <= 1e-13 * math.sqrt((ax * ax + ay * ay) * (bx * bx + by * by)):
        scratch[facet + 3], scratch[facet + 4], scratch[facet + 5] = 0.0, 0.0, -math.inf
        return
    p, q = (az * by - bz * ay) / area, (bz * ax - az * bx) / area
    scratch[facet + 3], scratch[facet + 4], scratch[facet + 5] = p, q, zi - p * xi - q * yi


@formula
def _height(scratch, facet, x, y):
    return scratch[facet + 3] * x + scratch[facet + 4] * y + scratch[facet + 5]


@formula
def _has_edge(scratch, facet, i, j):
    a, b, c = scratch[facet], scratch[facet + 1], scratch[facet + 2]
    return (a == i and b == j) or (b == i and c == j) or (c == i and a == j)


@formula
def _start(scratch, at, count, tolerance):
    """The point to begin with: of the deepest the outermost. Returns it, the middle, the extent."""
    x, y, lowest = 0.0, 0.0, math.inf
    for k in range(count):
        x += scratch[at + POINT * k] / count
        y += scratch[at + POINT * k + 1] / count
        lowest = min(lowest, scratch[at + POINT * k + 2])
    extent, farthest = 0.0, 0.0
    for k in range(count):
        dx, dy = scratch[at + POINT * k] - x, scratch[at + POINT * k + 1] - y
        extent = max(extent, dx * dx + dy * dy)
        if scratch[at + POINT * k + 2] <= lowest + AS_DEEP * tolerance:
            farthest = max(farthest, dx * dx + dy * dy)
    for k in range(count):
        dx, dy = scratch[at + POINT * k] - x, scratch[at + POINT * k + 1] - y
        if scratch[at + POINT * k + 2] <= lowest + AS_DEEP * tolerance and dx * dx + dy * dy >= 0.99 * farthest:
            return k, x, y, lowest, math.sqrt(extent)
    return 0, x, y, lowest, math.sqrt(extent)


@formula
def cover(scratch, at, count, tolerance, most):
    """Mark the points that are needed, of the `count` that `put_point` laid down; returns their number, at most `most`.

    The hull is a set of facets whose planes it is the maximum of. Eight points far outside, as high as the largest
    tilt makes them, close it all round.
    """
    first, x, y, lowest, extent = _start(scratch, at, count, tolerance)
    facets = at + POINT * (count + _OUTER)
    visible, horizon = facets + FACET * _FACETS, facets + (FACET + 1) * _FACETS
    scratch[at + POINT * first + 5] = 1.0
    far = _FAR * (extent + tolerance)
    for m in range(_OUTER):
        c = 1.0 if m % 4 == 0 else (_EIGHTH if m % 2 == 1 else 0.0)
        s = 0.0 if m % 4 == 0 else (_EIGHTH if m % 2 == 1 else 1.0)
        c = -c if 2 < m < 6 else c
        s = -s if m > 4 else s
        put_point(scratch, at, count + m, x + far * c, y + far * s, lowest + TURN * far)
    for m in range(_OUTER):
        _put_facet(scratch, at, facets + FACET * m, first, count + m, count + (m + 1) % _OUTER)
    alive = _OUTER
    for k in range(count):
        _place(scratch, at + POINT * k, facets, 0, alive)
    kept, limit = 1, (1.0 - 2.0 * AS_DEEP) * tolerance  # facets may be that far from convex
    while kept < most:
        worst = 0.0
        for k in range(count):
            worst = max(worst, _below(scratch, at + POINT * k, facets, count, limit))
        if worst == 0.0:
            break
        new = 0
        while _below(scratch, at + POINT * new, facets, count, limit) < (1.0 - AS_DEEP) * worst:
            new += 1
        i = at + POINT * new
        scratch[i + 5] = 1.0
        kept += 1
        # The facets under which the new point lies go; their outline, joined to it, takes their place.
        seen = _visible(scratch, facets, alive, visible, i, AS_DEEP * WITHIN * tolerance)
        edges = 0
        for s in range(seen):
            facet = facets + FACET * int(scratch[visible + s])
            for e in range(3):
                a, b = scratch[facet + e], scratch[facet + (e + 1) % 3]
                outline = True
                for o in range(seen):
                    if _has_edge(scratch, facets + FACET * int(scratch[visible + o]), b, a):
                        outline = False
                        break
                if outline and edges < _FACETS:
                    scratch[horizon + 2 * edges], scratch[horizon + 2 * edges + 1] = a, b
                    edges += 1
        if alive + max(0, edges - seen) > _FACETS:
            break
        for k in range(count):
            for s in range(seen):
                if scratch[at + POINT * k + 4] == scratch[visible + s]:
                    scratch[at + POINT * k + 4] = -1.0
                    break
        for e in range(edges):
            if e >= seen:
                scratch[visible + e] = alive
                alive += 1
            facet = facets + FACET * int(scratch[visible + e])
            _put_facet(scratch, at, facet, int(scratch[horizon + 2 * e]), int(scratch[horizon + 2 * e + 1]), new)
        for e in range(edges, seen):  # rounding left fewer: these lie nowhere
            scratch[facets + FACET * int(scratch[visible + e]) + 5] = -math.inf
        for k in range(count):
            i = at + POINT * k
            if scratch[i + 4] < 0.0:
                scratch[i + 3] = -math.inf
                for e in range(edges):
                    f = int(scratch[visible + e])
                    height = _height(scratch, facets + FACET * f, scratch[i], scratch[i + 1])
                    if height > scratch[i + 3]:
                        scratch[i + 3], scratch[i + 4] = height, f
    return kept


@formula
def _below(scratch, i, facets, count, limit):
    """How far a point lies below the hull; 0 if that is not too far, less being allowed between kept points."""
    if scratch[i + 5] != 0.0 or scratch[i + 4] < 0.0:
        return 0.0
    facet = facets + FACET * int(scratch[i + 4])
    below = scratch[i + 3] - scratch[i + 2]
    if scratch[facet] < count and scratch[facet + 1] < count and scratch[facet + 2] < count:
        limit *= WITHIN
    return below if below > limit else 0.0


@formula
def _visible(scratch, facets, alive, visible, i, slack):
    """List the facets under which the point at i lies: its own, and those that hang together with it. (The plane of a
    sliver far away may pass over the point by rounding.)"""
    found = 1
    own = scratch[i + 4]
    scratch[visible] = own
    for f in range(alive):
        if f != own and _height(scratch, facets + FACET * f, scratch[i], scratch[i + 1]) > scratch[i + 2] + slack:
            scratch[visible + found] = f
            found += 1
    seen, s = 1, 0
    while s < seen:
        facet = facets + FACET * int(scratch[visible + s])
        for o in range(seen, found):
            other = scratch[visible + o]
            for e in range(3):
                if _has_edge(scratch, facets + FACET * int(other), scratch[facet + (e + 1) % 3], scratch[facet + e]):
                    scratch[visible + o], scratch[visible + seen] = scratch[visible + seen], other
                    seen += 1
                    break
        s += 1
    return seen


@formula
def _place(scratch, i, facets, first, end):
    """Height of the hull over a point, and the facet that has it."""
    scratch[i + 3] = -math.inf
    for f in range(first, end):
        height = _height(scratch, facets + FACET * f, scratch[i], scratch[i + 1])
        if height > scratch[i + 3]:
            scratch[i + 3], scratch[i + 4] = height, f


@formula
def reduce_rows(rows, found, size, scratch, at):
    """Reduce contact points (rows normal, point, gap, name, mark) to those that are needed; returns their number.

    They stay in order, at most `MOST`. Points with like normals cover one another, others do not: a cone of normals
    would imply those between them, but not their friction. Where `MOST` are not enough, normals and depths that differ
    more count as the same.
    """
    like, tolerance = SAME_NORMAL, COVERED * size
    marked = found
    while True:
        marked = _mark(rows, found, like, tolerance, scratch, at)
        if marked <= MOST or like > 1.0:
            break
        like, tolerance = 2.0 * like, 1.5 * tolerance
    kept = 0
    for k in range(found):
        if rows[k, 8] == 2.0 and kept < MOST:
            for c in range(9):
                rows[kept, c] = rows[k, c]
            kept += 1
    return kept


@formula
def _mark(rows, found, like, tolerance, scratch, at):
    """Give the needed points the mark 2, the others 1; returns the number of the needed ones."""
    for k in range(found):
        rows[k, 8] = 0.0
    marked = 0
    while True:
        deepest = math.inf
        for k in range(found):
            if rows[k, 8] == 0.0:
                deepest = min(deepest, rows[k, 6])
        if deepest == math.inf:
            return marked
        first = 0
        while rows[first, 8] != 0.0 or rows[first, 6] > deepest + AS_DEEP * tolerance:
            first += 1
        n = row3(rows, first)
        u, w = tangents(n)
        members = 0
        for k in range(found):
            if rows[k, 8] == 0.0 and (k == first or dot(row3(rows, k), n) >= 1.0 - like):
                p = (rows[k, 3], rows[k, 4], rows[k, 5])
                put_point(scratch, at, members, dot(p, u), dot(p, w), rows[k, 6])
                members += 1
        marked += cover(scratch, at, members, tolerance, MOST)
        members = 0
        for k in range(found):
            if rows[k, 8] == 0.0 and (k == first or dot(row3(rows, k), n) >= 1.0 - like):
                rows[k, 8] = 2.0 if is_kept(scratch, at, members) else 1.0
                members += 1
