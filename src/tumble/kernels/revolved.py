"""Convex cores that are turned about z and have straight sides: everything that depends on which of them it is.

Cylinder: radius s[0], |z| <= s[2]; cone: base radius s[0] at z = -s[2], apex at z = s[2]; frustum: radius s[0] at
z = -s[2], s[1] at z = s[2].
"""

from __future__ import annotations

import math

from .jit import formula, merged_formula
from .kinds import CONE, CYLINDER, FRUSTUM

EIGHTH = 0.7071067811865476


@merged_formula
def top_radius(kind, s):
    """Radius at the upper end; at the lower one it is s[0]."""
    if kind == FRUSTUM:
        return s[1]
    return s[0] if kind == CYLINDER else 0.0


@merged_formula
def points_up(kind, s, d):
    """Whether the upper end is the one that is farthest along d."""
    if kind == CYLINDER:
        return d[2] >= 0.0
    radial = math.sqrt(d[0] * d[0] + d[1] * d[1])
    if kind == FRUSTUM:
        return s[1] * radial + s[2] * d[2] >= s[0] * radial - s[2] * d[2]
    return s[2] * d[2] >= s[0] * radial - s[2] * d[2]


@merged_formula
def rim_point(kind, s, upper, d):
    """The point of an end that is farthest along d."""
    z = s[2] if upper else -s[2]
    radius = top_radius(kind, s) if upper else s[0]
    radial = math.sqrt(d[0] * d[0] + d[1] * d[1])
    if radial == 0.0 or radius == 0.0:
        return (0.0, 0.0, z)
    return (radius * d[0] / radial, radius * d[1] / radial, z)


@formula
def revolved_normal(kind, s, d):
    """Outward normal of the flat or ruled face that looks most along the unit vector d."""
    radial = math.sqrt(d[0] * d[0] + d[1] * d[1])
    if kind == CYLINDER:
        if abs(d[2]) >= radial:
            return (0.0, 0.0, 1.0 if d[2] >= 0.0 else -1.0)
        return (d[0] / radial, d[1] / radial, 0.0)
    taper = s[0] - top_radius(kind, s)
    slant = math.sqrt(taper * taper + 4.0 * s[2] * s[2])
    across, up = 2.0 * s[2] / slant, taper / slant
    side = across * radial + up * d[2]
    if kind == FRUSTUM and (radial == 0.0 or abs(d[2]) > side):
        return (0.0, 0.0, 1.0 if d[2] >= 0.0 else -1.0)
    if radial == 0.0 or -d[2] > side:
        return (0.0, 0.0, -1.0)
    return (across * d[0] / radial, across * d[1] / radial, up)


@merged_formula
def upper_end(kind, s, d):
    """Whether Newton's method takes the upper end as the feature along d (as `points_up`, rounded its own way)."""
    if kind == CONE:
        radial = math.sqrt(d[0] * d[0] + d[1] * d[1])
        return 2.0 * s[2] * d[2] >= s[0] * radial
    return points_up(kind, s, d)


@merged_formula
def rim_bend(kind, s, upper, d, u, w):
    """How the farthest point of an end moves when d turns: the second derivative of the support along u and w."""
    radius = top_radius(kind, s) if upper else s[0]
    radial = d[0] * d[0] + d[1] * d[1]
    if radial > 0.0 and radius > 0.0:
        c = radius / (radial * math.sqrt(radial))
        tu, tw = d[0] * u[1] - d[1] * u[0], d[0] * w[1] - d[1] * w[0]
        return c * tu * tu, c * tu * tw, c * tw * tw
    return 0.0, 0.0, 0.0


@merged_formula
def lies_over_cap(kind, s, m, p):
    """Whether p, moved along m, meets the cap whose outward normal is m."""
    radius = top_radius(kind, s) if m[2] > 0.0 else s[0]
    return m[0] == 0.0 and m[1] == 0.0 and p[0] * p[0] + p[1] * p[1] <= radius * radius


@formula
def faces_cap(kind, s, d, radial):
    """Whether a cap, not the side, looks along the unit vector d."""
    if kind == CYLINDER:
        return abs(d[2]) >= radial
    if kind == FRUSTUM:
        taper = s[0] - s[1]
        return abs(d[2]) * math.sqrt(taper * taper + 4.0 * s[2] * s[2]) > 2.0 * s[2] * radial + taper * d[2]
    return -d[2] * math.sqrt(s[0] * s[0] + 4.0 * s[2] * s[2]) > 2.0 * s[2] * radial + s[0] * d[2]


