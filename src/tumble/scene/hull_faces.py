"""Faces of convex hulls: triangles in one plane merged to polygons, for many hulls at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .geometry import HullArrays

__all__ = ["COPLANAR", "Triangulated", "fan", "following", "merged"]

COPLANAR = (1e-10, 1e-9, 1e-8, 1e-12, 1e-14)
"""Distances over size within which triangles lie in one plane; the first that gives a closed surface counts."""
MERGE_ANGLE = 1e-6
"""Angle [rad] between the normals of triangles of one face."""
TOGETHER = 500
"""Hulls that are merged in one go."""


class Triangulated(NamedTuple):
    """One hull as Qhull gives it."""

    point: np.ndarray
    """(n, 3), also those that are no corners"""
    triangle: np.ndarray
    """(t, 3)"""
    equation: np.ndarray
    """(t, 4) outward unit normal and minus the offset"""
    neighbor: np.ndarray
    """(t, 3) triangles across the edges"""


def merged(hulls: Sequence[Triangulated]) -> list[HullArrays | None]:
    """Corners and faces of each; None where no distance gives a closed surface.

    Rough planes can be merged in part only, which may leave gaps; then merge more or less.
    """
    out: list[HullArrays | None] = [None] * len(hulls)
    for distance in COPLANAR:
        left = [i for i, arrays in enumerate(out) if arrays is None]
        for first in range(0, len(left), TOGETHER):
            chosen = left[first : first + TOGETHER]
            for i, arrays in zip(chosen, _merged([hulls[i] for i in chosen], distance)):
                out[i] = arrays
    return out


def _merged(hulls: Sequence[Triangulated], distance: float) -> list[HullArrays | None]:
    """Merge triangles in one plane to polygons, and drop corners that then lie inside a face or an edge."""
    count = len(hulls)
    given = np.concatenate([h.point for h in hulls])
    planes = np.concatenate([h.equation for h in hulls]) * np.array([1.0, 1.0, 1.0, -1.0])
    point_owner = np.repeat(np.arange(count), [len(h.point) for h in hulls])
    owner = np.repeat(np.arange(count), [len(h.triangle) for h in hulls])
    start = np.searchsorted(point_owner, np.arange(count))
    size = (np.maximum.reduceat(given, start) - np.minimum.reduceat(given, start)).max(axis=1)
    triangles = np.concatenate([h.triangle for h in hulls]) + start[owner][:, None]
    used = np.zeros(len(given), bool)
    used[triangles] = True
    triangles, points, point_owner = (np.cumsum(used) - 1)[triangles], given[used], point_owner[used]
    neighbors = np.concatenate([h.neighbor for h in hulls]) + np.searchsorted(owner, owner)[:, None]
    group = _coplanar(points, triangles, planes, neighbors, distance * size[owner])
    normal, face_owner = np.zeros((group.max() + 1, 3)), np.zeros(group.max() + 1, np.int64)
    np.add.at(normal, group, planes[:, :3])
    face_owner[group] = owner
    # The same corner of a face comes from several triangles; counted once, in the order of the faces.
    face, corner = np.divmod(
        np.unique(np.repeat(group, 3).astype(np.int64) * len(points) + triangles.ravel()), len(points)
    )
    kept = np.bincount(corner, minlength=len(points)) >= 3
    face, corner = face[kept[corner]], corner[kept[corner]]
    lost = np.zeros(count, bool)
    lost[face_owner[np.bincount(face, minlength=len(normal)) < 3]] = True
    if np.any(lost):  # a face without corners would disturb those of other hulls
        rest = iter(_merged([h for h, gone in zip(hulls, lost) if not gone], distance) if not np.all(lost) else ())
        return [None if gone else next(rest) for gone in lost]
    corner = (np.cumsum(kept) - 1)[corner]
    points, point_owner = points[kept], point_owner[kept]
    loop = corner[_around(face, points[corner], normal)]
    start = np.concatenate([[0], np.cumsum(np.bincount(face, minlength=len(normal)))]).astype(np.int64)
    whole = HullArrays(points, _planes(points, start, loop), start, loop)
    closed = _closed(whole, point_owner, face_owner, 2 * max(COPLANAR) * size)
    return [arrays if good else None for arrays, good in zip(_parted(whole, point_owner, face_owner, count), closed)]


def _parted(whole: HullArrays, point_owner: np.ndarray, face_owner: np.ndarray, count: int) -> list[HullArrays]:
    """The arrays of each hull, out of those of many."""
    point = np.searchsorted(point_owner, np.arange(count + 1)).tolist()
    face = np.searchsorted(face_owner, np.arange(count + 1)).tolist()
    corner = whole.loop_start[face].tolist()
    return [
        HullArrays(
            whole.point[point[i] : point[i + 1]],
            whole.plane[face[i] : face[i + 1]],
            whole.loop_start[face[i] : face[i + 1] + 1] - corner[i],
            whole.loop[corner[i] : corner[i + 1]] - point[i],
        )
        for i in range(count)
    ]


def _coplanar(
    points: np.ndarray, triangles: np.ndarray, planes: np.ndarray, neighbors: np.ndarray, distance: np.ndarray
) -> np.ndarray:
    """Number (t,) of the face that each triangle belongs to, faces numbered in the order of their first triangles."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, side = np.repeat(np.arange(len(triangles)), 3), neighbors.ravel()
    turned = np.linalg.norm(planes[one, :3] - planes[side, :3], axis=1)
    height = np.einsum("ikj,ij->ik", points[triangles[side]], planes[one, :3]) - planes[one, 3:]
    same = (turned < MERGE_ANGLE) & (np.abs(height).max(axis=1) < distance[one])
    links = coo_array((np.ones(same.sum(), bool), (one[same], side[same])), shape=(len(triangles),) * 2)
    return connected_components(links, directed=False)[1]


