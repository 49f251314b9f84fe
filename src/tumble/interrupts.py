"""Signals: how a command ends early, and what a run is asked while it steps.

SIGINT (Ctrl-C), SIGTERM and SIGHUP end a command with one line and exit code 128 plus the signal's number. While a run
steps they wait for the end of the step, so that its last frame and checkpoint can be written; a second one does not
wait, if it comes later: batch systems send a signal to a process and to its group, and a parent of several threads that
is killed sends one for each. SIGUSR1 asks a run for a checkpoint and lets it go on. Only commands listen: a program
that uses the library keeps its own handlers. Where it has none, Ctrl-C waits for the end of a step, too, and is a
KeyboardInterrupt then.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["Asked", "Interrupted", "Stopped", "deferred", "end", "listen", "saying", "started_as_command"]

STARTED = time.monotonic()
"""Nothing of ours is imported before: with it the wall time of a command counts what importing takes."""
ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
CHECKPOINT = "SIGUSR1"
AT_ONCE = 0.2
"""Seconds within which a signal that comes again is the same"""


class Stopped(KeyboardInterrupt):
    """A signal ended a run, after its data were kept."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number

    @property
    def exit_code(self) -> int:
        """As shells have it."""
        return 128 + self.signal_number


class Interrupted(Exception):
    """What `Stopped` becomes at the end of a command; the text tells where the data are."""

    def __init__(self, words: str, exit_code: int) -> None:
        super().__init__(words)
        self.exit_code = exit_code


class Asked:
    """What a run was asked since it last looked."""

    def __init__(self) -> None:
        self.stop: int | None = None
        """Number of the signal that wants it to end"""
        self.checkpoint = False
        """Whether a checkpoint is wanted"""

    def take_checkpoint(self) -> bool:
        """Whether a checkpoint was wanted; asked for once."""
        wanted, self.checkpoint = self.checkpoint, False
        return wanted

    def obey(self) -> None:
        """Stop here if that is wanted."""
        if self.stop is not None:
            raise Stopped(self.stop)


_asked: Asked | None = None
_last = (0, 0.0)
"""The last signal that a run was told, and when"""
_words: Callable[[], str] = str


def started_as_command() -> bool:
    """Whether this process is `tumble` or `python -m tumble`."""
    command = getattr(sys, "orig_argv", sys.argv)
    modules = [command[i + 1] for i, word in enumerate(command[:-1]) if word == "-m"]
    return os.path.basename(sys.argv[0] if sys.argv else "") == "tumble" or modules[:1] in (["tumble"], ["tumble.cli"])


def listen() -> None:
    """Answer signals from now on. Those that are ignored (nohup, jobs in the background) stay so."""
    for name in (*ENDING, CHECKPOINT):
        number = getattr(signal, name, None)
        with suppress(ValueError):  # not in the main thread
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _handle)


def end() -> None:
    """The command is over and its data are kept: a signal that comes again must not change how it ended. (Python gives
    signals back to the system when it leaves.)"""
    for name in ENDING:
        number = getattr(signal, name, None)
        with suppress(ValueError):
            if number is not None and signal.getsignal(number) is _handle:
                signal.signal(number, signal.SIG_IGN)


@contextmanager
def deferred() -> Iterator[Asked]:
    """Signals are noted in what this gives, for the block to obey; Ctrl-C also in programs without a handler of their
    own, or it would come in the middle of a frame."""
    global _asked
    before, _asked = _asked, Asked()
    with suppress(ValueError):  # not in the main thread
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _note)
    try:
        yield _asked
    finally:
        _asked = before
        with suppress(ValueError):
            if before is None and signal.getsignal(signal.SIGINT) is _note:
                signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def saying(words: Callable[[], str]) -> Iterator[None]:
    """What a command that ends early says about its data, asked for when it does."""
    global _words
    before, _words = _words, words
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted(words(), getattr(stop, "exit_code", 128 + signal.SIGINT)) from None
    finally:
        _words = before


def _note(number: int, frame: Any) -> None:
    """In place of Python's own handler of Ctrl-C."""
    if not _is_told(number):
        signal.default_int_handler(number, frame)


def _is_told(number: int) -> bool:
    """Tell the run that a signal wants an end; False where there is none, or it has been told, and not just now."""
    global _last
    if _asked is not None and _asked.stop is None:
        _asked.stop, _last = number, (number, time.monotonic())
        return True
    return number == _last[0] and time.monotonic() - _last[1] < AT_ONCE


def _handle(number: int, _: Any) -> None:
    if number == getattr(signal, CHECKPOINT, None):
        if _asked is not None:
            _asked.checkpoint = True
        return
    if _is_told(number):
        return
    # Not an exception: libraries that are being imported or compiled would swallow it.
    with suppress(Exception):
        sys.stdout.flush()
        print(f"tumble: interrupted{_words()}", file=sys.stderr, flush=True)
    os._exit(128 + number)
