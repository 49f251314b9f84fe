"""The camera and its rays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import checks
from ..errors import OptionsError, message

__all__ = ["Camera", "Lens", "View", "camera_axes", "turned"]


@dataclass(frozen=True, kw_only=True)
class Camera:
    """Where the picture is taken from; z is up."""

    eye: tuple[float, float, float]
    """[m]"""
    target: tuple[float, float, float]
    """Point in the middle of the picture [m]."""
    field_of_view: float = 32.0
    """Vertical opening angle [degrees]."""

    def __post_init__(self) -> None:
        eye = checks.vector("Camera.eye", self.eye, error=OptionsError)
        if np.array_equal(eye, checks.vector("Camera.target", self.target, error=OptionsError)):
            raise OptionsError(message("Camera.target", "must differ from eye", eye, "Move one of them."))
        checks.number("Camera.field_of_view", self.field_of_view, above=0.0, at_most=150.0, unit="degrees")


class Lens(NamedTuple):
    """A view, for kernels: the ray through (row, column) has the slopes (row + 0.5 - height / 2) / focal, and alike."""

    height: int
    width: int
    focal: float
    eye: np.ndarray
    axes: np.ndarray
    """(3, 3) rows right, down, forward"""


class View:
    """Rays of a camera: through pixel (i, j) runs eye + depth (u[j] right + v[i] down + forward)."""

    def __init__(self, camera: Camera, size: tuple[int, int]) -> None:
        self.width, self.height = size
        self.eye = np.array(camera.eye, float)
        self.axes = camera_axes(np.array(camera.target, float) - self.eye)
        top = np.tan(np.deg2rad(camera.field_of_view) / 2)
        self.focal = self.height / (2 * top)
        self.lens = Lens(self.height, self.width, float(self.focal), self.eye, self.axes)
        self.u = (np.arange(self.width) + 0.5 - self.width / 2) / self.focal
        self.v = (np.arange(self.height) + 0.5 - self.height / 2) / self.focal

    def local(self, points: np.ndarray) -> np.ndarray:
        """World points (k, 3) as right, down, forward."""
        return turned(points - self.eye.astype(points.dtype), self.axes.T)

    def directions(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """World rays (k, 3) with forward part 1, in single precision."""
        u, v, axes = self.u.astype(np.float32), self.v.astype(np.float32), self.axes.astype(np.float32)
        return u[j, None] * axes[0] + (v[i, None] * axes[1] + axes[2])

    def column(self, u: np.ndarray) -> np.ndarray:
        """Where the slope u falls, in columns; whole numbers are centres of pixels."""
        return u * self.focal + (self.width / 2 - 0.5)

    def row(self, v: np.ndarray) -> np.ndarray:
        """Where the slope v falls, in rows; whole numbers are centres of pixels."""
        return v * self.focal + (self.height / 2 - 0.5)


def camera_axes(forward: np.ndarray) -> np.ndarray:
    """Rows right, down, forward of a camera with z up."""
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    if np.linalg.norm(right) < 1e-9:
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward])


def turned(vectors: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """vectors (k, 3) @ matrix (3, c): many short rows, where threads of a matrix library only cost time."""
    x, y, z = matrix.astype(vectors.dtype)
    return vectors[:, :1] * x + vectors[:, 1:2] * y + vectors[:, 2:] * z
