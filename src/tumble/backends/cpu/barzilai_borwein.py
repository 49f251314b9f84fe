"""Compiled iterations of Barzilai and Borwein; conventions as in `first_order`."""

from __future__ import annotations

from ...kernels.cones import project
from ...kernels.jit import block_length, blockwise, item_index, loop
from ...kernels.spectral import SHARE, STEP, begin_spectral, blend_of, next_spectral
from ..base import BLOCK
from .first_order import (
    CONVERGED,
    MAX_ITERATIONS,
    RUNNING,
    STALLED,
    check,
    curvature_estimate,
    first_value,
    project_all,
    refresh_shift,
    sum_three,
)
from .operators import product


@blockwise(BLOCK)
def _spectral_direction(block, count, x, nx, bias, shift, mu, t, d):
    """d = Pi(x - t g) - x"""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        x0, x1, x2 = x[0, c], x[1, c], x[2, c]
        p0, p1, p2 = project(
            x0 - t * (nx[0, c] + bias[0, c] + shift[c]),
            x1 - t * (nx[1, c] + bias[1, c]),
            x2 - t * (nx[2, c] + bias[2, c]),
            mu[c],
        )
        d[0, c], d[1, c], d[2, c] = p0 - x0, p1 - x1, p2 - x2


@blockwise(BLOCK)
def _spectral_dots(block, count, x, nx, bias, shift, d, nd, partial):
    """Per block: d.d, d.Nd, Nd.Nd, g.d and the objective x.(Nx/2 + r + s)."""
    dd, dnd, nn, gd, f = 0.0, 0.0, 0.0, 0.0, 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        for k in range(3):
            b = bias[k, c] + (shift[c] if k == 0 else 0.0)
            dd += d[k, c] * d[k, c]
            dnd += d[k, c] * nd[k, c]
            nn += nd[k, c] * nd[k, c]
            gd += d[k, c] * (nx[k, c] + b)
            f += x[k, c] * (0.5 * nx[k, c] + b)
    partial[block, 0], partial[block, 1], partial[block, 2] = dd, dnd, nn
    partial[block, 3], partial[block, 4] = gd, f


@blockwise(BLOCK)
def _move(block, count, s, d, nd, x, nx):
    """x += s d and N x likewise."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        for k in range(3):
            x[k, c] += s * d[k, c]
            nx[k, c] += s * nd[k, c]


@loop
def barzilai_borwein(op, cone, gauge, stop, work, damping, d, nd):
    """Projected spectral gradient with alternating Barzilai-Borwein steps and a nonmonotone line search, whose
    shortening is the exact minimiser along the direction. N x is updated and recomputed every 50 iterations."""
    count, bias, mu, coulomb = cone.count, cone.bias, cone.friction, gauge.coulomb
    x, nx, shift, partial = work.x, work.nx, work.shift, work.partial
    project_all(count, mu, x)
    scalars = partial[partial.shape[0] - 1]  # the last row
    begin_spectral(1.0 / curvature_estimate(op, count, d, nd), scalars)
    product(op, x, nx)
    products = 2
    refresh_shift(count, nx, bias, mu, 1.0 if coulomb else 0.0, shift)
    best_value = first_value(gauge, stop, work)
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    k, checks = 0, 0
    while k < stop.limit:
        k += 1
        if coulomb:
            refresh_shift(count, nx, bias, mu, blend_of(k, damping), shift)
        _spectral_direction(count, x, nx, bias, shift, mu, scalars[STEP], d)
        product(op, d, nd)
        products += 1
        _spectral_dots(count, x, nx, bias, shift, d, nd, partial)
        dd, dnd, nn = sum_three(count, partial)
        gd, f = 0.0, 0.0
        for block in range((count + BLOCK - 1) // BLOCK):
            gd += partial[block, 3]
            f += partial[block, 4]
        next_spectral(dd, dnd, nn, gd, f, coulomb, scalars)
        _move(count, scalars[SHARE], d, nd, x, nx)
        if k % 50 == 0:
            product(op, x, nx)
            products += 1
        if k % stop.check_every == 0 or k == stop.limit:
            status, best_value, checks = check(k, gauge, stop, work, x, nx, best_value, checks)
            if status != RUNNING:
                return k, products, status, best_value
            if dd == 0.0:
                return k, products, STALLED, best_value
    return k, products, MAX_ITERATIONS, best_value
