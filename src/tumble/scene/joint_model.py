"""Joints, motors, gears and springs as flat arrays: coordinates between frames, and rows made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..checks import nearest
from ..enums import RowRole
from ..errors import SceneError, message

__all__ = ["Controller", "Element", "JointModel", "Motor"]

ELIMINATED = [role for role in RowRole if role.is_eliminated]
Target = float | Callable[[float], float]
"""A number, or a function of the time [s]."""


@dataclass(frozen=True, slots=True)
class Element:
    """A joint, gear, motor, limit set or spring: some rows with a name."""

    name: str
    kind: str
    """revolute, gear, motor, spring ..."""
    frame: int
    """Its pair of frames; a gear's first"""
    bodies: tuple[int, int]
    turn: int
    """Coordinate of its angle [rad], or -1"""
    slide: int
    """Coordinate of its slide or length [m], or -1"""


@dataclass(frozen=True, slots=True)
class Motor:
    """What a motor wants of a coordinate."""

    name: str
    element: int
    coordinate: int
    mode: str
    """speed, position or torque"""
    row: int
    """Its row, or -1 for a torque"""
    target: Target


@dataclass(frozen=True)
class Controller:
    """A function called once a step: targets = callback(time, values, speeds), arrays over its motors."""

    callback: Callable[[float, np.ndarray, np.ndarray], np.ndarray]
    motors: np.ndarray


@dataclass(frozen=True)
class JointModel:
    """All mechanism of a scene: k pairs of frames, c coordinates, r rows."""

    frame_body: np.ndarray
    """(k, 2) int32"""
    frame_position: np.ndarray
    """(2 k, 3) origins of frames A and B in their bodies' principal frames [m]"""
    frame_orientation: np.ndarray
    """(2 k, 4)"""
    coord_kind: np.ndarray
    """(c,) int64, see `kernels.joints`"""
    coord_frame: np.ndarray
    """(c,) int64"""
    coord_axis: np.ndarray
    """(c, 2) int64"""
    coord_start: np.ndarray
    """(c,) what angles read at the start, to the nearest turn [rad]; 0 where nothing is said"""
    row_role: np.ndarray
    """(r,) int8, `RowRole`"""
    row_element: np.ndarray
    """(r,) int32"""
    row_coord: np.ndarray
    """(r, 2) int64, the second -1 where there is none"""
    row_weight: np.ndarray
    """(r, 2): the row is weight . coordinates - offset"""
    row_offset: np.ndarray
    """(r,) [m or rad]; a gear's is set so that it holds at the start"""
    row_stiffness: np.ndarray
    """(r,) [N/m or N m/rad]; 0 with no damping: rigid"""
    row_damping: np.ndarray
    """(r,) [N s/m or N m s/rad]"""
    row_most: np.ndarray
    """(r,) largest force or torque of a bounded row [N or N m]"""
    row_motor: np.ndarray
    """(r,) int32, -1 where the row is no motor's"""
    elements: tuple[Element, ...]
    motors: tuple[Motor, ...]
    controllers: tuple[Controller, ...]

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def row_count(self) -> int:
        """Number of rows r."""
        return len(self.row_role)

    @property
    def coord_count(self) -> int:
        """Number of coordinates c."""
        return len(self.coord_kind)

    @property
    def names(self) -> list[str]:
        """Names of the elements."""
        return [e.name for e in self.elements]

    @cached_property
    def _elements(self) -> dict[str, int]:
        return {e.name: k for k, e in enumerate(self.elements)}

    @cached_property
    def _motors(self) -> dict[str, int]:
        return {m.name: k for k, m in enumerate(self.motors)}

    def element(self, name: str) -> int:
        """Number of the element with this name."""
        if name in self._elements:
            return self._elements[name]
        raise SceneError(message("joints", "unknown joint", repr(name), nearest(name, self.names)))

    def motor(self, name: str) -> int:
        """Number of the motor with this name."""
        if name in self._motors:
            return self._motors[name]
        raise SceneError(message("motors", "unknown motor", repr(name), nearest(name, [m.name for m in self.motors])))

    @property
    def equality_rows(self) -> np.ndarray:
        """Rows that are eliminated."""
        return np.flatnonzero(np.isin(self.row_role, ELIMINATED))

    @property
    def bounded_rows(self) -> np.ndarray:
        """Rows that stay in the cone problem."""
        return np.flatnonzero(~np.isin(self.row_role, ELIMINATED))
