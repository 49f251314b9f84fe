"""Overhead: scenes of a few bodies."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from ..options import StepOptions
from ..scene.builder import SceneBuilder
from ..scene.shapes import Box, HalfSpace
from ..sim.simulation import Simulation
from .base import Row, Setting, row, seconds_of

__all__ = ["free_box", "small"]


def free_box(setting: Setting) -> Iterator[Row]:
    """Overhead of a step: one box that touches nothing."""
    scene = SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(Box((0.3, 0.2, 0.1)), mass=1.0, angular_velocity=(1, 2, 3))
    sim = Simulation(scene.build(), options=StepOptions(dt=1e-3), threads=setting.threads)
    sim.step()
    yield row("free-box", "one box", "ms_per_step", 1e3 * min(seconds_of(sim.step, 500) for _ in range(5)))


def small(setting: Setting) -> Iterator[Row]:
    """1, 10 and 100 boxes on a floor, each in its place but for a millionth of its size, new in every step, so that
    every step detects, solves, measures and reports."""
    for count in (1, 10, 100):
        sim = _boxes(count, setting.threads)
        sim.run(until=0.5, progress=False)
        rest, rng, times, iterations = sim.get_state(), np.random.default_rng(0), [], []
        for _ in range(20 if setting.quick else 300):
            sim.set_state(rest)
            sim.state.position[1:] += 1e-7 * rng.normal(size=(count, 3))
            begin = time.perf_counter()
            report = sim.step()
            times.append(time.perf_counter() - begin)
            iterations.append(report.iterations)
        case = f"{count} boxes, {report.contacts} contacts"
        yield row("small", case, "median_ms_per_step", 1e3 * float(np.median(times)))
        yield row("small", case, "least_ms_per_step", 1e3 * min(times))
        yield row("small", case, "mean_iterations", float(np.mean(iterations)))


def _boxes(count: int, threads: int | None) -> Simulation:
    """Boxes of 0.1 m in stacks of five at most."""
    scene = SceneBuilder()
    scene.add_static(HalfSpace())
    place = np.arange(count)
    points = np.stack([0.2 * (place // 5), 0.0 * place, 0.05 + 0.1 * (place % 5)], axis=1)
    scene.add_boxes((0.1, 0.1, 0.1), density=1000.0, position=points)
    return Simulation(scene.build(), options=StepOptions(dt=2e-3), threads=threads)
