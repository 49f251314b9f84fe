"""The demo of the command line: spheres fill a box. Built with nothing but the public interface."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tumble as tb

from . import checks
from .errors import FileError, message

__all__ = ["DemoResult", "demo_scene", "run_demo"]

RADIUS = 0.05
"""Largest radius [m]; the smallest is four fifths of it."""
SPACING = 2.4 * RADIUS
UNTIL = 1.5
"""[s]"""


@dataclass(frozen=True)
class DemoResult:
    """What the demo computed and wrote."""

    run: tb.RunResult
    trajectory: Path
    plot: Path
    picture: Path


def demo_scene(spheres: int = 1000, *, seed: int = 1) -> tb.Model:
    """Spheres in loose layers over an open box, which they will fill about half."""
    count = checks.integer("demo.spheres", spheres, at_least=1)
    columns = max(1, round(count ** (1.0 / 3.0)))
    layers = math.ceil(count / columns**2)
    width = SPACING * columns
    scene = tb.SceneBuilder()
    steel = scene.add_material(tb.Material(friction=0.3, name="steel"))
    box = tb.open_box(inner=(width, width, width), thickness=0.5 * RADIUS)
    scene.add_static(box, material=steel, name="box")
    scene.add_static(tb.HalfSpace(offset=-0.5 * RADIUS), material=steel, name="ground")
    rng = np.random.default_rng(seed)
    points = tb.grid_points(
        (columns, columns, layers),
        (SPACING, SPACING, 1.4 * SPACING),
        origin=(0.0, 0.0, 1.5 * RADIUS),
        jitter=0.15 * RADIUS,
        seed=seed,
    )[:count]
    scene.add_spheres(
        rng.uniform(0.8 * RADIUS, RADIUS, count), position=points, density=7800.0, material=steel, name="spheres"
    )
    return scene.build()


def run_demo(
    out: str | Path,
    *,
    spheres: int = 1000,
    threads: int | None = None,
    progress: bool | None = None,
) -> DemoResult:
    """Run the demo and leave its trajectory, plot and picture in the folder `out`, in place of an earlier demo's."""
    from .view.picture import render
    from .view.plot import plot_reports

    sim = tb.Simulation(
        demo_scene(spheres),
        options=tb.StepOptions(dt=2e-3),
        solver=tb.SolverAPGD(tolerance=1e-4, max_iterations=3000),
        threads=threads,
    )
    folder = make_folder(out)
    trajectory, plot, picture = folder / "demo.h5", folder / "demo.png", folder / "picture.png"
    if not trajectory.exists():
        for file in (plot, picture):
            if file.exists():
                remedy = "It is no picture of an earlier demo; choose another folder with --out."
                raise FileError(message(str(file), "must be a new file", "a file that is there", remedy))
    run = sim.run(until=UNTIL, save=tb.Save(path=trajectory, every=10, label="demo", overwrite=True), progress=progress)
    plot_reports(run.reports, plot, title=f"{spheres} spheres fill a box")
    render(sim.model, sim.positions(), sim.orientations(), path=picture)
    return DemoResult(run, trajectory, plot, picture)


def make_folder(path: str | Path) -> Path:
    """The folder, made if it is not there."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise FileError(
            message(
                str(folder), "must be a folder to write to", cause.strerror or cause, "Choose another one with --out."
            )
        ) from cause
    return folder
