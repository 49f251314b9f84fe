"""Bodies that come and go: which are there, wait, find room, cross measuring planes and are taken by sinks."""

from __future__ import annotations

from ..enums import Presence
from .jit import formula
from .kinds import DYNAMIC, HALF_SPACE, STATIC
from .linalg import axpy, dot, quat_matrix, row3, row4, sub

PRESENT, WAITING = int(Presence.PRESENT), int(Presence.WAITING)


@formula
def shown_body(i, presence, moving, kind, inverse_mass, seen_kind, seen_mass):
    """Body i as a step sees it: absent, it is static and has no inverse mass. moving (n,) bool: the others are static
    too; empty: none of those that are there."""
    here = presence[i] == PRESENT
    moves = here if moving.size == 0 else moving[i]
    seen_kind[i] = kind[i] if moves else STATIC
    for k in range(3):
        seen_mass[i, k] = inverse_mass[i, k] if here else 0.0


@formula
def shown_shape(s, presence, body, kind, seen):
    """Shape s likewise: a half-space in nobody's list of planes."""
    seen[s] = kind[s] if presence[body[s]] == PRESENT else HALF_SPACE


@formula
def waits(i, first, presence, out):
    """Whether the body that comes at place i from `first` on still waits."""
    out[i] = presence[first + i] == WAITING


@formula
def beside(i, presence, kind, reach, box, position, orientation, there, matrix):
    """Whether body i is to be kept clear of by what comes into a box (low, high, and the reach of the newcomers): one
    that is there, and near or not dynamic; if so its rotation matrix."""
    low, high, more = box
    near = True
    for k in range(3):
        x, r = position[i, k], reach[i] + more
        near = near and low[k] - r <= x <= high[k] + r
    there[i] = PRESENT if presence[i] == PRESENT and (near or kind[i] != DYNAMIC) else WAITING
    if there[i] == PRESENT:
        m = quat_matrix(row4(orientation, i))
        for k in range(9):
            matrix[i, k] = m[k]


@formula
def crowded(c, gap, least, body_a, body_b, order, fits):
    """Of two bodies that touch, the one that came later gives way. order: of the newcomers, -1 of all others."""
    later = max(order[body_a[c]], order[body_b[c]])
    if gap[c] < least and later >= 0:
        fits[later] = False


@formula
def taken(i, removable, presence, position, sink, out):
    """Whether a sink takes body i: one behind its plane, in its box, or outside of it."""
    x, out[i] = row3(position, i), False
    if not removable[i] or presence[i] != PRESENT:
        return
    if sink.planar:
        p, n = sink.point, sink.normal
        out[i] = dot(sub(x, (p[0], p[1], p[2])), (n[0], n[1], n[2])) < 0.0
    else:
        inside = True
        for k in range(3):
            inside = inside and sink.low[k] <= x[k] <= sink.high[k]
        out[i] = inside != sink.outside


@formula
def crossed(i, kind, presence, before, after, plane, forward, backward):
    """Whether the centre of a dynamic body crosses the part of a plane that counts, on its way from `before`."""
    forward[i] = backward[i] = False
    if kind[i] != DYNAMIC or (presence.size > 0 and presence[i] != PRESENT):
        return
    point = (plane.point[0], plane.point[1], plane.point[2])
    n = (plane.normal[0], plane.normal[1], plane.normal[2])
    x, y = sub(row3(before, i), point), sub(row3(after, i), point)
    old, new = dot(x, n), dot(y, n)
    if (old < 0.0) == (new < 0.0):
        return
    arm = axpy(old / (old - new), sub(y, x), x)
    holds = True
    if plane.radius >= 0.0:
        flat = axpy(-dot(arm, n), n, arm)
        holds = dot(flat, flat) <= plane.radius * plane.radius
    elif plane.sides[0] >= 0.0:
        u, v = (plane.u[0], plane.u[1], plane.u[2]), (plane.v[0], plane.v[1], plane.v[2])
        holds = abs(dot(arm, u)) <= 0.5 * plane.sides[0] and abs(dot(arm, v)) <= 0.5 * plane.sides[1]
    forward[i] = holds and old < 0.0
    backward[i] = holds and old >= 0.0
