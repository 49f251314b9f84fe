"""From contacts to rows: frames, arms, entries, bias, diagonal blocks, warm start."""

from __future__ import annotations

import math

from ...kernels.cones import project
from ...kernels.contact_rows import recovery_speed
from ...kernels.jit import block_length, blockwise, formula, item_index, loop
from ...kernels.linalg import cross, dot, largest_eigenvalue, row3, sub, tangents
from ..base import BLOCK

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


@blockwise(BLOCK)
def build_rows(block, count, touch, center, free, h, recovery, gravity, rows):
    """Frames, arms and r = b + D^T v_free. recovery < 0: the speed that lifts `size` / 100 under gravity."""
    body_a, body_b, slot_a, slot_b, normal, point, gap, size = touch
    frame, arms, entry_arm, bias = rows
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        i, j = body_a[c], body_b[c]
        n = (normal[0, c], normal[1, c], normal[2, c])
        u, w = tangents(n)
        p = (point[0, c], point[1, c], point[2, c])
        ra, rb = sub(p, row3(center, i)), sub(p, row3(center, j))
        va = cross((free[i, 3], free[i, 4], free[i, 5]), ra)
        vb = cross((free[j, 3], free[j, 4], free[j, 5]), rb)
        v = (
            free[j, 0] + vb[0] - free[i, 0] - va[0],
            free[j, 1] + vb[1] - free[i, 1] - va[1],
            free[j, 2] + vb[2] - free[i, 2] - va[2],
        )
        for d in range(3):
            frame[d, c], frame[3 + d, c], frame[6 + d, c] = n[d], u[d], w[d]
            arms[d, c], arms[3 + d, c] = ra[d], rb[d]
            entry_arm[slot_a[c], d] = ra[d]
            entry_arm[slot_b[c], d] = rb[d]
        bias[0, c] = max(gap[c] / h, -recovery_speed(recovery, gravity, size[c])) + dot(n, v)
        bias[1, c] = dot(u, v)
        bias[2, c] = dot(w, v)


@formula
def _add_side(block, e, arm, inverse_mass, inverse_inertia, b):
    """Add one body's share of N_ii for the three directions e to the six entries (nn, uu, ww, nu, nw, uw)."""
    im = row3(inverse_mass, b)
    s = (
        inverse_inertia[b, 0],
        inverse_inertia[b, 1],
        inverse_inertia[b, 2],
        inverse_inertia[b, 3],
        inverse_inertia[b, 4],
        inverse_inertia[b, 5],
    )
    jn, ju, jw = cross(arm, e[0]), cross(arm, e[1]), cross(arm, e[2])
    out0 = block[0] + _form(e[0], jn, e[0], jn, im, s)
    out1 = block[1] + _form(e[1], ju, e[1], ju, im, s)
    out2 = block[2] + _form(e[2], jw, e[2], jw, im, s)
    out3 = block[3] + _form(e[0], jn, e[1], ju, im, s)
    out4 = block[4] + _form(e[0], jn, e[2], jw, im, s)
    out5 = block[5] + _form(e[1], ju, e[2], jw, im, s)
    return (out0, out1, out2, out3, out4, out5)


@formula
def _form(a, ja, b, jb, im, s):
    """a^T M^-1 b of two generalised directions of one body."""
    x = (
        s[0] * jb[0] + s[3] * jb[1] + s[4] * jb[2],
        s[3] * jb[0] + s[1] * jb[1] + s[5] * jb[2],
        s[4] * jb[0] + s[5] * jb[1] + s[2] * jb[2],
    )
    return im[0] * a[0] * b[0] + im[1] * a[1] * b[1] + im[2] * a[2] * b[2] + dot(ja, x)


@blockwise(BLOCK)
def contact_diagonal(blk, count, body_a, body_b, frame, arms, inverse_mass, inverse_inertia, diagonal):
    """Diagonal blocks N_ii (6, cap): nn, uu, ww, nu, nw, uw."""
    for item in range(block_length(blk, count)):
        c = item_index(blk, item)
        e = (
            (frame[0, c], frame[1, c], frame[2, c]),
            (frame[3, c], frame[4, c], frame[5, c]),
            (frame[6, c], frame[7, c], frame[8, c]),
        )
        block = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        block = _add_side(block, e, (arms[0, c], arms[1, c], arms[2, c]), inverse_mass, inverse_inertia, body_a[c])
        block = _add_side(block, e, (arms[3, c], arms[4, c], arms[5, c]), inverse_mass, inverse_inertia, body_b[c])
        for k in range(6):
            diagonal[k, c] = block[k]


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


