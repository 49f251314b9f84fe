"""Pictures as files, and in notebooks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .. import checks
from ..errors import FileError, message
from ..files import check_place, replacing

__all__ = ["Picture", "check_new", "write_png"]


def check_new(path: str | Path, *, overwrite: bool, kinds: tuple[str, ...] = (".png",)) -> Path:
    """The path of a file to write, if it is not there already or may be replaced. kinds: endings that it may have."""
    path = checks.file_name("path", path, f"picture{kinds[0]}")
    check_place(path)
    if path.suffix.lower() not in kinds:
        remedy = f"For example {path.stem}{kinds[0]}."
        raise FileError(message(str(path), "must end in " + " or ".join(kinds), repr(path.suffix), remedy))
    if path.exists() and not overwrite:
        remedy = "Choose another name, or --overwrite (overwrite=True)."
        raise FileError(message(str(path), "must be a new file", "a file that is there", remedy))
    return path


def write_png(file: str | Path | BinaryIO, pixels: np.ndarray) -> None:
    """Pixels (height, width, 3) uint8 as a PNG file."""
    from PIL import Image

    Image.fromarray(pixels).save(file, format="PNG", compress_level=3)


class Picture:
    """What `Simulation.render` and `Trajectory.render` give; a notebook shows it."""

    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels = pixels
        """(height, width, 3) uint8"""

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a PNG file."""
        with replacing(check_new(path, overwrite=overwrite)) as temporary:
            write_png(temporary, self.pixels)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.pixels, dtype) if dtype is not None or copy else self.pixels

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        write_png(out, self.pixels)
        return out.getvalue()

    def __repr__(self) -> str:
        return f"Picture({self.pixels.shape[1]} x {self.pixels.shape[0]})"
