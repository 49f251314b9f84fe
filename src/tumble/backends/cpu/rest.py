"""The gaps that a step asks its contacts to close: those of contacts at rest are not chased (`docs/rest.md`)."""

from __future__ import annotations

from ...kernels.contact_rows import gap_to_close
from ...kernels.jit import block_length, blockwise, item_index
from ..base import BLOCK


@blockwise(BLOCK)
def rest_gaps(block, count, gaps, found, impulse, rule, partial, out):
    """`rest_gap` of all contacts [m]. found: their places among the remembered impulses (3, k), see `match_contacts`.

    There is no band for pairs that are not firm. partial (blocks,): the largest shift of a gap within the band [m].
    """
    largest = 0.0
    for item in range(block_length(block, count)):
        largest = max(largest, gap_to_close(item_index(block, item), gaps, found, impulse, rule, out))
    partial[block] = largest
