"""Runs the points of a sweep, a few at a time, here or on a cluster, and gathers what came out."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import checks
from ..checks import nearest
from ..errors import FileError, OptionsError, message
from ..files import replacing
from ..interrupts import Asked, deferred
from ..logs import LOG
from ..scene.files import load_scene
from .grid import combinations, folder_name
from .point import Point, run_point
from .results import check_plot, gather, measure_of

__all__ = ["Swept", "sweep"]

LOOK = 0.2
"""Seconds between two looks at the points"""


@dataclass(frozen=True)
class Swept:
    """What a sweep left."""

    folder: Path
    done: int
    failed: tuple[dict[str, Any], ...]
    """Settings, exit code and last words of the points that failed"""
    skipped: int
    """Points that were finished before"""
    files: tuple[Path, ...]
    """Tables and plot"""


def sweep(
    scene: str | Path,
    settings: Mapping[str, Sequence[Any]],
    *,
    out: str | Path,
    jobs: int | None = None,
    threads: int | None = None,
    options: Sequence[str] = (),
    measure: str | Path | None = None,
    plot: str | None = None,
    scheduler: str | None = None,
    progress: bool | None = None,
) -> Swept:
    """Run a scene at all combinations of some settings, each in a process and a folder of its own.

    settings: values by key, as `--set` takes them: {"mu": [0.1, 0.2], "step.dt": [1e-3]}. A point that was finished
    before is left as it is; one that was interrupted goes on from its checkpoint; one that failed is tried again.
    jobs: points at a time (default: all processors); threads: of each (default: the processors shared among them).
    options: more words of `tumble run`, like "--contacts". measure: a Python file with measure(run) -> {name: number},
    by default that of a Python scene. plot: the quantity to draw. scheduler: address of a Dask cluster that does the
    work (extra `sweep`); scene and folder must be within its reach under the same names.
    """
    path, folder = checks.file_name("sweep.scene", scene, "scene.toml").resolve(), Path(out).resolve()
    points_of = combinations(settings)
    load_scene(path, settings=points_of[0])  # a wrong key is a mistake of the sweep, not of its first point
    measured = measure_of(path if measure is None else Path(measure), required=measure is not None)
    check_plot(plot, measured)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = min(len(points_of), checks.integer("sweep.jobs", cores if jobs is None else jobs, at_least=1))
    share = 1 if scheduler is not None else max(1, cores // jobs)
    if scheduler is not None:
        check_address(scheduler)
    threads = checks.integer("sweep.threads", share if threads is None else threads, at_least=1)
    _begin(folder, path, options)
    stop = folder / ".stop"
    stop.unlink(missing_ok=True)
    points = [Point(str(path), str(folder / folder_name(s)), s, tuple(options), threads, str(stop)) for s in points_of]
    waiting = [point for point in points if not point.done]
    with deferred() as asked:
        with _display(progress, len(points), len(points) - len(waiting)) as show:
            if scheduler is None:
                _run_here(waiting, jobs, asked, show)
            else:
                _run_there(scheduler, waiting, asked, show)
        outcomes = [point.outcome() | {"folder": point.folder} for point in points]
        files = gather(folder, points, outcomes, settings, measured, plot)
        stop.unlink(missing_ok=True)
        asked.obey()
    failed = tuple(o for o in outcomes if o.get("status") == "failed")
    done = sum(o.get("status") == "done" for o in outcomes)
    return Swept(folder, done, failed, len(points) - len(waiting), files)


def _begin(folder: Path, scene: Path, options: Sequence[str]) -> None:
    """Make the folder, or see to it that it holds the same sweep."""
    now = {
        "scene": str(scene),
        "scene_sha256": hashlib.sha256(scene.read_bytes()).hexdigest(),
        "options": list(options),
    }
    record = folder / "sweep.json"
    if record.exists():
        try:
            before = json.loads(record.read_text(encoding="utf-8"))
        except ValueError as cause:
            raise FileError(
                message(str(record), "must be of a sweep", "another file", "Choose another --out.")
            ) from cause
        for key, value in now.items():
            if before.get(key) != value:
                words = "the scene as it was then" if key == "scene_sha256" else before.get(key)
                rule = f"must go on with {words}"
                raise OptionsError(
                    message(str(folder), rule, f"another {key.partition('_')[0]}", "Choose another folder for --out.")
                )
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(
            message(str(folder), "must be a new or empty folder", "files of others", "Choose another --out.")
        )
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(record) as temporary:
        temporary.write_text(json.dumps(now, indent=1), encoding="utf-8")


Show = Callable[[dict[str, Any]], None]


def _run_here(points: Sequence[Point], jobs: int, asked: Asked, show: Show) -> None:
    with ThreadPoolExecutor(jobs) as pool:
        futures: set[Future] = set()
        rest = iter(points)
        while True:
            while len(futures) < jobs and asked.stop is None:
                point = next(rest, None)
                if point is None:
                    break
                futures.add(pool.submit(run_point, point, lambda: asked.stop is not None))
            if not futures:
                return
            ready, futures = wait(futures, LOOK, FIRST_COMPLETED)
            for future in ready:
                show(future.result())


PROTOCOLS = ("tcp", "tls", "ucx", "ws", "wss")
"""That a scheduler may listen to"""


def _run_there(address: str, points: Sequence[Point], asked: Asked, show: Show) -> None:
    """The same on the workers of a Dask cluster."""
    try:
        import distributed
    except ImportError as cause:
        remedy = "Run pip install 'tumble[sweep]'."
        raise OptionsError(message("--scheduler", "needs the package distributed", "not installed", remedy)) from cause
    try:
        client = distributed.Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TimeoutError) as cause:
        remedy = "Say what the scheduler printed as it began, like tcp://host:8786."
        raise OptionsError(
            message(f"--scheduler {address}", "must be a running Dask scheduler", cause, remedy)
        ) from cause
    with client:
        futures = set(client.map(run_point, points, pure=False))
        while futures:
            if asked.stop is not None:
                Path(points[0].stop).touch()  # those that run see it and end in order; the others never begin
                client.cancel([f for f in futures if f.status == "pending" and not _runs(client, f)])
            ready = {future for future in futures if future.done()}
            futures -= ready
            for future in ready:
                if future.status == "finished":
                    show(future.result())
                elif future.status == "error":
                    show({"status": "failed", "settings": {}, "error": str(future.exception())})
            time.sleep(0.0 if ready else LOOK)


def check_address(address: str) -> None:
    """Refuse what is no address before the cluster's library tries it, which answers with pages of its own words."""
    kind, sign, place = address.partition("://")
    host, _, port = place.rpartition(":")
    if kind == "inproc" and place:  # a cluster within this process
        return
    if sign and kind in PROTOCOLS and host and port.isdigit() and 0 < int(port) < 65536:
        return
    hint = nearest(kind, PROTOCOLS) if sign and kind not in PROTOCOLS else ""
    remedy = hint if hint.startswith("Did") else "Say what the scheduler printed as it began, like tcp://host:8786."
    raise OptionsError(message("--scheduler", "must be an address with a port", repr(address), remedy))


def _runs(client: Any, future: Any) -> bool:
    return any(future.key in keys for keys in client.processing().values())


@contextmanager
def _display(wanted: bool | None, total: int, before: int) -> Iterator[Show]:
    """A bar on a terminal, a line a point elsewhere."""
    if wanted is False:
        yield lambda outcome: None
        return
    if wanted is None and not sys.stderr.isatty():
        count = before

        def line(outcome: dict[str, Any]) -> None:
            nonlocal count
            count += outcome["status"] == "done"
            words = f": {outcome['error']}" if outcome.get("error") else f" in {outcome.get('seconds', 0):.1f} s"
            LOG.info("%d of %d: %s %s%s", count, total, _words(outcome), outcome["status"], words)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, completed=before)
        failed = 0

        def move(outcome: dict[str, Any]) -> None:
            nonlocal failed
            failed += outcome["status"] == "failed"
            words = f"{_words(outcome)} {outcome['status']}" + (f", {failed} failed" if failed else "")
            bar.update(task, advance=1, description=words)

        yield move


def _words(outcome: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in outcome["settings"].items())
