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
        if entry is not None and len(arguments) == len(last):
            for a, b in zip(arguments, last):
                if a is not b and not _alike(a, b):
                    break
            else:
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


def _alike(new: Any, old: Any) -> bool:
    """Whether Numba gives two that are not the same thing the same type."""
    kind = type(new)
    if kind is not type(old):
        return False
    if kind is np.ndarray:
        flags = new.flags.num
        same = flags & CONTIGUOUS and not (flags ^ old.flags.num) & TYPED
        return bool(same and new.dtype is old.dtype and new.ndim == old.ndim)
    if kind in NUMBERS:
        return True
    if not isinstance(new, tuple) or len(new) != len(old):
        return False
    for a, b in zip(new, old):
        if a is not b and not _alike(a, b):
            return False
    return True
