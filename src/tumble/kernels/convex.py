"""Convex shapes as a core and a radius: support points, flat normals and the separation along a direction.

A shape is its kind and four numbers s; s[3] is the radius of the ball that is added to the core. The cores: sphere a
point; capsule the segment |z| <= s[2]; box the half-extents s[:3]; cylinder radius s[0], |z| <= s[2]; cone base radius
s[0] at z = -s[2], apex at z = s[2]; ellipsoid the semi-axes s[:3]; hull the points s[0] .. s[0] + s[1] of the pool;
triangle the nine numbers of scratch from s[0] on. `hulls` (`backends.base.HullArrays`) are the pooled points and faces.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .jit import formula, merged_formula
from .kinds import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, TRIANGLE
from .linalg import add, cross, dot, mat_t_vec, mat_vec, norm, sub


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
    if kind == CYLINDER:
        radial = math.sqrt(d[0] * d[0] + d[1] * d[1])
        z = s[2] if d[2] >= 0.0 else -s[2]
        if radial == 0.0:
            return (0.0, 0.0, z)
        return (s[0] * d[0] / radial, s[0] * d[1] / radial, z)
    if kind == CONE:
        radial = math.sqrt(d[0] * d[0] + d[1] * d[1])
        if s[2] * d[2] >= s[0] * radial - s[2] * d[2]:
            return (0.0, 0.0, s[2])
        if radial == 0.0:
            return (0.0, 0.0, -s[2])
        return (s[0] * d[0] / radial, s[0] * d[1] / radial, -s[2])
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
def is_curved(kind):
    """Whether the core has curved faces (a polytope otherwise)."""
    return kind == CYLINDER or kind == CONE or kind == ELLIPSOID


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
    if kind == CYLINDER or kind == CONE or kind == CAPSULE:
        radial = math.sqrt(d[0] * d[0] + d[1] * d[1])
        if kind == CONE:
            slant = math.sqrt(s[0] * s[0] + 4.0 * s[2] * s[2])
            across, up = 2.0 * s[2] / slant, s[0] / slant
            side = across * radial + up * d[2]
            if radial == 0.0 or -d[2] > side:
                return (0.0, 0.0, -1.0)
            return (across * d[0] / radial, across * d[1] / radial, up)
        if kind == CYLINDER and abs(d[2]) >= radial:
            return (0.0, 0.0, 1.0 if d[2] >= 0.0 else -1.0)
        if radial == 0.0:
            return (0.0, 0.0, 0.0)
        return (d[0] / radial, d[1] / radial, 0.0)
    return (0.0, 0.0, 0.0)
