"""From contacts to rows: frames, arms, entries, bias, diagonal blocks, warm start."""

from __future__ import annotations

import math

from ...kernels.cones import project, scaled_set
from ...kernels.contact_rows import contact_row, diagonal_block, match_pair, recalled_vector, world_vector
from ...kernels.jit import block_length, blockwise, formula, item_index, loop
from ...kernels.linalg import largest_eigenvalue
from ..base import BLOCK, BODY_BLOCK

FROZEN = 1e-13
"""A normal row whose diagonal is below this part of the block's trace cannot be moved by its impulse."""


@loop
def fill_entries(count, body_a, body_b, movable, entry_start, cursor, slot_a, slot_b):
    """Give every side of every contact its entry, sorted by body. Bodies that cannot move share one entry after the
    last. Returns the number of entries in use."""
    entry_start[:] = 0
    for c in range(count):
        if movable[body_a[c]]:
            entry_start[body_a[c] + 1] += 1
        if movable[body_b[c]]:
            entry_start[body_b[c] + 1] += 1
    for b in range(1, entry_start.size):
        entry_start[b] += entry_start[b - 1]
        cursor[b - 1] = entry_start[b - 1]
    dump = entry_start[entry_start.size - 1]
    for c in range(count):
        a, b = body_a[c], body_b[c]
        slot_a[c], slot_b[c] = dump, dump
        if movable[a]:
            slot_a[c] = cursor[a]
            cursor[a] += 1
        if movable[b]:
            slot_b[c] = cursor[b]
            cursor[b] += 1
    return dump


