"""Videos of runs: MP4 through ffmpeg, or GIF."""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..errors import FileError, OptionsError, message
from ..files import replacing
from ..interrupts import deferred
from .image import check_new
from .look import Look, Stage, drawn, look_of, stage_of
from .meter import counted
from .snapshot import snapshot

__all__ = ["Video", "has_encoder", "video_of"]

SAMPLES = 9
"""Frames of a run that a camera is made for"""
FPS = 30.0
EMBEDDED = 30_000_000
"""Bytes of a video that a notebook may hold in itself"""


@dataclass(frozen=True)
class Video:
    """A video that was written; a notebook plays it."""

    path: Path
    frames: int
    fps: float
    speed: float
    """Seconds of the run in a second of the video"""

    @property
    def seconds(self) -> float:
        """How long it plays."""
        return self.frames / self.fps

    def _repr_html_(self) -> str:
        if not self.path.is_file() or self.path.stat().st_size > EMBEDDED:
            return f"<code>{self.path}</code>"
        data = base64.b64encode(self.path.read_bytes()).decode()
        if self.path.suffix.lower() == ".gif":
            return f'<img src="data:image/gif;base64,{data}" style="max-width:100%">'
        return f'<video controls loop style="max-width:100%" src="data:video/mp4;base64,{data}"></video>'


@dataclass(frozen=True)
class _Pace:
    every: int
    fps: float
    speed: float


def has_encoder() -> bool:
    """Whether MP4 files can be written."""
    return importlib.util.find_spec("imageio_ffmpeg") is not None


def video_of(
    trajectory: Any,
    path: str | Path | None = None,
    *,
    every: int | None = None,
    fps: float | None = None,
    speed: float | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    **look: Any,
) -> Video:
    """Write a video of a trajectory. An interrupt leaves a file with the frames so far.

    path: .mp4 or .gif; None: beside the trajectory. every: frames of the run from one to the next of the video; fps:
    frames a second; speed: seconds of the run in a second of the video. What is left out is chosen such that the run
    plays in real time, or with the given speed.
    """
    path = check_new(default_path(trajectory) if path is None else path, overwrite=overwrite, kinds=tuple(WRITERS))
    writer = _writer_for(path)
    chosen = look_of("video", {"size": (1280, 720), **look})
    chosen = _even(chosen) if writer is _mp4 else chosen
    if not trajectory.frames:
        raise FileError(message(str(trajectory.path), "needs a frame", "none", "Wait until the run has written one."))
    pace = _pace(trajectory.times, every, fps, speed)
    numbers = range(0, trajectory.frames, pace.every)
    some = np.unique(np.linspace(0, len(numbers) - 1, SAMPLES).astype(int))
    stage = stage_of([snapshot(trajectory, numbers[k]) for k in some], chosen)
    with deferred() as asked:
        done = [0]
        with replacing(path) as temporary:
            pictures = _pictures(trajectory, numbers, chosen, stage, done, progress, lambda: asked.stop is not None)
            writer(temporary, pictures, chosen.size, pace.fps)
        asked.obey()
    return Video(path, done[0], pace.fps, pace.speed)


def default_path(trajectory: Any) -> Path:
    """Beside the run."""
    return trajectory.path.with_suffix(".mp4" if has_encoder() else ".gif")


def _pace(times: np.ndarray, every: int | None, fps: float | None, speed: float | None) -> _Pace:
    gap = float(np.median(np.diff(times))) if len(times) > 1 else 1.0 / FPS
    step = None if every is None else checks.integer("video.every", every, at_least=1)
    rate = None if fps is None else checks.number("video.fps", fps, above=0.0, at_most=240.0)
    pace = 1.0 if speed is None else checks.number("video.speed", speed, above=0.0)
    if step is not None and rate is not None and speed is not None:
        raise OptionsError(message("video", "takes two of every, fps and speed", "all three", "Leave one out."))
    if step is None:
        step = max(1, round(pace / (gap * (rate or FPS))))
    if rate is None:
        rate = min(max(pace / (gap * step), 1.0), 60.0)
    return _Pace(step, rate, rate * step * gap)


def _even(look: Look) -> Look:
    """H.264 halves the resolution of colours."""
    from dataclasses import replace

    return replace(look, size=tuple(max(2, side - side % 2) for side in look.size))


def _pictures(
    trajectory: Any,
    numbers: range,
    look: Look,
    stage: Stage,
    done: list[int],
    progress: bool | None,
    stopped: Callable[[], bool],
) -> Iterator[np.ndarray]:
    for number in counted(numbers, len(numbers), "frame", progress):
        if stopped() and done[0]:
            return
        yield drawn(snapshot(trajectory, number), look, stage)
        done[0] += 1


def _writer_for(path: Path) -> Callable[[Path, Iterator[np.ndarray], tuple[int, int], float], None]:
    found = WRITERS[path.suffix.lower()]
    if found is _mp4 and not has_encoder():
        remedy = "Install it with pip install 'tumble[video]', or write a .gif."
        raise OptionsError(message(str(path), "needs an encoder", "no imageio-ffmpeg", remedy))
    return found


def _mp4(path: Path, pictures: Iterator[np.ndarray], size: tuple[int, int], fps: float) -> None:
    import imageio_ffmpeg

    write: Any = imageio_ffmpeg.write_frames  # annotated with less than it takes
    encoder = write(
        str(path),
        size,
        fps=fps,
        codec="libx264",
        quality=None,
        macro_block_size=1,
        output_params=["-crf", "20", "-preset", "medium", "-movflags", "+faststart", "-f", "mp4"],
    )
    encoder.send(None)
    try:
        for picture in pictures:
            encoder.send(np.ascontiguousarray(picture))
    finally:
        encoder.close()


def _gif(path: Path, pictures: Iterator[np.ndarray], size: tuple[int, int], fps: float) -> None:
    from PIL import Image

    frames = (Image.fromarray(picture).quantize(255, method=Image.Quantize.FASTOCTREE) for picture in pictures)
    first = next(frames)
    delay = max(20, 10 * round(100.0 / fps))  # browsers play shorter ones at a tenth of a second
    first.save(path, "GIF", save_all=True, append_images=frames, duration=delay, loop=0)


WRITERS = {".mp4": _mp4, ".gif": _gif}
