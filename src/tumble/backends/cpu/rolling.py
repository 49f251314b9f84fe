"""Passes of the first-order iterations and of the measure for contacts with six rows; conventions as in `apgd`.

mu (3, cap): sliding, spinning and rolling friction; scale (4, cap), weight (2, cap).
"""

from __future__ import annotations

from ...kernels.cones import interval_gap, is_interval, local_error, project_rolling, rolling_shift, weighted_set
from ...kernels.jit import block_length, blockwise, formula, item_index, loop
from ..base import BLOCK

G_D = 1e-6
"""As in `measure`."""


@loop
def project_all_rolling(count, mu, x):
    """x = Pi_K(x)"""
    for c in range(count):
        x[0, c], x[1, c], x[2, c], x[3, c], x[4, c], x[5, c] = project_rolling(
            x[0, c], x[1, c], x[2, c], x[3, c], x[4, c], x[5, c], mu[0, c], mu[1, c], mu[2, c]
        )


@formula
def _shift_at(nx, bias, mu, c):
    return rolling_shift(
        nx[1, c] + bias[1, c], nx[2, c] + bias[2, c], nx[3, c] + bias[3, c], nx[4, c] + bias[4, c],
        nx[5, c] + bias[5, c], mu[0, c], mu[1, c], mu[2, c],
    )  # fmt: skip


@loop
def refresh_shift_rolling(count, nx, bias, mu, blend, shift):
    """Move the correction towards that of the present velocity."""
    for c in range(count):
        shift[c] += blend * (_shift_at(nx, bias, mu, c) - shift[c])


@blockwise(BLOCK, "cone.count")
def nesterov_pass_rolling(block, cone, scalars, nx, x, d, old, shift, partial):
    """See `nesterov_pass`."""
    bias, mu, beta, t, blend = cone.bias, cone.friction, scalars[1], 1.0 / scalars[0], scalars[2]
    dd, dh, gd = 0.0, 0.0, 0.0
    for item in range(block_length(block, cone.count)):
        c = item_index(block, item)
        s = shift[c]
        s += blend * (_shift_at(nx, bias, mu, c) - s)
        shift[c] = s
        for k in range(6):
            g, h = nx[k, c] + bias[k, c], nx[k, c] - old[k, c]
            if k == 0:
                g += s
            dd += d[k, c] * d[k, c]
            dh += d[k, c] * h
            gd += d[k, c] * g
            old[k, c] = x[k, c]
            x[k, c] += beta * d[k, c] - t * (g + beta * h)
        z = project_rolling(
            x[0, c], x[1, c], x[2, c], x[3, c], x[4, c], x[5, c], mu[0, c], mu[1, c], mu[2, c]
        )  # fmt: skip
        for k in range(6):
            d[k, c] = z[k] - old[k, c]
            x[k, c], old[k, c] = z[k], nx[k, c]
    partial[block, 0], partial[block, 1], partial[block, 2] = dd, dh, gd


@blockwise(BLOCK, "cone.count")
def nesterov_step_rolling(block, cone, v, shift, beta, t, blend):
    """x_new = Pi(y - t g(y)), y = x + beta (x - x_old); first the correction is refreshed from u(x)."""
    bias, mu, x, x_old, x_new, nx, nx_old = cone.bias, cone.friction, v.x, v.x_old, v.x_new, v.nx, v.nx_old
    for item in range(block_length(block, cone.count)):
        c = item_index(block, item)
        s = shift[c]
        s += blend * (_shift_at(nx, bias, mu, c) - s)
        shift[c] = s
        for k in range(6):
            g = nx[k, c] + beta * (nx[k, c] - nx_old[k, c]) + bias[k, c]
            y = x[k, c] + beta * (x[k, c] - x_old[k, c])
            x_new[k, c] = y - t * (g + s if k == 0 else g)
        z = project_rolling(
            x_new[0, c], x_new[1, c], x_new[2, c], x_new[3, c], x_new[4, c], x_new[5, c],
            mu[0, c], mu[1, c], mu[2, c],
        )  # fmt: skip
        for k in range(6):
            x_new[k, c] = z[k]


@blockwise(BLOCK, "cone.count")
def nesterov_dots_rolling(block, cone, v, shift, beta, partial):
    """Per block: |d|^2, d.Nd with d = x_new - y, and g(y).(x_new - x)."""
    bias, x, x_old, x_new, nx, nx_old, nx_new = cone.bias, v.x, v.x_old, v.x_new, v.nx, v.nx_old, v.nx_new
    dd, dnd, turn = 0.0, 0.0, 0.0
    for item in range(block_length(block, cone.count)):
        c = item_index(block, item)
        for k in range(6):
            z = x_new[k, c] - x[k, c]
            y = nx[k, c] + beta * (nx[k, c] - nx_old[k, c])
            d = z - beta * (x[k, c] - x_old[k, c])
            dd += d * d
            dnd += d * (nx_new[k, c] - y)
            turn += (y + bias[k, c] + (shift[c] if k == 0 else 0.0)) * z
    partial[block, 0], partial[block, 1], partial[block, 2] = dd, dnd, turn


