"""The gaps that a step asks its contacts to close: those of contacts at rest are not chased (`docs/rest.md`)."""

from __future__ import annotations

from ...kernels.jit import block_length, formula, item_index, parallel_loop, prange
from ..base import BLOCK


@formula
def rest_gap(gap, band, carries, part):
    """The gap without what lies in the band: a contact that carries force neither falls nor is lifted within it, one
    that does not may close its gap as ever. Of an overlap beyond the band `part` is taken back."""
    above = band if carries else 0.0
    if gap > above:
        return gap - above
    return part * (gap + band) if gap < -band else 0.0


@parallel_loop
def rest_gaps(count, gap, size, pair, firm, found, impulse, step, share, part, partial, out):
    """`rest_gap` of all contacts [m]. found: their places among the remembered impulses (3, k), see `match_contacts`.

    The band is `step` [m] and at most `share` of the smaller shape; none for pairs that are not `firm`. partial
    (blocks,): the largest shift of a gap within the band [m].
    """
    for block in prange((count + BLOCK - 1) // BLOCK):
        largest = 0.0
        for item in range(block_length(block, count)):
            c = item_index(block, item)
            k = found[c] if found[c] >= -1 else -2 - found[c]
            carries = k >= 0 and (impulse[0, k] != 0.0 or impulse[1, k] != 0.0 or impulse[2, k] != 0.0)
            band = min(step, share * size[c]) if firm[pair[c]] else 0.0
            out[c] = rest_gap(gap[c], band, carries, part if band > 0.0 else 1.0)
            shift = gap[c] - rest_gap(gap[c], band, carries, 1.0)
            largest = max(largest, abs(shift))
        partial[block] = largest
