"""Depth of two overlapping convex cores: an inner polytope of B - A grown towards the face nearest to the origin.

It starts from the simplex that `gjk` left in scratch. Everything lies in scratch; if rounding or the room for it ends
the search early, the best direction seen so far is returned, which always separates the two by the depth given.
"""

from __future__ import annotations

import math

from .convex import support
from .gjk import SIMPLEX, point_of, put_point
from .jit import formula
from .linalg import add, axpy, cross, dot, mat_t_vec, mat_vec, norm, sub, tangents

POINTS = 128
FACES = 384
EDGES = 192
_POINT = SIMPLEX
_FACE = _POINT + 6 * POINTS
_EDGE = _FACE + 8 * FACES
EPA_END = _EDGE + 2 * EDGES


@formula
def _difference(pair, points, scratch, n):
    """Support point of A - B along n seen as B - A against n: (b - a) that is most negative along n, and a."""
    a = support(pair.a, points, scratch, n)
    b = support(pair.b, points, scratch, mat_t_vec(pair.turn, (-n[0], -n[1], -n[2])))
    b = add(mat_vec(pair.turn, b), pair.shift)
    return sub(b, a), a


@formula
def _spans(scratch, count, w, tolerance):
    """Whether w adds a dimension to the simplex."""
    p = point_of(scratch, 0)
    d = sub(w, p)
    if count == 1:
        return norm(d) > tolerance
    e = sub(point_of(scratch, 1), p)
    if count == 2:
        c = cross(e, d)
        return norm(c) > tolerance * norm(e)
    c = cross(e, sub(point_of(scratch, 2), p))
    return abs(dot(c, d)) > tolerance * norm(c)


