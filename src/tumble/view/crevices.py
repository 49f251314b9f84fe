"""Darkened crevices: what lies a little behind its surroundings in the picture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels import jit
from .camera import View
from .canvas import NO_SHAPE, Canvas
from .geometry import Shapes

__all__ = ["Crevices", "crevices_of", "darkened"]

ENOUGH = 400_000
"""Pixels that tell how far the bodies are."""


class Crevices(NamedTuple):
    """Depths of the surroundings, of every second pixel."""

    around: np.ndarray
    """(h / 2, w / 2) [m], (0, 0) where there are none"""
    farthest: float
    """Depths beyond count as this one [m]"""
    size: float
    """Of a body [m]"""


def crevices_of(view: View, canvas: Canvas, shapes: Shapes) -> Crevices:
    """Depths around each pixel of a canvas, over about a body's size."""
    depth, owner = canvas.depth.reshape(canvas.shape), canvas.owner.reshape(canvas.shape)
    step = max(1, int(np.sqrt(depth.size / ENOUGH)))
    some, whose = depth[::step, ::step], owner[::step, ::step]
    moving = some[shapes.moves[whose] & (whose != NO_SHAPE)] if len(shapes.moves) else some[:0, 0]
    if not moving.size:
        return Crevices(np.zeros((0, 0), np.float32), 1.0, 1.0)
    size = float(np.median(shapes.bound[shapes.moves]))
    reach = int(np.clip(0.8 * size * view.focal / np.median(moving), 2, view.height // 16))
    farthest = float(moving.max()) + 4.0 * size
    around = np.empty((view.height // 2, view.width // 2), np.float32)
    _halved(canvas.depth, view.width, farthest, around)
    for _ in range(4):
        turned = np.empty(around.T.shape, np.float32)
        _smoothed(around, max(1, reach // 2), turned)
        around = np.empty(turned.T.shape, np.float32)
        _smoothed(turned, max(1, reach // 2), around)
    return Crevices(around, farthest, size)


@jit.merged_formula
def darkened(crevices, row, column, depth, moves):
    """Brightness of a pixel: least where it lies about a body's size behind its surroundings."""
    if len(crevices.around) == 0:
        return 1.0
    here = crevices.around[min(row // 2, len(crevices.around) - 1), min(column // 2, crevices.around.shape[1] - 1)]
    behind = 1.3 * (min(depth, crevices.farthest) - here) / crevices.size
    if behind <= 0.0:
        return 1.0
    fall = 1.0 / (1.0 + behind / 16.0)  # its sixteenth power is about exp(-behind)
    fall *= fall
    fall *= fall
    fall *= fall
    return 1.0 - (0.6 if moves else 0.2) * 2.64 * behind * fall * fall


@jit.blockwise(16, "len(out)")
def _halved(block, depth, width, farthest, out):
    """Means over squares of four pixels."""
    for i in range(block * 16, min(block * 16 + 16, len(out))):
        for j in range(out.shape[1]):
            pixel = 2 * i * width + 2 * j
            top = min(depth[pixel], farthest) + min(depth[pixel + 1], farthest)
            out[i, j] = 0.25 * (top + min(depth[pixel + width], farthest) + min(depth[pixel + width + 1], farthest))


@jit.blockwise(16, "len(values)")
def _smoothed(block, values, reach, out):
    """Means over 2 reach + 1 pixels of each row, as columns."""
    last = values.shape[1] - 1
    for i in range(block * 16, min(block * 16 + 16, len(values))):
        total = 0.0
        for j in range(-reach, reach + 1):
            total += values[i, min(max(j, 0), last)]
        for j in range(last + 1):
            out[j, i] = total / (2 * reach + 1)
            total += values[i, min(j + reach + 1, last)] - values[i, max(j - reach, 0)]
