"""Boxes on the way down a surface's tree, or over the cells of a height field."""

from __future__ import annotations

import math

from .convex import support
from .jit import formula
from .kinds import MESH
from .linalg import column, dot, mat_t_vec, mat_vec
from .surfaces import TRIANGLE_B

__all__ = [
    "TREE_LEAF",
    "after",
    "box_in",
    "boxes_apart",
    "cell_range",
    "local_box",
    "triangle_apart",
    "turned_box",
    "widened",
]

TREE_LEAF = 4
"""Triangles in a leaf of a mesh's tree."""


@formula
def boxes_apart(tree_box, node, low, high):
    return (
        tree_box[node, 0] > high[0]
        or tree_box[node, 3] < low[0]
        or tree_box[node, 1] > high[1]
        or tree_box[node, 4] < low[1]
        or tree_box[node, 2] > high[2]
        or tree_box[node, 5] < low[2]
    )


@formula
def after(node):
    """The next node of a heap in depth-first order when its children are skipped; 0 at the end."""
    while node > 0 and node % 2 == 0:
        node = (node - 1) // 2
    return node + 1 if node > 0 else 0


@formula
def _extent(convex, points, scratch, d):
    """How far a shape reaches along the unit vector d, in its frame."""
    return dot(d, support(convex, points, scratch, d)) + convex.s[3]


@formula
def box_in(convex, turn, shift, points, scratch):
    """Box of a convex shape A in the frame of B, whose pose in A's frame is (turn, shift): low, high."""
    origin = mat_t_vec(turn, (-shift[0], -shift[1], -shift[2]))
    x, y, z = column(turn, 0), column(turn, 1), column(turn, 2)
    high = (
        origin[0] + _extent(convex, points, scratch, x),
        origin[1] + _extent(convex, points, scratch, y),
        origin[2] + _extent(convex, points, scratch, z),
    )
    low = (
        origin[0] - _extent(convex, points, scratch, (-x[0], -x[1], -x[2])),
        origin[1] - _extent(convex, points, scratch, (-y[0], -y[1], -y[2])),
        origin[2] - _extent(convex, points, scratch, (-z[0], -z[1], -z[2])),
    )
    return low, high


@formula
def local_box(surface, trees, field_shape):
    """Low and high corner of a mesh or height field in its own frame."""
    s, entry = surface.s, surface.entry
    if surface.kind == MESH:
        node = trees.start[entry]
        b = trees.box
        return (b[node, 0], b[node, 1], b[node, 2]), (b[node, 3], b[node, 4], b[node, 5])
    x = 0.5 * s[0] * (field_shape[entry, 0] - 1)
    y = 0.5 * s[1] * (field_shape[entry, 1] - 1)
    return (-x, -y, s[2]), (x, y, s[3])


@formula
def turned_box(low, high, m):
    """The box (low, high) after turning by m: its middle and its half-extents."""
    half = (0.5 * (high[0] - low[0]), 0.5 * (high[1] - low[1]), 0.5 * (high[2] - low[2]))
    middle = mat_vec(m, (0.5 * (high[0] + low[0]), 0.5 * (high[1] + low[1]), 0.5 * (high[2] + low[2])))
    reach = (
        abs(m[0]) * half[0] + abs(m[1]) * half[1] + abs(m[2]) * half[2],
        abs(m[3]) * half[0] + abs(m[4]) * half[1] + abs(m[5]) * half[2],
        abs(m[6]) * half[0] + abs(m[7]) * half[1] + abs(m[8]) * half[2],
    )
    return middle, reach


@formula
def widened(low, high, way, reach):
    """A box grown by `reach` all round, and along a way it travels."""
    return (
        (
            low[0] - reach + min(0.0, way[0]),
            low[1] - reach + min(0.0, way[1]),
            low[2] - reach + min(0.0, way[2]),
        ),
        (
            high[0] + reach + max(0.0, way[0]),
            high[1] + reach + max(0.0, way[1]),
            high[2] + reach + max(0.0, way[2]),
        ),
    )


@formula
def cell_range(low, high, step, count):
    """Cells of a height field between two coordinates along an axis with `count` points: first, last + 1."""
    middle = 0.5 * (count - 1)
    first = math.floor(low / step + middle)
    last = math.floor(high / step + middle)
    return int(min(max(first, 0.0), count - 1.0)), int(min(max(last + 1.0, 0.0), count - 1.0))


@formula
def triangle_apart(scratch, low, high):
    """Whether the box of the triangle in hand misses a box."""
    for c in range(3):
        a, b, d = scratch[TRIANGLE_B + c], scratch[TRIANGLE_B + 3 + c], scratch[TRIANGLE_B + 6 + c]
        lo = low[0] if c == 0 else (low[1] if c == 1 else low[2])
        hi = high[0] if c == 0 else (high[1] if c == 1 else high[2])
        if min(a, min(b, d)) > hi or max(a, max(b, d)) < lo:
            return True
    return False
