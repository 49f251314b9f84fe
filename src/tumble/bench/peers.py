"""Other engines and this one, side by side: time a step against what is left of accuracy."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..kernels import jit
from ..scene.fill import grid_points
from .base import Row, Setting, row
from .engines import Candidate, Pile, candidates, missing

__all__ = ["peers"]

COLUMNS = ("ms_per_step", "largest_overlap_radii", "kinetic_energy_J", "still_speed_m_per_s")


def peers(setting: Setting) -> Iterator[Row]:
    """1000 and 4000 spheres fill a box (5 s, h = 0.01 s) in this engine and in those of the extra `bench` that are
    installed: time a step against overlap and kinetic energy at the end, with a table and a figure of the front."""
    threads = jit.most_threads() if setting.threads is None else setting.threads
    for name in missing():
        yield row("peers", f"{name} is not installed (the extra bench)", "missing", 1.0)
    for count in (200,) if setting.quick else (1000, 4000):
        case, found = f"fill{count}", []
        for candidate in candidates(_pile(count), threads):
            figures = _figures(candidate, _pile(count), 50 if setting.quick else 500)
            found.append((candidate.engine, candidate.setting, *figures))
            for metric, value in zip(COLUMNS, figures):
                yield row("peers", f"{case}, {candidate.engine}, {candidate.setting}", metric, value)
        if setting.out is not None:
            _write(Path(setting.out), case, found, threads)


def _pile(count: int) -> Pile:
    """Spheres of 1 m, nine by nine in a layer, above the floor of a box of 20 m; four times as many in one of 38 m."""
    across = 9 if count <= 1000 else 18
    points = grid_points((across, across, -(-count // across**2)), 2.05, origin=(0, 0, 1.05), jitter=0.02)[:count]
    return Pile(points=points, side=20.0 if across == 9 else 38.0)


def _figures(candidate: Candidate, pile: Pile, steps: int) -> tuple[float, float, float, float]:
    """Mean time a step without the first two, largest overlap over the last tenth, kinetic energy at the end, and the
    median speed of a sphere there."""
    candidate.step()
    candidate.step()
    seconds, overlap, last = 0.0, 0.0, steps // 10
    for k in range(steps):
        begin = time.perf_counter()
        candidate.step()
        seconds += time.perf_counter() - begin
        if k >= steps - last and k % 5 == 0:
            overlap = max(overlap, pile.largest_overlap(candidate.positions()))
    speed = np.linalg.norm(candidate.velocities(), axis=1)
    return 1e3 * seconds / steps, overlap, 0.5 * float(speed @ speed), float(np.median(speed))


def _write(folder: Path, case: str, found: list[tuple], threads: int) -> None:
    """The table, and time against overlap and against kinetic energy."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{case}.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("engine", "setting", *COLUMNS))
        writer.writerows(found)
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for axes, column, label in zip(
        figure.subplots(1, 2), (3, 4), ("largest overlap [radii]", "kinetic energy at the end [J]")
    ):
        for engine in dict.fromkeys(entry[0] for entry in found):
            mine = sorted((entry for entry in found if entry[0] == engine), key=lambda entry: entry[2])
            axes.loglog([entry[2] for entry in mine], [max(entry[column], 1e-9) for entry in mine], "o-", label=engine)
        axes.set(xlabel="time a step [ms]", ylabel=label)
        axes.grid(True, which="both", alpha=0.25)
        axes.legend()
    figure.suptitle(f"{case}: 5 s at h = 0.01 s, up to {threads} threads")
    figure.savefig(folder / f"{case}.png", dpi=120)
