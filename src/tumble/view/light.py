"""A lamp with a shadow map, and darkened crevices."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..kernels import jit
from .camera import Camera, Lens, View
from .canvas import BAND, NO_SHAPE, Canvas
from .crevices import crevices_of, darkened
from .glass import in_the_way
from .paint import Paint, painted
from .raster import rasterize
from .soup import Tessellator

__all__ = ["reduced", "shade"]

SKY_LOW, SKY_HIGH = (0.955, 0.96, 0.965), (0.80, 0.86, 0.92)
SHADOW_PIXELS = 1024
TAPS = ((0, 0), (2, 1), (-1, 2), (-2, -1), (1, -2))
"""Rows and columns at which a point looks into the shadow map."""


class _Lamp(NamedTuple):
    """A far lamp over the camera's left shoulder, with the depths that it sees."""

    direction: np.ndarray
    lens: Lens
    depth: np.ndarray
    """(SHADOW_PIXELS, SHADOW_PIXELS)"""
    shift: np.ndarray
    """From the lamp to the eye of the camera [m]"""
    middle: np.ndarray
    """Of the subject, from the eye of the camera [m]"""
    radius: float
    """Of the subject [m]"""


def shade(
    view: View,
    tessellator: Tessellator,
    canvas: Canvas,
    paint: Paint,
    focus: tuple[np.ndarray, float],
    casting: np.ndarray,
    shells: np.ndarray,
) -> np.ndarray:
    """Colours (h, w, 3) in 0..1 of what a canvas shows.

    casting (m,): shapes that throw shadows; of shells (m,) only the parts not between the lamp and the subject.
    """
    picture = np.empty((view.height, view.width, 3), np.float32)
    lamp = _lamp(tessellator, focus, view, casting, shells)
    crevices = crevices_of(view, canvas, tessellator.shapes)
    _shade(view.lens, canvas.buffers, paint, lamp, crevices, picture)
    return picture


