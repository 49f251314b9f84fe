"""Conjugate gradients on the face of the cones that the impulses lie in; conventions as in `first_order`.

What is held and what slides is left as it is: contacts inside their cones move freely, those on the surface along their
ray, open ones not at all. In that face the law is a linear system, which is solved from the present impulses; iterates
are projected back and measured. A stack at rest, whose slow sways first-order steps hardly see, is exact after as many
iterations as bodies can move; where contacts change from one case to another nothing is gained.
"""

from __future__ import annotations

import math

from ...kernels.cones import bound_of, coulomb_shift, is_interval, project
from ...kernels.jit import block_length, blockwise, formula, item_index, loop
from ..base import BLOCK
from .first_order import CONVERGED, MAX_ITERATIONS, RUNNING, STALLED, check, first_value, project_all
from .operators import product

HELD, RAY, FREE, NORMAL = 0.0, 1.0, 2.0, 3.0
"""Cases of a contact: nothing moves, its ray, all rows, the first row (bounded rows within their bounds)"""
EDGE = 1.0 - 1e-9
"""Tangential impulses above this part of mu times the normal one are on the surface."""
SPENT = 1e-28
"""Where this part of the squared residual is left, there is only rounding."""


@formula
def _along(kind, x0, x1, x2, y0, y1, y2):
    """The part of y in the face of impulses x."""
    if kind == FREE:
        return y0, y1, y2
    if kind == NORMAL:
        return y0, 0.0, 0.0
    if kind == HELD:
        return 0.0, 0.0, 0.0
    part = (x0 * y0 + x1 * y1 + x2 * y2) / (x0 * x0 + x1 * x1 + x2 * x2)
    return part * x0, part * x1, part * x2


@blockwise(BLOCK, "cone.count")
def _open_face(block, cone, coulomb, x, nx, kind, d, left, partial):
    """Cases of all contacts, and what is left of their equations: d = left. Per block: left.left."""
    squares, bias, mu = 0.0, cone.bias, cone.friction
    for item in range(block_length(block, cone.count)):
        c = item_index(block, item)
        x0, x1, x2, m = x[0, c], x[1, c], x[2, c], mu[c]
        u0, u1, u2 = nx[0, c] + bias[0, c], nx[1, c] + bias[1, c], nx[2, c] + bias[2, c]
        case = HELD
        if is_interval(m):
            case = NORMAL if abs(x0) < bound_of(m) else HELD
        elif x0 > 0.0:
            case = FREE if math.sqrt(x1 * x1 + x2 * x2) < EDGE * m * x0 else RAY
        if case == RAY and coulomb:
            u0 += coulomb_shift(u1, u2, m)
        kind[c] = case
        r0, r1, r2 = _along(case, x0, x1, x2, -u0, -u1, -u2)
        left[0, c], left[1, c], left[2, c] = r0, r1, r2
        d[0, c], d[1, c], d[2, c] = r0, r1, r2
        squares += r0 * r0 + r1 * r1 + r2 * r2
    partial[block, 0] = squares


@blockwise(BLOCK)
def _into_face(block, count, x, kind, d, nd, partial):
    """N d in the face. Per block: d.Nd."""
    bent = 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        n0, n1, n2 = _along(kind[c], x[0, c], x[1, c], x[2, c], nd[0, c], nd[1, c], nd[2, c])
        nd[0, c], nd[1, c], nd[2, c] = n0, n1, n2
        bent += d[0, c] * n0 + d[1, c] * n1 + d[2, c] * n2
    partial[block, 0] = bent


@blockwise(BLOCK)
def _step(block, count, a, d, nd, moved, left, partial):
    """moved += a d, left -= a N d. Per block: left.left."""
    squares = 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        for k in range(3):
            moved[k, c] += a * d[k, c]
            r = left[k, c] - a * nd[k, c]
            left[k, c] = r
            squares += r * r
    partial[block, 0] = squares


@blockwise(BLOCK)
def _turn(block, count, b, left, d):
    """d <- left + b d"""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        for k in range(3):
            d[k, c] = left[k, c] + b * d[k, c]


@blockwise(BLOCK)
def _back(block, count, x, moved, mu, trial):
    """trial = Pi(x + moved)"""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        trial[0, c], trial[1, c], trial[2, c] = project(
            x[0, c] + moved[0, c], x[1, c] + moved[1, c], x[2, c] + moved[2, c], mu[c]
        )


@loop
def _sum(count, partial):
    total = 0.0
    for block in range((count + BLOCK - 1) // BLOCK):
        total += partial[block, 0]
    return total


@loop
def face_gradients(op, cone, gauge, stop, work, face):
    """Conjugate gradients in the face of the guess. face: scratch.

    Returns (iterations, products, status, best stopping value)."""
    count, x, nx, partial = cone.count, work.x, work.nx, work.partial
    kind, d, nd, moved, left, trial = face.kind, face.d, face.nd, face.moved, face.left, face.trial
    project_all(count, cone.friction, x)
    product(op, x, nx)
    products = 1
    best_value = first_value(gauge, stop, work)
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    _open_face(cone, gauge.coulomb, x, nx, kind, d, left, partial)
    squares = _sum(count, partial)
    first, checks, k = squares, 0, 0
    moved[:, :count] = 0.0
    while k < stop.limit:
        k += 1
        product(op, d, nd)
        _into_face(count, x, kind, d, nd, partial)
        products += 1
        bent = _sum(count, partial)
        if bent <= 0.0:
            return k, products, STALLED, best_value
        _step(count, squares / bent, d, nd, moved, left, partial)
        before, squares = squares, _sum(count, partial)
        if k % stop.check_every == 0 or k == stop.limit or squares <= SPENT * first:
            _back(count, x, moved, cone.friction, trial)
            product(op, trial, nx)
            products += 1
            status, best_value, checks = check(k, gauge, stop, work, trial, nx, best_value, checks)
            if status != RUNNING:
                return k, products, status, best_value
            if squares <= SPENT * first:
                return k, products, STALLED, best_value
        _turn(count, squares / before, left, d)
    return k, products, MAX_ITERATIONS, best_value