@formula
def _natural(g, a, mu, sigma, rho):
    """Squared norm of g - Pi_K(g - a), of six numbers each."""
    n, u, w, s, p, q = project_rolling(
        g[0] - a[0], g[1] - a[1], g[2] - a[2], g[3] - a[3], g[4] - a[4], g[5] - a[5], mu, sigma, rho
    )
    return (
        (g[0] - n) * (g[0] - n) + (g[1] - u) * (g[1] - u) + (g[2] - w) * (g[2] - w)
        + (g[3] - s) * (g[3] - s) + (g[4] - p) * (g[4] - p) + (g[5] - q) * (g[5] - q)
    )  # fmt: skip


@formula
def _squares(n, u, w, s, p, q, force, torque):
    """Squared norm with the squared weights of forces and torques."""
    return force * (n * n + u * u + w * w) + torque * (s * s + p * p + q * q)


@blockwise(BLOCK, "gauge.count")
def measure_blocks_rolling(block, gauge, x, nx, partial):
    """Sums and maxima of one block a row, as in `measure`; forces and torques have their own weights."""
    count, bias, mu, scale, weight = gauge.count, gauge.bias, gauge.friction, gauge.scale, gauge.weight
    coulomb, speed = gauge.coulomb, gauge.speed
    nat, rr, gg, uu, eq, cla, rr1, gg1, uu1 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    gap, dmax, dhat, comp, pen, obj = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    local, most = 0.0, 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        sn, st, ss, sr = scale[0, c], scale[1, c], scale[2, c], scale[3, c]
        mu0, sigma, rho = mu[0, c], mu[1, c], mu[2, c]
        gn, gu, gw = sn * x[0, c], st * x[1, c], st * x[2, c]
        gs, gp, gq = ss * x[3, c], sr * x[4, c], sr * x[5, c]
        rn, ru, rw = bias[0, c] / sn, bias[1, c] / st, bias[2, c] / st
        rs, rp, rq = bias[3, c] / ss, bias[4, c] / sr, bias[5, c] / sr
        un, ut, uw = nx[0, c] / sn + rn, nx[1, c] / st + ru, nx[2, c] / st + rw
        us, up, uq = nx[3, c] / ss + rs, nx[4, c] / sr + rp, nx[5, c] / sr + rq
        slide = rolling_shift(ut, uw, us, up, uq, mu0, sigma, rho)
        a = un + slide if coulomb else un
        w, z = weight[0, c], weight[1, c]
        v, y = 1.0 / w, 1.0 / z
        g = (gn, gu, gw, gs, gp, gq)
        one = _natural(
            (w * gn, w * gu, w * gw, z * gs, z * gp, z * gq),
            (v * a, v * ut, v * uw, y * us, y * up, y * uq),
            weighted_set(mu0, w),
            sigma * z * v,
            rho * z * v,
        )
        eq += _natural(g, (G_D * a, G_D * ut, G_D * uw, G_D * us, G_D * up, G_D * uq), mu0, sigma, rho)
        cla += _natural(g, (a, ut, uw, us, up, uq), mu0, sigma, rho)
        rr1 += _squares(rn, ru, rw, rs, rp, rq, 1.0, 1.0)
        gg1 += _squares(gn, gu, gw, gs, gp, gq, 1.0, 1.0)
        uu1 += _squares(un, ut, uw, us, up, uq, 1.0, 1.0)
        r2 = _squares(rn, ru, rw, rs, rp, rq, v * v, y * y)
        u2 = _squares(un, ut, uw, us, up, uq, v * v, y * y)
        nat += one
        rr += r2
        gg += _squares(gn, gu, gw, gs, gp, gq, w * w, z * z)
        uu += u2
        local = max(local, local_error(one, r2, u2, w, speed))
        most = max(most, w * w * one)
        d = 0.0
        if not is_interval(mu0):
            d = max(0.0, (0.0 if coulomb else slide) - un)
            comp = max(comp, abs(gn * un))
            pen = max(pen, -un)
        gap += gn * (a + d) + gu * ut + gw * uw + gs * us + gp * up + gq * uq + interval_gap(un, mu0)
        obj += 0.5 * (
            gn * (un + rn) + gu * (ut + ru) + gw * (uw + rw) + gs * (us + rs) + gp * (up + rp) + gq * (uq + rq)
        )
        dmax = max(dmax, d)
        dhat = max(dhat, v * d)
    partial[block, 0], partial[block, 1], partial[block, 2], partial[block, 3] = nat, rr, gg, uu
    partial[block, 4], partial[block, 5], partial[block, 6], partial[block, 7] = eq, cla, rr1, gg1
    partial[block, 8], partial[block, 9], partial[block, 10], partial[block, 11] = uu1, gap, dmax, dhat
    partial[block, 12], partial[block, 13], partial[block, 14] = comp, pen, obj
    partial[block, 15], partial[block, 16] = local, most


@loop
def rolling_shift_bound(count, nx, bias, mu, tangential, root_gap):
    """As `coulomb_shift_bound`, with tangential (3, cap) of the blocks that slide, spin and roll."""
    worst = 0.0
    for c in range(count):
        if not is_interval(mu[0, c]):
            d = max(0.0, -(nx[0, c] + bias[0, c]))
            reach = mu[0, c] * tangential[0, c] + mu[1, c] * tangential[1, c] + mu[2, c] * tangential[2, c]
            worst = max(worst, d + reach * root_gap)
    return worst
