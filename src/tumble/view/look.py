"""How bodies are looked at: the options that pictures, videos and commands share, and the picture of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..checks import nearest
from ..errors import OptionsError, message
from ..kernels import jit
from .camera import Camera
from .coloring import coloring
from .framing import fit_camera, focus_ball
from .geometry import Shapes, world_shapes
from .image import Picture
from .legend import draw_legend
from .picture import checked_size, checked_threads, draw, shown_shapes
from .snapshot import Snapshot, frame_at, snapshot

__all__ = ["CAMERAS", "Look", "camera_of", "Stage", "drawn", "look_of", "render_of", "stage_of"]

CAMERAS = {
    "corner": (-58.0, 27.0),
    "front": (-90.0, 8.0),
    "back": (90.0, 8.0),
    "left": (180.0, 8.0),
    "right": (0.0, 8.0),
    "top": (-90.0, 89.9),
}
"""Where a camera stands as seen from the bodies: azimuth from x towards y, and elevation [degrees]."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """How to draw."""

    size: tuple[int, int] = (960, 720)
    """Width and height [pixels]"""
    camera: Camera | str | Sequence[float] | None = None
    """None or a name (corner, front, back, left, right, top), azimuth and elevation [degrees]: holds the dynamic
    bodies; six numbers: eye and target [m]; or a `Camera`"""
    color: str | None = None
    """body (each its own), speed, force or material"""
    limits: tuple[float, float] | None = None
    """What the colours span; None: from 0 to the largest"""
    walls: str = "glass"
    """glass (those in the way), solid, or off"""
    ground: bool = True
    legend: bool = True
    """What colours mean, in a corner"""
    threads: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_size("size", self.size))
        checks.flag("legend", self.legend)
        checked_threads("threads", self.threads)
        if self.limits is not None:
            low, high = checks.array("limits", self.limits, (2,), error=OptionsError)
            if not low < high:
                raise OptionsError(message("limits", "must rise", self.limits, "Give the least first."))


def camera_of(wanted: Camera | str | Sequence[float] | None, shapes: Shapes, size: tuple[int, int]) -> Camera:
    """See `Look.camera`."""
    if isinstance(wanted, Camera):
        return wanted
    if wanted is None:
        return fit_camera(shapes, size)
    if isinstance(wanted, str):
        if wanted not in CAMERAS:
            raise OptionsError(message("camera", "unknown view", repr(wanted), nearest(wanted, CAMERAS)))
        return fit_camera(shapes, size, CAMERAS[wanted])
    numbers = [checks.number("camera", number) for number in wanted]
    if len(numbers) == 2:
        return fit_camera(shapes, size, (numbers[0], min(max(numbers[1], -89.9), 89.9)))
    if len(numbers) == 6:
        ex, ey, ez, *target = numbers
        return Camera(eye=(ex, ey, ez), target=(target[0], target[1], target[2]))
    remedy = "Or a name: " + ", ".join(CAMERAS) + "."
    raise OptionsError(message("camera", "must be azimuth and elevation, or eye and target", list(wanted), remedy))


@dataclass(frozen=True)
class Stage:
    """What stays the same from frame to frame of a video."""

    camera: Camera
    focus: tuple[np.ndarray, float]
    """Middle and radius of what is worth looking at [m]"""
    limits: tuple[float, float] | None


def stage_of(shots: Sequence[Snapshot], look: Look) -> Stage:
    """A camera and colours for all of some snapshots."""
    shapes = Shapes.together([shapes_of(shot, look) for shot in shots])
    limits = look.limits
    if limits is None and look.color is not None:
        found = [coloring(shot, look.color).limits for shot in shots]
        known = [one for one in found if one is not None]
        limits = max(known) if len(known) == len(found) else None
    return Stage(camera_of(look.camera, shapes, look.size), focus_ball(shapes), limits)


def drawn(shot: Snapshot, look: Look, stage: Stage | None = None) -> np.ndarray:
    """The picture (height, width, 3) uint8 of a snapshot."""
    stage = stage or stage_of([shot], look)
    colors = coloring(shot, look.color, stage.limits)
    before = jit.set_threads(checked_threads("threads", look.threads))
    try:
        image = draw(shapes_of(shot, look), stage.camera, look.size, colors.color, look.walls, stage.focus)
    finally:
        jit.set_threads(before)
    return draw_legend(image, colors) if look.legend else image


def shapes_of(shot: Snapshot, look: Look) -> Shapes:
    """The shapes that are to be seen."""
    everything = world_shapes(shot.model, shot.position, shot.orientation, shot.present)
    return shown_shapes(everything, look.walls, look.ground)


def render_of(
    source: Any,
    frame: int | None = None,
    *,
    time: float | None = None,
    path: str | Path | None = None,
    overwrite: bool = False,
    **look: Any,
) -> Picture:
    """The picture of a simulation, or of a frame of a trajectory."""
    if time is not None:
        if frame is not None:
            raise OptionsError(message("render", "takes frame or time", f"{frame} and {time}", "Leave one out."))
        frame = frame_at(source, time)
    chosen = look_of("render", look)
    picture = Picture(drawn(snapshot(source, frame), chosen))
    if path is not None:
        picture.save(path, overwrite=overwrite)
    return picture


def look_of(where: str, options: dict[str, Any]) -> Look:
    """The options of a call."""
    known = list(Look.__dataclass_fields__)
    for name in options:
        if name not in known:
            raise OptionsError(message(where, "unknown option", repr(name), nearest(name, known)))
    return replace(Look(), **options)
