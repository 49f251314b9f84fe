"""Sorting of contacts by key."""

from __future__ import annotations

from ...kernels.jit import block_length, blockwise, formula, item_index, loop
from ..base import BLOCK

SORT_BODIES, SORT_PARTS = 256, 32
"""Bodies of a bin and parts of the contacts at most: contacts go to the bin of their first body, part by part, and are
sorted bin by bin. What comes out does not depend on either."""
LONG = 64
"""Contacts of a body from which sorting by insertion is too slow where they come in no order."""


@formula
def _raw_blocks(part, raw, scratch):
    """The blocks of raw contacts that a part has: from, to."""
    blocks = raw.count.size
    parts = min(SORT_PARTS, blocks)
    return part * blocks // parts, (part + 1) * blocks // parts


@blockwise(1, f"min({SORT_PARTS}, raw.count.size)")
def _count_bins(part, raw, shapes, scratch):
    """How many contacts of a part go to each bin."""
    body, of, counts = shapes.body, raw.shapes, scratch.bins[part]
    counts[:] = 0
    first, last = _raw_blocks(part, raw, scratch)
    for block in range(first, last):
        for c in range(block * raw.capacity, block * raw.capacity + raw.count[block]):
            counts[min(body[of[c, 0]], body[of[c, 1]]) // SORT_BODIES] += 1


@blockwise(1, f"min({SORT_PARTS}, raw.count.size)")
def _fill_bins(part, raw, shapes, scratch):
    """The contacts of a part into their bins, in order; scratch.bins holds the next place of each."""
    body, of, place = shapes.body, raw.shapes, scratch.bins[part]
    first, last = _raw_blocks(part, raw, scratch)
    for block in range(first, last):
        for c in range(block * raw.capacity, block * raw.capacity + raw.count[block]):
            i, j = of[c, 0], of[c, 1]
            if body[i] > body[j]:
                i, j = j, i
            b = body[i] // SORT_BODIES
            k = place[b]
            place[b] = k + 1
            scratch.low[k], scratch.high[k], scratch.place[k] = body[i], body[j], c
            scratch.code[k] = (shapes.local[i] << 36) | (shapes.local[j] << 16) | int(raw.row[c, 7])


@formula
def _after(out, k, b, code, place):
    """Whether what stands at k comes after a contact with body b, this feature and this place in raw."""
    if out.body_b[k] != b:
        return out.body_b[k] > b
    if out.feature[k] != code:
        return out.feature[k] > code
    return out.order[k] > place


@formula
def _insert(out, first, k, step, b, code, place):
    """Put a contact where it belongs among those at first, first + step, .. before k."""
    while k - step >= first and _after(out, k - step, b, code, place):
        out.body_b[k], out.feature[k], out.order[k] = (
            out.body_b[k - step],
            out.feature[k - step],
            out.order[k - step],
        )
        k -= step
    out.body_b[k], out.feature[k], out.order[k] = b, code, place


@blockwise(1, "scratch.bins.shape[1]")
def _sort_bins(block, scratch, out):
    """The contacts of a bin by first body, second body and feature."""
    start, cursor = scratch.start, scratch.cursor
    first, last = scratch.bin_start[block], scratch.bin_start[block + 1]
    one, end = block * SORT_BODIES, min(cursor.size, (block + 1) * SORT_BODIES)
    for i in range(one, end):
        cursor[i] = 0
    for t in range(first, last):
        cursor[scratch.low[t]] += 1
    place = first
    for i in range(one, end):
        start[i] = place
        place += cursor[i]
        cursor[i] = start[i]
    for t in range(first, last):
        a = scratch.low[t]
        k = cursor[a]
        cursor[a] = k + 1
        if k - start[a] < LONG:
            _insert(out, start[a], k, 1, scratch.high[t], scratch.code[t], scratch.place[t])
        else:
            out.body_b[k], out.feature[k], out.order[k] = scratch.high[t], scratch.code[t], scratch.place[t]
    for i in range(one, end):
        length = cursor[i] - start[i]
        step = 1
        while step < length // 3:
            step = 3 * step + 1
        while length > LONG and step > 0:
            for k in range(start[i] + step, cursor[i]):
                _insert(out, start[i], k, step, out.body_b[k], out.feature[k], out.order[k])
            step //= 3


@loop
def sort_contacts(raw, shapes, scratch, out):
    """Order of the contacts by (body a, body b, feature), a < b; `out.order` holds places in raw. Returns their
    number."""
    _count_bins(raw, shapes, scratch)
    parts, total = min(SORT_PARTS, raw.count.size), 0
    for b in range(scratch.bins.shape[1]):
        scratch.bin_start[b] = total
        for part in range(parts):
            count = scratch.bins[part, b]
            scratch.bins[part, b] = total
            total += count
    scratch.bin_start[scratch.bins.shape[1]] = total
    _fill_bins(raw, shapes, scratch)
    _sort_bins(scratch, out)
    return total


@blockwise(BLOCK)
def arrange_contacts(block, count, order, raw, shapes, out):
    """Copy the sorted contacts into component-first arrays."""
    body, material, smallest, friction = shapes.body, shapes.material, shapes.smallest, shapes.friction
    for item in range(block_length(block, count)):
        k = item_index(block, item)
        c = order[k]
        i, j = raw.shapes[c, 0], raw.shapes[c, 1]
        sign = 1.0 if body[i] < body[j] else -1.0
        out.body_a[k] = min(body[i], body[j])
        out.friction[k] = friction[material[i], material[j]]
        out.pair[k] = material[i] * friction.shape[0] + material[j]
        out.size[k] = min(smallest[i], smallest[j])
        for d in range(3):
            out.normal[d, k] = sign * raw.row[c, d]
            out.point[d, k] = raw.row[c, 3 + d]
        out.gap[k] = raw.row[c, 6]
