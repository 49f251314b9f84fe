"""Formulas run on every contact, body, joint row or mechanism, and sums and maxima; see `backends.cpu.items`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from . import provider
from .launch import LONG, pass_over

xp = provider.xp


@functools.cache
def over_contacts(item: Callable) -> Callable:
    """The pass item(c, ...) on all contacts c: called with their number and the other arguments."""
    return pass_over(item)


over_bodies = over_rows = over_contacts


@functools.cache
def over_mechanisms(item: Callable) -> Callable:
    """The pass item(c, ...) on all mechanisms c: called with their number and the other arguments."""
    return pass_over(item, LONG)


def count_true(count: int, flags: Any) -> int:
    """How many of the first flags are set."""
    return int(xp.count_nonzero(flags[:count])) if count else 0


def list_true(count: int, flags: Any, out: Any) -> int:
    """See `backends.cpu.items.list_true`."""
    found = xp.flatnonzero(flags[:count])
    out[: found.size] = found
    return int(found.size)


def total(count: int, x: Any) -> float:
    """Sum of the first numbers."""
    return float(x[:count].sum()) if count else 0.0


def largest(count: int, x: Any) -> float:
    """The largest of the first numbers, at least 0."""
    return max(0.0, float(x[:count].max())) if count else 0.0


def largest_vector(count: int, x: Any) -> float:
    """Length of the largest of the first vectors, rows 0 to 2 of x."""
    if not count:
        return 0.0
    n, u, w = x[0, :count], x[1, :count], x[2, :count]
    return math.sqrt(float((n * n + u * u + w * w).max()))


def largest_entry(x: Any) -> float:
    """The largest absolute number in a table (rows, k)."""
    return float(abs(x).max()) if x.size else 0.0
