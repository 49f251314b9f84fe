"""Surfaces of revolution about z, and ellipsoids: many of a kind at once, as a grid of turns and profile points.

Every function takes the parameters (k, 4) of k shapes (see `Model.shape_parameters`) and gives `Surfaces`. `turns` is
the number of segments of a full turn, `arc` that of a quarter turn of the rounding, 0 for sharp edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Surfaces", "capsules", "ellipsoids", "frusta"]


Each = np.ndarray | float
"""(k,), or one for all"""


class Surfaces(NamedTuple):
    """k surfaces with the same triangles."""

    point: np.ndarray
    """(k, v, 3) [m]"""
    normal: np.ndarray | None
    """(k, v, 3) outward unit normals; None where each triangle is flat by itself"""
    triangle: np.ndarray
    """(t, 3) int64, counter-clockwise from outside"""


class _Profile:
    """Points of profiles (k of them) in the half-plane (rho, z), from the lowest to the highest."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.columns: list[np.ndarray] = []
        self.strips: list[tuple[int, int]] = []

    def add(self, rho: Each, z: Each, angle: Each, radius: Each, *, joined: bool) -> None:
        """A point at `radius` from (rho, z) along its normal, which is at an angle from the rho axis [rad]."""
        out, up = np.cos(angle), np.sin(angle)
        values = np.broadcast_arrays(rho + radius * out, z + radius * up, out, up, np.empty(self.count))[:4]
        if joined:
            self.strips.append((len(self.columns) - 1, len(self.columns)))
        self.columns.append(np.stack(values, axis=-1))

    def bend(self, rho, z, first, last, radius, steps: int, *, joined: bool = True) -> None:
        """An arc, or without steps its two ends, which are not joined."""
        for angle in np.linspace(first, last, steps + 1) if steps else (first, last):
            self.add(rho, z, angle, radius, joined=joined)
            joined = steps > 0

    def revolve(self, turns: int) -> Surfaces:
        """The surfaces; triangles without area at the axis are left out."""
        rho, z, out, up = np.moveaxis(np.stack(self.columns, axis=1), -1, 0)[..., None]
        turn = 2 * np.pi * np.arange(turns) / turns
        x, y = np.cos(turn), np.sin(turn)
        flat = np.ones_like(x)
        shape = (self.count, -1, 3)
        point = np.stack([rho * x, rho * y, z * flat], axis=-1).reshape(shape)
        normal = np.stack([out * x, out * y, up * flat], axis=-1).reshape(shape)
        on_axis = np.all(np.abs(rho[..., 0]) <= 1e-12 * np.abs(self.columns).max(), axis=0)
        here = np.arange(turns)
        after = (here + 1) % turns
        triangles = []
        for low, high in self.strips:
            a, b, c, d = low * turns + here, low * turns + after, high * turns + after, high * turns + here
            if not on_axis[low]:
                triangles.append(np.stack([a, b, c], axis=1))
            if not on_axis[high]:
                triangles.append(np.stack([a, c, d], axis=1))
        return Surfaces(point, normal, np.concatenate(triangles).astype(np.int64))


def capsules(parameters: np.ndarray, turns: int, arc: int) -> Surfaces:
    """Capsules, and spheres, which have the length 0."""
    half, radius = parameters[:, 2], parameters[:, 3]
    profile = _Profile(len(parameters))
    profile.bend(0.0, -half, -np.pi / 2, 0.0, radius, max(arc, 1), joined=False)
    profile.bend(0.0, half, 0.0, np.pi / 2, radius, max(arc, 1))
    return profile.revolve(turns)


def frusta(low: np.ndarray, high: np.ndarray, parameters: np.ndarray, turns: int, arc: int) -> Surfaces:
    """Solids with straight sides between ends of radii low and high (k,), 0 for an apex; rounded where arc > 0."""
    half, radius = parameters[:, 2], parameters[:, 3]
    side = np.arctan2(low - high, 2 * half)
    steep = 1 if np.all(low == high) else 2
    profile = _Profile(len(parameters))
    profile.add(0.0, -half, -np.pi / 2, radius, joined=False)
    profile.bend(low, -half, -np.pi / 2, side, radius, steep * arc)
    if np.any(high > 0.0):
        profile.bend(high, half, side, np.pi / 2, radius, steep * arc)
        profile.add(0.0, half, np.pi / 2, radius, joined=True)
    elif arc:
        profile.bend(0.0, half, side, np.pi / 2, radius, arc)
    else:
        profile.add(0.0, half, side, radius, joined=True)
    return profile.revolve(turns)


def ellipsoids(parameters: np.ndarray, turns: int, arc: int) -> Surfaces:
    """Ellipsoids, rounded where arc > 0; half as many steps from pole to pole as turns."""
    ball = _Profile(1)
    ball.bend(0.0, 0.0, -np.pi / 2, np.pi / 2, np.ones(1), max(turns // 2, 2), joined=False)
    unit = ball.revolve(turns)
    axes = parameters[:, None, :3]
    normal = unit.normal / axes
    normal /= np.linalg.norm(normal, axis=2, keepdims=True)
    return Surfaces(axes * unit.point + parameters[:, None, 3:] * normal, normal, unit.triangle)
