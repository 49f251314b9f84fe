"""Plots of a run over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import OptionsError, message
from ..files import replacing
from .panels import Plot
from .quantities import GROUPS, panels_of, report_panels

__all__ = ["plot_of", "plot_reports"]


def plot_of(
    trajectory: Any,
    *quantities: str,
    on: str | None = None,
    by: str | None = None,
    joint: str | None = None,
    path: str | Path | None = None,
    overwrite: bool = False,
    title: str = "",
    progress: bool | None = None,
) -> Plot:
    """Plot quantities of a run over time: energy, contacts, iterations, residuals, overlap, speed, works, time (of the
    stages of a step), force, joints, joint_speeds, torques, power, flow, or any column of the reports.

    on, by: names of the bodies whose force is plotted, from all others or only from some. joint: only this joint.
    """
    plot = Plot(panels_of(trajectory, quantities, on=on, by=by, joint=joint, progress=progress), title=title)
    if path is not None:
        plot.save(path, overwrite=overwrite)
    return plot


def plot_reports(reports: Mapping[str, np.ndarray], path: str | Path, *, title: str = "") -> None:
    """Draw the overview of the columns that exist, over the column time [s], as a PNG file."""
    panels = report_panels(reports) if "time" in reports else []
    if not panels:
        known = ", ".join(column for _, _, columns in GROUPS.values() for column in columns)
        rule = "needs time and at least one column to draw"
        raise OptionsError(message("plot_reports.reports", rule, sorted(reports), f"Known: {known}."))
    with replacing(path) as temporary:
        Plot(panels, title=title).write(temporary)
