"""Gap and normal of any two convex shapes, in the frame of the first: closed forms, else GJK and EPA.

The true normal is the one with the largest separation, whether the shapes are apart or overlap. So the direction that
GJK or EPA found is compared with the flat faces nearby, which makes flat contacts exact at any gap, and the normals of
curved shapes that nearly touch are found again with the two moved apart a little.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .boxes import between_faces, box_depth
from .convex import core_size, flat_normal, separation, shifted, support, triangle_corner, triangle_normal
from .epa import epa
from .gjk import BEYOND, OVERLAP, SEPARATED, SIMPLEX, STUCK, gjk, move_rows, nearest_on_triangle
from .jit import formula
from .kinds import BOX, CAPSULE, CLOSED, CURVED, HALF_SPACE, REVOLVED, SPHERE, TRIANGLE, among
from .linalg import add, axpy, column, cross, dot, mat_t_vec, mat_vec, norm, sub, tangents
from .newton import curved_gap
from .revolved import point_revolved
from .triangles import triangle_axis

TOUCHING = 1e-10
"""Cores nearer than this part of their size have no direction between them."""
CLOSE = 1e-4
"""Cores nearer than this part of their size count as touching: their normal is then found with the two moved apart."""
SHALLOW = 1e-4
"""Deeper than this part of the size the whole way round is searched for the shortest way out."""
APART = 1e-3
POLISH_LIMIT = 8
RELATIVE, CURVED_RELATIVE = 1e-12, 1e-9
"""Where GJK stops: relative error of the squared distance."""
EXACT, EXACT_CURVED = 1e-13, 1e-7
"""Where EPA stops, in sizes."""
NUDGE, ROUGH = 0.03, 0.02
"""For a rough normal: how far the two are moved apart, in sizes, and the relative error of the squared distance."""
NOT_MOVED = (0.0, 0.0, 0.0)
LATER = SIMPLEX - 1
"""Place in scratch of a mark, see `shallow_gap`."""


# ---------------------------------------------------------------------- closed forms


@formula
def is_ball_pair(ka, kb):
    """A ball and a shape from which points have a distance in closed form; kinds in their order."""
    return ka == SPHERE and (among(CLOSED, kb) or kb == HALF_SPACE)


@formula
def ball_gap(pair, scratch, reach):
    """`convex_gap` of a ball and a shape of closed form or a triangle: no search, so a scene of balls compiles none."""
    sa, kb, sb, turn, shift = pair.a.s, pair.b.kind, pair.b.s, pair.turn, pair.shift
    centre = (0.0, 0.0, 0.0)
    if kb == HALF_SPACE:
        up = column(turn, 2)
        return dot(sub(centre, shift), up) - sa[3], (-up[0], -up[1], -up[2]), centre
    gap, n = point_core(mat_t_vec(turn, (-shift[0], -shift[1], -shift[2])), kb, sb, scratch)
    return gap - (sa[3] + sb[3]), mat_vec(turn, n), centre


@formula
def sphere_sphere(pa, ra, pb, rb):
    """Gap and normal of two spheres; coinciding centres push along z."""
    d = sub(pb, pa)
    distance = norm(d)
    if distance > 0.0:
        s = 1.0 / distance
        return distance - ra - rb, (s * d[0], s * d[1], s * d[2])
    return -ra - rb, (0.0, 0.0, 1.0)


@formula
def point_core(c, kind, s, scratch):
    """Gap and normal from the point c to a core (negative inside), in the core's frame."""
    if kind == BOX:
        return _point_box(c, s)
    if among(REVOLVED, kind):
        return point_revolved(c, kind, s)
    if kind == TRIANGLE:
        return _point_triangle(c, scratch, int(s[0]))
    q = (0.0, 0.0, min(max(c[2], -s[2]), s[2]))  # a point or a segment
    d = sub(q, c)
    distance = norm(d)
    if distance > 0.0:
        return distance, (d[0] / distance, d[1] / distance, d[2] / distance)
    return 0.0, (0.0, 0.0, 1.0) if s[2] == 0.0 else (1.0, 0.0, 0.0)


