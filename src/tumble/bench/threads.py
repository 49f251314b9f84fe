"""Threads: what a second one gives on an idle machine, and what it costs beside another job."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from ..kernels import jit
from ..sim.simulation import Simulation
from ..solve.apgd import SolverAPGD
from .base import Row, Setting, row
from .scenes import fill_scene, settled

__all__ = ["cores", "threads"]


def threads(setting: Setting) -> Iterator[Row]:
    """A settled pile of 1000 spheres, 100 iterations a step: one thread and more, on an idle machine and beside a job
    that keeps one processor busy."""
    most = jit.most_threads() if setting.threads is None else setting.threads
    sim = fill_scene(1000, SolverAPGD(tolerance=0.0, max_iterations=20), most)
    sim.run(until=0.5 if setting.quick else 4.0, progress=False)
    sim.solver = SolverAPGD(tolerance=0.0, max_iterations=100)
    steps = 20 if setting.quick else 150
    for state, load in (("idle", False), ("one processor busy", True)):
        with _busy(load):
            figures = _compare(sim, sorted({1, min(2, most), most}), steps)
        for count, seconds in figures.items():
            yield row("threads", state, f"step_ms_{count}_threads", 1e3 * seconds)
            if count > 1:
                yield row("threads", state, f"time_ratio_{count}_threads", seconds / figures[1])


def cores(setting: Setting) -> Iterator[Row]:
    """Stages of a step of 100000 settled spheres, 30 iterations, by the number of threads: 1, 2, 4, ..."""
    most = jit.most_threads() if setting.threads is None else setting.threads
    sim = settled(2000 if setting.quick else 100_000, replace(setting, threads=most))
    sim.solver = SolverAPGD(tolerance=0.0, max_iterations=30)
    start, alone = sim.get_state(), {}
    for count in [*(2**k for k in range(most.bit_length()) if 2**k < most), most]:
        sim.threads = count
        stages: dict[str, float] = {}
        for _ in range(4):
            sim.set_state(start)
            for stage, seconds in sim.step().seconds.items():
                stages[stage] = min(seconds, stages.get(stage, seconds))
        stages["step"] = sum(stages.values())
        alone = alone or stages
        assert sim.last is not None
        case = f"{sim.model.body_count - 1} spheres, {sim.last.contacts.count} contacts, {count} threads"
        for stage, seconds in stages.items():
            yield row("cores", case, f"{stage}_ms", 1e3 * seconds)
            yield row("cores", case, f"{stage}_speed_up", alone[stage] / seconds)


def _compare(sim: Simulation, counts: list[int], steps: int) -> dict[int, float]:
    """Median seconds of a step with each number of threads, in turns of ten steps of the same motion."""
    times: dict[int, list[float]] = {count: [] for count in counts}
    start = sim.get_state()
    for _ in range(max(1, steps // 10)):
        for count in counts:
            sim.threads = count
            sim.set_state(start)
            for _ in range(10):
                begin = time.perf_counter()
                sim.step()
                times[count].append(time.perf_counter() - begin)
        start = sim.get_state()
    return {count: statistics.median(found) for count, found in times.items()}


@contextmanager
def _busy(load: bool) -> Iterator[None]:
    """Another process that counts on one processor, bound to it where the system can."""
    if not load:
        yield
        return
    job = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    with suppress(AttributeError, OSError):
        os.sched_setaffinity(job.pid, {max(os.sched_getaffinity(0))})
    try:
        yield
    finally:
        job.kill()
        job.wait()
