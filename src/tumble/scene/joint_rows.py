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

__all__ = ["JointRows"]

DEGREES = 30.0
"""Limits of a turn that are whole numbers from here on look like degrees."""


class JointRows(JointFrames):
    """What is solved for: rows of weights on coordinates, held, bounded or sprung."""

    def __init__(self) -> None:
        super().__init__()
        self._coords: list[tuple[int, int, int, int]] = []
        self._coord_start: dict[int, float] = {}
        self._rows: list[dict[str, Any]] = []
        self._elements: list[Element] = []
        self._numbers: dict[str, int] = {}
        self._motors: list[Motor] = []
        self._controllers: list[Controller] = []

    # ------------------------------------------------------------------ coordinates and rows

    def _coord(self, kind: int, frame: int, i: int = 0, j: int = 0) -> int:
        self._coords.append((kind, frame, i, j))
        return len(self._coords) - 1

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
        self._rows.append(
            {
                "role": role,
                "element": element,
                "first": first,
                "second": second,
                "own": own,
                "weight": weight,
                "offset": offset,
                "stiffness": stiffness,
                "damping": damping,
                "most": most,
                "motor": motor,
            }
        )
        return len(self._rows) - 1

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
        i, j, pa, pb, qa, qb = self._frames[frame]
        if self._coords[free[0]][0] == ANGLE:
            qb = rotation.multiply(qb, np.array([np.cos(0.5 * value), 0.0, 0.0, np.sin(0.5 * value)]))
        else:
            (p, q), (r, _) = self._world(frame, 0), self._world(frame, 1)
            now = float(rotation.rotate(rotation.conjugate(q), r - p)[2])
            pa = pa + rotation.rotate(qa, np.array([0.0, 0.0, now - value]))
        self._frames[frame] = (i, j, pa, pb, qa, qb)
        self._coord_start[free[0]] = value

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
        rows = self._rows
        frames = [(*map(self._placed_body, f[:2]), *f[2:]) for f in self._frames]

        def column(key: str, dtype: Any = np.float64) -> np.ndarray:
            return np.array([r[key] for r in rows], dtype)

        return JointModel(
            frame_body=np.array([f[:2] for f in frames], np.int32).reshape(-1, 2),
            frame_position=np.array([p for f in frames for p in f[2:4]], float).reshape(-1, 3),
            frame_orientation=np.array([q for f in frames for q in f[4:6]], float).reshape(-1, 4),
            coord_kind=np.array([c[0] for c in self._coords], np.int64),
            coord_frame=np.array([c[1] for c in self._coords], np.int64),
            coord_axis=np.array([c[2:] for c in self._coords], np.int64).reshape(-1, 2),
            coord_start=np.array([self._coord_start.get(k, 0.0) for k in range(len(self._coords))]),
            row_role=column("role", np.int8),
            row_element=column("element", np.int32),
            row_coord=np.array([(r["first"], r["second"]) for r in rows], np.int64).reshape(-1, 2),
            row_weight=np.array([(r["own"], r["weight"]) for r in rows], float).reshape(-1, 2),
            row_offset=column("offset"),
            row_stiffness=column("stiffness"),
            row_damping=column("damping"),
            row_most=column("most"),
            row_motor=column("motor", np.int32),
            elements=tuple(replace(e, bodies=tuple(map(self._placed_body, e.bodies))) for e in self._elements),
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
