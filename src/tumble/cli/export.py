"""The command `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import interrupts
from .arguments import WHOLE, option


def export(
    run: Annotated[Path, typer.Argument(help="A trajectory (.h5).", show_default=False)],
    to: Annotated[str, option("vtkhdf, vtp-series, csv, parquet, gsd or usd.")],
    out: Annotated[Path | None, option("File to write (default: name of the run with the format's ending).")] = None,
    every: Annotated[int, option("Frames from one that is written to the next.", **WHOLE)] = 1,
    shapes: Annotated[str | None, option("For ParaView: surfaces (default), or bodies as points.")] = None,
    segments: Annotated[int | None, option("Of a full turn of curved surfaces (default: 16).", **WHOLE)] = None,
    precision: Annotated[str | None, option("single or double (default: double for tables, else single).")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors and warnings only.")] = False,
) -> None:
    """Write a run for ParaView, OVITO, Blender, Omniverse, pandas and others.

    Example: tumble export run.h5 --to vtkhdf --out run.vtkhdf
    """
    from ..export import export as write

    with interrupts.saying(lambda: "; the frames until then were written"):
        done = write(
            run,
            to,
            out,
            every=every,
            shapes=shapes,
            precision=precision,
            segments=segments,
            overwrite=overwrite,
            progress=False if quiet else None,
        )
    if not quiet:
        for path in done.paths:
            print(f"{path}: {done.frames} frames")
