"""A lamp with a shadow map, and darkened crevices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .camera import Camera, View, turned
from .canvas import NO_SHAPE, Canvas
from .geometry import Shapes
from .glass import in_the_way
from .paint import paint
from .raster import rasterize
from .soup import Tessellator

__all__ = ["shade"]

SKY_LOW, SKY_HIGH = np.array([0.955, 0.96, 0.965]), np.array([0.80, 0.86, 0.92])
SHADOW_PIXELS = 1024
BAND = 96


def shade(
    view: View,
    tessellator: Tessellator,
    canvas: Canvas,
    colors: np.ndarray,
    focus: tuple[np.ndarray, float],
    casting: np.ndarray,
    shells: np.ndarray,
) -> np.ndarray:
    """Colours (h, w, 3) in 0..1 of what a canvas shows, band by band, in single precision relative to the eye.

    colors (n, 3): of the bodies. casting (m,): shapes that throw shadows; of shells (m,) only the parts
    that are not between the lamp and the subject.
    """
    shapes = tessellator.shapes
    height = np.clip(0.5 - view.v / (2 * view.v[-1]), 0.0, 1.0)[:, None, None]
    sky = (SKY_LOW + (SKY_HIGH - SKY_LOW) * height).astype(np.float32)
    picture = np.broadcast_to(sky, (view.height, view.width, 3)).copy()
    middle, radius = (focus[0] - view.eye).astype(np.float32), np.float32(focus[1])
    lamp = _Lamp(tessellator, focus, view, casting, shells)
    depth, owner = canvas.depth.reshape(canvas.shape), canvas.owner.reshape(canvas.shape)
    normals = canvas.normal.reshape(*canvas.shape, 3)
    crevices = _crevices(view, depth, shapes, owner)
    matte = shapes.ground | ~shapes.finite

    def band(start: int) -> None:
        i, j = np.nonzero(owner[start : start + BAND] != NO_SHAPE)
        i += start
        shape, ray, normal = owner[i, j], view.directions(i, j), normals[i, j]
        point = depth[i, j, None] * ray
        color = paint(shapes, shape, point, normal, colors, view.eye, focus[1])
        floor = matte[shape]
        facing = np.einsum("ij,j->i", normal, lamp.direction)
        lit = np.clip(facing, 0.0, 1.0)
        bright = np.flatnonzero(lit > 0.0)
        lit[bright] *= lamp.reaches(point[bright] + np.float32(0.01) * radius * normal[bright])
        crevice = np.where(floor, np.float32(1.0), crevices[i, j])
        rgb = color * ((0.46 + 0.12 * normal[:, 2]) * crevice + 0.58 * lit)[:, None]
        solid = np.flatnonzero(~floor & (lit > 0.0))
        rgb[solid] += (0.16 * lit[solid] * _shine(normal[solid], lamp.direction, ray[solid]))[:, None]
        ground = np.flatnonzero(floor)
        arm = point[ground] - middle
        far = np.sqrt(np.einsum("ij,ij->i", arm, arm)) / radius
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


class _Lamp:
    """A far lamp over the camera's left shoulder, with the depth buffer that it sees."""

    def __init__(
        self,
        tessellator: Tessellator,
        focus: tuple[np.ndarray, float],
        view: View,
        casting: np.ndarray,
        shells: np.ndarray,
    ) -> None:
        middle, radius = focus
        direction = view.axes.T @ np.array([-0.60, 0.0, -0.55]) + np.array([0.0, 0.0, 0.85])
        direction /= np.linalg.norm(direction)
        angle = 4.0
        distance = 1.05 * radius / np.sin(np.deg2rad(angle) / 2)
        camera = Camera(eye=tuple(middle + distance * direction), target=tuple(middle), field_of_view=angle)
        self.view = View(camera, (SHADOW_PIXELS, SHADOW_PIXELS))
        seen = rasterize(
            self.view, tessellator, casting, with_normals=False, choose=in_the_way(shells, middle, wanted=False)
        )
        self.depth = seen.depth.reshape(seen.shape) + np.float32(0.004 * radius)
        self.direction = direction.astype(np.float32)
        self.shift = (view.eye - self.view.eye).astype(np.float32)

    def reaches(self, point: np.ndarray) -> np.ndarray:
        """Part (k,) of the light that reaches each point (k, 3), counted from the eye of the camera."""
        local = turned(point + self.shift, self.view.axes.T)
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
    base = np.minimum(depth, depth[moving].max() + np.float32(4.0 * size)).astype(float)
    behind = np.clip(1.3 * (base - _blur(_blur(base, reach), reach)) / size, 0.0, None).astype(np.float32)
    strength = np.where(moving, np.float32(0.6), np.float32(0.2))
    return 1.0 - strength * behind * np.exp(1.0 - behind)


def _blur(values: np.ndarray, reach: int) -> np.ndarray:
    """Mean over a square of 2 reach + 1 pixels."""
    width = 2 * reach + 1
    for _ in range(2):
        total = np.cumsum(np.pad(values, [(reach + 1, reach), (0, 0)], mode="edge"), axis=0)
        values = ((total[width:] - total[:-width]) / width).T
    return values
