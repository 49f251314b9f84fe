"""Pairs with a mesh or a height field."""

from __future__ import annotations

from ...kernels.cover import GATHERED, MOST
from ...kernels.jit import blockwise
from ...kernels.kinds import HALF_SPACE
from ...kernels.pair_contacts import is_convex_pair, ordered
from ...kernels.surface_pairs import mesh_on_plane, surface_pair
from ...kernels.team import member

SURFACE_ROWS = GATHERED
SURFACE_COLUMNS = 9
"""Normal, point, gap, name, and a mark."""


@blockwise(1, "pairs.count.size")
def find_surface_contacts(block, shapes, bodies, pools, h, margin, pairs, raw, scratch, rows):
    """Contacts of the pairs with a mesh or height field, after those that other pairs left in each block."""
    thread = member()
    work = scratch[thread], rows[thread]
    found = raw.count[block]
    base = block * raw.capacity
    for k in range(block * pairs.capacity, block * pairs.capacity + pairs.count[block]):
        i, j = ordered(pairs.pair[k, 0], pairs.pair[k, 1], shapes.kind, shapes.rank)
        if is_convex_pair(i, j, shapes.kind):
            continue
        row = base + min(found, raw.capacity - MOST)
        if shapes.kind[j] == HALF_SPACE:
            new = mesh_on_plane(i, j, shapes, bodies, pools, (h, margin), raw.row, row, work)
        else:
            new = surface_pair(i, j, shapes, bodies, pools, (h, margin), raw.row, row, work)
        for c in range(row, row + new):
            raw.shapes[c, 0], raw.shapes[c, 1] = i, j
        found += new
    raw.count[block] = found