@formula
def put_revolved_face(kind, s, scratch, d, at):
    """Corners (x, y, z, name) of the cap or side line that looks along d; their number. A cap has eight."""
    radial = math.sqrt(d[0] * d[0] + d[1] * d[1])
    x, y = 1.0, 0.0
    if radial > 1e-6:
        x, y = d[0] / radial, d[1] / radial
    top = top_radius(kind, s)
    if not faces_cap(kind, s, d, radial):
        scratch[at], scratch[at + 1], scratch[at + 2], scratch[at + 3] = s[0] * x, s[0] * y, -s[2], 0
        scratch[at + 4], scratch[at + 5], scratch[at + 6], scratch[at + 7] = top * x, top * y, s[2], 1
        return 2
    up = 1.0 if d[2] >= 0.0 else -1.0
    r = top if up > 0.0 else s[0]
    for k in range(8):
        c = 1.0 if k % 4 == 0 else (EIGHTH if k % 2 == 1 else 0.0)
        e = 0.0 if k % 4 == 0 else (EIGHTH if k % 2 == 1 else 1.0)
        c = -c if 2 < k < 6 else c
        e = -up * e if k > 4 else up * e
        i = at + 4 * k
        scratch[i], scratch[i + 1], scratch[i + 2] = r * (c * x - e * y), r * (c * y + e * x), up * s[2]
        scratch[i + 3] = k
    return 8


@formula
def _point_frustum(rho, z, low, high, h):
    """Gap, and the normal in the half-plane (rho, z), of a frustum with end radii low and high."""
    slant = math.sqrt((low - high) * (low - high) + 4.0 * h * h)
    across, up = 2.0 * h / slant, (low - high) / slant  # outward normal of the side
    height = across * (rho - low) + up * (z + h)  # over the side
    if height <= 0.0 and abs(z) <= h:
        if -height <= h - abs(z):
            return height, -across, -up
        return abs(z) - h, 0.0, -1.0 if z >= 0.0 else 1.0
    t = (up * (low - rho) + across * (z + h)) / slant  # along the side from the lower rim (0) to the upper one (1)
    if z > h and rho <= high:
        dr, dz = 0.0, h - z
    elif z < -h and rho <= low:
        dr, dz = 0.0, -h - z
    elif t >= 1.0:
        dr, dz = high - rho, h - z
    elif t <= 0.0:
        dr, dz = low - rho, -h - z
    else:
        dr, dz = -height * across, -height * up
    distance = math.sqrt(dr * dr + dz * dz)
    return distance, dr / distance, dz / distance


@formula
def point_revolved(c, kind, s):
    """Gap and normal from a point (negative inside): the nearest point in the half-plane through the axis."""
    rho = math.sqrt(c[0] * c[0] + c[1] * c[1])
    x, y = (c[0] / rho, c[1] / rho) if rho > 0.0 else (1.0, 0.0)
    z, top, h = c[2], s[0], s[2]
    if kind == FRUSTUM:
        gap, dr, dz = _point_frustum(rho, z, s[0], s[1], h)
        return gap, (dr * x, dr * y, dz)
    if kind == CYLINDER:
        if rho > top or abs(z) > h:
            dr, dz = min(rho, top) - rho, min(max(z, -h), h) - z
        elif top - rho <= h - abs(z):
            return rho - top, (-x, -y, 0.0)
        else:
            return abs(z) - h, (0.0, 0.0, -1.0 if z >= 0.0 else 1.0)
    else:
        slant = math.sqrt(top * top + 4.0 * h * h)
        across, up = 2.0 * h / slant, top / slant  # outward normal of the side
        height = across * (rho - top) + up * (z + h)  # over the side
        if height <= 0.0 and z >= -h:
            if -height <= z + h:
                return height, (-across * x, -across * y, -up)
            return -h - z, (0.0, 0.0, 1.0)
        # Along the side from the rim (0) to the apex (1), or on the base.
        t = (up * (top - rho) + across * (z + h)) / slant
        if t <= 0.0 or height <= 0.0:
            dr, dz = min(rho, top) - rho, -h - z
        elif t >= 1.0:
            dr, dz = -rho, h - z
        else:
            dr, dz = -height * across, -height * up
    distance = math.sqrt(dr * dr + dz * dz)
    return distance, (dr * x / distance, dr * y / distance, dz / distance)
