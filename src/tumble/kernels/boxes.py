"""Boxes against spheres, planes and boxes: separating axes and clipped contact areas."""

from __future__ import annotations

import math

from .jit import formula
from .linalg import add, axpy, column, cross, dot, mat_t_vec, mat_vec, norm, sub

# An edge axis must separate better than the best face by this part of the smaller box, so that a cube resting flat
# keeps its four face points; likewise the second box's face against the first's.
EDGE_PREFERENCE = 1e-3
FACE_PREFERENCE = 1e-4
PARALLEL = 1e-10
POLYGON_LIMIT = 16
SCRATCH = 8 * POLYGON_LIMIT
"""Numbers of scratch a box pair needs: two polygons of (x, y, z, feature)."""


@formula
def corner(m, s, i):
    """Corner i (bits: x, y, z positive) relative to the centre."""
    sx = s[0] if i & 1 else -s[0]
    sy = s[1] if i & 2 else -s[1]
    sz = s[2] if i & 4 else -s[2]
    return mat_vec(m, (sx, sy, sz))


@formula
def sphere_box(center, radius, pb, mb, sb):
    """Gap and normal (from the sphere to the box)."""
    c = mat_t_vec(mb, sub(center, pb))
    q = (min(max(c[0], -sb[0]), sb[0]), min(max(c[1], -sb[1]), sb[1]), min(max(c[2], -sb[2]), sb[2]))
    d = sub(q, c)
    distance = norm(d)
    if distance > 0.0:
        n = mat_vec(mb, (d[0] / distance, d[1] / distance, d[2] / distance))
        return distance - radius, n
    # The centre is inside: leave by the nearest face.
    axis = 0
    depth = sb[0] - abs(c[0])
    for i in range(1, 3):
        here = sb[i] - abs(c[i])
        if here < depth:
            depth = here
            axis = i
    out = column(mb, axis)
    sign = -1.0 if c[axis] >= 0.0 else 1.0
    return -depth - radius, (sign * out[0], sign * out[1], sign * out[2])


@formula
def box_half_space_contacts(pa, ma, sa, pb, up, margin, out, row):
    """The (at most four) lowest corners within the margin."""
    count = 0
    for i in range(8):
        p = add(pa, corner(ma, sa, i))
        gap = dot(sub(p, pb), up)
        if gap > margin:
            continue
        place = count
        if count == 4:
            place = 0
            for k in range(1, 4):
                if out[row + k, 6] > out[row + place, 6]:
                    place = k
            if not gap < out[row + place, 6]:
                continue
        else:
            count += 1
        out[row + place, 0], out[row + place, 1], out[row + place, 2] = -up[0], -up[1], -up[2]
        q = axpy(-0.5 * gap, up, p)
        out[row + place, 3], out[row + place, 4], out[row + place, 5] = q
        out[row + place, 6] = gap
        out[row + place, 7] = i
    return count


@formula
def box_box_axis(pa, ma, sa, pb, mb, sb):
    """Best separating axis: separation, unit normal from A to B, and its code (0-2 faces of A, 3-5 faces of B,
    6-14 edge pairs 6 + 3 i + j)."""
    d = sub(pb, pa)
    size = min(min(sa[0], min(sa[1], sa[2])), min(sb[0], min(sb[1], sb[2])))
    best = -math.inf
    best_n = (0.0, 0.0, 1.0)
    code = 0
    for i in range(3):
        axis = column(ma, i)
        along = dot(d, axis)
        reach = sa[i]
        for j in range(3):
            reach += sb[j] * abs(dot(column(mb, j), axis))
        if abs(along) - reach > best:
            best = abs(along) - reach
            sign = 1.0 if along >= 0.0 else -1.0
            best_n = (sign * axis[0], sign * axis[1], sign * axis[2])
            code = i
    for j in range(3):
        axis = column(mb, j)
        along = dot(d, axis)
        reach = sb[j]
        for i in range(3):
            reach += sa[i] * abs(dot(column(ma, i), axis))
        if abs(along) - reach > best + FACE_PREFERENCE * size:
            best = abs(along) - reach
            sign = 1.0 if along >= 0.0 else -1.0
            best_n = (sign * axis[0], sign * axis[1], sign * axis[2])
            code = 3 + j
    for i in range(3):
        for j in range(3):
            axis = cross(column(ma, i), column(mb, j))
            length = norm(axis)
            if length * length < PARALLEL:
                continue
            axis = (axis[0] / length, axis[1] / length, axis[2] / length)
            along = dot(d, axis)
            reach = 0.0
            for k in range(3):
                reach += sa[k] * abs(dot(column(ma, k), axis)) + sb[k] * abs(dot(column(mb, k), axis))
            if abs(along) - reach > best + EDGE_PREFERENCE * size:
                best = abs(along) - reach
                sign = 1.0 if along >= 0.0 else -1.0
                best_n = (sign * axis[0], sign * axis[1], sign * axis[2])
                code = 6 + 3 * i + j
    return best, best_n, code


