"""Triangles of a height field."""

from __future__ import annotations

import numpy as np

__all__ = ["field_surface", "skirt"]


def field_surface(height: np.ndarray, dx: float, dy: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (nx ny, 3) [m], unit normals and triangles (2 (nx - 1) (ny - 1), 3) of heights (nx, ny)."""
    nx, ny = height.shape
    x = dx * (np.arange(nx) - (nx - 1) / 2)
    y = dy * (np.arange(ny) - (ny - 1) / 2)
    point = np.stack([*np.meshgrid(x, y, indexing="ij"), height], axis=-1)
    normal = np.stack([-np.gradient(height, dx, axis=0), -np.gradient(height, dy, axis=1), np.ones_like(height)], -1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    number = np.arange(nx * ny).reshape(nx, ny)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    triangle = np.stack([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)], axis=2)
    return point.reshape(-1, 3), normal.reshape(-1, 3), triangle.reshape(-1, 3)


def skirt(point: np.ndarray, shape: tuple[int, int], depth: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Walls from the border of a height field down to `depth` [m] below its lowest point: points, normals, triangles.

    Only pictures have them: they show that the ground is solid.
    """
    number = np.arange(shape[0] * shape[1]).reshape(shape)
    bottom = point[:, 2].min() - depth
    sides = (
        (number[:, 0], (0, -1, 0)),
        (number[-1], (1, 0, 0)),
        (number[::-1, -1], (0, 1, 0)),
        (number[0, ::-1], (-1, 0, 0)),
    )
    points, normals, triangles, first = [], [], [], 0
    for border, outward in sides:
        top = point[border]
        low = top.copy()
        low[:, 2] = bottom
        points += [low, top]
        normals.append(np.tile(np.array(outward, float), (2 * len(top), 1)))
        a = first + np.arange(len(top) - 1)
        b, c, d = a + 1, a + 1 + len(top), a + len(top)
        triangles += [np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]
        first += 2 * len(top)
    return np.concatenate(points), np.concatenate(normals), np.concatenate(triangles)
