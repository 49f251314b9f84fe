"""Moments of rounded solids: all points within a radius of a convex solid."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .geometry import HullArrays
from .hull_faces import fan, following
from .hulls import ConvexHull
from .shape import Shape
from .shapes import Box, Cone, Cylinder, Ellipsoid
from .solids import Moments, enclosed, weighted

__all__ = ["rounded_moments"]

NODES = 64
"""Gauss points on a smooth piece: more than double precision can tell."""
ELLIPSOID_ACCURACY = 1e-13
"""Relative change at which the refinement around an ellipsoid ends."""


def rounded_moments(shape: Shape, radius: float) -> Moments:
    """About the centroid of the shape inside, in units of metres."""
    size = shape.bound + radius  # moments of a body of size 1 neither overflow nor vanish
    unit = _MOMENTS[type(shape)](shape, size, radius / size)
    return Moments(unit.zeroth * size**3, unit.first * size**4, unit.second * size**5)


# ---------------------------------------------------------------------- solids of revolution


def _cylinder(shape: Cylinder, size: float, r: float) -> Moments:
    """A quarter of a circle, the side, a quarter of a circle."""
    R, h = shape.radius / size, shape.height / size / 2
    return _revolved(
        [
            _arc(R, -h, r, -math.pi / 2, 0.0),
            _segment(R + r, -h, R + r, h),
            _arc(R, h, r, 0.0, math.pi / 2),
        ]
    )


def _cone(shape: Cone, size: float, r: float) -> Moments:
    """The rim, the side, the cap about the apex; z is counted from the centroid of the cone."""
    R, height = shape.radius / size, shape.height / size
    base, apex = -height / 4, 0.75 * height
    tilt = math.atan2(R, height)
    out, up = r * math.cos(tilt), r * math.sin(tilt)
    return _revolved(
        [
            _arc(R, base, r, -math.pi / 2, tilt),
            _segment(R + out, base + up, out, apex + up),
            _arc(0.0, apex, r, tilt, math.pi / 2),
        ]
    )


def _arc(rho: float, z: float, r: float, start: float, end: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of an arc about (rho, z) and the weights dz of a quadrature along it."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    angle = start + (end - start) * (x + 1) / 2
    return rho + r * np.cos(angle), z + r * np.sin(angle), w * (end - start) / 2 * r * np.cos(angle)


def _segment(rho0: float, z0: float, rho1: float, z1: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, w = np.polynomial.legendre.leggauss(NODES)
    t = (x + 1) / 2
    return rho0 + (rho1 - rho0) * t, z0 + (z1 - z0) * t, w / 2 * (z1 - z0)


def _revolved(pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Moments:
    """Of the solid that a profile rho(z) sweeps about the z axis."""
    rho, z, dz = (np.concatenate(p) for p in zip(*pieces))
    disc = math.pi * rho**2 * dz
    across = math.pi / 4 * float(weighted(rho**4, dz))
    first, second = float(weighted(disc, z)), float(weighted(disc, z**2))
    return Moments(float(disc.sum()), np.array([0.0, 0.0, first]), np.diag([across, across, second]))


# ---------------------------------------------------------------------- polytopes


def _polytope(shape: Box | ConvexHull, size: float, r: float) -> Moments:
    """Steiner: the polytope, a prism on each face, a wedge on each edge and a part of a ball at each corner."""
    hull = (shape if isinstance(shape, ConvexHull) else ConvexHull(_corners(shape))).geometry
    hull = hull._replace(point=(hull.point - shape.center) / size)
    inside = enclosed(hull.point, fan(hull))
    return inside.plus(_prisms(hull, r)).plus(_wedges_and_corners(hull, r))


def _corners(box: Box) -> np.ndarray:
    return np.stack(np.meshgrid(*([-h, h] for h in box.half), indexing="ij"), axis=-1).reshape(-1, 3)


def _prisms(hull: HullArrays, r: float) -> Moments:
    """The points over the faces, up to a height r."""
    triangles = fan(hull)
    normal = hull.plane[np.repeat(np.arange(len(hull.plane)), np.diff(hull.loop_start) - 2), :3]
    a, b, c = (hull.point[triangles[:, k]] for k in range(3))
    area = 0.5 * np.einsum("ij,ij->i", np.cross(b - a, c - a), normal)
    total = a + b + c
    first = area[:, None] / 3 * total
    second = _outer(area / 12, total, total) + sum(_outer(area / 12, p, p) for p in (a, b, c))
    mixed = _outer(np.full(len(area), r**2 / 2), first, normal)
    return Moments(
        r * float(area.sum()),
        r * first.sum(axis=0) + r**2 / 2 * weighted(area, normal),
        r * second + mixed + mixed.T + _outer(r**3 / 3 * area, normal, normal),
    )


def _wedges_and_corners(hull: HullArrays, r: float) -> Moments:
    """Sectors of cylinders along the edges, and cones of a ball over the normals at the corners.

    The normals at an edge are an arc u from one face's normal to the other's. Those at a corner are a polygon of such
    arcs on the unit sphere; its area is 2 pi minus the angles of the faces there, and the divergence theorem on the
    cone over it gives the integrals of u and u u^T from its arcs.
    """
    tail, head, left, right = _edges(hull)
    p, q = hull.point[tail], hull.point[head]
    span = np.linalg.norm(q - p, axis=1)
    along = (q - p) / span[:, None]
    n = hull.plane[left, :3]
    m = np.cross(along, n)
    angle = np.arctan2(np.einsum("ij,ij->i", m, hull.plane[right, :3]), np.einsum("ij,ij->i", n, hull.plane[right, :3]))
    sine, cosine = np.sin(angle), np.cos(angle)
    arc = sine[:, None] * n + (1 - cosine)[:, None] * m  # integral of u over the arc
    arc2 = _outer(span * (angle + sine * cosine) / 2, n, n) + _outer(span * (angle - sine * cosine) / 2, m, m)
    mixed = _outer(span * sine**2 / 2, n, m)
    arc2 += mixed + mixed.T
    middle = (p + q) / 2
    edge2 = _outer(angle * span, middle, middle) + _outer(angle * span**3 / 12, along, along)
    lever = _outer(span * r**3 / 3, middle, arc)
    wedges = Moments(
        r**2 / 2 * float(weighted(angle, span)),
        r**2 / 2 * weighted(angle * span, middle) + r**3 / 3 * weighted(span, arc),
        r**2 / 2 * edge2 + lever + lever.T + r**4 / 4 * arc2,
    )
    solid = 2 * math.pi - _face_angles(hull)
    first = np.zeros((len(hull.point), 3))
    np.add.at(first, tail, -angle[:, None] / 2 * along)
    np.add.at(first, head, angle[:, None] / 2 * along)
    # Each arc counts at both its corners with opposite signs, so that most sums over all corners cancel.
    second = np.eye(3) * solid.sum() / 3
    lever = _outer(np.full(len(first), r**4 / 4), hull.point, first)
    corners = Moments(
        r**3 / 3 * float(solid.sum()),
        r**3 / 3 * weighted(solid, hull.point),
        _outer(r**3 / 3 * solid, hull.point, hull.point) + lever + lever.T + r**5 / 5 * second,
    )
    return wedges.plus(corners)


def _edges(hull: HullArrays) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ends of each edge, the face on its left and the face on its right."""
    face = np.repeat(np.arange(len(hull.plane)), np.diff(hull.loop_start))
    tail, head = hull.loop, hull.loop[following(hull.loop_start)]
    count = len(hull.point)
    forth = np.argsort(tail * count + head)
    back = np.argsort(head * count + tail)
    one = tail[forth] < head[forth]
    return tail[forth][one], head[forth][one], face[forth][one], face[back][one]


