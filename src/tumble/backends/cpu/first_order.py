"""What the iterations of all first-order methods share: projection, correction, best iterate, status codes.

Contacts with six rows (mu of two dimensions, known when compiled) take the passes of `rolling`.

All work on the scaled problem: impulse = scale * x, bias and operator scaled alike, mu' = mu s_n / s_t. Vectors are
(3, cap) or (6, cap), `shift` (cap,) is the Coulomb correction (zero for the relaxed law), `best` receives the best
iterate.

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
from .rolling import project_all_rolling, refresh_shift_rolling

RUNNING, CONVERGED, MAX_ITERATIONS, STALLED, DIVERGED = -1, 0, 1, 2, 3


@blockwise(BLOCK)
def copy_vector(block, count, src, dst):
    """dst = src"""
    for k in range(src.shape[0]):
        for item in range(block_length(block, count)):
            c = item_index(block, item)
            dst[k, c] = src[k, c]


@loop
def judge(k, value, tolerance, best_value, checks, history):
    """After a check: note the stopping value, compare it with the best.

    Returns (status, best value, checks since it was found, 0 if it is this one); RUNNING while there is nothing to end
    for.
    """
    if k < history.size:
        history[k] = value
    checks += 1
    if value < best_value:
        best_value, checks = value, 0
    status = RUNNING
    if best_value <= tolerance:
        status = CONVERGED
    elif not math.isfinite(value):
        status = DIVERGED
    elif checks > STALL_CHECKS:
        status = STALLED
    return status, best_value, checks


@blockwise(BLOCK)
def _project_all_plain(block, count, mu, x):
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        x[0, c], x[1, c], x[2, c] = project(x[0, c], x[1, c], x[2, c], mu[c])


@loop
def project_all(count, mu, x):
    """x = Pi_K(x)"""
    if mu.ndim == 2:
        project_all_rolling(count, mu, x)
    else:
        _project_all_plain(count, mu, x)


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
def first_value(gauge, stop, work):
    """The stopping value of the first iterate, which is the best so far."""
    copy_vector(gauge.count, work.x, work.best)
    value = stop_value(stop, gauge, work.x, work.nx, work.partial, work.values)
    work.history[0] = value
    return value


@loop
def check(k, gauge, stop, work, x, nx, best_value, checks):
    """Measure iterate x and keep it where it is the best so far; see `judge`."""
    value = stop_value(stop, gauge, x, nx, work.partial, work.values)
    status, best_value, checks = judge(k, value, stop.tolerance, best_value, checks, work.history)
    if checks == 0:
        copy_vector(gauge.count, x, work.best)
    return status, best_value, checks
