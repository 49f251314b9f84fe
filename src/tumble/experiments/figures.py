"""Figures of the experiments: curves in a grid of panels, and a row of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import FileError, message

COLORS = {"coulomb": "#c1121f", "relaxed": "#2a6f97", "exact": "0.35"}
LINES = ("-", "--", ":", "-.")
"""Step sizes, the finest first."""
PALETTE = ("#c1121f", "#2a6f97", "#e09f3e", "#4f772d", "#7b2cbf", "0.35")
"""Things of one kind, such as solvers."""


class Curve(NamedTuple):
    """One line of a panel."""

    label: str
    x: np.ndarray
    y: np.ndarray
    color: str
    line: str = "-"
    marker: str = ""


MANY = 5
"""With more curves than these the legend stands beside the axes, where it hides none."""


@dataclass
class Panel:
    """One pair of axes, labelled with units."""

    ylabel: str
    curves: list[Curve] = field(default_factory=list)
    title: str = ""
    xlabel: str = "time [s]"
    log: bool = False
    """Logarithmic vertical axis; values that are not positive are left out"""
    log_x: bool = False
    """Logarithmic horizontal axis"""
    equal: bool = False
    """The same scale on both axes"""


def new_figure(width: float, height: float) -> Any:
    """An empty figure [inches] that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a PNG file."""
    try:
        figure.savefig(path, dpi=130, format="png")
    except OSError as cause:
        raise FileError(message(str(path), "must be writable", cause, "Check the folder.")) from cause


def draw_panels(path: Path, rows: Sequence[Sequence[Panel]], *, title: str) -> None:
    """Draw a grid of panels; those of a row share their vertical axis when they show the same quantity."""
    columns = len(rows[0])
    figure = new_figure(1.0 + 4.6 * columns, 0.9 + 2.4 * len(rows))
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for row, row_axes in zip(rows, axes):
        for column, (panel, axis) in enumerate(zip(row, row_axes)):
            if column and panel.ylabel == row[0].ylabel:
                axis.sharey(row_axes[0])
            _draw_panel(axis, panel)
    figure.align_ylabels()
    figure.suptitle(title, fontsize=11)
    save_figure(figure, path)


def _draw_panel(axis: Any, panel: Panel) -> None:
    for c in panel.curves:
        y = np.where(c.y > 0.0, c.y, np.nan) if panel.log else c.y
        axis.plot(c.x, y, color=c.color, linestyle=c.line, linewidth=1.2, marker=c.marker, markersize=4, label=c.label)
    if panel.log:
        axis.set_yscale("log")
    if panel.log_x:
        axis.set_xscale("log")
    for direction, log in ((axis.xaxis, panel.log_x), (axis.yaxis, panel.log)):
        if log:
            _label_decades(direction)
    if panel.equal:
        axis.set_aspect("equal", adjustable="datalim")
    axis.set_xlabel(panel.xlabel, fontsize=9)
    axis.set_ylabel(panel.ylabel, fontsize=9)
    axis.set_title(panel.title, fontsize=9)
    tidy(axis)
    labels = sum(bool(c.label) and not c.label.startswith("_") for c in panel.curves)
    if labels:
        beside: dict[str, Any] = dict(loc="upper left", bbox_to_anchor=(1.0, 1.0)) if labels > MANY else {}
        axis.legend(frameon=False, fontsize=8, **beside)


def _label_decades(direction: Any) -> None:
    """Labels at 1, 2 and 5 of every decade where there are fewer than two decades, else at the decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = direction.get_view_interval()
    if low > 0.0 and high < 100.0 * low:
        direction.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        direction.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    direction.set_minor_formatter(NullFormatter())


def tidy(axis: Any) -> None:
    """Light grid, no frame on top and right."""
    axis.tick_params(labelsize=8)
    axis.grid(True, color="0.92", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def draw_pictures(path: Path, pictures: Sequence[tuple[str, np.ndarray]], *, title: str) -> None:
    """Draw images (height, width, 3), each under its caption, side by side."""
    figure = new_figure(3.6 * len(pictures), 3.2)
    for (caption, image), axis in zip(pictures, figure.subplots(1, len(pictures), squeeze=False)[0]):
        axis.imshow(image)
        axis.set_title(caption, fontsize=9)
        axis.set_axis_off()
    figure.suptitle(title, fontsize=11)
    save_figure(figure, path)
