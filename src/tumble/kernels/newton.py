"""The normal between two convex cores by Newton's method, from a rough one.

The separation s(n) has its largest value at the true normal. Where both cores are smooth near their support points,
Newton's method on the sphere of normals finds it in three or four steps. Where one of them ends in an edge there (the
side line of a cylinder or cone, the edge of a box or hull), both ends of the edge are kept and the normal is held
across it, with the place on the edge as multiplier. Flat faces are tried first: a face's own normal is the answer where
the other's support point lies over the face. Every answer is proved: the two points lie along n from each other.
"""

from __future__ import annotations

import math

from .convex import bending, corner, corner_point, flat_normal, lies_over, support
from .jit import formula, merged_formula
from .linalg import add, axpy, dot, mat_t_vec, mat_vec, norm, sub, tangents

NEWTON_LIMIT = 12
LONGEST = 0.4
"""Longest step on the sphere [rad]."""
LAST = 1e-7
"""A step this short is the last: the next would be its square."""
STIFF, REGULAR = 1e-3, 0.03
"""Below this stiffness (in sizes) a corner against a corner is regularised by that much."""
NONE = -1


@formula
def _by_face(pair, hulls, scratch, n):
    """A's face nearest to n if the support point of B lies over it: (yes, gap, normal, point of A)."""
    turn, points = pair.turn, hulls.point
    m = flat_normal(pair.a, hulls, scratch, n)
    if dot(m, n) > 0.8:
        b = support(pair.b, points, scratch, mat_t_vec(turn, (-m[0], -m[1], -m[2])))
        b = add(mat_vec(turn, b), pair.shift)
        if lies_over(pair.a, hulls, m, b):
            gap = dot(m, b) - dot(m, support(pair.a, points, scratch, m))
            return True, gap, m, axpy(-gap, m, b)
    return False, 0.0, n, n


@merged_formula
def _edge_after(first, second, place, now):
    """The ends of the edge in hand after the support has gone to `now`; NONE as second: no edge.

    place: of the nearest point on the edge, 0 at the first end and 1 at the second; beyond an end the edge is left.
    """
    if second == NONE:
        if first == NONE or first == now:
            return now, NONE
        return first, now
    if place < 0.0:
        second = NONE
    elif place > 1.0:
        first, second = second, NONE
    elif now != first and now != second:
        if place < 0.5:
            second = now
        else:
            first = now
    return first, second


