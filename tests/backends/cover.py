"""Which test covers which pass, and a backend that runs every pass twice: with one thread and with two."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from tumble.backends.base import ARRAYS, PASSES, SIZES
from tumble.errors import OptionsError
from tumble.kernels.jit import most_threads, set_threads

COVERED: dict[str, list[str]] = {}
"""Pass -> names of the tests that compare it with its twin"""
RACED = {"entry_arm", "entry_force", "entry_torque"}
"""Entries: all sides of bodies that cannot move write to one, in any order, and nobody reads it."""
MAKERS = {"over_contacts", "over_bodies", "over_rows", "over_mechanisms"}
"""What gives a pass and is none"""
OWN = {"scratch", "rows", "axes"}
"""Scratch with a row a thread, or that any thread may write to"""


def covers(*passes: str) -> Callable[[Callable], Callable]:
    """Note that a test compares these passes with a twin."""
    unknown = set(passes) - {name for group in PASSES.values() for name in group}
    assert not unknown, f"no such pass: {unknown}"

    def note(test: Callable) -> Callable:
        for name in passes:
            COVERED.setdefault(name, []).append(f"{test.__module__}.{test.__name__}")
        return test

    return note


class TwiceRun(ModuleType):
    """A backend whose passes run on a copy of their arguments with one thread, then on the arguments with two, and must
    leave the same bits in both."""

    def __init__(self, backend: ModuleType) -> None:
        super().__init__(backend.__name__)
        self.backend, self.name = backend, backend.name

    def __getattr__(self, name: str) -> object:
        try:
            found = getattr(self.backend, name)
        except OptionsError as refused:  # by name: a pass that this device does not offer
            pytest.skip(str(refused))
        return found if name in SIZES or name in MAKERS or name in ARRAYS else self._twice(name, found)

    def made(self, maker: str, *arguments: object) -> Callable:
        """A pass that the backend makes of a formula."""
        run = getattr(self.backend, maker)(*arguments)
        return self._twice(run.__name__, run)

    def _twice(self, name: str, run: Callable) -> Callable:
        names = list(inspect.signature(run).parameters)

        def twice(*arguments: object) -> object:
            seen: dict[int, object] = {}
            copies = [copied(a, seen) for a in arguments]
            before = set_threads(1)
            try:
                one = run(*copies)
                set_threads(min(2, most_threads()))
                two = run(*arguments)
            finally:
                set_threads(before)
            same_bits(f"{name}: what it returns", one, two)
            for key, a, b in zip(names, copies, arguments, strict=True):
                same_bits(f"{name}: {key}", a, b, key)
            return two

        return twice


def copied(value: object, seen: dict[int, object]) -> object:
    """An equal argument of the same type; arrays that are one stay one."""
    if id(value) in seen:
        return seen[id(value)]
    out = value
    if isinstance(value, np.ndarray):
        out = value.copy()
        out.setflags(write=value.flags.writeable)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        out = type(value)(*(copied(v, seen) for v in value))
    elif isinstance(value, tuple):
        out = tuple(copied(v, seen) for v in value)
    seen[id(value)] = out
    return out


def same_bits(where: str, a: object, b: object, name: str = "") -> None:
    """Arrays, numbers and tuples of them that are the same to the last bit."""
    if name in OWN:
        return
    if isinstance(a, tuple):
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            key = a._fields[k] if hasattr(a, "_fields") else str(k)
            same_bits(f"{where}.{key}", x, y, key)
        return
    x, y = np.asarray(a), np.asarray(b)
    differ = x != y
    if x.dtype.kind == "f":
        bits = f"i{x.itemsize}"
        differ = np.ascontiguousarray(x).view(bits) != np.ascontiguousarray(y).view(bits)
    if name in RACED:
        assert np.count_nonzero(differ.any(axis=1)) <= 1, f"{where} depends on the number of threads"
    else:
        assert not np.any(differ), f"{where} depends on the number of threads"
