"""Colours of bodies, floors and ground."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..enums import BodyKind
from ..errors import OptionsError
from ..kernels import jit
from .geometry import Shapes

__all__ = ["Paint", "RAMP", "body_colors", "on_ramp", "paint_of", "painted"]

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
FLOOR_COLORS = (0.885, 0.89, 0.90), (0.80, 0.81, 0.825)
GROUND_COLORS = (0.66, 0.63, 0.56), (0.84, 0.81, 0.74)
"""Of steep and of level ground."""


def body_colors(model: Any, color_by: Any) -> np.ndarray:
    """Colour (n, 3) of every body."""
    count = len(model.body_kind)
    if color_by is None:
        mixed = (np.arange(count, dtype=np.uint64) * np.uint64(2654435761)) % np.uint64(2**32)
        colors = PALETTE[(mixed >> np.uint64(16)) % np.uint64(len(PALETTE))]
        colors = colors * (0.92 + 0.16 * ((mixed % np.uint64(997)) / 996.0))[:, None]
    elif np.ndim(color_by) == 2:
        return checks.array("render.color_by", color_by, (count, 3), error=OptionsError)
    else:
        values = checks.array("render.color_by", color_by, (count,), error=OptionsError)
        seen = values[np.asarray(model.body_kind) == BodyKind.DYNAMIC]
        colors = on_ramp(values, *((seen.min(), seen.max()) if seen.size else (0.0, 1.0)))
    return np.where((np.asarray(model.body_kind) == BodyKind.DYNAMIC)[:, None], colors, STATIC_COLOR)


def on_ramp(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Colours (n, 3) of numbers from blue (low) to red (high)."""
    place = np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0)
    ticks = np.linspace(0.0, 1.0, len(RAMP))
    return np.stack([np.interp(place, ticks, RAMP[:, k]) for k in range(3)], axis=1)


class Paint(NamedTuple):
    """What surfaces look like, by shape (m of them)."""

    color: np.ndarray
    """(m, 3) 0..1"""
    soil: np.ndarray
    """(m,) whether it has the colours of ground, more or less steep"""
    matte: np.ndarray
    """(m,) ground and half-spaces: no highlights, and fading into the sky"""
    moves: np.ndarray
    checkers: np.ndarray
    """(m,) whether it has squares in two colours, which half-spaces have"""
    along: np.ndarray
    """(m, 2, 3) directions of the squares"""
    start: np.ndarray
    """(m, 2) the eye along them [m]"""
    tile: float
    """Side of the squares [m]"""


def paint_of(shapes: Shapes, colors: np.ndarray, eye: np.ndarray, radius: float) -> Paint:
    """For bodies of colours (n, 3), about a subject of a radius [m]."""
    along = np.ascontiguousarray(np.swapaxes(shapes.turn[:, :, :2], 1, 2))
    start = np.einsum("mkj,mj->mk", along, eye - shapes.origin)
    tile = float(10.0 ** np.round(np.log10(0.35 * radius)))
    return Paint(
        colors[shapes.body],
        shapes.ground,
        shapes.ground | ~shapes.finite,
        shapes.moves,
        ~shapes.finite,
        along,
        start,
        tile,
    )


@jit.merged_formula
def painted(paint, shape, point, normal):
    """Colour at a point, counted from the eye, of a shape."""
    if paint.checkers[shape]:
        parity = 0
        for k in range(2):
            a = paint.along[shape, k]
            place = point[0] * a[0] + point[1] * a[1] + point[2] * a[2] + paint.start[shape, k]
            parity += math.floor(place / paint.tile + 0.5)
        return FLOOR_COLORS[parity % 2]
    if paint.soil[shape]:
        level = min(max((abs(normal[2]) - 0.6) / 0.4, 0.0), 1.0)
        steep, flat = GROUND_COLORS
        return (
            steep[0] + (flat[0] - steep[0]) * level,
            steep[1] + (flat[1] - steep[1]) * level,
            steep[2] + (flat[2] - steep[2]) * level,
        )
    return paint.color[shape, 0], paint.color[shape, 1], paint.color[shape, 2]
