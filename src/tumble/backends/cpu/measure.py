"""One pass that measures a solution: residuals, certificate, objective. Formulas in `kernels.cones`."""

from __future__ import annotations

import math

from ...kernels.cones import coulomb_shift, interval_gap, is_interval, local_error, natural_map, violation, weighted_set
from ...kernels.jit import block_length, blockwise, formula, item_index, loop
from ..base import BLOCK, Measure
from .rolling import measure_blocks_rolling

G_D = 1e-6
"""Step g_d of the projected-gradient residual (`residual_eq25`)."""


NATURAL_MAP, RESIDUAL_EQ25, CERTIFICATE, LOCAL = 0, 1, 2, 3
(
    AT_NATURAL, AT_SCALE, AT_EQ25, AT_CLASSIC, AT_CLASSIC_SCALE, AT_GAP, AT_SHIFT, AT_SHIFT_HAT, AT_COMPLEMENTARITY,
    AT_PENETRATION_SPEED, AT_OBJECTIVE, AT_LOCAL, AT_LOCAL_SPEED,
) = map(int, Measure)  # fmt: skip
"""Places of `Measure` as plain numbers, which kernels of devices take"""


@blockwise(BLOCK, "gauge.count")
def _natural_blocks_plain(block, gauge, x, nx, partial):
    """Per block: the squared natural map and |r^|^2, |g^|^2, |u^|^2 (hats as in `Residuals.natural_map`), and the
    largest local error squared."""
    count, bias, mu, scale, weight = gauge.count, gauge.bias, gauge.friction, gauge.scale, gauge.weight
    coulomb, speed = gauge.coulomb, gauge.speed
    nat, rr, gg, uu, local = 0.0, 0.0, 0.0, 0.0, 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        w, m = weight[c], mu[c]
        sn, st = w * scale[0, c], w * scale[1, c]
        fn, ft = 1.0 / sn, 1.0 / st
        gn, gu, gw = sn * x[0, c], st * x[1, c], st * x[2, c]
        rn, ru, rw = fn * bias[0, c], ft * bias[1, c], ft * bias[2, c]
        un, ut, uw = fn * nx[0, c] + rn, ft * nx[1, c] + ru, ft * nx[2, c] + rw
        s = coulomb_shift(ut, uw, m) if coulomb else 0.0
        one = natural_map(gn, gu, gw, un + s, ut, uw, weighted_set(m, w))
        r2, u2 = rn * rn + ru * ru + rw * rw, un * un + ut * ut + uw * uw
        nat += one
        rr += r2
        gg += gn * gn + gu * gu + gw * gw
        uu += u2
        local = max(local, local_error(one, r2, u2, w, speed))
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
    measure(gauge, x, nx, partial, values)
    if stop.kind == RESIDUAL_EQ25:
        return values[Measure.EQ25] / stop.rows
    size = values[Measure.SCALE]
    if not math.isfinite(size):
        return math.inf
    return max(math.sqrt(values[Measure.GAP]), values[Measure.SHIFT_HAT]) / size if size > 0.0 else 0.0


@blockwise(BLOCK, "gauge.count")
def _measure_blocks_plain(block, gauge, x, nx, partial):
    """Sums and maxima of one block a row. x and nx may be scaled: impulse = scale x, velocity = u / scale."""
    count, bias, mu, scale, weight = gauge.count, gauge.bias, gauge.friction, gauge.scale, gauge.weight
    coulomb, speed = gauge.coulomb, gauge.speed
    nat, rr, gg, uu, eq, cla, rr1, gg1, uu1 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    gap, dmax, dhat, comp, pen, obj = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    local, most = 0.0, 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        sn, st, w, m = scale[0, c], scale[1, c], weight[c], mu[c]
        gn, gu, gw = sn * x[0, c], st * x[1, c], st * x[2, c]
        fn, ft = 1.0 / sn, 1.0 / st
        rn, ru, rw = fn * bias[0, c], ft * bias[1, c], ft * bias[2, c]
        un, ut, uw = fn * nx[0, c] + rn, ft * nx[1, c] + ru, ft * nx[2, c] + rw
        s = coulomb_shift(ut, uw, m) if coulomb else 0.0
        a = un + s
        v = 1.0 / w
        one = natural_map(w * gn, w * gu, w * gw, v * a, v * ut, v * uw, weighted_set(m, w))
        nat += one
        eq += natural_map(gn, gu, gw, G_D * a, G_D * ut, G_D * uw, m)
        cla += natural_map(gn, gu, gw, a, ut, uw, m)
        r2, g2, u2 = rn * rn + ru * ru + rw * rw, gn * gn + gu * gu + gw * gw, un * un + ut * ut + uw * uw
        rr1 += r2
        gg1 += g2
        uu1 += u2
        rr += v * v * r2
        gg += w * w * g2
        uu += v * v * u2
        local = max(local, local_error(one, v * v * r2, v * v * u2, w, speed))
        most = max(most, w * w * one)
        d = violation(un, ut, uw, m, coulomb)
        gap += gn * (a + d) + gu * ut + gw * uw + interval_gap(un, m)
        obj += 0.5 * (gn * (un + rn) + gu * (ut + ru) + gw * (uw + rw))
        dmax = max(dmax, d)
        dhat = max(dhat, v * d)
        comp = max(comp, 0.0 if is_interval(m) else abs(gn * un))
        pen = max(pen, 0.0 if is_interval(m) else -un)
    partial[block, 0], partial[block, 1], partial[block, 2], partial[block, 3] = nat, rr, gg, uu
    partial[block, 4], partial[block, 5], partial[block, 6], partial[block, 7] = eq, cla, rr1, gg1
    partial[block, 8], partial[block, 9], partial[block, 10], partial[block, 11] = uu1, gap, dmax, dhat
    partial[block, 12], partial[block, 13], partial[block, 14] = comp, pen, obj
    partial[block, 15], partial[block, 16] = local, most


@loop
def _measure_blocks(mu, gauge, x, nx, partial):
    """Sums and maxima of one block a row. x and nx may be scaled: impulse = scale x, velocity = u / scale."""
    if mu.ndim == 2:  # of an argument, so that it is known when compiled
        measure_blocks_rolling(gauge, x, nx, partial)
    else:
        _measure_blocks_plain(gauge, x, nx, partial)


@loop
def measure(gauge, x, nx, partial, out):
    """Fill `out` (see `Measure`); partial has one row more than there are blocks.

    A norm that is not finite makes every residual infinite.
    """
    _measure_blocks(gauge.friction, gauge, x, nx, partial)
    blocks = (gauge.count + BLOCK - 1) // BLOCK
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
