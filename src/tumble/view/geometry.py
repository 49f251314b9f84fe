"""Shapes in world axes: where they are, how large, and which of them would hide what is worth looking at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .. import checks
from ..backends.shape_arrays import Geometry
from ..enums import BodyKind, ShapeKind
from ..errors import OptionsError
from ..scene import rotation
from ..scene.shapes import REVOLVED

__all__ = ["Shapes", "containers", "corners_of", "glass_plates", "outline_of", "world_shapes"]

OUTLINE = 1000
"""Points that are enough for the outline of a mesh."""
LEVEL = 0.75
"""Mean height of the unit normals of an open mesh from which on it is ground."""


@dataclass(frozen=True)
class Shapes:
    """Shapes (m of them) in world axes [m]."""

    kind: np.ndarray
    body: np.ndarray
    parameters: np.ndarray
    """(m, 4), see `Model.shape_parameters`"""
    entry: np.ndarray
    """(m,) number in `geometry`, or -1"""
    geometry: Geometry
    origin: np.ndarray
    """(m, 3) of the shapes' frames"""
    turn: np.ndarray
    """(m, 3, 3) columns are the shape's axes"""
    moves: np.ndarray
    """(m,) whether the body is dynamic"""
    static: np.ndarray
    """(m,) whether it stays where it is"""
    half: np.ndarray
    """(m, 3) half-extents of the bounding box along the shape's axes, 0 for half-spaces"""
    center: np.ndarray
    """(m, 3) middle of the bounding box"""
    bound: np.ndarray
    """(m,) radius of a sphere about `center` that holds the shape, 0 for half-spaces"""
    ground: np.ndarray
    """(m,) what is painted as ground: height fields, and open meshes of bodies that are not dynamic, mostly level"""

    def only(self, chosen: np.ndarray) -> Shapes:
        """Some of them (m,) bool."""
        arrays = {f.name: getattr(self, f.name)[chosen] for f in fields(self) if f.name != "geometry"}
        return replace(self, **arrays)

    @staticmethod
    def together(several: Sequence[Shapes]) -> Shapes:
        """All shapes of several frames of a run."""
        names = [f.name for f in fields(Shapes) if f.name != "geometry"]
        return replace(several[0], **{n: np.concatenate([getattr(s, n) for s in several]) for n in names})

    @property
    def finite(self) -> np.ndarray:
        """(m,) all but half-spaces."""
        return self.kind != ShapeKind.HALF_SPACE


def world_shapes(model: Any, position: Any, orientation: Any, present: Any = None) -> Shapes:
    """All shapes of bodies at position (n, 3) [m] and orientation (n, 4), or of those in `present` (n,) bool."""
    count = len(model.body_kind)
    position = checks.array("render.position", position, (count, 3), error=OptionsError)
    orientation = checks.quaternions("render.orientation", orientation, count, error=OptionsError)
    place = position + rotation.rotate(orientation, model.body_center)
    axes = rotation.multiply(orientation, model.body_axes)
    here = slice(None) if present is None else np.asarray(present, bool)[model.shape_body]
    body, kind = np.asarray(model.shape_body)[here], np.asarray(model.shape_kind)[here]
    parameters, entry = np.asarray(model.shape_parameters, float)[here], np.asarray(model.shape_geometry)[here]
    origin = place[body] + rotation.rotate(axes[body], model.shape_position[here])
    turn = rotation.matrix(rotation.multiply(axes[body], model.shape_orientation[here]))
    low, high = _boxes(kind, parameters, entry, model.geometry)
    half = (high - low) / 2
    moves = np.asarray(model.body_kind)[body] == BodyKind.DYNAMIC
    return Shapes(
        kind,
        body,
        parameters,
        entry,
        model.geometry,
        origin,
        turn,
        moves,
        np.asarray(model.body_kind)[body] == BodyKind.STATIC,
        half,
        origin + np.einsum("kij,kj->ki", turn, (low + high) / 2),
        _bounds(kind, parameters, half),
        _grounds(kind, parameters, entry, model.geometry, turn, moves),
    )


def _boxes(
    kind: np.ndarray, parameters: np.ndarray, entry: np.ndarray, geometry: Geometry
) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest corners (m, 3) of the shapes in their own frames."""
    high = parameters[:, :3] + parameters[:, 3:]
    tubes = np.isin(kind, tuple(REVOLVED))
    high[tubes, :2] = _widest(kind, parameters)[tubes, None] + parameters[tubes, 3:]
    high[kind == ShapeKind.HALF_SPACE] = 0.0
    low = -high
    for which, boxes in (
        (ShapeKind.HULL, _hull_boxes),
        (ShapeKind.MESH, _mesh_boxes),
        (ShapeKind.HEIGHT_FIELD, _field_boxes),
    ):
        rows = np.flatnonzero(kind == which)
        if rows.size:
            low[rows], high[rows] = boxes(parameters[rows], entry[rows], geometry)
    return low, high


def _widest(kind: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Larger end radius (m,) of solids of revolution."""
    out = np.zeros(len(kind))
    for which, shape in REVOLVED.items():
        rows = np.flatnonzero(kind == which)
        out[rows] = np.maximum(*shape.end_radii(parameters[rows]))
    return out


