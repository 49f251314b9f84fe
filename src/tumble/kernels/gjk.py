"""Distance of two convex cores (Gilbert, Johnson and Keerthi), in the frame of the first.

The nearest point v to the origin of the difference B - A is the vector from A's nearest point to B's. The simplex lies
in scratch: four rows of (b - a, a). Nothing is allocated.
"""

from __future__ import annotations

import math

from .convex import support
from .jit import formula, merged_formula
from .linalg import add, axpy, cross, dot, mat_t_vec, mat_vec, sub

SIMPLEX = 32
"""Place of the simplex in scratch (rows of six numbers)."""
GJK_LIMIT = 200
SEPARATED, BEYOND, OVERLAP, STUCK = 0, 1, 2, 3


@formula
def point_of(scratch, k):
    """Row k of the simplex: b - a."""
    i = SIMPLEX + 6 * k
    return (scratch[i], scratch[i + 1], scratch[i + 2])


@formula
def _copy(scratch, to, k):
    for c in range(6):
        scratch[SIMPLEX + 6 * to + c] = scratch[SIMPLEX + 6 * k + c]


@formula
def put_point(scratch, k, w, a):
    """Write row k of the simplex."""
    i = SIMPLEX + 6 * k
    scratch[i], scratch[i + 1], scratch[i + 2] = w
    scratch[i + 3], scratch[i + 4], scratch[i + 5] = a


@formula
def _nearest_on_segment(p, q):
    """Weights of the point of the segment nearest to the origin."""
    e = sub(q, p)
    length = dot(e, e)
    if length == 0.0:
        return 1.0, 0.0
    t = -dot(p, e) / length
    if t <= 0.0:
        return 1.0, 0.0
    if t >= 1.0:
        return 0.0, 1.0
    return 1.0 - t, t


@merged_formula
def nearest_on_triangle(p, q, r):
    """Weights of the point of the triangle nearest to the origin, by its Voronoi regions."""
    e, f = sub(q, p), sub(r, p)
    d1, d2 = -dot(e, p), -dot(f, p)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    d3, d4 = -dot(e, q), -dot(f, q)
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    n = cross(e, f)
    c = dot(n, cross(p, q))
    if c <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        t = d1 / (d1 - d3)
        return 1.0 - t, t, 0.0
    d5, d6 = -dot(e, r), -dot(f, r)
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    b = dot(n, cross(r, p))
    if b <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        t = d2 / (d2 - d6)
        return 1.0 - t, 0.0, t
    a = dot(n, cross(q, r))
    if a <= 0.0 and d4 >= d3 and d5 >= d6:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return 0.0, 1.0 - t, t
    total = a + b + c
    if total <= 0.0:
        return _nearest_edge(p, q, r)
    return a / total, b / total, c / total


@formula
def _nearest_edge(p, q, r):
    """The same for a triangle without area."""
    a0, a1 = _nearest_on_segment(p, q)
    b0, b1 = _nearest_on_segment(p, r)
    c0, c1 = _nearest_on_segment(q, r)
    u = axpy(a1, sub(q, p), p)
    v = axpy(b1, sub(r, p), p)
    w = axpy(c1, sub(r, q), q)
    du, dv, dw = dot(u, u), dot(v, v), dot(w, w)
    if du <= dv and du <= dw:
        return a0, a1, 0.0
    if dv <= dw:
        return b0, 0.0, b1
    return 0.0, c0, c1


@merged_formula
def _combine(p, q, r, x, y, z):
    """The point with weights x, y, z; exact in direction inside the triangle."""
    if x > 0.0 and y > 0.0 and z > 0.0:
        n = cross(sub(q, p), sub(r, p))
        length = dot(n, n)
        if length > 0.0:
            t = dot(n, p) / length
            return (t * n[0], t * n[1], t * n[2])
    return (
        x * p[0] + y * q[0] + z * r[0],
        x * p[1] + y * q[1] + z * r[1],
        x * p[2] + y * q[2] + z * r[2],
    )


@merged_formula
def _reduce(scratch, count):
    """Shrink the simplex to the face that holds its point nearest to the origin.

    Returns (rows kept, that point, weights of the kept rows); four rows kept: the origin is inside.
    """
    p, q = point_of(scratch, 0), point_of(scratch, 1)
    if count == 2:
        x, y = _nearest_on_segment(p, q)
        z = 0.0
        v = axpy(y, sub(q, p), p)
        w = 0.0
    else:
        r = point_of(scratch, 2)
        w = 0.0
        if count == 3:
            x, y, z = nearest_on_triangle(p, q, r)
            v = _combine(p, q, r, x, y, z)
        else:
            o = point_of(scratch, 3)
            inside, x, y, z, w, v = _nearest_on_tetrahedron(p, q, r, o)
            if inside:
                return 4, v, x, y, z, w
    kept = 0
    out0, out1, out2 = 0.0, 0.0, 0.0
    for k in range(count):
        weight = x if k == 0 else (y if k == 1 else (z if k == 2 else w))
        if weight > 0.0:
            if kept != k:
                _copy(scratch, kept, k)
            if kept == 0:
                out0 = weight
            elif kept == 1:
                out1 = weight
            else:
                out2 = weight
            kept += 1
    return kept, v, out0, out1, out2, 0.0


