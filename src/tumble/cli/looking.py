"""What the commands that draw take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .arguments import option

__all__ = [
    "Cameras",
    "Colors",
    "Ground",
    "Overwrite",
    "RunFile",
    "Size",
    "Walls",
    "camera_text",
    "output",
    "size_text",
]

RunFile = Annotated[Path, typer.Argument(help="A trajectory (.h5).", show_default=False, metavar="RUN.h5")]
Size = Annotated[str | None, option("Width and height [pixels], for example 1920x1080.", metavar="WxH")]
Cameras = Annotated[
    str | None,
    option(
        "corner, front, back, left, right or top; azimuth,elevation [degrees]; or eye and target x,y,z,x,y,z [m].",
        metavar="VIEW",
    ),
]
Colors = Annotated[str | None, option("Colour by body, speed, force or material.", metavar="QUANTITY")]
Walls = Annotated[str, typer.Option("--walls", help="glass (those in the way), solid or off.", metavar="KIND")]
Ground = Annotated[bool, typer.Option("--ground/--no-ground", help="Draw the ground.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")]


def size_text(text: str | None, default: tuple[int, int]) -> tuple[int, int]:
    """Width and height of 1920x1080."""
    if text is None:
        return default
    width, sign, height = text.lower().partition("x")
    try:
        if not sign:
            raise ValueError
        return int(width), int(height)
    except ValueError:
        raise typer.BadParameter(f"--size must be WIDTHxHEIGHT, such as 1920x1080 (got '{text}').") from None


def camera_text(text: str | None) -> Any:
    """A name of a view, or its numbers."""
    if text is None or "," not in text:
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--camera must be a name or numbers with commas between (got '{text}').") from None


def output(run: Path, out: Path | None, ending: str) -> Path:
    """Where a command writes: beside the run if nothing is said."""
    return run.with_suffix(ending) if out is None else out