@formula
def newton(pair, points, scratch, n, scale):
    """(found, gap of the cores, normal, point of A) from the rough normal n."""
    turn = pair.turn
    a1, a2, b1, b2 = NONE, NONE, NONE, NONE
    on_a, on_b = 0.5, 0.5
    for _ in range(NEWTON_LIMIT):
        d = mat_t_vec(turn, (-n[0], -n[1], -n[2]))
        a1, a2 = _edge_after(a1, a2, on_a, corner(pair.a, points, scratch, n))
        b1, b2 = _edge_after(b1, b2, on_b, corner(pair.b, points, scratch, d))
        u, w = tangents(n)
        ub, wb = mat_t_vec(turn, u), mat_t_vec(turn, w)
        pa = corner_point(pair.a, points, scratch, a1, n)
        pb = corner_point(pair.b, points, scratch, b1, d)
        uu, uw, ww = bending(pair.a, a1, pa, n, u, w)
        vu, vw, vv = bending(pair.b, b1, pb, d, ub, wb)
        ea, eb = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if a2 != NONE:
            qa = corner_point(pair.a, points, scratch, a2, n)
            ea = sub(qa, pa)
            xu, xw, xx = bending(pair.a, a2, qa, n, u, w)
            t = on_a
            uu, uw, ww = uu + t * (xu - uu), uw + t * (xw - uw), ww + t * (xx - ww)
        if b2 != NONE:
            qb = corner_point(pair.b, points, scratch, b2, d)
            eb = mat_vec(turn, sub(qb, pb))
            xu, xw, xx = bending(pair.b, b2, qb, d, ub, wb)
            t = on_b
            vu, vw, vv = vu + t * (xu - vu), vw + t * (xw - vw), vv + t * (xx - vv)
        between = sub(add(mat_vec(turn, pb), pair.shift), pa)
        s = dot(between, n)
        uu, uw, ww = uu + vu + s, uw + vw, ww + vv + s
        gu, gw = dot(between, u), dot(between, w)
        if a2 == NONE and b2 == NONE:
            det = uu * ww - uw * uw
            if uu + ww <= 0.0 or det <= STIFF * (uu + ww) * (uu + ww):
                uu, ww = abs(uu) + REGULAR * scale, abs(ww) + REGULAR * scale  # as if the two were moved apart
                det = uu * ww - uw * uw
                if det <= 0.0:
                    return False, s, n, pa
            du, dw = (ww * gu - uw * gw) / det, (uu * gw - uw * gu) / det
        elif a2 != NONE and b2 != NONE:
            au, aw, bu, bw = dot(ea, u), dot(ea, w), dot(eb, u), dot(eb, w)
            det = au * bw - aw * bu
            if abs(det) <= 1e-6 * (abs(au) + abs(aw)) * (abs(bu) + abs(bw)):
                return False, s, n, pa
            ca, cb = -dot(ea, n), -dot(eb, n)
            du, dw = (ca * bw - aw * cb) / det, (au * cb - ca * bu) / det
            # g + on_b eb - on_a ea = M delta
            ru, rw = uu * du + uw * dw - gu, uw * du + ww * dw - gw
            on_a, on_b = -(ru * bw - rw * bu) / det, (au * rw - aw * ru) / det
        else:
            first = a2 != NONE
            e = ea if first else eb
            eu, ew = dot(e, u), dot(e, w)
            length = eu * eu + ew * ew
            if length == 0.0:
                return False, s, n, pa
            c = -dot(e, n) / length
            bend = (uu * ew * ew - 2.0 * uw * eu * ew + ww * eu * eu) / length
            bend = max(bend, REGULAR * scale) if bend <= STIFF * scale else bend
            ru, rw = gu - c * (uu * eu + uw * ew), gw - c * (uw * eu + ww * ew)
            t = (-ew * ru + eu * rw) / (bend * length)
            du, dw = c * eu - t * ew, c * ew + t * eu
            ru, rw = uu * du + uw * dw - gu, uw * du + ww * dw - gw
            place = (eu * ru + ew * rw) / length
            if first:
                on_a = -place
            else:
                on_b = place
        step = math.sqrt(du * du + dw * dw)
        if step > LONGEST:
            du, dw = du * LONGEST / step, dw * LONGEST / step
        n = axpy(du, u, axpy(dw, w, n))
        length = norm(n)
        n = (n[0] / length, n[1] / length, n[2] / length)
        if step <= LAST and (a2 == NONE or 0.0 <= on_a <= 1.0) and (b2 == NONE or 0.0 <= on_b <= 1.0):
            return _proved(pair, points, scratch, n, scale, (a1, a2, on_a), (b1, b2, on_b))
    return False, 0.0, n, n


@formula
def _proved(pair, points, scratch, n, scale, edge_a, edge_b):
    """The answer, if the two points lie along n from each other and no other point of either core is farther along.

    edge_a, edge_b: the ends of the edge in hand and the place on it.
    """
    turn = pair.turn
    (a1, a2, on_a), (b1, b2, on_b) = edge_a, edge_b
    d = mat_t_vec(turn, (-n[0], -n[1], -n[2]))
    pa = corner_point(pair.a, points, scratch, a1, n)
    pb = corner_point(pair.b, points, scratch, b1, d)
    if a2 != NONE:
        pa = axpy(on_a, sub(corner_point(pair.a, points, scratch, a2, n), pa), pa)
    if b2 != NONE:
        pb = axpy(on_b, sub(corner_point(pair.b, points, scratch, b2, d), pb), pb)
    slack = 1e-11 * scale
    ok = dot(support(pair.a, points, scratch, n), n) - dot(pa, n) <= slack
    ok = ok and dot(support(pair.b, points, scratch, d), d) - dot(pb, d) <= slack
    between = sub(add(mat_vec(turn, pb), pair.shift), pa)
    gap = dot(between, n)
    aside = axpy(-gap, n, between)
    return ok and norm(aside) <= 1e-9 * scale, gap, n, pa


@formula
def curved_gap(pair, hulls, scratch, n, scale):
    """(found, gap of the cores, normal, point of A) from the rough normal n, by a face or by Newton's method."""
    yes, gap, m, a = _by_face(pair, hulls, scratch, n)
    if yes:
        return yes, gap, m, a
    turn, points = pair.turn, hulls.point
    d = mat_t_vec(turn, (-n[0], -n[1], -n[2]))
    m = flat_normal(pair.b, hulls, scratch, d)
    if dot(m, d) > 0.8:
        out = mat_vec(turn, (-m[0], -m[1], -m[2]))
        a = support(pair.a, points, scratch, out)
        local = mat_t_vec(turn, sub(a, pair.shift))
        if lies_over(pair.b, hulls, m, local):
            b = support(pair.b, points, scratch, m)
            return True, dot(m, local) - dot(m, b), out, a
    return newton(pair, points, scratch, n, scale)
