"""The part of the scene builder that joins bodies: joints, motors, gears, springs, controllers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import checks
from ..enums import JointKind, MotorMode, RowRole
from ..errors import SceneError, message
from ..kernels.joints import ANGLE, DISTANCE, DOT, POINT
from . import rotation
from .joint_frames import ROWS, bases
from .joint_model import Controller, Element, Motor, Target
from .joint_rows import JointRows
from .table import Table

__all__ = ["Mechanism"]

TURN = {JointKind.REVOLUTE, JointKind.CYLINDRICAL}
SLIDE = {JointKind.PRISMATIC, JointKind.CYLINDRICAL}


def _all_or_nothing(method: Callable) -> Callable:
    """A method that fails leaves the mechanism as it was."""

    @functools.wraps(method)
    def whole(self: Mechanism, *args: Any, **options: Any) -> Any:
        tables = (self._frames, self._coords, self._rows, self._excluded)
        lists = (self._elements, self._motors, self._controllers)
        before, ground = [len(x) for x in (*tables, *lists)], self._ground
        try:
            return method(self, *args, **options)
        except BaseException:
            for table, count in zip(tables, before):
                table.cut(count)
            for entries, count in zip(lists, before[len(tables) :]):
                del entries[count:]
            self._numbers = {e.name: k for k, e in enumerate(self._elements)}
            self._ground = ground
            raise

    return whole


class Mechanism(JointRows):
    """Joints and what drives them. `SceneBuilder` is one: use its methods."""

    _label: Callable[[str, str | None], str]
    _excluded: Table

    # ------------------------------------------------------------------ joints

    @_all_or_nothing
    def add_joint(
        self,
        kind: JointKind | str,
        a: int | str | None,
        b: int | str | None,
        *,
        anchor: ArrayLike | None = None,
        axis: ArrayLike | None = None,
        second_axis: ArrayLike | None = None,
        anchor_a: ArrayLike | None = None,
        anchor_b: ArrayLike | None = None,
        axis_a: ArrayLike | None = None,
        axis_b: ArrayLike | None = None,
        length: float | None = None,
        value: float | None = None,
        limits: Any = None,
        friction: float = 0.0,
        collide: bool = False,
        name: str | None = None,
    ) -> str:
        """Join two bodies (None: the ground) and return the joint's name.

        anchor [m], axis, second_axis: in the world as the scene is now. Or anchor_a, anchor_b, axis_a, axis_b in the
        frames of the bodies; one of two suffices. If both are given and do not meet, the scene is assembled when a
        simulation starts. limits: (low, high) of the joint's turn [rad], zero as the scene is now, or slide [m] (the
        distance of the anchors along the axis); a cylindrical joint takes {"turn": .., "slide": ..}. value: what the
        turn or slide reads as the scene is now; limits, targets and `joint_values` then count from elsewhere. friction:
        a constant largest torque [N m] or force [N].
        length: of a distance joint [m], as it is now if left out. Joined bodies collide only if `collide` is True.
        """
        where = self._label("add_joint", name)
        kind = JointKind(checks.choice(where + ".kind", kind, list(JointKind)))
        i, j = self._joined(where, a, b)
        pa, pb = self._anchors(where, kind, i, j, anchor, anchor_a, anchor_b)
        za, zb = self._axes(where, kind, i, j, axis, second_axis, axis_a, axis_b)
        element = self._element(where, name, str(kind), i, j)
        frame = self._frame(i, j, pa, pb, *bases(kind, za, zb))
        self._check_fit(where, kind, frame)
        turn = self._coord(ANGLE, frame) if kind in TURN else -1
        slide = self._coord(POINT, frame, 2) if kind in SLIDE else -1
        if length is not None and kind != JointKind.DISTANCE:
            raise SceneError(message(where + ".length", "belongs to a distance joint", length, "Leave it out."))
        for row in ROWS[kind]:
            offset = 0.0
            if kind == JointKind.DISTANCE:
                now = float(np.linalg.norm(self._world(frame, 1)[0] - self._world(frame, 0)[0]))
                offset = now if length is None else checks.number(where + ".length", length, above=0.0)
                if offset <= 0.0:
                    raise SceneError(
                        message(where, "anchors must not coincide", f"distance {now} m", "Use a spherical joint.")
                    )
            coordinate = self._coord(row[0], frame, row[1], row[2])
            self._row(RowRole.RIGID, element, coordinate, offset=offset)
            slide = coordinate if kind == JointKind.DISTANCE else slide
        self._elements[element] = Element(self._elements[element].name, str(kind), frame, (i, j), turn, slide)
        if value is not None:
            self._set_value(where + ".value", element, checks.number(where + ".value", value))
        self._add_limits(where, element, limits)
        most = checks.number(where + ".friction", friction, at_least=0.0)
        if most > 0.0:
            for coordinate in self._free_coords(where + ".friction", element):
                self._row(RowRole.FRICTION, element, coordinate, most=most)
        if not checks.flag(where + ".collide", collide):
            self._excluded.append((i, j))
        return self._elements[element].name

    @_all_or_nothing
    def add_gear(
        self,
        first: str | tuple[str, str],
        second: str | tuple[str, str],
        ratio: float,
        *,
        name: str | None = None,
    ) -> str:
        """Couple two joints: second moves by `ratio` times what first moves [rad/rad, m/rad ..].

        first, second: names of joints, or (name, "turn" or "slide"). A screw is the gear from a cylindrical joint's
        turn to its slide with ratio lead / (2 pi).
        """
        where = self._label("add_gear", name)
        c = [self._coordinate_of(where, joint) for joint in (first, second)]
        r = checks.number(where + ".ratio", ratio)
        if c[0] == c[1] or r == 0.0:
            raise SceneError(
                message(where, "needs two coordinates and a ratio", f"{first}, {second}, {ratio}", "See add_gear.")
            )
        frames = [self._frame_of(k) for k in c]
        element = self._element(where, name, "gear", *self._sides(frames[1]))
        self._elements[element] = Element(
            self._elements[element].name, "gear", frames[1], self._sides(frames[1]), -1, -1
        )
        self._row(RowRole.RIGID, element, c[1], second=c[0], weight=-r, offset=np.nan)
        return self._elements[element].name

    @_all_or_nothing
    def add_motor(
        self,
        joint: str | tuple[str, str],
        mode: MotorMode | str = MotorMode.SPEED,
        *,
        target: Target = 0.0,
        maximum: float | None = None,
        stiffness: float | None = None,
        damping: float = 0.0,
        name: str | None = None,
    ) -> str:
        """Drive a joint's coordinate; returns the motor's name.

        mode speed: target [rad/s or m/s]; position: target [rad or m], exactly (a driving constraint), or as a servo
        stiffness (target - value) - damping speed [N m/rad or N/m, N m s/rad or N s/m], taken at the end of the step;
        torque: target [N m or N]. target: a number or a function of the time. maximum: the largest torque or force it
        has. A position motor with a maximum needs a stiffness and a damping to settle after a jump of its target: an
        exact one pulls with all it has until the very step in which it arrives, and swings for ever.
        """
        where = self._label("add_motor", name)
        mode = MotorMode(checks.choice(where + ".mode", mode, list(MotorMode)))
        coordinate = self._coordinate_of(where, joint)
        most = None if maximum is None else checks.number(where + ".maximum", maximum, above=0.0)
        k = 0.0 if stiffness is None else checks.number(where + ".stiffness", stiffness, above=0.0)
        d = checks.number(where + ".damping", damping, at_least=0.0)
        if (k > 0.0 or d > 0.0) and mode != MotorMode.POSITION:
            raise SceneError(
                message(where + ".stiffness", "belongs to mode 'position'", stiffness, "Use add_joint_spring besides.")
            )
        if d > 0.0 and k == 0.0:
            raise SceneError(message(where + ".damping", "needs a stiffness", damping, "Give both or none."))
        if mode == MotorMode.TORQUE and most is not None:
            raise SceneError(
                message(where + ".maximum", "belongs to a speed or position motor", maximum, "Clip the target instead.")
            )
        if not callable(target):
            checks.number(where + ".target", target)
        frame = self._frame_of(coordinate)
        element = self._element(where, name, "motor", *self._sides(frame))
        kind, along = self._coords.rows["kind"][coordinate], coordinate
        self._elements[element] = Element(
            self._elements[element].name,
            "motor",
            frame,
            self._sides(frame),
            along if kind == ANGLE else -1,
            along if kind != ANGLE else -1,
        )
        row = -1
        if mode == MotorMode.SPEED:
            role = RowRole.SPEED if most is None else RowRole.BOUNDED_SPEED
            row = self._row(role, element, coordinate, most=most or 0.0, motor=len(self._motors))
        elif mode == MotorMode.POSITION:
            role = RowRole.BOUNDED_POSITION if most is not None else (RowRole.SPRING if k > 0.0 else RowRole.RIGID)
            row = self._row(
                role, element, coordinate, most=most or 0.0, stiffness=k, damping=d, motor=len(self._motors)
            )
        self._motors.append(Motor(self._elements[element].name, element, coordinate, str(mode), row, target))
        return self._elements[element].name

    @_all_or_nothing
    def add_controller(
        self, callback: Callable[[float, np.ndarray, np.ndarray], np.ndarray], motors: Sequence[str]
    ) -> None:
        """Set the targets of some motors once a step: targets (k,) = callback(time, values (k,), speeds (k,))."""
        if not callable(callback):
            raise SceneError(
                message(
                    "add_controller", "needs a function", checks.short(callback), "targets = f(time, values, speeds)."
                )
            )
        known = {m.name: k for k, m in enumerate(self._motors)}
        for name in motors:
            if name not in known:
                raise SceneError(
                    message("add_controller", "unknown motor", checks.short(name), checks.nearest(name, known))
                )
        self._controllers.append(Controller(callback, np.array([known[m] for m in motors], np.int64)))

    # ------------------------------------------------------------------ springs

    @_all_or_nothing
    def add_spring(
        self,
        a: int | str | None,
        b: int | str | None,
        *,
        anchors: Sequence[ArrayLike] | None = None,
        anchor_a: ArrayLike | None = None,
        anchor_b: ArrayLike | None = None,
        stiffness: float = 0.0,
        damping: float = 0.0,
        rest_length: float | None = None,
        name: str | None = None,
    ) -> str:
        """A spring and damper between two points of two bodies (None: the ground).

        anchors: both points, in the world as the scene is now [m]. Or anchor_a, anchor_b in the frames of the bodies,
        their origins if left out; the ground's frame is that of the world.
        stiffness [N/m], damping [N s/m]; rest_length [m], as it is now if left out. Implicit: any stiffness is stable.
        """
        where = self._label("add_spring", name)
        i, j = self._joined(where, a, b)
        k, d = _spring_constants(where, stiffness, damping)
        pa, pb = self._spring_anchors(where, i, j, anchors, anchor_a, anchor_b)
        element = self._element(where, name, "spring", i, j)
        frame = self._frame(i, j, pa, pb, rotation.IDENTITY, rotation.IDENTITY, local=True)
        now = float(np.linalg.norm(self._world(frame, 1)[0] - self._world(frame, 0)[0]))
        rest = now if rest_length is None else checks.number(where + ".rest_length", rest_length, at_least=0.0)
        if now == 0.0:
            raise SceneError(
                message(where, "its ends must not coincide at the start", "distance 0 m", "Use a bushing instead.")
            )
        coordinate = self._coord(DISTANCE, frame)
        self._elements[element] = Element(self._elements[element].name, "spring", frame, (i, j), -1, coordinate)
        self._row(RowRole.SPRING, element, coordinate, offset=rest, stiffness=k, damping=d)
        return self._elements[element].name

    @_all_or_nothing
    def add_joint_spring(
        self,
        joint: str | tuple[str, str],
        *,
        stiffness: float = 0.0,
        damping: float = 0.0,
        rest: float = 0.0,
        name: str | None = None,
    ) -> str:
        """A spring and damper on a joint's turn [N m/rad, N m s/rad] or slide [N/m, N s/m], zero at `rest`."""
        where = self._label("add_joint_spring", name)
        coordinate = self._coordinate_of(where, joint)
        k, d = _spring_constants(where, stiffness, damping)
        frame = self._frame_of(coordinate)
        element = self._element(where, name, "spring", *self._sides(frame))
        turns = self._coords.rows["kind"][coordinate] == ANGLE
        self._elements[element] = Element(
            self._elements[element].name,
            "spring",
            frame,
            self._sides(frame),
            coordinate if turns else -1,
            -1 if turns else coordinate,
        )
        offset = checks.number(where + ".rest", rest)
        self._row(RowRole.SPRING, element, coordinate, offset=offset, stiffness=k, damping=d)
        return self._elements[element].name

    @_all_or_nothing
    def add_bushing(
        self,
        a: int | str | None,
        b: int | str | None,
        *,
        anchor: ArrayLike,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        stiffness: ArrayLike,
        damping: ArrayLike = (0.0,) * 6,
        name: str | None = None,
    ) -> str:
        """A soft joint: six springs and dampers between two frames that coincide now, for small angles.

        stiffness, damping (6,): along x, y and the axis [N/m, N s/m], then about them [N m/rad, N m s/rad];
        a pair of zeros leaves that direction free.
        """
        where = self._label("add_bushing", name)
        i, j = self._joined(where, a, b)
        k = checks.array(where + ".stiffness", stiffness, (6,))
        d = checks.array(where + ".damping", damping, (6,))
        if np.any(k < 0.0) or np.any(d < 0.0) or not np.any(k + d > 0.0):
            raise SceneError(
                message(where, "stiffness and damping must be >= 0, one above", f"{k}, {d}", "Units: add_bushing.")
            )
        p = checks.vector(where + ".anchor", anchor)
        z = checks.direction(where + ".axis", axis)
        element = self._element(where, name, "bushing", i, j)
        frame = self._frame(i, j, self._local(i, p), self._local(j, p), *bases(JointKind.FIXED, z, z))
        self._elements[element] = Element(self._elements[element].name, "bushing", frame, (i, j), -1, -1)
        # Turning b by a small angle t about x of A moves y . z by -t_x, x . z by t_y, x . y by -t_z.
        kinds = (*((POINT, c, 0) for c in range(3)), (DOT, 1, 2), (DOT, 0, 2), (DOT, 0, 1))
        for n, row in enumerate(kinds):
            if k[n] > 0.0 or d[n] > 0.0:
                self._row(
                    RowRole.SPRING, element, self._coord(row[0], frame, row[1], row[2]), stiffness=k[n], damping=d[n]
                )
        return self._elements[element].name


def _spring_constants(where: str, stiffness: float, damping: float) -> tuple[float, float]:
    k = checks.number(where + ".stiffness", stiffness, at_least=0.0)
    d = checks.number(where + ".damping", damping, at_least=0.0)
    if k == 0.0 and d == 0.0:
        raise SceneError(message(where, "needs a stiffness or a damping", "both 0", "Give one of them."))
    return k, d
