"""Convex polytopes: the hull of points, with polygons for faces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import checks
from ..enums import ShapeKind
from ..errors import SceneError, message
from .geometry import HullArrays
from .shape import Shape, positive_length
from .solids import Moments, enclosed

__all__ = ["ConvexHull"]

FLAT = 1e-8
"""Thickness over size below which points count as coplanar."""
MERGE_DISTANCE = 1e-10
"""Distance over size within which points are one point."""
COPLANAR = (1e-10, 1e-9, 1e-8, 1e-12, 1e-14)
"""Distances over size within which triangles lie in one plane; the first that gives a closed surface counts."""
MERGE_ANGLE = 1e-6
"""Angle [rad] between the normals of triangles of one face."""
CHUNK = 2**22
"""Numbers in a block of distances between faces and points."""


@dataclass(frozen=True, eq=False, repr=False)
class ConvexHull(Shape):
    """The smallest convex solid that holds all points (n, 3) [m], in the frame they are given in.

    Afterwards `points` are the corners alone. Triangles in one plane are merged to polygons. Use the same object for
    many bodies: they then share its arrays.
    """

    points: np.ndarray

    def __post_init__(self) -> None:
        given = checks.array("ConvexHull.points", self.points, (None, 3))
        arrays = _hull(_thick(given))
        object.__setattr__(self, "geometry", arrays)
        object.__setattr__(self, "points", arrays.point)
        for array in arrays:
            array.setflags(write=False)

    kind = ShapeKind.HULL

    def __repr__(self) -> str:
        return f"ConvexHull({len(self.points)} corners, {len(self.geometry.plane)} faces)"

    @property
    def parameters(self) -> np.ndarray:
        """Zeros (4,); a model puts the first point and the number of points of its pool into the first two."""
        return np.zeros(4)

    @property
    def faces(self) -> list[np.ndarray]:
        """Corners of each face as indices of `points`, counter-clockwise from outside."""
        return np.split(self.geometry.loop, self.geometry.loop_start[1:-1])

    @property
    def triangles(self) -> np.ndarray:
        """Faces cut into triangles (k, 3), counter-clockwise from outside."""
        return fan(self.geometry)

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        return self.points.min(axis=0), self.points.max(axis=0)

    @property
    def bound(self) -> float:
        return float(np.linalg.norm(self.points, axis=1).max())

    @cached_property
    def smallest(self) -> float:
        """Half of the smallest width across a face [m]."""
        normal, offset = self.geometry.plane[:, :3], self.geometry.plane[:, 3]
        rows = max(1, CHUNK // len(self.points))
        lowest = [(normal[i : i + rows] @ self.points.T).min(axis=1) for i in range(0, len(normal), rows)]
        return 0.5 * float((offset - np.concatenate(lowest)).min())

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
        return self.points.mean(axis=0)

    @cached_property
    def _moments(self) -> Moments:
        return enclosed(self.points - self._middle, self.triangles)


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


def _thick(points: np.ndarray) -> np.ndarray:
    """The points, if they span a solid."""
    where = "ConvexHull.points"
    if len(points) < 4:
        raise SceneError(
            message(where, "needs at least 4 points", f"{len(points)} points", "Add points that are not in one plane.")
        )
    size = float(np.ptp(points, axis=0).max())
    if size == 0.0:
        raise SceneError(
            message(where, "must have a size above 0 m", f"{len(points)} equal points", "Use a Sphere for a point.")
        )
    positive_length("ConvexHull.points (largest extent)", size)
    centered = (points - points.mean(axis=0)) / size
    axes = np.linalg.svd(np.linalg.qr(centered, mode="r"))[2]
    thickness = np.ptp(centered @ axes[2])
    if thickness < FLAT:
        raise SceneError(
            message(
                where,
                f"must not lie in one plane (thickness >= {FLAT:g} of the size)",
                f"thickness {thickness * size:.3g} m of size {size:.3g} m",
                "Give it thickness, or use a thin Box, a Rounded thin shape or a Mesh.",
            )
        )
    return points


def _hull(points: np.ndarray) -> HullArrays:
    """Corners and faces. Rough planes can be merged in part only, which may leave gaps; then merge more or less."""
    size = np.ptp(points, axis=0).max()
    triangulated = _triangulated(points)
    for distance in COPLANAR:
        arrays = _faces(*triangulated, distance * size)
        if arrays is not None and _closed(arrays, 2 * max(COPLANAR) * size):
            return arrays
    raise SceneError(
        message(
            "ConvexHull.points",
            "must have faces that can be told apart",
            f"{len(points)} points with features near {max(COPLANAR):g} of the size",
            "Round the coordinates or leave out points that lie almost in a face.",
        )
    )


def _triangulated(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Corners (v, 3), triangles (t, 3), their planes (t, 4) and neighbours (t, 3) by Qhull, without near duplicates."""
    from scipy.spatial import ConvexHull as Qhull
    from scipy.spatial import QhullError, cKDTree

    try:
        hull = Qhull(points)
        corners = points[hull.vertices]
        pairs = cKDTree(corners).query_pairs(MERGE_DISTANCE * np.ptp(points, axis=0).max(), output_type="ndarray")
        if len(pairs):
            corners = np.delete(corners, np.unique(pairs.max(axis=1)), axis=0)
            hull = Qhull(corners)
            corners = corners[hull.vertices]
    except QhullError as cause:
        raise SceneError(
            message(
                "ConvexHull.points",
                "must span a solid",
                str(cause).strip().splitlines()[0],
                "Check the points for outliers and for a plane that holds all of them.",
            )
        ) from cause
    number = np.zeros(len(hull.points), np.int64)
    number[hull.vertices] = np.arange(len(hull.vertices))
    planes = hull.equations * np.array([1.0, 1.0, 1.0, -1.0])
    return corners, number[hull.simplices], planes, hull.neighbors.astype(np.int64)


