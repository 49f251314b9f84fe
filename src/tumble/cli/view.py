"""The command `view`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import interrupts
from .arguments import WHOLE, option
from .looking import RunFile

Host = Annotated[
    str, typer.Option("--host", help="Address to listen on; any but this machine's own opens the page to others.")
]
Port = Annotated[int, typer.Option("--port", help="Port to listen on, or the next free one.", **WHOLE)]


def view(
    run: RunFile,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    frame: Annotated[int | None, option("Begin with this frame, paused.", **WHOLE)] = None,
) -> None:
    """Look at a run in a browser: play it, turn it, pick bodies, show forces. Ctrl-C ends it.

    Example: tumble view run.h5
    """
    play(run, host, port, frame)


def play(run: Path, host: str, port: int, frame: int | None = None) -> None:
    """Show a run until Ctrl-C."""
    from ..observe.trajectory import Trajectory
    from ..view.page import RunPage

    with interrupts.saying(lambda: ", the page is closed"), Trajectory(run) as trajectory:
        page = RunPage(trajectory, host=host, port=port)
        try:
            page.go(frame or 0)
            say_where(page)
            page.play(frame is None)
            stay()
        finally:
            page.close()


@contextmanager
def live(sim: Any, wanted: bool, host: str, port: int) -> Iterator[Callable[[Any], bool] | None]:
    """A page of a simulation, and what its run has to call after every step."""
    if not wanted:
        yield None
        return
    from ..view.page import LivePage

    page = LivePage(sim, host=host, port=port)
    try:
        say_where(page)
        yield page.watch
    finally:
        page.close()


def say_where(page: Any) -> None:
    """Where the page is, and who can see it."""
    print(f"open {page.address}", flush=True)
    if page.token is not None:
        words = "others on the network can see the page if they know this address; the connection is not encrypted"
        print(words, flush=True)


def stay() -> None:
    """Until Ctrl-C."""
    with interrupts.deferred() as asked:
        while True:
            asked.obey()
            time.sleep(0.1)