@formula
def _point_box(c, s):
    q = (min(max(c[0], -s[0]), s[0]), min(max(c[1], -s[1]), s[1]), min(max(c[2], -s[2]), s[2]))
    d = sub(q, c)
    distance = norm(d)
    if distance > 0.0:
        return distance, (d[0] / distance, d[1] / distance, d[2] / distance)
    # Inside: leave by the nearest face.
    x, y, z = s[0] - abs(c[0]), s[1] - abs(c[1]), s[2] - abs(c[2])
    if x <= y and x <= z:
        return -x, (-1.0 if c[0] >= 0.0 else 1.0, 0.0, 0.0)
    if y <= z:
        return -y, (0.0, -1.0 if c[1] >= 0.0 else 1.0, 0.0)
    return -z, (0.0, 0.0, -1.0 if c[2] >= 0.0 else 1.0)


@formula
def _point_triangle(c, scratch, at):
    p = sub(triangle_corner(scratch, at, 0), c)
    q = sub(triangle_corner(scratch, at, 1), c)
    r = sub(triangle_corner(scratch, at, 2), c)
    x, y, z = nearest_on_triangle(p, q, r)
    n = triangle_normal(scratch, at)
    height = dot(n, p)
    if x > 0.0 and y > 0.0 and z > 0.0 and height != 0.0:
        if height < 0.0:
            return -height, (-n[0], -n[1], -n[2])
        return height, n
    d = (x * p[0] + y * q[0] + z * r[0], x * p[1] + y * q[1] + z * r[1], x * p[2] + y * q[2] + z * r[2])
    distance = norm(d)
    if distance > 0.0:
        return distance, (d[0] / distance, d[1] / distance, d[2] / distance)
    return 0.0, (-n[0], -n[1], -n[2])


@formula
def _segments(la, axis, lb, shift):
    """Two segments: the first along z with half-length la, the second along `axis` about `shift`."""
    # Minimise |shift + t axis - s z|^2 over the rectangle.
    b = axis[2]
    det = 1.0 - b * b
    wz, wa = shift[2], dot(axis, shift)
    s = 0.0
    if det > 1e-12:
        s = min(max((wz - b * wa) / det, -la), la)
    elif la > 0.0:  # parallel: the middle of the overlap
        mid, half = wz, lb
        low, high = max(-la, mid - half), min(la, mid + half)
        s = min(max(0.5 * (low + high), -la), la)
    t = min(max(b * s - wa, -lb), lb)
    s = min(max(wz + b * t, -la), la) if det > 1e-12 else s
    t = min(max(b * s - wa, -lb), lb)
    a = (0.0, 0.0, s)
    d = sub(axpy(t, axis, shift), a)
    distance = norm(d)
    if distance > 1e-9 * (la + lb + norm(shift)):
        return distance, (d[0] / distance, d[1] / distance, d[2] / distance), a
    # They cross: away from each other across both.
    n = cross((0.0, 0.0, 1.0), axis)
    length = norm(n)
    if length > 1e-9:
        length = length if dot(n, d) >= 0.0 else -length
        return distance, (n[0] / length, n[1] / length, n[2] / length), a
    return distance, (1.0, 0.0, 0.0), a


# ---------------------------------------------------------------------- the general method


@formula
def _curved(pair, hulls, scratch, reach, scale):
    """(found, gap, normal, point of A) of two cores, one of them curved, that are apart or overlap a little.

    A rough normal from GJK with the two moved apart, where few iterations are enough; then Newton's method.
    """
    points, shift = hulls.point, pair.shift
    length = norm(shift)
    if length == 0.0:
        return False, 0.0, shift, shift
    t = NUDGE * scale / length
    moved = (t * shift[0], t * shift[1], t * shift[2])
    apart = shifted(pair, add(shift, moved))
    state, v, a, _ = gjk(apart, moved, points, scratch, shift, 0, reach, TOUCHING * scale, ROUGH)
    if state == OVERLAP:
        return False, 0.0, v, a
    length = norm(v)
    n = (v[0] / length, v[1] / length, v[2] / length)
    if state == BEYOND:
        gap, _, _ = separation(pair, points, scratch, n)
        return True, gap, n, a
    found, gap, n, a = curved_gap(pair, hulls, scratch, n, scale)
    return found and gap >= -SHALLOW * scale, gap, n, a


