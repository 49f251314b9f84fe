"""What the experiments with grains share: radii, starts without overlap, and how accurate their runs were."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import tumble as tb

from ..errors import FileError, message
from ..scene.model import ContactMemory

PITCH = 2.2
"""Distance of the columns and layers at the start [mean radii]."""
JITTER = 0.05
"""Each grain starts at most this far from its place in every direction [mean radii], so that no crystal forms."""


class Bed(NamedTuple):
    """Grains at some moment."""

    radius: np.ndarray
    """(n,) [m]"""
    position: np.ndarray
    """(n, 3) [m]"""
    velocity: np.ndarray
    """(n, 3) [m/s]"""
    spin: np.ndarray
    """(n, 3) [rad/s]"""
    contact: np.ndarray
    """(3, k) int64, keys of the contacts"""
    force: np.ndarray
    """(3, k) of the contacts, in world axes [N]. A scene that goes on without them is not at rest: in a deep bed the
    first solves find them only in part."""


def loose_bed(radius: np.ndarray, position: np.ndarray) -> Bed:
    """Grains that rest in the air: radius (n,), position (n, 3) [m]."""
    still = np.zeros_like(position)
    return Bed(radius, position, still, still.copy(), np.zeros((3, 0), np.int64), np.zeros((3, 0)))


def bed_of(sim: tb.Simulation, radius: np.ndarray) -> Bed:
    """The grains (n of them) of a scene with one other body, the first."""
    m = sim.state.memory
    contact, force = np.stack([m.uid_a, m.uid_b, m.feature]), m.impulse / sim.options.dt
    return Bed(radius, sim.positions()[1:], sim.velocities()[1:], sim.angular_velocities()[1:], contact, force)


def memory_of(bed: Bed, dt: float) -> ContactMemory:
    """What the contacts of a bed remember in steps of dt [s]. Bodies keep their keys where new ones are added last."""
    uid_a, uid_b, feature = bed.contact
    return ContactMemory(uid_a, uid_b, feature, bed.force * dt)


def keep_bed(path: Path, key: str, settle: Callable[[], tuple[Bed, dict[str, float]]]) -> tuple[Bed, dict[str, float]]:
    """A settled bed and its metrics, taken from the file if that holds the one of the same key, else made and written.

    A long experiment that was interrupted does not settle again. key: all that the bed depends on, in words.
    """
    key = f"tumble {tb.__version__} {Bed._fields} {key}"
    if path.exists():
        with np.load(path) as stored:
            if str(stored["key"]) == key:
                names = [str(name) for name in stored["names"]]
                return Bed(*(stored[f] for f in Bed._fields)), dict(zip(names, stored["values"].tolist()))
    bed, metrics = settle()
    try:
        np.savez(path, key=key, names=list(metrics), values=list(metrics.values()), **bed._asdict())
    except OSError as cause:
        raise FileError(message(str(path), "must be writable", cause, "Check the folder.")) from cause
    return bed, metrics


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
