"""Accelerated projected gradient descent as published: Algorithm 1 of Mazhar et al. 2015.

Steps that are too long are halved and taken again, and the momentum has no limit; conventions as in `first_order`.
"""

from __future__ import annotations

import math

from ...kernels.cones import coulomb_shift, project
from ...kernels.jit import block_length, blockwise, item_index, loop
from ...kernels.nesterov import theta_step
from ..base import BLOCK, PaperArrays
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
from .rolling import nesterov_dots_rolling, nesterov_step_rolling


@blockwise(BLOCK, "cone.count")
def _step_plain(block, cone, v, shift, beta, t, blend):
    """x_new = Pi(y - t g(y)), y = x + beta (x - x_old); first the correction is refreshed from u(x)."""
    bias, mu, x, x_old, nx, nx_old = cone.bias, cone.friction, v.x, v.x_old, v.nx, v.nx_old
    for item in range(block_length(block, cone.count)):
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
        v.x_new[0, c], v.x_new[1, c], v.x_new[2, c] = project(y0 - t * g0, y1 - t * g1, y2 - t * g2, mu[c])


@loop
def _step(mu, cone, v, shift, beta, t, blend):
    """x_new = Pi(y - t g(y)), y = x + beta (x - x_old); first the correction is refreshed from u(x)."""
    if mu.ndim == 2:
        nesterov_step_rolling(cone, v, shift, beta, t, blend)
    else:
        _step_plain(cone, v, shift, beta, t, blend)


@blockwise(BLOCK, "cone.count")
def _dots_plain(block, cone, v, shift, beta, partial):
    """Per block: |d|^2, d.Nd with d = x_new - y, and g(y).(x_new - x)."""
    bias, x, x_old, x_new, nx, nx_old, nx_new = cone.bias, v.x, v.x_old, v.x_new, v.nx, v.nx_old, v.nx_new
    dd0, dd1, dd2, dnd0, dnd1, dnd2, turn0, turn1, turn2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for item in range(block_length(block, cone.count)):
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
def _dots(mu, cone, v, shift, beta, partial):
    """Per block: |d|^2, d.Nd with d = x_new - y, and g(y).(x_new - x)."""
    if mu.ndim == 2:
        nesterov_dots_rolling(cone, v, shift, beta, partial)
    else:
        _dots_plain(cone, v, shift, beta, partial)


@loop
def _trial(op, cone, v, shift, beta, t, blend, partial):
    """A step, its product and its sums: |d|^2, d.Nd, g(y).(x_new - x)."""
    _step(cone.friction, cone, v, shift, beta, t, blend)
    product(op, v.x_new, v.nx_new)
    _dots(cone.friction, cone, v, shift, beta, partial)
    return sum_three(cone.count, partial)


@loop
def apgd_paper(op, cone, gauge, stop, work, growth, iterates):
    """Returns (iterations, products, status, best stopping value). N (x_new - y) replaces the difference of objectives
    in the step-length test: exact for a quadratic, and it keeps its digits near the solution. iterates: `PaperArrays`
    whose x and nx are those of `work`."""
    count, shift = cone.count, work.shift
    x, x_old, x_new = iterates.x, iterates.x_old, iterates.x_new
    nx, nx_old, nx_new = iterates.nx, iterates.nx_old, iterates.nx_new
    project_all(count, cone.friction, x)
    curvature = curvature_estimate(op, count, x_new, nx_new)
    product(op, x, nx)
    products = 2
    fresh = 1.0 if gauge.coulomb else 0.0
    refresh_shift(count, nx, cone.bias, cone.friction, fresh, shift)
    copy_vector(count, x, x_old)
    copy_vector(count, nx, nx_old)
    best_value = first_value(gauge, stop, work)
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    theta, beta, checks = 1.0, 0.0, 0
    k = 0
    while k < stop.limit:
        k += 1
        v = PaperArrays(x, x_old, x_new, nx, nx_old, nx_new)
        dd, dnd, turn = _trial(op, cone, v, shift, beta, 1.0 / curvature, fresh, work.partial)
        products += 1
        while dnd > curvature * dd * (1.0 + 1e-9) and math.isfinite(dnd):
            curvature = 2.0 * curvature
            dd, dnd, turn = _trial(op, cone, v, shift, beta, 1.0 / curvature, 0.0, work.partial)
            products += 1
        if turn > 0.0:
            theta, beta = 1.0, 0.0
        else:
            theta, beta = theta_step(theta)
        curvature *= growth
        x_old, x, x_new = x, x_new, x_old
        nx_old, nx, nx_new = nx, nx_new, nx_old
        if k % stop.check_every == 0 or k == stop.limit:
            status, best_value, checks = check(k, gauge, stop, work, x, nx, best_value, checks)
            if status != RUNNING:
                return k, products, status, best_value
    return k, products, MAX_ITERATIONS, best_value
