"""Kernels that are compiled on the way: said once, and not counted as stepping."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..kernels import jit

__all__ = ["announced", "take_out", "tell"]


@contextmanager
def announced(words: str = "kernels that this scene needs, once for this machine") -> Iterator[None]:
    """Say so when something has to be compiled in the block."""
    log = jit.compile_log
    before, log.announce = log.announce, lambda: tell(f"compiling {words} ...")
    try:
        yield
    finally:
        log.announce = before


def take_out(seconds: dict[str, float], compiling: float) -> None:
    """Take the time of compiling out of the stages of a step: it is in the longest of them."""
    for stage in sorted(seconds, key=seconds.get, reverse=True):
        part = min(compiling, seconds[stage])
        seconds[stage] -= part
        compiling -= part


def tell(words: str) -> None:
    """A line on the error output."""
    print(f"tumble: {words}", file=sys.stderr, flush=True)
