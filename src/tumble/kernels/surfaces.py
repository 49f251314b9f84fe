"""Triangles of meshes and height fields: corners, neighbours, and which normals a surface can have at them.

A triangle of a smooth-looking surface must not stop a body with its inner edges. A normal is real only if the part of
the triangle it belongs to (face, edge or corner) is the highest one along it among its neighbours, too; otherwise a
neighbour is nearer, and the contact belongs to that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .convex import triangle_corner
from .jit import formula
from .kinds import MESH
from .linalg import dot, norm, sub

TRIANGLE_A, TRIANGLE_B = 0, 9
"""Places in scratch of the triangles in hand."""
INNER_EDGE = 1e-4
"""Angle [rad] by which a neighbour must rise above an edge to count."""


class Surface(NamedTuple):
    """A mesh or height field in its own frame."""

    kind: np.int64
    s: tuple[float, float, float, float]
    entry: np.int64  # its number among the meshes or fields


class Piece(NamedTuple):
    """One triangle of a surface."""

    triangle: np.int64  # its number in a mesh
    cell: tuple[int, int, int]  # i, j, lower (0) or upper (1) in a height field


@formula
def mesh_corner(mesh_point, i):
    """Point i of a mesh."""
    return (mesh_point[i, 0], mesh_point[i, 1], mesh_point[i, 2])


@formula
def load_mesh_triangle(meshes, triangle, scratch, at):
    """Corners of a mesh's triangle into scratch."""
    for k in range(3):
        i = meshes.triangle[triangle, k]
        for c in range(3):
            scratch[at + 3 * k + c] = meshes.point[i, c]


@formula
def field_point(fields, surface, i, j):
    """Point (i, j) of a height field in its frame."""
    rows, columns = fields.shape[surface.entry, 0], fields.shape[surface.entry, 1]
    return (
        (i - 0.5 * (rows - 1)) * surface.s[0],
        (j - 0.5 * (columns - 1)) * surface.s[1],
        fields.height[fields.start[surface.entry] + i * columns + j],
    )


@formula
def field_corner(i, j, upper, k):
    """Grid place of corner k of a cell's lower (0) or upper (1) triangle."""
    if k == 0:
        return i, j
    if upper == 0:
        return (i + 1, j) if k == 1 else (i + 1, j + 1)
    return (i + 1, j + 1) if k == 1 else (i, j + 1)


@formula
def load_field_triangle(fields, surface, cell, scratch, at):
    """Corners of a triangle of a height field into scratch."""
    i, j, upper = cell
    for k in range(3):
        x, y = field_corner(i, j, upper, k)
        p = field_point(fields, surface, x, y)
        for c in range(3):
            scratch[at + 3 * k + c] = p[c]


@formula
def _field_opposite(i, j, upper, k):
    """Grid place of the third corner of the neighbour over edge k -> k + 1."""
    if upper == 0:
        if k == 0:
            return i, j - 1
        return (i + 2, j + 1) if k == 1 else (i, j + 1)
    if k == 0:
        return i + 1, j
    return (i + 1, j + 2) if k == 1 else (i - 1, j)


@formula
def _rises(m, p, q):
    """Whether q lies higher than p along m by more than the tolerance."""
    d = sub(q, p)
    return dot(m, d) > INNER_EDGE * norm(d)


@formula
def highest_part(scratch, at, m):
    """The part of a triangle that is highest along the unit vector m: (number of corners, which one).

    3: the face; 2: the edge from corner k to k + 1; 1: corner k.
    """
    p, q, r = triangle_corner(scratch, at, 0), triangle_corner(scratch, at, 1), triangle_corner(scratch, at, 2)
    a, b, c = dot(m, p), dot(m, q), dot(m, r)
    top = 0 if (a >= b and a >= c) else (1 if b >= c else 2)
    here = triangle_corner(scratch, at, top)
    following, before = (top + 1) % 3, (top + 2) % 3
    level_following = not _rises(m, triangle_corner(scratch, at, following), here)
    level_before = not _rises(m, triangle_corner(scratch, at, before), here)
    if level_following and level_before:
        return 3, top
    if level_following:
        return 2, top
    if level_before:
        return 2, before
    return 1, top


@formula
def normal_is_real(surface, piece, m, meshes, rings, fields, scratch, at):
    """Whether the surface near the triangle lies nowhere higher along m than the part of the triangle m belongs to.

    Returns (real, is it the face).
    """
    corners, k = highest_part(scratch, at, m)
    if corners == 3:
        return True, True
    here = triangle_corner(scratch, at, k)
    if surface.kind == MESH:
        point = meshes.point
        if corners == 2:
            i = rings.opposite[piece.triangle, k]
            return i < 0 or not _rises(m, here, mesh_corner(point, i)), False
        i = meshes.triangle[piece.triangle, k]
        for t in range(rings.start[i], rings.start[i + 1]):
            if _rises(m, here, mesh_corner(point, rings.point[t])):
                return False, False
        return True, False
    i, j, upper = piece.cell
    rows, columns = fields.shape[surface.entry, 0], fields.shape[surface.entry, 1]
    if corners == 2:
        x, y = _field_opposite(i, j, upper, k)
        if x < 0 or y < 0 or x >= rows or y >= columns:
            return True, False
        return not _rises(m, here, field_point(fields, surface, x, y)), False
    i, j = field_corner(i, j, upper, k)
    for t in range(6):  # the six neighbours of a grid point: two along each axis and along the diagonal
        step = 1 if t % 2 == 0 else -1
        x = i + (step if t // 2 != 1 else 0)
        y = j + (step if t // 2 != 0 else 0)
        if x < 0 or y < 0 or x >= rows or y >= columns:
            continue
        if _rises(m, here, field_point(fields, surface, x, y)):
            return False, False
    return True, False
