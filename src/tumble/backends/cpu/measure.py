"""One pass that measures a solution: residuals, certificate, objective. Formulas in `kernels.cones`."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.cones import coulomb_shift, interval_gap, is_interval, local_error, natural_map, violation, weighted_set
from ...kernels.jit import block_length, blockwise, formula, item_index, loop, merged_formula
from ..base import BLOCK, MEASURED, MEASURES, Measure
from .rolling import measure_blocks_rolling

G_D = 1e-6
"""Step g_d of the projected-gradient residual (`residual_eq25`)."""


NATURAL_MAP, RESIDUAL_EQ25, CERTIFICATE, LOCAL = 0, 1, 2, 3
(
    AT_NATURAL, AT_SCALE, AT_EQ25, AT_CLASSIC, AT_CLASSIC_SCALE, AT_GAP, AT_SHIFT, AT_SHIFT_HAT, AT_COMPLEMENTARITY,
    AT_PENETRATION_SPEED, AT_OBJECTIVE, AT_LOCAL, AT_LOCAL_SPEED,
) = map(int, Measure)  # fmt: skip
"""Places of `Measure` as plain numbers, which kernels of devices take"""
(
    W0, W1, W2, W3, W4, W5, W6, W7, W8, W9, W10, W11, W12, W13, W14, W15, W16,
) = (np.uint64(MEASURED * k) for k in range(17))  # fmt: skip
NOTHING = (0.0,) * 17


@merged_formula
def _natural(c, gauge, x, nx):
    """Of contact c: the squared natural map and |r^|^2, |g^|^2, |u^|^2 (hats as in `Residuals.natural_map`), and the
    local error squared."""
    w, m = gauge.weight[c], gauge.friction[c]
    sn, st = w * gauge.scale[0, c], w * gauge.scale[1, c]
    fn, ft = 1.0 / sn, 1.0 / st
    gn, gu, gw = sn * x[0, c], st * x[1, c], st * x[2, c]
    rn, ru, rw = fn * gauge.bias[0, c], ft * gauge.bias[1, c], ft * gauge.bias[2, c]
    un, ut, uw = fn * nx[0, c] + rn, ft * nx[1, c] + ru, ft * nx[2, c] + rw
    s = coulomb_shift(ut, uw, m) if gauge.coulomb else 0.0
    one = natural_map(gn, gu, gw, un + s, ut, uw, weighted_set(m, w))
    r2, u2 = rn * rn + ru * ru + rw * rw, un * un + ut * ut + uw * uw
    return one, r2, gn * gn + gu * gu + gw * gw, u2, local_error(one, r2, u2, w, gauge.speed)


@blockwise(BLOCK, "gauge.count")
def _natural_blocks_plain(block, gauge, x, nx, partial):
    """Per block: sums of the first four numbers of `_natural`, and the largest local error squared (column 15).

    Sums in a fixed order keep a loop from being vectorised, so the numbers of some contacts are laid down first."""
    length, room = block_length(block, gauge.count), partial[block]
    nat, rr, gg, uu, local = 0.0, 0.0, 0.0, 0.0, 0.0
    for first in range(0, length, MEASURED):
        width = min(MEASURED, length - first)
        for item in range(width):
            k = np.uint64(MEASURES + item)
            one, r2, g2, u2, error = _natural(item_index(block, first + item), gauge, x, nx)
            room[k + W0], room[k + W1], room[k + W2], room[k + W3], room[k + W4] = one, r2, g2, u2, error
        for item in range(width):
            k = np.uint64(MEASURES + item)
            nat += room[k + W0]
            rr += room[k + W1]
            gg += room[k + W2]
            uu += room[k + W3]
            local = max(local, room[k + W4])
    partial[block, 0], partial[block, 1], partial[block, 2], partial[block, 3] = nat, rr, gg, uu
    partial[block, 15] = local


@loop
def _natural_blocks(mu, gauge, x, nx, partial):
    """Per block: the squared natural map and |r^|^2, |g^|^2, |u^|^2 (hats as in `Residuals.natural_map`), and the
    largest local error squared (column 15)."""
    if mu.ndim == 2:  # of an argument, so that it is known when compiled
        measure_blocks_rolling(gauge, x, nx, partial)
    else:
        _natural_blocks_plain(gauge, x, nx, partial)


@formula
def natural_value(stop, nat, rr, gg, uu, local):
    """The local error or the natural map from its sums."""
    size = max(rr, max(gg, uu))
    if not (math.isfinite(nat) and math.isfinite(size)):
        return math.inf
    if stop == LOCAL:
        return math.sqrt(local)
    return math.sqrt(nat / size) if size > 0.0 else 0.0


@loop
def stop_value(stop, gauge, x, nx, partial, values):
    """The quantity that a solver compares with its tolerance."""
    if stop.kind == NATURAL_MAP or stop.kind == LOCAL:
        _natural_blocks(gauge.friction, gauge, x, nx, partial)
        nat, rr, gg, uu, local = 0.0, 0.0, 0.0, 0.0, 0.0
        for block in range((gauge.count + BLOCK - 1) // BLOCK):
            nat += partial[block, 0]
            rr += partial[block, 1]
            gg += partial[block, 2]
            uu += partial[block, 3]
            local = max(local, partial[block, 15])
        return natural_value(stop.kind, nat, rr, gg, uu, local)
    _in_order(gauge.friction, gauge, x, nx, partial)  # seldom asked, and the shorter code in every method
    add_blocks(gauge.count, partial, values)
    if stop.kind == RESIDUAL_EQ25:
        return values[Measure.EQ25] / stop.rows
    size = values[Measure.SCALE]
    if not math.isfinite(size):
        return math.inf
    return max(math.sqrt(values[Measure.GAP]), values[Measure.SHIFT_HAT]) / size if size > 0.0 else 0.0


@merged_formula
def _measured(c, gauge, x, nx):
    """What contact c gives to the columns of a block. x and nx may be scaled: impulse = scale x, velocity = u /
    scale."""
    sn, st, w, m = gauge.scale[0, c], gauge.scale[1, c], gauge.weight[c], gauge.friction[c]
    gn, gu, gw = sn * x[0, c], st * x[1, c], st * x[2, c]
    fn, ft = 1.0 / sn, 1.0 / st
    rn, ru, rw = fn * gauge.bias[0, c], ft * gauge.bias[1, c], ft * gauge.bias[2, c]
    un, ut, uw = fn * nx[0, c] + rn, ft * nx[1, c] + ru, ft * nx[2, c] + rw
    s = coulomb_shift(ut, uw, m) if gauge.coulomb else 0.0
    a, v = un + s, 1.0 / w
    one = natural_map(w * gn, w * gu, w * gw, v * a, v * ut, v * uw, weighted_set(m, w))
    r2, g2, u2 = rn * rn + ru * ru + rw * rw, gn * gn + gu * gu + gw * gw, un * un + ut * ut + uw * uw
    d = violation(un, ut, uw, m, gauge.coulomb)
    return (
        one, v * v * r2, w * w * g2, v * v * u2,
        natural_map(gn, gu, gw, G_D * a, G_D * ut, G_D * uw, m), natural_map(gn, gu, gw, a, ut, uw, m),
        r2, g2, u2, gn * (a + d) + gu * ut + gw * uw + interval_gap(un, m), d, v * d,
        0.0 if is_interval(m) else abs(gn * un), 0.0 if is_interval(m) else -un,
        0.5 * (gn * (un + rn) + gu * (ut + ru) + gw * (uw + rw)),
        local_error(one, v * v * r2, v * v * u2, w, gauge.speed), w * w * one,
    )  # fmt: skip


@merged_formula
def _with(t, f):
    """Sums and maxima t of a block with those of one more contact."""
    return (
        t[0] + f[0], t[1] + f[1], t[2] + f[2], t[3] + f[3], t[4] + f[4], t[5] + f[5], t[6] + f[6], t[7] + f[7],
        t[8] + f[8], t[9] + f[9], max(t[10], f[10]), max(t[11], f[11]), max(t[12], f[12]), max(t[13], f[13]),
        t[14] + f[14], max(t[15], f[15]), max(t[16], f[16]),
    )  # fmt: skip


@blockwise(BLOCK, "gauge.count")
def measure_in_order(block, gauge, x, nx, partial):
    """Sums and maxima of one block a row, contact by contact; devices, too, do it so, with a thread for a block."""
    sums = NOTHING
    for item in range(block_length(block, gauge.count)):
        sums = _with(sums, _measured(item_index(block, item), gauge, x, nx))
    for k in range(17):
        partial[block, k] = sums[k]


@merged_formula
def _lay_all(room, k, f):
    """The numbers of a contact into a block's row, after its sums."""
    room[k + W0], room[k + W1], room[k + W2], room[k + W3], room[k + W4] = f[0], f[1], f[2], f[3], f[4]
    room[k + W5], room[k + W6], room[k + W7], room[k + W8], room[k + W9] = f[5], f[6], f[7], f[8], f[9]
    room[k + W10], room[k + W11], room[k + W12], room[k + W13], room[k + W14] = f[10], f[11], f[12], f[13], f[14]
    room[k + W15], room[k + W16] = f[15], f[16]