@blockwise(1, "sides.shape[0]")
def _count_sides(part, count, body_a, body_b, movable, sides):
    """How many sides of a part of the contacts each body has."""
    own, parts = sides[part], sides.shape[0]
    own[:] = 0
    for c in range(part * count // parts, (part + 1) * count // parts):
        own[body_a[c]] += movable[body_a[c]]
        own[body_b[c]] += movable[body_b[c]]


@blockwise(BODY_BLOCK, "entry_start.size - 1")
def _sides_before(block, sides, entry_start):
    """How many sides of a body the parts before have, and how many it has in all, in the entry after its own."""
    for b in range(block * BODY_BLOCK, min(entry_start.size - 1, (block + 1) * BODY_BLOCK)):
        before = 0
        for part in range(sides.shape[0]):
            own = sides[part, b]
            sides[part, b] = before
            before += own
        entry_start[b + 1] = before


@blockwise(1, "sides.shape[0]")
def _number_sides(part, count, body_a, body_b, movable, entry_start, sides, slot_a, slot_b):
    """The entries of a part's sides, in order."""
    own, parts, dump = sides[part], sides.shape[0], entry_start[entry_start.size - 1]
    for c in range(part * count // parts, (part + 1) * count // parts):
        a, b = body_a[c], body_b[c]
        slot_a[c], slot_b[c] = dump, dump
        if movable[a]:
            slot_a[c] = entry_start[a] + own[a]
            own[a] += 1
        if movable[b]:
            slot_b[c] = entry_start[b] + own[b]
            own[b] += 1


@loop
def fill_entries_in_parts(count, body_a, body_b, movable, entry_start, sides, slot_a, slot_b):
    """`fill_entries` with several threads. sides (parts, bodies): scratch."""
    _count_sides(count, body_a, body_b, movable, sides)
    _sides_before(sides, entry_start)
    entry_start[0] = 0
    for b in range(1, entry_start.size):
        entry_start[b] += entry_start[b - 1]
    _number_sides(count, body_a, body_b, movable, entry_start, sides, slot_a, slot_b)


@blockwise(BLOCK)
def build_rows(block, count, touch, center, free, h, recovery, gravity, rows):
    """Frames, arms and r = b + D^T v_free. recovery < 0: the speed that lifts `size` / 100 under gravity."""
    for item in range(block_length(block, count)):
        contact_row(item_index(block, item), touch, center, free, h, recovery, gravity, rows)


@blockwise(BLOCK)
def contact_diagonal(blk, count, body_a, body_b, frame, arms, inverse_mass, inverse_inertia, diagonal):
    """Diagonal blocks N_ii (6, cap): nn, uu, ww, nu, nw, uw."""
    for item in range(block_length(blk, count)):
        c = item_index(blk, item)
        diagonal_block(c, body_a[c], body_b[c], frame, arms, inverse_mass, inverse_inertia, diagonal)


@blockwise(BLOCK)
def soften_diagonal(block, count, compliance, diagonal):
    """Diagonal blocks with the compliance E of the contacts."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        diagonal[0, c] += compliance[0, c]
        diagonal[1, c] += compliance[1, c]
        diagonal[2, c] += compliance[1, c]


@loop
def matrix_diagonal(count, dim, start, contact, component, value, diagonal):
    """Diagonal blocks of a sparse matrix; rows that do not exist (planar problems) are zero."""
    diagonal[:, :count] = 0.0
    for c in range(count):
        for k in range(dim):
            for e in range(start[dim * c + k], start[dim * c + k + 1]):
                if contact[e] == c:
                    q = component[e]
                    if q == k:
                        diagonal[k, c] = value[e]
                    elif q > k:
                        diagonal[2 + k + q, c] = value[e]


@blockwise(BLOCK)
def weigh(block, count, dim, diagonal, mode, scale, weight, tangential):
    """Scales (2, cap) of normal and tangential rows, the weight w of the natural map and sqrt(lambda_max(N_TT)).

    mode 0: no scaling, 1: one scalar a contact, 2: normal and tangential rows apart.
    """
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        nn, uu, ww, uw = diagonal[0, c], diagonal[1, c], diagonal[2, c], diagonal[5, c]
        mean = (nn + uu + ww) / dim
        weight[c] = math.sqrt(mean) if mean > 0.0 else 1.0
        half = 0.5 * (uu + ww)
        tangential[c] = math.sqrt(half + math.sqrt(0.25 * (uu - ww) * (uu - ww) + uw * uw))
        sn, st = 1.0, 1.0
        if mode == 1 and mean > 0.0:
            sn = 1.0 / math.sqrt(mean)
            st = sn
        elif mode == 2:
            t = (uu + ww) / (dim - 1)
            if nn > FROZEN * mean:
                sn = 1.0 / math.sqrt(nn)
            elif mean > 0.0:
                sn = 1.0 / math.sqrt(mean)
            st = 1.0 / math.sqrt(t) if t > FROZEN * mean else sn
        scale[0, c], scale[1, c] = sn, st


@loop
def block_steps(count, diagonal, scale, step):
    """1 / lambda_max of the scaled diagonal blocks: the safe step of Gauss-Seidel."""
    for c in range(count):
        sn, st = scale[0, c], scale[1, c]
        top = largest_eigenvalue(
            sn * sn * diagonal[0, c],
            st * st * diagonal[1, c],
            st * st * diagonal[2, c],
            sn * st * diagonal[3, c],
            sn * st * diagonal[4, c],
            st * st * diagonal[5, c],
        )
        step[c] = 1.0 / top if top > 0.0 else 0.0


@loop
def free_frozen_rows(count, diagonal, bias):
    """A contact that its impulse cannot open (both bodies locked along the normal) must not ask for an opening."""
    for c in range(count):
        if diagonal[0, c] <= FROZEN * (diagonal[0, c] + diagonal[1, c] + diagonal[2, c]):
            bias[0, c] = max(bias[0, c], 0.0)


@blockwise(BLOCK)
def _survey_blocks(block, count, before, gap, partial):
    """Per block: the sum of the speeds, and the largest overlap."""
    total, deepest = 0.0, 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        n, u, w = before[0, c], before[1, c], before[2, c]
        total += math.sqrt(n * n + u * u + w * w)
        deepest = max(deepest, -gap[c])
    partial[block, 0], partial[block, 1] = total, deepest


@loop
def survey_contacts(count, before, gap, partial):
    """Mean relative speed of bodies that touch or nearly do [m/s], from rows n, u, w, and the largest overlap [m].
    partial (blocks, 2): scratch."""
    _survey_blocks(count, before, gap, partial)
    total, deepest = 0.0, 0.0
    for block in range((count + BLOCK - 1) // BLOCK):
        total += partial[block, 0]
        deepest = max(deepest, partial[block, 1])
    return total / max(count, 1), deepest


@formula
def _first_of_pair(a, b, old_a, old_b):
    """The first remembered contact whose key is not below (a, b)."""
    low, high = 0, old_a.size
    while low < high:
        middle = (low + high) // 2
        if old_a[middle] < a or (old_a[middle] == a and old_b[middle] < b):
            low = middle + 1
        else:
            high = middle
    return low


@blockwise(BLOCK)
def _match_pairs(block, count, uid, body_a, body_b, feature, old_a, old_b, old_feature, found):
    """`match_contacts` for the pairs of bodies whose first contact is in the block."""
    c, stop, old = block * BLOCK, min(count, (block + 1) * BLOCK), old_a.size
    while 0 < c < stop and body_a[c] == body_a[c - 1] and body_b[c] == body_b[c - 1]:
        c += 1
    k = _first_of_pair(uid[body_a[c]], uid[body_b[c]], old_a, old_b) if c < stop else 0
    while c < stop:
        a, b = uid[body_a[c]], uid[body_b[c]]
        end = c
        while end < count and uid[body_a[end]] == a and uid[body_b[end]] == b:
            end += 1
        while k < old and (old_a[k] < a or (old_a[k] == a and old_b[k] < b)):
            k += 1
        first = k
        while k < old and old_a[k] == a and old_b[k] == b:
            k += 1
        match_pair(c, end, first, k, feature, old_feature, found)
        c = end


@loop
def match_contacts(count, uid, body_a, body_b, feature, old_a, old_b, old_feature, found):
    """Where each contact stood in the table of a step ago (both tables are sorted by key).

    k: the same contact; -2 - k: a contact of the same two bodies that is gone, the first not yet taken (a point that
    has only changed its name, most of the time); -1: none. Returns how many are the same.
    """
    _match_pairs(count, uid, body_a, body_b, feature, old_a, old_b, old_feature, found)
    hits = 0
    for c in range(count):
        hits += found[c] >= 0
    return hits


@blockwise(BLOCK)
def recall(block, count, found, kin, frame, column, out):
    """World vectors that contacts remembered, in their frames of now; zero for new contacts. kin: a contact that is new
    takes that of one of its pair which is gone."""
    for item in range(block_length(block, count)):
        recalled_vector(item_index(block, item), found, kin, frame, column, out)


@blockwise(BLOCK)
def remember(block, count, uid, body_a, body_b, frame, x, uid_a, uid_b, impulse):
    """Keys and world impulses of this step's contacts."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        uid_a[c], uid_b[c] = uid[body_a[c]], uid[body_b[c]]
        world_vector(c, frame, x, impulse)


@blockwise(BLOCK)
def scale_rows(block, count, bias, mu, scale, guess, scaled_bias, scaled_mu, x):
    """Bias, sets and starting impulses of the scaled problem: S r, mu s_n / s_t (bounds / s_n), S^-1 guess."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        sn, st = scale[0, c], scale[1, c]
        scaled_mu[c] = scaled_set(mu[c], sn, st)
        scaled_bias[0, c] = sn * bias[0, c]
        scaled_bias[1, c], scaled_bias[2, c] = st * bias[1, c], st * bias[2, c]
        x[0, c] = guess[0, c] / sn
        x[1, c], x[2, c] = guess[1, c] / st, guess[2, c] / st


@blockwise(BLOCK)
def unscale_impulses(block, count, scale, mu, x, out):
    """Impulses S x, put back on the cone where rounding of the scales left them outside."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        sn, st = scale[0, c], scale[1, c]
        n, u, w = project(sn * x[0, c], st * x[1, c], st * x[2, c], mu[c])
        out[0, c], out[1, c], out[2, c] = n, u, w
