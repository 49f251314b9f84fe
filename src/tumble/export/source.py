"""What there is to export: recorded bodies with their shapes, frame by frame."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from ..enums import BodyKind, ShapeKind
from ..errors import OptionsError, message
from ..observe.trajectory import Trajectory
from ..scene import rotation

__all__ = ["Frame", "Source", "needed"]


def needed(module: str, package: str, extra: str) -> ModuleType:
    """A library that only some formats take."""
    try:
        return importlib.import_module(module)
    except ImportError as cause:
        remedy = f"Run pip install 'tumble[{extra}]'."
        raise OptionsError(message("export", f"needs the package {package}", "not installed", remedy)) from cause


@dataclass(frozen=True)
class Frame:
    """One recorded moment of k bodies; what was not recorded is None."""

    index: int
    time: float
    step: int
    position: np.ndarray
    """(k, 3) of the bodies' frames [m]"""
    orientation: np.ndarray
    """(k, 4) w, x, y, z"""
    velocity: np.ndarray | None
    """(k, 3) of the centres of mass [m/s]"""
    angular_velocity: np.ndarray | None
    """(k, 3) in world axes [rad/s]"""
    present: np.ndarray
    """(k,) bool"""
    contacts: dict[str, np.ndarray]
    """Empty where none were recorded"""


class Source:
    """A trajectory as exports see it."""

    def __init__(self, run: Trajectory) -> None:
        self.run, self.model = run, run.model
        missing = [f for f in ("position", "orientation") if f not in run.fields]
        if missing:
            raise OptionsError(
                message(
                    str(run.path),
                    "an export needs position and orientation",
                    f"{', '.join(run.fields) or 'nothing'} recorded",
                    "Record them with Save.fields.",
                )
            )
        self.bodies = run.bodies
        row = np.full(len(self.model.body_kind), -1)
        row[self.bodies] = np.arange(len(self.bodies))
        self.shapes = np.flatnonzero(row[self.model.shape_body] >= 0)
        """(s,) shapes of the recorded bodies"""
        self.owner = row[self.model.shape_body[self.shapes]]
        """(s,) row of each shape's body"""

    @property
    def has_contacts(self) -> bool:
        """Whether contacts were recorded."""
        return "contacts" in self.run.fields

    @cached_property
    def names(self) -> list[str]:
        """(k,) names of the bodies."""
        out = [f"body{i}" for i in range(len(self.model.body_kind))]
        for name, first, count in self.model.names:
            for i in range(count):
                out[first + i] = name if count == 1 else f"{name}[{i}]"
        return [out[b] for b in self.bodies]

    @property
    def kind(self) -> np.ndarray:
        """(s,) `ShapeKind`"""
        return self.model.shape_kind[self.shapes]

    @property
    def parameters(self) -> np.ndarray:
        """(s, 4)"""
        return np.asarray(self.model.shape_parameters, float)[self.shapes]

    @property
    def entry(self) -> np.ndarray:
        """(s,) number in the pooled geometry, or -1"""
        return self.model.shape_geometry[self.shapes]

    @cached_property
    def local(self) -> tuple[np.ndarray, np.ndarray]:
        """Position (s, 3) and orientation (s, 4) of the shapes in the bodies' frames."""
        body = self.model.shape_body[self.shapes]
        turn, center = self.model.body_axes[body], self.model.body_center[body]
        place = center + rotation.rotate(turn, self.model.shape_position[self.shapes])
        return place, rotation.multiply(turn, self.model.shape_orientation[self.shapes])

    def placed(self, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
        """Position (s, 3) and orientation (s, 4) of the shapes in the world."""
        place, turn = self.local
        axes = frame.orientation[self.owner]
        return frame.position[self.owner] + rotation.rotate(axes, place), rotation.multiply(axes, turn)

    def frame(self, index: int) -> Frame:
        """One frame of the file."""
        run = self.run
        read = {f: run.read(f, index) if f in run.fields else None for f in ("velocity", "angular_velocity")}
        return Frame(
            index,
            float(run.times[index]),
            int(run.steps[index]),
            run.read("position", index),
            run.read("orientation", index),
            read["velocity"],
            read["angular_velocity"],
            run.present(index)[self.bodies],
            run.contacts(index) if self.has_contacts else {},
        )

    @property
    def mass(self) -> np.ndarray:
        """(k,) [kg], 0 for bodies that are not dynamic."""
        return np.asarray(self.model.body_mass, float)[self.bodies]

    @property
    def dynamic(self) -> np.ndarray:
        """(k,) bool"""
        return np.asarray(self.model.body_kind)[self.bodies] == BodyKind.DYNAMIC

    def reach(self, indices: Sequence[int]) -> float:
        """How far from the origin anything but half-spaces comes in some frames [m]."""
        finite = self.kind != ShapeKind.HALF_SPACE
        some = [self.frame(i) for i in indices]
        far = [np.abs(self.placed(f)[0][finite & f.present[self.owner]]).max(initial=0.0) for f in some]
        return float(max(far, default=0.0) + self.bound[finite].max(initial=0.0)) or 1.0

    @cached_property
    def bound(self) -> np.ndarray:
        """(s,) radius about the origin of each shape's frame that holds the shape [m]; 0 for half-spaces."""
        kind, parameters, entry, geometry = self.kind, self.parameters, self.entry, self.model.geometry
        out = np.linalg.norm(parameters[:, :3], axis=1) + parameters[:, 3]
        for s in np.flatnonzero(np.isin(kind, (ShapeKind.HULL, ShapeKind.MESH, ShapeKind.HEIGHT_FIELD))):
            out[s] = _farthest(int(kind[s]), parameters[s], int(entry[s]), geometry)
        out[kind == ShapeKind.HALF_SPACE] = 0.0
        return out


def _farthest(kind: int, parameters: np.ndarray, entry: int, geometry: Any) -> float:
    """Distance of the farthest point of a pooled surface from its origin [m]."""
    if kind == ShapeKind.HEIGHT_FIELD:
        half = parameters[:2] * (geometry.field_shape[entry] - 1) / 2
        return float(np.linalg.norm([*half, np.abs(parameters[2:]).max()]))
    if kind == ShapeKind.HULL:
        points = geometry.hull_point[geometry.hull_start[entry] : geometry.hull_start[entry + 1]]
        return float(np.linalg.norm(points, axis=1).max() + parameters[3])
    triangle = geometry.mesh_triangle[geometry.mesh_start[entry] : geometry.mesh_start[entry + 1]]
    return float(np.linalg.norm(geometry.mesh_point[triangle.min() : triangle.max() + 1], axis=1).max())
