"""For `Popen(preexec_fn=)`: how a child of a test begins."""

from __future__ import annotations

import ctypes
import os
import signal

PR_CAPBSET_DROP, CAPABILITIES = 24, 41


def answer_signals() -> None:
    """As from a terminal, also where the tests run under nohup or in the background."""
    for name in ("SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def without_privileges() -> None:
    """Permissions hold for root, too, as far as the files are its own."""
    if os.geteuid() == 0:
        for capability in range(CAPABILITIES):
            ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
