"""Arrays of hulls, meshes and height fields, and the pool that bodies of the same shape share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..backends.shape_arrays import Geometry
from ..enums import ShapeKind

__all__ = ["FieldArrays", "HullArrays", "MeshArrays", "joined", "pooled"]


class HullArrays(NamedTuple):
    """One polytope; points are counted from 0."""

    point: np.ndarray
    """(points, 3)"""
    plane: np.ndarray
    """(faces, 4) outward unit normal and offset"""
    loop_start: np.ndarray
    """(faces + 1,) int64"""
    loop: np.ndarray
    """(corners,) int64, each face counter-clockwise from outside"""


class MeshArrays(NamedTuple):
    """One triangle mesh; points are counted from 0, triangles are sorted along a Morton curve."""

    point: np.ndarray
    """(points, 3)"""
    triangle: np.ndarray
    """(triangles, 3) int64"""
    normal: np.ndarray
    """(triangles, 3)"""
    opposite: np.ndarray
    """(triangles, 3) int64: third point of the neighbour over edge k -> k+1, or -1"""
    ring_start: np.ndarray
    """(points + 1,) int64"""
    ring: np.ndarray
    """(..,) int64: points joined to each point by an edge"""
    tree: np.ndarray
    """(nodes, 6) boxes of the tree, a heap"""


class FieldArrays(NamedTuple):
    """One height field."""

    height: np.ndarray
    """(rows along x, columns along y)"""


def pooled(shapes: Sequence[HullArrays | MeshArrays | FieldArrays | None]) -> tuple[np.ndarray, Geometry]:
    """Entry (shapes,) of each shape in the pool of its kind (-1 for None), and the pools.

    The same arrays (the same object) are pooled once.
    """
    pools: dict[type, list[Any]] = {HullArrays: [], MeshArrays: [], FieldArrays: []}
    known: dict[int, int] = {}
    entry = np.full(len(shapes), -1, np.int32)
    for i, arrays in enumerate(shapes):
        if arrays is not None:
            pool = pools[type(arrays)]
            entry[i] = known.setdefault(id(arrays), len(pool))
            if entry[i] == len(pool):
                pool.append(arrays)
    hulls, meshes, fields = pools.values()
    return entry, Geometry(**_hulls(hulls), **_meshes(meshes), **_fields(fields))


def _hulls(hulls: list[HullArrays]) -> dict[str, np.ndarray]:
    start = _starts(len(h.point) for h in hulls)
    corners = _starts(len(h.loop) for h in hulls)
    return {
        "hull_start": start,
        "hull_point": _stack([h.point for h in hulls], (3,)),
        "hull_face_start": _starts(len(h.plane) for h in hulls),
        "face_plane": _stack([h.plane for h in hulls], (4,)),
        "face_loop_start": _stack(
            [np.zeros(1, np.int64), *(h.loop_start[1:] + c for h, c in zip(hulls, corners))], (), np.int64
        ),
        "face_loop": _stack([h.loop + s for h, s in zip(hulls, start)], (), np.int64),
    }


def _meshes(meshes: list[MeshArrays]) -> dict[str, np.ndarray]:
    first = _starts(len(m.point) for m in meshes)
    rings = _starts(len(m.ring) for m in meshes)
    return {
        "mesh_start": _starts(len(m.triangle) for m in meshes),
        "mesh_point": _stack([m.point for m in meshes], (3,)),
        "mesh_triangle": _stack([m.triangle + f for m, f in zip(meshes, first)], (3,), np.int64),
        "mesh_normal": _stack([m.normal for m in meshes], (3,)),
        "mesh_opposite": _stack(
            [np.where(m.opposite < 0, -1, m.opposite + f) for m, f in zip(meshes, first)], (3,), np.int64
        ),
        "ring_start": _stack(
            [np.zeros(1, np.int64), *(m.ring_start[1:] + r for m, r in zip(meshes, rings))], (), np.int64
        ),
        "ring": _stack([m.ring + f for m, f in zip(meshes, first)], (), np.int64),
        "tree_start": _starts(len(m.tree) for m in meshes),
        "tree_box": _stack([m.tree for m in meshes], (6,)),
    }


def _fields(fields: list[FieldArrays]) -> dict[str, np.ndarray]:
    return {
        "field_start": _starts(f.height.size for f in fields),
        "field_shape": _stack([np.array([f.height.shape]) for f in fields], (2,), np.int64),
        "field_height": _stack([f.height.ravel() for f in fields], ()),
    }


def joined(one: Geometry, two: Geometry) -> tuple[Geometry, dict[ShapeKind, int]]:
    """Two pools as one, and by how much the entries of the second have moved for each kind."""
    points, corners = len(one.hull_point), len(one.face_loop)
    vertices, rings = len(one.mesh_point), len(one.ring)
    moved = two._replace(
        hull_start=two.hull_start[1:] + points,
        hull_face_start=two.hull_face_start[1:] + len(one.face_plane),
        face_loop_start=two.face_loop_start[1:] + corners,
        face_loop=two.face_loop + points,
        mesh_start=two.mesh_start[1:] + len(one.mesh_triangle),
        mesh_triangle=two.mesh_triangle + vertices,
        mesh_opposite=np.where(two.mesh_opposite < 0, -1, two.mesh_opposite + vertices),
        ring_start=two.ring_start[1:] + rings,
        ring=two.ring + vertices,
        tree_start=two.tree_start[1:] + len(one.tree_box),
        field_start=two.field_start[1:] + len(one.field_height),
    )
    offset = {
        ShapeKind.HULL: len(one.hull_start) - 1,
        ShapeKind.MESH: len(one.mesh_start) - 1,
        ShapeKind.HEIGHT_FIELD: len(one.field_start) - 1,
    }
    return Geometry(*(np.concatenate([a, b]) for a, b in zip(one, moved))), offset


def _starts(counts: Any) -> np.ndarray:
    """(n + 1,) int64: where each of n entries begins."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(list(counts), dtype=np.int64)])


def _stack(parts: list[np.ndarray], row: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    return np.ascontiguousarray(np.concatenate([np.zeros((0, *row), dtype), *parts]), dtype=dtype)
