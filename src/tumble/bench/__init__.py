"""Benchmarks: each compares things in one run, since machines are noisy, and prints ratios beside absolute figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .base import Row, Setting
from .collide import collide
from .compiling import compiling
from .fill import fill
from .joints import joints
from .sizes import sizes
from .small import free_box
from .solver import solver
from .threads import threads

__all__ = ["BENCHES", "Setting"]

BENCHES: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "solver": solver,
    "compile": compiling,
    "collide": collide,
    "sizes": sizes,
    "joints": joints,
    "free-box": free_box,
    "threads": threads,
    "fill": fill,
}
