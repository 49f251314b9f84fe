"""Spheres, drawn exactly: spans of pixels row by row, and the depth along each ray."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..kernels import jit
from .camera import View
from .canvas import BAND, Canvas

__all__ = ["draw_spheres"]


class _Balls(NamedTuple):
    center: np.ndarray
    radius: np.ndarray
    first: np.ndarray
    """(k,) rows"""
    last: np.ndarray
    shape: np.ndarray


def draw_spheres(view: View, canvas: Canvas, center: np.ndarray, radius: np.ndarray, shape: np.ndarray) -> None:
    """Balls at center (k, 3), as right, down, forward, wholly in front of the eye; radius and shape (k,)."""
    flat = np.hypot(center[:, 1], center[:, 2])
    middle, half = np.arctan2(center[:, 1], center[:, 2]), np.arcsin(radius / flat)
    first = np.ceil(view.row(np.tan(middle - half))).clip(0, view.height).astype(np.int64)
    last = np.floor(view.row(np.tan(middle + half))).clip(-1, view.height - 1).astype(np.int64)
    _draw(view.lens, _Balls(np.ascontiguousarray(center), radius, first, last, shape), canvas.buffers)


@jit.blockwise(BAND, "lens.height")
def _draw(band, lens, balls, buffers):
    top, bottom = band * BAND, min(band * BAND + BAND, lens.height) - 1
    for ball in range(len(balls.radius)):
        for row in range(max(top, balls.first[ball]), min(bottom, balls.last[ball]) + 1):
            _draw_row(lens, balls, ball, row, buffers)


@jit.merged_formula
def _draw_row(lens, balls, ball, row, buffers):
    """The pixels of a ball in a row: where a quadratic in the slope u is positive."""
    x, y, z, radius = balls.center[ball, 0], balls.center[ball, 1], balls.center[ball, 2], balls.radius[ball]
    middle_column = 0.5 * lens.width - 0.5
    v = (row + 0.5 - 0.5 * lens.height) / lens.focal
    excess = x * x + y * y + z * z - radius * radius
    curve, along = radius * radius - y * y - z * z, y * v + z
    root = math.sqrt(max(excess * (along * along + curve * (1.0 + v * v)), 0.0))
    ends = (root - x * along) / curve, (-root - x * along) / curve
    first = max(ends[0] * lens.focal + middle_column, 0.0)
    last = min(ends[1] * lens.focal + middle_column, lens.width - 1.0)
    for column in range(math.ceil(first), math.floor(last) + 1):
        u = (column - middle_column) / lens.focal
        scale = 1.0 / (1.0 + u * u + v * v)
        middle = (u * x + along) * scale
        depth = np.float32(middle - math.sqrt(max(middle * middle - excess * scale, 0.0)))
        pixel = row * lens.width + column
        if 0.0 < depth < buffers.depth[pixel]:
            buffers.depth[pixel] = depth
            buffers.owner[pixel] = balls.shape[ball]
            if len(buffers.normal):
                right, down, ahead = (depth * u - x) / radius, (depth * v - y) / radius, (depth - z) / radius
                for k in range(3):
                    buffers.normal[pixel, k] = (
                        right * lens.axes[0, k] + down * lens.axes[1, k] + ahead * lens.axes[2, k]
                    )
