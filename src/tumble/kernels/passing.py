"""Bodies that sinks take and that cross measuring planes, body by body."""

from __future__ import annotations

from ..enums import Presence
from .jit import formula
from .kinds import DYNAMIC
from .linalg import axpy, dot, row3, sub

PRESENT = int(Presence.PRESENT)


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
