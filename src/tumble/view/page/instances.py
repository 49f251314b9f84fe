"""Shapes as copies of a few meshes, which a browser draws quickly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...enums import BodyKind, ShapeKind, ShapeTrait
from ...scene import rotation
from ..geometry import world_shapes
from ..snapshot import Snapshot
from ..tessellate import patches_of

__all__ = ["Group", "groups_of", "placed"]

UNIT = np.array([[1.0, 1.0, 1.0, 0.0]])
MOST_GROUPS = 64
"""Of shapes of a kind that differ in more than size; more are drawn as one shape stretched to their boxes"""
FINE, COARSE = 20, 8
"""Segments of a full turn, for few and for many bodies"""
MANY = 30_000
FEW = 3000
"""Bodies from which curved shapes have few segments"""
POINTS_FROM = 60_000
"""Spheres that are drawn as points"""

SCALED = (ShapeKind.BOX, ShapeKind.CYLINDER, ShapeKind.CONE, ShapeKind.ELLIPSOID)
"""Kinds whose sharp shapes are one mesh in different sizes."""


@dataclass(frozen=True)
class Group:
    """k shapes with the same mesh."""

    part: str
    """bodies, walls or ground"""
    kind: ShapeKind
    shape: np.ndarray
    """(k,) indices in the model"""
    body: np.ndarray
    """(k,)"""
    place: np.ndarray
    """(k, 3) in the user's frames of the bodies [m]"""
    turn: np.ndarray
    """(k, 4)"""
    scale: np.ndarray
    """(k, 3)"""
    vertex: np.ndarray
    """(v, 3), (0, 3) for points"""
    triangle: np.ndarray
    plain: bool
    """A sphere: how it is turned cannot be seen"""

    @property
    def as_points(self) -> bool:
        """Whether these are drawn as points."""
        return not len(self.vertex)


def groups_of(shot: Snapshot) -> list[Group]:
    """All shapes of finite size in groups."""
    model = shot.model
    kind = np.asarray(model.shape_kind)
    part = _parts(shot)
    finite = np.flatnonzero(kind != ShapeKind.HALF_SPACE)
    turns = COARSE if len(finite) > MANY else 12 if len(finite) > FEW else FINE
    found = []
    for name in ("bodies", "walls", "ground"):
        for which in np.unique(kind[finite]):
            chosen = finite[(kind[finite] == which) & (part[finite] == name)]
            if len(chosen):
                found += _of_kind(model, name, ShapeKind(int(which)), chosen, turns)
    return found


def _parts(shot: Snapshot) -> np.ndarray:
    shapes = world_shapes(shot.model, shot.position, shot.orientation)
    dynamic = np.asarray(shot.model.body_kind)[shapes.body] == BodyKind.DYNAMIC
    out = np.where(dynamic, "bodies", "walls")
    out[shapes.ground & ~dynamic] = "ground"
    return out


def _of_kind(model: Any, part: str, kind: ShapeKind, chosen: np.ndarray, turns: int) -> list[Group]:
    """Shapes that are one mesh in different sizes are one group."""
    parameters = np.asarray(model.shape_parameters, float)[chosen]
    entry = np.asarray(model.shape_geometry)[chosen]
    rounded = parameters[:, 3] > 0.0
    if kind == ShapeKind.SPHERE:
        as_points = part == "bodies" and len(chosen) > POINTS_FROM
        return [_group(model, part, kind, chosen, np.repeat(parameters[:, 3:], 3, axis=1), turns, as_points)]
    if kind in SCALED:
        found = []
        sharp = chosen[~rounded]
        if len(sharp):
            found.append(_group(model, part, kind, sharp, parameters[~rounded, :3], turns))
        return found + _alike(model, part, kind, chosen[rounded], turns, parameters[rounded])
    return _alike(model, part, kind, chosen, turns, np.column_stack([parameters, entry]))


def _alike(model: Any, part: str, kind: ShapeKind, chosen: np.ndarray, turns: int, keys: np.ndarray) -> list[Group]:
    if not len(chosen):
        return []
    unique, number = np.unique(keys, axis=0, return_inverse=True)
    number = number.reshape(-1)
    if len(unique) > MOST_GROUPS and kind in (*SCALED, ShapeKind.CAPSULE):
        parameters = np.asarray(model.shape_parameters, float)[chosen]
        half = parameters[:, :3] + parameters[:, 3:]
        stand_in = ShapeKind.ELLIPSOID if kind == ShapeKind.CAPSULE else kind
        return [_group(model, part, stand_in, chosen, half, turns)]
    return [_group(model, part, kind, chosen[number == k], None, turns) for k in range(len(unique))]


def _group(
    model: Any,
    part: str,
    kind: ShapeKind,
    chosen: np.ndarray,
    scale: np.ndarray | None,
    turns: int,
    as_points: bool = False,
) -> Group:
    """scale: of a shape of unit size; None: the first one's own mesh."""
    entry = np.asarray(model.shape_geometry)[chosen[:1]]
    own = np.asarray(model.shape_parameters, float)[chosen[:1]]
    parameters = own if scale is None else np.array([[0.0, 0.0, 0.0, 1.0]]) if kind == ShapeKind.SPHERE else UNIT
    arc = max(1, turns // 6) if ShapeTrait.CONVEX in kind.traits and parameters[0, 3] > 0.0 else 0
    if kind in (ShapeKind.SPHERE, ShapeKind.CAPSULE):
        arc = max(2, turns // 4)
    mesh = patches_of(kind, parameters, entry, model.geometry, turns, arc)
    body = np.asarray(model.shape_body)[chosen]
    axes, center = np.asarray(model.body_axes)[body], np.asarray(model.body_center)[body]
    return Group(
        part,
        kind,
        chosen,
        body,
        rotation.rotate(axes, np.asarray(model.shape_position)[chosen]) + center,
        rotation.multiply(axes, np.asarray(model.shape_orientation)[chosen]),
        np.ones((len(chosen), 3)) if scale is None else scale,
        mesh.point[:0] if as_points else mesh.point,
        mesh.triangle[:0] if as_points else mesh.triangle,
        kind == ShapeKind.SPHERE,
    )


def placed(group: Group, shot: Snapshot, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Positions (k, 3) from an origin and orientations (k, 4) of a group's shapes, in single precision; None where
    they cannot be seen."""
    body, orientation = group.body, shot.orientation[group.body]
    position = shot.position[body] - origin
    if np.any(group.place):
        position = position + rotation.rotate(orientation, group.place)
    turn = None if group.plain else rotation.multiply(orientation, group.turn).astype(np.float32)
    return position.astype(np.float32), turn
