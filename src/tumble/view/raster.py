"""What each pixel sees: shapes from front to back, in batches, without those that are hidden already."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..enums import ShapeKind
from ..kernels import jit
from .camera import View
from .canvas import BAND, Canvas
from .geometry import Shapes
from .ragged import portions
from .soup import Tessellator
from .spheres import draw_spheres
from .triangles import Soup, draw_triangles

__all__ = ["rasterize"]

BATCH_SHAPES, BATCH_TRIANGLES = 1024, 400_000


def rasterize(
    view: View,
    tessellator: Tessellator,
    shown: np.ndarray,
    *,
    with_normals: bool = True,
    choose: Callable[[View, Soup], np.ndarray] | None = None,
) -> Canvas:
    """Depths, shapes and normals of the shown shapes (m,). choose: which triangles of each batch are drawn."""
    shapes = tessellator.shapes
    canvas = Canvas(view, with_normals=with_normals)
    local = view.local(shapes.center)
    nearest = local[:, 2] - shapes.bound
    low, high, seen = _windows(view, local, shapes.bound)
    order = np.flatnonzero(seen & shown & shapes.finite)
    order = order[np.argsort(nearest[order], kind="stable")]
    cost = np.maximum(tessellator.count()[order], BATCH_TRIANGLES // BATCH_SHAPES)
    for part in portions(cost, BATCH_TRIANGLES):
        batch = order[part]
        if part.start:
            canvas.measure()
            batch = batch[~canvas.hides(low[batch], high[batch], nearest[batch])]
        exact = (shapes.kind[batch] == ShapeKind.SPHERE) & (nearest[batch] > 0.0)
        balls, others = batch[exact], batch[~exact]
        if balls.size:
            draw_spheres(view, canvas, local[balls], shapes.bound[balls], balls.astype(np.int32))
        if others.size:
            soup = tessellator.soup(view, others)
            if choose is not None:
                soup = _some(soup, choose(view, soup))
            draw_triangles(view, canvas, soup)
    for plane in np.flatnonzero(shown & ~shapes.finite):
        _draw_plane(view, canvas, shapes, int(plane))
    return canvas


def _some(soup: Soup, kept: np.ndarray) -> Soup:
    return soup._replace(triangle=soup.triangle[kept], shape=soup.shape[kept], two_sided=soup.two_sided[kept])


def _windows(view: View, local: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First and last (row, column), (m, 2), that balls at local (m, 3) can cover, and whether there are any (m,)."""
    size = np.array([view.height, view.width])
    low, high = np.zeros((len(local), 2), np.int64), np.tile(size - 1, (len(local), 1))
    seen = local[:, 2] + bound > 0.0
    front = np.flatnonzero(local[:, 2] > 1.001 * bound)
    for axis, place in ((0, view.row), (1, view.column)):
        side, ahead = local[front, 1 - axis], local[front, 2]
        middle, half = np.arctan2(side, ahead), np.arcsin(bound[front] / np.hypot(side, ahead))
        first, last = np.ceil(place(np.tan(middle - half))), np.floor(place(np.tan(middle + half)))
        seen[front] &= (first <= last) & (first < size[axis]) & (last >= 0)
        low[front, axis], high[front, axis] = first.clip(0, size[axis] - 1), last.clip(0, size[axis] - 1)
    return low, high, seen


def _draw_plane(view: View, canvas: Canvas, shapes: Shapes, plane: int) -> None:
    """Draw the surface of a half-space, if it is seen from outside."""
    normal = np.ascontiguousarray(shapes.turn[plane, :, 2])
    height = float((view.eye - shapes.origin[plane]) @ normal)
    if height > 0.0:
        _fill(view.lens, view.axes @ normal, height, normal, plane, canvas.buffers)


@jit.blockwise(BAND, "lens.height")
def _fill(band, lens, slope, height, normal, plane, buffers):
    """slope: the plane's normal as right, down, forward; height of the eye above it [m]."""
    for row in range(band * BAND, min(band * BAND + BAND, lens.height)):
        rest = (row + 0.5 - 0.5 * lens.height) / lens.focal * slope[1] + slope[2]
        for column in range(lens.width):
            fall = -((column + 0.5 - 0.5 * lens.width) / lens.focal * slope[0] + rest)
            pixel = row * lens.width + column
            if fall > 0.0 and np.float32(height / fall) < buffers.depth[pixel]:
                buffers.depth[pixel] = height / fall
                buffers.owner[pixel] = plane
                if len(buffers.normal):
                    for k in range(3):
                        buffers.normal[pixel, k] = normal[k]
