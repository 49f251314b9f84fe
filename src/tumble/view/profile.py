"""A figure of a performance profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import FileError, message
from ..problem.profile import PerformanceProfile

__all__ = ["plot_profile"]

COLORS = ("#2a6f97", "#e76f51", "#2a9d8f", "#8d5a97", "#bc8a00", "#5f6b73", "#b23a48", "#3a7d44")


def plot_profile(
    profile: PerformanceProfile, names: Sequence[str], path: str | Path, *, cost: str = "time", title: str = ""
) -> None:
    """Shares of solved problems over the factor to the best solver, as a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    end = max(2.0, 1.2 * float(profile.factor[-1]))
    factor = np.append(profile.factor, end)
    for k, (name, share) in enumerate(zip(names, profile.share)):
        style = "-" if k < len(COLORS) else "--"
        shares = np.append(share, share[-1])
        axis.step(factor, shares, style, where="post", color=COLORS[k % len(COLORS)], linewidth=1.6, label=name)
    axis.set_xscale("log", base=2)
    axis.set_xlim(1.0, end)
    axis.set_ylim(0.0, 1.02)
    axis.set_xlabel(f"{cost} / {cost} of the best solver", fontsize=9)
    axis.set_ylabel("share of problems solved", fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(True, color="0.92", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    if title:
        axis.set_title(title, fontsize=11)
    try:
        figure.savefig(path, dpi=140, format="png")
    except OSError as cause:
        raise FileError(message(str(path), "must be writable", cause, "Check the folder.")) from cause
