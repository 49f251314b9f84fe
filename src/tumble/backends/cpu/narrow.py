"""Narrow phase: contact points of all pairs."""

from __future__ import annotations

from ...kernels.cover import MOST
from ...kernels.distance import is_ball_pair
from ...kernels.epa import EPA_END
from ...kernels.jit import blockwise
from ...kernels.kinds import SPHERE
from ...kernels.manifold import MANIFOLD_END
from ...kernels.pair_contacts import ball_pair, convex_pair, is_convex_pair, ordered, sphere_pair
from ...kernels.team import member

SCRATCH = max(EPA_END, MANIFOLD_END)
"""Numbers of scratch a thread needs for a pair."""


@blockwise(1, "pairs.count.size")
def find_ball_contacts(block, shapes, bodies, h, margin, pairs, raw, scratch):
    """Contacts of all pairs of a ball and a shape of closed form.

    Each block has room for raw.capacity contacts. Past the last MOST they are overwritten and only counted: the caller
    enlarges and comes again. scratch has one row a thread.
    """
    mine = scratch[member()]
    found = 0
    base = block * raw.capacity
    for k in range(block * pairs.capacity, block * pairs.capacity + pairs.count[block]):
        i, j = ordered(pairs.pair[k, 0], pairs.pair[k, 1], shapes.kind, shapes.rank)
        if not is_ball_pair(shapes.kind[i], shapes.kind[j]):
            continue
        new, row = -1, base + min(found, raw.capacity - MOST)
        if shapes.kind[j] == SPHERE:
            new = sphere_pair(i, j, shapes, bodies, h, margin, raw.row, row)
        if new < 0:
            new = ball_pair(i, j, shapes, bodies, h, margin, raw.row, row, mine)
        for c in range(row, row + new):
            raw.shapes[c, 0], raw.shapes[c, 1] = i, j
        found += new
    raw.count[block] = found


@blockwise(1, "pairs.count.size")
def find_convex_contacts(block, shapes, bodies, pools, h, margin, pairs, raw, scratch):
    """Contacts of the other pairs of convex shapes, after those that `find_ball_contacts` left in each block.

    Threads may write to one place of pools.axes, which changes nothing that is found (see `convex_pair`)."""
    mine = scratch[member()]
    found = raw.count[block]
    base = block * raw.capacity
    for k in range(block * pairs.capacity, block * pairs.capacity + pairs.count[block]):
        i, j = ordered(pairs.pair[k, 0], pairs.pair[k, 1], shapes.kind, shapes.rank)
        if not is_convex_pair(i, j, shapes.kind) or is_ball_pair(shapes.kind[i], shapes.kind[j]):
            continue
        row = base + min(found, raw.capacity - MOST)
        new = convex_pair(i, j, shapes, bodies, pools, (h, margin), raw.row, row, mine)
        for c in range(row, row + new):
            raw.shapes[c, 0], raw.shapes[c, 1] = i, j
        found += new
    raw.count[block] = found
