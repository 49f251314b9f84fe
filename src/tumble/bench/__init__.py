"""Benchmarks: each compares things in one run, since machines are noisy, and prints ratios beside absolute figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .base import Row, Setting
from .collide import collide
from .compiling import compiling
from .fill import fill
from .joints import joints
from .looking import looking
from .peers import peers
from .robots import robots
from .sizes import sizes
from .small import free_box, small
from .solver import solver
from .step import memory, scaling, step
from .threads import cores, threads

__all__ = ["BENCHES", "ON_DEVICES", "Setting"]

BENCHES: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "solver": solver,
    "step": step,
    "scaling": scaling,
    "threads": threads,
    "cores": cores,
    "collide": collide,
    "sizes": sizes,
    "compile": compiling,
    "memory": memory,
    "joints": joints,
    "robots": robots,
    "free-box": free_box,
    "small": small,
    "fill": fill,
    "looking": looking,
    "peers": peers,
}

ON_DEVICES = ("step", "scaling")
"""Benches that take the backend and the precision of a `Setting`; the others measure processors"""
