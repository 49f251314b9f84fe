"""One job at a time in a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

__all__ = ["Background"]


class Background:
    """Does jobs in their order while the caller goes on; at most one waits. What a job raises comes out of the next
    call."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(maxsize=1)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="tumble writer", daemon=True)
        self._thread.start()

    def do(self, job: Callable[[], None]) -> None:
        """Leave a job to the thread; waits while another one waits already."""
        self._tell()
        self._jobs.put(job)

    def wait(self) -> None:
        """Until all jobs are done."""
        if self._thread.is_alive():  # one that was stopped leaves the order to stop undone
            self._jobs.join()
        self._tell()

    def stop(self) -> None:
        """End the thread after the jobs it has; again does nothing."""
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._jobs.put(None)
            self._thread.join()

    def _tell(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                if self._failure is None:
                    job()
            except BaseException as cause:  # told to the caller
                self._failure = cause
            finally:
                self._jobs.task_done()