def _around(face: np.ndarray, corner: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Order of the corners that goes counter-clockwise about the normal, face by face."""
    count = np.bincount(face, minlength=len(normal))
    middle = np.stack([np.bincount(face, corner[:, k], minlength=len(normal)) for k in range(3)], axis=1)
    middle /= count[:, None]
    normal = normal / np.linalg.norm(normal, axis=1)[:, None]
    across = np.cross(normal, np.eye(3)[np.abs(normal).argmin(axis=1)])
    across /= np.linalg.norm(across, axis=1)[:, None]
    along = np.cross(normal, across)
    arm = corner - middle[face]
    angle = np.arctan2(np.einsum("ij,ij->i", arm, along[face]), np.einsum("ij,ij->i", arm, across[face]))
    return np.lexsort((angle, face))


def _planes(points: np.ndarray, start: np.ndarray, loop: np.ndarray) -> np.ndarray:
    """Outward unit normal and offset (faces, 4); the offset is that of the outermost corner."""
    face = np.repeat(np.arange(len(start) - 1), np.diff(start))
    after = following(start)
    arm = points[loop] - points[loop[start[:-1]]][face]
    normal = np.add.reduceat(np.cross(arm, arm[after]), start[:-1])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    offset = np.maximum.reduceat(np.einsum("ij,ij->i", normal[face], points[loop]), start[:-1])
    return np.concatenate([normal, offset[:, None]], axis=1)


def _closed(hulls: HullArrays, point_owner: np.ndarray, face_owner: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """(n,) bool: whether the faces of a hull are flat, convex and meet two by two, neighbours behind each other's
    plane."""
    points, size = len(hulls.point), np.diff(hulls.loop_start)
    face = np.repeat(np.arange(len(size)), size)
    owner = face_owner[face]
    after = following(hulls.loop_start)
    tail, head = hulls.loop, hulls.loop[after]
    forth, back = np.argsort(tail * points + head), np.argsort(head * points + tail)
    key = (tail * points + head)[forth]
    used = np.zeros(points, bool)
    used[tail] = True
    corners, edges, faces = (np.bincount(x, minlength=len(tolerance)) for x in (point_owner, owner, face_owner))
    good = corners - edges // 2 + faces == 2
    good[point_owner[~used]] = False
    good[face_owner[~np.isfinite(hulls.plane).all(axis=1)]] = False
    good[owner[forth[1:]][np.diff(key) == 0]] = False
    good[owner[forth][key != (head * points + tail)[back]]] = False
    middle = np.add.reduceat(hulls.point[hulls.loop], hulls.loop_start[:-1]) / size[:, None]
    normal, offset = hulls.plane[face, :3], hulls.plane[face, 3]
    edge = hulls.point[head] - hulls.point[tail]
    edge /= np.linalg.norm(edge, axis=1)[:, None]
    within = tolerance[owner]
    flat = np.abs(np.einsum("ij,ij->i", normal, hulls.point[tail]) - offset) <= within
    convex = np.einsum("ij,ij->i", normal, np.cross(edge, edge[after])) >= -MERGE_ANGLE
    behind = np.einsum("ij,ij->i", normal[forth], middle[face[back]]) <= (offset + within)[forth]
    good[owner[~(flat & convex)]] = False
    good[owner[forth[~behind]]] = False
    return good


def fan(hull: HullArrays) -> np.ndarray:
    """Triangles (k, 3) int64 of all faces, each from the face's first corner."""
    corners = np.diff(hull.loop_start)
    face = np.repeat(np.arange(len(corners)), corners - 2)
    first = hull.loop_start[face]
    step = np.arange(len(face)) - np.repeat(np.cumsum(corners - 2) - (corners - 2), corners - 2)
    return np.stack([hull.loop[first], hull.loop[first + step + 1], hull.loop[first + step + 2]], axis=1)


def following(loop_start: np.ndarray) -> np.ndarray:
    """Place of the next corner in each face's loop."""
    after = np.arange(1, loop_start[-1] + 1)
    after[loop_start[1:] - 1] = loop_start[:-1]
    return after
