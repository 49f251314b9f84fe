"""Accelerated projected gradient descent in fixed passes; conventions as in `first_order`.

An iteration is one pass over the contacts (`nesterov_pass`), the product, and `kernels.nesterov.next_scalars`, whose
step length and momentum come from the sums of the pass before.
"""

from __future__ import annotations

from ...kernels.cones import coulomb_shift, project
from ...kernels.jit import block_length, blockwise, formula, item_index, loop
from ...kernels.nesterov import Scalar, next_scalars
from ..base import BLOCK
from .first_order import (
    CONVERGED,
    MAX_ITERATIONS,
    RUNNING,
    check,
    copy_vector,
    curvature_estimate,
    first_value,
    project_all,
    refresh_shift,
    sum_three,
)
from .operators import product
from .rolling import nesterov_pass_rolling

PATIENCE = 400
"""Iterations without progress after which the limit on the momentum is lifted or set again (Coulomb's law)."""


@blockwise(BLOCK, "cone.count")
def _nesterov_pass_plain(block, cone, scalars, nx, x, d, old, shift, partial):
    bias, mu, beta, t, blend = cone.bias, cone.friction, scalars[1], 1.0 / scalars[0], scalars[2]
    dd0, dd1, dd2, dh0, dh1, dh2, gd0, gd1, gd2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for item in range(block_length(block, cone.count)):
        c = item_index(block, item)
        n0, n1, n2 = nx[0, c], nx[1, c], nx[2, c]
        g0, g1, g2 = n0 + bias[0, c], n1 + bias[1, c], n2 + bias[2, c]
        s = shift[c]
        s += blend * (coulomb_shift(g1, g2, mu[c]) - s)
        shift[c] = s
        g0 += s
        h0, h1, h2 = n0 - old[0, c], n1 - old[1, c], n2 - old[2, c]
        d0, d1, d2 = d[0, c], d[1, c], d[2, c]
        x0, x1, x2 = x[0, c], x[1, c], x[2, c]
        dd0 += d0 * d0
        dd1 += d1 * d1
        dd2 += d2 * d2
        dh0 += d0 * h0
        dh1 += d1 * h1
        dh2 += d2 * h2
        gd0 += d0 * g0
        gd1 += d1 * g1
        gd2 += d2 * g2
        z0, z1, z2 = project(
            x0 + beta * d0 - t * (g0 + beta * h0),
            x1 + beta * d1 - t * (g1 + beta * h1),
            x2 + beta * d2 - t * (g2 + beta * h2),
            mu[c],
        )
        x[0, c], x[1, c], x[2, c] = z0, z1, z2
        d[0, c], d[1, c], d[2, c] = z0 - x0, z1 - x1, z2 - x2
        old[0, c], old[1, c], old[2, c] = n0, n1, n2
    partial[block, 0], partial[block, 1] = dd0 + dd1 + dd2, dh0 + dh1 + dh2
    partial[block, 2] = gd0 + gd1 + gd2


@loop
def nesterov_pass(cone, scalars, nx, x, d, old, shift, partial):
    """x <- Pi(y - t (g + beta h)), y = x + beta d, in place, from nx = N x.

    g = N x + bias + correction (refreshed first), h = N x - old = N d: under Coulomb's law both at the present
    correction. Then d is the step just made and old = nx. Per block: the sums d.d, d.h, g.d of the step before.
    """
    _nesterov_pass(cone.friction, cone, scalars, nx, x, d, old, shift, partial)


@loop
def _nesterov_pass(mu, cone, scalars, nx, x, d, old, shift, partial):
    if mu.ndim == 2:
        nesterov_pass_rolling(cone, scalars, nx, x, d, old, shift, partial)
    else:
        _nesterov_pass_plain(cone, scalars, nx, x, d, old, shift, partial)


@formula
def change_limit(scalars, cap):
    """Piles need the limit on the momentum, ill-conditioned stacks do not: changed over when progress ends."""
    scalars[Scalar.LIMIT] = scalars[Scalar.LIFTED] if scalars[Scalar.LIMIT] == cap else cap


@loop
def apgd(op, cone, gauge, stop, work, scalars, d, old):
    """Nesterov's method with gradient restart and best iterate. scalars: see `kernels.nesterov`; d, old: scratch.

    Returns (iterations, products, status, best stopping value).
    """
    count, x, nx, shift = cone.count, work.x, work.nx, work.shift
    project_all(count, cone.friction, x)
    scalars[Scalar.CURVATURE] = curvature_estimate(op, count, d, old)
    product(op, x, nx)
    products = 2
    refresh_shift(count, nx, cone.bias, cone.friction, scalars[Scalar.BLEND], shift)
    best_value = first_value(gauge, stop, work)
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    d[:, :count] = 0.0
    copy_vector(count, nx, old)
    cap, mark, since, checks = scalars[Scalar.LIMIT], best_value, 0, 0
    k = 0
    while k < stop.limit:
        k += 1
        nesterov_pass(cone, scalars, nx, x, d, old, shift, work.partial)
        product(op, x, nx)
        products += 1
        dd, dh, gd = sum_three(count, work.partial)
        next_scalars(dd, dh, gd, scalars)
        if k % stop.check_every == 0 or k == stop.limit:
            status, best_value, checks = check(k, gauge, stop, work, x, nx, best_value, checks)
            if status != RUNNING:
                return k, products, status, best_value
            if best_value < 0.7 * mark:
                mark, since = best_value, k
            elif gauge.coulomb and k - since > PATIENCE:
                change_limit(scalars, cap)
                mark, since = best_value, k
    return k, products, MAX_ITERATIONS, best_value
