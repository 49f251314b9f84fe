"""What the library says while it works, through the standard module `logging`, logger "tumble".

Programs that configure nothing see plain lines on the error output. A handler of a program's own, on this logger or on
the root (`logging.basicConfig()`), takes their place; `logging.getLogger("tumble").setLevel("WARNING")` silences them.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress

__all__ = ["LOG"]

LOG = logging.getLogger("tumble")


class _Plain(logging.Handler):
    """The message alone, to where the error output goes now."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless somebody else does."""
        others = [h for h in LOG.handlers if h is not self]
        if others or any(type(h) in (logging.StreamHandler, logging.FileHandler) for h in logging.root.handlers):
            return
        with suppress(OSError):  # a full disk or a closed pipe must not end a run
            print(record.getMessage(), file=sys.stderr, flush=True)


if not LOG.handlers:
    LOG.addHandler(_Plain())
    LOG.setLevel(logging.INFO)
