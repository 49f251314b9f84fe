"""One call for all formats: what is written where, frame by frame, and nothing half written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .. import checks
from ..errors import FileError, OptionsError, message
from ..files import check_place, replacing
from ..interrupts import deferred
from ..observe.trajectory import Trajectory
from .source import Frame, Source

__all__ = ["FORMATS", "Exported", "Plan", "Writer", "export"]

FORMATS = {
    "vtkhdf": (".vtkhdf", "ParaView and VTK: one file with all times"),
    "vtp-series": (".vtp.series", "ParaView and VTK: a file for each time, and the list of them"),
    "csv": (".csv", "spreadsheets, pandas: tables of bodies, contacts, joints and steps"),
    "parquet": (".parquet", "the same tables for pandas, polars, DuckDB (extra `parquet`)"),
    "gsd": (".gsd", "OVITO, HOOMD, freud (extra `gsd`)"),
    "usd": (".usdc", "Blender, Omniverse, Houdini, usdview (extra `usd`)"),
}
"""Ending of the file and what reads it."""
SHAPES = ("surfaces", "points")
PRECISION = ("single", "double")
SHAPED = ("ParaView (vtkhdf, vtp-series)", ("vtkhdf", "vtp-series"))
CURVED = ("formats with triangles (vtkhdf, vtp-series, gsd, usd)", ("vtkhdf", "vtp-series", "gsd", "usd"))


@dataclass(frozen=True)
class Plan:
    """What is asked of a writer."""

    out: Path
    shapes: str
    """"surfaces": triangles; "points": bodies as points with poses"""
    dtype: type[np.floating]
    segments: int
    """Of a full turn of curved surfaces"""
    frames: Sequence[int]
    """Numbers of the frames that are written"""


class Writer(Protocol):
    """Is given frames, then asked to finish; what was given by then can be read afterwards."""

    def add(self, frame: Frame) -> None:
        """One more frame."""

    def finish(self) -> None:
        """Make what there is a whole file."""


@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    frames: int
    paths: tuple[Path, ...]


def export(
    run: Trajectory | str | Path,
    to: str,
    out: str | Path | None = None,
    *,
    every: int = 1,
    shapes: str | None = None,
    precision: str | None = None,
    segments: int | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Exported:
    """Write a run for another tool, see `FORMATS` and docs/export.md.

    out: the file (default: the run's name with the format's ending); contacts and tables go beside it. every: frames
    from one that is written to the next. shapes: for ParaView, "surfaces" (default) or "points". segments: of a full
    turn of curved surfaces (default: 16). precision: "single" or "double" (default: double for tables and single for
    the others; gsd is always single).
    """
    checks.choice("export.to", to, FORMATS)
    for option, given, (where, known) in (("shapes", shapes, SHAPED), ("segments", segments, CURVED)):
        if given is not None and to not in known:
            remedy = "Leave it out."
            raise OptionsError(message(f"export.{option}", f"is for {where}", f"{given} for {to}", remedy))
    if to == "gsd" and precision == "double":
        remedy = "Leave it out, or choose another format."
        raise OptionsError(message("export.precision", "gsd knows single only", precision, remedy))
    with ExitStack() as stack:
        if not isinstance(run, Trajectory):
            run = stack.enter_context(Trajectory(run))
        place = Path(run.path.stem + FORMATS[to][0]) if out is None else checks.file_name("export.out", out, "run.csv")
        shapes = checks.choice("export.shapes", "surfaces" if shapes is None else shapes, SHAPES)
        default = "double" if to in ("csv", "parquet") else "single"
        kind = checks.choice("export.precision", default if precision is None else precision, PRECISION)
        numbers = range(0, run.frames, checks.integer("export.every", every, at_least=1))
        turns = checks.integer("export.segments", 16 if segments is None else segments, at_least=4, at_most=256)
        if not numbers:
            raise FileError(message(str(run.path), "needs a frame to export", "0 frames", "Let the run go on."))
        source = Source(run)
        plan = Plan(place, shapes, np.float32 if kind == "single" else np.float64, turns, numbers)
        writer = _writer(to)
        paths = writer.paths(source, plan)
        _check_places(run, paths, checks.flag("export.overwrite", overwrite))
        return _write(source, writer, plan, paths, progress)


def _writer(to: str) -> Any:
    """The class that writes a format."""
    if to in ("vtkhdf", "vtp-series"):
        from . import vtk as module
    elif to in ("csv", "parquet"):
        from . import tables as module
    elif to == "gsd":
        from . import gsd as module
    else:
        from . import usd as module
    return module.WRITERS[to]


def _check_places(run: Trajectory, paths: Sequence[Path], overwrite: bool) -> None:
    for path in paths:
        check_place(path)
        if path.exists() and path.samefile(run.path):
            raise FileError(message(str(path), "must be another file than the run", path, "Choose another name."))
        if path.exists() and not overwrite:
            remedy = "Choose another name, or replace it with --overwrite (overwrite=True)."
            raise FileError(message(str(path), "must not be there", "a file of this name", remedy))


def _write(source: Source, kind: Any, plan: Plan, paths: Sequence[Path], progress: bool | None) -> Exported:
    """A signal ends it after a frame, with what was written by then in its place."""
    done = 0
    with deferred() as asked:
        with ExitStack() as stack:
            places = {path: stack.enter_context(replacing(path)) for path in paths}
            writer: Writer = kind(source, plan, places)
            with _bar(progress, len(plan.frames)) as advance:
                for index in plan.frames:
                    writer.add(source.frame(index))
                    done += 1
                    advance()
                    if asked.stop is not None:
                        break
            writer.finish()
        asked.obey()
    return Exported(done, tuple(paths))


@contextmanager
def _bar(wanted: bool | None, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, or where one is wanted."""
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("frames", total=total)
        yield lambda: bar.advance(task)
