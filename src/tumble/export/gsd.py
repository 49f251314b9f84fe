"""For OVITO, HOOMD and freud: a particle for each shape, in GSD files of the schema hoomd."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..enums import ShapeKind
from ..scene import rotation
from .run import Plan
from .source import Frame, Source, needed
from .surfaces import shape_triangles

__all__ = ["WRITERS"]


class Gsd:
    """Single precision, as the format has it. Half-spaces, which it cannot draw, are left out."""

    def __init__(self, source: Source, plan: Plan, places: Mapping[Path, Path]) -> None:
        self._hoomd = needed("gsd.hoomd", "gsd", "gsd")
        self._source = source
        self._drawn = source.kind != ShapeKind.HALF_SPACE
        self._types, self._kind = _types(source, plan.segments)
        self._box = 2.0 * source.reach(plan.frames)
        self._file = self._hoomd.open(str(places[plan.out]), "w")

    @staticmethod
    def paths(source: Source, plan: Plan) -> list[Path]:
        """One file."""
        return [plan.out]

    def add(self, frame: Frame) -> None:
        """One more frame; absent bodies are not in it."""
        source, out = self._source, self._hoomd.Frame()
        rows = np.flatnonzero(self._drawn & frame.present[source.owner])
        owner = source.owner[rows]
        place, turn = (array[rows] for array in source.placed(frame))
        out.configuration.step = frame.step
        out.configuration.box = [self._box] * 3 + [0, 0, 0]
        out.configuration.dimensions = 3
        p = out.particles
        p.N = len(rows)
        if self._types:  # half-spaces alone are no particles, and no type of any
            p.types, p.type_shapes = [t[0] for t in self._types], [t[1] for t in self._types]
        p.typeid, p.body = self._kind[rows], source.bodies[owner]
        p.position, p.orientation = place, turn
        # In single precision, or the library would not see that they are those of the first frame.
        p.diameter = (2.0 * source.bound[rows]).astype(np.float32)
        p.mass = np.where(source.mass > 0.0, source.mass, 1.0)[owner].astype(np.float32)
        if frame.velocity is not None:
            p.velocity = self._velocity(frame, frame.velocity, rows, place)
        out.log["time"] = np.array([frame.time])
        if frame.angular_velocity is not None:
            out.log["particles/angular_velocity"] = frame.angular_velocity[owner].astype(np.float32)
        for name, values in frame.contacts.items():
            if len(values):
                out.log[f"contacts/{name}"] = values.astype(np.float32) if values.dtype.kind == "f" else values
        self._file.append(out)

    def _velocity(self, frame: Frame, velocity: np.ndarray, rows: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Of the shapes' origins, which are not all centres of mass (m, 3)."""
        source, owner = self._source, self._source.owner[rows]
        if frame.angular_velocity is None:
            return velocity[owner]
        body = source.bodies
        center = frame.position + rotation.rotate(frame.orientation, source.model.body_center[body])
        return velocity[owner] + np.cross(frame.angular_velocity[owner], place - center[owner])

    def finish(self) -> None:
        """Close the file."""
        self._file.close()


def _types(source: Source, segments: int) -> tuple[list[tuple[str, dict[str, Any]]], np.ndarray]:
    """Names and shapes of the types of particles, and the type of each shape (s,). Spheres of all sizes are one, since
    particles have diameters."""
    found: dict[tuple, int] = {}
    types: list[tuple[str, dict[str, Any]]] = []
    kind = np.zeros(len(source.shapes), np.uint32)
    for s, (k, parameters, entry) in enumerate(zip(source.kind, source.parameters, source.entry)):
        key = (int(k),) if k == ShapeKind.SPHERE else (int(k), int(entry), *parameters.tolist())
        if k == ShapeKind.HALF_SPACE:
            continue
        if key not in found:
            found[key] = len(types)
            word = ShapeKind(int(k)).name.lower()
            number = sum(name.startswith(word) for name, _ in types)
            types.append((f"{word}{number or ''}", _shape(source, s, segments)))
        kind[s] = found[key]
    return types, kind


def _shape(source: Source, s: int, segments: int) -> dict[str, Any]:
    """As the schema says it."""
    kind, parameters = ShapeKind(int(source.kind[s])), source.parameters[s]
    if kind == ShapeKind.SPHERE:
        return {}
    if kind == ShapeKind.ELLIPSOID and parameters[3] == 0.0:
        return dict(zip("abc", parameters[:3].tolist()), type="Ellipsoid")
    point, _, triangle, _ = shape_triangles(source, np.array([s]), segments)
    return {"type": "Mesh", "vertices": point.tolist(), "indices": triangle.tolist()}


WRITERS = {"gsd": Gsd}
