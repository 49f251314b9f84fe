"""Convex polytopes: the hull of points, with polygons for faces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..enums import ShapeKind
from ..errors import SceneError, message
from .geometry import HullArrays, pooled
from .hull_faces import COPLANAR, TOGETHER, Triangulated, fan, merged
from .shape import Shape, positive_length
from .solids import Moments, all_enclosed, enclosed

__all__ = ["ConvexHull"]

FLAT = 1e-8
"""Thickness over size below which points count as coplanar."""
MERGE_DISTANCE = 1e-10
"""Distance over size within which points are one point."""
SKEW = np.array([0.36, 0.48, 0.8])
"""A direction of length one. Points that are near each other are so along it: mostly it tells that there are none."""
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
        self._take(_told_apart(given, merged([_triangulated(_thick(given))])[0]))

    def _take(self, arrays: HullArrays) -> None:
        for array in arrays:
            array.setflags(write=False)
        object.__setattr__(self, "geometry", arrays)
        object.__setattr__(self, "points", arrays.point)

    if TYPE_CHECKING:

        @property
        def geometry(self) -> HullArrays: ...

    kind = ShapeKind.HULL

    @classmethod
    def many(cls, points: Any) -> list[ConvexHull]:
        """The hulls of many sets of points in one go: an array (n, k, 3) or a list of arrays (k, 3) [m]."""
        sets = _point_sets(points)
        plain = _plain(sets)
        triangulated = []
        for i, given in enumerate(sets):
            with _naming(i):
                triangulated.append(_triangulated(given if plain[i] else _thick(given), apart=bool(plain[i])))
        out = []
        for i, arrays in enumerate(merged(triangulated)):
            with _naming(i):
                hull = object.__new__(cls)
                hull._take(_told_apart(sets[i], arrays))
                out.append(hull)
        for first in range(0, len(out), TOGETHER):
            chosen = out[first : first + TOGETHER]
            for hull, moments in zip(chosen, _all_moments([hull.geometry for hull in chosen])):
                vars(hull)["_moments"] = moments  # where the cached property keeps it
        return out

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


def _plain(sets: Sequence[np.ndarray]) -> np.ndarray:
    """(n,) bool: sets of points of which it is plain that they span a solid and that no two are near each other."""
    count = np.array([len(points) for points in sets])
    plain = np.zeros(len(sets), bool)
    for k in np.unique(count[count >= 4]):
        same = np.flatnonzero(count == k)
        for part in np.array_split(same, max(1, len(same) * k // CHUNK)):
            points = np.stack([sets[i] for i in part])
            size = np.ptp(points, axis=1).max(axis=1)
            sound = (size > 1.0 / checks.LARGEST) & (size < checks.LARGEST)
            centered = (points - points.mean(axis=1, keepdims=True)) / np.where(sound, size, 1.0)[:, None, None]
            least = np.linalg.svd(np.linalg.qr(centered, mode="r"))[2][:, 2]
            thickness = np.ptp(np.einsum("ijk,ik->ij", centered, least), axis=1)
            apart = np.diff(np.sort(centered @ SKEW, axis=1), axis=1).min(axis=1)
            plain[part] = sound & (thickness > 2.0 * FLAT) & (apart > 2.0 * MERGE_DISTANCE)
    return plain


def _all_moments(hulls: Sequence[HullArrays]) -> list[Moments]:
    """Of each hull about the mean of its corners."""
    pool = pooled(hulls)[1]
    corners = np.diff(pool.hull_start)
    owner = np.repeat(np.arange(len(hulls)), corners)
    # bincount adds in the order of the points, as a mean over them does; reduceat does not.
    middle = np.stack([np.bincount(owner, x) for x in pool.hull_point.T], axis=1) / corners[:, None]
    triangles = fan(HullArrays(pool.hull_point, pool.face_plane, pool.face_loop_start, pool.face_loop))
    before = np.concatenate([[0], np.cumsum(np.diff(pool.face_loop_start) - 2)])[pool.hull_face_start]
    return all_enclosed(pool.hull_point - middle[owner], triangles, before)


def _point_sets(points: Any) -> list[np.ndarray]:
    """The sets of points given to `ConvexHull.many`, checked one by one."""
    where = "ConvexHull.many"
    if isinstance(points, np.ndarray) and points.dtype != object:
        return list(checks.array(where + ".points", points, (None, None, 3)))
    try:
        sets = list(points)
    except TypeError:
        remedy = "For example points of shape (1000, 12, 3)."
        raise SceneError(message(where, "needs sets of points", checks.short(points), remedy)) from None
    return [checks.array(f"{where}.points[{i}]", one, (None, 3)) for i, one in enumerate(sets)]


@contextmanager
def _naming(number: int) -> Iterator[None]:
    """Mistakes say which of many hulls they are in."""
    try:
        yield
    except SceneError as cause:
        raise SceneError(f"ConvexHull.many: points[{number}]: {cause}") from cause


def _told_apart(points: np.ndarray, arrays: HullArrays | None) -> HullArrays:
    if arrays is None:
        raise SceneError(
            message(
                "ConvexHull.points",
                "must have faces that can be told apart",
                f"{len(points)} points with features near {max(COPLANAR):g} of the size",
                "Round the coordinates or leave out points that lie almost in a face.",
            )
        )
    return arrays


def _triangulated(points: np.ndarray, apart: bool = False) -> Triangulated:
    """The hull by Qhull, without near duplicates; apart: it is known that there are none."""
    from scipy.spatial import ConvexHull as Qhull
    from scipy.spatial import KDTree, QhullError

    try:
        hull = Qhull(points)
        if not apart:
            corners, distance = points[hull.vertices], MERGE_DISTANCE * np.ptp(points, axis=0).max()
            pairs = KDTree(corners).query_pairs(distance, output_type="ndarray")
            if len(pairs):
                points = np.delete(corners, np.unique(pairs.max(axis=1)), axis=0)
                hull = Qhull(points)
    except QhullError as cause:
        raise SceneError(
            message(
                "ConvexHull.points",
                "must span a solid",
                str(cause).strip().splitlines()[0],
                "Check the points for outliers and for a plane that holds all of them.",
            )
        ) from cause
    return Triangulated(points, hull.simplices, hull.equations, hull.neighbors)
