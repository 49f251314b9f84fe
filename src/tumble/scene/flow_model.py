"""Emitters, sinks and measuring planes of a model."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from .regions import BoxRegion, Region, across

__all__ = ["Emitter", "FlowModel", "MeasuringPlane", "Sink"]

EMITTER_COLUMNS = ("placed", "placed_mass", "waiting")
SINK_COLUMNS = ("removed", "removed_mass")
PLANE_COLUMNS = ("bodies_forward", "bodies_backward", "mass_forward", "mass_backward")


@dataclass(frozen=True, eq=False)
class Emitter:
    """Lets bodies `first` to `first + count - 1` appear, one after the other."""

    name: str
    first: int
    count: int
    region: Region
    rate: float
    """[bodies/s or kg/s]"""
    amount: np.ndarray = field(repr=False)
    """(count,) how much comes before each body [bodies or kg], rising from 0: the first is due at the start"""
    velocity: np.ndarray
    """(3,) [m/s]"""
    angular_velocity: np.ndarray
    """(3,) in world axes [rad/s]"""
    orientation: np.ndarray | None
    """(4,), None: at random"""
    start: float
    """[s]"""
    seed: int

    def due(self, time: float) -> int:
        """Bodies that should have appeared by a time [s]."""
        amount = self.rate * (time - self.start)
        # Times are sums of steps: what is due at 1 s must not wait for a step because of rounding.
        return int(np.searchsorted(self.amount, amount + 1e-9 * max(amount, self.rate * abs(time)), side="right"))


@dataclass(frozen=True, eq=False)
class Sink:
    """Takes away bodies whose centres lie behind a plane, in a box or outside one."""

    name: str
    point: np.ndarray | None = None
    """(3,) of the plane [m], None where a box is given"""
    normal: np.ndarray | None = None
    """(3,) unit vector"""
    box: BoxRegion | None = None
    outside: bool = False

    def takes(self, center: np.ndarray) -> np.ndarray:
        """Whether bodies with centres (k, 3) are taken (k,)."""
        if self.box is None:
            return (center - self.point) @ self.normal < 0.0
        return self.box.contains(center) != self.outside


@dataclass(frozen=True, eq=False)
class MeasuringPlane:
    """Counts the bodies whose centres cross it, both ways."""

    name: str
    point: np.ndarray
    """(3,) a point of it, the middle of a disc or rectangle [m]"""
    normal: np.ndarray
    """(3,) unit vector: forward"""
    radius: float | None = None
    """Of a disc [m]"""
    size: tuple[float, float] | None = None
    """Sides of a rectangle, along `axis` and across [m]"""
    axis: np.ndarray | None = None
    """(3,)"""

    def height(self, center: np.ndarray) -> np.ndarray:
        """Distance (k,) of centres (k, 3) in front of the plane [m]."""
        return (center - self.point) @ self.normal

    def holds(self, point: np.ndarray) -> np.ndarray:
        """Whether points (k, 3) of the endless plane belong to the part that counts (k,)."""
        arm = point - self.point
        if self.radius is not None:
            arm = arm - (arm @ self.normal)[:, None] * self.normal
            return (arm**2).sum(axis=1) <= self.radius**2
        if self.size is None:
            return np.ones(len(point), bool)
        u, v = across(self.normal, self.axis)
        return (np.abs(arm @ u) <= 0.5 * self.size[0]) & (np.abs(arm @ v) <= 0.5 * self.size[1])


@dataclass(frozen=True, eq=False)
class FlowModel:
    """What comes into a scene, leaves it and is counted on its way."""

    emitters: tuple[Emitter, ...] = ()
    sinks: tuple[Sink, ...] = ()
    planes: tuple[MeasuringPlane, ...] = ()
    keep: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Bodies that sinks leave alone: those of joints, motors and springs"""

    @property
    def changes(self) -> bool:
        """Whether bodies come or go."""
        return bool(self.emitters or self.sinks)

    @functools.cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the totals in `State.flow`, for each emitter, sink and plane in order."""
        groups = ((self.emitters, EMITTER_COLUMNS), (self.sinks, SINK_COLUMNS), (self.planes, PLANE_COLUMNS))
        return tuple(f"{e.name}.{column}" for elements, columns in groups for e in elements for column in columns)

    def facts(self) -> dict[str, list[dict[str, Any]]]:
        """All settings as plain values."""
        groups = {"emitters": self.emitters, "sinks": self.sinks, "planes": self.planes}
        return {
            group: [{f.name: _plain(getattr(e, f.name)) for f in fields(e) if f.name != "amount"} for e in elements]
            for group, elements in groups.items()
        }


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Region):
        return {"type": type(value).__name__} | {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return list(value) if isinstance(value, tuple) else value
