"""Normals of triangle meshes: smooth, except over edges with a sharp bend."""

from __future__ import annotations

import numpy as np

__all__ = ["creased"]

CREASE = np.cos(np.deg2rad(35.0))
"""Cosine of the angle between two triangles from which on their edge is drawn as an edge."""


def creased(
    point: np.ndarray, triangle: np.ndarray, normal: np.ndarray, opposite: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (v, 3), unit normals (v, 3) and triangles (t, 3), with points doubled where creases meet them.

    normal (t, 3) are those of the triangles; opposite (t, 3) is the third point of the neighbour over the edge from
    corner k to k + 1, or -1.
    """
    weight = _area_normals(point, triangle)
    sharp = _creases(point, triangle, normal, opposite)
    group = triangle.ravel().copy()
    if sharp.any():
        at = np.zeros(len(point), bool)
        at[triangle[sharp]] = True
        at[np.roll(triangle, -1, axis=1)[sharp]] = True
        extra, source = _split(triangle, opposite, sharp, at)
        corners = np.flatnonzero(at[group])
        point = np.concatenate([point, point[source]])
        group[corners] = extra + (len(point) - len(source))
    total = np.stack([np.bincount(group, np.repeat(weight[:, k], 3), len(point)) for k in range(3)], axis=1)
    length = np.linalg.norm(total, axis=1)[:, None]
    return point, total / np.where(length > 0.0, length, 1.0), group.reshape(-1, 3)


def _area_normals(point: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """Normals (t, 3) as long as twice the area."""
    a, b, c = (point[triangle[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def _creases(point: np.ndarray, triangle: np.ndarray, normal: np.ndarray, opposite: np.ndarray) -> np.ndarray:
    """Which edges (t, 3) bend sharply."""
    sharp = np.zeros(triangle.shape, bool)
    for k in range(3):
        a, b = point[triangle[:, k]], point[triangle[:, (k + 1) % 3]]
        other = np.cross(a - b, point[opposite[:, k]] - b)
        along = np.einsum("ij,ij->i", other, normal)
        sharp[:, k] = (along < CREASE * np.linalg.norm(other, axis=1)) & (opposite[:, k] >= 0)
    return sharp


def _split(
    triangle: np.ndarray, opposite: np.ndarray, sharp: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Group of each corner at the marked points (corners in order), and the point of each group.

    Two corners at a point are in one group if a chain of smooth edges joins their triangles.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    flat = triangle.ravel()
    tail, head = flat, np.roll(triangle, -1, axis=1).ravel()
    smooth = np.flatnonzero(~sharp.ravel() & (opposite.ravel() >= 0) & (at[tail] | at[head]))
    key = tail[smooth] * len(at) + head[smooth]
    reverse = head[smooth] * len(at) + tail[smooth]
    order = np.argsort(key)
    partner = smooth[order[np.searchsorted(key[order], reverse).clip(0, max(len(key) - 1, 0))]] if len(key) else smooth
    met = (tail[partner] == head[smooth]) & (head[partner] == tail[smooth])
    smooth, partner = smooth[met], partner[met]
    corners = np.flatnonzero(at[flat])
    number = np.full(len(flat), -1)
    number[corners] = np.arange(len(corners))
    one = number[np.concatenate([smooth, _next(smooth)])]
    two = number[np.concatenate([_next(partner), partner])]
    kept = (one >= 0) & (two >= 0)
    links = coo_array((np.ones(kept.sum(), bool), (one[kept], two[kept])), shape=(len(corners),) * 2)
    count, group = connected_components(links, directed=False)
    source = np.empty(count, np.int64)
    source[group] = flat[corners]
    return group, source


def _next(corner: np.ndarray) -> np.ndarray:
    """The following corner of the same triangle."""
    return corner - corner % 3 + (corner + 1) % 3