@formula
def box_box_contacts(pa, ma, sa, pb, mb, sb, margin, out, row, scratch):
    """Contact points of two boxes: one for edge on edge, up to four for a face."""
    gap, n, code = box_box_axis(pa, ma, sa, pb, mb, sb)
    if gap > margin:
        return 0
    if code >= 6:
        i, j = (code - 6) // 3, (code - 6) % 3
        return _edge_edge(pa, ma, sa, pb, mb, sb, i, j, n, gap, code, out, row)
    if code < 3:
        return _face(pa, ma, sa, pb, mb, sb, code, n, 1.0, margin, out, row, scratch)
    return _face(pb, mb, sb, pa, ma, sa, code - 3, (-n[0], -n[1], -n[2]), -1.0, margin, out, row, scratch)


@formula
def _edge_edge(pa, ma, sa, pb, mb, sb, i, j, n, gap, code, out, row):
    """The point midway between the nearest points of two edges."""
    p, q = pa, pb
    feature = 0
    for k in range(3):
        if k != i:
            a = column(ma, k)
            s = 1.0 if dot(a, n) >= 0.0 else -1.0
            p = axpy(s * sa[k], a, p)
            feature = 2 * feature + (1 if s > 0.0 else 0)
        if k != j:
            b = column(mb, k)
            s = -1.0 if dot(b, n) >= 0.0 else 1.0
            q = axpy(s * sb[k], b, q)
            feature = 2 * feature + (1 if s > 0.0 else 0)
    u, v = column(ma, i), column(mb, j)
    w = sub(q, p)
    b = dot(u, v)
    det = 1.0 - b * b
    s = (dot(u, w) - b * dot(v, w)) / det
    t = (b * dot(u, w) - dot(v, w)) / det
    p, q = axpy(s, u, p), axpy(t, v, q)
    out[row, 0], out[row, 1], out[row, 2] = n
    out[row, 3], out[row, 4], out[row, 5] = 0.5 * (p[0] + q[0]), 0.5 * (p[1] + q[1]), 0.5 * (p[2] + q[2])
    out[row, 6] = gap
    out[row, 7] = 4096 + 16 * code + feature
    return 1


