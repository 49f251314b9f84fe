"""A whole step, stage by stage, and how it grows with the number of bodies."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..sim.simulation import Simulation
from ..solve.apgd import SolverAPGD
from .base import Row, Setting, row
from .scenes import settled, settled_mixed

__all__ = ["memory", "scaling", "step"]

ITERATIONS = 30


def step(setting: Setting) -> Iterator[Row]:
    """Stages of a step of settled spheres and of six other shapes, 30 iterations, best of ten."""
    count = 500 if setting.quick else 4000
    for name, make in (("spheres", settled), ("mixed", settled_mixed)):
        sim = make(count, setting)
        stages, whole, contacts = _best_stages(sim, 10, setting)
        case = f"{count} {name}, {contacts} contacts, {_place(sim, setting)}"
        for stage, seconds in stages.items():
            yield row("step", case, f"{stage}_ms", 1e3 * seconds)
        yield row("step", case, "step_ms", 1e3 * whole)


def scaling(setting: Setting) -> Iterator[Row]:
    """Time a step of 30 iterations for 250 to 256000 settled spheres, and the exponent from 16000 on."""
    sizes = (250, 1000) if setting.quick else (250, 1000, 4000, 16000, 64000, 256000)
    found = []
    for count in sizes:
        sim = settled(count, setting)
        _, whole, contacts = _best_stages(sim, 10 if count < 64000 else 4, setting)
        found.append((count, whole))
        case = f"{count} spheres, {contacts} contacts, {_place(sim, setting)}"
        yield row("scaling", case, "step_ms", 1e3 * found[-1][1])
        yield row("scaling", case, "us_per_sphere", 1e6 * found[-1][1] / count)
    large = np.log([entry for entry in found if entry[0] >= (16000 if not setting.quick else 250)])
    if len(large) > 1:
        exponent = np.polyfit(large[:, 0], large[:, 1], 1)[0]
        yield row("scaling", f"{sizes[-len(large)]} to {sizes[-1]} spheres", "exponent", exponent)


def memory(setting: Setting) -> Iterator[Row]:
    """Memory of a run of settled spheres: its growth a contact, and a sphere."""
    rows, base = [], _resident()
    if base is None:
        yield row("memory", "this system does not tell the memory of a process", "unknown", 1.0)
        return
    for count in (500, 1000) if setting.quick else (4000, 16000, 64000):
        sim = settled(count, setting)
        rows.append((count, sim.step().contacts, (_resident() or 0) - base))
        yield row("memory", f"{count} spheres, {rows[-1][1]} contacts", "MB", 1e-6 * rows[-1][2])
        del sim
    first, last = rows[0], rows[-1]
    case = f"{first[0]} to {last[0]} spheres"
    yield row("memory", case, "bytes_per_contact", (last[2] - first[2]) / (last[1] - first[1]))
    yield row("memory", case, "bytes_per_sphere", (last[2] - first[2]) / (last[0] - first[0]))


def _place(sim: Simulation, setting: Setting) -> str:
    return f"{sim.threads} threads" if sim.backend.HOSTED else f"{sim.backend.device_name()}, {setting.precision}"


def _best_stages(sim: Simulation, steps: int, setting: Setting) -> tuple[dict[str, float], float, int]:
    """The least seconds of each stage and of a step, and the contacts. A device works on while the host is in the next
    stage already: there only the whole step is told."""
    sim.solver = SolverAPGD(tolerance=0.0, max_iterations=ITERATIONS, precision=setting.precision)
    stages: dict[str, float] = {}
    whole = np.inf
    for _ in range(steps):
        start = time.perf_counter()
        report = sim.step()
        whole = min(whole, time.perf_counter() - start)
        for stage, seconds in report.seconds.items():
            stages[stage] = min(seconds, stages.get(stage, np.inf))
    return (stages, sum(stages.values()), report.contacts) if sim.backend.HOSTED else ({}, whole, report.contacts)


def _resident() -> int | None:
    """Memory of this process now [B]."""
    if not sys.platform.startswith("linux"):
        return None
    import resource

    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