def _face_angles(hull: HullArrays) -> np.ndarray:
    """Sum (points,) of the angles of the faces at each corner."""
    after = following(hull.loop_start)
    before = np.empty_like(after)
    before[after] = np.arange(len(after))
    to_next = hull.point[hull.loop[after]] - hull.point[hull.loop]
    to_last = hull.point[hull.loop[before]] - hull.point[hull.loop]
    angle = np.arctan2(np.linalg.norm(np.cross(to_next, to_last), axis=1), np.einsum("ij,ij->i", to_next, to_last))
    return np.bincount(hull.loop, angle, minlength=len(hull.point))


def _outer(weight: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sum (3, 3) of weight a b^T over all rows."""
    return np.einsum("i,ij,ik->jk", weight, a, b)


# ---------------------------------------------------------------------- ellipsoids


def _ellipsoid(shape: Ellipsoid, size: float, r: float) -> Moments:
    """The ellipsoid and the layer of thickness r on it, by quadrature that is refined until it stands still."""
    axes = np.array(shape.semi_axes) / size
    order = np.argsort(-axes)
    previous = None
    for nodes in (32, 64, 128, 256, 512, 1024, 2048, 4096):
        layer = _layer(axes[order], r, nodes)
        if previous is not None and np.all(np.abs(layer - previous) <= ELLIPSOID_ACCURACY * layer):
            break
        previous = layer
    volume = 4.0 / 3.0 * math.pi * axes.prod()
    second = np.empty(3)
    second[order] = layer[1:]
    return Moments(float(volume + layer[0]), np.zeros(3), np.diag(volume * axes**2 / 5 + second))


def _layer(axes: np.ndarray, r: float, nodes: int) -> np.ndarray:
    """Volume and integrals of x^2, y^2, z^2 (4,) over the layer of thickness r on an ellipsoid with a >= b >= c.

    The points are x = A s with s on the unit sphere, the normals A^-1 s / g with g = |A^-1 s|, and the area is
    a b c g ds. Two changes of variables keep the integrand smooth for flat and long ellipsoids: tan(phi) =
    sqrt(b/a) tan(psi) for the azimuth, and a sinh for the height s_z, about which g is a root.
    """
    a, b, c = axes
    psi = (np.arange(nodes) + 0.5) * (math.pi / 2 / nodes)
    k = math.sqrt(b / a)
    stretch = np.cos(psi) ** 2 + (k * np.sin(psi)) ** 2
    cos2, sin2 = np.cos(psi) ** 2 / stretch, (k * np.sin(psi)) ** 2 / stretch
    weight_phi = k / stretch * (math.pi / 2 / nodes)
    q = cos2 / a**2 + sin2 / b**2
    ratio = np.sqrt(np.maximum(1 / c**2 - q, 0.0) / q)  # g^2 = q (1 + (ratio s_z)^2)
    x, w = np.polynomial.legendre.leggauss(NODES)
    end = np.arcsinh(ratio)
    t = (x + 1) / 2 * end[:, None]
    flat = ratio[:, None] < 1e-8
    safe = np.where(flat, 1.0, ratio[:, None])
    height = np.where(flat, (x + 1) / 2, np.sinh(t) / safe)
    weight = np.where(flat, w / 2, np.cosh(t) / safe * w / 2 * end[:, None]) * weight_phi[:, None]
    flat_part = np.maximum(1 - height**2, 0.0)
    s2 = np.stack([flat_part * cos2[:, None], flat_part * sin2[:, None], height**2])
    squares = (axes**2)[:, None, None]
    g = np.sqrt((s2 / squares).sum(axis=0))
    volume = a * b * c
    mean = ((axes**2).sum() - (s2 * squares).sum(axis=0)) / (volume**2 * g**3)  # sum of the principal curvatures
    gauss = 1 / (volume**2 * g**4)
    area = 8 * volume * g * weight  # eight octants

    def over_thickness(power: int) -> np.ndarray:
        """Integral of t^power (1 + t mean + t^2 gauss) from 0 to r."""
        second, third = (f * r ** (power + k) / (power + k) for k, f in ((2, mean), (3, gauss)))
        return r ** (power + 1) / (power + 1) + second + third

    zero, one, two = (over_thickness(p) for p in range(3))
    second = s2 * squares * zero + 2 * s2 / g * one + s2 / squares / g**2 * two  # (x + t n)^2
    return np.array([(area * zero).sum(), *(area * second).sum(axis=(1, 2))])


_MOMENTS: dict[type, Callable[..., Moments]] = {
    Box: _polytope,
    ConvexHull: _polytope,
    Cylinder: _cylinder,
    Cone: _cone,
    Ellipsoid: _ellipsoid,
}
