"""Anderson's acceleration of a fixed-point iteration x <- image(x), mechanism by mechanism: the last rounds are
combined so that the residual, were it linear, would be smallest. In a fixed order: the same bits each time."""

from __future__ import annotations

import math

from .jit import formula

DEPTH = 6
"""Earlier rounds that the acceleration combines."""
INDEPENDENT = 1e-8
"""A difference of rounds that the others explain up to this part is left out."""


@formula
def mix_weights(first, end, count, g, dg, q, small, mechanism):
    """Weights of the differences dg of earlier rounds that explain g best, into small[mechanism, :, DEPTH].

    By Gram and Schmidt, twice, in a fixed order; a difference that depends on the others gets none.
    """
    for j in range(count):
        size = 0.0
        for r in range(first, end):
            q[j, r] = dg[j, r]
            size += dg[j, r] * dg[j, r]
        for i in range(j + 1):
            small[mechanism, i, j] = 0.0
        for _ in range(2):
            for i in range(j):
                along = 0.0
                for r in range(first, end):
                    along += q[i, r] * q[j, r]
                small[mechanism, i, j] += along
                for r in range(first, end):
                    q[j, r] -= along * q[i, r]
        left = 0.0
        for r in range(first, end):
            left += q[j, r] * q[j, r]
        small[mechanism, j, j] = math.sqrt(left)
        scale = 1.0 / math.sqrt(left) if left > INDEPENDENT * INDEPENDENT * size else 0.0
        for r in range(first, end):
            q[j, r] *= scale
    for j in range(count - 1, -1, -1):
        total = 0.0
        for r in range(first, end):
            total += q[j, r] * g[r]
        alone = total == 0.0
        for i in range(j + 1, count):
            total -= small[mechanism, j, i] * small[mechanism, i, DEPTH]
        small[mechanism, j, DEPTH] = 0.0 if alone else total / small[mechanism, j, j]


@formula
def divided_row(r, x, by, out):
    """out = x / by"""
    out[r] = x[r] / by


@formula
def times_row(r, x, y, out):
    """out = x y"""
    out[r] = x[r] * y[r]


@formula
def mixed_round(mechanism, start, turn, change, residual, past, x):
    """Where the rows of a mechanism go on from, into x: from its image x + change, given the residual at x.

    start (mechanisms + 1,): its rows; turn: rounds before this one; past: `MixArrays`, what they left."""
    first, end, count = start[mechanism], start[mechanism + 1], min(turn, DEPTH)
    dg, dx = past.dg, past.dx
    for j in range(count - 1, 0, -1):  # the newest difference first
        for r in range(first, end):
            dg[j, r], dx[j, r] = dg[j - 1, r], dx[j - 1, r]
    for r in range(first, end):
        x[r] += change[r]
        if count > 0:
            dg[0, r], dx[0, r] = residual[r] - past.g[r], x[r] - past.x[r]
        past.g[r], past.x[r] = residual[r], x[r]
    if count > 0:
        mix_weights(first, end, count, residual, dg, past.q, past.small, mechanism)
    for j in range(count):
        weight = past.small[mechanism, j, DEPTH]
        for r in range(first, end):
            x[r] -= weight * dx[j, r]
