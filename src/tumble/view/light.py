"""Colours, a lamp with a shadow map, darkened crevices and glass."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from .. import checks
from ..enums import BodyKind, ShapeKind
from ..errors import OptionsError
from .geometry import Camera, Shapes, View, turned
from .raster import NO_SHAPE, depth_of, rasterize, window_of

__all__ = ["body_colors", "draw_glass", "shade"]

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
SKY_LOW, SKY_HIGH = np.array([0.955, 0.96, 0.965]), np.array([0.80, 0.86, 0.92])
SHADOW_PIXELS = 1024
BAND = 96


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


def shade(
    view: View,
    shapes: Shapes,
    depth: np.ndarray,
    owner: np.ndarray,
    colors: np.ndarray,
    focus: tuple[np.ndarray, float],
) -> np.ndarray:
    """Colours (h, w, 3) in 0..1, band by band, in single precision relative to the eye."""
    height = np.clip(0.5 - view.v / (2 * view.v[-1]), 0.0, 1.0)[:, None, None]
    sky = (SKY_LOW + (SKY_HIGH - SKY_LOW) * height).astype(np.float32)
    picture = np.broadcast_to(sky, (view.height, view.width, 3)).copy()
    middle, radius = focus[0] - view.eye, focus[1]
    shapes = replace(shapes, center=shapes.center - view.eye)
    lamp = _Lamp(shapes, middle, radius, view)
    crevices = _crevices(view, depth, shapes, owner)
    shapes = replace(
        shapes,
        center=shapes.center.astype(np.float32),
        turn=shapes.turn.astype(np.float32),
        size=shapes.size.astype(np.float32),
    )
    colors, middle = colors.astype(np.float32), middle.astype(np.float32)

    def band(start: int) -> None:
        i, j = np.nonzero(owner[start : start + BAND] != NO_SHAPE)
        i += start
        shape, ray = owner[i, j], view.directions(i, j)
        point = depth[i, j, None].astype(np.float32) * ray
        normal = _normals(shapes, shape, point)
        color = colors[shapes.body[shape]]
        floor = _checkers(shapes, shape, point, radius, color)
        facing = np.einsum("ij,j->i", normal, lamp.direction)
        lit = np.clip(facing, 0.0, 1.0) * lamp.reaches(point + np.float32(0.01 * radius) * normal)
        crevice = np.where(floor, np.float32(1.0), crevices[i, j])
        rgb = color * ((0.46 + 0.12 * normal[:, 2]) * crevice + 0.58 * lit)[:, None]
        solid = np.flatnonzero(~floor & (lit > 0.0))
        rgb[solid] += (0.16 * lit[solid] * _shine(normal[solid], lamp.direction, ray[solid]))[:, None]
        ground = np.flatnonzero(floor)
        arm = point[ground] - middle
        far = np.sqrt(np.einsum("ij,ij->i", arm, arm)) / np.float32(radius)
        fade = np.clip((far - 2.0) / 6.0, 0.0, 1.0)[:, None]
        rgb[ground] += (picture[i[ground], j[ground]] - rgb[ground]) * fade
        picture[i, j] = rgb

    with ThreadPoolExecutor() as pool:
        list(pool.map(band, range(0, view.height, BAND)))
    return picture


def _shine(normal: np.ndarray, light: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Highlight (k,) where the mirrored light meets the eye."""
    mirrored = 2 * np.einsum("ij,j->i", normal, light)[:, None] * normal - light
    match = np.einsum("ij,ij->i", mirrored, ray) / -np.sqrt(np.einsum("ij,ij->i", ray, ray))
    eighth = np.clip(match, 0.0, 1.0)
    for _ in range(3):
        eighth = eighth * eighth
    return eighth * eighth * eighth


