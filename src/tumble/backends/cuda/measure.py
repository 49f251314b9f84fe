"""How good impulses are; see `backends.cpu.measure`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base import MEASURES
from ..cpu.measure import finish, measure_in_order
from . import provider
from .sums import chunk_pass

xp = provider.xp
_sums = chunk_pass(measure_in_order, 17, (10, 11, 12, 13, 15, 16))


def measure(gauge: Any, x: Any, nx: Any, partial: Any, out: Any) -> None:
    """Fill `out` (see `Measure`)."""
    total, found = _sums(gauge, x, nx, partial), np.zeros(MEASURES)
    finish(total, found)
    out[:] = provider.send(found)


def coulomb_shift_bound(count: int, nx: Any, bias: Any, mu: Any, tangential: Any, root_gap: float) -> float:
    """Largest delta_i + mu_i sqrt(lambda_max(N_TT)) sqrt(gap): how far the certificate's problem lies [m/s]."""
    m = mu[:count]
    part = xp.maximum(0.0, -(nx[0, :count] + bias[0, :count])) + m * tangential[:count] * root_gap
    found = xp.where(m < 0.0, 0.0, part)
    return max(0.0, float(found.max())) if math.isfinite(root_gap) else math.inf
