"""Orientations as people say them: axis and angle, Euler angles, where something looks. All are (w, x, y, z)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import checks
from ..errors import SceneError, message
from . import rotation

__all__ = ["axis_angle", "euler", "look_at", "rotation_of"]

AXES = {"x": np.array([1.0, 0.0, 0.0]), "y": np.array([0.0, 1.0, 0.0]), "z": np.array([0.0, 0.0, 1.0])}


def axis_angle(axis: ArrayLike, *, degrees: float | None = None, radians: float | None = None) -> np.ndarray:
    """Orientation (4,) of a turn about an axis (3,) of any length, by the right-hand rule."""
    along = checks.direction("axis_angle.axis", axis)
    return rotation.from_axis_angle(along, _angle("axis_angle", degrees, radians))


def euler(order: str, *, degrees: ArrayLike | None = None, radians: ArrayLike | None = None) -> np.ndarray:
    """Orientation (4,) of turns one after the other about the axes in `order`.

    Small letters ("xyz") are the world's axes, which stay; large ones ("ZYX": yaw, pitch, roll) those of the body,
    which turn along. As in `scipy.spatial.transform.Rotation.from_euler`.
    """
    known = isinstance(order, str) and 1 <= len(order) <= 3 and set(order.lower()) <= set(AXES)
    if not known or order not in (order.lower(), order.upper()):
        raise SceneError(
            message("euler.order", "must be up to three of x, y, z or of X, Y, Z", checks.short(order), 'Say "ZYX".')
        )
    given = (("degrees", degrees), ("radians", radians))
    name, values = _one_of("euler", given)
    angles = np.atleast_1d(checks.array(f"euler.{name}", np.atleast_1d(values), (len(order),)))
    out = rotation.IDENTITY
    for letter, angle in zip(order, np.deg2rad(angles) if name == "degrees" else angles):
        turn = rotation.from_axis_angle(AXES[letter.lower()], angle)
        out = rotation.multiply(out, turn) if letter.isupper() else rotation.multiply(turn, out)
    return out


def look_at(direction: ArrayLike, *, up: ArrayLike = (0.0, 0.0, 1.0), axis: str = "x") -> np.ndarray:
    """Orientation (4,) in which a body's x axis (or y, or z) points along a direction (3,), and the next but one of its
    axes (z for x, x for y, y for z) as far up as it can."""
    checks.choice("look_at.axis", axis, AXES, error=SceneError)
    forward = checks.direction("look_at.direction", direction)
    side = np.cross(checks.direction("look_at.up", up), forward)
    if np.linalg.norm(side) < 1e-9:
        side = np.cross(AXES["x"] if abs(forward[0]) < 0.9 else AXES["y"], forward)  # any will do
    side /= np.linalg.norm(side)
    columns = np.roll(np.stack([forward, side, np.cross(forward, side)]), "xyz".index(axis), axis=0)
    return rotation.from_matrix(columns.T)


looking = look_at  # the table has a key of that name


def rotation_of(
    *,
    axis: Any = None,
    angle_degrees: float | None = None,
    euler_degrees: Any = None,
    order: str | None = None,
    look_at: Any = None,
    up: Any = None,
) -> np.ndarray:
    """The table `rotation` of a scene file."""
    ways = {
        "axis, angle_degrees": (axis, angle_degrees),
        "euler_degrees, order": (euler_degrees, order),
        "look_at": (look_at,),
    }
    given = [name for name, values in ways.items() if any(v is not None for v in values)]
    whole = [name for name in given if all(v is not None for v in ways[name])]
    if len(given) != 1 or whole != given or (up is not None and given != ["look_at"]):
        rule, remedy = "needs one of " + "; ".join(ways), "For example {axis = [0, 0, 1], angle_degrees = 90}."
        raise SceneError(message("rotation", rule, "; ".join(given) or "nothing", remedy))
    if axis is not None:
        return axis_angle(axis, degrees=angle_degrees)
    if euler_degrees is not None:
        return euler(str(order), degrees=euler_degrees)
    return looking(look_at, **({} if up is None else {"up": up}))


def _one_of(where: str, given: Sequence[tuple[str, Any]]) -> tuple[str, Any]:
    found = [(name, value) for name, value in given if value is not None]
    if len(found) != 1:
        got = "both" if found else "neither"
        raise SceneError(message(where, "needs either degrees or radians", got, "Give exactly one of them."))
    return found[0]


def _angle(where: str, degrees: float | None, radians: float | None) -> float:
    name, value = _one_of(where, (("degrees", degrees), ("radians", radians)))
    angle = checks.number(f"{where}.{name}", value, error=SceneError)
    return float(np.deg2rad(angle)) if name == "degrees" else angle