def _normals(shapes: Shapes, shape: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Outward unit normals (k, 3) at points of shapes."""
    kind = shapes.kind[shape]
    normal = np.empty_like(point)
    flat = np.flatnonzero(kind == ShapeKind.HALF_SPACE)
    normal[flat] = shapes.turn[:, :, 2][shape[flat]]
    ball = np.flatnonzero(kind == ShapeKind.SPHERE)
    normal[ball] = (point[ball] - shapes.center[shape[ball]]) / shapes.size[shape[ball], :1]
    box = np.flatnonzero(kind == ShapeKind.BOX)
    turn = shapes.turn[shape[box]]
    local = np.einsum("kij,ki->kj", turn, point[box] - shapes.center[shape[box]]) / shapes.size[shape[box]]
    face = np.abs(local).argmax(axis=1)
    rows = np.arange(len(box))
    normal[box] = turn[rows, :, face] * np.sign(local[rows, face])[:, None]
    return normal


def _checkers(shapes: Shapes, shape: np.ndarray, point: np.ndarray, radius: float, color: np.ndarray) -> np.ndarray:
    """Paint the half-spaces among the points; returns which they are (k,)."""
    tile = np.float32(10.0 ** np.round(np.log10(0.35 * radius)))
    floor = np.zeros(len(shape), bool)
    for plane in np.flatnonzero(shapes.kind == ShapeKind.HALF_SPACE):
        here = np.flatnonzero(shape == plane)
        square = np.floor(turned(point[here] - shapes.center[plane], shapes.turn[plane][:, :2]) / tile + 0.5)
        color[here] = FLOOR_COLORS[square.sum(axis=1).astype(np.int64) % 2]
        floor[here] = True
    return floor


class _Lamp:
    """A far lamp over the camera's left shoulder, with the depth buffer that it sees."""

    def __init__(self, shapes: Shapes, middle: np.ndarray, radius: float, view: View) -> None:
        direction = view.axes.T @ np.array([-0.60, 0.0, -0.55]) + np.array([0.0, 0.0, 0.85])
        direction /= np.linalg.norm(direction)
        angle = 4.0
        distance = 1.05 * radius / np.sin(np.deg2rad(angle) / 2)
        camera = Camera(eye=tuple(middle + distance * direction), target=tuple(middle), field_of_view=angle)
        self.view = View(camera, (SHADOW_PIXELS, SHADOW_PIXELS))
        self.depth = rasterize(self.view, shapes, shapes.moves)[0].astype(np.float32) + np.float32(0.004 * radius)
        self.direction = direction.astype(np.float32)

    def reaches(self, point: np.ndarray) -> np.ndarray:
        """Part (k,) of the light that reaches each point."""
        local = self.view.local(point)
        spot = local[:, :2] * (np.float32(self.view.focal) / local[:, 2:]) + np.float32(SHADOW_PIXELS / 2)
        out = np.ones(len(point), np.float32)
        low, high = np.minimum(spot[:, 0], spot[:, 1]), np.maximum(spot[:, 0], spot[:, 1])
        inside = np.flatnonzero((low >= 2) & (high < SHADOW_PIXELS - 2))
        column, row = spot[inside].astype(np.int32).T
        far = local[inside, 2]
        taps = ((0, 0), (2, 1), (-1, 2), (-2, -1), (1, -2))
        out[inside] = sum(self.depth[row + di, column + dj] >= far for di, dj in taps) / np.float32(len(taps))
        return out


def _crevices(view: View, depth: np.ndarray, shapes: Shapes, owner: np.ndarray) -> np.ndarray:
    """Brightness (h, w), less where something lies a little behind its surroundings in the picture."""
    moving = shapes.moves[owner] & (owner != NO_SHAPE)
    if not moving.any():
        return np.ones(depth.shape, np.float32)
    size = float(np.median(shapes.bound[shapes.moves]))
    reach = int(np.clip(0.8 * size * view.focal / np.median(depth[moving]), 2, view.height // 16))
    base = np.minimum(depth, depth[moving].max() + 4.0 * size)
    behind = np.clip(1.3 * (base - _blur(_blur(base, reach), reach)) / size, 0.0, None).astype(np.float32)
    return 1.0 - np.float32(0.6) * behind * np.exp(1.0 - behind)


def _blur(values: np.ndarray, reach: int) -> np.ndarray:
    """Mean over a square of 2 reach + 1 pixels."""
    width = 2 * reach + 1
    for _ in range(2):
        total = np.cumsum(np.pad(values, [(reach + 1, reach), (0, 0)], mode="edge"), axis=0)
        values = ((total[width:] - total[:-width]) / width).T
    return values


def draw_glass(view: View, shapes: Shapes, shape: int, depth: np.ndarray, picture: np.ndarray) -> None:
    """Tint what lies behind a plate and draw the plate's edges."""
    center = view.local(shapes.center[shape : shape + 1])[0]
    window = window_of(view, center, shapes, shape)
    near = depth_of(view, window, shapes, shape, center, depth)
    i, j = np.nonzero(near < depth[window])
    if not i.size:
        return
    near, i, j = near[i, j], i + window[0].start, j + window[1].start
    arm = near[:, None] * view.directions(i, j) + (view.eye - shapes.center[shape])
    local = turned(arm, shapes.turn[shape])
    line = (2.0 * near / view.focal)[:, None]
    edge = np.sum(np.abs(local) > shapes.size[shape] - line, axis=1) >= 2
    alpha = np.where(edge, 0.55, 0.10)[:, None]
    picture[i, j] += (np.where(edge[:, None], 0.62, 0.97) - picture[i, j]) * alpha