def _hull_boxes(parameters: np.ndarray, entry: np.ndarray, geometry: Geometry) -> tuple[np.ndarray, np.ndarray]:
    first, rounding = geometry.hull_start[:-1], parameters[:, 3:]
    low = np.minimum.reduceat(geometry.hull_point, first)[entry]
    return low - rounding, np.maximum.reduceat(geometry.hull_point, first)[entry] + rounding


def _mesh_boxes(_: np.ndarray, entry: np.ndarray, geometry: Geometry) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.empty((len(entry), 3)), np.empty((len(entry), 3))
    for mesh in np.unique(entry):
        used = geometry.mesh_triangle[geometry.mesh_start[mesh] : geometry.mesh_start[mesh + 1]]
        point = geometry.mesh_point[used.min() : used.max() + 1]
        low[entry == mesh], high[entry == mesh] = point.min(axis=0), point.max(axis=0)
    return low, high


def _field_boxes(parameters: np.ndarray, entry: np.ndarray, geometry: Geometry) -> tuple[np.ndarray, np.ndarray]:
    side = parameters[:, :2] * (geometry.field_shape[entry] - 1) / 2
    return np.hstack([-side, parameters[:, 2:3]]), np.hstack([side, parameters[:, 3:]])


def _bounds(kind: np.ndarray, parameters: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Radii (m,) of bounding spheres about the middles of the boxes."""
    out = np.linalg.norm(half, axis=1)
    r = parameters[:, 3]
    round_ends = np.isin(kind, (ShapeKind.SPHERE, ShapeKind.CAPSULE, ShapeKind.ELLIPSOID))
    out[round_ends] = half[round_ends].max(axis=1)
    tubes = np.isin(kind, tuple(REVOLVED))
    out[tubes] = np.hypot(_widest(kind, parameters)[tubes], parameters[tubes, 2]) + r[tubes]
    boxes = kind == ShapeKind.BOX
    out[boxes] = np.linalg.norm(parameters[boxes, :3], axis=1) + r[boxes]
    return out


def corners_of(shapes: Shapes, chosen: np.ndarray) -> np.ndarray:
    """Corners (k, 8, 3) of the bounding boxes of some shapes."""
    signs = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, 8).T
    arms = signs * shapes.half[chosen, None, :]
    return shapes.center[chosen, None, :] + np.einsum("kij,kcj->kci", shapes.turn[chosen], arms)


def outline_of(shapes: Shapes, chosen: np.ndarray) -> np.ndarray:
    """Points (k, 3) about as far out as some shapes: a few of a fixed mesh's own, corners of boxes for the others."""
    own = (shapes.kind[chosen] == ShapeKind.MESH) & ~shapes.moves[chosen]
    parts = [corners_of(shapes, chosen[~own]).reshape(-1, 3)]
    for shape in chosen[own]:
        geometry, entry = shapes.geometry, shapes.entry[shape]
        first, last = geometry.mesh_start[entry], geometry.mesh_start[entry + 1]
        triangle = geometry.mesh_triangle[first : last : max(1, (last - first) // OUTLINE)]
        parts.append(shapes.origin[shape] + geometry.mesh_point[triangle[:, 0]] @ shapes.turn[shape].T)
    return np.concatenate(parts)


def _grounds(
    kind: np.ndarray, parameters: np.ndarray, entry: np.ndarray, geometry: Geometry, turn: np.ndarray, moves: np.ndarray
) -> np.ndarray:
    """See `Shapes.ground`."""
    out = kind == ShapeKind.HEIGHT_FIELD
    for shape in np.flatnonzero((kind == ShapeKind.MESH) & ~moves & (parameters[:, 0] > 0.0)):
        normal = geometry.mesh_normal[geometry.mesh_start[entry[shape]] : geometry.mesh_start[entry[shape] + 1]]
        out[shape] = np.abs(normal @ turn[shape, 2]).mean() > LEVEL
    return out


def glass_plates(shapes: Shapes, eye: np.ndarray, focus: np.ndarray) -> np.ndarray:
    """Plates (m,) of bodies that are not dynamic and stand between the eye and the focus (3,)."""
    rows = np.arange(len(shapes.kind))
    order = np.argsort(shapes.half, axis=1)
    thin = shapes.half[rows, order[:, 0]] < 0.25 * shapes.half[rows, order[:, 1]]
    normal = shapes.turn[rows, :, order[:, 0]]
    sides = np.einsum("ij,ij->i", normal, eye - shapes.center) * np.einsum("ij,ij->i", normal, focus - shapes.center)
    return (shapes.kind == ShapeKind.BOX) & ~shapes.moves & thin & (sides < 0.0)


def containers(shapes: Shapes, focus: np.ndarray) -> np.ndarray:
    """Meshes (m,) of bodies that are not dynamic, no ground, with the focus (3,) inside their bounding boxes."""
    local = np.einsum("kij,ki->kj", shapes.turn, focus - shapes.center)
    inside = np.all(np.abs(local) < shapes.half, axis=1)
    return (shapes.kind == ShapeKind.MESH) & ~shapes.moves & ~shapes.ground & inside
