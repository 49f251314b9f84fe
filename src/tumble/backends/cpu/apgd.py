"""Compiled iterations of the first-order solvers, the same for every operator.

Contacts with six rows (mu of two dimensions, known when compiled) take the passes of `rolling`.

All work on the scaled problem: impulse = scale * x, bias and operator scaled alike, mu' = mu s_n / s_t. Work arrays are
(3, cap), `shift` (cap,) is the Coulomb correction (zero for the relaxed law), `best` receives the best iterate.

Coulomb's law by damped anti-relaxation: in iteration k the correction moves towards mu |u_T| by
b = min(1, damping / k); the full refresh can end in a limit cycle.
"""

from __future__ import annotations

import math

from ...kernels.cones import coulomb_shift, project
from ...kernels.jit import block_length, blockwise, item_index, loop
from ..base import BLOCK, STALL_CHECKS
from .measure import stop_value
from .operators import product
from .rolling import (
    nesterov_dots_rolling,
    nesterov_step_rolling,
    project_all_rolling,
    refresh_shift_rolling,
)

RUNNING, CONVERGED, MAX_ITERATIONS, STALLED, DIVERGED = -1, 0, 1, 2, 3
PATIENCE = 400
"""Iterations without progress after which the limit on the momentum is lifted or set again (Coulomb's law)."""


@loop
def copy_vector(count, src, dst):
    """dst = src"""
    for k in range(src.shape[0]):
        for c in range(count):
            dst[k, c] = src[k, c]


@loop
def keep_best(k, value, tolerance, count, x, best, best_value, checks, history):
    """After a check: note the stopping value of iterate x and keep x where it is the best so far.

    Returns (status, best value, checks since it was found); RUNNING while there is nothing to end for.
    """
    if k < history.size:
        history[k] = value
    if value < best_value:
        best_value = value
        copy_vector(count, x, best)
        checks = 0
    else:
        checks += 1
    status = RUNNING
    if best_value <= tolerance:
        status = CONVERGED
    elif not math.isfinite(value):
        status = DIVERGED
    elif checks > STALL_CHECKS:
        status = STALLED
    return status, best_value, checks


@loop
def project_all(count, mu, x):
    """x = Pi_K(x)"""
    if mu.ndim == 2:
        project_all_rolling(count, mu, x)
    else:
        for c in range(count):
            x[0, c], x[1, c], x[2, c] = project(x[0, c], x[1, c], x[2, c], mu[c])


@blockwise(BLOCK)
def _refresh_shift_plain(block, count, nx, bias, mu, blend, shift):
    """Move the Coulomb correction towards mu |u_T|."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        target = coulomb_shift(nx[1, c] + bias[1, c], nx[2, c] + bias[2, c], mu[c])
        shift[c] += blend * (target - shift[c])


@loop
def refresh_shift(count, nx, bias, mu, blend, shift):
    """Move the Coulomb correction towards mu |u_T|."""
    if mu.ndim == 2:
        refresh_shift_rolling(count, nx, bias, mu, blend, shift)
    else:
        _refresh_shift_plain(count, nx, bias, mu, blend, shift)


@blockwise(BLOCK)
def _nesterov_step_plain(block, count, x, x_old, nx, nx_old, bias, shift, mu, beta, t, blend, x_new):
    """x_new = Pi(y - t g(y)), y = x + beta (x - x_old); first the correction is refreshed from u(x)."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        b0, b1, b2 = bias[0, c], bias[1, c], bias[2, c]
        n0, n1, n2 = nx[0, c], nx[1, c], nx[2, c]
        s = shift[c]
        s += blend * (coulomb_shift(n1 + b1, n2 + b2, mu[c]) - s)
        shift[c] = s
        x0, x1, x2 = x[0, c], x[1, c], x[2, c]
        g0 = n0 + beta * (n0 - nx_old[0, c]) + b0 + s
        g1 = n1 + beta * (n1 - nx_old[1, c]) + b1
        g2 = n2 + beta * (n2 - nx_old[2, c]) + b2
        y0 = x0 + beta * (x0 - x_old[0, c])
        y1 = x1 + beta * (x1 - x_old[1, c])
        y2 = x2 + beta * (x2 - x_old[2, c])
        x_new[0, c], x_new[1, c], x_new[2, c] = project(y0 - t * g0, y1 - t * g1, y2 - t * g2, mu[c])


