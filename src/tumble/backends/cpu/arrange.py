"""Sorting of contacts by key."""

from __future__ import annotations

from ...kernels.jit import block_length, blockwise, item_index, loop
from ..base import BLOCK


@loop
def sort_contacts(
    raw, raw_shapes, raw_capacity, raw_count, blocks, body, local, start, cursor, order, first, body_b, feature
):
    """Order of the contacts by (body a, body b, feature), a < b; `order` holds places in raw. Returns their number.

    Two stable counting sorts, by b (into `first`) and by a; what is left are the few points of one pair of bodies.
    """
    start[:] = 0
    for block in range(blocks):
        for c in range(block * raw_capacity, block * raw_capacity + raw_count[block]):
            start[max(body[raw_shapes[c, 0]], body[raw_shapes[c, 1]]) + 1] += 1
    for b in range(1, start.size):
        start[b] += start[b - 1]
        cursor[b - 1] = start[b - 1]
    for block in range(blocks):
        for c in range(block * raw_capacity, block * raw_capacity + raw_count[block]):
            b = max(body[raw_shapes[c, 0]], body[raw_shapes[c, 1]])
            first[cursor[b]] = c
            cursor[b] += 1
    total = start[start.size - 1]
    start[:] = 0
    for k in range(total):
        c = first[k]
        start[min(body[raw_shapes[c, 0]], body[raw_shapes[c, 1]]) + 1] += 1
    for a in range(1, start.size):
        start[a] += start[a - 1]
        cursor[a - 1] = start[a - 1]
    for n in range(total):
        c = first[n]
        i, j = raw_shapes[c, 0], raw_shapes[c, 1]
        if body[i] > body[j]:
            i, j = j, i
        a, b = body[i], body[j]
        code = (local[i] << 36) | (local[j] << 16) | int(raw[c, 7])
        k = cursor[a]
        while k > start[a] and body_b[k - 1] == b and feature[k - 1] > code:
            body_b[k], feature[k], order[k] = body_b[k - 1], feature[k - 1], order[k - 1]
            k -= 1
        body_b[k], feature[k], order[k] = b, code, c
        cursor[a] += 1
    return total


@blockwise(BLOCK)
def arrange_contacts(
    block, count, order, raw, raw_shapes, body, material, friction, smallest, body_a, mu, size, normal, point, gap
):
    """Copy the sorted contacts into component-first arrays."""
    for item in range(block_length(block, count)):
        k = item_index(block, item)
        c = order[k]
        i, j = raw_shapes[c, 0], raw_shapes[c, 1]
        sign = 1.0 if body[i] < body[j] else -1.0
        body_a[k] = min(body[i], body[j])
        mu[k] = friction[material[i], material[j]]
        size[k] = min(smallest[i], smallest[j])
        for d in range(3):
            normal[d, k] = sign * raw[c, d]
            point[d, k] = raw[c, 3 + d]
        gap[k] = raw[c, 6]
