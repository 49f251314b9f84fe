"""Contact points of many triangles of one surface: names that tell them apart, doubles left out, those needed kept."""

from __future__ import annotations

from .cover import reduce_rows
from .jit import formula
from .linalg import dot, row3
from .manifold import COINCIDE, CORNER_NAMES, COVER_AT, FACE_NAMES

__all__ = ["NAMES", "append_rows", "hand_over", "label_rows"]

NAMES = 65536
"""Names of points that a key can hold."""


@formula
def label_rows(rows, found, new, triangle_a, triangle):
    """Tell the names of one triangle from those of another; a corner of a convex shape keeps its name."""
    for k in range(found, found + new):
        name = int(rows[k, 7])
        if triangle_a >= 0 or name < FACE_NAMES or name >= FACE_NAMES + CORNER_NAMES:
            name += CORNER_NAMES + 4093 * triangle + 769 * (triangle_a + 1)
        rows[k, 7] = name % NAMES


@formula
def append_rows(rows, found, new, size):
    """Number of rows when those of the new ones that are there already are left out (triangles share their corners)."""
    near = COINCIDE * size
    for k in range(found, found + new):
        known = False
        for o in range(found):
            if (
                abs(rows[o, 3] - rows[k, 3]) <= near
                and abs(rows[o, 4] - rows[k, 4]) <= near
                and abs(rows[o, 5] - rows[k, 5]) <= near
                and abs(rows[o, 6] - rows[k, 6]) <= near
                and dot(row3(rows, o), row3(rows, k)) > 1.0 - COINCIDE
            ):
                known = True
                break
        if not known:
            if found < k:
                for c in range(8):
                    rows[found, c] = rows[k, c]
            found += 1
    return found


@formula
def hand_over(rows, found, size, scratch, out, row):
    """Reduce the rows to those that are needed and write them, each with a name of its own; returns their number."""
    found = reduce_rows(rows, found, size, scratch, COVER_AT)
    for k in range(found):
        name = int(rows[k, 7]) % NAMES
        c = 0
        while c < k:
            if out[row + c, 7] == name:
                name, c = (name + 1) % NAMES, 0
            else:
                c += 1
        for c in range(7):
            out[row + k, c] = rows[k, c]
        out[row + k, 7] = name
    return found
