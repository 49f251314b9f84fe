"""Sorting of contacts by key."""

from __future__ import annotations

from ...kernels.jit import block_length, blockwise, item_index, loop
from ..base import BLOCK


@loop
def sort_contacts(raw, shapes, start, cursor, first, out):
    """Order of the contacts by (body a, body b, feature), a < b; `out.order` holds places in raw. Returns their number.

    Two stable counting sorts, by b (into `first`) and by a; what is left are the few points of one pair of bodies.
    start (n + 1,), cursor (n,), first (cap,): scratch.
    """
    body, of, order, body_b, feature = shapes.body, raw.shapes, out.order, out.body_b, out.feature
    start[:] = 0
    for block in range(raw.count.size):
        for c in range(block * raw.capacity, block * raw.capacity + raw.count[block]):
            start[max(body[of[c, 0]], body[of[c, 1]]) + 1] += 1
    for b in range(1, start.size):
        start[b] += start[b - 1]
        cursor[b - 1] = start[b - 1]
    for block in range(raw.count.size):
        for c in range(block * raw.capacity, block * raw.capacity + raw.count[block]):
            b = max(body[of[c, 0]], body[of[c, 1]])
            first[cursor[b]] = c
            cursor[b] += 1
    total = start[start.size - 1]
    start[:] = 0
    for k in range(total):
        c = first[k]
        start[min(body[of[c, 0]], body[of[c, 1]]) + 1] += 1
    for a in range(1, start.size):
        start[a] += start[a - 1]
        cursor[a - 1] = start[a - 1]
    for n in range(total):
        c = first[n]
        i, j = of[c, 0], of[c, 1]
        if body[i] > body[j]:
            i, j = j, i
        a, b = body[i], body[j]
        code = (shapes.local[i] << 36) | (shapes.local[j] << 16) | int(raw.row[c, 7])
        k = cursor[a]
        while k > start[a] and body_b[k - 1] == b and feature[k - 1] > code:
            body_b[k], feature[k], order[k] = body_b[k - 1], feature[k - 1], order[k - 1]
            k -= 1
        body_b[k], feature[k], order[k] = b, code, c
        cursor[a] += 1
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
