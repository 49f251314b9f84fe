"""What every collision shape offers, and `Placed`, which puts one somewhere on a body."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import checks
from ..enums import ShapeKind
from ..errors import SceneError, message
from .geometry import FieldArrays, HullArrays, MeshArrays

__all__ = ["Placed", "Shape"]

ORIGIN, NO_TURN = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)


class Shape:
    """Base of all collision shapes. Lengths are in metres, in the shape's own frame."""

    kind: ClassVar[ShapeKind] | Any
    key: ClassVar[str] = ""
    """`type` of its table in a scene file, where its fields are the keys"""
    roundable: ClassVar[bool] = False
    """Whether `Rounded` takes it"""
    geometry: ClassVar[HullArrays | MeshArrays | FieldArrays | None] | Any = None
    """Arrays that go to the model's pool; None where `parameters` say it all."""

    @property
    def parameters(self) -> np.ndarray:
        """Numbers (4,) the kernels need; the last one is the radius of a ball that the rest is rounded with."""
        raise NotImplementedError

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest corner (3,) of the bounding box [m]."""
        raise NotImplementedError

    @property
    def bound(self) -> float:
        """Radius of the bounding sphere about the frame's origin [m]."""
        raise NotImplementedError

    @property
    def smallest(self) -> float:
        """Smallest half-extent [m]: what a contact margin is measured by."""
        raise NotImplementedError

    @property
    def volume(self) -> float:
        """[m^3]"""
        raise NotImplementedError

    @property
    def center(self) -> np.ndarray:
        """Centroid (3,) of the solid [m]."""
        return np.zeros(3)

    @property
    def unit_inertia(self) -> np.ndarray:
        """Tensor (3, 3) of the solid about its centroid for mass 1 [m^2]."""
        raise NotImplementedError

    def check_use(self, where: str, *, dynamic: bool) -> None:
        """Refuse what this kind of body cannot carry; `where` names the body."""


@dataclass(frozen=True)
class Placed:
    """A shape at a position [m] and orientation (w, x, y, z) in the body's frame."""

    shape: Shape
    position: tuple[float, float, float] = ORIGIN
    orientation: tuple[float, float, float, float] = NO_TURN

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Shape):
            raise SceneError(
                message(
                    "Placed.shape",
                    "must be a shape (Sphere, Box, ConvexHull, Mesh and so on)",
                    checks.short(self.shape),
                    "For example Placed(Sphere(0.1), (0, 0, 1)).",
                )
            )
        if self.position is ORIGIN and self.orientation is NO_TURN:
            return  # most shapes, and there may be a hundred thousand
        object.__setattr__(self, "position", tuple(checks.vector("Placed.position", self.position).tolist()))
        q = checks.quaternion("Placed.orientation", self.orientation)
        object.__setattr__(self, "orientation", tuple(q.tolist()))


def positive_length(where: str, value: Any, remedy: str = "") -> float:
    """A length above 0 [m]."""
    return checks.number(where, value, above=0.0, unit="m", remedy=remedy, error=SceneError)


def three_lengths(where: str, value: Any) -> tuple[float, float, float]:
    """Three lengths above 0 [m], along x, y and z."""
    x, y, z = (positive_length(f"{where} ({axis})", v) for axis, v in zip("xyz", checks.vector(where, value).tolist()))
    return x, y, z


def norm(*lengths: float) -> float:
    """Root of the sum of the squares."""
    return math.sqrt(sum(v * v for v in lengths))