@formula
def _deep(pair, points, scratch, scale, curved):
    """Shortest way out by EPA, made exact for curved shapes."""
    state, v, a, count = gjk(pair, NOT_MOVED, points, scratch, pair.shift, 0, math.inf, TOUCHING * scale, RELATIVE)
    if state != OVERLAP:
        length = norm(v)
        return length, (v[0] / length, v[1] / length, v[2] / length), a
    precision = (EXACT_CURVED if curved else EXACT) * scale
    ok, n, depth, a = epa(pair, points, scratch, count, scale, precision)
    gap = -depth
    if not ok:
        n, gap = _flat_difference(pair, scratch)
    elif curved:
        gap, n, a, _ = _polish(pair, points, scratch, n, a, 0, scale, CURVED_RELATIVE)
    return gap, n, a


@formula
def _flat_difference(pair, scratch):
    """Cores without volume between them that cross: leave across the plane they span, a triangle by its front."""
    turn = pair.turn
    if pair.b.kind == TRIANGLE:
        n = mat_vec(turn, triangle_normal(scratch, int(pair.b.s[0])))
        return (-n[0], -n[1], -n[2]), 0.0
    u = column(turn, 2)
    n = cross((0.0, 0.0, 1.0), u)
    length = norm(n)
    if length > 1e-9:
        return (n[0] / length, n[1] / length, n[2] / length), 0.0
    return tangents(u)[0], 0.0


@formula
def _polish(pair, points, scratch, n, a, rows, scale, relative):
    """Move B along n until the two are a thousandth of their size apart, find the normal there, and again until it
    stays. rows: of the simplex that GJK left in scratch. Returns separation, normal, point, and whether it settled.

    Each round can only lessen the depth: the separation along the new normal is at least that along the old one. While
    the depth is small against the curvature of the surfaces, two or three rounds are enough.
    """
    shift = pair.shift
    apart = APART * scale
    gap, _, _ = separation(pair, points, scratch, n)
    place = shift
    for _ in range(POLISH_LIMIT):
        moved = axpy(apart - gap, n, shift)
        move_rows(scratch, rows, sub(moved, place))
        place = moved
        state, v, p, rows = gjk(
            shifted(pair, moved), NOT_MOVED, points, scratch, n, rows, math.inf, TOUCHING * scale, relative
        )
        if state == OVERLAP:
            break
        length = norm(v)
        m = (v[0] / length, v[1] / length, v[2] / length)
        new, _, _ = separation(pair, points, scratch, m)
        gained = new - gap
        if gained < -1e-12 * scale:
            return gap, n, p, True
        gap, n, a = new, m, p
        if gained <= 1e-9 * scale:
            return gap, n, a, True
    return gap, n, a, False


@formula
def _snap(pair, hulls, scratch, gap, n, scale):
    """Take a face's own normal where it separates as well as the one found."""
    points, turn = hulls.point, pair.turn
    gap, _, _ = separation(pair, points, scratch, n)
    slack = 1e-12 * scale
    m = flat_normal(pair.a, hulls, scratch, n)
    if dot(m, n) > 0.5:
        new, _, _ = separation(pair, points, scratch, m)
        if new >= gap - slack:
            gap, n = new, m
            slack = 0.0
    d = mat_t_vec(turn, (-n[0], -n[1], -n[2]))
    m = mat_vec(turn, flat_normal(pair.b, hulls, scratch, d))
    m = (-m[0], -m[1], -m[2])
    if dot(m, n) > 0.5:
        new, _, _ = separation(pair, points, scratch, m)
        if new >= gap - slack and (slack > 0.0 or new > gap):
            gap, n = new, m
    return gap, n


