"""What runs, trajectories and scenes can show of themselves. Thin calls up into `view`, made when they are used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .view.image import Picture
    from .view.panels import Plot
    from .view.video import Video

__all__ = ["SimulationLooks", "TrajectoryLooks"]


class SimulationLooks:
    """Pictures of a simulation."""

    def render(self, *, path: str | Path | None = None, overwrite: bool = False, **look: Any) -> Picture:
        """A picture of the bodies as they are now, which a notebook shows.

        path: a PNG file to write. look: fields of `tumble.view.Look`, for example size=(1920, 1080), color="speed",
        camera="front", walls="off".
        """
        from .view.look import render_of

        return render_of(self, path=path, overwrite=overwrite, **look)


class TrajectoryLooks:
    """Pictures, videos and plots of a run."""

    def render(
        self,
        frame: int | None = None,
        *,
        time: float | None = None,
        path: str | Path | None = None,
        overwrite: bool = False,
        **look: Any,
    ) -> Picture:
        """A picture of a frame (None: the last), or of that nearest to a time [s]; see `Simulation.render`."""
        from .view.look import render_of

        return render_of(self, frame, time=time, path=path, overwrite=overwrite, **look)

    def video(self, path: str | Path | None = None, **options: Any) -> Video:
        """A video of the run, which a notebook plays; options as in `tumble.view.video_of`."""
        from .view.video import video_of

        return video_of(self, path, **options)

    def plot(self, *quantities: str, **options: Any) -> Plot:
        """Quantities over time, for example plot("energy", "force", on="brick"); see `tumble.view.plot_of`."""
        from .view.plot import plot_of

        return plot_of(self, *quantities, **options)
