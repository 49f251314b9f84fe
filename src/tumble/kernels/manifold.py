"""Contact points of two convex shapes for a given normal: the faces that look at each other, cut with one another.

Everything is written in coordinates (x, y, z) with z along the normal, so the gap at a place (x, y) is the height of
B's face less that of A's. Faces are rows (x, y, z, name) in scratch; a face with two corners is an edge.
"""

from __future__ import annotations

import math

from .convex import CORNER_NAMES, CORNERS, facing
from .cover import COVER_SIZE, COVERED, MOST, cover, is_kept, put_point
from .gjk import SIMPLEX
from .jit import formula, merged_formula
from .kinds import BOX, HALF_SPACE, HULL, SPHERE, TRIANGLE
from .linalg import add, axpy, cross, dot, mat_t_vec, mat_vec, norm, sub, tangents

_FACE_A = SIMPLEX
_FACE_B = _FACE_A + 4 * CORNERS
_CUT = _FACE_B + 4 * CORNERS  # two polygons of up to 2 * CORNERS rows (x, y, name)
_FOUND = _CUT + 2 * 3 * 2 * CORNERS  # rows (x, y, middle height, gap, name)
FOUND = 3 * CORNERS
_KEPT = _FOUND + 5 * FOUND
COVER_AT = _KEPT + FOUND
"""Place in scratch where points are laid down for `cover`."""
MANIFOLD_END = COVER_AT + COVER_SIZE
FACE_NAMES = 512
"""The points of two faces are named from here on."""
WITNESS = 4095
"""Name of the nearest point of the two shapes where no corner lies there."""
STEEP = 0.2
"""Cosine between normal and face below which its corners say nothing about the contact."""
PARALLEL_EDGES = 0.05
COINCIDE = 1e-6
"""Points nearer to each other than this part of the size are one."""


@formula
def _to_normal_frame(scratch, at, count, turn, shift, u, w, n):
    """Corners from the frame (turn, shift) to coordinates along u, w, n."""
    for k in range(count):
        i = at + 4 * k
        p = add(mat_vec(turn, (scratch[i], scratch[i + 1], scratch[i + 2])), shift)
        scratch[i], scratch[i + 1], scratch[i + 2] = dot(p, u), dot(p, w), dot(p, n)


@formula
def _plane(scratch, at, count):
    """Height of a face over (x, y): z = c + a x + b y. Returns (is it flat enough, a, b, c)."""
    x, y, z = 0.0, 0.0, 0.0
    p = (scratch[at], scratch[at + 1], scratch[at + 2])
    for k in range(1, count - 1):
        i, j = at + 4 * k, at + 4 * k + 4
        e = sub((scratch[i], scratch[i + 1], scratch[i + 2]), p)
        f = sub((scratch[j], scratch[j + 1], scratch[j + 2]), p)
        c = cross(e, f)
        x, y, z = x + c[0], y + c[1], z + c[2]
    if abs(z) <= STEEP * math.sqrt(x * x + y * y + z * z):
        return False, 0.0, 0.0, 0.0
    a, b = -x / z, -y / z
    return True, a, b, p[2] - a * p[0] - b * p[1]


@formula
def _put_found(scratch, found, x, y, za, zb, radius_a, radius_b, name):
    if found < FOUND:
        i = _FOUND + 5 * found
        scratch[i], scratch[i + 1] = x, y
        scratch[i + 2] = 0.5 * (za + radius_a + zb - radius_b)
        scratch[i + 3] = zb - za - radius_a - radius_b
        scratch[i + 4] = name
        return found + 1
    return found


@formula
def _edges(scratch, ra, rb):
    """Two edges side by side: the ends of their overlap; nothing if they cross."""
    ax, ay, az = scratch[_FACE_A], scratch[_FACE_A + 1], scratch[_FACE_A + 2]
    ex, ey, ez = scratch[_FACE_A + 4] - ax, scratch[_FACE_A + 5] - ay, scratch[_FACE_A + 6] - az
    bx, by, bz = scratch[_FACE_B], scratch[_FACE_B + 1], scratch[_FACE_B + 2]
    fx, fy, fz = scratch[_FACE_B + 4] - bx, scratch[_FACE_B + 5] - by, scratch[_FACE_B + 6] - bz
    e2, f2 = ex * ex + ey * ey, fx * fx + fy * fy
    c = ex * fy - ey * fx
    if c * c > PARALLEL_EDGES * PARALLEL_EDGES * e2 * f2 or e2 == 0.0 or f2 == 0.0:
        return 0
    # Parameters along B of A's two ends, then the common stretch.
    s = ((ax - bx) * fx + (ay - by) * fy) / f2
    t = s + (ex * fx + ey * fy) / f2
    found = 0
    for k in range(2):
        low = k == 0
        r = max(0.0, min(s, t)) if low else min(1.0, max(s, t))
        other = (r - s) / (t - s)
        if other < 0.0 or other > 1.0 or r < 0.0 or r > 1.0:
            return 0
        x, y = 0.5 * (bx + r * fx + ax + other * ex), 0.5 * (by + r * fy + ay + other * ey)
        # Named after the end of B that it is, or the end of A.
        at_b = r == 0.0 or r == 1.0
        name = (k if at_b else 2 + (k if s < t else 1 - k)) + 16
        found = _put_found(scratch, found, x, y, az + other * ez, bz + r * fz, ra, rb, name)
    return found


