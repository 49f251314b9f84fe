"""The command `render`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .. import interrupts
from .arguments import NUMBER, WHOLE, Threads, check_threads, option
from .looking import Cameras, Colors, Ground, Overwrite, RunFile, Size, Walls, camera_text, output, size_text


def render(
    run: RunFile,
    frame: Annotated[int | None, option("Frame, counted from 0; -1 is the last (default).", **WHOLE)] = None,
    time: Annotated[float | None, option("The frame nearest to this time [s].", **NUMBER)] = None,
    out: Annotated[Path | None, option("Picture (default: name of the run with .png).")] = None,
    size: Size = None,
    camera: Cameras = None,
    color: Colors = None,
    walls: Walls = "glass",
    ground: Ground = True,
    overwrite: Overwrite = False,
    threads: Threads = None,
) -> None:
    """Draw a frame of a run as a picture (PNG).

    Example: tumble render run.h5 --time 1.5 --color speed --size 1920x1080
    """
    check_threads(threads)
    from ..observe.trajectory import Trajectory
    from ..sim.compiling import announced
    from ..view.image import check_new
    from ..view.look import render_of

    with interrupts.saying(lambda: " before the picture was written"), announced(), Trajectory(run) as trajectory:
        path = check_new(output(run, out, ".png"), overwrite=overwrite)
        render_of(
            trajectory,
            frame,
            time=time,
            path=path,
            overwrite=overwrite,
            size=size_text(size, (1280, 960)),
            camera=camera_text(camera),
            color=color,
            walls=walls,
            ground=ground,
            threads=threads,
        )
    print(f"picture {path}")
