"""Prescribed motions of kinematic bodies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..errors import SceneError, message
from . import rotation

__all__ = ["Conveyor", "Motion", "Oscillation", "SurfaceVelocity", "conveyor", "first_pose", "motion_pose"]

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


@dataclass(frozen=True, kw_only=True)
class SurfaceVelocity:
    """How the surface of a body runs along it while the body stays, or moves, as it does: belts, rollers, turntables.

    velocity + angular_velocity x (x - point) at a point x, in world axes as the scene stands; a body that moves carries
    it along. What it has along the normal of a contact does not push.
    """

    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """[m/s]"""
    angular_velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """[rad/s]"""
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """About which it turns [m]"""
    factor: Callable[[float], float] | None = None
    """Of both velocities, a function of the time [s]: belts that start and stop. None: 1"""

    def __post_init__(self) -> None:
        for name in ("velocity", "angular_velocity", "point"):
            value = checks.vector(f"SurfaceVelocity.{name}", getattr(self, name))
            object.__setattr__(self, name, tuple(value.tolist()))
        if self.factor is not None and not callable(self.factor):
            got, remedy = checks.short(self.factor), "For example lambda t: min(t, 1)."
            raise SceneError(message("SurfaceVelocity.factor", "must be a function of time", got, remedy))


@dataclass(frozen=True)
class Conveyor:
    """A motion whose body has a surface velocity; without a motion of its own it stays."""

    surface: SurfaceVelocity
    position: tuple[float, ...]
    orientation: tuple[float, ...]
    motion: Motion | None = None

    def __call__(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        if self.motion is not None:
            return self.motion(time)
        return np.array(self.position), np.array(self.orientation)

    def twist(self, where: str, time: float, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
        """Velocity of the surface at the origin of the body's frame, and its angular velocity (6,), in world axes."""
        turn = rotation.multiply(orientation, rotation.conjugate(np.array(self.orientation)))
        arm = np.array(self.position) - self.surface.point
        spin = np.array(self.surface.angular_velocity)
        linear = np.array(self.surface.velocity) + np.cross(spin, arm)
        out = np.concatenate([rotation.rotate(turn, linear), rotation.rotate(turn, spin)])
        factor = 1.0 if self.surface.factor is None else self.surface.factor(time)
        return out * checks.number(f"{where}: factor of the surface velocity at t = {time:g} s", factor)


def surface_of(where: str, value: Any) -> SurfaceVelocity:
    """What the user gave as a surface velocity: a vector, a table or a `SurfaceVelocity`."""
    if isinstance(value, SurfaceVelocity):
        return value
    if isinstance(value, dict):
        unknown = [key for key in value if key not in SurfaceVelocity.__dataclass_fields__]
        if unknown:
            hint = checks.nearest(unknown[0], SurfaceVelocity.__dataclass_fields__)
            raise SceneError(message(f"{where}.surface_velocity", "unknown key", unknown[0], hint))
        return SurfaceVelocity(**value)
    x, y, z = checks.vector(f"{where}.surface_velocity", value).tolist()
    return SurfaceVelocity(velocity=(x, y, z))


def conveyor(
    where: str, surface: Any, motion: Motion | None, position: Any, orientation: Any, velocities: dict[str, Any]
) -> Conveyor:
    """The motion of a body whose surface runs; velocities beside it must be zero."""
    if motion is None and any(np.any(value) for value in velocities.values()):
        got, remedy = f"velocity={checks.short(velocities['velocity'])}", "Give the motion as a function of the time."
        raise SceneError(message(where, "takes a surface velocity with a motion, not velocities", got, remedy))
    place, turn = checks.vector(where + ".position", position), checks.quaternion(where + ".orientation", orientation)
    return Conveyor(surface_of(where, surface), tuple(place.tolist()), tuple(turn.tolist()), motion)


def first_pose(where: str, motion: Any, **velocities: Any) -> tuple[np.ndarray, np.ndarray]:
    """Pose of what the user gave as a motion at time 0; velocities beside it must be zero."""
    acting: Motion = motion
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
    return motion_pose(where, acting, 0.0)


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
