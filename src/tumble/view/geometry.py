"""Where things are: the camera and its rays, shapes in world axes, and what is worth looking at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..enums import BodyKind, ShapeKind
from ..errors import OptionsError, message
from ..scene import rotation

__all__ = [
    "Camera",
    "Shapes",
    "View",
    "corners_of",
    "fit_camera",
    "focus_ball",
    "glass_plates",
    "turned",
    "world_shapes",
]


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


class View:
    """Rays of a camera: through pixel (i, j) runs eye + depth (u[j] right + v[i] down + forward)."""

    def __init__(self, camera: Camera, size: tuple[int, int]) -> None:
        self.width, self.height = size
        self.eye = np.array(camera.eye, float)
        self.axes = camera_axes(np.array(camera.target, float) - self.eye)
        top = np.tan(np.deg2rad(camera.field_of_view) / 2)
        self.focal = self.height / (2 * top)
        self.u = (np.arange(self.width) + 0.5 - self.width / 2) / self.focal
        self.v = (np.arange(self.height) + 0.5 - self.height / 2) / self.focal

    def local(self, points: np.ndarray) -> np.ndarray:
        """World points (k, 3) as right, down, forward."""
        return turned(points - self.eye.astype(points.dtype), self.axes.T)

    def directions(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """World rays (k, 3) with forward part 1, in single precision."""
        u, v, axes = self.u.astype(np.float32), self.v.astype(np.float32), self.axes.astype(np.float32)
        return u[j, None] * axes[0] + (v[i, None] * axes[1] + axes[2])

    def window(self, low: np.ndarray, high: np.ndarray) -> tuple[slice, slice]:
        """Pixels between two corners (2,) given in u and v."""
        j0, i0 = np.floor(low * self.focal + (self.width / 2, self.height / 2)).clip(0, 1e6).astype(int)
        j1, i1 = np.ceil(high * self.focal + (self.width / 2, self.height / 2)).clip(0, 1e6).astype(int)
        return slice(i0, min(i1, self.height)), slice(j0, min(j1, self.width))


@dataclass(frozen=True)
class Shapes:
    """Shapes (m of them) in world axes."""

    kind: np.ndarray
    body: np.ndarray
    size: np.ndarray
    center: np.ndarray
    turn: np.ndarray
    """(m, 3, 3) columns are the shape's axes"""
    moves: np.ndarray
    """(m,) whether the body is dynamic"""

    @property
    def bound(self) -> np.ndarray:
        """Radius (m,) of the bounding sphere, 0 for half-spaces [m]."""
        return np.where(
            self.kind == ShapeKind.SPHERE,
            self.size[:, 0],
            np.where(self.kind == ShapeKind.BOX, np.linalg.norm(self.size, axis=1), 0.0),
        )


def world_shapes(model: Any, position: Any, orientation: Any) -> Shapes:
    count = len(model.body_kind)
    position = checks.array("render.position", position, (count, 3), error=OptionsError)
    orientation = checks.quaternions("render.orientation", orientation, count, error=OptionsError)
    center = position + rotation.rotate(orientation, model.body_center)
    axes = rotation.multiply(orientation, model.body_axes)
    body = np.asarray(model.shape_body)
    return Shapes(
        np.asarray(model.shape_kind),
        body,
        np.asarray(model.shape_parameters, float),
        center[body] + rotation.rotate(axes[body], model.shape_position),
        rotation.matrix(rotation.multiply(axes[body], model.shape_orientation)),
        np.asarray(model.body_kind)[body] == BodyKind.DYNAMIC,
    )


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


def subject(shapes: Shapes) -> np.ndarray:
    """Shapes worth looking at: the dynamic ones without a few strays, or else all of finite size."""
    finite = shapes.kind != ShapeKind.HALF_SPACE
    chosen = np.flatnonzero(finite & shapes.moves)
    if not chosen.size:
        return np.flatnonzero(finite)
    low, high = np.percentile(shapes.center[chosen], (2, 98), axis=0)
    reach = np.max(high - low) + 4 * shapes.bound[chosen].max()
    near = np.all((shapes.center[chosen] > low - reach) & (shapes.center[chosen] < high + reach), axis=1)
    return chosen[near]


def focus_ball(shapes: Shapes) -> tuple[np.ndarray, float]:
    """Centre (3,) and radius of a ball about the subject [m]."""
    chosen = subject(shapes)
    if not chosen.size:
        return np.zeros(3), 1.0
    reach = shapes.bound[chosen][:, None]
    low, high = (shapes.center[chosen] - reach).min(axis=0), (shapes.center[chosen] + reach).max(axis=0)
    return (low + high) / 2, float(np.linalg.norm(high - low) / 2)


def corners_of(shapes: Shapes, boxes: np.ndarray) -> np.ndarray:
    """Corners (k, 8, 3) of boxes."""
    signs = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, 8).T
    arms = signs * shapes.size[boxes, None, :]
    return shapes.center[boxes, None, :] + np.einsum("kij,kcj->kci", shapes.turn[boxes], arms)


def fit_camera(shapes: Shapes, size: tuple[int, int]) -> Camera:
    middle, radius = focus_ball(shapes)
    azimuth, elevation, angle = np.deg2rad(-58.0), np.deg2rad(27.0), 32.0
    flat = np.cos(elevation)
    back = np.array([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])
    shown = np.zeros(len(shapes.kind), bool)
    shown[subject(shapes)] = True
    near = np.linalg.norm(shapes.center - middle, axis=1) + shapes.bound < 2.5 * radius  # its container
    balls = np.flatnonzero(shown & (shapes.kind == ShapeKind.SPHERE))
    boxes = np.flatnonzero((shown | near) & (shapes.kind == ShapeKind.BOX))
    points = np.concatenate([shapes.center[balls], corners_of(shapes, boxes).reshape(-1, 3), middle[None]])
    reach = np.zeros(len(points))
    reach[: len(balls)] = 1.15 * shapes.size[balls, 0]
    axes, top = camera_axes(-back), np.tan(np.deg2rad(angle) / 2)
    slope = np.array([top * size[0] / size[1], top])
    local = (points - middle) @ axes.T
    distance = 0.0
    for _ in range(4):  # centring changes the distance a little
        distance = max(np.max((np.abs(local[:, :2]) + reach[:, None]) / slope - local[:, 2:]), 1e-9)
        span = local[:, :2] / (distance + local[:, 2:])
        shift = distance * (span.max(axis=0) + span.min(axis=0)) / 2
        local[:, :2] -= shift
        middle = middle + shift @ axes[:2]
    distance = max(1.08 * distance, 1e-3 * radius) if len(points) > 1 else 4.0 * radius
    return Camera(eye=tuple(middle + distance * back), target=tuple(middle), field_of_view=angle)


def glass_plates(shapes: Shapes, eye: np.ndarray, focus: tuple[np.ndarray, float]) -> np.ndarray:
    """Plates (m,) of bodies that are not dynamic and stand between the eye and the subject."""
    rows = np.arange(len(shapes.kind))
    order = np.argsort(shapes.size, axis=1)
    thin = shapes.size[rows, order[:, 0]] < 0.25 * shapes.size[rows, order[:, 1]]
    normal = shapes.turn[rows, :, order[:, 0]]
    sides = np.einsum("ij,ij->i", normal, eye - shapes.center) * np.einsum("ij,ij->i", normal, focus[0] - shapes.center)
    return (shapes.kind == ShapeKind.BOX) & ~shapes.moves & thin & (sides < 0.0)
