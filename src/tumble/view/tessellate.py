"""Triangles of collision shapes, one function a kind, from kind, parameters and the model's pooled geometry."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..backends.shape_arrays import Geometry
from ..enums import ShapeKind, ShapeTrait
from ..errors import OptionsError, message
from ..kernels.convex import Convex, support
from ..kernels.jit import interpreted
from ..scene import rotation
from ..scene.shapes import REVOLVED
from .polytopes import CUBE, Skins, hulls_of, rounded_skins, sharp_skins
from .ragged import ranges, starts
from .revolved import Surfaces, capsules, ellipsoids, frusta
from .smooth import creased
from .terrain import field_surface, skirt

__all__ = ["Patches", "patches_of", "triangles_of"]

ROUND = {ShapeKind.SPHERE: capsules, ShapeKind.CAPSULE: capsules, ShapeKind.ELLIPSOID: ellipsoids}
FLAT = (ShapeKind.BOX, ShapeKind.HULL)
SKIRT = 0.04
"""Depth of the walls below a drawn height field over its larger side."""


class Patches(NamedTuple):
    """Surfaces of several shapes of one kind, each in its own frame."""

    point: np.ndarray
    """(v, 3) [m]"""
    normal: np.ndarray | None
    """(v, 3) outward unit normals; None where each triangle is flat by itself"""
    triangle: np.ndarray
    """(t, 3) int64 points, counter-clockwise from outside"""
    point_row: np.ndarray
    """(v,) which of the shapes a point belongs to"""
    triangle_row: np.ndarray
    """(t,)"""


def triangles_of(model: Any, shape_index: int, *, segments: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (k, 3) [m] and triangles (t, 3) of one shape in the frame of its body as the user gave it.

    model: a `Model` or the `model` of a `Trajectory`. Triangles are counter-clockwise seen from outside and share
    their vertices; those of a solid are closed. segments: of a full turn where the surface is curved; vertices lie on
    the surface, and the error of the volume falls with the square of segments. Meshes and height fields are given as
    they are; a half-space has no triangles.
    """
    shape = checks.integer("triangles_of.shape_index", shape_index, at_least=0)
    turns = checks.integer("triangles_of.segments", segments, at_least=4)
    if shape >= len(model.shape_kind):
        raise OptionsError(
            message(
                "triangles_of.shape_index",
                f"must be below the number of shapes, {len(model.shape_kind)}",
                shape,
                "Count shapes from 0.",
            )
        )
    kind = ShapeKind(int(model.shape_kind[shape]))
    if kind == ShapeKind.HALF_SPACE:
        raise OptionsError(
            message("triangles_of.shape_index", "must be a shape of finite size", f"{shape}, a half-space", "Skip it.")
        )
    parameters = np.asarray(model.shape_parameters, float)[shape : shape + 1]
    entry = np.asarray(model.shape_geometry)[shape : shape + 1]
    arc = max(1, turns // 4) if ShapeTrait.CONVEX in kind.traits and parameters[0, 3] > 0.0 else 0
    patch = patches_of(kind, parameters, entry, model.geometry, turns, arc)
    is_round = ShapeTrait.CONVEX in kind.traits and kind not in FLAT
    vertices, triangles = _welded(patch) if is_round else (patch.point, patch.triangle)
    body = int(model.shape_body[shape])
    vertices = rotation.rotate(model.shape_orientation[shape], vertices) + model.shape_position[shape]
    return rotation.rotate(model.body_axes[body], vertices) + model.body_center[body], triangles


def patches_of(
    kind: ShapeKind,
    parameters: np.ndarray,
    entry: np.ndarray,
    geometry: Geometry,
    turns: int,
    arc: int,
    *,
    smooth: bool = False,
) -> Patches:
    """Surfaces of k shapes of a kind with parameters (k, 4) and entries (k,) in the pool.

    turns: segments of a full turn; arc: segments across a rounded edge, 0 for sharp ones. smooth: for pictures, with
    normals of meshes and height fields, points doubled at creases, and walls below a height field. All shapes must be
    of one entry for meshes and height fields.
    """
    if kind in ROUND:
        return _repeated(ROUND[kind](parameters, turns, arc))
    if kind in REVOLVED:
        return _repeated(frusta(*REVOLVED[kind].end_radii(parameters), parameters, turns, arc))
    if kind in FLAT:
        return _polytopes(kind, parameters, entry, geometry, arc)
    if ShapeTrait.CONVEX in kind.traits:
        return _repeated(supported(kind, parameters, turns))
    one = (_mesh if kind == ShapeKind.MESH else _field)(parameters[0], int(entry[0]), geometry, smooth)
    count = len(parameters)
    return _repeated(
        Surfaces(np.tile(one[0], (count, 1, 1)), np.tile(one[1], (count, 1, 1)) if smooth else None, one[2])
    )


def supported(kind: ShapeKind, parameters: np.ndarray, turns: int) -> Surfaces:
    """Convex solids of any kind without a pool: the points that are farthest in directions all round."""
    ball = ellipsoids(np.array([[1.0, 1.0, 1.0, 0.0]]), turns, 0)
    direction = np.where(np.abs(ball.point[0]) > 1e-12, ball.point[0], 0.0)  # the points at a pole are one
    farthest, none = interpreted(support), np.zeros((0, 3))
    own, which = np.unique(parameters, axis=0, return_inverse=True)
    solids = [Convex(np.int64(kind), tuple(s), np.int64(0)) for s in own]
    core = np.array([[farthest(solid, none, none, d) for d in direction] for solid in solids])[which.ravel()]
    point = core + parameters[:, None, 3:] * direction
    return Surfaces(point, np.broadcast_to(direction, point.shape), ball.triangle)


def _repeated(surfaces: Surfaces) -> Patches:
    """Surfaces with the same triangles, one after the other."""
    count, points = surfaces.point.shape[:2]
    rows = np.arange(count)
    triangle = surfaces.triangle + (points * rows)[:, None, None]
    return Patches(
        surfaces.point.reshape(-1, 3),
        None if surfaces.normal is None else surfaces.normal.reshape(-1, 3),
        triangle.reshape(-1, 3),
        np.repeat(rows, points),
        np.repeat(rows, len(surfaces.triangle)),
    )


def _polytopes(kind: ShapeKind, parameters: np.ndarray, entry: np.ndarray, geometry: Geometry, arc: int) -> Patches:
    """Boxes or hulls; the normals of rounded ones are the directions from their cores."""
    if kind == ShapeKind.BOX:
        polytopes, slot, scale = CUBE, np.zeros(len(entry), np.int64), parameters[:, :3]
    else:
        used, slot = np.unique(entry, return_inverse=True)
        polytopes, scale = hulls_of(geometry, used), np.ones((len(entry), 3))
    skins: Skins = rounded_skins(polytopes, arc) if arc else sharp_skins(polytopes)
    count = np.diff(skins.start)[slot]
    row, place = ranges(skins.start[slot], count)
    triangle_row, number = ranges(skins.triangle_start[slot], np.diff(skins.triangle_start)[slot])
    point = skins.point[place] * scale[row]
    normal = None if skins.normal is None else skins.normal[place]
    if normal is not None:
        point += parameters[row, 3:] * normal
    shift = starts(count)[:-1] - skins.start[slot]
    return Patches(point, normal, skins.triangle[number] + shift[triangle_row, None], row, triangle_row)


def _mesh(_: np.ndarray, entry: int, geometry: Geometry, smooth: bool) -> tuple[np.ndarray, ...]:
    rows = slice(int(geometry.mesh_start[entry]), int(geometry.mesh_start[entry + 1]))
    triangle = geometry.mesh_triangle[rows]
    first = int(triangle.min())
    point = geometry.mesh_point[first : int(triangle.max()) + 1]
    triangle = triangle - first
    if not smooth:
        return point, np.zeros((0, 3)), triangle
    opposite = geometry.mesh_opposite[rows]
    return creased(point, triangle, geometry.mesh_normal[rows], np.where(opposite < 0, -1, opposite - first))


def _field(parameters: np.ndarray, entry: int, geometry: Geometry, smooth: bool) -> tuple[np.ndarray, ...]:
    rows, columns = (int(n) for n in geometry.field_shape[entry])
    shape = rows, columns
    height = geometry.field_height[geometry.field_start[entry] : geometry.field_start[entry + 1]].reshape(shape)
    top = field_surface(height, parameters[0], parameters[1])
    if not smooth:
        return top
    depth = SKIRT * max(parameters[0] * (shape[0] - 1), parameters[1] * (shape[1] - 1))
    sides = skirt(top[0], shape, depth)
    return (
        np.concatenate([top[0], sides[0]]),
        np.concatenate([top[1], sides[1]]),
        np.concatenate([top[2], sides[2] + len(top[0])]),
    )


def _welded(patch: Patches) -> tuple[np.ndarray, np.ndarray]:
    """One vertex for points that are equal up to rounding, without triangles that then have two equal corners."""
    size = np.ptp(patch.point, axis=0).max()
    place = np.round(patch.point / (1e-12 * size))
    _, first, number = np.unique(place, axis=0, return_index=True, return_inverse=True)
    triangle = number.reshape(-1)[patch.triangle]
    a, b, c = triangle.T
    return patch.point[first], triangle[(a != b) & (b != c) & (c != a)].astype(np.int64)
