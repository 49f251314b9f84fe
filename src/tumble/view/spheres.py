"""Spheres, drawn exactly: spans of pixels row by row, and the depth along each ray."""

from __future__ import annotations

import numpy as np

from .camera import View, turned
from .canvas import Canvas
from .ragged import portions, ranges

__all__ = ["draw_spheres"]

FRAGMENTS = 2**20
"""Pixels in a portion."""


def draw_spheres(view: View, canvas: Canvas, center: np.ndarray, radius: np.ndarray, shape: np.ndarray) -> None:
    """Balls at center (k, 3), as right, down, forward, wholly in front of the eye; radius and shape (k,)."""
    flat = np.hypot(center[:, 1], center[:, 2])
    middle, half = np.arctan2(center[:, 1], center[:, 2]), np.arcsin(radius / flat)
    first = np.ceil(view.row(np.tan(middle - half))).clip(0, view.height).astype(np.int64)
    last = np.floor(view.row(np.tan(middle + half))).clip(-1, view.height - 1).astype(np.int64)
    count = np.maximum(last - first + 1, 0)
    excess = np.einsum("ij,ij->i", center, center) - radius**2
    for part in portions(count, FRAGMENTS):
        ball, row = ranges(first[part], count[part])
        ball += part.start
        start, length = _spans(view, center, radius, excess, ball, row)
        for some in portions(length, FRAGMENTS):
            span, column = ranges(start[some], length[some])
            span += some.start
            _offer(view, canvas, center, radius, excess, shape, ball[span], row[span], column)


def _spans(
    view: View, center: np.ndarray, radius: np.ndarray, excess: np.ndarray, ball: np.ndarray, row: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """First column and number of columns (s,) of balls in rows: where a quadratic in the slope u is positive."""
    x, y, z = center[ball].T
    v = view.v[row]
    curve = radius[ball] ** 2 - y * y - z * z
    along = y * v + z
    root = np.sqrt(np.maximum(excess[ball] * (along * along + curve * (1 + v * v)), 0.0))
    first = np.ceil(view.column((root - x * along) / curve)).clip(0, view.width).astype(np.int64)
    last = np.floor(view.column((-root - x * along) / curve)).clip(-1, view.width - 1).astype(np.int64)
    return first, np.maximum(last - first + 1, 0)


def _offer(view, canvas, center, radius, excess, shape, ball, row, column) -> None:
    """Draw the pixels (k,) of balls."""
    u, v = view.u[column], view.v[row]
    x, y, z = center[ball].T
    scale = 1.0 / (1.0 + u * u + v * v)
    middle = (u * x + (v * y + z)) * scale
    depth = middle - np.sqrt(np.maximum(middle * middle - excess[ball] * scale, 0.0))

    def normals(seen: np.ndarray) -> np.ndarray:
        which = ball[seen]
        right, down, forward = (
            (depth[seen] * w - c[seen]) / radius[which] for w, c in ((u[seen], x), (v[seen], y), (1, z))
        )
        return turned(np.stack([right, down, forward], axis=1).astype(np.float32), view.axes)

    canvas.offer(row * view.width + column, depth, shape[ball], normals)
