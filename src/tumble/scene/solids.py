"""Volume, centroid and inertia of solids from integrals of 1, x and x x^T."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Moments", "all_enclosed", "enclosed"]


class Moments(NamedTuple):
    """Integrals over a solid."""

    zeroth: float
    """Volume [m^3]"""
    first: np.ndarray
    """(3,) integral of x [m^4]"""
    second: np.ndarray
    """(3, 3) integral of x x^T [m^5]"""

    @property
    def center(self) -> np.ndarray:
        """Centroid (3,) [m]."""
        return self.first / self.zeroth

    @property
    def unit_inertia(self) -> np.ndarray:
        """Tensor (3, 3) about the centroid for mass 1 [m^2]."""
        spread = self.second / self.zeroth - np.outer(self.center, self.center)
        return np.trace(spread) * np.eye(3) - 0.5 * (spread + spread.T)

    def plus(self, other: Moments) -> Moments:
        """Of both solids together."""
        return Moments(self.zeroth + other.zeroth, self.first + other.first, self.second + other.second)


def enclosed(points: np.ndarray, triangles: np.ndarray) -> Moments:
    """Of the solid inside a closed surface with triangles counter-clockwise from outside, about the points' origin.

    Signed tetrahedra from the origin; the origin should lie near the solid, or digits cancel. Sums go through einsum,
    not through BLAS, whose order depends on the machine.
    """
    return all_enclosed(points, triangles, [0, len(triangles)])[0]


def all_enclosed(points: np.ndarray, triangles: np.ndarray, start: Sequence[int]) -> list[Moments]:
    """The same of each of n solids, whose triangles begin at `start` (n + 1,), and bit for bit the same."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    six_volumes, total = np.einsum("ij,ij->i", a, np.cross(b, c)), a + b + c
    return [_sums(six_volumes[i:j], total[i:j], (a[i:j], b[i:j], c[i:j])) for i, j in itertools.pairwise(start)]


def _sums(six_volumes: np.ndarray, total: np.ndarray, corners: tuple[np.ndarray, ...]) -> Moments:
    second = np.einsum("i,ij,ik->jk", six_volumes, total, total)
    for corner in corners:
        second += np.einsum("i,ij,ik->jk", six_volumes, corner, corner)
    return Moments(float(six_volumes.sum()) / 6.0, weighted(six_volumes, total) / 24.0, second / 120.0)


def weighted(weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum of weights (n,) times values (n,) or (n, k), in an order that does not depend on the machine's BLAS."""
    return np.einsum("i,i...->...", weight, values)