@formula
def _edge_on_face(scratch, edge, face, count, sign, ra, rb):
    """The part of an edge over a face. sign: +1 if the edge is A's, -1 if it is B's."""
    flat, a, b, c = _plane(scratch, face, count)
    if not flat:
        return 0
    px, py, pz = scratch[edge], scratch[edge + 1], scratch[edge + 2]
    ex, ey, ez = scratch[edge + 4] - px, scratch[edge + 5] - py, scratch[edge + 6] - pz
    turning = _turning(scratch, face, count)
    low, high = 0.0, 1.0
    name_low, name_high = 0, 1
    size = math.sqrt(ex * ex + ey * ey)
    for k in range(count):
        i, j = face + 4 * k, face + 4 * ((k + 1) % count)
        nx, ny = turning * (scratch[j + 1] - scratch[i + 1]), -turning * (scratch[j] - scratch[i])
        length = math.sqrt(nx * nx + ny * ny)
        start = nx * (px - scratch[i]) + ny * (py - scratch[i + 1])
        slope = nx * ex + ny * ey
        if abs(slope) <= 1e-12 * length * size:
            if start > 1e-9 * length * size:
                return 0
        elif slope > 0.0:
            if -start / slope < high:
                high, name_high = -start / slope, 2 + k
        elif -start / slope > low:
            low, name_low = -start / slope, 2 + k
    if low > high:
        return 0
    found = 0
    for k in range(2):
        t = low if k == 0 else high
        x, y, z = px + t * ex, py + t * ey, pz + t * ez
        other = a * x + b * y + c
        name = 64 + (name_low if k == 0 else 64 + name_high)
        if sign > 0.0:
            found = _put_found(scratch, found, x, y, z, other, ra, rb, name)
        else:
            found = _put_found(scratch, found, x, y, other, z, ra, rb, name)
    return found


@formula
def _turning(scratch, at, count):
    """+1 if the corners go round counter-clockwise in (x, y), else -1."""
    area = 0.0
    x, y = scratch[at], scratch[at + 1]
    for k in range(1, count - 1):
        i, j = at + 4 * k, at + 4 * k + 4
        area += (scratch[i] - x) * (scratch[j + 1] - y) - (scratch[i + 1] - y) * (scratch[j] - x)
    return 1.0 if area >= 0.0 else -1.0


@formula
def _faces(scratch, subject, count, clip, count_clip, subject_is_b, ra, rb):
    """One face cut to the other (Sutherland and Hodgman)."""
    flat_s, s0, s1, s2 = _plane(scratch, subject, count)
    flat_c, c0, c1, c2 = _plane(scratch, clip, count_clip)
    if not (flat_s and flat_c):
        return 0
    src, dst = _CUT, _CUT + 6 * CORNERS
    for k in range(count):
        scratch[src + 3 * k] = scratch[subject + 4 * k]
        scratch[src + 3 * k + 1] = scratch[subject + 4 * k + 1]
        scratch[src + 3 * k + 2] = scratch[subject + 4 * k + 3]
    turning = _turning(scratch, clip, count_clip)
    for side in range(count_clip):
        i, j = clip + 4 * side, clip + 4 * ((side + 1) % count_clip)
        nx, ny = turning * (scratch[j + 1] - scratch[i + 1]), -turning * (scratch[j] - scratch[i])
        length = math.sqrt(nx * nx + ny * ny)
        if length == 0.0:
            continue
        nx, ny = nx / length, ny / length
        offset = nx * scratch[i] + ny * scratch[i + 1]
        count = _cut(scratch, src, dst, count, nx, ny, offset, 1e-9 * length, scratch[i + 3])
        src, dst = dst, src
        if count == 0:
            return 0
    found = 0
    for k in range(count):
        x, y = scratch[src + 3 * k], scratch[src + 3 * k + 1]
        mine, other = s0 * x + s1 * y + s2, c0 * x + c1 * y + c2
        name = FACE_NAMES + scratch[src + 3 * k + 2]
        if subject_is_b:
            found = _put_found(scratch, found, x, y, other, mine, ra, rb, name)
        else:
            found = _put_found(scratch, found, x, y, mine, other, ra, rb, name)
    return found


