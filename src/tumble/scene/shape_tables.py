"""Shapes from the tables of a scene file."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import SceneError, message
from .height_fields import HeightField
from .hulls import ConvexHull
from .meshes import Mesh
from .primitives import drum, funnel, hopper, screw
from .rounded import Rounded
from .shape import Shape
from .shapes import PLAIN

__all__ = ["ShapeReader", "either"]

TYPES: dict[str, Any] = {**{shape.key: shape for shape in PLAIN}, "hull": ConvexHull}
"""Types whose keys are the fields of a class."""
MADE: dict[str, Any] = {"funnel": funnel, "hopper": hopper, "drum": drum, "screw": screw}
"""Types whose keys are the arguments of a function."""
PLACE = ("position", "orientation", "rotation", "material")
"""Keys that say where a shape is, not what it is."""


@dataclass
class ShapeReader:
    """Makes shapes of a scene file; equal tables become the same object, so that bodies share their arrays."""

    folder: Path
    """Files are named relative to this one."""
    made: dict[str, Shape] = field(default_factory=dict)

    def shape(self, row: dict[str, Any]) -> Shape:
        """The shape that a table describes."""
        own = {key: value for key, value in row.items() if key not in PLACE}
        key = repr(sorted(own.items()))
        if key not in self.made:
            self.made[key] = self._make(**own)
        return self.made[key]

    def _make(self, *, type: str, rounding: float | None = None, **own: Any) -> Shape:
        if type in TYPES:
            kind = TYPES[type]
            made = kind(**{f.name: own[f.name] for f in fields(kind) if f.name in own})
        elif type in MADE:
            made = MADE[type](**own)
        else:
            made = {"mesh": self._mesh, "height_field": self._height_field}[type](**own)
        if rounding is None:
            return made
        remedy = "Leave it out for sharp edges."
        return Rounded(made, checks.number("rounding", rounding, above=0.0, unit="m", remedy=remedy, error=SceneError))

    def _mesh(self, *, convex: bool = False, **own: Any) -> Shape:
        either(own, "file", "vertices")
        if "file" in own:
            _refuse(own, "file", "triangles")
            mesh = Mesh.load(self.folder / own.pop("file"), **own)
        else:
            _refuse(own, "vertices", "scale", "unit")
            mesh = _listed_mesh(**own)
        return mesh.convex_hull() if convex else mesh

    def _height_field(self, *, size: Any, **own: Any) -> HeightField:
        either(own, "heights", "image")
        if "heights" in own:
            _refuse(own, "heights", "low", "high")
            return HeightField(own["heights"], size)
        for key in ("low", "high"):
            if key not in own:
                raise SceneError(message(key, "is required with image", "nothing", "Add this key."))
        return HeightField.from_image(self.folder / own["image"], size, own["low"], own["high"])


def _listed_mesh(*, vertices: Any, triangles: Any = None, clean: bool = False, cavity: bool = False) -> Mesh:
    if triangles is None:
        raise SceneError(message("triangles", "is required with vertices", "nothing", "Add this key."))
    return (Mesh.cleaned if clean else Mesh)(vertices, triangles, cavity=cavity)


def _refuse(row: dict[str, Any], key: str, *others: str) -> None:
    """Keys that make no sense together with a key."""
    for other in others:
        if other in row:
            raise SceneError(message(other, f"does not go with {key}", checks.short(row[other]), "Leave it out."))


def either(row: dict[str, Any], a: str, b: str) -> None:
    """Exactly one of two keys."""
    if (a in row) == (b in row):
        raise SceneError(
            message(a, f"needs either {a} or {b}", "both" if a in row else "neither", "Give exactly one of them.")
        )
