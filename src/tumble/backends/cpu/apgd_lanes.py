"""Accelerated projected gradient descent over lanes: `apgd` for contacts without joints, in two passes an iteration."""

from __future__ import annotations

from ...kernels.jit import loop
from ...kernels.nesterov import Scalar, next_scalars
from .apgd import PATIENCE
from .first_order import CONVERGED, MAX_ITERATIONS, RUNNING, curvature_estimate, first_value, judge, project_all
from .lanes import body_lanes, contact_lanes, lane_value, pack_bodies, pack_contacts, pack_ends, sum_lanes, unpack_lanes
from .measure import CERTIFICATE, RESIDUAL_EQ25, stop_value
from .operators import product


@loop
def apgd_lanes(op, cone, gauge, stop, work, scalars, lanes):
    """As `apgd`."""
    project_all(cone.count, cone.friction, work.x)
    scalars[Scalar.CURVATURE] = curvature_estimate(op, cone.count, work.best, work.nx)
    product(op, work.x, work.nx)
    products = 2
    best_value = first_value(gauge, stop, work)
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    pack_contacts(op, cone, gauge, lanes, work.x)
    pack_ends(op, cone, lanes)
    pack_bodies(op, lanes)
    body_lanes(op.entry_start, lanes)
    cap, mark, since, checks = scalars[Scalar.LIMIT], best_value, 0, 0
    k = 0
    while k < stop.limit:
        k += 1
        contact_lanes(lanes, scalars)
        body_lanes(op.entry_start, lanes)
        products += 1
        dd, dh, gd = sum_lanes(lanes)
        next_scalars(dd, dh, gd, scalars)
        if k % stop.check_every == 0 or k == stop.limit:
            value = stop.tolerance if stop.kind == CERTIFICATE else lane_value(stop.kind, lanes, gauge)
            if stop.kind == CERTIFICATE or (stop.kind == RESIDUAL_EQ25 and value <= 1.5 * stop.tolerance):
                unpack_lanes(lanes, work.x)
                product(op, work.x, work.nx)
                products += 1
                value = stop_value(stop.kind, gauge, work.x, work.nx, work.partial, work.values)
            status, best_value, checks = judge(k, value, stop.tolerance, best_value, checks, work.history)
            if checks == 0:
                unpack_lanes(lanes, work.best)
            if status != RUNNING:
                return k, products, status, best_value
            # Piles need the limit, ill-conditioned stacks do not: change over when progress ends.
            if best_value < 0.7 * mark:
                mark, since = best_value, k
            elif gauge.coulomb and k - since > PATIENCE:
                scalars[Scalar.LIMIT] = 1.0 if scalars[Scalar.LIMIT] == cap else cap
                mark, since = best_value, k
    return k, products, MAX_ITERATIONS, best_value