@formula
def _cut(scratch, src, dst, count, nx, ny, offset, slack, side):
    """Keep the part of a polygon where n . x <= offset. A new point is named after the start of its edge and the side,
    so that names stay while the configuration does."""
    out = 0
    for k in range(count):
        i, j = src + 3 * k, src + 3 * ((k + 1) % count)
        di = nx * scratch[i] + ny * scratch[i + 1] - offset
        dj = nx * scratch[j] + ny * scratch[j + 1] - offset
        if di <= slack and out < 2 * CORNERS:
            for c in range(3):
                scratch[dst + 3 * out + c] = scratch[i + c]
            out += 1
        if (di <= slack) != (dj <= slack) and out < 2 * CORNERS:
            t = min(1.0, max(0.0, di / (di - dj)))  # both may lie within the slack of the line
            entering = 1 if di > slack else 0
            base = scratch[j + 2] if entering == 1 else scratch[i + 2]
            scratch[dst + 3 * out] = scratch[i] + t * (scratch[j] - scratch[i])
            scratch[dst + 3 * out + 1] = scratch[i + 1] + t * (scratch[j + 1] - scratch[i + 1])
            scratch[dst + 3 * out + 2] = CORNER_NAMES + (int(base) * 37 + int(side) * 11 + entering * 5 + 1031) % 1531
            out += 1
    return out


@formula
def reduce_found(scratch, found, size):
    """Reduce the rows found to those that are needed; returns their number, the rows lie first and keep their order.

    Of up to four only those go that coincide with a deeper one.
    """
    if found > 4:
        for k in range(found):
            i = _FOUND + 5 * k
            put_point(scratch, COVER_AT, k, scratch[i], scratch[i + 1], scratch[i + 3])
        cover(scratch, COVER_AT, found, COVERED * size, MOST)
    kept = 0
    for k in range(found):
        i = _FOUND + 5 * k
        needed = True
        if found > 4:
            needed = is_kept(scratch, COVER_AT, k)
        else:
            for j in range(found):
                o = _FOUND + 5 * j
                d = (scratch[i] - scratch[o]) ** 2 + (scratch[i + 1] - scratch[o + 1]) ** 2
                if j != k and d <= COINCIDE * COINCIDE * size * size:
                    deeper = scratch[o + 3] - scratch[i + 3]
                    if deeper < 0.0 or (deeper == 0.0 and j < k):
                        needed = False
        if needed:
            scratch[_KEPT + kept] = k
            kept += 1
    for k in range(kept):
        for c in range(5):
            scratch[_FOUND + 5 * k + c] = scratch[_FOUND + 5 * int(scratch[_KEPT + k]) + c]
    return kept


@formula
def manifold(pair, hulls, loops, scratch, touch, size, pose, out, row):
    """Write the contact points within `reach` (at most MOST, with a triangle FOUND) as rows normal, point, gap, name;
    returns their number.

    touch: what `meeting` found; size: of the smaller shape. Points and normals are turned into the world by A's pose.
    """
    n, a = touch.normal, touch.point
    u, w = tangents(n)
    ra, rb = pair.a.s[3], pair.b.s[3]
    found = 0
    if pair.b.kind == HALF_SPACE:
        found = _on_plane(pair, hulls, loops, scratch, (n, u, w), touch.reach, size)
    elif pair.a.kind != SPHERE:
        found = _face_to_face(pair, hulls, loops, scratch, (n, u, w))
    kept, deepest = _within(scratch, found, touch.reach)
    gap = touch.gap
    if kept == 0 or deepest > gap + 1e-6 * (norm(a) + norm(pair.shift) + abs(gap)):
        # No corner lies where the shapes are nearest (edge across edge, a round edge): that point itself.
        z = dot(a, n)
        kept = _put_found(scratch, min(kept, FOUND - 1), dot(a, u), dot(a, w), z, z + gap + ra + rb, ra, rb, WITNESS)
    if kept > 1 and pair.b.kind != TRIANGLE:  # those of triangles are reduced with their neighbours'
        kept = reduce_found(scratch, kept, size)
    _write_found(scratch, kept, (n, u, w), pose, out, row)
    return kept


