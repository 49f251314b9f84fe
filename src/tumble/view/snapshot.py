"""What there is to look at at one time: the bodies of a simulation, or of a frame of a trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import checks
from ..errors import FileError, OptionsError, message
from ..observe.layout import joint_places
from ..scene import rotation
from ..scene.model import Model

__all__ = ["Snapshot", "frame_at", "snapshot"]


@dataclass(frozen=True)
class Snapshot:
    """n bodies, in the frames that the user gave."""

    source: Any
    """The `Trajectory` or `Simulation`"""
    model: Any
    """`Model` or `StoredModel`"""
    frame: int | None
    time: float
    """[s]"""
    position: np.ndarray
    """(n, 3) [m]; of bodies that are not recorded 0"""
    orientation: np.ndarray
    """(n, 4)"""
    present: np.ndarray
    """(n,) bool: there, and recorded"""

    @cached_property
    def velocity(self) -> np.ndarray:
        """(n, 3) of the centres of mass [m/s]."""
        if self.frame is None:
            return self.source.velocities()
        out = np.zeros((len(self.present), 3))
        out[self.source.bodies] = self.source.read("velocity", self.frame)
        return out

    @cached_property
    def contacts(self) -> Mapping[str, np.ndarray]:
        """body_a, body_b, point, normal, force of the contacts of the last step."""
        if self.frame is not None:
            return self.source.contacts(self.frame)
        if self.source.last is None:
            rule = "contact forces are those of a step"
            raise OptionsError(message("Simulation.render", rule, "none yet", "Take a step, or colour by speed."))
        found = self.source.contact_forces()
        return {name: getattr(found, name) for name in ("body_a", "body_b", "point", "normal", "force")}

    @cached_property
    def load(self) -> np.ndarray:
        """(n,) sum of the magnitudes of the contact forces on each body [N]."""
        size = np.linalg.norm(self.contacts["force"], axis=1)
        count = len(self.present)
        on_a, on_b = (np.bincount(self.contacts[side], size, count) for side in ("body_a", "body_b"))
        return on_a + on_b

    @cached_property
    def joints(self) -> np.ndarray:
        """(e, 2, 3) where joints, motors and springs are, on each of their two bodies [m]."""
        model = self.model
        body, place = joint_places(model) if isinstance(model, Model) else (model.joint_body, model.joint_place)
        if body is None or not len(body):
            return np.zeros((0, 2, 3))
        flat = np.asarray(body).ravel()
        world = rotation.rotate(self.orientation[flat], np.asarray(place).reshape(-1, 3)) + self.position[flat]
        return world.reshape(-1, 2, 3)[self.present[np.asarray(body)].all(axis=1)]


def snapshot(source: Any, frame: int | None = None) -> Snapshot:
    """Of a `Simulation` now, or of a frame of a `Trajectory` (negative ones count from the end)."""
    if hasattr(source, "positions"):
        present = np.asarray(source.present(), bool)
        return Snapshot(source, source.model, None, source.time, source.positions(), source.orientations(), present)
    count = len(source.model.body_kind)
    if not source.frames:
        raise FileError(message(str(source.path), "needs a frame", "none", "Wait until the run has written one."))
    number = checks.integer(f"{source.path}: frame", -1 if frame is None else frame, at_least=-(2**63))
    number += source.frames if number < 0 else 0
    if not 0 <= number < source.frames:
        remedy = f"The nearest is {min(max(number, 0), source.frames - 1)}."
        rule = f"has frames 0 to {source.frames - 1}"
        raise FileError(message(str(source.path), rule, f"frame {frame}", remedy))
    position, orientation = np.zeros((count, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    position[source.bodies] = source.read("position", number)
    orientation[source.bodies] = source.read("orientation", number)
    recorded = np.zeros(count, bool)
    recorded[source.bodies] = True
    present = recorded & source.present(number)
    return Snapshot(source, source.model, number, float(source.times[number]), position, orientation, present)


def frame_at(trajectory: Any, time: float) -> int:
    """The frame nearest to a time [s] of the run."""
    times = trajectory.times
    time = checks.number(f"{trajectory.path}: time", time, unit="s")
    if not len(times):
        raise FileError(message(str(trajectory.path), "needs a frame", "none", "Wait until the run has written one."))
    low, high = float(times[0]), float(times[-1])
    if not low - 1e-9 <= time <= high * (1 + 1e-9) + 1e-9:
        rule, remedy = f"runs from {low:g} to {high:g} s", f"The nearest is {min(max(time, low), high):g} s."
        raise FileError(message(str(trajectory.path), rule, f"time {time:g} s", remedy))
    return int(np.argmin(np.abs(times - time)))
