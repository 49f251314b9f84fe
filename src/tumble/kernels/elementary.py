"""Exponential function and logarithm from sums and products alone.

The library's differ in the last bit from processor to processor, and between freshly compiled and cached kernels.
"""

from __future__ import annotations

import math

from .jit import formula

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""Their sum is ln 2; the first has so few digits that its multiples are exact."""
LOWEST = -745.0
"""Below, the exponential is zero."""


@formula
def exponential(x):
    """e^x for x <= 700, to two roundings: 2^k e^r with |r| <= ln 2 / 2, and the series of e^r."""
    if x < LOWEST:
        return 0.0
    k = math.floor(x / (LN2_HIGH + LN2_LOW) + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    total = 1.0
    for n in range(14, 0, -1):
        total = 1.0 + total * r / n
    return math.ldexp(total, int(k))


@formula
def logarithm(x):
    """ln x for x > 0, to a few roundings: of 2^k m with m near 1, 2 artanh((m - 1) / (m + 1)) by its series."""
    m, k = math.frexp(x)
    if m < 0.7071067811865476:
        m, k = 2.0 * m, k - 1
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    total = 0.0
    for n in range(11, -1, -1):
        total = 1.0 / (2.0 * n + 1.0) + q * total
    return k * LN2_HIGH + (2.0 * s * total + k * LN2_LOW)
