"""Walls that stand between the eye and the subject, drawn as glass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .camera import View, turned
from .canvas import Canvas
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
    near = _depth(view, rows, columns, shapes, shape)
    i, j = np.nonzero(near < solid.depth.reshape(solid.shape)[rows, columns])
    if not i.size:
        return
    near, i, j = near[i, j], i + rows.start, j + columns.start
    arm = near[:, None] * view.directions(i, j) + (view.eye - shapes.center[shape])
    local = turned(arm, shapes.turn[shape])
    line = (2.0 * near / view.focal)[:, None]
    edge = np.sum(np.abs(local) > shapes.half[shape] - line, axis=1) >= 2
    alpha = np.where(edge, 0.55, 0.10)[:, None]
    picture[i, j] += (np.where(edge[:, None], 0.62, 0.97) - picture[i, j]) * alpha


def _window(view: View, shapes: Shapes, shape: int) -> tuple[slice, slice]:
    """Rows and columns that a box can cover."""
    corners = view.local(corners_of(shapes, np.array([shape]))[0])
    if np.any(corners[:, 2] <= 1e-6 * shapes.bound[shape]):
        return slice(0, view.height), slice(0, view.width)
    row, column = view.row(corners[:, 1] / corners[:, 2]), view.column(corners[:, 0] / corners[:, 2])
    return _slice(row, view.height), _slice(column, view.width)


def _slice(place: np.ndarray, size: int) -> slice:
    return slice(int(np.floor(place.min()).clip(0, size)), int(np.ceil(place.max() + 1).clip(0, size)))


def _depth(view: View, rows: slice, columns: slice, shapes: Shapes, shape: int) -> np.ndarray:
    """Depth of a box in a window, inf where the ray misses it."""
    u, v = view.u[columns], view.v[rows][:, None]
    axes = view.axes @ shapes.turn[shape]
    origin = (view.eye - shapes.center[shape]) @ shapes.turn[shape]
    enter, leave = np.full((v.size, u.size), -np.inf), np.full((v.size, u.size), np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        for k in range(3):
            slope = 1.0 / (u * axes[0, k] + (v * axes[1, k] + axes[2, k]))
            half = shapes.half[shape, k] * np.abs(slope)
            middle = -origin[k] * slope
            enter, leave = np.maximum(enter, middle - half), np.minimum(leave, middle + half)
    return np.where((enter < leave) & (enter > 0.0), enter, np.inf)