@loop
def _nesterov_step(count, x, x_old, nx, nx_old, bias, shift, mu, beta, t, blend, x_new):
    """x_new = Pi(y - t g(y)), y = x + beta (x - x_old); first the correction is refreshed from u(x)."""
    if mu.ndim == 2:
        nesterov_step_rolling(count, x, x_old, nx, nx_old, bias, shift, mu, beta, t, blend, x_new)
    else:
        _nesterov_step_plain(count, x, x_old, nx, nx_old, bias, shift, mu, beta, t, blend, x_new)


@blockwise(BLOCK)
def _nesterov_dots_plain(block, count, x, x_old, nx, nx_old, x_new, nx_new, bias, shift, beta, partial):
    """Per block: |d|^2, d.Nd with d = x_new - y, and g(y).(x_new - x)."""
    dd0, dd1, dd2, dnd0, dnd1, dnd2, turn0, turn1, turn2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        x0, x1, x2 = x[0, c], x[1, c], x[2, c]
        n0, n1, n2 = nx[0, c], nx[1, c], nx[2, c]
        z0, z1, z2 = x_new[0, c] - x0, x_new[1, c] - x1, x_new[2, c] - x2
        y0, y1, y2 = n0 + beta * (n0 - nx_old[0, c]), n1 + beta * (n1 - nx_old[1, c]), n2 + beta * (n2 - nx_old[2, c])
        d0, d1, d2 = z0 - beta * (x0 - x_old[0, c]), z1 - beta * (x1 - x_old[1, c]), z2 - beta * (x2 - x_old[2, c])
        dd0 += d0 * d0
        dd1 += d1 * d1
        dd2 += d2 * d2
        dnd0 += d0 * (nx_new[0, c] - y0)
        dnd1 += d1 * (nx_new[1, c] - y1)
        dnd2 += d2 * (nx_new[2, c] - y2)
        turn0 += (y0 + bias[0, c] + shift[c]) * z0
        turn1 += (y1 + bias[1, c]) * z1
        turn2 += (y2 + bias[2, c]) * z2
    partial[block, 0], partial[block, 1] = dd0 + dd1 + dd2, dnd0 + dnd1 + dnd2
    partial[block, 2] = turn0 + turn1 + turn2


@loop
def _nesterov_dots(mu, count, x, x_old, nx, nx_old, x_new, nx_new, bias, shift, beta, partial):
    """Per block: |d|^2, d.Nd with d = x_new - y, and g(y).(x_new - x)."""
    if mu.ndim == 2:
        nesterov_dots_rolling(count, x, x_old, nx, nx_old, x_new, nx_new, bias, shift, beta, partial)
    else:
        _nesterov_dots_plain(count, x, x_old, nx, nx_old, x_new, nx_new, bias, shift, beta, partial)


