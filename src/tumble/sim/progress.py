"""How far a run is: a bar on a terminal, a line a minute where there is none (a log of a cluster or a pipe)."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Protocol

from ..kernels import jit
from ..logs import LOG
from ..notebook import NotebookLine, in_notebook
from .report import StepReport

__all__ = ["show_progress"]

LINE_EVERY = 60.0
"""Wall time between two lines [s]; shorter runs write none."""
BAR_EVERY = 0.1
"""Wall time between two changes of the bar [s]."""


class Display(AbstractContextManager["Display"], Protocol):
    """Is told of every step."""

    def update(self, report: StepReport, unconverged: int) -> None:
        """One more step is done; unconverged: how many of them did not reach the tolerance."""


def show_progress(wanted: bool | None, steps: int) -> Display:
    """The display of a run of so many steps. wanted True: the bar; False: nothing; None: the bar on a terminal or in a
    notebook, or lines."""
    if steps < 1 or (wanted is not None and not wanted):
        return _Silent()
    if in_notebook():
        return _Notebook(steps)
    if wanted or sys.stderr.isatty():
        try:
            return _Bar(steps)
        except ImportError:  # without rich
            pass
    return _Lines(steps)


def _facts(report: StepReport, unconverged: int) -> str:
    text = f"t {report.time:.4g} s  {report.contacts} contacts  residual {report.natural_map:.1e}"
    return text + (f"  {unconverged} unconverged" if unconverged else "")


class _Clock:
    """Counts steps and says when it is time to show something."""

    def __init__(self, steps: int, interval: float) -> None:
        self.steps, self.done, self._interval = steps, 0, interval
        self._start = self._shown = time.perf_counter()
        self._compiled = jit.compile_log.seconds

    def due(self) -> bool:
        """Count a step; whether an interval has passed since the last time this was true."""
        self.done += 1
        now = time.perf_counter()
        if now - self._shown < self._interval:
            return False
        self._shown = now
        return True

    @property
    def rate(self) -> float:
        """Steps a second, without the time that compiling takes."""
        compiling = jit.compile_log.seconds - self._compiled
        return self.done / max(1e-9, time.perf_counter() - self._start - compiling)

    def pace(self) -> tuple[str, str]:
        """Rate, and the time that the other steps take at it."""
        rate = self.rate
        return f"{rate:.3g} steps/s", f"{timedelta(seconds=round((self.steps - self.done) / rate))} left"


class _Silent:
    def __enter__(self) -> _Silent:
        return self

    def update(self, report: StepReport, unconverged: int) -> None:
        """Nothing is shown."""

    def __exit__(self, *_: object) -> None:
        pass


class _Lines:
    """A line now and then on the error output."""

    def __init__(self, steps: int) -> None:
        self._clock = _Clock(steps, LINE_EVERY)

    def __enter__(self) -> _Lines:
        return self

    def update(self, report: StepReport, unconverged: int) -> None:
        """Perhaps write a line."""
        c = self._clock
        if not c.due() or c.done >= c.steps:
            return
        text = "  ".join((f"step {c.done} of {c.steps}", *c.pace(), _facts(report, unconverged)))
        LOG.info("%s", text)

    def __exit__(self, *_: object) -> None:
        pass


class _Notebook:
    """A bar below the cell of a notebook."""

    def __init__(self, steps: int) -> None:
        self._clock, self._line = _Clock(steps, 0.25), NotebookLine()

    def __enter__(self) -> _Notebook:
        return self

    def update(self, report: StepReport, unconverged: int) -> None:
        """Move the bar, not too often."""
        c = self._clock
        if c.due() or c.done >= c.steps:
            words = (f"{c.done} of {c.steps} steps", *c.pace(), _facts(report, unconverged))
            self._line.show(c.done / c.steps, "  ".join(words))

    def __exit__(self, *_: object) -> None:
        pass


class _Bar:
    """A bar with rate, time left, contacts and residual."""

    def __init__(self, steps: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._clock = _Clock(steps, BAR_EVERY)
        self._progress: Any = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[info]}"),
            console=Console(stderr=True),
        )

    def __enter__(self) -> _Bar:
        self._progress.start()
        self._task = self._progress.add_task("steps", total=self._clock.steps, rate="", left="", info="")
        return self

    def update(self, report: StepReport, unconverged: int) -> None:
        """Move the bar, not too often."""
        c = self._clock
        if c.due() or c.done >= c.steps:
            rate, left = c.pace()
            info = _facts(report, unconverged)
            self._progress.update(self._task, completed=c.done, rate=rate, left=left, info=info)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
