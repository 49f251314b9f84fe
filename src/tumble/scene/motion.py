"""Prescribed motions of kinematic bodies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..errors import SceneError, message

__all__ = ["Motion", "Oscillation", "first_pose", "motion_pose"]

Motion = Callable[[float], tuple[np.ndarray, np.ndarray]]
"""A motion maps the time [s] to the pose of the body's frame: position (3,) [m] and orientation (4,).

The step moves the body exactly from pose(t) to pose(t + h); others feel the mean velocity of that step.
"""


@dataclass(frozen=True, kw_only=True)
class Oscillation:
    """Harmonic shaking: position + amplitude sin(2 pi (t - start) / period) from `start` on, at rest before."""

    amplitude: tuple[float, float, float]
    """Largest displacement (3,) [m]."""
    period: float
    """[s]"""
    start: float = 0.0
    """[s]"""
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Place about which the body's frame swings [m]."""
    orientation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "amplitude", tuple(checks.vector("Oscillation.amplitude", self.amplitude).tolist()))
        checks.number("Oscillation.period", self.period, above=0.0, unit="s", error=SceneError)
        checks.number("Oscillation.start", self.start, unit="s", error=SceneError)
        object.__setattr__(self, "position", tuple(checks.vector("Oscillation.position", self.position).tolist()))
        q = checks.quaternion("Oscillation.orientation", self.orientation)
        object.__setattr__(self, "orientation", tuple(q.tolist()))

    def __call__(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        phase = math.sin(2.0 * math.pi * (time - self.start) / self.period) if time > self.start else 0.0
        return np.array(self.position) + phase * np.array(self.amplitude), np.array(self.orientation)


def first_pose(where: str, motion: Any, **velocities: Any) -> tuple[np.ndarray, np.ndarray]:
    """Pose of what the user gave as a motion at time 0; velocities beside it must be zero."""
    if not callable(motion):
        raise SceneError(
            message(
                where + ".motion",
                "must be a function of time",
                checks.short(motion),
                "It returns a position (3,) and an orientation (4,); see Oscillation.",
            )
        )
    if any(np.any(checks.vector(f"{where}.{name}", value)) for name, value in velocities.items()):
        raise SceneError(
            message(
                where,
                "takes a motion or velocities, not both",
                f"velocity={velocities['velocity']}",
                "Leave the velocities out.",
            )
        )
    return motion_pose(where, motion, 0.0)


def motion_pose(where: str, motion: Motion, time: float) -> tuple[np.ndarray, np.ndarray]:
    """Pose of a motion at a time, checked."""
    try:
        position, orientation = motion(time)
    except (TypeError, ValueError) as cause:
        raise SceneError(
            message(
                where + ".motion",
                "must return a position and an orientation",
                f"{type(cause).__name__}: {cause}",
                "See tumble.Oscillation for an example.",
            )
        ) from cause
    return (
        checks.array(where + ".motion position", position, (3,)),
        checks.quaternion(where + ".motion orientation", orientation),
    )
