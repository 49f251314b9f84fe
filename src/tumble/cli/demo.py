"""The command `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import interrupts
from .arguments import WHOLE, check_threads


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("tumble-demo"),
    spheres: Annotated[int, typer.Option(help="Number of spheres.", **WHOLE)] = 1000,
    threads: Annotated[int, typer.Option(help="Threads; a thousand spheres gain little from more.", **WHOLE)] = 1,
) -> None:
    """Let spheres fill a box; leaves a trajectory, a plot and a picture in a folder.

    Example: tumble demo --spheres 300 --out first-look
    """
    check_threads(threads)
    from ..demo import run_demo
    from ..kernels import jit

    with interrupts.saying(lambda: f"; what was computed is in {out}"):
        result = run_demo(out, spheres=spheres, threads=threads, progress=True)
    print(result.run.summary())
    print(f"plot {result.plot}, picture {result.picture}")
    log = jit.compile_log
    if log.kernels:
        print(f"kernels: {log.kernels} compiled in {log.seconds:.1f} s, kept for the next time in {jit.cache_folder()}")
    else:
        print(f"kernels: nothing compiled, all came from {jit.cache_folder()}")
    print("next: try tumble experiment ball-roll")
