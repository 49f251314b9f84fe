"""Children that are sent signals."""

from __future__ import annotations

import signal


def answer_signals() -> None:
    """For `Popen(preexec_fn=)`: as from a terminal, also where the tests run under nohup or in the background."""
    for name in ("SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
