"""Compiled iterations of Barzilai-Borwein, Gauss-Seidel and Jacobi; conventions as in `iterate`."""

from __future__ import annotations

import math

from numba import types
from numba.extending import overload

from ...kernels.cones import coulomb_shift, project
from ...kernels.jit import SMALL, block_body, block_length, item_index, loop, parallel_loop, prange
from ..base import BLOCK, ContactArrays, MatrixArrays
from .iterate import (
    CONVERGED,
    DIVERGED,
    MAX_ITERATIONS,
    STALL_CHECKS,
    STALLED,
    copy_vector,
    curvature_estimate,
    project_all,
    refresh_shift,
    sum_three,
)
from .measure import stop_value
from .operators import product

MEMORY = 10
"""Objectives that the nonmonotone line search looks back on."""


@block_body
def _spectral_direction_block(block, count, x, nx, bias, shift, mu, t, d):
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


@parallel_loop
def _spectral_direction_blocks(count, x, nx, bias, shift, mu, t, d):
    """All blocks of `_spectral_direction_block`."""
    for block in prange((count + BLOCK - 1) // BLOCK):
        _spectral_direction_block(block, count, x, nx, bias, shift, mu, t, d)


@loop
def _spectral_direction(count, x, nx, bias, shift, mu, t, d):
    """d = Pi(x - t g) - x"""
    if count <= SMALL:
        _spectral_direction_block(0, count, x, nx, bias, shift, mu, t, d)
    else:
        _spectral_direction_blocks(count, x, nx, bias, shift, mu, t, d)


@block_body
def _spectral_dots_block(block, count, x, nx, bias, shift, d, nd, partial):
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


@parallel_loop
def _spectral_dots_blocks(count, x, nx, bias, shift, d, nd, partial):
    """All blocks of `_spectral_dots_block`."""
    for block in prange((count + BLOCK - 1) // BLOCK):
        _spectral_dots_block(block, count, x, nx, bias, shift, d, nd, partial)


@loop
def _spectral_dots(count, x, nx, bias, shift, d, nd, partial):
    """Per block: d.d, d.Nd, Nd.Nd, g.d and the objective x.(Nx/2 + r + s)."""
    if count <= SMALL:
        _spectral_dots_block(0, count, x, nx, bias, shift, d, nd, partial)
    else:
        _spectral_dots_blocks(count, x, nx, bias, shift, d, nd, partial)


@block_body
def _move_block(block, count, s, d, nd, x, nx):
    """x += s d and N x likewise."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        for k in range(3):
            x[k, c] += s * d[k, c]
            nx[k, c] += s * nd[k, c]


@parallel_loop
def _move_blocks(count, s, d, nd, x, nx):
    """All blocks of `_move_block`."""
    for block in prange((count + BLOCK - 1) // BLOCK):
        _move_block(block, count, s, d, nd, x, nx)


@loop
def _move(count, s, d, nd, x, nx):
    """x += s d and N x likewise."""
    if count <= SMALL:
        _move_block(0, count, s, d, nd, x, nx)
    else:
        _move_blocks(count, s, d, nd, x, nx)


@loop
def barzilai_borwein(
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
    x,
    nx,
    d,
    nd,
    shift,
    best,
    partial,
    values,
    history,
):
    """Projected spectral gradient with alternating Barzilai-Borwein steps and a nonmonotone line search, whose
    shortening is the exact minimiser along the direction. N x is updated and recomputed every 50 iterations."""
    project_all(count, mu, x)
    t = 1.0 / curvature_estimate(op, count, d, nd)
    product(op, x, nx)
    products = 2
    refresh_shift(count, nx, bias, mu, 1.0 if coulomb else 0.0, shift)
    copy_vector(count, x, best)
    best_value = stop_value(stop, count, dim, x, nx, bias, true_mu, scale, weight, coulomb, partial, values)
    history[0] = best_value
    if best_value <= tolerance:
        return 0, products, CONVERGED, best_value
    row = partial.shape[0] - 1  # the last row of partial keeps the objectives of the line search
    for k in range(MEMORY):
        partial[row, k] = -math.inf
    k, checks = 0, 0
    while k < limit:
        k += 1
        if coulomb:
            refresh_shift(count, nx, bias, mu, min(1.0, damping / k), shift)
        _spectral_direction(count, x, nx, bias, shift, mu, t, d)
        product(op, d, nd)
        products += 1
        _spectral_dots(count, x, nx, bias, shift, d, nd, partial)
        dd, dnd, nn = sum_three(count, partial)
        gd, f = 0.0, 0.0
        for block in range((count + BLOCK - 1) // BLOCK):
            gd += partial[block, 3]
            f += partial[block, 4]
        partial[row, k % MEMORY] = f
        highest = f
        for j in range(MEMORY):
            highest = max(highest, partial[row, j])
        s = 1.0
        # With the correction moving, objectives of different iterations do not compare: use the last one alone.
        if f + gd + 0.5 * dnd > (f if coulomb else highest) + 1e-4 * gd and dnd > 0.0:
            s = min(1.0, max(0.01, -gd / dnd))
        _move(count, s, d, nd, x, nx)
        if k % 50 == 0:
            product(op, x, nx)
            products += 1
        if dnd > 0.0 and nn > 0.0:
            t = dd / dnd if k % 2 == 0 else dnd / nn
        if k % check_every == 0 or k == limit:
            value = stop_value(stop, count, dim, x, nx, bias, true_mu, scale, weight, coulomb, partial, values)
            if k < history.size:
                history[k] = value
            if value < best_value:
                best_value = value
                copy_vector(count, x, best)
                checks = 0
            else:
                checks += 1
            if best_value <= tolerance:
                return k, products, CONVERGED, best_value
            if not math.isfinite(value):
                return k, products, DIVERGED, best_value
            if checks > STALL_CHECKS or dd == 0.0:
                return k, products, STALLED, best_value
    return k, products, MAX_ITERATIONS, best_value


@loop
def contact_sweep(op, bias, mu, step, blend, x, shift):
    """One Gauss-Seidel sweep over the contacts, in order; body velocities are kept up to date."""
    g, arms, v, im, ii = op.frame, op.arms, op.body_velocity, op.inverse_mass, op.inverse_inertia
    soft = op.compliance.shape[1] > 0
    for c in range(op.count):
        i, j = op.body_a[c], op.body_b[c]
        ax, ay, az = arms[0, c], arms[1, c], arms[2, c]
        bx, by, bz = arms[3, c], arms[4, c], arms[5, c]
        vx = v[j, 0] - v[i, 0] + (v[j, 4] * bz - v[j, 5] * by) - (v[i, 4] * az - v[i, 5] * ay)
        vy = v[j, 1] - v[i, 1] + (v[j, 5] * bx - v[j, 3] * bz) - (v[i, 5] * ax - v[i, 3] * az)
        vz = v[j, 2] - v[i, 2] + (v[j, 3] * by - v[j, 4] * bx) - (v[i, 3] * ay - v[i, 4] * ax)
        u0 = g[0, c] * vx + g[1, c] * vy + g[2, c] * vz + bias[0, c]
        u1 = g[3, c] * vx + g[4, c] * vy + g[5, c] * vz + bias[1, c]
        u2 = g[6, c] * vx + g[7, c] * vy + g[8, c] * vz + bias[2, c]
        if soft:
            u0 += op.compliance[0, c] * x[0, c]
            u1 += op.compliance[1, c] * x[1, c]
            u2 += op.compliance[1, c] * x[2, c]
        shift[c] += blend * (coulomb_shift(u1, u2, mu[c]) - shift[c])
        t = step[c]
        p0, p1, p2 = project(x[0, c] - t * (u0 + shift[c]), x[1, c] - t * u1, x[2, c] - t * u2, mu[c])
        d0, d1, d2 = p0 - x[0, c], p1 - x[1, c], p2 - x[2, c]
        x[0, c], x[1, c], x[2, c] = p0, p1, p2
        fx = g[0, c] * d0 + g[3, c] * d1 + g[6, c] * d2
        fy = g[1, c] * d0 + g[4, c] * d1 + g[7, c] * d2
        fz = g[2, c] * d0 + g[5, c] * d1 + g[8, c] * d2
        for side in range(2):
            b = j if side else i
            s = 1.0 if side else -1.0
            rx, ry, rz = (bx, by, bz) if side else (ax, ay, az)
            tx, ty, tz = s * (ry * fz - rz * fy), s * (rz * fx - rx * fz), s * (rx * fy - ry * fx)
            v[b, 0] += s * im[b, 0] * fx
            v[b, 1] += s * im[b, 1] * fy
            v[b, 2] += s * im[b, 2] * fz
            v[b, 3] += ii[b, 0] * tx + ii[b, 3] * ty + ii[b, 4] * tz
            v[b, 4] += ii[b, 3] * tx + ii[b, 1] * ty + ii[b, 5] * tz
            v[b, 5] += ii[b, 4] * tx + ii[b, 5] * ty + ii[b, 2] * tz


@loop
def matrix_sweep(op, bias, mu, step, blend, x, shift):
    """One Gauss-Seidel sweep over the blocks of a sparse matrix."""
    for c in range(op.count):
        u0, u1, u2 = bias[0, c], bias[1, c], bias[2, c]
        for k in range(op.dim):
            s = 0.0
            for e in range(op.start[op.dim * c + k], op.start[op.dim * c + k + 1]):
                s += op.value[e] * x[op.component[e], op.contact[e]]
            if k == 0:
                u0 += s
            elif k == 1:
                u1 += s
            else:
                u2 += s
        shift[c] += blend * (coulomb_shift(u1, u2, mu[c]) - shift[c])
        t = step[c]
        x[0, c], x[1, c], x[2, c] = project(x[0, c] - t * (u0 + shift[c]), x[1, c] - t * u1, x[2, c] - t * u2, mu[c])


def sweep(op, bias, mu, step, blend, x, shift):
    """One Gauss-Seidel sweep for any operator (plain Python form)."""
    if isinstance(op, ContactArrays):
        contact_sweep(op, bias, mu, step, blend, x, shift)
    else:
        matrix_sweep(op, bias, mu, step, blend, x, shift)


@overload(sweep)
def _sweep(op, bias, mu, step, blend, x, shift):
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is ContactArrays:
        return lambda op, bias, mu, step, blend, x, shift: contact_sweep(op, bias, mu, step, blend, x, shift)
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is MatrixArrays:
        return lambda op, bias, mu, step, blend, x, shift: matrix_sweep(op, bias, mu, step, blend, x, shift)
    return None


@block_body
def _jacobi_step_block(block, count, nx, bias, shift, mu, step, x):
    """All blocks at once, from the same product."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        t = step[c]
        x[0, c], x[1, c], x[2, c] = project(
            x[0, c] - t * (nx[0, c] + bias[0, c] + shift[c]),
            x[1, c] - t * (nx[1, c] + bias[1, c]),
            x[2, c] - t * (nx[2, c] + bias[2, c]),
            mu[c],
        )


@parallel_loop
def _jacobi_step_blocks(count, nx, bias, shift, mu, step, x):
    """All blocks of `_jacobi_step_block`."""
    for block in prange((count + BLOCK - 1) // BLOCK):
        _jacobi_step_block(block, count, nx, bias, shift, mu, step, x)


@loop
def _jacobi_step(count, nx, bias, shift, mu, step, x):
    """All blocks at once, from the same product."""
    if count <= SMALL:
        _jacobi_step_block(0, count, nx, bias, shift, mu, step, x)
    else:
        _jacobi_step_blocks(count, nx, bias, shift, mu, step, x)


@loop
def relax(
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
    step,
    sequential,
    x,
    nx,
    shift,
    best,
    partial,
    values,
    history,
):
    """Projected Gauss-Seidel (sequential) or Jacobi with a step per contact. A check costs a fresh product, which also
    removes the rounding that piles up in the velocities of Gauss-Seidel."""
    project_all(count, mu, x)
    product(op, x, nx)
    products = 1
    refresh_shift(count, nx, bias, mu, 1.0 if coulomb else 0.0, shift)
    copy_vector(count, x, best)
    best_value = stop_value(stop, count, dim, x, nx, bias, true_mu, scale, weight, coulomb, partial, values)
    history[0] = best_value
    if best_value <= tolerance:
        return 0, products, CONVERGED, best_value
    k, checks = 0, 0
    while k < limit:
        k += 1
        blend = min(1.0, damping / k) if coulomb else 0.0
        check = k % check_every == 0 or k == limit
        if sequential:
            sweep(op, bias, mu, step, blend, x, shift)
            if check:
                product(op, x, nx)
                products += 1
        else:
            _jacobi_step(count, nx, bias, shift, mu, step, x)
            product(op, x, nx)
            products += 1
            if coulomb:
                refresh_shift(count, nx, bias, mu, blend, shift)
        if check:
            value = stop_value(stop, count, dim, x, nx, bias, true_mu, scale, weight, coulomb, partial, values)
            if k < history.size:
                history[k] = value
            if value < best_value:
                best_value = value
                copy_vector(count, x, best)
                checks = 0
            else:
                checks += 1
            if best_value <= tolerance:
                return k, products, CONVERGED, best_value
            if not math.isfinite(value):
                return k, products, DIVERGED, best_value
            if checks > STALL_CHECKS:
                return k, products, STALLED, best_value
    return k, products, MAX_ITERATIONS, best_value
