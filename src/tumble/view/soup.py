"""Shapes of a picture as triangles, as fine as their size in the picture asks for."""

from __future__ import annotations

import numpy as np

from ..enums import ShapeKind, ShapeTrait
from .camera import View, turned
from .geometry import Shapes
from .tessellate import Patches, patches_of
from .triangles import Soup

__all__ = ["Tessellator"]

TURNS = np.array([8, 12, 16, 24, 32, 48, 64, 96, 128])
"""Segments of a full turn to choose from."""
ARCS = np.array([1, 2, 3, 4, 6, 8])
"""Segments across a rounded edge to choose from."""
TURNS_PER_ROOT, ARCS_PER_ROOT = 4.4, 0.9
"""Segments for a radius of one pixel; the sagitta is then about a quarter of a pixel for any radius."""
CONVEX, CURVED, SURFACES = map(ShapeKind.having, (ShapeTrait.CONVEX, ShapeTrait.CURVED, ShapeTrait.SURFACE))


class Tessellator:
    """Triangles of shapes; those of meshes and height fields are kept for the next view."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self._kept: dict[tuple[int, int], Patches] = {}

    def count(self) -> np.ndarray:
        """Roughly how many triangles (m,) a shape has."""
        shapes, geometry = self.shapes, self.shapes.geometry
        out = np.full(len(shapes.kind), 400)
        for kind, sizes in (
            (ShapeKind.HULL, 4 * np.diff(geometry.face_loop_start[geometry.hull_face_start])),
            (ShapeKind.MESH, np.diff(geometry.mesh_start)),
            (ShapeKind.HEIGHT_FIELD, 2 * np.diff(geometry.field_start)),
        ):
            rows = np.flatnonzero(shapes.kind == kind)
            out[rows] = sizes[shapes.entry[rows]]
        return out

    def soup(self, view: View, chosen: np.ndarray) -> Soup:
        """Triangles of the chosen shapes (k,)."""
        shapes = self.shapes
        turns, arc = self._levels(view, chosen)
        kind = shapes.kind[chosen].astype(np.int64)
        alone = np.where(np.isin(kind, SURFACES), shapes.entry[chosen], -1)
        keys, group = np.unique(np.stack([kind, alone, turns, arc], axis=1), axis=0, return_inverse=True)
        parts = [
            self._part(view, ShapeKind(int(key[0])), int(key[2]), int(key[3]), chosen[group.reshape(-1) == number])
            for number, key in enumerate(keys)
        ]
        first = np.cumsum([0] + [len(p.point) for p in parts])
        triangle = [p.triangle + f for p, f in zip(parts, first)]
        return Soup(
            np.concatenate([p.point for p in parts]),
            np.concatenate([p.normal for p in parts]),
            np.concatenate(triangle),
            np.concatenate([p.shape for p in parts]),
            np.concatenate([p.two_sided for p in parts]),
        )

    def _levels(self, view: View, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Segments of a turn and across a rounded edge (k,), 0 for what does not bend."""
        shapes = self.shapes
        kind, bound = shapes.kind[chosen], shapes.bound[chosen]
        distance = np.maximum(view.local(shapes.center[chosen])[:, 2], bound)
        pixels = view.focal / distance
        turns = _at_least(TURNS, TURNS_PER_ROOT * np.sqrt(bound * pixels))
        rounding = np.where(np.isin(kind, CONVEX), shapes.parameters[chosen, 3], 0.0)
        arc = np.where(rounding > 0.0, _at_least(ARCS, ARCS_PER_ROOT * np.sqrt(rounding * pixels)), 0)
        ends = (kind == ShapeKind.SPHERE) | (kind == ShapeKind.CAPSULE)
        curved = ends | np.isin(kind, CURVED)
        return np.where(curved, turns, 0), np.where(ends, np.maximum(turns // 4, 1), arc)

    def _part(self, view: View, kind: ShapeKind, turns: int, arc: int, chosen: np.ndarray) -> Soup:
        """Triangles of shapes of one kind and level."""
        shapes = self.shapes
        patch = self._patches(kind, turns, arc, chosen)
        turn = shapes.turn[chosen]
        origin = view.local(shapes.origin[chosen])
        return Soup(
            _turned(patch.point, view.axes @ turn, patch.point_row) + origin[patch.point_row],
            np.zeros(patch.point.shape, np.float32)
            if patch.normal is None
            else _turned(patch.normal.astype(np.float32), turn.astype(np.float32), patch.point_row),
            patch.triangle,
            chosen[patch.triangle_row].astype(np.int32),
            (np.isin(shapes.kind[chosen], SURFACES) & ~shapes.moves[chosen])[patch.triangle_row],
        )

    def _patches(self, kind: ShapeKind, turns: int, arc: int, chosen: np.ndarray) -> Patches:
        shapes = self.shapes
        parameters, entry = shapes.parameters[chosen], shapes.entry[chosen]
        if kind not in SURFACES or len(chosen) > 1:
            return patches_of(kind, parameters, entry, shapes.geometry, turns, arc, smooth=True)
        key = int(kind), int(entry[0])
        if key not in self._kept:
            self._kept[key] = patches_of(kind, parameters, entry, shapes.geometry, turns, arc, smooth=True)
        return self._kept[key]


def _turned(vectors: np.ndarray, matrix: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Vectors (v, 3), each turned by the matrix (k, 3, 3) of its row."""
    if len(matrix) == 1:
        return turned(vectors, matrix[0].T)
    return np.einsum("vij,vj->vi", matrix[row], vectors)


def _at_least(levels: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The smallest level that is not below what is wanted, or the last."""
    return levels[np.searchsorted(levels, wanted).clip(0, len(levels) - 1)]
