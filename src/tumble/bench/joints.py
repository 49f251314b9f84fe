"""Joints: a chain."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from ..options import StepOptions
from ..scene import rotation
from ..scene.builder import SceneBuilder
from ..sim.simulation import Simulation
from .base import Row, Setting, row

__all__ = ["joints"]


def joints(setting: Setting) -> Iterator[Row]:
    """A hanging chain with a thousandfold mass at its end: time a step for 125, 500 and 2000 links."""
    seconds = {}
    for links in (125, 500, 2000):
        sim = _chain(links, setting.threads)
        for _ in range(5):
            sim.step()
        times = []
        for _ in range(20):
            start = time.perf_counter()
            report = sim.step()
            times.append(time.perf_counter() - start)
        seconds[links] = float(np.median(times))
        yield row("joints", f"chain of {links} links", "step_ms", 1e3 * seconds[links])
        yield row("joints", f"chain of {links} links", "joint_drift", report.joint_drift)
    yield row("joints", "2000 over 500 links", "time_ratio", seconds[2000] / seconds[500])


def _chain(links: int, threads: int | None) -> Simulation:
    """Rods of 0.1 m and 1 kg on spherical joints, the last of 1000 kg, let go at an angle."""
    scene = SceneBuilder()
    d = np.array([np.sin(0.6), 0.0, -np.cos(0.6)])
    turn = rotation.from_normal(d)
    above = None
    for k in range(links):
        m = 1.0 if k < links - 1 else 1000.0
        inertia = (m * 0.01 / 12, m * 0.01 / 12, m * 5e-5)
        link = scene.add_body(None, mass=m, inertia=inertia, position=0.1 * (k + 0.5) * d, orientation=turn)
        scene.add_joint("spherical", above, link, anchor=0.1 * k * d)
        above = link
    return Simulation(scene.build(), options=StepOptions(dt=1e-3), threads=threads)
