"""Figures of quantities over time, one panel below the other."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..files import replacing
from .image import check_new

__all__ = ["KINDS", "Panel", "Plot"]

KINDS = (".png", ".pdf", ".svg")
"""Endings of the files that a plot can be"""

COLORS = ("#2a6f97", "#e76f51", "#2a9d8f", "#8f7cb0", "#e9c46a", "#6c757d", "#b23a48", "#3a7d44")
MOST = 12
"""Names in a legend"""
COLUMNS = 150
"""Points across a stack; more are averaged"""


@dataclass(frozen=True)
class Panel:
    """Curves with one axis."""

    label: str
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]]
    """Times [s] and numbers by name"""
    log: bool = False
    stacked: bool = False
    named: bool = False
    """Whether even a single curve needs its name"""


class Plot:
    """A figure that a notebook shows."""

    def __init__(self, panels: Sequence[Panel], *, title: str = "") -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(9.0, 1.2 + 1.9 * len(panels)), layout="constrained")
        """Matplotlib's own"""
        FigureCanvasAgg(self.figure)
        axes = self.figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axis, panel in zip(axes, panels):
            _draw(axis, panel)
        axes[-1].set_xlabel("time [s]", fontsize=9)
        self.figure.align_ylabels(list(axes))
        if title:
            self.figure.suptitle(title, fontsize=11)
        self._labels = [panel.label for panel in panels]

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a file, .png, .pdf or .svg."""
        path = check_new(path, overwrite=overwrite, kinds=KINDS)
        with replacing(path) as temporary:
            self.write(temporary, path.suffix[1:].lower())

    def write(self, file: Path | BinaryIO, kind: str = "png") -> None:
        """Write a picture, whatever is there."""
        self.figure.savefig(file, dpi=140, format=kind)

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.figure.savefig(out, dpi=90, format="png")
        return out.getvalue()

    def __repr__(self) -> str:
        return f"Plot({', '.join(self._labels)})"


def _draw(axis: Any, panel: Panel) -> None:
    if panel.stacked:
        _stack(axis, panel)
    else:
        seen = [panel.log and np.any(np.asarray(y) > 0.0) for _, y in panel.curves.values()]
        for k, (name, (x, y)) in enumerate(panel.curves.items()):
            values = np.where(np.asarray(y) > 0.0, y, np.nan) if panel.log else y
            axis.plot(x, values, color=COLORS[k % len(COLORS)], linewidth=1.2, label=name if k < MOST else None)
        if any(seen):
            axis.set_yscale("log")
    if len(panel.curves) > 1 or panel.named:
        axis.legend(frameon=False, fontsize=8, loc="best", ncols=1 + (len(panel.curves) > 6))
    axis.set_ylabel(panel.label, fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(True, color="0.92", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(x=0.01)


def _stack(axis: Any, panel: Panel) -> None:
    names = list(panel.curves)
    x = panel.curves[names[0]][0]
    start = np.unique(np.linspace(0, len(x), COLUMNS + 1).astype(int))[:-1]
    count = np.diff(np.append(start, len(x)))
    heights = [np.add.reduceat(panel.curves[name][1], start) / count for name in names]
    axis.stackplot(x[start], heights, labels=names, colors=[COLORS[k % len(COLORS)] for k in range(len(names))], lw=0)
    axis.set_ylim(
        0.0, 1.3 * max(float(np.percentile(np.sum(heights, axis=0), 98)), 1e-6)
    )  # the first steps may be slow