def _faces(
    points: np.ndarray, triangles: np.ndarray, planes: np.ndarray, neighbors: np.ndarray, distance: float
) -> HullArrays | None:
    """Merge triangles in one plane to polygons, and drop corners that then lie inside a face or an edge.

    None if a face loses its corners.
    """
    group = _coplanar(points, triangles, planes, neighbors, distance)
    normal = np.zeros((group.max() + 1, 3))
    np.add.at(normal, group, planes[:, :3])
    pairs = np.unique(np.stack([np.repeat(group, 3), triangles.ravel()], axis=1), axis=0)
    kept = np.bincount(pairs[:, 1], minlength=len(points)) >= 3
    face, corner = pairs[kept[pairs[:, 1]]].T
    if np.bincount(face, minlength=len(normal)).min() < 3:
        return None
    corner = (np.cumsum(kept) - 1)[corner]
    points = np.ascontiguousarray(points[kept])
    loop = corner[_around(face, points[corner], normal)]
    start = np.concatenate([[0], np.cumsum(np.bincount(face, minlength=len(normal)))]).astype(np.int64)
    return HullArrays(points, _planes(points, start, loop), start, np.ascontiguousarray(loop, dtype=np.int64))


def _coplanar(
    points: np.ndarray, triangles: np.ndarray, planes: np.ndarray, neighbors: np.ndarray, distance: float
) -> np.ndarray:
    """Number (t,) of the face that each triangle belongs to."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, side = np.repeat(np.arange(len(triangles)), 3), neighbors.ravel()
    turned = np.linalg.norm(planes[one, :3] - planes[side, :3], axis=1)
    height = np.einsum("ikj,ij->ik", points[triangles[side]], planes[one, :3]) - planes[one, 3:]
    same = (turned < MERGE_ANGLE) & (np.abs(height).max(axis=1) < distance)
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


def _closed(hull: HullArrays, tolerance: float) -> bool:
    """Whether the faces are flat, convex and meet two by two, neighbours behind each other's plane."""
    if not np.all(np.isfinite(hull.plane)):
        return False
    count, size = len(hull.point), np.diff(hull.loop_start)
    face = np.repeat(np.arange(len(size)), size)
    after = following(hull.loop_start)
    tail, head = hull.loop, hull.loop[after]
    forth, back = np.argsort(tail * count + head), np.argsort(head * count + tail)
    key = (tail * count + head)[forth]
    if np.any(np.diff(key) == 0) or np.any(key != (head * count + tail)[back]):
        return False
    if count - len(tail) // 2 + len(size) != 2 or len(np.unique(tail)) != count:
        return False
    middle = np.add.reduceat(hull.point[hull.loop], hull.loop_start[:-1]) / size[:, None]
    normal, offset = hull.plane[face, :3], hull.plane[face, 3]
    edge = hull.point[head] - hull.point[tail]
    edge /= np.linalg.norm(edge, axis=1)[:, None]
    return bool(
        np.all(np.abs(np.einsum("ij,ij->i", normal, hull.point[tail]) - offset) <= tolerance)
        and np.all(np.einsum("ij,ij->i", normal, np.cross(edge, edge[after])) >= -MERGE_ANGLE)
        and np.all(np.einsum("ij,ij->i", normal[forth], middle[face[back]]) <= offset[forth] + tolerance)
    )
