"""Nonsmooth Gauss-Seidel: sweeps that solve the problem of each contact exactly (`kernels.exact_contact`).

Conventions as in `first_order`."""

from __future__ import annotations

from numba import types
from numba.extending import overload

from ...kernels.exact_contact import new_impulse
from ...kernels.jit import loop
from ...kernels.one_contact import contact_velocity, matrix_velocity, push_bodies
from ..base import ContactArrays, MatrixArrays
from .first_order import CONVERGED, MAX_ITERATIONS, RUNNING, check, first_value, project_all
from .operators import product


@loop
def contact_exact_sweep(op, a, bias, mu, coulomb, omega, x):
    """One sweep over the contacts, in order; body velocities are kept up to date."""
    soft = op.compliance.shape[1] > 0
    for c in range(op.count):
        u0, u1, u2 = contact_velocity(op, c, bias, soft, x)
        p0, p1, p2 = new_impulse(a, c, x, u0, u1, u2, mu[c], coulomb, omega)
        d0, d1, d2 = p0 - x[0, c], p1 - x[1, c], p2 - x[2, c]
        x[0, c], x[1, c], x[2, c] = p0, p1, p2
        push_bodies(op, c, d0, d1, d2)


@loop
def matrix_exact_sweep(op, a, bias, mu, coulomb, omega, x):
    """One sweep over the blocks of a sparse matrix."""
    for c in range(op.count):
        u0, u1, u2 = matrix_velocity(op, c, bias, x)
        x[0, c], x[1, c], x[2, c] = new_impulse(a, c, x, u0, u1, u2, mu[c], coulomb, omega)


def exact_sweep(op, a, bias, mu, coulomb, omega, x):
    """One sweep for any operator (plain Python form)."""
    if isinstance(op, ContactArrays):
        contact_exact_sweep(op, a, bias, mu, coulomb, omega, x)
    else:
        matrix_exact_sweep(op, a, bias, mu, coulomb, omega, x)


@overload(exact_sweep)
def _exact_sweep(op, a, bias, mu, coulomb, omega, x):
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is ContactArrays:
        return lambda op, a, bias, mu, coulomb, omega, x: contact_exact_sweep(op, a, bias, mu, coulomb, omega, x)
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is MatrixArrays:
        return lambda op, a, bias, mu, coulomb, omega, x: matrix_exact_sweep(op, a, bias, mu, coulomb, omega, x)
    return None


@loop
def nsgs(op, cone, gauge, stop, work, diagonal, omega, block):
    """Nonsmooth Gauss-Seidel with exact local solves. A check costs a fresh product, which also removes the rounding
    that piles up in the velocities. block (6, cap): scratch. Returns (sweeps, products, status, best value)."""
    x, nx, scale = work.x, work.nx, gauge.scale
    for c in range(cone.count):
        sn, st = scale[0, c], scale[1, c]
        block[0, c] = sn * sn * diagonal[0, c]
        block[1, c], block[2, c] = st * st * diagonal[1, c], st * st * diagonal[2, c]
        block[3, c], block[4, c] = sn * st * diagonal[3, c], sn * st * diagonal[4, c]
        block[5, c] = st * st * diagonal[5, c]
    project_all(cone.count, cone.friction, x)
    product(op, x, nx)
    products = 1
    best_value = first_value(gauge, stop, work)
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    k, checks = 0, 0
    while k < stop.limit:
        k += 1
        exact_sweep(op, block, cone.bias, cone.friction, gauge.coulomb, omega, x)
        if k % stop.check_every == 0 or k == stop.limit:
            product(op, x, nx)
            products += 1
            status, best_value, checks = check(k, gauge, stop, work, x, nx, best_value, checks)
            if status != RUNNING:
                return k, products, status, best_value
    return k, products, MAX_ITERATIONS, best_value