@merged_formula
def _face_to_face(pair, hulls, loops, scratch, frame):
    """The faces or edges that look at each other, cut with one another; returns how many points were found."""
    n, u, w = frame
    ra, rb = pair.a.s[3], pair.b.s[3]
    count_a = facing(pair.a, hulls, loops, scratch, n, _FACE_A)
    if count_a <= 1:
        return 0
    d = mat_t_vec(pair.turn, (-n[0], -n[1], -n[2]))
    count_b = facing(pair.b, hulls, loops, scratch, d, _FACE_B)
    if count_b <= 1:
        return 0
    identity = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    _to_normal_frame(scratch, _FACE_A, count_a, identity, (0.0, 0.0, 0.0), u, w, n)
    _to_normal_frame(scratch, _FACE_B, count_b, pair.turn, pair.shift, u, w, n)
    if count_a == 2 and count_b == 2:
        return _edges(scratch, ra, rb)
    if count_a == 2:
        return _edge_on_face(scratch, _FACE_A, _FACE_B, count_b, 1.0, ra, rb)
    if count_b == 2:
        return _edge_on_face(scratch, _FACE_B, _FACE_A, count_a, -1.0, ra, rb)
    if pair.b.kind == TRIANGLE:  # the corners of A keep their names from triangle to triangle
        return _faces(scratch, _FACE_A, count_a, _FACE_B, count_b, False, ra, rb)
    return _faces(scratch, _FACE_B, count_b, _FACE_A, count_a, True, ra, rb)


@merged_formula
def _within(scratch, found, reach):
    """Keep the rows with a gap up to `reach`: their number, and the least gap."""
    kept = 0
    deepest = math.inf
    for k in range(found):
        i = _FOUND + 5 * k
        if scratch[i + 3] <= reach:
            deepest = min(deepest, scratch[i + 3])
            for c in range(5):
                scratch[_FOUND + 5 * kept + c] = scratch[i + c]
            kept += 1
    return kept, deepest


@merged_formula
def _write_found(scratch, count, frame, pose, out, row):
    """The rows found, from coordinates along the frame (n, u, w) of A to the world."""
    n, u, w = frame
    normal = mat_vec(pose.matrix, n)
    for k in range(count):
        i = _FOUND + 5 * k
        p = axpy(
            scratch[i],
            u,
            axpy(scratch[i + 1], w, (scratch[i + 2] * n[0], scratch[i + 2] * n[1], scratch[i + 2] * n[2])),
        )
        p = add(mat_vec(pose.matrix, p), pose.position)
        out[row + k, 0], out[row + k, 1], out[row + k, 2] = normal
        out[row + k, 3], out[row + k, 4], out[row + k, 5] = p
        out[row + k, 6] = scratch[i + 3]
        out[row + k, 7] = scratch[i + 4]


@formula
def witness(gap, ra, rb):
    """Gap of the one contact point of a ball, and the place of that point along the normal from the ball's centre."""
    z = gap + ra + rb
    return z - ra - rb, 0.5 * (ra + z - rb)


@formula
def _on_plane(pair, hulls, loops, scratch, frame, reach, size):
    """Corners of A over a plane through `shift` with normal -n: all of a polytope's, else of the face looking down."""
    n, u, w = frame
    ka, sa, points = pair.a.kind, pair.a.s, hulls.point
    ra, level = sa[3], dot(pair.shift, n)
    found = 0
    if ka == BOX:
        for i in range(8):
            p = (sa[0] if i & 1 else -sa[0], sa[1] if i & 2 else -sa[1], sa[2] if i & 4 else -sa[2])
            if level - dot(p, n) - ra <= reach:
                found = _put_found(scratch, found, dot(p, u), dot(p, w), dot(p, n), level, ra, 0.0, i)
        return found
    if ka == HULL:
        for k in range(int(sa[1])):
            i = int(sa[0]) + k
            p = (points[i, 0], points[i, 1], points[i, 2])
            if level - dot(p, n) - ra <= reach:
                if found == FOUND:
                    found = reduce_found(scratch, found, size)
                found = _put_found(scratch, found, dot(p, u), dot(p, w), dot(p, n), level, ra, 0.0, k % CORNER_NAMES)
        return found
    count = facing(pair.a, hulls, loops, scratch, n, _FACE_A)
    if count == 1:
        return 0
    for k in range(count):
        i = _FACE_A + 4 * k
        p = (scratch[i], scratch[i + 1], scratch[i + 2])
        found = _put_found(scratch, found, dot(p, u), dot(p, w), dot(p, n), level, ra, 0.0, scratch[i + 3])
    return found