def reduced(picture: np.ndarray) -> np.ndarray:
    """Means over squares of four pixels, (h / 2, w / 2, 3) uint8."""
    image = np.empty((picture.shape[0] // 2, picture.shape[1] // 2, 3), np.uint8)
    _reduce(picture, image)
    return image


@jit.blockwise(BAND, "len(image)")
def _reduce(band, picture, image):
    for i in range(band * BAND, min(band * BAND + BAND, len(image))):
        for j in range(image.shape[1]):
            for k in range(3):
                top = picture[2 * i, 2 * j, k] + picture[2 * i, 2 * j + 1, k]
                low = picture[2 * i + 1, 2 * j, k] + picture[2 * i + 1, 2 * j + 1, k]
                image[i, j, k] = int(255.0 * min(max(0.25 * (top + low), 0.0), 1.0) + 0.5)


def _lamp(
    tessellator: Tessellator,
    focus: tuple[np.ndarray, float],
    view: View,
    casting: np.ndarray,
    shells: np.ndarray,
) -> _Lamp:
    middle, radius = focus
    direction = view.axes.T @ np.array([-0.60, 0.0, -0.55]) + np.array([0.0, 0.0, 0.85])
    direction /= np.linalg.norm(direction)
    angle = 4.0
    distance = 1.05 * radius / np.sin(np.deg2rad(angle) / 2)
    camera = Camera(eye=tuple(middle + distance * direction), target=tuple(middle), field_of_view=angle)
    lamp = View(camera, (SHADOW_PIXELS, SHADOW_PIXELS))
    seen = rasterize(lamp, tessellator, casting, with_normals=False, choose=in_the_way(shells, middle, wanted=False))
    depth = seen.depth.reshape(seen.shape) + np.float32(0.004 * radius)
    return _Lamp(direction, lamp.lens, depth, view.eye - lamp.eye, middle - view.eye, float(radius))


@jit.blockwise(BAND, "lens.height")
def _shade(band, lens, buffers, paint, lamp, crevices, picture):
    for row in range(band * BAND, min(band * BAND + BAND, lens.height)):
        high = (
            min(max(0.5 - (row + 0.5 - 0.5 * lens.height) / (lens.height - 1.0), 0.0), 1.0) if lens.height > 1 else 0.5
        )
        sky = (
            SKY_LOW[0] + (SKY_HIGH[0] - SKY_LOW[0]) * high,
            SKY_LOW[1] + (SKY_HIGH[1] - SKY_LOW[1]) * high,
            SKY_LOW[2] + (SKY_HIGH[2] - SKY_LOW[2]) * high,
        )
        for column in range(lens.width):
            rgb = sky
            if buffers.owner[row * lens.width + column] != NO_SHAPE:
                rgb = _seen(lens, buffers, paint, lamp, crevices, row, column, sky)
            picture[row, column, 0], picture[row, column, 1], picture[row, column, 2] = rgb


@jit.merged_formula
def _seen(lens, buffers, paint, lamp, crevices, row, column, sky):
    """Colour of the surface in a pixel."""
    pixel = row * lens.width + column
    shape, depth = buffers.owner[pixel], buffers.depth[pixel]
    normal = buffers.normal[pixel, 0], buffers.normal[pixel, 1], buffers.normal[pixel, 2]
    u, v = (column + 0.5 - 0.5 * lens.width) / lens.focal, (row + 0.5 - 0.5 * lens.height) / lens.focal
    ray = (
        u * lens.axes[0, 0] + v * lens.axes[1, 0] + lens.axes[2, 0],
        u * lens.axes[0, 1] + v * lens.axes[1, 1] + lens.axes[2, 1],
        u * lens.axes[0, 2] + v * lens.axes[1, 2] + lens.axes[2, 2],
    )
    point = depth * ray[0], depth * ray[1], depth * ray[2]
    red, green, blue = painted(paint, shape, point, normal)
    towards = lamp.direction[0], lamp.direction[1], lamp.direction[2]
    facing = _dot(normal, towards)
    lit = max(facing, 0.0)
    if lit > 0.0:
        lit *= _reaches(lamp, point, normal)
    matte = paint.matte[shape]
    crevice = 1.0 if matte else darkened(crevices, row, column, depth, paint.moves[shape])
    light = (0.46 + 0.12 * normal[2]) * crevice + 0.58 * lit
    red, green, blue = red * light, green * light, blue * light
    if matte:
        arm = point[0] - lamp.middle[0], point[1] - lamp.middle[1], point[2] - lamp.middle[2]
        fade = min(max((math.sqrt(_dot(arm, arm)) / lamp.radius - 2.0) / 6.0, 0.0), 1.0)
        return red + (sky[0] - red) * fade, green + (sky[1] - green) * fade, blue + (sky[2] - blue) * fade
    if lit > 0.0:
        shine = 0.16 * lit * _shine(facing, normal, towards, ray)
        return red + shine, green + shine, blue + shine
    return red, green, blue


@jit.merged_formula
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@jit.merged_formula
def _shine(facing, normal, light, ray):
    """Highlight where the mirrored light meets the eye."""
    mirrored = 2.0 * facing * _dot(normal, ray) - _dot(light, ray)
    match = min(max(-mirrored / math.sqrt(_dot(ray, ray)), 0.0), 1.0)
    match *= match
    match *= match
    match *= match
    return match * match * match


@jit.merged_formula
def _reaches(lamp, point, normal):
    """Part of the lamp's light that reaches a point, counted from the eye of the camera."""
    lift, axes, size = 0.01 * lamp.radius, lamp.lens.axes, len(lamp.depth)
    arm = (
        point[0] + lift * normal[0] + lamp.shift[0],
        point[1] + lift * normal[1] + lamp.shift[1],
        point[2] + lift * normal[2] + lamp.shift[2],
    )
    far = arm[0] * axes[2, 0] + arm[1] * axes[2, 1] + arm[2] * axes[2, 2]
    scale, half = lamp.lens.focal / far, 0.5 * size
    right = (arm[0] * axes[0, 0] + arm[1] * axes[0, 1] + arm[2] * axes[0, 2]) * scale + half
    down = (arm[0] * axes[1, 0] + arm[1] * axes[1, 1] + arm[2] * axes[1, 2]) * scale + half
    if not (min(right, down) >= 2.0 and max(right, down) < size - 2.0):
        return 1.0
    row, column, clear = int(down), int(right), 0
    for di, dj in TAPS:
        clear += lamp.depth[row + di, column + dj] >= far
    return clear / 5.0
