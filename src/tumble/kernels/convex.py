"""Convex shapes as a core and a radius: everything that depends on the kind of the core.

A shape is its kind and four numbers s; s[3] is the radius of the ball that is added to the core. The cores: sphere a
point; capsule the segment |z| <= s[2]; box the half-extents s[:3]; cylinder radius s[0], |z| <= s[2]; cone base radius
s[0] at z = -s[2], apex at z = s[2]; ellipsoid the semi-axes s[:3]; hull the points s[0] .. s[0] + s[1] of the pool;
triangle the nine numbers of scratch from s[0] on. `hulls` (`backends.shape_arrays.HullPool`) are the pooled points and
faces.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .jit import formula, merged_formula
from .kinds import BOX, CAPSULE, ELLIPSOID, HULL, REVOLVED, TRIANGLE, among
from .linalg import add, axpy, cross, dot, mat_t_vec, mat_vec, norm, sub
from .revolved import (
    lies_over_cap,
    put_revolved_face,
    revolved_normal,
    revolved_support,
    rim_bend,
    rim_point,
    upper_end,
)

CORNERS = 32
"""Corners of a face that are used; of more every n-th."""
CORNER_NAMES = 2048
"""Names of corners are below it, those of cut edges above."""


class Convex(NamedTuple):
    """A convex shape in its own frame."""

    kind: np.int64
    s: tuple[float, float, float, float]
    hull: np.int64  # its number among the hulls


class Pair(NamedTuple):
    """Two convex shapes in the frame of the first."""

    a: Convex
    b: Convex
    turn: tuple[float, ...]  # the matrix of b's axes
    shift: tuple[float, float, float]  # the place of b


class Pose(NamedTuple):
    """Where a shape is."""

    position: tuple[float, float, float]
    matrix: tuple[float, ...]


@formula
def shifted(pair, shift):
    """The pair with the second shape at another place."""
    return Pair(pair.a, pair.b, pair.turn, shift)


@formula
def triangle_corner(scratch, at, k):
    """Corner k of a triangle in scratch."""
    i = at + 3 * k
    return (scratch[i], scratch[i + 1], scratch[i + 2])


@merged_formula
def support(convex, points, scratch, d):
    """The point of the core that is farthest along d."""
    kind, s = convex.kind, convex.s
    if kind == BOX:
        return (
            s[0] if d[0] >= 0.0 else -s[0],
            s[1] if d[1] >= 0.0 else -s[1],
            s[2] if d[2] >= 0.0 else -s[2],
        )
    if kind == HULL:
        best, most = int(s[0]), -math.inf
        for i in range(int(s[0]), int(s[0]) + int(s[1])):
            along = points[i, 0] * d[0] + points[i, 1] * d[1] + points[i, 2] * d[2]
            if along > most:
                best, most = i, along
        return (points[best, 0], points[best, 1], points[best, 2])
    if kind == TRIANGLE:
        at = int(s[0])
        p, q, r = triangle_corner(scratch, at, 0), triangle_corner(scratch, at, 1), triangle_corner(scratch, at, 2)
        dp, dq, dr = dot(p, d), dot(q, d), dot(r, d)
        if dp >= dq and dp >= dr:
            return p
        return q if dq >= dr else r
    if among(REVOLVED, kind):
        return revolved_support(kind, s, d)
    if kind == ELLIPSOID:
        x, y, z = s[0] * d[0], s[1] * d[1], s[2] * d[2]
        length = math.sqrt(x * x + y * y + z * z)
        if length == 0.0:
            return (0.0, 0.0, s[2])
        return (s[0] * x / length, s[1] * y / length, s[2] * z / length)
    if kind == CAPSULE:
        return (0.0, 0.0, s[2] if d[2] >= 0.0 else -s[2])
    return (0.0, 0.0, 0.0)


@formula
def separation(pair, points, scratch, n):
    """Gap of the two cores along the unit vector n (from A to B): never more than their distance, and minus the depth
    if n is the shortest way out. Returns it with the two support points."""
    a = support(pair.a, points, scratch, n)
    b = support(pair.b, points, scratch, mat_t_vec(pair.turn, (-n[0], -n[1], -n[2])))
    b = add(mat_vec(pair.turn, b), pair.shift)
    return dot(n, b) - dot(n, a), a, b


@formula
def core_size(convex, points, scratch):
    """Largest extent of the core from its origin, roughly: the scale of rounding errors."""
    kind, s = convex.kind, convex.s
    if kind == HULL:
        i = int(s[0])
        size = 0.0
        for k in range(i, i + min(8, int(s[1]))):
            size = max(size, abs(points[k, 0]) + abs(points[k, 1]) + abs(points[k, 2]))
        return size
    if kind == TRIANGLE:
        size = 0.0
        for k in range(3):
            p = triangle_corner(scratch, int(s[0]), k)
            size = max(size, abs(p[0]) + abs(p[1]) + abs(p[2]))
        return size
    return s[0] + s[1] + s[2]


@formula
def triangle_normal(scratch, at):
    """Unit normal, counter-clockwise; zero for a triangle without area."""
    p = triangle_corner(scratch, at, 0)
    n = cross(sub(triangle_corner(scratch, at, 1), p), sub(triangle_corner(scratch, at, 2), p))
    length = norm(n)
    if length == 0.0:
        return (0.0, 0.0, 0.0)
    return (n[0] / length, n[1] / length, n[2] / length)


@formula
def nearest_face(convex, hulls, d):
    """The face of a hull that looks most along d among those through its support point, and the cosine."""
    s, hull, points, face_start, face_plane = convex.s, convex.hull, hulls.point, hulls.face_start, hulls.face_plane
    top, most, size = int(s[0]), -math.inf, 0.0
    for i in range(int(s[0]), int(s[0]) + int(s[1])):
        along = points[i, 0] * d[0] + points[i, 1] * d[1] + points[i, 2] * d[2]
        if along > most:
            top, most = i, along
        size = max(size, abs(points[i, 0]) + abs(points[i, 1]) + abs(points[i, 2]))
    p = (points[top, 0], points[top, 1], points[top, 2])
    best, facing = face_start[hull], -math.inf
    for f in range(face_start[hull], face_start[hull + 1]):
        normal = (face_plane[f, 0], face_plane[f, 1], face_plane[f, 2])
        if dot(normal, d) > facing and face_plane[f, 3] - dot(normal, p) <= 1e-9 * size:
            best, facing = f, dot(normal, d)
    return best, facing


@formula
def flat_normal(convex, hulls, scratch, d):
    """Outward normal of the flat or ruled face that looks most along the unit vector d; zero where there is none."""
    kind, s = convex.kind, convex.s
    if kind == BOX:
        x, y, z = abs(d[0]), abs(d[1]), abs(d[2])
        if x >= y and x >= z:
            return (1.0 if d[0] >= 0.0 else -1.0, 0.0, 0.0)
        if y >= z:
            return (0.0, 1.0 if d[1] >= 0.0 else -1.0, 0.0)
        return (0.0, 0.0, 1.0 if d[2] >= 0.0 else -1.0)
    if kind == HULL:
        f, _ = nearest_face(convex, hulls, d)
        return (hulls.face_plane[f, 0], hulls.face_plane[f, 1], hulls.face_plane[f, 2])
    if kind == TRIANGLE:
        n = triangle_normal(scratch, int(s[0]))
        if dot(n, d) < 0.0:
            return (-n[0], -n[1], -n[2])
        return n
    if among(REVOLVED, kind):
        return revolved_normal(kind, s, d)
    if kind == CAPSULE:
        radial = math.sqrt(d[0] * d[0] + d[1] * d[1])
        if radial > 0.0:
            return (d[0] / radial, d[1] / radial, 0.0)
    return (0.0, 0.0, 0.0)


@merged_formula
def corner(convex, points, scratch, d):
    """Name of the feature (a corner, a rim, all of an ellipsoid) that is farthest along d."""
    kind, s = convex.kind, convex.s
    if kind == BOX:
        return (1 if d[0] >= 0.0 else 0) + (2 if d[1] >= 0.0 else 0) + (4 if d[2] >= 0.0 else 0)
    if kind == HULL:
        best, most = int(s[0]), -math.inf
        for i in range(int(s[0]), int(s[0]) + int(s[1])):
            along = points[i, 0] * d[0] + points[i, 1] * d[1] + points[i, 2] * d[2]
            if along > most:
                best, most = i, along
        return best
    if kind == CAPSULE:
        return 1 if d[2] >= 0.0 else 0
    if among(REVOLVED, kind):
        return 1 if upper_end(kind, s, d) else 0
    if kind == TRIANGLE:
        at = int(s[0])
        p, q, r = dot(triangle_corner(scratch, at, 0), d), dot(triangle_corner(scratch, at, 1), d), 0.0
        r = dot(triangle_corner(scratch, at, 2), d)
        if p >= q and p >= r:
            return 0
        return 1 if q >= r else 2
    return 0


@merged_formula
def corner_point(convex, points, scratch, name, d):
    """The point of that feature that is farthest along d."""
    kind, s = convex.kind, convex.s
    if kind == BOX:
        return (
            s[0] if name & 1 else -s[0],
            s[1] if name & 2 else -s[1],
            s[2] if name & 4 else -s[2],
        )
    if kind == HULL:
        return (points[name, 0], points[name, 1], points[name, 2])
    if kind == CAPSULE:
        return (0.0, 0.0, s[2] if name == 1 else -s[2])
    if kind == TRIANGLE:
        return triangle_corner(scratch, int(s[0]), name)
    if among(REVOLVED, kind):
        return rim_point(kind, s, name == 1, d)
    return support(convex, points, scratch, d)


@merged_formula
def bending(convex, name, p, d, u, w):
    """How the feature's farthest point moves when d turns: the second derivative of the support along u and w."""
    kind, s = convex.kind, convex.s
    if kind == ELLIPSOID:
        reach = dot(p, d)
        if reach <= 0.0:
            return 0.0, 0.0, 0.0
        x, y, z = s[0] * s[0], s[1] * s[1], s[2] * s[2]
        pu, pw = dot(p, u), dot(p, w)
        uu = x * u[0] * u[0] + y * u[1] * u[1] + z * u[2] * u[2]
        uw = x * u[0] * w[0] + y * u[1] * w[1] + z * u[2] * w[2]
        ww = x * w[0] * w[0] + y * w[1] * w[1] + z * w[2] * w[2]
        return (uu - pu * pu) / reach, (uw - pu * pw) / reach, (ww - pw * pw) / reach
    if among(REVOLVED, kind):
        return rim_bend(kind, s, name == 1, d, u, w)
    return 0.0, 0.0, 0.0


