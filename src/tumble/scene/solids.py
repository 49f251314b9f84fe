"""Volume, centroid and inertia of solids from integrals of 1, x and x x^T."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    a, b, c = (points[triangles[:, k]] for k in range(3))
    six_volumes = np.einsum("ij,ij->i", a, np.cross(b, c))
    total = a + b + c
    second = np.einsum("i,ij,ik->jk", six_volumes, total, total)
    for corner in (a, b, c):
        second += np.einsum("i,ij,ik->jk", six_volumes, corner, corner)
    return Moments(float(six_volumes.sum()) / 6.0, weighted(six_volumes, total) / 24.0, second / 120.0)


def all_enclosed(points: np.ndarray, triangles: np.ndarray, start: np.ndarray) -> list[Moments]:
    """The same of each of n solids, whose triangles begin at `start` (n + 1,), and bit for bit the same.

    Solids of as many triangles are summed together: sums over segments would go in another order.
    """
    corners = [points[triangles[:, k]] for k in range(3)]
    six_volumes = np.einsum("ij,ij->i", corners[0], np.cross(corners[1], corners[2]))
    total = sum(corners[1:], corners[0])
    count = np.diff(start)
    out: list[Any] = [None] * len(count)
    for k in np.unique(count):
        same = np.flatnonzero(count == k)
        at = start[same][:, None] + np.arange(k)
        volumes, second = six_volumes[at], 0.0
        for x in (total, *corners):
            second = second + np.einsum("ni,nij,nik->njk", volumes, x[at], x[at])
        first = np.einsum("ni,nij->nj", volumes, total[at]) / 24.0
        for i, volume, one, two in zip(same, (volumes.sum(axis=1) / 6.0).tolist(), first, np.divide(second, 120.0)):
            out[i] = Moments(volume, one, two)
    return out


def weighted(weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum of weights (n,) times values (n,) or (n, k), in an order that does not depend on the machine's BLAS."""
    return np.einsum("i,i...->...", weight, values)
