"""How far a loop over frames is: a bar on a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ..notebook import NotebookLine, in_notebook

__all__ = ["counted"]

Item = TypeVar("Item")
EVERY = 0.2
"""Wall time between two changes in a notebook [s]"""


def counted(items: Iterable[Item], total: int, words: str, wanted: bool | None = None) -> Iterator[Item]:
    """The items, with a bar. wanted: True always, False never, None where somebody sees it."""
    if wanted is False or total < 2:
        yield from items
    elif in_notebook():
        yield from _in_notebook(items, total, words)
    elif wanted or sys.stderr.isatty():
        yield from _on_terminal(items, total, words)
    else:
        yield from items


def _on_terminal(items: Iterable[Any], total: int, words: str) -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import track

    yield from track(items, words, total, console=Console(stderr=True), transient=True)


def _in_notebook(items: Iterable[Any], total: int, words: str) -> Iterator[Any]:
    line, last = NotebookLine(), 0.0
    for number, item in enumerate(items):
        yield item
        if time.monotonic() - last > EVERY or number + 1 == total:
            last = time.monotonic()
            line.show((number + 1) / total, f"{words} {number + 1} of {total}")
