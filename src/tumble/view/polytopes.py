"""Triangles of convex polytopes, sharp or rounded, for many of them at once.

A rounded polytope is its faces moved outwards, a strip of a cylinder along each edge and a patch of a sphere at each
corner. A patch is cut into wedges, one for each edge that leaves the corner: from the middle of the normals around the
corner to the arc between the normals of the two faces at the edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..backends.shape_arrays import Geometry
from .ragged import ranges, starts

__all__ = ["CUBE", "Polytopes", "Skins", "hulls_of", "rounded_skins", "sharp_skins"]


class Polytopes(NamedTuple):
    """Several polytopes; points and faces are numbered over all of them."""

    start: np.ndarray
    """(polytopes + 1,) int64: first point of each"""
    point: np.ndarray
    """(points, 3)"""
    face_start: np.ndarray
    """(polytopes + 1,) int64: first face of each"""
    normal: np.ndarray
    """(faces, 3)"""
    loop_start: np.ndarray
    """(faces + 1,) int64"""
    loop: np.ndarray
    """(corners,) int64 points of each face, counter-clockwise from outside"""


class Skins(NamedTuple):
    """Surfaces of several polytopes: the vertices are point + radius normal."""

    start: np.ndarray
    """(polytopes + 1,) int64: first vertex of each"""
    point: np.ndarray
    """(vertices, 3) corner that each vertex belongs to"""
    normal: np.ndarray | None
    """(vertices, 3) directions from the corner; None for sharp polytopes"""
    triangle_start: np.ndarray
    """(polytopes + 1,) int64: first triangle of each"""
    triangle: np.ndarray
    """(triangles, 3) int64 vertices, counter-clockwise from outside"""


def _cube() -> Polytopes:
    signs = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    loops = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    normal = np.array([[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]], float)
    return Polytopes(
        np.array([0, 8]), signs, np.array([0, 6]), normal, np.arange(0, 25, 4), np.array(loops).reshape(-1)
    )


CUBE = _cube()
"""The box with half-extents 1."""


def hulls_of(geometry: Geometry, entries: np.ndarray) -> Polytopes:
    """The hulls with these numbers (k,)."""
    points = np.diff(geometry.hull_start)[entries]
    faces = np.diff(geometry.hull_face_start)[entries]
    start = starts(points)
    owner, face = ranges(geometry.hull_face_start[entries], faces)
    corners = np.diff(geometry.face_loop_start)[face]
    row, place = ranges(geometry.face_loop_start[face], corners)
    shift = start[:-1] - geometry.hull_start[entries]
    return Polytopes(
        start,
        geometry.hull_point[ranges(geometry.hull_start[entries], points)[1]],
        starts(faces),
        geometry.face_plane[face, :3],
        starts(corners),
        geometry.face_loop[place] + shift[owner[row]],
    )


def sharp_skins(hulls: Polytopes) -> Skins:
    """The faces, cut into triangles."""
    triangle = hulls.loop[_fan(hulls.loop_start)]
    return Skins(hulls.start, hulls.point, None, _fan_start(hulls), triangle)


def rounded_skins(hulls: Polytopes, arc: int) -> Skins:
    """Faces, edge strips and corner patches, with `arc` segments across each edge."""
    face = np.repeat(np.arange(len(hulls.normal)), np.diff(hulls.loop_start))
    after, twin = _half_edges(hulls)
    direction, middle = _directions(hulls, face, twin, arc)
    half_edges, points = len(hulls.loop), len(hulls.point)
    own = points + np.arange(half_edges * arc * arc).reshape(half_edges, arc, arc)
    grid = np.concatenate([own, own[after[twin], :, :1]], axis=2)  # (half-edges, rings, arc + 1)
    hull_of_face = np.repeat(np.arange(len(hulls.start) - 1), np.diff(hulls.face_start))
    edge_hull = hull_of_face[face]
    once = np.flatnonzero(np.arange(half_edges) < twin)
    parts = [
        (own[:, -1, 0][_fan(hulls.loop_start)], np.repeat(np.arange(len(hulls.start) - 1), np.diff(_fan_start(hulls)))),
        _quads(grid[once, -1], grid[twin[once], -1, ::-1], edge_hull[once]),
        (_tips(hulls.loop, grid[:, 0]), np.repeat(edge_hull, arc)),
    ]
    parts += [_quads(grid[:, i + 1], grid[:, i], edge_hull, reverse=True) for i in range(arc - 1)]
    triangle = np.concatenate([t for t, _ in parts])
    triangle_hull = np.concatenate([h for _, h in parts])
    vertex_hull = np.concatenate(
        [np.repeat(np.arange(len(hulls.start) - 1), np.diff(hulls.start)), np.repeat(edge_hull, arc * arc)]
    )
    order = np.argsort(vertex_hull, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    corner = np.concatenate([np.arange(points), np.repeat(hulls.loop, arc * arc)])
    normal = np.concatenate([middle, direction.reshape(-1, 3)])
    by_hull = np.argsort(triangle_hull, kind="stable")
    count = len(hulls.start) - 1
    return Skins(
        starts(np.bincount(vertex_hull, minlength=count)),
        hulls.point[corner[order]],
        normal[order],
        starts(np.bincount(triangle_hull, minlength=count)),
        number[triangle[by_hull]],
    )


def _half_edges(hulls: Polytopes) -> tuple[np.ndarray, np.ndarray]:
    """Place of the next corner in each face's loop, and place of the same edge in the face across."""
    after = np.arange(1, len(hulls.loop) + 1)
    after[hulls.loop_start[1:] - 1] = hulls.loop_start[:-1]
    tail, head = hulls.loop, hulls.loop[after]
    twin = np.empty(len(tail), np.int64)
    twin[np.argsort(tail * len(hulls.point) + head)] = np.argsort(head * len(hulls.point) + tail)
    return after, twin


