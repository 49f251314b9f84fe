"""How good impulses are; see `backends.cpu.measure`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base import MEASURES
from ..cpu.measure import _measure_blocks_plain, finish
from ..cpu.rolling import measure_blocks_rolling
from . import provider
from .sums import chunk_pass

xp = provider.xp
_LARGEST = (10, 11, 12, 13, 15, 16)
_sums = {3: chunk_pass(_measure_blocks_plain, 17, _LARGEST), 6: chunk_pass(measure_blocks_rolling, 17, _LARGEST)}


def measure(gauge: Any, x: Any, nx: Any, partial: Any, out: Any) -> None:
    """Fill `out` (see `Measure`)."""
    total, found = _sums[len(x)](gauge, x, nx, partial), np.zeros(MEASURES)
    finish(total, found)
    out[:] = provider.send(found)


def coulomb_shift_bound(count: int, nx: Any, bias: Any, mu: Any, tangential: Any, root_gap: float) -> float:
    """Largest delta_i + mu_i sqrt(lambda_max(N_TT)) sqrt(gap): how far the certificate's problem lies [m/s]."""
    if not (count and math.isfinite(root_gap)):
        return math.inf if count else 0.0
    m = mu[:count]
    part = xp.maximum(0.0, -(nx[0, :count] + bias[0, :count])) + m * tangential[:count] * root_gap
    found = xp.where(m < 0.0, 0.0, part)
    return max(0.0, float(found.max()))
