"""Time a step against overlap."""

from __future__ import annotations

from collections.abc import Iterator

from ..solve.apgd import SolverAPGD
from .base import Row, Setting, row
from .scenes import fill_scene

__all__ = ["fill"]


def fill(setting: Setting) -> Iterator[Row]:
    """1000 spheres fill a box (5 s, h = 0.01 s): time a step against the largest overlap for fixed iterations."""
    for iterations in (5, 20, 100, 500):
        sim = fill_scene(1000, SolverAPGD(tolerance=0.0, max_iterations=iterations), setting.threads)
        sim.step()
        run = sim.run(until=5.0, progress=False)
        case = f"{iterations} iterations, {sim.threads} threads"
        yield row("fill", case, "ms_per_step", 1e3 * run.seconds / run.steps)
        yield row("fill", case, "largest_overlap_radii", float(run.reports["largest_overlap"].max()))
        yield row("fill", case, "overlap_at_end_radii", float(run.reports["largest_overlap"][-50:].max()))
        yield row("fill", case, "contacts_at_end", float(run.reports["contacts"][-1]))
