"""The command `plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import interrupts
from .arguments import option
from .looking import Overwrite, RunFile

QUANTITIES = (
    "energy, contacts, iterations, residuals, overlap, speed, works, time, force, joints, joint_speeds, torques, "
    "power, flow, or a column of the reports; an overview if none is named."
)


def plot(
    run: RunFile,
    quantities: Annotated[list[str] | None, typer.Argument(help=QUANTITIES, show_default=False)] = None,
    out: Annotated[Path | None, option("A .png, .pdf or .svg (default: name of the run with -plot.png).")] = None,
    on: Annotated[str | None, option("Force on the bodies of this name.", metavar="BODY")] = None,
    by: Annotated[str | None, option("Only the force by these.", metavar="BODY")] = None,
    joint: Annotated[str | None, option("Only this joint, motor or spring.", metavar="NAME")] = None,
    title: Annotated[str, typer.Option("--title", help="Above the panels.", show_default=False)] = "",
    overwrite: Overwrite = False,
) -> None:
    """Plot quantities of a run over time (PNG, PDF or SVG).

    Example: tumble plot run.h5 energy residuals force --on brick
    """
    from ..observe.trajectory import Trajectory
    from ..view.image import check_new
    from ..view.panels import KINDS
    from ..view.plot import plot_of

    with interrupts.saying(lambda: " before the plot was written"), Trajectory(run) as trajectory:
        path = run.with_name(f"{run.stem}-plot.png") if out is None else out
        check_new(path, overwrite=overwrite, kinds=KINDS)
        options = {"on": on, "by": by, "joint": joint, "title": title}
        plot_of(trajectory, *(quantities or ()), path=path, overwrite=overwrite, **options)
    print(f"plot {path}")
