"""Parts of space in which bodies appear or from which they are taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import checks
from ..errors import SceneError, message

__all__ = ["BoxRegion", "DiscRegion", "Region", "across"]


@dataclass(frozen=True, kw_only=True)
class BoxRegion:
    """A box along the axes."""

    low: tuple[float, float, float]
    """Lowest corner [m]."""
    high: tuple[float, float, float]
    """Highest corner [m]; along one axis or more it may be the same: a rectangle, a line, a point."""

    def __post_init__(self) -> None:
        _keep(self, "low", checks.vector("BoxRegion.low", self.low))
        _keep(self, "high", checks.vector("BoxRegion.high", self.high))
        if np.any(np.array(self.high) < self.low):
            raise SceneError(
                message("BoxRegion", "needs low <= high along each axis", f"{self.low}, {self.high}", "Swap them.")
            )

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest corner (3,) [m]."""
        return np.array(self.low), np.array(self.high)

    def points(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Points (count, 3) spread evenly at random [m]."""
        return rng.uniform(*self.box, (count, 3))

    def contains(self, point: np.ndarray) -> np.ndarray:
        """Whether points (k, 3) lie inside or on the surface (k,)."""
        low, high = self.box
        return np.all((point >= low) & (point <= high), axis=1)


@dataclass(frozen=True, kw_only=True)
class DiscRegion:
    """A disc: where bodies appear; it has no inside."""

    center: tuple[float, float, float]
    """[m]"""
    radius: float
    """[m]"""
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Across the disc, of any length."""

    def __post_init__(self) -> None:
        _keep(self, "center", checks.vector("DiscRegion.center", self.center))
        checks.number("DiscRegion.radius", self.radius, above=0.0, unit="m", error=SceneError)
        _keep(self, "normal", unit_vector("DiscRegion.normal", self.normal))

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest corner (3,) of the box around it [m]."""
        reach = self.radius * np.sqrt(np.maximum(0.0, 1.0 - np.array(self.normal) ** 2))
        return np.array(self.center) - reach, np.array(self.center) + reach

    def points(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Points (count, 3) spread evenly at random [m]."""
        u, v = across(np.array(self.normal))
        r, angle = self.radius * np.sqrt(rng.uniform(size=count)), rng.uniform(0.0, 2.0 * np.pi, count)
        return np.array(self.center) + (r * np.cos(angle))[:, None] * u + (r * np.sin(angle))[:, None] * v


Region = BoxRegion | DiscRegion


def unit_vector(where: str, value: object) -> np.ndarray:
    """A direction (3,) of length one."""
    return checks.direction(where, value)


def across(normal: np.ndarray, axis: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors (3,), (3,) across a unit normal and across each other; the first along `axis` where given."""
    start = np.eye(3)[int(np.argmin(np.abs(normal)))] if axis is None else axis
    u = start - (start @ normal) * normal
    u /= np.linalg.norm(u)
    return u, np.cross(normal, u)


def _keep(region: object, name: str, value: np.ndarray) -> None:
    """A vector in a frozen dataclass, as a tuple."""
    object.__setattr__(region, name, tuple(value.tolist()))
