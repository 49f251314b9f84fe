"""Emitters that let in several kinds of bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..errors import SceneError, message
from .mass import mass_properties
from .shapes import Placed, as_placed

__all__ = ["Mixture", "mixed", "scaled_shape", "scales"]


@dataclass(frozen=True)
class Mixture:
    """Several kinds of bodies in one emitter, drawn at random."""

    kinds: Sequence[Any]
    """Shapes of each kind, what `add_body` takes: a shape, a `Placed` one or a list of them (a compound)."""
    weights: Sequence[float] | None = None
    """How often each kind comes, by number of bodies; all alike if left out."""
    size_ranges: Sequence[Sequence[float]] | None = None
    """(low, high) of each kind: its bodies are scaled by a factor from this range; (1, 1) if left out."""

    def __post_init__(self) -> None:
        if not isinstance(self.kinds, (list, tuple)) or not self.kinds:
            remedy = "For example Mixture([Sphere(0.02), Box((0.1, 0.1, 0.1))])."
            raise SceneError(message("Mixture.kinds", "must be a list of kinds", checks.short(self.kinds), remedy))
        if self.weights is not None:
            weights = checks.array("Mixture.weights", self.weights, (len(self.kinds),))
            if np.any(weights < 0.0) or not weights.sum() > 0.0:
                raise SceneError(
                    message("Mixture.weights", "must be >= 0, one of them > 0", weights.tolist(), "Correct them.")
                )
        if self.size_ranges is not None:
            checks.array("Mixture.size_ranges", self.size_ranges, (len(self.kinds), 2))


def scales(
    where: str, shapes: Sequence[Placed], center: np.ndarray, size_range: Any, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Factor (count,) of each body's size."""
    low, high = checks.array(where + ".size_range", size_range, (2,))
    if not 0.0 < low <= high:
        raise SceneError(
            message(where + ".size_range", "must be 0 < low <= high", f"{low}, {high}", "1 is the shape as given.")
        )
    if low == high == 1.0:
        return np.ones(count)
    if len(shapes) != 1 or shapes[0].shape.geometry is not None or np.any(center):
        raise SceneError(
            message(
                where + ".size_range",
                "takes one sphere, box, capsule, cylinder or ellipsoid at the origin",
                f"{len(shapes)} shapes, the first {shapes[0].shape!r}",
                "Use an emitter for each size, or a Mixture.",
            )
        )
    return rng.uniform(low, high, count)


def scaled_shape(shapes: Sequence[Placed], scale: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of `Batch` that differ from body to body."""
    if np.all(scale == 1.0):
        return {}
    shape = shapes[0].shape
    return {
        "parameters": np.asarray(shape.parameters, float) * scale[:, None, None],
        "bound": shape.bound * scale[:, None],
        "smallest": shape.smallest * scale[:, None],
    }


def mixed(
    where: str, mixture: Mixture, count: int, mass: float | None, density: float | None, rng: np.random.Generator
) -> dict[str, Any]:
    """Bodies of a mixture as columns of a batch in which each body has its own shapes."""
    kinds = [as_placed(f"{where}.kinds[{i}]", kind) for i, kind in enumerate(mixture.kinds)]
    units = [mass_properties(f"{where}.kinds[{i}]", k, mass=mass, density=density) for i, k in enumerate(kinds)]
    weights = np.ones(len(kinds)) if mixture.weights is None else np.asarray(mixture.weights, float)
    chosen = rng.choice(len(kinds), count, p=weights / weights.sum())
    ranges = [(1.0, 1.0)] * len(kinds) if mixture.size_ranges is None else mixture.size_ranges
    factor = np.ones(count)
    for i, (placed, unit, size) in enumerate(zip(kinds, units, ranges)):
        rows = np.flatnonzero(chosen == i)
        factor[rows] = scales(f"{where}.kinds[{i}]", placed, unit.center, size, len(rows), rng)
    own = [kinds[i] for i in chosen]
    owner = np.repeat(np.arange(count), [len(shapes) for shapes in own])
    flat = [p for shapes in own for p in shapes]
    grown = factor[owner]
    parameters = np.array([p.shape.parameters for p in flat], float) * grown[:, None]
    return {
        "shapes": tuple(flat),
        "owner": owner,
        "mass": np.array([units[i].mass for i in chosen]) * factor**3,
        "inertia": np.array([units[i].moments for i in chosen]) * (factor**5)[:, None],
        "center": np.array([units[i].center for i in chosen]),
        "axes": np.array([units[i].axes for i in chosen]),
        "parameters": parameters[None],
        "bound": (np.array([p.shape.bound for p in flat]) * grown)[None],
        "smallest": (np.array([p.shape.smallest for p in flat]) * grown)[None],
    }
