"""Colours of bodies, floors and ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import checks
from ..enums import BodyKind
from ..errors import OptionsError
from .camera import turned
from .geometry import Shapes

__all__ = ["body_colors", "paint"]

PALETTE = (
    np.array(
        [
            [231, 111, 81],
            [244, 162, 97],
            [233, 196, 106],
            [138, 177, 125],
            [42, 157, 143],
            [69, 123, 157],
            [143, 124, 176],
            [217, 143, 158],
        ]
    )
    / 255.0
)
RAMP = np.array([[38, 70, 131], [42, 157, 143], [163, 190, 108], [233, 196, 106], [231, 111, 81]]) / 255.0
STATIC_COLOR = np.array([0.80, 0.80, 0.82])
FLOOR_COLORS = np.array([[0.885, 0.89, 0.90], [0.80, 0.81, 0.825]], np.float32)
GROUND_COLORS = np.array([[0.66, 0.63, 0.56], [0.84, 0.81, 0.74]], np.float32)
"""Of steep and of level ground."""


def body_colors(model: Any, color_by: Any) -> np.ndarray:
    """Colour (n, 3) of every body."""
    count = len(model.body_kind)
    if color_by is None:
        mixed = (np.arange(count, dtype=np.uint64) * np.uint64(2654435761)) % np.uint64(2**32)
        colors = PALETTE[(mixed >> np.uint64(16)) % np.uint64(len(PALETTE))]
        colors = colors * (0.92 + 0.16 * ((mixed % np.uint64(997)) / 996.0))[:, None]
    else:
        values = checks.array("render.color_by", color_by, (count,), error=OptionsError)
        seen = values[np.asarray(model.body_kind) == BodyKind.DYNAMIC]
        low, high = (seen.min(), seen.max()) if seen.size else (0.0, 1.0)
        place = np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0)
        ticks = np.linspace(0.0, 1.0, len(RAMP))
        colors = np.stack([np.interp(place, ticks, RAMP[:, k]) for k in range(3)], axis=1)
    return np.where((np.asarray(model.body_kind) == BodyKind.DYNAMIC)[:, None], colors, STATIC_COLOR)


def paint(
    shapes: Shapes,
    shape: np.ndarray,
    point: np.ndarray,
    normal: np.ndarray,
    colors: np.ndarray,
    eye: np.ndarray,
    radius: float,
) -> np.ndarray:
    """Colours (k, 3) float32 at points (k, 3), counted from the eye, of shapes (k,) about a subject of a radius [m]."""
    color = colors.astype(np.float32)[shapes.body[shape]]
    soil = np.flatnonzero(shapes.ground[shape])
    level = np.clip((np.abs(normal[soil, 2]) - 0.6) / 0.4, 0.0, 1.0)[:, None]
    color[soil] = GROUND_COLORS[0] + (GROUND_COLORS[1] - GROUND_COLORS[0]) * level
    tile = np.float32(10.0 ** np.round(np.log10(0.35 * radius)))
    for plane in np.flatnonzero(~shapes.finite):
        here = np.flatnonzero(shape == plane)
        arm = point[here] + (eye - shapes.origin[plane]).astype(np.float32)
        square = np.floor(turned(arm, shapes.turn[plane][:, :2]) / tile + 0.5)
        color[here] = FLOOR_COLORS[square.sum(axis=1).astype(np.int64) % 2]
    return color
