"""What the experiments with grains share: radii, starts without overlap, and how accurate their runs were."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import tumble as tb

PITCH = 2.2
"""Distance of the columns and layers at the start [mean radii]."""
JITTER = 0.05
"""Each grain starts at most this far from its place in every direction [mean radii], so that no crystal forms."""


def radii_of(count: int, radius: float, spread: float, seed: int) -> np.ndarray:
    """Radii (count,) [m], uniform between (1 - spread) and (1 + spread) times the mean."""
    return radius * np.random.default_rng([seed, 1]).uniform(1.0 - spread, 1.0 + spread, count)


def reach(radius: float, spread: float) -> float:
    """How far the surface of a grain can lie from its place in the grid [m]."""
    return (1.0 + spread + JITTER) * radius


def pitch(radius: float, spread: float) -> float:
    """Distance of the places [m]: no two grains overlap."""
    return max(PITCH, 2.0 * (1.0 + spread + JITTER)) * radius


def columns(width: float, radius: float, spread: float) -> int:
    """Columns of grains that fit in a width [m]; less than one where none does."""
    return int((width - 2.0 * reach(radius, spread)) / pitch(radius, spread) + 1.0 + 1e-9)


def grid(size: tuple[int, int, int], radius: float, spread: float, seed: int) -> np.ndarray:
    """Jittered places (n, 3) [m] of grains, centred in x and y, the lowest layer just above z = 0."""
    return tb.grid_points(
        size,
        pitch(radius, spread),
        jitter=JITTER * radius,
        seed=seed,
        origin=(0.0, 0.0, reach(radius, spread)),
    )


def accuracy(results: Iterable[tb.RunResult], prefix: str = "") -> dict[str, float]:
    """How well the steps of some runs were solved, and what they cost."""
    found = list(results)
    column = {
        name: np.concatenate([r.reports[name] for r in found])
        for name in ("largest_overlap", "natural_map", "iterations", "contacts")
    }
    values = {
        "largest_overlap": column["largest_overlap"].max(),
        "median_natural_map": np.median(column["natural_map"]),
        "worst_natural_map": column["natural_map"].max(),
        "mean_iterations": column["iterations"].mean(),
        "mean_contacts": column["contacts"].mean(),
        "steps": len(column["contacts"]),
        "unconverged_steps": sum(r.unconverged for r in found),
        "seconds": sum(r.seconds for r in found),
    }
    return {prefix + key: float(value) for key, value in values.items()}
