"""What engines are given and what they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

__all__ = ["Candidate", "Pile"]


@dataclass(frozen=True)
class Pile:
    """Spheres that fall into a box with an open top, its floor at z = 0 and its axis that of z."""

    points: np.ndarray
    """(n, 3) centres at the start [m]"""
    radius: float = 1.0
    side: float = 20.0
    """Inner width of the box [m]"""
    wall: float = 1.0
    """Half the thickness of its walls [m]"""
    height: float = 60.0
    friction: float = 0.25
    """All spheres weigh 1 kg"""
    gravity: float = 9.81
    dt: float = 0.01

    def walls(self) -> list[tuple[tuple[float, float, float], tuple[float, float, float]]]:
        """Half-extents and centres of the floor and four walls."""
        a, t, b = 0.5 * self.side, self.wall, 0.5 * self.height
        return [
            ((a + 2 * t, a + 2 * t, t), (0.0, 0.0, -t)),
            ((t, a + 2 * t, b), (a + t, 0.0, b)),
            ((t, a + 2 * t, b), (-a - t, 0.0, b)),
            ((a + 2 * t, t, b), (0.0, a + t, b)),
            ((a + 2 * t, t, b), (0.0, -a - t, b)),
        ]

    def largest_overlap(self, points: np.ndarray) -> float:
        """Of spheres with each other and with the box, in radii; measured alike for all engines."""
        pairs = cKDTree(points).query_pairs(2.0 * self.radius, output_type="ndarray")
        deep = 0.0
        if len(pairs):
            apart = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
            deep = float((2.0 * self.radius - apart).max())
        free = 0.5 * self.side - np.abs(points[:, :2]).max()
        return max(deep, self.radius - float(free), self.radius - float(points[:, 2].min()), 0.0) / self.radius


@dataclass
class Candidate:
    """An engine with one of its settings."""

    engine: str
    setting: str
    step: Callable[[], object]
    positions: Callable[[], np.ndarray]
    """(n, 3) [m]"""
    velocities: Callable[[], np.ndarray]
    """(n, 3) [m/s]"""
