"""Accelerated projected gradient descent over lanes: `apgd` for contacts without joints, in two passes an iteration.

In single precision the loop only proposes: whatever ends it is one projected gradient step in double precision, and the
stopping value is that of the impulses after it.
"""

from __future__ import annotations

from ...kernels.cones import coulomb_shift, project
from ...kernels.jit import block_length, blockwise, item_index, loop
from ...kernels.nesterov import Scalar, next_scalars
from ..base import BLOCK
from .apgd import PATIENCE, change_limit
from .first_order import (
    CONVERGED,
    MAX_ITERATIONS,
    RUNNING,
    copy_vector,
    curvature_estimate,
    first_value,
    judge,
    project_all,
)
from .lanes import body_lanes, contact_lanes, lane_value, pack_bodies, pack_contacts, pack_ends, sum_lanes, unpack_lanes
from .measure import CERTIFICATE, RESIDUAL_EQ25, stop_value
from .operators import product

SPENT = 4
"""Status: single precision gains nothing any more."""
GAINING, NOISE = 200, 0.5
"""Where single precision has not gained three tenths of the stopping value in so many iterations, a step in double
precision looks why: it removes rounding at once, to less than this part of the value, and slow progress it does not."""
TRIES = 3
"""Proposals of single precision that double precision may turn down."""


@blockwise(BLOCK, "cone.count")
def gradient_step(block, cone, nx, t, coulomb, x):
    """x <- Pi(x - t (N x + bias + correction)), the correction that of the present velocity."""
    bias, mu = cone.bias, cone.friction
    for item in range(block_length(block, cone.count)):
        c = item_index(block, item)
        g0, g1, g2 = nx[0, c] + bias[0, c], nx[1, c] + bias[1, c], nx[2, c] + bias[2, c]
        if coulomb:
            g0 += coulomb_shift(g1, g2, mu[c])
        x[0, c], x[1, c], x[2, c] = project(x[0, c] - t * g0, x[1, c] - t * g1, x[2, c] - t * g2, mu[c])


@loop
def _verified(op, cone, gauge, stop, work, curvature, best_value):
    """The stopping value of the proposal x after a step in double precision, which is kept where it is the best."""
    product(op, work.x, work.nx)
    gradient_step(cone, work.nx, 1.0 / curvature, gauge.coulomb, work.x)
    product(op, work.x, work.nx)
    value = stop_value(stop, gauge, work.x, work.nx, work.partial, work.values)
    if value < best_value:
        copy_vector(cone.count, work.x, work.best)
    return value


@loop
def _iterations(lanes, partial, totals, bodies, scalars, count):
    for _ in range(count):
        contact_lanes(lanes, scalars, partial, totals)
        body_lanes(bodies)
        dd, dh, gd = sum_lanes(lanes.count, lanes.part, totals)
        next_scalars(dd, dh, gd, scalars)


@loop
def _begin(op, cone, gauge, stop, work, scalars, lanes, bodies):
    """The guess in the lanes, unless it is good enough: (products, its stopping value)."""
    project_all(cone.count, cone.friction, work.x)
    products = 1
    if scalars[Scalar.COUNT] == 0.0:
        scalars[Scalar.CURVATURE] = curvature_estimate(op, cone.count, work.best, work.nx)
        products = 2
    product(op, work.x, work.nx)
    best_value = first_value(gauge, stop, work)
    if not best_value <= stop.tolerance:
        pack_contacts(op.frame, op.compliance, cone, gauge.friction, gauge.scale, gauge.weight, lanes, work.x)
        pack_ends(cone.count, lanes.part, op.slot_a, op.slot_b, op.arms, bodies.start, bodies.place, bodies.arm)
        pack_bodies(bodies.part, op.inverse_mass, op.inverse_inertia, bodies.inverse)
        body_lanes(bodies)
    return products, best_value


@loop
def apgd_lanes(op, cone, gauge, stop, work, scalars, lanes, sums, bodies):
    """As `apgd`, over lanes in double precision."""
    products, best_value = _begin(op, cone, gauge, stop, work, scalars, lanes, bodies)
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    cap, mark, since, checks, k = scalars[Scalar.LIMIT], best_value, 0, 0, 0
    while k < stop.limit:
        ahead = min(stop.check_every, stop.limit - k)
        _iterations(lanes, sums.step, sums.totals, bodies, scalars, ahead)
        k += ahead
        value = (
            stop.tolerance
            if stop.kind == CERTIFICATE
            else lane_value(stop.kind, lanes, gauge.coulomb, gauge.speed, sums.error)
        )
        if stop.kind == CERTIFICATE or (stop.kind == RESIDUAL_EQ25 and value <= 1.5 * stop.tolerance):
            unpack_lanes(lanes.count, lanes.part, lanes.block, work.x)
            product(op, work.x, work.nx)
            products += 1
            value = stop_value(stop, gauge, work.x, work.nx, work.partial, work.values)
        status, best_value, checks = judge(k, value, stop.tolerance, best_value, checks, work.history)
        if checks == 0:
            unpack_lanes(lanes.count, lanes.part, lanes.block, work.best)
        if status != RUNNING:
            return k, k + products, status, best_value
        if best_value < 0.7 * mark:
            mark, since = best_value, k
        elif gauge.coulomb and k - since > PATIENCE:
            change_limit(scalars, cap)
            mark, since = best_value, k
    return k, k + products, MAX_ITERATIONS, best_value


@loop
def apgd_single_lanes(op, cone, gauge, stop, work, scalars, lanes, sums, bodies):
    """As `apgd`, over lanes in single precision. The status is `SPENT` where double has to go on, from the best."""
    products, best_value = _begin(op, cone, gauge, stop, work, scalars, lanes, bodies)
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    low, mark, since, aim, tries, k = best_value, best_value, 0, stop.tolerance, 0, 0
    cap, idle = scalars[Scalar.LIMIT], 0
    while k < stop.limit:
        ahead = min(stop.check_every, stop.limit - k)
        _iterations(lanes, sums.step, sums.totals, bodies, scalars, ahead)
        k += ahead
        value = lane_value(stop.kind, lanes, gauge.coulomb, gauge.speed, sums.error)
        if k < work.history.size:
            work.history[k] = value
        if not value < 1e300:
            break
        if value < low or k == ahead:
            low = value
            unpack_lanes(lanes.count, lanes.part, lanes.block, work.x)
        if low < 0.7 * mark:
            mark, since, idle = low, k, 0
        if low <= aim:
            found = _verified(op, cone, gauge, stop, work, scalars[Scalar.CURVATURE], best_value)
            best_value, products = min(best_value, found), products + 2
            if best_value <= stop.tolerance:
                return k, k + products, CONVERGED, best_value
            tries += 1
            if tries == TRIES:
                return k, k + products, SPENT, best_value
            aim = 0.5 * low
        elif k - since > GAINING:
            found = _verified(op, cone, gauge, stop, work, scalars[Scalar.CURVATURE], best_value)
            best_value, mark, since, products = min(best_value, found), low, k, products + 2
            if found < NOISE * low:
                return k, k + products, CONVERGED if found <= stop.tolerance else SPENT, best_value
            idle += 1
            if gauge.coulomb and idle % (PATIENCE // GAINING) == 0:
                change_limit(scalars, cap)
    found = _verified(op, cone, gauge, stop, work, scalars[Scalar.CURVATURE], best_value)
    best_value = min(best_value, found)
    status = CONVERGED if best_value <= stop.tolerance else MAX_ITERATIONS if k >= stop.limit else SPENT
    return k, k + products + 2, status, best_value
