"""Compiled iterations of projected Gauss-Seidel and Jacobi; conventions as in `first_order`."""

from __future__ import annotations

from numba import types
from numba.extending import overload

from ...kernels.cones import coulomb_shift, project
from ...kernels.jit import block_length, blockwise, item_index, loop
from ...kernels.one_contact import contact_velocity, matrix_velocity, push_bodies
from ..base import BLOCK, ContactArrays, MatrixArrays
from .first_order import CONVERGED, MAX_ITERATIONS, RUNNING, check, first_value, project_all, refresh_shift
from .operators import product


@loop
def contact_sweep(op, bias, mu, step, part, blend, x, shift):
    """One Gauss-Seidel sweep over the contacts, in order; body velocities are kept up to date. part: of the way to the
    projected impulse that is gone."""
    soft = op.compliance.shape[1] > 0
    for c in range(op.count):
        u0, u1, u2 = contact_velocity(op, c, bias, soft, x)
        shift[c] += blend * (coulomb_shift(u1, u2, mu[c]) - shift[c])
        t = step[c]
        p0, p1, p2 = project(x[0, c] - t * (u0 + shift[c]), x[1, c] - t * u1, x[2, c] - t * u2, mu[c])
        d0, d1, d2 = part * (p0 - x[0, c]), part * (p1 - x[1, c]), part * (p2 - x[2, c])
        if part == 1.0:
            x[0, c], x[1, c], x[2, c] = p0, p1, p2
        else:
            x[0, c], x[1, c], x[2, c] = x[0, c] + d0, x[1, c] + d1, x[2, c] + d2
        push_bodies(op, c, d0, d1, d2)


@loop
def matrix_sweep(op, bias, mu, step, part, blend, x, shift):
    """One Gauss-Seidel sweep over the blocks of a sparse matrix."""
    for c in range(op.count):
        u0, u1, u2 = matrix_velocity(op, c, bias, x)
        shift[c] += blend * (coulomb_shift(u1, u2, mu[c]) - shift[c])
        t = step[c]
        p0, p1, p2 = project(x[0, c] - t * (u0 + shift[c]), x[1, c] - t * u1, x[2, c] - t * u2, mu[c])
        if part == 1.0:
            x[0, c], x[1, c], x[2, c] = p0, p1, p2
        else:
            x[0, c] += part * (p0 - x[0, c])
            x[1, c] += part * (p1 - x[1, c])
            x[2, c] += part * (p2 - x[2, c])


def sweep(op, bias, mu, step, part, blend, x, shift):
    """One Gauss-Seidel sweep for any operator (plain Python form)."""
    if isinstance(op, ContactArrays):
        contact_sweep(op, bias, mu, step, part, blend, x, shift)
    else:
        matrix_sweep(op, bias, mu, step, part, blend, x, shift)


@overload(sweep)
def _sweep(op, bias, mu, step, part, blend, x, shift):
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is ContactArrays:
        return lambda op, bias, mu, step, part, blend, x, shift: contact_sweep(
            op, bias, mu, step, part, blend, x, shift
        )
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is MatrixArrays:
        return lambda op, bias, mu, step, part, blend, x, shift: matrix_sweep(op, bias, mu, step, part, blend, x, shift)
    return None


@blockwise(BLOCK)
def _jacobi_step(block, count, nx, bias, shift, mu, step, part, x):
    """All blocks at once, from the same product."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        t = step[c]
        x0, x1, x2 = x[0, c], x[1, c], x[2, c]
        p0, p1, p2 = project(
            x0 - t * (nx[0, c] + bias[0, c] + shift[c]),
            x1 - t * (nx[1, c] + bias[1, c]),
            x2 - t * (nx[2, c] + bias[2, c]),
            mu[c],
        )
        if part == 1.0:
            x[0, c], x[1, c], x[2, c] = p0, p1, p2
        else:
            x[0, c], x[1, c], x[2, c] = x0 + part * (p0 - x0), x1 + part * (p1 - x1), x2 + part * (p2 - x2)


@loop
def gauss_seidel(op, cone, gauge, stop, work, damping, step, part, sequential):
    """Projected Gauss-Seidel (sequential) or Jacobi with a step per contact, of which a part is taken.

    A check costs a fresh product, which also removes the rounding that piles up in the velocities of Gauss-Seidel."""
    count, bias, mu, coulomb = cone.count, cone.bias, cone.friction, gauge.coulomb
    x, nx, shift = work.x, work.nx, work.shift
    project_all(count, mu, x)
    product(op, x, nx)
    products = 1
    refresh_shift(count, nx, bias, mu, 1.0 if coulomb else 0.0, shift)
    best_value = first_value(gauge, stop, work)
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    k, checks = 0, 0
    while k < stop.limit:
        k += 1
        blend = min(1.0, damping / k) if coulomb else 0.0
        look = k % stop.check_every == 0 or k == stop.limit
        if sequential:
            sweep(op, bias, mu, step, part, blend, x, shift)
            if look:
                product(op, x, nx)
                products += 1
        else:
            _jacobi_step(count, nx, bias, shift, mu, step, part, x)
            product(op, x, nx)
            products += 1
            if coulomb:
                refresh_shift(count, nx, bias, mu, blend, shift)
        if look:
            status, best_value, checks = check(k, gauge, stop, work, x, nx, best_value, checks)
            if status != RUNNING:
                return k, products, status, best_value
    return k, products, MAX_ITERATIONS, best_value