@formula
def _outside(p, q, r, o):
    """Whether the origin and o lie on different sides of the plane p q r (or the tetrahedron is flat there)."""
    n = cross(sub(q, p), sub(r, p))
    mine = -dot(n, p)
    other = dot(n, sub(o, p))
    if other > 0.0:
        return mine < 0.0
    if other < 0.0:
        return mine > 0.0
    return True


@formula
def _nearest_on_tetrahedron(p, q, r, o):
    """Whether the origin is inside, else weights and the nearest point (on one of the faces)."""
    best = math.inf
    bx, by, bz, bw = 0.0, 0.0, 0.0, 0.0
    bv = (0.0, 0.0, 0.0)
    inside = True
    if _outside(p, q, r, o):
        inside = False
        x, y, z = nearest_on_triangle(p, q, r)
        v = _combine(p, q, r, x, y, z)
        best, bx, by, bz, bw, bv = dot(v, v), x, y, z, 0.0, v
    if _outside(p, q, o, r):
        inside = False
        x, y, z = nearest_on_triangle(p, q, o)
        v = _combine(p, q, o, x, y, z)
        if dot(v, v) < best:
            best, bx, by, bz, bw, bv = dot(v, v), x, y, 0.0, z, v
    if _outside(p, r, o, q):
        inside = False
        x, y, z = nearest_on_triangle(p, r, o)
        v = _combine(p, r, o, x, y, z)
        if dot(v, v) < best:
            best, bx, by, bz, bw, bv = dot(v, v), x, 0.0, y, z, v
    if _outside(q, r, o, p):
        inside = False
        x, y, z = nearest_on_triangle(q, r, o)
        v = _combine(q, r, o, x, y, z)
        if dot(v, v) < best:
            best, bx, by, bz, bw, bv = dot(v, v), 0.0, x, y, z, v
    return inside, bx, by, bz, bw, bv


@formula
def gjk(pair, moved, points, scratch, start, rows, reach, touching, relative):
    """Vector v from A's core to B's, A's nearest point, and how it ended.

    moved: how far the pair has been moved apart; only `reach` counts from B's own place.

    start: a first guess of v; rows: how many of the simplex in scratch to begin with instead (0: none); relative:
    error of the squared distance at which to stop. The number of rows left in scratch is returned last.
    BEYOND: the distance is more than `reach` (v is then only a separating direction).
    OVERLAP: the distance is below `touching`.
    STUCK: separated, but rounding ended the progress before the last digits (exact for polytopes all the same).
    """
    v = start
    size = dot(v, v)
    if size == 0.0:
        v, size = (1.0, 0.0, 0.0), 1.0
    count = 0
    point = (0.0, 0.0, 0.0)
    first, apart = True, False
    if rows > 1:
        count, new, x, y, z, _ = _reduce(scratch, rows)
        if count < 4 and dot(new, new) > touching * touching:
            v, size, first = new, dot(new, new), False
            point = _witness(scratch, count, x, y, z)
        else:
            count = 0
    for _ in range(GJK_LIMIT):
        a = support(pair.a, points, scratch, v)
        b = support(pair.b, points, scratch, mat_t_vec(pair.turn, (-v[0], -v[1], -v[2])))
        b = add(mat_vec(pair.turn, b), pair.shift)
        w = sub(b, a)
        along = dot(v, w)
        if along > 0.0:
            apart = apart or along * along > size * touching * touching
            own = along - dot(v, moved)
            if own > 0.0 and own * own > size * reach * reach:
                return BEYOND, v, a, count
        if not first and size - along <= relative * size:
            return SEPARATED, v, point, count
        known = False
        for k in range(count):
            p = point_of(scratch, k)
            known = known or (p[0] == w[0] and p[1] == w[1] and p[2] == w[2])
        if known:
            break
        put_point(scratch, count, w, a)
        count += 1
        if count == 1:
            new, x, y, z = w, 1.0, 0.0, 0.0
        else:
            count, new, x, y, z, _ = _reduce(scratch, count)
            if count == 4:
                if apart:  # rounding in a flat tetrahedron: the direction in hand does separate
                    break
                return OVERLAP, v, a, 4
        new_size = dot(new, new)
        if not first and new_size >= size:  # rounding ends the progress: keep the better one
            if not apart and size <= 1e4 * touching * touching:
                return OVERLAP, v, point, count
            break
        v, size, first = new, new_size, False
        point = _witness(scratch, count, x, y, z)
        if size <= touching * touching and not apart:
            return OVERLAP, v, point, count
    return STUCK, v, point, count


@formula
def move_rows(scratch, rows, by):
    """Move the simplex along with B."""
    for k in range(rows):
        for c in range(3):
            scratch[SIMPLEX + 6 * k + c] += by[c]


@formula
def _witness(scratch, count, x, y, z):
    """A's point for the weights of the simplex."""
    out = (0.0, 0.0, 0.0)
    for k in range(count):
        weight = x if k == 0 else (y if k == 1 else z)
        i = SIMPLEX + 6 * k + 3
        out = axpy(weight, (scratch[i], scratch[i + 1], scratch[i + 2]), out)
    return out
