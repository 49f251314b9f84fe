"""Ground given by its height over a grid."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks, memory
from ..enums import ShapeKind
from ..errors import FileError, SceneError, TumbleError, message
from .geometry import FieldArrays
from .shape import Shape, positive_length

__all__ = ["HeightField"]

FULL = {"L": 255.0, "I;16": 65535.0, "I;16B": 65535.0, "I": 65535.0}
"""Grey level of white in the modes of an image."""
PACKED = 10_000
"""A stored byte holds at most so many pixels: deflate reaches 1032 bytes, of eight pixels each."""
PIXEL_BYTES = 48
"""A pixel of an image while its height is found: as a grey level and a height, with copies, and in the model."""


@dataclass(frozen=True, eq=False, repr=False)
class HeightField(Shape):
    """Everything below a surface z = height(x, y); never on a dynamic body.

    heights (nx, ny) [m]: heights[i, j] is above x = -size_x/2 + i dx, y = -size_y/2 + j dy with dx = size_x/(nx - 1),
    dy = size_y/(ny - 1). size = (x, y) [m]. Each cell is two triangles, cut from corner (i, j) to (i+1, j+1).
    """

    heights: np.ndarray
    size: tuple[float, float]

    def __post_init__(self) -> None:
        heights = checks.array("HeightField.heights", self.heights, (None, None))
        if min(heights.shape) < 2:
            raise SceneError(
                message(
                    "HeightField.heights",
                    "needs at least 2 rows and 2 columns",
                    f"shape {heights.shape}",
                    "Repeat the row or column for ground that does not vary along it.",
                )
            )
        size = checks.array("HeightField.size", self.size, (2,)).tolist()
        object.__setattr__(
            self, "size", tuple(positive_length(f"HeightField.size ({axis})", v) for axis, v in zip("xy", size))
        )
        heights.setflags(write=False)
        object.__setattr__(self, "heights", heights)

    kind = ShapeKind.HEIGHT_FIELD
    volume = math.inf  # pyright: ignore[reportAssignmentType]  -- a constant where others compute

    def __repr__(self) -> str:
        return f"HeightField({self.heights.shape[0]} x {self.heights.shape[1]} heights, size={self.size})"

    @classmethod
    def from_image(cls, path: str | Path, size: tuple[float, float], low: float, high: float) -> HeightField:
        """Heights from the grey levels of an image (PNG, TIFF, ...): black is low [m], white is high [m].

        Seen from above as in the image: columns run along +x, and the first row is the far edge, at +y.
        """
        low = checks.number("HeightField.low", low, unit="m", error=SceneError)
        high = checks.number("HeightField.high", high, unit="m", error=SceneError)
        level = _grey_levels(path)
        return cls(low + (high - low) * level[::-1].T, size)

    @property
    def spacing(self) -> tuple[float, float]:
        """Distances (dx, dy) of grid points [m]."""
        nx, ny = self.heights.shape
        return self.size[0] / (nx - 1), self.size[1] / (ny - 1)

    @property
    def parameters(self) -> np.ndarray:
        """dx, dy, lowest, highest"""
        return np.array([*self.spacing, self.heights.min(), self.heights.max()])

    @cached_property
    def geometry(self) -> FieldArrays:
        """The heights, for the pool."""
        return FieldArrays(self.heights)

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        x, y = self.size[0] / 2, self.size[1] / 2
        return np.array([-x, -y, self.heights.min()]), np.array([x, y, self.heights.max()])

    @cached_property
    def bound(self) -> float:
        nx, ny = self.heights.shape
        x = np.linspace(-self.size[0] / 2, self.size[0] / 2, nx)[:, None]
        y = np.linspace(-self.size[1] / 2, self.size[1] / 2, ny)
        return float(np.sqrt((x * x + y * y + self.heights**2).max()))

    @property
    def smallest(self) -> float:
        """Half of the larger horizontal extent [m]: ground has no thickness of its own."""
        return 0.5 * max(self.size)

    def check_use(self, where: str, *, dynamic: bool) -> None:
        if dynamic:
            raise SceneError(
                message(
                    where,
                    "a HeightField has no finite mass",
                    "HeightField on a dynamic body",
                    "Use add_static or add_kinematic, or a closed Mesh.",
                )
            )


def _grey_levels(path: Any) -> np.ndarray:
    """Grey levels (rows, columns) from 0 (black) to 1 (white)."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(path)
        with image:
            width, height = image.size
            if width * height > PACKED * os.path.getsize(path):
                got = f"{width} x {height} pixels declared, {os.path.getsize(path)} bytes stored"
                raise FileError(message(str(path), "its pixels must be in the file", got, "Export it again."))
            memory.check(str(path), PIXEL_BYTES * width * height, f"{width} x {height} heights")
            image.load()
            if image.mode not in FULL and image.mode != "F":
                image = image.convert("L")
            full = FULL.get(image.mode)
            level = np.asarray(image, float)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as cause:
        rule, got = (
            f"must have at most {(Image.MAX_IMAGE_PIXELS or 0) / 1e6:.0f} million pixels",
            str(cause).split(",")[0],
        )
        raise FileError(message(str(path), rule, got, "Scale it down, or give its array to HeightField.")) from cause
    except TumbleError:
        raise
    except (OSError, UnidentifiedImageError, AttributeError, TypeError, ValueError, SyntaxError) as cause:
        reason = getattr(cause, "strerror", None) or f"{type(cause).__name__}: {cause}"
        raise FileError(message(str(path), "must be a readable image", reason, "Check the file name.")) from cause
    if full is None:
        raise FileError(
            message(str(path), "must have 8 or 16 bits of grey", "an image of floats", "Give its array to HeightField.")
        )
    return level / full
