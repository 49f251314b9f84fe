"""The command `experiment`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from .. import checks, interrupts
from ..errors import OptionsError, message
from .arguments import NUMBER, Backend, Precision, Threads, check_threads, option, setting
from .tables import flat, table, text_of


def experiment(
    name: Annotated[str | None, typer.Argument(help="Name of the experiment.", show_default=False)] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments, or one's settings.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A small version: seconds, minutes for large ones.")] = False,
    scale: Annotated[float | None, option("Part of the full number of bodies (large experiments).", **NUMBER)] = None,
    out: Annotated[Path | None, option("Folder for the results (default: tumble-experiments/NAME).")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be given more than once."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit code 3 where a step does not converge or an expectation is missed."),
    ] = False,
    threads: Threads = None,
    backend: Backend = "cpu",
    precision: Precision = None,
) -> None:
    """Run a published experiment and compare with its numbers.

    Example: tumble experiment ball-roll --quick
    """
    from .. import experiments

    if listed:
        return _list_experiments(name)
    if name is None:
        raise OptionsError(message("tumble experiment", "needs a name", "nothing", "See tumble experiment --list."))
    check_threads(threads)
    chosen = dict(setting(text) for text in settings or ())
    folder, start = Path("tumble-experiments") / name if out is None else out, time.time()
    with interrupts.saying(lambda: f"; what was computed is in {folder}"):
        metrics = experiments.run_experiment(
            name,
            out=folder,
            quick=quick,
            scale=scale,
            settings=chosen,
            threads=threads,
            progress=None,
            strict=strict,
            backend=backend,
            precision=precision,
        )
    table(name, ("metric", "value"), flat(metrics))
    for file in sorted(folder.iterdir()):
        if (
            not file.name.startswith(".") and file.stat().st_mtime >= start - 2.0
        ):  # some file systems keep even seconds only
            print(file)


def _list_experiments(name: str | None) -> None:
    """All experiments, or the settings of one."""
    from ..experiments import describe

    known = {n: (line, settings) for n, line, settings in describe()}
    if name is None:
        table("experiments", ("name", "what it shows"), [(n, line) for n, (line, _) in known.items()])
        print("settings: tumble experiment NAME --list")
        return
    line, settings = known[checks.choice("experiment", name, known)]
    table(
        f"{name}: {line}",
        ("setting", "default", "with --quick", "unit", "meaning"),
        [tuple(text_of(v) for v in s) for s in settings],
    )
