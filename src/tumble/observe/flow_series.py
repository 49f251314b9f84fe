"""What passed a measuring plane, over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .. import checks
from ..errors import OptionsError, message
from ..scene.flow_model import PLANE_COLUMNS
from ..showing import Shown

__all__ = ["FlowSeries", "flow_series"]


@dataclass(frozen=True, repr=False)
class FlowSeries(Shown):
    """Totals since the start of the run, one of each for each of k steps."""

    time: np.ndarray
    """(k,) [s]"""
    bodies_forward: np.ndarray
    """(k,) bodies that crossed along the normal"""
    bodies_backward: np.ndarray
    """(k,) against it"""
    mass_forward: np.ndarray
    """(k,) [kg]"""
    mass_backward: np.ndarray
    """(k,) [kg]"""

    @property
    def mass(self) -> np.ndarray:
        """(k,) forward less backward [kg]."""
        return self.mass_forward - self.mass_backward

    def rate(self, window: float) -> np.ndarray:
        """(k,) mass flow, the mean over the last `window` seconds, or over what there is of them [kg/s]."""
        window = checks.number("FlowSeries.rate.window", window, above=0.0, unit="s")
        time, mass = np.concatenate([[0.0], self.time]), np.concatenate([[0.0], self.mass])
        since = np.maximum(self.time - window, 0.0)
        return (self.mass - np.interp(since, time, mass)) / np.maximum(self.time - since, np.finfo(float).tiny)

    def mean_rate(self, start: float = 0.0, end: float | None = None) -> float:
        """Mean mass flow between two times [kg/s]."""
        end = float(self.time[-1]) if end is None and len(self.time) else end
        if end is None or not end > start:
            raise OptionsError(
                message("FlowSeries.mean_rate", "needs start < end", f"{start}, {end}", "Give times of the run.")
            )
        time, mass = np.concatenate([[0.0], self.time]), np.concatenate([[0.0], self.mass])
        return float(np.diff(np.interp([start, end], time, mass))[0]) / (end - start)


def flow_series(where: str, reports: Mapping[str, np.ndarray], plane: str) -> FlowSeries:
    """The columns of a measuring plane."""
    if f"{plane}.{PLANE_COLUMNS[0]}" not in reports:
        known = [c.removesuffix("." + PLANE_COLUMNS[0]) for c in reports if c.endswith("." + PLANE_COLUMNS[0])]
        raise OptionsError(message(where, "unknown measuring plane", repr(plane), checks.nearest(plane, known)))
    return FlowSeries(reports["time"], *(reports[f"{plane}.{c}"] for c in PLANE_COLUMNS))
