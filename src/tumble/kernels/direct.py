"""Calls of kernels from Python without a look at every array.

Numba finds the compiled form of a call by the types of its arguments, and looks at each array of each group: 0.13 us an
array, two thirds of what a step of a single box takes. A group that was an argument of the last call is of the same
types as it was then; so are numbers of the same class, and arrays that agree in what Numba types them by. Anything else
goes Numba's way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

__all__ = ["direct", "forget"]

CONTIGUOUS, TYPED = 0x1, 0x501
"""Bits of an array's flags: C order, and with it those that are part of its type (aligned, writeable)"""
_FORGETTERS: list[Callable[[], None]] = []
NUMBERS = frozenset((int, float, bool, np.int64, np.float64, np.bool_))


def direct(kernel: Callable) -> Callable:
    """The kernel, called by its entry point as long as the types of the arguments are those of the last call."""
    if not hasattr(kernel, "overloads"):  # the compiler is switched off
        return kernel
    kept: tuple = (), None  # one thing, since several threads may call

    def call(*arguments: Any) -> Any:
        nonlocal kept
        last, entry = kept
        if entry is not None and _alike(arguments, last):
            kept = arguments, entry
            return entry(*arguments)
        result = kernel(*arguments)
        found = kernel.overloads.get(tuple(map(numba.typeof, arguments)))
        kept = arguments, None if found is None else found.entry_point
        return result

    def drop() -> None:
        nonlocal kept
        kept = (), None

    _FORGETTERS.append(drop)
    return functools.update_wrapper(call, kernel)


def forget() -> None:
    """Let go of the arguments of the last calls: of buffers that nobody else has any more."""
    for drop in _FORGETTERS:
        drop()


def _alike(new: tuple, old: tuple) -> bool:
    """Whether Numba gives these the same types."""
    for a, b in zip(new, old):
        if a is b:
            continue
        kind = type(a)
        if kind is not type(b):
            return False
        if kind is np.ndarray:
            flags = a.flags.num
            if a.dtype is not b.dtype or a.ndim != b.ndim or not flags & CONTIGUOUS or (flags ^ b.flags.num) & TYPED:
                return False
        elif kind not in NUMBERS and not (isinstance(a, tuple) and len(a) == len(b) and _alike(a, b)):
            return False
    return len(new) == len(old)
