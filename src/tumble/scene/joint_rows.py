"""Coordinates between the frames of joints, the rows made of them, and the elements that name them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .. import checks
from ..enums import JointKind, RowRole
from ..errors import SceneError, TumbleWarning, message
from ..kernels.joints import ANGLE
from . import rotation
from .joint_frames import JointFrames
from .joint_model import Controller, Element, JointModel, Motor
from .table import Table

__all__ = ["JointRows"]

DEGREES = 30.0
"""Limits of a turn that are whole numbers from here on look like degrees."""


COORD = [("kind", np.int64), ("frame", np.int64), ("axis", np.int64, 2), ("start", float)]
ROW = [
    ("role", np.int8),
    ("element", np.int32),
    ("coord", np.int64, 2),
    ("weight", float, 2),
    ("offset", float),
    ("stiffness", float),
    ("damping", float),
    ("most", float),
    ("motor", np.int32),
]
"""Columns `coord_...` and `row_...` of a `JointModel`."""


class JointRows(JointFrames):
    """What is solved for: rows of weights on coordinates, held, bounded or sprung."""

    def __init__(self) -> None:
        super().__init__()
        self._coords, self._rows = Table(COORD), Table(ROW)
        self._elements: list[Element] = []
        self._numbers: dict[str, int] = {}
        self._motors: list[Motor] = []
        self._controllers: list[Controller] = []

    # ------------------------------------------------------------------ coordinates and rows

    def _coord(self, kind: int, frame: int, i: int = 0, j: int = 0) -> int:
        return self._coords.append(kind, frame, (i, j), 0.0)

    def _frame_of(self, coordinate: int) -> int:
        return int(self._coords.rows["frame"][coordinate])

    def _row(
        self,
        role: RowRole,
        element: int,
        first: int,
        *,
        own: float = 1.0,
        second: int = -1,
        weight: float = 0.0,
        offset: float = 0.0,
        stiffness: float = 0.0,
        damping: float = 0.0,
        most: float = 0.0,
        motor: int = -1,
    ) -> int:
        return self._rows.append(role, element, (first, second), (own, weight), offset, stiffness, damping, most, motor)

    # ------------------------------------------------------------------ elements

    def _element(self, where: str, name: str | None, kind: str, i: int, j: int) -> int:
        """A new element with a free name."""
        taken = self._numbers
        if name is None:
            number = len(self._elements)
            while f"{kind}{number}" in taken:
                number += 1
            name = f"{kind}{number}"
        if not isinstance(name, str) or not name:
            raise SceneError(message(where + ".name", "must be a text", checks.short(name), "Or leave it out."))
        if name in taken:
            raise SceneError(
                message(where + ".name", "names of joints are unique", checks.short(name), "Choose another name.")
            )
        taken[name] = len(self._elements)
        self._elements.append(Element(name, kind, -1, (i, j), -1, -1))
        return taken[name]

    def _free_coords(self, where: str, element: int) -> list[int]:
        """The coordinates that a joint leaves free and that have one axis."""
        e = self._elements[element]
        free = [c for c in (e.turn, e.slide) if c >= 0 and e.kind != JointKind.DISTANCE]
        if not free:
            raise SceneError(
                message(
                    where,
                    "needs a joint that turns or slides about one axis",
                    f"'{e.name}' is {e.kind}",
                    "Use a revolute, prismatic or cylindrical joint.",
                )
            )
        return free

    def _coordinate_of(self, where: str, joint: str | tuple[str, str]) -> int:
        """Coordinate of a joint by its name, or (name, "turn" or "slide")."""
        name, which = joint if isinstance(joint, (tuple, list)) and len(joint) == 2 else (joint, None)
        found = self._numbers
        if not isinstance(name, str) or name not in found:
            shown = checks.short(name)
            raise SceneError(message(where, "unknown joint", shown, checks.nearest(shown.strip("'"), found)))
        free = self._free_coords(where, found[name])
        e = self._elements[found[name]]
        if which is None:
            if len(free) > 1:
                raise SceneError(
                    message(
                        where, f"'{name}' turns and slides", checks.short(joint), f"Say ('{name}', 'turn') or 'slide'."
                    )
                )
            return free[0]
        checks.choice(where + ".coordinate", which, ["turn", "slide"])
        coordinate = e.turn if which == "turn" else e.slide
        if coordinate < 0:
            raise SceneError(message(where, f"'{name}' does not {which}", e.kind, "Take its other coordinate."))
        return coordinate

    def _set_value(self, where: str, element: int, value: float) -> None:
        """Turn or shift the frames of a joint so that its one coordinate reads this value now."""
        free = self._free_coords(where, element)
        if len(free) > 1:
            raise SceneError(message(where, "is for joints with one coordinate", value, "Leave it out."))
        frame = self._elements[element].frame
        f, coordinate = self._frames.rows[frame], self._coords.rows[free[0]]
        if coordinate["kind"] == ANGLE:
            turn = np.array([np.cos(0.5 * value), 0.0, 0.0, np.sin(0.5 * value)])
            f["orientation"][1] = rotation.multiply(f["orientation"][1], turn)
        else:
            (p, q), (r, _) = self._world(frame, 0), self._world(frame, 1)
            now = float(rotation.rotate(rotation.conjugate(q), r - p)[2])
            f["position"][0] += rotation.rotate(f["orientation"][0], np.array([0.0, 0.0, now - value]))
        coordinate["start"] = value

    def _add_limits(self, where: str, element: int, limits: Any) -> None:
        if limits is None:
            return
        free = self._free_coords(where + ".limits", element)
        e = self._elements[element]
        if not isinstance(limits, dict):
            if len(free) > 1:
                raise SceneError(
                    message(where + ".limits", "say which", checks.short(limits), 'Give {"turn": .., "slide": ..}.')
                )
            limits = {"turn" if e.turn == free[0] else "slide": limits}
        for which, pair in limits.items():
            checks.choice(where + ".limits", which, ["turn", "slide"])
            coordinate = self._coordinate_of(where + ".limits", (e.name, which))
            low, high = _limits(where + ".limits", pair)
            if which == "turn":
                _ask_for_radians(where + ".limits", low, high)
            if np.isfinite(low):
                self._row(RowRole.LOWER, element, coordinate, offset=low)
            if np.isfinite(high):
                self._row(RowRole.UPPER, element, coordinate, own=-1.0, offset=-high)

    # ------------------------------------------------------------------ freezing

    def _joint_model(self) -> JointModel:
        """All of it as arrays."""
        frames, coords, rows = self._frames.rows, self._coords.rows, self._rows.rows
        bodies = self._in_model(np.array([e.bodies for e in self._elements], np.int64).reshape(-1, 2)).tolist()
        return JointModel(
            frame_body=self._in_model(frames["body"]).astype(np.int32),
            frame_position=frames["position"].copy().reshape(-1, 3),
            frame_orientation=frames["orientation"].copy().reshape(-1, 4),
            **{f"coord_{name}": coords[name].copy() for name in coords.dtype.names or ()},
            **{f"row_{name}": rows[name].copy() for name in rows.dtype.names or ()},
            elements=tuple(
                e if e.bodies == (a, b) else replace(e, bodies=(a, b)) for e, (a, b) in zip(self._elements, bodies)
            ),
            motors=tuple(self._motors),
            controllers=tuple(self._controllers),
        )


def _limits(where: str, pair: Any) -> tuple[float, float]:
    """Two numbers in order; infinity is no limit."""
    try:
        low, high = (float(x) for x in pair)
    except (TypeError, ValueError, OverflowError) as cause:
        remedy = "Use -inf or inf for none."
        raise SceneError(message(where, "must be (low, high)", checks.short(pair), remedy)) from cause
    for value in (low, high):
        if not np.isinf(value):
            checks.number(where, value, error=SceneError)
    if not low < high:
        raise SceneError(message(where, "must have low < high", f"({low}, {high})", "Swap the two."))
    return low, high


def _ask_for_radians(where: str, low: float, high: float) -> None:
    """Say so where a turn's limits look like degrees."""
    if any(abs(x) >= DEGREES and float(x).is_integer() for x in (low, high) if np.isfinite(x)):
        turns = max(abs(x) for x in (low, high) if np.isfinite(x)) / (2.0 * np.pi)
        remedy = "Write numpy.deg2rad(limits) if these are degrees."
        text = message(where, "are radians", f"({low:g}, {high:g}), up to {turns:.1f} turns", remedy)
        warnings.warn(text, TumbleWarning, stacklevel=5)
