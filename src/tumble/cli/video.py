"""The command `video`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .. import interrupts
from .arguments import NUMBER, WHOLE, Threads, check_threads, only_given, option
from .looking import Cameras, Colors, Ground, Overwrite, RunFile, Size, Walls, camera_text, size_text


def video(
    run: RunFile,
    out: Annotated[Path | None, option("Video, .mp4 or .gif (default: name of the run with .mp4).")] = None,
    every: Annotated[int | None, option("Frames of the run from one of the video to the next.", **WHOLE)] = None,
    fps: Annotated[float | None, option("Frames a second of the video.", **NUMBER)] = None,
    speed: Annotated[float | None, option("Seconds of the run a second (default: 1, real time).", **NUMBER)] = None,
    size: Size = None,
    camera: Cameras = None,
    color: Colors = None,
    walls: Walls = "glass",
    ground: Ground = True,
    overwrite: Overwrite = False,
    threads: Threads = None,
) -> None:
    """Draw a run as a video: MP4, or GIF where no encoder is installed. Ctrl-C leaves a video of what was drawn.

    Example: tumble video run.h5 --speed 0.25 --color speed
    """
    check_threads(threads)
    from ..observe.trajectory import Trajectory
    from ..sim.compiling import announced
    from ..view.video import default_path, has_encoder, video_of

    with Trajectory(run) as trajectory:
        path = default_path(trajectory) if out is None else out
        if out is None and not has_encoder():
            print("no encoder is installed (pip install 'tumble[video]'): a GIF is written")
        words = interrupts.saying(lambda: f"; the frames so far are in {path}" if path.exists() else "")
        with words, announced():
            made = video_of(
                trajectory,
                path,
                every=every,
                fps=fps,
                speed=speed,
                overwrite=overwrite,
                size=size_text(size, (1280, 720)),
                camera=camera_text(camera),
                walls=walls,
                ground=ground,
                **only_given(color=color, threads=threads),
            )
    print(f"video {made.path}: {made.frames} frames, {made.seconds:.3g} s at {made.speed:.3g} times real time")
