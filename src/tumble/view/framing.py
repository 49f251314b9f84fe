"""What is worth looking at, and a camera that holds it."""

from __future__ import annotations

import numpy as np

from .camera import Camera, camera_axes
from .geometry import Shapes, outline_of

__all__ = ["fit_camera", "focus_ball"]

AZIMUTH, ELEVATION, ANGLE = -58.0, 27.0, 32.0
"""Where the camera stands as seen from the subject, and its vertical opening angle [degrees]."""


def subject(shapes: Shapes) -> np.ndarray:
    """Shapes worth looking at: the dynamic ones without a few strays, or else all of finite size."""
    chosen = np.flatnonzero(shapes.finite & shapes.moves)
    if not chosen.size:
        return np.flatnonzero(shapes.finite)
    low, high = np.percentile(shapes.center[chosen], (2, 98), axis=0)
    reach = np.max(high - low) + 4 * shapes.bound[chosen].max()
    near = np.all((shapes.center[chosen] > low - reach) & (shapes.center[chosen] < high + reach), axis=1)
    return chosen[near]


def focus_ball(shapes: Shapes) -> tuple[np.ndarray, float]:
    """Centre (3,) and radius of a ball about the subject [m]."""
    chosen = subject(shapes)
    if not chosen.size:
        return np.zeros(3), 1.0
    reach = shapes.bound[chosen][:, None]
    low, high = (shapes.center[chosen] - reach).min(axis=0), (shapes.center[chosen] + reach).max(axis=0)
    return (low + high) / 2, float(np.linalg.norm(high - low) / 2)


def fit_camera(shapes: Shapes, size: tuple[int, int], angles: tuple[float, float] = (AZIMUTH, ELEVATION)) -> Camera:
    """A view of the subject and its container, a raised three-quarter one if nothing is said, for a picture of size
    (width, height)."""
    middle, radius = focus_ball(shapes)
    azimuth, elevation = np.deg2rad(angles)
    flat = np.cos(elevation)
    back = np.array([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])
    points, reach = _outline(shapes, middle, radius)
    axes, top = camera_axes(-back), np.tan(np.deg2rad(ANGLE) / 2)
    slope = np.array([top * size[0] / size[1], top])
    local = (points - middle) @ axes.T
    distance = 0.0
    for _ in range(4):  # centring changes the distance a little
        distance = max(np.max((np.abs(local[:, :2]) + reach[:, None]) / slope - local[:, 2:]), 1e-9)
        span = local[:, :2] / (distance + local[:, 2:])
        shift = distance * (span.max(axis=0) + span.min(axis=0)) / 2
        local[:, :2] -= shift
        middle = middle + shift @ axes[:2]
    distance = max(1.08 * distance, 1e-3 * radius) if len(points) > 1 else 4.0 * radius
    return Camera(eye=tuple(middle + distance * back), target=tuple(middle), field_of_view=ANGLE)


def _outline(shapes: Shapes, middle: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (k, 3) that must be seen, and the room (k,) that each needs around it.

    Compact shapes are their bounding balls; long and flat ones, and what stands near the subject, are boxes
    or points of their own.
    """
    shown = np.zeros(len(shapes.kind), bool)
    shown[subject(shapes)] = True
    near = np.linalg.norm(shapes.center - middle, axis=1) + shapes.bound < 2.5 * radius  # its container
    compact = shapes.bound < 1.3 * shapes.half.min(axis=1)
    balls = np.flatnonzero(shown & compact)
    boxes = np.flatnonzero((shown & ~compact) | (near & ~shown & shapes.finite))
    points = np.concatenate([shapes.center[balls], outline_of(shapes, boxes), middle[None]])
    reach = np.zeros(len(points))
    reach[: len(balls)] = 1.15 * shapes.bound[balls]
    return points, reach