@formula
def lies_over(convex, hulls, m, p):
    """Whether p, moved along m, meets the flat face of the core whose outward normal is m."""
    kind, s = convex.kind, convex.s
    if kind == BOX:
        return (
            (m[0] != 0.0 or abs(p[0]) <= s[0])
            and (m[1] != 0.0 or abs(p[1]) <= s[1])
            and (m[2] != 0.0 or abs(p[2]) <= s[2])
        )
    if among(REVOLVED, kind):
        return lies_over_cap(kind, s, m, p)
    if kind == HULL:
        face_start, face_plane, hull = hulls.face_start, hulls.face_plane, convex.hull
        face, _ = nearest_face(convex, hulls, m)
        up = face_plane[face, 3] - dot(m, p)
        q = axpy(up, m, p)
        for f in range(face_start[hull], face_start[hull + 1]):
            if (
                f != face
                and face_plane[f, 0] * q[0] + face_plane[f, 1] * q[1] + face_plane[f, 2] * q[2] > face_plane[f, 3]
            ):
                return False
        return True
    return False


@formula
def _put_corner(scratch, at, p, name):
    scratch[at], scratch[at + 1], scratch[at + 2] = p
    scratch[at + 3] = name


@formula
def facing(convex, hulls, loops, scratch, d, at):
    """Corners, in the shape's frame, of the face or edge of the core that looks along the unit vector d; their number.

    Where d leaves the axis of a cap, its first corner is the lowest point of the rim.
    """
    kind, s, points = convex.kind, convex.s, hulls.point
    if kind == BOX:
        x, y, z = abs(d[0]), abs(d[1]), abs(d[2])
        axis = 0 if (x >= y and x >= z) else (1 if y >= z else 2)
        along = d[0] if axis == 0 else (d[1] if axis == 1 else d[2])
        side = 1 if along >= 0.0 else 0
        for k in range(4):
            # Corner numbers have bits x, y, z; counter-clockwise about +axis, so turned round for the other side.
            c = k if side == 1 else 3 - k
            b = 1 if (c == 1 or c == 2) else 0
            e = 1 if c >= 2 else 0
            i = (side << axis) | (b << ((axis + 1) % 3)) | (e << ((axis + 2) % 3))
            p = (s[0] if i & 1 else -s[0], s[1] if i & 2 else -s[1], s[2] if i & 4 else -s[2])
            _put_corner(scratch, at + 4 * k, p, i)
        return 4
    if kind == HULL:
        f, _ = nearest_face(convex, hulls, d)
        first = loops.start[f]
        count = loops.start[f + 1] - first
        every = (count + CORNERS - 1) // CORNERS
        kept = 0
        for k in range(0, count, every):
            i = loops.point[first + k]
            _put_corner(
                scratch, at + 4 * kept, (points[i, 0], points[i, 1], points[i, 2]), (i - int(s[0])) % CORNER_NAMES
            )
            kept += 1
        return kept
    if kind == TRIANGLE:
        flip = dot(triangle_normal(scratch, int(s[0])), d) < 0.0
        for k in range(3):
            i = 2 - k if flip else k
            _put_corner(scratch, at + 4 * k, triangle_corner(scratch, int(s[0]), i), i)
        return 3
    if among(REVOLVED, kind):
        return put_revolved_face(kind, s, scratch, d, at)
    if kind == CAPSULE:
        _put_corner(scratch, at, (0.0, 0.0, -s[2]), 0)
        _put_corner(scratch, at + 4, (0.0, 0.0, s[2]), 1)
        return 2
    _put_corner(scratch, at, support(convex, points, scratch, d), 0)
    return 1
