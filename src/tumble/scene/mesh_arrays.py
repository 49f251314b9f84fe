"""Neighbours, normals and the tree of a triangle mesh, in whole arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .geometry import MeshArrays
from .trees import box_tree, morton

__all__ = ["Edges", "Merged", "mesh_arrays", "merged_points"]


class Merged(NamedTuple):
    """A mesh without equal and unused points."""

    point: np.ndarray
    """(points, 3) in the order of their first use"""
    triangle: np.ndarray
    """(triangles, 3) int64"""


def merged_points(vertices: np.ndarray, triangles: np.ndarray) -> Merged:
    """Give equal vertices one number and drop those that no triangle uses."""
    used = np.zeros(len(vertices), bool)
    used[triangles] = True
    kept = np.flatnonzero(used)
    place = vertices[kept] + 0.0  # -0.0 and 0.0 are the same place
    order = np.lexsort(place.T)
    new = np.ones(len(kept), bool)
    new[1:] = np.any(place[order[1:]] != place[order[:-1]], axis=1)
    first = np.minimum.reduceat(order, np.flatnonzero(new))  # the first vertex at each place
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    number = np.full(len(vertices), -1, np.int64)
    number[kept[order]] = rank[np.cumsum(new) - 1]
    return Merged(np.ascontiguousarray(place[np.sort(first)]), number[triangles])


class Edges(NamedTuple):
    """What the three edges k -> k+1 of every triangle share."""

    opposite: np.ndarray
    """(triangles, 3) int64: third point of the one neighbour with the opposite direction, or -1"""
    open: int
    """Edges of a single triangle"""
    crowded: int
    """Edges of more than two triangles"""
    twisted: int
    """Edges of two triangles that run along them in the same direction"""

    @classmethod
    def of(cls, points: int, triangles: np.ndarray) -> Edges:
        """Find the neighbours by sorting the edges."""
        tail, head = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
        key = np.minimum(tail, head) * points + np.maximum(tail, head)
        order = np.argsort(key, kind="stable")
        start = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) > 0]))
        count = np.diff(np.append(start, len(order)))
        one = order[start[count == 2]]
        two = order[start[count == 2] + 1]
        matched = tail[one] == head[two]
        third = np.roll(triangles, -2, axis=1).ravel()
        opposite = np.full(len(key), -1, np.int64)
        opposite[one[matched]] = third[two[matched]]
        opposite[two[matched]] = third[one[matched]]
        return cls(opposite.reshape(-1, 3), int((count == 1).sum()), int((count > 2).sum()), int((~matched).sum()))


def normals(points: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit normals (t, 3), areas (t,) and longest edges (t,); a triangle without area has the normal NaN."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    cross = np.cross(b - a, c - a)
    twice = np.linalg.norm(cross, axis=1)
    longest = np.sqrt(np.max([np.einsum("ij,ij->i", e, e) for e in (b - a, c - b, a - c)], axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return cross / twice[:, None], 0.5 * twice, longest


def mesh_arrays(points: np.ndarray, triangles: np.ndarray, opposite: np.ndarray) -> MeshArrays:
    """All that the pool needs, triangles sorted along a Morton curve of their centroids."""
    order = np.argsort(morton(points[triangles].mean(axis=1)), kind="stable")
    triangles = np.ascontiguousarray(triangles[order])
    ring_start, ring = _rings(len(points), triangles)
    corner = points[triangles]
    return MeshArrays(
        points,
        triangles,
        normals(points, triangles)[0],
        np.ascontiguousarray(opposite[order]),
        ring_start,
        ring,
        box_tree(corner.min(axis=1), corner.max(axis=1)),
    )


def _rings(count: int, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start (points + 1,) and points joined to each point by an edge, in rising order."""
    tail, head = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
    key = np.unique(np.concatenate([tail * count + head, head * count + tail]))
    owner, ring = np.divmod(key, count)
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))]).astype(np.int64)
    return start, ring
