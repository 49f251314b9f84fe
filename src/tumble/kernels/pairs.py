"""Distance and contact points of pairs of shapes.

Every pair function gets two shapes as position, rotation matrix (9-tuple) and parameters, and works with a unit normal
that points from the first to the second. Contact points are rows of `out`: normal (3), point (3), gap, feature. The
point lies midway between the two surfaces.
"""

from __future__ import annotations

from .boxes import box_box_axis, box_box_contacts, box_half_space_contacts, sphere_box
from .jit import formula
from .linalg import axpy, column, dot, norm, sub

SPHERE, BOX, HALF_SPACE = 0, 1, 2
SWEEP_LIMIT = 60


@formula
def write_row(out, row, n, p, gap, feature):
    """One contact point."""
    out[row, 0], out[row, 1], out[row, 2] = n
    out[row, 3], out[row, 4], out[row, 5] = p
    out[row, 6] = gap
    out[row, 7] = feature


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
def pair_gap(ka, pa, ma, sa, kb, pb, mb, sb):
    """Gap (a lower bound of it for separated boxes) and normal of an ordered pair (ka <= kb)."""
    if kb == HALF_SPACE:
        up = column(mb, 2)
        height = dot(sub(pa, pb), up)
        n = (-up[0], -up[1], -up[2])
        if ka == SPHERE:
            return height - sa[0], n
        reach = 0.0
        for i in range(3):
            reach += sa[i] * abs(dot(column(ma, i), up))
        return height - reach, n
    if kb == SPHERE:
        return sphere_sphere(pa, sa[0], pb, sb[0])
    if ka == SPHERE:
        return sphere_box(pa, sa[0], pb, mb, sb)
    gap, n, _ = box_box_axis(pa, ma, sa, pb, mb, sb)
    return gap, n


@formula
def pair_contacts(ka, pa, ma, sa, kb, pb, mb, sb, margin, out, row, scratch):
    """Contact points within the margin, written from `row` on; returns their number (at most 4)."""
    if kb == HALF_SPACE and ka == BOX:
        return box_half_space_contacts(pa, ma, sa, pb, column(mb, 2), margin, out, row)
    if ka == BOX:
        return box_box_contacts(pa, ma, sa, pb, mb, sb, margin, out, row, scratch)
    gap, n = pair_gap(ka, pa, ma, sa, kb, pb, mb, sb)
    if gap > margin:
        return 0
    write_row(out, row, n, axpy(sa[0] + 0.5 * gap, n, pa), gap, 0.0)
    return 1


@formula
def first_touch(ka, pa, ma, sa, kb, pb, mb, sb, velocity, h):
    """Time in [0, h] at which the pair first touches when B moves with `velocity` relative to A and nothing turns;
    if it does not touch, the time at which it is nearest. Returns (time, gap then).

    The gap of two convex bodies is a convex function of the time, so Newton's method from the left never jumps over
    the first touch, and where the slope turns positive the minimum is bracketed.
    """
    t = 0.0
    gap, n = pair_gap(ka, pa, ma, sa, kb, pb, mb, sb)
    slope = dot(velocity, n)
    if gap <= 0.0 or slope >= 0.0:
        return t, gap
    low = 0.0
    size = max(abs(gap), 1e-300)
    for _ in range(SWEEP_LIMIT):
        t = min(h, low - gap / slope)
        new_gap, n = pair_gap(ka, pa, ma, sa, kb, axpy(t, velocity, pb), mb, sb)
        new_slope = dot(velocity, n)
        if new_slope >= 0.0 and new_gap > 0.0:
            return _nearest(ka, pa, ma, sa, kb, pb, mb, sb, velocity, low, t)
        low, gap, slope = t, new_gap, new_slope
        if t >= h or gap <= 1e-9 * size:
            return t, gap
    return low, gap


@formula
def _nearest(ka, pa, ma, sa, kb, pb, mb, sb, velocity, low, high):
    """Bisection on the slope of the gap between low (falling) and high (rising)."""
    gap = 0.0
    t = low
    for _ in range(40):
        t = 0.5 * (low + high)
        gap, n = pair_gap(ka, pa, ma, sa, kb, axpy(t, velocity, pb), mb, sb)
        if gap <= 0.0:
            return t, gap
        if dot(velocity, n) < 0.0:
            low = t
        else:
            high = t
    return t, gap
