"""Walls that stand between the eye and the subject, drawn as glass."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..kernels import jit
from .camera import View
from .canvas import BAND, Canvas
from .geometry import Shapes, corners_of
from .triangles import Soup

__all__ = ["draw_plate", "draw_shell", "in_the_way"]


def in_the_way(shells: np.ndarray, focus: np.ndarray, *, wanted: bool) -> Callable[[View, Soup], np.ndarray]:
    """A choice of triangles: those (or all but those) of the shells (m,) with eye and focus (3,) on different sides."""

    def choose(view: View, soup: Soup) -> np.ndarray:
        out = np.full(len(soup.shape), not wanted)
        rows = np.flatnonzero(shells[soup.shape])
        if rows.size:
            a, b, c = (soup.point[soup.triangle[rows, k]] for k in range(3))
            normal = np.cross(b - a, c - a)
            eye = -np.einsum("ij,ij->i", normal, a)
            target = normal @ view.local(focus[None])[0] + eye
            between = eye * target < 0.0
            out[rows] = between if wanted else ~between
        return out

    return choose


def draw_shell(view: View, glass: Canvas, solid: Canvas, picture: np.ndarray) -> None:
    """Tint what lies behind the nearest glass surface, more where it is seen at a slant."""
    pixel = np.flatnonzero(glass.depth < solid.depth)
    if not pixel.size:
        return
    i, j = np.divmod(pixel, view.width)
    ray = view.directions(i, j)
    facing = np.abs(np.einsum("ij,ij->i", glass.normal[pixel], ray)) / np.sqrt(np.einsum("ij,ij->i", ray, ray))
    alpha = (0.10 + 0.40 * (1.0 - facing) ** 3)[:, None]
    picture[i, j] += (np.float32(0.90) - picture[i, j]) * alpha


def draw_plate(view: View, shapes: Shapes, shape: int, solid: Canvas, picture: np.ndarray) -> None:
    """Tint what lies behind a box and draw the box's edges."""
    rows, columns = _window(view, shapes, shape)
    turn = shapes.turn[shape]
    box = _Plate(view.axes @ turn, (view.eye - shapes.center[shape]) @ turn, np.ascontiguousarray(shapes.half[shape]))
    _tint(view.lens, box, (rows.start, rows.stop, columns.start, columns.stop), solid.depth, picture)


class _Plate(NamedTuple):
    """A box with half-extents `half` in whose axes the eye is at `eye` and the camera's axes are the rows of `axes`."""

    axes: np.ndarray
    eye: np.ndarray
    half: np.ndarray


@jit.blockwise(BAND, "window[1] - window[0]")
def _tint(band, lens, box, window, depth, picture):
    for row in range(window[0] + band * BAND, min(window[0] + band * BAND + BAND, window[1])):
        v = (row + 0.5 - 0.5 * lens.height) / lens.focal
        for column in range(window[2], window[3]):
            u = (column + 0.5 - 0.5 * lens.width) / lens.focal
            enter, leave = -math.inf, math.inf
            for k in range(3):
                slope = u * box.axes[0, k] + v * box.axes[1, k] + box.axes[2, k]
                if slope == 0.0:
                    slope = 1e-300
                near, far = (-box.half[k] - box.eye[k]) / slope, (box.half[k] - box.eye[k]) / slope
                enter, leave = max(enter, min(near, far)), min(leave, max(near, far))
            if not (0.0 < enter < leave and enter < depth[row * lens.width + column]):
                continue
            line, edges = 2.0 * enter / lens.focal, 0
            for k in range(3):
                slope = u * box.axes[0, k] + v * box.axes[1, k] + box.axes[2, k]
                edges += abs(box.eye[k] + enter * slope) > box.half[k] - line
            alpha, tone = (0.55, 0.62) if edges >= 2 else (0.10, 0.97)
            for k in range(3):
                picture[row, column, k] += (tone - picture[row, column, k]) * alpha


def _window(view: View, shapes: Shapes, shape: int) -> tuple[slice, slice]:
    """Rows and columns that a box can cover."""
    corners = view.local(corners_of(shapes, np.array([shape]))[0])
    if np.any(corners[:, 2] <= 1e-6 * shapes.bound[shape]):
        return slice(0, view.height), slice(0, view.width)
    row, column = view.row(corners[:, 1] / corners[:, 2]), view.column(corners[:, 0] / corners[:, 2])
    return _slice(row, view.height), _slice(column, view.width)


def _slice(place: np.ndarray, size: int) -> slice:
    return slice(int(np.floor(place.min()).clip(0, size)), int(np.ceil(place.max() + 1).clip(0, size)))