@merged_formula
def _laid(room, k):
    """The numbers that were laid down."""
    return (
        room[k + W0], room[k + W1], room[k + W2], room[k + W3], room[k + W4], room[k + W5], room[k + W6],
        room[k + W7], room[k + W8], room[k + W9], room[k + W10], room[k + W11], room[k + W12], room[k + W13],
        room[k + W14], room[k + W15], room[k + W16],
    )  # fmt: skip


@blockwise(BLOCK, "gauge.count")
def _measure_blocks_plain(block, gauge, x, nx, partial):
    """Sums and maxima of one block a row."""
    length, room, sums = block_length(block, gauge.count), partial[block], NOTHING
    for first in range(0, length, MEASURED):
        width = min(MEASURED, length - first)
        for item in range(width):
            _lay_all(room, np.uint64(MEASURES + item), _measured(item_index(block, first + item), gauge, x, nx))
        for item in range(width):
            sums = _with(sums, _laid(room, np.uint64(MEASURES + item)))
    for k in range(17):
        partial[block, k] = sums[k]


@loop
def _measure_blocks(mu, gauge, x, nx, partial):
    """Sums and maxima of one block a row. x and nx may be scaled: impulse = scale x, velocity = u / scale."""
    if mu.ndim == 2:  # of an argument, so that it is known when compiled
        measure_blocks_rolling(gauge, x, nx, partial)
    else:
        _measure_blocks_plain(gauge, x, nx, partial)


