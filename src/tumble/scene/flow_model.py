"""Emitters, sinks and measuring planes of a model."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from .regions import BoxRegion, Region, across

__all__ = ["Emitter", "FlowModel", "MeasuringPlane", "Sink"]

EMITTER_COLUMNS = ("placed", "placed_mass", "waiting")
SINK_COLUMNS = ("removed", "removed_mass")
PLANE_COLUMNS = ("bodies_forward", "bodies_backward", "mass_forward", "mass_backward")


class SinkArrays(NamedTuple):
    """A sink as `kernels.passing.taken` reads it; vectors (3,)."""

    planar: bool
    point: np.ndarray
    normal: np.ndarray
    low: np.ndarray
    high: np.ndarray
    outside: bool


class MeasuringArrays(NamedTuple):
    """A measuring plane as `kernels.passing.crossed` reads it; vectors (3,)."""

    point: np.ndarray
    normal: np.ndarray
    u: np.ndarray
    v: np.ndarray
    sides: tuple[float, float]  # along u and v, negative: endless
    radius: float  # negative: no disc


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

    @property
    def arrays(self) -> SinkArrays:
        """For the formula that asks each body."""
        none, (low, high) = np.zeros(3), (np.zeros((2, 3)) if self.box is None else self.box.box)
        point, normal = (none, none) if self.box is not None else (np.array(self.point), np.array(self.normal))
        return SinkArrays(self.box is None, point, normal, np.array(low), np.array(high), self.outside)


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

    @property
    def arrays(self) -> MeasuringArrays:
        """For the formula that asks each body."""
        u, v = (np.zeros(3), np.zeros(3)) if self.size is None else across(self.normal, self.axis)
        sides = (-1.0, -1.0) if self.size is None else (float(self.size[0]), float(self.size[1]))
        radius = -1.0 if self.radius is None else float(self.radius)
        return MeasuringArrays(np.array(self.point), np.array(self.normal), np.array(u), np.array(v), sides, radius)


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
