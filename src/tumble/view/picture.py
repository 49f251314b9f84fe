"""Pictures without a display: a z-buffer in NumPy, with a shadow map and darkened crevices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..enums import ShapeKind
from ..errors import FileError, message
from .camera import Camera, View
from .framing import fit_camera, focus_ball
from .geometry import containers, glass_plates, world_shapes
from .glass import draw_plate, draw_shell, in_the_way
from .light import reduced, shade
from .paint import body_colors, paint_of
from .raster import rasterize
from .soup import Tessellator

__all__ = ["Camera", "auto_camera", "render"]


def render(
    model_like: Any,
    position: Any,
    orientation: Any,
    *,
    size: tuple[int, int] = (960, 720),
    camera: Camera | None = None,
    path: str | Path | None = None,
    color_by: Any = None,
    present: Any = None,
) -> np.ndarray:
    """A picture (height, width, 3) uint8 of bodies at position (n, 3) [m] and orientation (n, 4).

    model_like: a `Model` or the `model` of a `Trajectory`. size: width and height [pixels]. camera: None frames
    the dynamic bodies. path: a PNG file to write. color_by: a number for each body (n,), drawn from blue (least)
    to red. present: (n,) bool, bodies to draw (None: all; `Simulation.present()`). Walls between the camera and the
    bodies are drawn as glass.
    """
    width, height = (checks.integer("render.size", s, at_least=1) for s in size)
    shapes = world_shapes(model_like, position, orientation, present)
    camera = camera or fit_camera(shapes, (width, height))
    view = View(camera, (2 * width, 2 * height))
    focus = focus_ball(shapes)
    tessellator = Tessellator(shapes)
    plates, shells = glass_plates(shapes, view.eye, focus[0]), containers(shapes, focus[0])
    solid = rasterize(view, tessellator, ~plates, choose=in_the_way(shells, focus[0], wanted=False))
    casting = shapes.finite & (shapes.moves | (shapes.kind != ShapeKind.BOX))
    paint = paint_of(shapes, body_colors(model_like, color_by), view.eye, focus[1])
    picture = shade(view, tessellator, solid, paint, focus, casting, shells)
    if shells.any():
        glass = rasterize(view, tessellator, shells, choose=in_the_way(shells, focus[0], wanted=True))
        draw_shell(view, glass, solid, picture)
    for shape in np.flatnonzero(plates):
        draw_plate(view, shapes, shape, solid, picture)
    image = reduced(picture)
    if path is not None:
        from matplotlib.image import imsave

        try:
            imsave(path, image, format="png")
        except OSError as cause:
            raise FileError(message(str(path), "must be writable", cause, "Check the folder.")) from cause
    return image


def auto_camera(
    model_like: Any, position: Any, orientation: Any, *, size: tuple[int, int] = (960, 720), present: Any = None
) -> Camera:
    """A raised three-quarter view that holds the dynamic bodies (those in `present` (n,), where given)."""
    return fit_camera(world_shapes(model_like, position, orientation, present), size)
