"""How good impulses are; see `backends.cpu.measure`."""

from __future__ import annotations

import math
from typing import Any

from ...kernels.cones import is_interval
from ..base import Measure
from ..cpu.measure import finish as conclude
from ..cpu.measure import measure_in_order
from ..cpu.rolling import measure_blocks_rolling
from . import provider
from .launch import pass_over
from .sums import CHUNK, Folded, chunk_pass

xp = provider.xp
_LARGEST = (10, 11, 12, 13, 15, 16)
_sums = {
    3: chunk_pass(measure_in_order, 17, _LARGEST, stays=True),
    6: chunk_pass(measure_blocks_rolling, 17, _LARGEST, stays=True),
}
_NONE = provider.zeros(17)
GAP = int(Measure.GAP)


def finish(i, total, out):
    """`Measure` from the sums and maxima of all contacts."""
    conclude(total, out)


def shifts(chunk, count, nx, bias, mu, tangential, values, partial):
    """`coulomb_shift_bound` over a chunk of contacts, with the gap among the values."""
    worst, root_gap = 0.0, math.sqrt(values[GAP])
    for c in range(chunk * CHUNK, min(count, (chunk + 1) * CHUNK)):
        if not is_interval(mu[c]):
            worst = max(worst, max(0.0, -(nx[0, c] + bias[0, c])) + mu[c] * tangential[c] * root_gap)
    partial[chunk, 0] = worst


_finish, _shifts, _shift = pass_over(finish), pass_over(shifts), Folded(1, largest=1)


def measure(gauge: Any, x: Any, nx: Any, partial: Any, out: Any) -> None:
    """Fill `out` (see `Measure`)."""
    _finish(1, _sums[len(x)](gauge, x, nx, partial) if gauge.count else _NONE, out)


def largest_shift(count: int, nx: Any, bias: Any, mu: Any, tangential: Any, values: Any) -> Any:
    """`coulomb_shift_bound` on the device (1,), from `Measure` values there."""
    _shifts(-(-count // CHUNK), count, nx, bias, mu, tangential, values, _shift.partial(count))
    return _shift.folded(count)[0]


def coulomb_shift_bound(count: int, nx: Any, bias: Any, mu: Any, tangential: Any, root_gap: float) -> float:
    """Largest delta_i + mu_i sqrt(lambda_max(N_TT)) sqrt(gap): how far the certificate's problem lies [m/s]."""
    if not (count and math.isfinite(root_gap)):
        return math.inf if count else 0.0
    m = mu[:count]
    part = xp.maximum(0.0, -(nx[0, :count] + bias[0, :count])) + m * tangential[:count] * root_gap
    found = xp.where(m < 0.0, 0.0, part)
    return max(0.0, float(found.max()))