@loop
def sum_three(count, partial):
    """Sums of the first three columns over the blocks, in order."""
    a, b, c = 0.0, 0.0, 0.0
    for block in range((count + BLOCK - 1) // BLOCK):
        a += partial[block, 0]
        b += partial[block, 1]
        c += partial[block, 2]
    return a, b, c


@loop
def curvature_estimate(op, count, work, nwork):
    """|N 1| / |1|, the first guess of the largest eigenvalue (on `work`, which is overwritten)."""
    rows = work.shape[0]
    work[:, :count] = 1.0
    product(op, work, nwork)
    squares = 0.0
    for c in range(count):
        for k in range(rows):
            squares += nwork[k, c] * nwork[k, c]
    return math.sqrt(squares / (rows * count)) if squares > 0.0 and math.isfinite(squares) else 1.0


@loop
def apgd(
    op,
    count,
    dim,
    bias,
    mu,
    true_mu,
    scale,
    weight,
    coulomb,
    damping,
    stop,
    tolerance,
    limit,
    check_every,
    growth,
    momentum_limit,
    paper,
    x,
    x_old,
    nx,
    nx_old,
    x_new,
    nx_new,
    shift,
    best,
    partial,
    values,
    history,
):
    """Accelerated projected gradient descent with adaptive step, gradient restart and best iterate.

    Returns (iterations, products, status, best stopping value). N (x_new - y) replaces the difference of objectives in
    the step-length test: exact for a quadratic, and it keeps its digits near the solution. paper: as published, steps
    that are too long are halved whatever the curvature just seen, and the momentum has no limit.
    """
    project_all(count, mu, x)
    curvature = curvature_estimate(op, count, x_new, nx_new)
    product(op, x, nx)
    products = 2
    refresh_shift(count, nx, bias, mu, 1.0 if coulomb else 0.0, shift)
    copy_vector(count, x, x_old)
    copy_vector(count, nx, nx_old)
    copy_vector(count, x, best)
    best_value = stop_value(stop, count, dim, x, nx, bias, true_mu, scale, weight, coulomb, partial, values)
    history[0] = best_value
    if best_value <= tolerance:
        return 0, products, CONVERGED, best_value
    theta, beta, checks = 1.0, 0.0, 0
    limited, mark, since = coulomb and not paper, best_value, 0
    k = 0
    while k < limit:
        k += 1
        blend = min(1.0, damping / k) if coulomb else 0.0
        _nesterov_step(count, x, x_old, nx, nx_old, bias, shift, mu, beta, 1.0 / curvature, blend, x_new)
        product(op, x_new, nx_new)
        _nesterov_dots(mu, count, x, x_old, nx, nx_old, x_new, nx_new, bias, shift, beta, partial)
        products += 1
        dd, dnd, turn = sum_three(count, partial)
        while dnd > curvature * dd * (1.0 + 1e-9) and math.isfinite(dnd):
            seen = dnd / dd
            curvature = seen if not paper and 2.0 * curvature < seen < 4.0 * curvature else 2.0 * curvature
            _nesterov_step(count, x, x_old, nx, nx_old, bias, shift, mu, beta, 1.0 / curvature, 0.0, x_new)
            product(op, x_new, nx_new)
            _nesterov_dots(mu, count, x, x_old, nx, nx_old, x_new, nx_new, bias, shift, beta, partial)
            products += 1
            dd, dnd, turn = sum_three(count, partial)
        if turn > 0.0:
            theta, beta = 1.0, 0.0
        else:
            theta_new = 0.5 * (theta * math.sqrt(theta * theta + 4.0) - theta * theta)
            beta = theta * (1.0 - theta) / (theta * theta + theta_new)
            theta = theta_new
            if limited:
                beta = min(beta, momentum_limit)
        curvature *= growth
        x_old, x, x_new = x, x_new, x_old
        nx_old, nx, nx_new = nx, nx_new, nx_old
        if k % check_every == 0 or k == limit:
            value = stop_value(stop, count, dim, x, nx, bias, true_mu, scale, weight, coulomb, partial, values)
            status, best_value, checks = keep_best(k, value, tolerance, count, x, best, best_value, checks, history)
            if status != RUNNING:
                return k, products, status, best_value
            # Piles need the limit, ill-conditioned stacks do not: change over when progress ends.
            if best_value < 0.7 * mark:
                mark, since = best_value, k
            elif coulomb and not paper and k - since > PATIENCE:
                limited, mark, since = not limited, best_value, k
    return k, products, MAX_ITERATIONS, best_value