@formula
def _face(pr, mr, sr, pi, mi, si, axis, n, sign, margin, out, row, scratch):
    """Clip the incident face of box i against the reference face (axis, outward normal n) of box r.

    sign: +1 when the reference box is the first of the pair (then the contact normal is n), else -1.
    """
    # The incident face is the one that looks most against n.
    face, facing = 0, 0.0
    for k in range(3):
        c = dot(column(mi, k), n)
        if abs(c) > abs(facing):
            face, facing = k, c
    side = -1.0 if facing > 0.0 else 1.0
    a, b = (face + 1) % 3, (face + 2) % 3
    center = axpy(side * si[face], column(mi, face), pi)
    ea, eb = column(mi, a), column(mi, b)
    count = 4
    for k in range(4):
        ka = 1.0 if (k == 1 or k == 2) else -1.0
        kb = 1.0 if k >= 2 else -1.0
        p = axpy(ka * si[a], ea, axpy(kb * si[b], eb, center))
        scratch[4 * k], scratch[4 * k + 1], scratch[4 * k + 2] = p
        scratch[4 * k + 3] = k
    src, dst = 0, 4 * POLYGON_LIMIT
    size = max(sr[0], max(sr[1], sr[2]))
    for plane in range(4):
        along = (axis + 1 + plane // 2) % 3
        direction = column(mr, along)
        flip = 1.0 if plane % 2 == 0 else -1.0
        limit = sr[along] + flip * dot(direction, pr)
        count = _clip(scratch, src, dst, count, direction, flip, limit, 1e-9 * size, plane)
        src, dst = dst, src
        if count == 0:
            return 0
    level = dot(pr, n) + sr[axis]
    kept = 0
    for k in range(count):
        p = (scratch[src + 4 * k], scratch[src + 4 * k + 1], scratch[src + 4 * k + 2])
        gap = dot(p, n) - level
        if gap <= margin:
            q = axpy(-0.5 * gap, n, p)
            scratch[dst + 4 * kept], scratch[dst + 4 * kept + 1], scratch[dst + 4 * kept + 2] = q
            # Reuse the source's first slots for gap and feature: k never overtakes kept.
            feature = scratch[src + 4 * k + 3]
            scratch[src + 4 * kept] = gap
            scratch[src + 4 * kept + 1] = feature
            kept += 1
    if kept > 4:
        kept = _spread(scratch, src, dst, kept, n)
    code = 1 + axis + (3 if sign < 0.0 else 0)
    for k in range(kept):
        out[row + k, 0], out[row + k, 1], out[row + k, 2] = sign * n[0], sign * n[1], sign * n[2]
        out[row + k, 3] = scratch[dst + 4 * k]
        out[row + k, 4] = scratch[dst + 4 * k + 1]
        out[row + k, 5] = scratch[dst + 4 * k + 2]
        out[row + k, 6] = scratch[src + 4 * k]
        out[row + k, 7] = 512 * code + 64 * face + scratch[src + 4 * k + 1]
    return kept


@formula
def _clip(scratch, src, dst, count, direction, flip, limit, slack, plane):
    """Keep the part of a polygon where flip * direction . x <= limit. A new point is named after its edge's start and
    the plane, so that names stay while the configuration does."""
    out = 0
    for k in range(count):
        a, b = src + 4 * k, src + 4 * ((k + 1) % count)
        p = (scratch[a], scratch[a + 1], scratch[a + 2])
        q = (scratch[b], scratch[b + 1], scratch[b + 2])
        da = flip * dot(direction, p) - limit
        db = flip * dot(direction, q) - limit
        if da <= slack:
            scratch[dst + 4 * out], scratch[dst + 4 * out + 1], scratch[dst + 4 * out + 2] = p
            scratch[dst + 4 * out + 3] = scratch[a + 3]
            out += 1
        if (da <= slack) != (db <= slack):
            t = da / (da - db)
            x = axpy(t, sub(q, p), p)
            scratch[dst + 4 * out], scratch[dst + 4 * out + 1], scratch[dst + 4 * out + 2] = x
            entering = 1 if da > slack else 0
            base = scratch[a + 3] if entering == 0 else scratch[b + 3]
            scratch[dst + 4 * out + 3] = 8 + 8 * plane + 4 * entering + (int(base) & 3)
            out += 1
    return out


@formula
def _spread(scratch, src, dst, count, n):
    """Reduce to four well-spread points: the deepest, the farthest from it, then the largest area on either side."""
    first = 0
    for k in range(1, count):
        if scratch[src + 4 * k] < scratch[src + 4 * first]:
            first = k
    p = (scratch[dst + 4 * first], scratch[dst + 4 * first + 1], scratch[dst + 4 * first + 2])
    second, far = first, -1.0
    for k in range(count):
        d = sub((scratch[dst + 4 * k], scratch[dst + 4 * k + 1], scratch[dst + 4 * k + 2]), p)
        if dot(d, d) > far:
            second, far = k, dot(d, d)
    q = (scratch[dst + 4 * second], scratch[dst + 4 * second + 1], scratch[dst + 4 * second + 2])
    third, fourth, high, low = -1, -1, 0.0, 0.0
    for k in range(count):
        d = sub((scratch[dst + 4 * k], scratch[dst + 4 * k + 1], scratch[dst + 4 * k + 2]), p)
        area = dot(cross(sub(q, p), d), n)
        if area > high:
            third, high = k, area
        if area < low:
            fourth, low = k, area
    kept = 0
    for k in range(count):
        if k in (first, second, third, fourth):
            for c in range(4):
                scratch[dst + 4 * kept + c] = scratch[dst + 4 * k + c]
            scratch[src + 4 * kept] = scratch[src + 4 * k]
            scratch[src + 4 * kept + 1] = scratch[src + 4 * k + 1]
            kept += 1
    return kept
