"""The z-buffer: which shape a pixel sees, and how far away."""

from __future__ import annotations

import numpy as np

from ..enums import ShapeKind
from .geometry import Shapes, View, corners_of

__all__ = ["NO_SHAPE", "depth_of", "rasterize", "window_of"]

NO_SHAPE = -1


def rasterize(view: View, shapes: Shapes, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Depth along the axis of the view (h, w), inf where nothing is, and the shape seen there (h, w)."""
    depth = np.full((view.height, view.width), np.inf)
    owner = np.full((view.height, view.width), NO_SHAPE, np.int32)
    local = view.local(shapes.center)
    nearest = local[:, 2] - shapes.bound
    nearest[shapes.kind == ShapeKind.HALF_SPACE] = np.inf  # floors last
    inverse = 1.0 / (1.0 + view.u**2 + view.v[:, None] ** 2)
    for shape in np.argsort(nearest, kind="stable"):
        if not shown[shape] or local[shape, 2] + shapes.bound[shape] <= 0 < shapes.bound[shape]:
            continue
        window = window_of(view, local[shape], shapes, shape)
        old = depth[window]
        if not old.size or (np.isfinite(nearest[shape]) and old.max() <= nearest[shape]):
            continue
        new = depth_of(view, window, shapes, shape, local[shape], inverse)
        with np.errstate(invalid="ignore"):
            closer = new < old
        np.copyto(old, new, where=closer)
        np.copyto(owner[window], np.int32(shape), where=closer)
    return depth, owner


def window_of(view: View, center: np.ndarray, shapes: Shapes, shape: int) -> tuple[slice, slice]:
    everything = slice(0, view.height), slice(0, view.width)
    if shapes.kind[shape] == ShapeKind.SPHERE:
        radius, flat = shapes.size[shape, 0], np.hypot(center[:2], center[2])
        if np.any(flat <= radius) or center[2] <= radius:
            return everything
        middle, half = np.arctan2(center[:2], center[2]), np.arcsin(radius / flat)
        return view.window(np.tan(middle - half), np.tan(middle + half))
    if shapes.kind[shape] == ShapeKind.BOX:
        corners = view.local(corners_of(shapes, np.array([shape]))[0])
        if np.all(corners[:, 2] > 1e-6 * shapes.bound[shape]):
            flat = corners[:, :2] / corners[:, 2:]
            return view.window(flat.min(axis=0), flat.max(axis=0))
    return everything


def depth_of(
    view: View, window: tuple[slice, slice], shapes: Shapes, shape: int, center: np.ndarray, inverse: np.ndarray
) -> np.ndarray:
    """Depth of one shape in a window, NaN or inf where the ray misses it."""
    u, v = view.u[window[1]], view.v[window[0]][:, None]
    kind = shapes.kind[shape]
    with np.errstate(invalid="ignore", divide="ignore"):
        if kind == ShapeKind.SPHERE:
            scale = inverse[window]
            middle = (u * center[0] + (v * center[1] + center[2])) * scale
            excess = center @ center - shapes.size[shape, 0] ** 2
            out = middle - np.sqrt(middle * middle - excess * scale)
        else:
            axes = view.axes @ shapes.turn[shape]
            origin = (view.eye - shapes.center[shape]) @ shapes.turn[shape]
            if kind == ShapeKind.HALF_SPACE:
                slope = u * axes[0, 2] + (v * axes[1, 2] + axes[2, 2])
                out = np.where((slope < 0.0) & (origin[2] > 0.0), -origin[2] / slope, np.inf)
            else:
                enter, leave = -np.inf, np.inf
                for k in range(3):
                    slope = 1.0 / (u * axes[0, k] + (v * axes[1, k] + axes[2, k]))
                    half = shapes.size[shape, k] * np.abs(slope)
                    middle = -origin[k] * slope
                    enter, leave = np.maximum(enter, middle - half), np.minimum(leave, middle + half)
                out = np.where(enter < leave, enter, np.inf)
        return np.where(out > 0.0, out, np.inf)
