"""The command `sweep`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .. import interrupts
from ..errors import OptionsError, message
from .arguments import WHOLE, option, setting

SOME_FAILED = 1
"""Exit code"""


def sweep(
    scene: Annotated[Path, typer.Argument(help="A scene, .toml or .py.", show_default=False)],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUES",
            help="mu=0.1:0.9:9 (start:stop:count, ends included), mu=1:1000:4:log, or seed=0,1,2. May be repeated.",
        ),
    ] = None,
    out: Annotated[Path | None, option("Folder of the sweep (default: name of the scene with -sweep).")] = None,
    jobs: Annotated[int | None, option("Points at a time (default: all processors).", **WHOLE)] = None,
    threads: Annotated[
        int | None, option("Threads of each point (default: the processors shared among them).", **WHOLE)
    ] = None,
    scheduler: Annotated[str | None, option("Address of a Dask scheduler that does the work, tcp://HOST:8786.")] = None,
    measure: Annotated[Path | None, option("Python file with measure(run) -> {name: number} for the table.")] = None,
    plot: Annotated[str | None, option("Quantity to draw (default: the first few).")] = None,
    contacts: Annotated[bool, typer.Option("--contacts", help="Record contacts and their forces, too.")] = False,
    single: Annotated[bool, typer.Option("--single", help="Record bodies in single precision.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors and warnings only.")] = False,
) -> None:
    """Run a scene at all combinations of some settings; what was finished before is not run again.

    Example: tumble sweep scene.toml --set mu=0.1:0.9:9 --set seed=0,1,2,3 --jobs 4 --out friction

    Exit code 1: some points failed, the others are there.
    """
    from ..sweep import sweep as run_sweep
    from ..sweep import values_of

    grid: dict[str, list] = {}
    for text in settings or ():
        key, values = setting(text)
        if key in grid:
            raise OptionsError(message(f"--set {key}", "is given twice", repr(values), "Leave one of them out."))
        grid[key] = values_of(key, values)
    if not grid:
        raise OptionsError(message("tumble sweep", "needs --set", "nothing", "For example --set mu=0.1:0.9:9."))
    folder = Path(f"{scene.stem}-sweep") if out is None else out
    options = [word for word, given in (("--contacts", contacts), ("--single", single)) if given]
    with interrupts.saying(lambda: f"; what was computed is in {folder}, the same command goes on"):
        done = run_sweep(
            scene,
            grid,
            out=folder,
            jobs=jobs,
            threads=threads,
            options=options,
            measure=measure,
            plot=plot,
            scheduler=scheduler,
            progress=False if quiet else None,
        )
    if not quiet:
        print(f"{done.done} points done ({done.skipped} of them before)")
        for path in done.files:
            print(path)
    if done.failed:
        for point in done.failed:
            words = " ".join(f"{key}={value}" for key, value in point["settings"].items())
            print(f"tumble: failed: {words}: {point['error']}", file=sys.stderr)
        raise typer.Exit(SOME_FAILED)
