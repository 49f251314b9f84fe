"""Surfaces of all shapes of a run: triangles that move with their bodies, made once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..enums import ShapeKind, ShapeTrait
from ..scene import rotation
from ..view.tessellate import patches_of
from .source import Frame, Source

__all__ = ["Surfaces", "shape_triangles"]

ALONE = ShapeKind.having(ShapeTrait.SURFACE)
"""Kinds of which shapes with different surfaces cannot be made together."""


def shape_triangles(source: Source, rows: np.ndarray, segments: int) -> tuple[np.ndarray, ...]:
    """Points (v, 3), their shapes (v,), triangles (t, 3) and theirs (t,) of shapes of a kind (and rounded or not, and
    of one mesh), in the shapes' own frames."""
    kind, parameters = ShapeKind(int(source.kind[rows[0]])), source.parameters[rows]
    arc = max(1, segments // 4) if ShapeTrait.CONVEX in kind.traits and parameters[0, 3] > 0.0 else 0
    made = patches_of(kind, parameters, source.entry[rows], source.model.geometry, segments, arc)
    return made.point, rows[made.point_row], made.triangle, rows[made.triangle_row]


@dataclass(frozen=True)
class Surfaces:
    """Triangles of all shapes."""

    point: np.ndarray
    """(v, 3) in the frames of the shapes [m]"""
    point_shape: np.ndarray
    """(v,) row of the shape"""
    triangle: np.ndarray
    """(t, 3)"""
    triangle_shape: np.ndarray
    """(t,)"""

    @classmethod
    def of(cls, source: Source, segments: int, plate: float) -> Surfaces:
        """plate: half the side of the squares that stand for half-spaces [m]."""
        parts, first = [], 0
        for rows in _groups(source):
            if source.kind[rows[0]] == ShapeKind.HALF_SPACE:
                made = _plates(rows, plate)
            else:
                made = shape_triangles(source, rows, segments)
            point, point_shape, triangle, triangle_shape = made
            parts.append((point, point_shape, triangle + first, triangle_shape))
            first += len(point)
        if not parts:
            return cls(np.zeros((0, 3)), np.zeros(0, int), np.zeros((0, 3), int), np.zeros(0, int))
        return cls(*(np.concatenate(columns) for columns in zip(*parts)))

    def placed(self, source: Source, frame: Frame) -> np.ndarray:
        """(v, 3) in the world."""
        place, turn = source.placed(frame)
        axes = rotation.matrix(turn)[self.point_shape]
        return place[self.point_shape] + np.einsum("vij,vj->vi", axes, self.point)

    def only(self, shapes: np.ndarray) -> tuple[Surfaces, np.ndarray]:
        """The surfaces of some shapes (s,) bool, and which of the points (v,) bool they have."""
        points, triangles = shapes[self.point_shape], shapes[self.triangle_shape]
        number = np.cumsum(points) - 1
        kept = Surfaces(
            self.point[points],
            self.point_shape[points],
            number[self.triangle[triangles]],
            self.triangle_shape[triangles],
        )
        return kept, points


def _groups(source: Source) -> list[np.ndarray]:
    """Rows of shapes that are made into triangles together."""
    kind, rounded = source.kind.astype(np.int64), source.parameters[:, 3] > 0.0
    own = np.where(np.isin(kind, ALONE), source.entry, -1)
    fields = kind == ShapeKind.HEIGHT_FIELD
    key = np.stack([kind, np.where(fields, False, rounded), own], axis=1)
    _, number = np.unique(key, axis=0, return_inverse=True)
    return [np.flatnonzero(number.reshape(-1) == g) for g in range(number.max(initial=-1) + 1)]


def _plates(rows: np.ndarray, half: float) -> tuple[np.ndarray, ...]:
    corners = half * np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], float)
    triangle = np.array([(0, 1, 2), (0, 2, 3)]) + 4 * np.arange(len(rows))[:, None, None]
    return np.tile(corners, (len(rows), 1)), np.repeat(rows, 4), triangle.reshape(-1, 3), np.repeat(rows, 2)