def _gap_with(deep: Callable) -> Callable:
    """`convex_gap` with the shortest way out of a deep overlap found in this way."""

    @formula
    def _general_gap(pair, hulls, scratch, reach):
        """Gap of the cores."""
        points = hulls.point
        ka, sa, kb, sb, turn, shift = pair.a.kind, pair.a.s, pair.b.kind, pair.b.s, pair.turn, pair.shift
        scale = core_size(pair.a, points, scratch) + core_size(pair.b, points, scratch) + norm(shift)
        curved = among(CURVED, ka) or among(CURVED, kb)
        relative = CURVED_RELATIVE if curved else RELATIVE
        if curved:
            found, gap, n, a = _curved(pair, hulls, scratch, reach, scale)
            if found:
                return gap, n, a
        state, v, a, count = gjk(
            pair, NOT_MOVED, points, scratch, shift, 0, max(reach, CLOSE * scale), CLOSE * scale, relative
        )
        length = norm(v)
        n = (v[0] / length, v[1] / length, v[2] / length) if length > 0.0 else (0.0, 0.0, 1.0)
        if state == BEYOND:
            gap, _, _ = separation(pair, points, scratch, n)
            return gap, n, a
        if state == SEPARATED or (state == STUCK and not curved):
            return length, n, a
        if ka == TRIANGLE and kb == TRIANGLE:
            gap, n = triangle_axis(pair, points, scratch, scale)
            if gap == -math.inf:
                return math.inf, n, a
            moved = shifted(pair, axpy(APART * scale - gap, n, shift))
            _, _, a, _ = gjk(moved, NOT_MOVED, points, scratch, n, 0, math.inf, TOUCHING * scale, relative)
            return gap, n, a
        if state == OVERLAP and ka == BOX and kb == BOX:
            gap, n, a = box_depth(sa, sb, turn, shift)
            if gap <= 0.0:
                gap, n = between_faces(sa, sb, turn, shift, gap, n)
                return gap, n, a
        # Nearly touching or overlapping: from the last direction on. If that does not end shallow, look all round.
        gap, n, a, settled = _polish(pair, points, scratch, n, a, count, scale, relative)
        if state == OVERLAP and not (settled and gap >= -SHALLOW * scale):
            gap, n, a = deep(pair, points, scratch, scale, curved)
        gap, n = _snap(pair, hulls, scratch, gap, n, scale)
        if ka == BOX and kb == BOX:
            gap, n = between_faces(sa, sb, turn, shift, gap, n)
        return gap, n, a

    @formula
    def convex_gap(pair, pools, reach):
        """Gap of the two shapes, unit normal from A to B, and the point of A's core that is nearest (all in A's frame).

        Beyond `reach` only a lower bound of the gap is given, which is beyond it too. pools: (hulls, scratch).
        """
        hulls, scratch = pools
        ka, sa, kb, sb = pair.a.kind, pair.a.s, pair.b.kind, pair.b.s
        radius = sa[3] + sb[3]
        if kb == HALF_SPACE:
            up = column(pair.turn, 2)
            n = (-up[0], -up[1], -up[2])
            a = support(pair.a, hulls.point, scratch, n)
            return dot(sub(a, pair.shift), up) - sa[3], n, a
        if ka == SPHERE and (among(CLOSED, kb) or kb == TRIANGLE):
            return ball_gap(pair, scratch, reach)
        if kb == CAPSULE:
            gap, n, a = _segments(sa[2], column(pair.turn, 2), sb[2], pair.shift)
            return gap - radius, n, a
        gap, n, a = _general_gap(pair, hulls, scratch, reach + radius)
        return gap - radius, n, a

    return convex_gap


@formula
def _left_for_later(pair, points, scratch, scale, curved):
    """In the place of `_deep`: a mark that the answer is not known."""
    scratch[LATER] = 1.0
    return 0.0, (0.0, 0.0, 1.0), NOT_MOVED


convex_gap = _gap_with(_deep)
shallow_gap = _gap_with(_left_for_later)
"""`convex_gap` without the search all round, which needs much room and takes long: where it were needed the number at
LATER in scratch is set, and what is found has no meaning."""