def _directions(hulls: Polytopes, face: np.ndarray, twin: np.ndarray, arc: int) -> tuple[np.ndarray, np.ndarray]:
    """Normals (half-edges, rings, arc, 3) of the wedges without their last column, and middles (points, 3)."""
    middle = np.stack([np.bincount(hulls.loop, hulls.normal[face, k], len(hulls.point)) for k in range(3)], axis=1)
    middle /= np.linalg.norm(middle, axis=1)[:, None]
    one, two = hulls.normal[face], hulls.normal[face[twin]]
    angle = np.arctan2(np.linalg.norm(np.cross(one, two), axis=1), np.einsum("ij,ij->i", one, two))[:, None]
    part = np.arange(arc) / arc
    weight_one, weight_two = np.sin((1 - part) * angle) / np.sin(angle), np.sin(part * angle) / np.sin(angle)
    rim = weight_one[..., None] * one[:, None] + weight_two[..., None] * two[:, None]
    ring = ((1 + np.arange(arc)) / arc)[:, None, None]
    out = (1 - ring) * middle[hulls.loop][:, None, None] + ring * rim[:, None]
    return out / np.linalg.norm(out, axis=-1, keepdims=True), middle


def _quads(
    low: np.ndarray, high: np.ndarray, hull: np.ndarray, *, reverse: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Two triangles (k, 3) for each pair of neighbours in rows (r, arc + 1) of vertices, and their hulls (k,)."""
    a, b, c, d = low[:, :-1], low[:, 1:], high[:, 1:], high[:, :-1]
    triangles = np.stack([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)], axis=2).reshape(-1, 3)
    steps = 2 * (low.shape[1] - 1)
    return (triangles[:, ::-1] if reverse else triangles), np.repeat(hull, steps)


def _tips(corner: np.ndarray, ring: np.ndarray) -> np.ndarray:
    """Triangles (k, 3) between the middle of each patch and its first ring (half-edges, arc + 1)."""
    middle = np.repeat(corner[:, None], ring.shape[1] - 1, axis=1)
    return np.stack([middle, ring[:, 1:], ring[:, :-1]], axis=-1).reshape(-1, 3)


def _fan(loop_start: np.ndarray) -> np.ndarray:
    """Places (t, 3) in the loops that make triangles, each from its face's first corner."""
    count = np.diff(loop_start) - 2
    face, step = ranges(np.zeros(len(count), np.int64), count)
    first = loop_start[face]
    return np.stack([first, first + step + 1, first + step + 2], axis=1)


def _fan_start(hulls: Polytopes) -> np.ndarray:
    """(polytopes + 1,): first triangle of each."""
    return starts(np.diff(hulls.loop_start) - 2)[hulls.face_start]
