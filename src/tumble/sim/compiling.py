"""Kernels that are compiled on the way: said once, and not counted as stepping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..kernels import jit
from ..logs import LOG

__all__ = ["announced", "take_out", "tell"]


@contextmanager
def announced(
    words: str = "kernels that this scene needs, once for this machine", then: Callable[[], None] | None = None
) -> Iterator[None]:
    """Say so when something has to be compiled in the block, and then do what is wanted."""
    log = jit.compile_log

    def announce() -> None:
        tell(f"compiling {words} ...")
        if then is not None:
            then()

    before, log.announce = log.announce, announce
    try:
        yield
    finally:
        log.announce = before


def take_out(seconds: dict[str, float], compiling: float) -> None:
    """Take the time of compiling out of the stages of a step: it is in the longest of them."""
    for stage in sorted(seconds, key=lambda name: seconds[name], reverse=True):
        part = min(compiling, seconds[stage])
        seconds[stage] -= part
        compiling -= part


def tell(words: str) -> None:
    """A line in the log."""
    LOG.info("tumble: %s", words)