@loop
def _in_order(mu, gauge, x, nx, partial):
    """`_measure_blocks` without room for what contacts give."""
    if mu.ndim == 2:
        measure_blocks_rolling(gauge, x, nx, partial)
    else:
        measure_in_order(gauge, x, nx, partial)


@loop
def measure(gauge, x, nx, partial, out):
    """Fill `out` (see `Measure`); partial has one row more than there are blocks.

    A norm that is not finite makes every residual infinite.
    """
    _measure_blocks(gauge.friction, gauge, x, nx, partial)
    add_blocks(gauge.count, partial, out)


@loop
def add_blocks(count, partial, out):
    """`out` from the rows of all blocks."""
    blocks = (count + BLOCK - 1) // BLOCK
    total = partial[blocks]
    total[:] = 0.0
    for block in range(blocks):
        for k in range(17):
            if 10 <= k <= 13 or k >= 15:
                total[k] = max(total[k], partial[block, k])
            else:
                total[k] += partial[block, k]
    finish(total, out)


@loop
def finish(total, out):
    """`out` (see `Measure`) from the sums and maxima of all blocks."""
    size = math.sqrt(max(total[1], max(total[2], total[3])))
    size1 = math.sqrt(max(total[6], max(total[7], total[8])))
    out[AT_SCALE] = size
    out[AT_CLASSIC_SCALE] = size1
    out[AT_NATURAL] = math.sqrt(total[0]) / size if size > 0.0 else 0.0
    out[AT_CLASSIC] = math.sqrt(total[5]) / size1 if size1 > 0.0 else 0.0
    out[AT_EQ25] = math.sqrt(total[4]) / G_D
    out[AT_GAP] = max(0.0, total[9])
    out[AT_SHIFT] = total[10]
    out[AT_SHIFT_HAT] = total[11]
    out[AT_COMPLEMENTARITY] = total[12]
    out[AT_PENETRATION_SPEED] = total[13]
    out[AT_OBJECTIVE] = total[14]
    out[AT_LOCAL] = math.sqrt(total[15])
    out[AT_LOCAL_SPEED] = math.sqrt(total[16])
    # Sums of squares may overflow to infinity while their quotient looks small.
    if not (math.isfinite(size) and math.isfinite(size1) and math.isfinite(total[0])):
        for k in range(13):
            out[k] = math.inf


@loop
def coulomb_shift_bound(count, nx, bias, mu, tangential, root_gap):
    """Largest delta_i + mu_i sqrt(lambda_max(N_TT)) sqrt(gap): how far the certificate's problem lies [m/s]."""
    worst = 0.0
    for c in range(count):
        if not is_interval(mu[c]):
            d = max(0.0, -(nx[0, c] + bias[0, c]))
            worst = max(worst, d + mu[c] * tangential[c] * root_gap)
    return worst


@blockwise(BLOCK)
def _shift_blocks(block, count, nx, bias, mu, tangential, root_gap, partial):
    worst = 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        if not is_interval(mu[c]):
            d = max(0.0, -(nx[0, c] + bias[0, c]))
            worst = max(worst, d + mu[c] * tangential[c] * root_gap)
    partial[block, 0] = worst


@loop
def shift_bound_in_blocks(count, nx, bias, mu, tangential, root_gap, partial):
    """`coulomb_shift_bound` by all threads; partial has a row a block."""
    _shift_blocks(count, nx, bias, mu, tangential, root_gap, partial)
    worst = 0.0
    for block in range((count + BLOCK - 1) // BLOCK):
        worst = max(worst, partial[block, 0])
    return worst
