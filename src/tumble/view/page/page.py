"""A page in the browser that shows a run, or a simulation while it steps."""

from __future__ import annotations

import contextlib
import io
import secrets
import threading
import time
from typing import Any

import numpy as np

from ... import checks
from ...errors import FileError, TumbleError, message
from ..coloring import COLORINGS, range_of
from ..snapshot import Snapshot, snapshot
from .facts import facts_of
from .gate import LOOPBACK, Gate, guarded_server
from .stage import Stage

__all__ = ["LivePage", "Page", "RunPage"]

PORT = 8080
RATE = 30.0
"""Pictures a second at most"""
SHARE = 0.02
"""Part of the time of a run that a live page may take"""
SAMPLES = 5


class Page:
    """The server, what it shows and its controls."""

    _shot: Snapshot
    _stage: Stage
    """Both from `begin` on"""

    def __init__(self, title: str, *, host: str = "127.0.0.1", port: int = PORT) -> None:
        self.token = None if host in LOOPBACK else secrets.token_urlsafe(18)
        port = checks.integer("view.port", port, at_least=0, at_most=65535)
        self._server = guarded_server(host, port, Gate(self.token), title)
        self._server.gui.configure_theme(show_logo=False, show_share_button=False)
        self._host = host
        self._facts: Any = None

    @property
    def address(self) -> str:
        """What to open in a browser, with the token where there is one."""
        shown = f"[{self._host}]" if ":" in self._host else self._host
        more = "" if self.token is None else f"/?token={self.token}"
        return f"http://{shown}:{self._server.get_port()}{more}"

    @property
    def watched(self) -> bool:
        """Whether somebody has the page open."""
        return bool(self._server.get_clients())

    @property
    def drawn(self) -> int:
        """Pictures handed out."""
        return self._stage.drawn

    def begin(self, shot: Snapshot, colors: tuple[str, ...], limits: tuple[float, float] | None = None) -> None:
        """Show something for the first time. colors: those that can be chosen."""
        self._shot, self._stage = shot, Stage(self._server, shot, limits)
        self._controls(colors)
        self._server.scene.on_click()(self._clicked)
        self.show(shot)

    def show(self, shot: Snapshot) -> None:
        """Show something else."""
        self._shot = shot
        self._stage.show(shot)
        if self._stage.wanted.picked is not None:
            self._facts.value = facts_of(shot, self._stage.wanted.picked)

    def close(self) -> None:
        """Close the page."""
        with contextlib.redirect_stdout(io.StringIO()):
            self._server.stop()

    def _controls(self, colors: tuple[str, ...]) -> None:
        gui, wanted = self._server.gui, self._stage.wanted
        has_contacts = "force" in colors
        with gui.add_folder("Look"):
            self._bind(gui.add_dropdown("Colour", colors, initial_value="body"), "color", colors)
            self._bind(gui.add_dropdown("Walls", ("glass", "solid", "off"), initial_value=wanted.walls), "walls")
            self._bind(gui.add_checkbox("Ground", True), "ground")
            words = "Contact forces" if has_contacts else "Contact forces (not recorded)"
            self._bind(gui.add_checkbox(words, False, disabled=not has_contacts), "forces")
            self._bind(gui.add_checkbox("Joints", True), "joints")
            self._bind(gui.add_dropdown("Clip", ("off", "x", "y", "z"), initial_value="off"), "clip")
            self._bind(gui.add_slider("Clip at", 0.0, 1.0, 0.01, 1.0), "cut")
        with gui.add_folder("Body"):
            self._facts = gui.add_text("Picked", "click a body", multiline=True, disabled=True)

    def _bind(self, handle: Any, name: str, among: tuple[str, ...] | None = None) -> None:
        """Let a control set what is wanted. What a browser sends is checked: it need not come from our page."""
        kind = type(getattr(self._stage.wanted, name))
        allowed = among or (tuple(handle.options) if hasattr(handle, "options") else None)

        def changed(_: Any) -> None:
            value = handle.value
            if isinstance(value, kind) and (allowed is None or value in allowed):
                setattr(self._stage.wanted, name, value)
                self._refresh()

        handle.on_update(changed)

    def _refresh(self) -> None:
        self.show(self._shot)

    def _clicked(self, event: Any) -> None:
        start, along = np.array(event.ray_origin, float), np.array(event.ray_direction, float)
        if start.shape != (3,) or along.shape != (3,) or not np.isfinite([start, along]).all() or not along.any():
            return
        self.pick(self._stage.pick(self._shot, start, along / np.linalg.norm(along)))

    def pick(self, body: int | None) -> None:
        """Mark a body and show its numbers."""
        self._stage.wanted.picked = body
        if body is None:
            self._facts.value = "click a body"
        self._refresh()


