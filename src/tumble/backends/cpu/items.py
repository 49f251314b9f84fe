"""Formulas run on every contact or body, and sums and maxima over contacts.

What is done to one item is said once, in `kernels/`; the loop around it is this device's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from ...kernels.jit import blockwise, loop, over_items
from ..base import BLOCK, BODY_BLOCK


@functools.cache
def over_contacts(item: Callable) -> Callable:
    """The pass item(c, ...) on all contacts c: called with their number and the other arguments."""
    return over_items(item, BLOCK, "contacts")


@functools.cache
def over_bodies(item: Callable) -> Callable:
    """The pass item(i, ...) on all bodies i: called with their number and the other arguments."""
    return over_items(item, BODY_BLOCK, "bodies")


@functools.cache
def over_rows(item: Callable) -> Callable:
    """The pass item(r, ...) on all rows r of joints: called with their number and the other arguments."""
    return over_items(item, BODY_BLOCK, "rows")


@functools.cache
def over_mechanisms(item: Callable) -> Callable:
    """The pass item(c, ...) on all mechanisms c: called with their number and the other arguments."""
    return over_items(item, 1, "mechanisms")


@loop
def count_true(count, flags):
    """How many of the first flags are set."""
    total = 0
    for c in range(count):
        if flags[c]:
            total += 1
    return total


@loop
def list_true(count, flags, out):
    """Places of the flags that are set among the first; returns how many there are."""
    total = 0
    for c in range(count):
        if flags[c]:
            out[total] = c
            total += 1
    return total


@loop
def total(count, x):
    """Sum of the first numbers."""
    out = 0.0
    for c in range(count):
        out += x[c]
    return out


@loop
def largest(count, x):
    """The largest of the first numbers, at least 0."""
    out = 0.0
    for c in range(count):
        out = max(out, x[c])
    return out


@loop
def largest_vector(count, x):
    """Length of the largest of the first vectors, rows 0 to 2 of x."""
    square = 0.0
    for c in range(count):
        square = max(square, x[0, c] * x[0, c] + x[1, c] * x[1, c] + x[2, c] * x[2, c])
    return math.sqrt(square)


@loop
def largest_entry(x):
    """The largest absolute number in a table (rows, k)."""
    out = 0.0
    for row in range(x.shape[0]):
        for k in range(x.shape[1]):
            out = max(out, abs(x[row, k]))
    return out


PARTS = 64
"""Of a table whose length has nothing to do with the scratch at hand"""


@blockwise(1, f"{PARTS} if x.shape[1] > {BLOCK} else 1")
def most_in_parts(part, x, partial):
    """The largest absolute number in each of `PARTS` ranges of columns; in the first alone where they are few."""
    columns = x.shape[1]
    few = columns <= BLOCK
    out = 0.0
    for k in range(0 if few else part * columns // PARTS, columns if few else (part + 1) * columns // PARTS):
        for row in range(x.shape[0]):
            out = max(out, abs(x[row, k]))
    partial[part] = out
    if few:
        partial[1:PARTS] = 0.0


@loop
def partial_most(count, size, partial):
    """The largest of the numbers that blocks of `size` have left, at least 0."""
    out = 0.0
    for block in range((count + size - 1) // size):
        out = max(out, partial[block])
    return out