@loop
def weigh(count, dim, diagonal, mode, scale, weight, tangential):
    """Scales (2, cap) of normal and tangential rows, the weight w of the natural map and sqrt(lambda_max(N_TT)).

    mode 0: no scaling, 1: one scalar a contact, 2: normal and tangential rows apart.
    """
    for c in range(count):
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


@loop
def survey_contacts(count, before, gap):
    """Mean relative speed of bodies that touch or nearly do [m/s], from rows n, u, w, and the largest overlap [m]."""
    total, deepest = 0.0, 0.0
    for c in range(count):
        n, u, w = before[0, c], before[1, c], before[2, c]
        total += math.sqrt(n * n + u * u + w * w)
        deepest = max(deepest, -gap[c])
    return total / max(count, 1), deepest


@loop
def match_contacts(count, uid, body_a, body_b, feature, old_a, old_b, old_feature, found):
    """Where each contact stood in the table of a step ago (both tables are sorted by key).

    k: the same contact; -2 - k: a contact of the same two bodies that is gone, the first not yet taken (a point that
    has only changed its name, most of the time); -1: none. Returns how many are the same.
    """
    k, hits, c = 0, 0, 0
    old = old_a.size
    while c < count:
        a, b = uid[body_a[c]], uid[body_b[c]]
        end = c
        while end < count and uid[body_a[end]] == a and uid[body_b[end]] == b:
            end += 1
        while k < old and (old_a[k] < a or (old_a[k] == a and old_b[k] < b)):
            k += 1
        first, i = k, k
        while k < old and old_a[k] == a and old_b[k] == b:
            k += 1
        for e in range(c, end):
            while i < k and old_feature[i] < feature[e]:
                i += 1
            found[e] = -1
            if i < k and old_feature[i] == feature[e]:
                found[e] = i
                hits += 1
        i, known = first, c  # the old contacts that nobody is, in order
        for e in range(c, end):
            if found[e] >= 0:
                continue
            while i < k:
                while known < end and (found[known] < 0 or found[known] < i):
                    known += 1
                if known == end or found[known] != i:
                    break
                i += 1
            if i < k:
                found[e] = -2 - i
                i += 1
        c = end
    return hits


@loop
def recall(count, found, kin, frame, column, out):
    """World vectors that contacts remembered, in their frames of now; zero for new contacts. kin: a contact that is new
    takes that of one of its pair which is gone."""
    for c in range(count):
        k = found[c]
        if k < -1 and kin:
            k = -2 - k
        for row in range(3):
            out[row, c] = 0.0
            if k >= 0:
                out[row, c] = (
                    frame[3 * row, c] * column[0, k]
                    + frame[3 * row + 1, c] * column[1, k]
                    + frame[3 * row + 2, c] * column[2, k]
                )


@loop
def remember(count, uid, body_a, body_b, frame, x, uid_a, uid_b, impulse):
    """Keys and world impulses of this step's contacts."""
    for c in range(count):
        uid_a[c], uid_b[c] = uid[body_a[c]], uid[body_b[c]]
        for d in range(3):
            impulse[d, c] = frame[d, c] * x[0, c] + frame[3 + d, c] * x[1, c] + frame[6 + d, c] * x[2, c]


@loop
def scale_rows(count, bias, mu, scale, guess, scaled_bias, scaled_mu, x):
    """Bias, sets and starting impulses of the scaled problem: S r, mu s_n / s_t (bounds / s_n), S^-1 guess."""
    for c in range(count):
        sn, st = scale[0, c], scale[1, c]
        scaled_mu[c] = mu[c] * sn / st if mu[c] >= 0.0 else mu[c] / sn
        scaled_bias[0, c] = sn * bias[0, c]
        scaled_bias[1, c], scaled_bias[2, c] = st * bias[1, c], st * bias[2, c]
        x[0, c] = guess[0, c] / sn
        x[1, c], x[2, c] = guess[1, c] / st, guess[2, c] / st


@loop
def unscale_impulses(count, scale, mu, x, out):
    """Impulses S x, put back on the cone where rounding of the scales left them outside."""
    for c in range(count):
        sn, st = scale[0, c], scale[1, c]
        n, u, w = project(sn * x[0, c], st * x[1, c], st * x[2, c], mu[c])
        out[0, c], out[1, c], out[2, c] = n, u, w
