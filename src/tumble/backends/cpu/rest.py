"""The gaps that a step asks its contacts to close: those of contacts at rest are not chased (`docs/rest.md`)."""

from __future__ import annotations

from ...kernels.jit import block_length, blockwise, formula, item_index
from ..base import BLOCK


@formula
def rest_gap(gap, band, carries, part):
    """The gap that a step is to close. A contact that carried force keeps its gap within the band, one that did not
    closes all of it. An overlap within the band is left, of more `part` is taken back."""
    if gap >= 0.0:
        return max(0.0, gap - band) if carries else gap
    return part * (gap + band) if gap < -band else 0.0


@blockwise(BLOCK)
def rest_gaps(block, count, gaps, found, impulse, rule, partial, out):
    """`rest_gap` of all contacts [m]. found: their places among the remembered impulses (3, k), see `match_contacts`.

    There is no band for pairs that are not firm. partial (blocks,): the largest shift of a gap within the band [m].
    """
    gap, size, pair, firm = gaps
    least, step, share, part = rule
    largest = 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        k = found[c] if found[c] >= -1 else -2 - found[c]
        x, y, z = (impulse[0, k], impulse[1, k], impulse[2, k]) if k >= 0 else (0.0, 0.0, 0.0)
        carries = x * x + y * y + z * z > least * least
        band = min(step, share * size[c]) if firm[pair[c]] else 0.0
        out[c] = rest_gap(gap[c], band, carries, part) if band > 0.0 else gap[c]
        if gap[c] > -band:
            largest = max(largest, abs(gap[c] - out[c]))
        else:  # the slow return from deeper is the rule of recovery, as its highest speed is
            largest = max(largest, band)
    partial[block] = largest