class RunPage(Page):
    """Plays a trajectory."""

    def __init__(self, trajectory: Any, *, host: str = "127.0.0.1", port: int = PORT) -> None:
        self._run = trajectory
        if not trajectory.frames:
            remedy = "Wait until the run has written one."
            raise FileError(message(str(trajectory.path), "needs a frame", "none", remedy))
        super().__init__(trajectory.path.name, host=host, port=port)
        self._reading = threading.Lock()
        self._playing, self._ended = threading.Event(), threading.Event()
        colors = tuple(c for c in COLORINGS if self._can(c))
        limits = {c: self._range(c) for c in colors}
        super().begin(self._frame(0), colors)
        self._ranges = limits
        self._player()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def _can(self, color: str) -> bool:
        try:
            range_of(self._frame(-1), color)
        except TumbleError:
            return False
        return color != "material" or self._run.model.shape_material is not None

    def _range(self, color: str) -> tuple[float, float] | None:
        """Of some frames, so that a colour means the same in all."""
        some = np.unique(np.linspace(0, self._run.frames - 1, SAMPLES).astype(int))
        found = [range_of(self._frame(k), color) for k in some]
        known = [limits for limits in found if limits is not None]
        return max(known) if len(known) == len(found) else None

    def _frame(self, number: int) -> Snapshot:
        with self._reading:
            shot = snapshot(self._run, int(number))
            fields = self._run.fields
            if hasattr(self, "_stage") and "velocity" in fields:
                _ = shot.velocity  # read here, where only one thread reads
            if "contacts" in fields:
                _ = shot.contacts
            return shot

    def _player(self) -> None:
        gui, last = self._server.gui, self._run.frames - 1
        with gui.add_folder("Play", order=-1.0):
            self._button = gui.add_button("Play")
            self._slider = gui.add_slider("Frame", 0, max(last, 1), 1, 0)
            self._time = gui.add_text("Time [s]", f"{self._run.times[0]:.4g}", disabled=True)
            self._speed = gui.add_slider("Speed", 0.05, 4.0, 0.05, 1.0)
            self._loop = gui.add_checkbox("Loop", True)
        self._slider.on_update(lambda _: self._scrub())
        self._button.on_click(lambda _: self.play(not self._playing.is_set()))

    def play(self, on: bool = True) -> None:
        """Play or pause."""
        self._button.label = "Pause" if on else "Play"
        (self._playing.set if on else self._playing.clear)()

    def _scrub(self) -> None:
        number = int(np.clip(self._slider.value, 0, self._run.frames - 1))
        if number != self._shot.frame:
            self.go(number)

    def go(self, number: int) -> None:
        """Show a frame."""
        shot = self._frame(number)
        self._stage.set_limits(self._ranges.get(self._stage.wanted.color))
        self.show(shot)
        self._time.value = f"{shot.time:.4g}"
        self._slider.value = number

    def _refresh(self) -> None:
        self._stage.set_limits(self._ranges.get(self._stage.wanted.color))
        super()._refresh()

    def _play(self) -> None:
        """Frames in the run's own time, some left out where they follow each other too quickly."""
        times, at, before = self._run.times, 0.0, time.perf_counter()
        while not self._ended.is_set():
            if not self._playing.wait(0.2):
                before = time.perf_counter()
                continue
            now = time.perf_counter()
            here = self._shot.frame or 0
            at = at if times[here] <= at < times[min(here + 1, len(times) - 1)] else float(times[here])
            at += (now - before) * float(np.nan_to_num(np.clip(self._speed.value, 0.01, 100.0), nan=1.0))
            before = now
            number = int(np.searchsorted(times, at, side="right")) - 1
            last = len(times) - 1
            if at >= times[-1] and here != last:
                number, at = last, float(times[-1])  # seen before it begins again: a run may be over in one picture
            elif at >= times[-1] and self._loop.value:
                number, at = 0, float(times[0])
            elif at >= times[-1]:
                self.play(False)
            if number != here:
                self.go(number)
            time.sleep(max(0.0, 1.0 / RATE - (time.perf_counter() - now)))

    def close(self) -> None:
        """Stop and close the page."""
        self._ended.set()
        self._playing.clear()
        self._thread.join(5.0)
        super().close()


class LivePage(Page):
    """Shows a simulation while it steps: `watch` after each step costs the run next to nothing."""

    def __init__(self, sim: Any, *, host: str = "127.0.0.1", port: int = PORT) -> None:
        super().__init__("tumble run", host=host, port=port)
        self._next = 0.0
        self._pending: Snapshot | None = None
        self._wake, self._ended = threading.Event(), threading.Event()
        self.begin(snapshot(sim), COLORINGS)
        with self._server.gui.add_folder("Run", order=-1.0):
            self._time = self._server.gui.add_text("Time [s]", f"{sim.time:.4g}", disabled=True)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def watch(self, sim: Any) -> bool:
        """Look at the simulation if it is time to; False, as `stop` of a run wants it."""
        began = time.perf_counter()
        if began < self._next:
            return False
        self._next = began + 1.0 / RATE
        if self._pending is None and self.watched:
            self._pending = self._taken(sim)
            self._wake.set()
            self._next = began + max(1.0 / RATE, (time.perf_counter() - began) / SHARE)
        return False

    def _taken(self, sim: Any) -> Snapshot:
        """Copies of all that the page needs: the run goes on while they are drawn."""
        shot, wanted = snapshot(sim), self._stage.wanted
        _ = shot.velocity
        if wanted.forces or wanted.color == "force" or wanted.picked is not None:
            with contextlib.suppress(TumbleError):
                _ = shot.contacts
        return shot

    def _work(self) -> None:
        while not self._ended.is_set():
            if not self._wake.wait(0.2):
                continue
            self._wake.clear()
            began, shot = time.thread_time(), self._pending
            if shot is None:
                continue
            self.show(shot)
            self._time.value = f"{shot.time:.4g}"
            spent = time.thread_time() - began
            time.sleep(spent / SHARE)  # the thread that sends takes about as long
            self._pending = None

    def close(self) -> None:
        """Close the page."""
        self._ended.set()
        self._thread.join(5.0)
        super().close()
