"""How quickly runs are drawn and handed out."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tumble as tb

from .base import Row, Setting, row

__all__ = ["looking"]

RADIUS = 0.05
CLIENT = """
import sys, time, msgspec, viser
from websockets.sync.client import connect
address, origin, least, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
look = dict(wxyz=[1, 0, 0, 0], position=[1, 1, 1], fov=1.0, image_height=9, image_width=9, near=0.1, far=9.0,
            look_at=[0, 0, 0], up_direction=[0, 0, 1])
with connect(address, subprotocols=["viser-v" + viser.__version__], origin=origin, max_size=None) as line:
    line.send(msgspec.msgpack.encode(dict(type="ViewerCameraMessage", **look)))
    count, began = 0, None
    for message in line:
        now = time.perf_counter()
        if began is not None and now > began + seconds:
            break
        if len(message) >= least:
            began = now if began is None else began
            count += now > began
    print(count / (now - began), flush=True)
"""
"""A browser that draws nothing; it counts the pictures of at least so many bytes, and says how many come a second"""


def looking(setting: Setting) -> Iterator[Row]:
    """Pictures of 1920 x 1080 pixels; pictures a second that a page hands out; what a live page adds to a run."""
    count = 1000 if setting.quick else 20_000
    size = (480, 270) if setting.quick else (1920, 1080)
    shapes = [tb.Box((0.08, 0.06, 0.07)), tb.Capsule(0.03, 0.04), tb.Cylinder(0.04, 0.06), tb.Sphere(RADIUS)]
    for case, model in (
        ("one sphere", _model(1, [tb.Sphere(RADIUS)])),
        (f"{count} spheres", _model(count, [tb.Sphere(RADIUS)])),
        (f"{count} of four shapes", _model(count, shapes)),
    ):
        sim = _simulation(model, setting)
        draw = lambda sim=sim: sim.render(size=size, threads=setting.threads)  # noqa: E731
        draw()
        wall, spent = _best(draw, 3)
        yield row("looking", case, "picture_s", wall)
        yield row("looking", case, "picture_cpu_s", spent)
    for bodies in (count, 10 * count):
        yield from _handed_out(bodies, setting)
    yield from _live(setting)


def _model(count: int, shapes: list[Any]) -> tb.Model:
    scene = tb.SceneBuilder()
    across = round(count ** (1 / 3) + 0.5)
    scene.add_static(tb.HalfSpace())
    if count > 1:
        scene.add_static(tb.open_box(inner=(0.11 * across,) * 3))
    points = tb.grid_points((across,) * 3, 0.11, origin=(0, 0, 0.06), jitter=0.004)[:count]
    each = [shapes[k % len(shapes)] for k in range(count)]
    scene.add_bodies(each, density=1000.0, position=points)
    return scene.build()


def _simulation(model: tb.Model, setting: Setting) -> tb.Simulation:
    return tb.Simulation(model, options=tb.StepOptions(dt=2e-3), threads=setting.threads)


def _best(call: Callable[[], Any], times: int) -> tuple[float, float]:
    """Least wall time and least time of the processor."""
    found = []
    for _ in range(times):
        wall, spent = time.perf_counter(), time.process_time()
        call()
        found.append((time.perf_counter() - wall, time.process_time() - spent))
    return tuple(np.min(found, axis=0))


@contextmanager
def _watched(sim: tb.Simulation, least: int = 0, seconds: float = 1e9) -> Iterator[tuple[Any, Any]]:
    """A live page, and the process that looks at it."""
    from ..view.page import LivePage

    page = LivePage(sim, port=0)
    command = [sys.executable, "-c", CLIENT, page.address.replace("http", "ws"), page.address, str(least), str(seconds)]
    viewer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60.0
        while not page.watched and time.monotonic() < deadline:
            time.sleep(0.05)
        yield page, viewer
    finally:
        viewer.kill()
        viewer.communicate()
        page.close()


def _handed_out(count: int, setting: Setting) -> Iterator[Row]:
    """Pictures, all bodies at new places in each, as many as a page gives at most, counted where they arrive."""
    from ..view.page.page import RATE
    from ..view.snapshot import snapshot

    sim = _simulation(_model(count, [tb.Sphere(RADIUS)]), setting)
    shot = snapshot(sim)
    with _watched(sim, 12 * count, 1.0 if setting.quick else 5.0) as (page, viewer):
        deadline, spent = time.monotonic() + 60.0, time.process_time()
        number = 0
        while viewer.poll() is None and time.monotonic() < deadline:
            began, number = time.perf_counter(), number + 1
            shot.position[:] += 1e-4
            page.show(shot)
            time.sleep(max(0.0, 1.0 / RATE - (time.perf_counter() - began)))
        spent = time.process_time() - spent
        yield row("looking", f"{count} spheres, page", "pictures_per_second", float(viewer.stdout.readline() or "nan"))
        yield row("looking", f"{count} spheres, page", "picture_cpu_ms", 1e3 * spent / number)


def _live(setting: Setting) -> Iterator[Row]:
    """The same steps with and without a page that is looked at, in turns."""
    count, steps, turns = (100, 20, 2) if setting.quick else (1000, 150, 5)
    sim = tb.Simulation(_model(count, [tb.Sphere(RADIUS)]), options=tb.StepOptions(dt=2e-3), threads=1)
    sim.run(until=0.3)
    start = sim.get_state()
    times: dict[bool, list[tuple[float, float]]] = {True: [], False: []}

    def work(watch: Callable[[Any], bool] | None) -> None:
        sim.set_state(start)
        for _ in range(steps):
            sim.step()
            if watch is not None:
                watch(sim)

    with _watched(sim) as (page, _):
        for turn in range(2 * turns):
            seen = bool(turn % 2)
            times[seen].append(_best(lambda seen=seen: work(page.watch if seen else None), 1))
    best = {seen: np.min(found, axis=0) for seen, found in times.items()}
    for k, name in enumerate(("wall", "cpu")):
        yield row("looking", "live page, one thread", f"{name}_ratio", best[True][k] / best[False][k])
