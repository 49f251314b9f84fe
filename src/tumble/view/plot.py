"""One figure about a run: energies, contacts, iterations, residual, overlap and what passed planes over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..errors import FileError, OptionsError, message

__all__ = ["plot_reports"]

PANELS: tuple[tuple[str, bool, dict[str, str]], ...] = (
    ("energy [J]", False, {"kinetic_energy": "kinetic", "potential_energy": "potential"}),
    ("contacts", False, {"contacts": "contacts"}),
    ("iterations", False, {"iterations": "iterations"}),
    ("residual", True, {"natural_map": "natural map", "certificate_energy": "certificate [J]"}),
    ("largest overlap [m]", False, {"largest_overlap": "largest overlap"}),
)
"""Label of the axis, whether it is logarithmic, and the columns with their names in the legend."""
COLORS = ("#2a6f97", "#e76f51", "#2a9d8f", "#8f7cb0", "#e9c46a", "#6c757d")
FORWARD = ".mass_forward"


def plot_reports(reports: Mapping[str, np.ndarray], path: str | Path, *, title: str = "") -> None:
    """Draw the panels whose columns exist, over the column time [s], as a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = [(label, log, {c: n for c, n in columns.items() if c in reports}) for label, log, columns in PANELS]
    planes = {c: c.removesuffix(FORWARD) for c in reports if c.endswith(FORWARD)}
    panels = [panel for panel in (*panels, ("passed forward [kg]", False, planes)) if panel[2]]
    if "time" not in reports or not panels:
        raise OptionsError(
            message(
                "plot_reports.reports",
                "needs time and at least one column to draw",
                sorted(reports),
                "Known: " + ", ".join(c for *_, p in PANELS for c in p) + ".",
            )
        )
    time = np.asarray(reports["time"], float)
    figure = Figure(figsize=(9.0, 1.2 + 1.7 * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (label, log, columns) in zip(axes, panels):
        for color, (column, name) in zip(COLORS, columns.items()):
            values = np.asarray(reports[column], float)
            if log:
                values = np.where(values > 0.0, values, np.nan)
            axis.plot(time, values, color=color, linewidth=1.2, label=name)
        if log and any(np.any(np.asarray(reports[c], float) > 0.0) for c in columns):
            axis.set_yscale("log")
        if len(columns) > 1 or columns == planes:
            axis.legend(frameon=False, fontsize=8, loc="best")
        axis.set_ylabel(label, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.grid(True, color="0.92", linewidth=0.8)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.01)
    axes[-1].set_xlabel("time [s]", fontsize=9)
    figure.align_ylabels(list(axes))
    if title:
        figure.suptitle(title, fontsize=11)
    try:
        figure.savefig(path, dpi=140, format="png")
    except OSError as cause:
        raise FileError(message(str(path), "must be writable", cause, "Check the folder.")) from cause
