"""Pictures without a display: a z-buffer, with a shadow map and darkened crevices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..checks import nearest
from ..enums import ShapeKind
from ..errors import OptionsError, message
from ..files import replacing
from ..kernels import jit
from .camera import Camera, View
from .framing import fit_camera, focus_ball
from .geometry import Shapes, containers, glass_plates, world_shapes
from .glass import draw_plate, draw_shell, in_the_way
from .image import write_png
from .light import reduced, shade
from .paint import body_colors, paint_of
from .raster import rasterize
from .soup import Tessellator

__all__ = ["Camera", "auto_camera", "checked_size", "checked_threads", "draw", "render", "shown_shapes"]

WALLS = ("glass", "solid", "off")


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
    walls: str = "glass",
    ground: bool = True,
    threads: int | None = None,
) -> np.ndarray:
    """A picture (height, width, 3) uint8 of bodies at position (n, 3) [m] and orientation (n, 4).

    model_like: a `Model` or the `model` of a `Trajectory`. size: width and height [pixels]. camera: None frames
    the dynamic bodies. path: a PNG file to write. color_by: a number for each body (n,), drawn from blue (least)
    to red, or colours (n, 3) in 0..1. present: (n,) bool, bodies to draw (None: all; `Simulation.present()`).
    walls: "glass" draws those between the camera and the bodies as glass, "solid" as they are, "off" leaves out all
    static bodies but the ground, and containers of prescribed motion. ground: half-spaces, height fields and level
    meshes.
    """
    size = checked_size("render.size", size)
    shapes = shown_shapes(world_shapes(model_like, position, orientation, present), walls, ground)
    before = jit.set_threads(checked_threads("render.threads", threads))
    try:
        image = draw(shapes, camera or fit_camera(shapes, size), size, body_colors(model_like, color_by), walls)
    finally:
        jit.set_threads(before)
    if path is not None:
        with replacing(path) as temporary:
            write_png(temporary, image)
    return image


def checked_size(where: str, size: Any) -> tuple[int, int]:
    """Width and height that can be drawn."""
    try:
        width, height = size
    except (TypeError, ValueError):
        remedy = "For example (1920, 1080)."
        raise OptionsError(message(where, "must be width and height", checks.short(size), remedy)) from None
    return checks.integer(where, width, at_least=1, at_most=16384), checks.integer(
        where, height, at_least=1, at_most=16384
    )


def checked_threads(where: str, threads: int | None) -> int:
    """Threads to draw with: all that Numba has, if nothing is said."""
    most = jit.most_threads()
    return most if threads is None else checks.integer(where, threads, at_least=1, at_most=most)


def shown_shapes(shapes: Shapes, walls: str, ground: bool) -> Shapes:
    """Those that are wanted in the picture."""
    if walls not in WALLS:
        raise OptionsError(message("render.walls", "unknown kind", repr(walls), nearest(str(walls), WALLS)))
    matte = shapes.ground | ~shapes.finite
    hidden = matte & (not checks.flag("render.ground", ground))
    if walls == "off":
        hidden |= (shapes.static & ~matte) | containers(shapes, focus_ball(shapes)[0])
    return shapes.only(~hidden) if hidden.any() else shapes


def draw(
    shapes: Shapes,
    camera: Camera,
    size: tuple[int, int],
    colors: np.ndarray,
    walls: str,
    focus: tuple[np.ndarray, float] | None = None,
) -> np.ndarray:
    """The picture of shapes whose bodies have colours (n, 3). focus: middle and radius of what is worth looking at."""
    view = View(camera, (2 * size[0], 2 * size[1]))
    focus = focus or focus_ball(shapes)
    tessellator = Tessellator(shapes)
    plates, shells = np.zeros((2, len(shapes.kind)), bool)
    if walls == "glass":
        plates, shells = glass_plates(shapes, view.eye, focus[0]), containers(shapes, focus[0])
    solid = rasterize(view, tessellator, ~plates, choose=in_the_way(shells, focus[0], wanted=False))
    casting = shapes.finite & (shapes.moves | (shapes.kind != ShapeKind.BOX))
    paint = paint_of(shapes, colors, view.eye, focus[1])
    picture = shade(view, tessellator, solid, paint, focus, casting, shells)
    if shells.any():
        glass = rasterize(view, tessellator, shells, choose=in_the_way(shells, focus[0], wanted=True))
        draw_shell(view, glass, solid, picture)
    for shape in np.flatnonzero(plates):
        draw_plate(view, shapes, int(shape), solid, picture)
    return reduced(picture)


def auto_camera(
    model_like: Any, position: Any, orientation: Any, *, size: tuple[int, int] = (960, 720), present: Any = None
) -> Camera:
    """A raised three-quarter view that holds the dynamic bodies (those in `present` (n,), where given)."""
    return fit_camera(world_shapes(model_like, position, orientation, present), size)