@formula
def _complete(pair, points, scratch, count, tolerance):
    """Add points to the simplex until it is a tetrahedron; returns the number of points reached."""
    while count < 4:
        before = count
        if count <= 1:
            if count == 0:
                w, a = _difference(pair, points, scratch, (1.0, 0.0, 0.0))
                put_point(scratch, 0, w, a)
                count = 1
            for k in range(6):
                s = 1.0 if k % 2 == 0 else -1.0
                axis = (s if k // 2 == 0 else 0.0, s if k // 2 == 1 else 0.0, s if k // 2 == 2 else 0.0)
                w, a = _difference(pair, points, scratch, axis)
                if _spans(scratch, 1, w, tolerance):
                    put_point(scratch, 1, w, a)
                    count = 2
                    break
        elif count == 2:
            e = sub(point_of(scratch, 1), point_of(scratch, 0))
            length = norm(e)
            u, v = tangents((e[0] / length, e[1] / length, e[2] / length))
            for k in range(6):  # six directions around the segment
                c = 1.0 if k == 0 or k == 3 else 0.5
                s = 0.0 if k == 0 or k == 3 else 0.8660254037844386
                c = c if k < 2 or k == 5 else -c
                s = s if k < 3 else -s
                d = (c * u[0] + s * v[0], c * u[1] + s * v[1], c * u[2] + s * v[2])
                w, a = _difference(pair, points, scratch, d)
                if _spans(scratch, 2, w, tolerance):
                    put_point(scratch, 2, w, a)
                    count = 3
                    break
        else:
            p = point_of(scratch, 0)
            n = cross(sub(point_of(scratch, 1), p), sub(point_of(scratch, 2), p))
            length = norm(n)
            for k in range(2):
                s = (1.0 if k == 0 else -1.0) / length
                w, a = _difference(pair, points, scratch, (s * n[0], s * n[1], s * n[2]))
                if _spans(scratch, 3, w, tolerance):
                    put_point(scratch, 3, w, a)
                    count = 4
                    break
        if count == before:
            break
    return count


@formula
def _put_face(scratch, f, i, j, k):
    """Face f with corners i, j, k, counter-clockwise from outside: normal and distance of its plane."""
    p = point_of(scratch, i)
    n = cross(sub(point_of(scratch, j), p), sub(point_of(scratch, k), p))
    length = norm(n)
    at = _FACE + 8 * f
    scratch[at], scratch[at + 1], scratch[at + 2] = i, j, k
    scratch[at + 7] = 1.0
    if length <= 0.0:  # without area: stays for the sake of its edges, never chosen
        scratch[at + 3], scratch[at + 4], scratch[at + 5] = 0.0, 0.0, 0.0
        scratch[at + 6] = math.inf
        return
    n = (n[0] / length, n[1] / length, n[2] / length)
    scratch[at + 3], scratch[at + 4], scratch[at + 5] = n
    scratch[at + 6] = dot(n, p)


@formula
def _face_normal(scratch, f):
    at = _FACE + 8 * f
    return (scratch[at + 3], scratch[at + 4], scratch[at + 5])


@formula
def _toggle_edge(scratch, edges, i, j):
    """Note a directed edge of a removed face; if its twin is there, both are inside the hole."""
    for e in range(edges):
        if scratch[_EDGE + 2 * e] == j and scratch[_EDGE + 2 * e + 1] == i:
            edges -= 1
            scratch[_EDGE + 2 * e] = scratch[_EDGE + 2 * edges]
            scratch[_EDGE + 2 * e + 1] = scratch[_EDGE + 2 * edges + 1]
            return edges
    if edges < EDGES:
        scratch[_EDGE + 2 * edges] = i
        scratch[_EDGE + 2 * edges + 1] = j
    return edges + 1


@formula
def epa(pair, points, scratch, count, scale, precision):
    """Unit normal n from A to B (B leaves by moving along it), depth, and a point of A there.

    count: rows of the simplex in scratch. scale: size of the shapes, for rounding; precision: when to stop.
    Returns ok = False where the two cores have no volume between them (crossing segments).
    """
    # In terms of B - A: the origin leaves through the nearest face with outer normal -n.
    count = _complete(pair, points, scratch, count, 1e-11 * scale)
    if count < 4:
        return False, (0.0, 0.0, 1.0), 0.0, (0.0, 0.0, 0.0)
    p, q, r, o = point_of(scratch, 0), point_of(scratch, 1), point_of(scratch, 2), point_of(scratch, 3)
    if dot(cross(sub(q, p), sub(r, p)), sub(o, p)) > 0.0:
        for c in range(6):  # make the first face look away from the fourth point
            i, j = SIMPLEX + 6 + c, SIMPLEX + 12 + c
            scratch[i], scratch[j] = scratch[j], scratch[i]
    _put_face(scratch, 0, 0, 1, 2)
    _put_face(scratch, 1, 0, 3, 1)
    _put_face(scratch, 2, 1, 3, 2)
    _put_face(scratch, 3, 2, 3, 0)
    faces, vertices = 4, 4
    best_n, best_depth = (0.0, 0.0, 1.0), math.inf
    bi, bj, bk = 0, 1, 2
    visible_from = 1e-14 * scale
    while True:
        near, nearest = -1, math.inf
        for f in range(faces):
            if scratch[_FACE + 8 * f + 7] > 0.0 and scratch[_FACE + 8 * f + 6] < nearest:
                near, nearest = f, scratch[_FACE + 8 * f + 6]
        if near < 0 or nearest >= best_depth:
            break
        m = _face_normal(scratch, near)
        n = (-m[0], -m[1], -m[2])
        w, a = _difference(pair, points, scratch, n)
        height = dot(m, w)
        if height < best_depth:
            best_n, best_depth = n, height
            at = _FACE + 8 * near
            bi, bj, bk = int(scratch[at]), int(scratch[at + 1]), int(scratch[at + 2])
        if height - nearest <= precision or vertices >= POINTS or nearest >= best_depth:
            break
        put_point(scratch, vertices, w, a)
        edges = 0
        for f in range(faces):
            at = _FACE + 8 * f
            if scratch[at + 7] > 0.0 and dot(_face_normal(scratch, f), w) - scratch[at + 6] > visible_from:
                i, j, k = int(scratch[at]), int(scratch[at + 1]), int(scratch[at + 2])
                edges = _toggle_edge(scratch, edges, i, j)
                edges = _toggle_edge(scratch, edges, j, k)
                edges = _toggle_edge(scratch, edges, k, i)
                scratch[at + 7] = 0.0
                if edges > EDGES:
                    break
        if edges == 0 or edges > EDGES:
            break
        f = 0
        room = True
        for e in range(edges):
            while f < faces and scratch[_FACE + 8 * f + 7] > 0.0:
                f += 1
            if f >= FACES:
                room = False
                break
            _put_face(scratch, f, int(scratch[_EDGE + 2 * e]), int(scratch[_EDGE + 2 * e + 1]), vertices)
            faces = max(faces, f + 1)
        if not room:
            break
        vertices += 1
    return True, best_n, best_depth, _face_point(scratch, bi, bj, bk, best_n, best_depth)


@formula
def _face_point(scratch, i, j, k, n, depth):
    """A's point that belongs to the foot of the origin on the face i, j, k."""
    foot = (-depth * n[0], -depth * n[1], -depth * n[2])
    p, q, r = sub(point_of(scratch, i), foot), sub(point_of(scratch, j), foot), sub(point_of(scratch, k), foot)
    m = cross(sub(q, p), sub(r, p))
    x, y, z = dot(m, cross(q, r)), dot(m, cross(r, p)), dot(m, cross(p, q))
    total = x + y + z
    if total <= 0.0:
        x, y, z, total = 1.0, 0.0, 0.0, 1.0
    # The foot may lie a little outside: clip the weights.
    x, y, z = max(0.0, x / total), max(0.0, y / total), max(0.0, z / total)
    total = x + y + z
    out = (0.0, 0.0, 0.0)
    for c in range(3):
        row = i if c == 0 else (j if c == 1 else k)
        weight = (x if c == 0 else (y if c == 1 else z)) / total
        t = SIMPLEX + 6 * row + 3
        out = axpy(weight, (scratch[t], scratch[t + 1], scratch[t + 2]), out)
    return out
