"""Shapes with rounded edges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import checks
from ..enums import ShapeKind
from ..errors import SceneError, message
from .hulls import ConvexHull
from .rounded_mass import rounded_moments
from .shape import Shape, positive_length
from .shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, Sphere
from .solids import Moments

__all__ = ["Rounded"]


@dataclass(frozen=True)
class Rounded(Shape):
    """All points within radius [m] of a Box, Cylinder, Cone, Ellipsoid or ConvexHull.

    The solid grows by the radius on each side: a rounded box of outer size s has Box(s - 2 radius) inside.
    """

    shape: Box | Cylinder | Cone | Ellipsoid | ConvexHull
    radius: float

    def __post_init__(self) -> None:
        if not isinstance(self.shape, (Box, Cylinder, Cone, Ellipsoid, ConvexHull)):
            raise SceneError(
                message(
                    "Rounded.shape",
                    "must be a Box, Cylinder, Cone, Ellipsoid or ConvexHull",
                    checks.short(self.shape),
                    _remedy(self.shape),
                )
            )
        object.__setattr__(
            self, "radius", positive_length("Rounded.radius", self.radius, "Leave Rounded out for sharp edges.")
        )

    @property
    def kind(self) -> ShapeKind:
        """That of the shape inside."""
        return self.shape.kind

    @property
    def geometry(self) -> Any:
        """That of the shape inside."""
        return self.shape.geometry

    @property
    def parameters(self) -> np.ndarray:
        return self.shape.parameters + np.array([0.0, 0.0, 0.0, self.radius])

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = self.shape.box
        return low - self.radius, high + self.radius

    @property
    def bound(self) -> float:
        return self.shape.bound + self.radius

    @property
    def smallest(self) -> float:
        return self.shape.smallest + self.radius

    @property
    def volume(self) -> float:
        return self._moments.zeroth

    @property
    def center(self) -> np.ndarray:
        return self._middle + self._moments.center

    @property
    def unit_inertia(self) -> np.ndarray:
        return self._moments.unit_inertia

    @property
    def _middle(self) -> np.ndarray:
        """A point inside, about which the moments are taken."""
        return self.shape.center

    @cached_property
    def _moments(self) -> Moments:
        return rounded_moments(self.shape, self.radius)


def _remedy(shape: object) -> str:
    if isinstance(shape, (Sphere, Capsule)):
        return f"Give the {type(shape).__name__} a larger radius instead."
    if isinstance(shape, Rounded):
        return "Add the two radii."
    if isinstance(shape, Shape):
        return f"A {type(shape).__name__} has no rounding; move its surface, or round the bodies that touch it."
    return "For example Rounded(Box((1, 1, 1)), 0.1)."
