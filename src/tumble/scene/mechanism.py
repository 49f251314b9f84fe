"""The part of the scene builder that joins bodies: joints, motors, gears, springs, controllers."""

from __future__ import annotations

import functools
import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import checks
from ..enums import BodyKind, JointKind, MotorMode, RowRole
from ..errors import SceneError, TumbleWarning, message
from ..kernels.joints import ANGLE, DISTANCE, DOT, POINT
from . import rotation
from .batch import Batch, bare_static
from .joint_model import Controller, Element, JointModel, Motor, Target

__all__ = ["Mechanism"]

ROWS = {
    JointKind.FIXED: ((POINT, 0, 0), (POINT, 1, 0), (POINT, 2, 0), (DOT, 0, 2), (DOT, 1, 2), (DOT, 0, 1)),
    JointKind.SPHERICAL: ((POINT, 0, 0), (POINT, 1, 0), (POINT, 2, 0)),
    JointKind.REVOLUTE: ((POINT, 0, 0), (POINT, 1, 0), (POINT, 2, 0), (DOT, 0, 2), (DOT, 1, 2)),
    JointKind.PRISMATIC: ((POINT, 0, 0), (POINT, 1, 0), (DOT, 0, 2), (DOT, 1, 2), (DOT, 0, 1)),
    JointKind.CYLINDRICAL: ((POINT, 0, 0), (POINT, 1, 0), (DOT, 0, 2), (DOT, 1, 2)),
    JointKind.UNIVERSAL: ((POINT, 0, 0), (POINT, 1, 0), (POINT, 2, 0), (DOT, 0, 1)),
    JointKind.PLANAR: ((POINT, 2, 0), (DOT, 0, 2), (DOT, 1, 2)),
    JointKind.POINT_ON_PLANE: ((POINT, 2, 0),),
    JointKind.DISTANCE: ((DISTANCE, 0, 0),),
}
"""Coordinates that a joint holds at zero (a distance at its length): kind, axis of A, axis of B."""
TURN = {JointKind.REVOLUTE, JointKind.CYLINDRICAL}
SLIDE = {JointKind.PRISMATIC, JointKind.CYLINDRICAL}
NEEDS_AXIS = set(JointKind) - {JointKind.FIXED, JointKind.SPHERICAL, JointKind.DISTANCE}
MISFIT = 0.25
"""Anchors that differ by more than this part of the smaller body at the start are an error."""
GROUND, WORLD = "ground", -1
"""The name of the body that joints to the world hang on, and its index until the scene is built: then it comes last."""
DEGREES = 30.0
"""Limits of a turn that are whole numbers from here on look like degrees."""


def _all_or_nothing(method: Callable) -> Callable:
    """A method that fails leaves the mechanism as it was."""

    @functools.wraps(method)
    def whole(self: Mechanism, *args: Any, **options: Any) -> Any:
        lists = (self._frames, self._coords, self._rows, self._elements, self._motors, self._controllers)
        before, excluded, ground = [len(x) for x in lists], set(self._excluded), self._ground
        try:
            return method(self, *args, **options)
        except BaseException:
            for entries, count in zip(lists, before):
                del entries[count:]
            self._numbers = {e.name: k for k, e in enumerate(self._elements)}
            self._coord_start = {k: v for k, v in self._coord_start.items() if k < len(self._coords)}
            self._excluded.clear()
            self._excluded.update(excluded)
            self._ground = ground
            raise

    return whole


class Mechanism:
    """Joints and what drives them. `SceneBuilder` is one: use its methods."""

    _batches: list[Batch]
    _starts: list[int]
    _names: dict[str, tuple[int, int]]
    _excluded: set[tuple[int, int]]
    _count: int

    def __init__(self) -> None:
        super().__init__()
        self._frames: list[tuple[int, int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self._coords: list[tuple[int, int, int, int]] = []
        self._coord_start: dict[int, float] = {}
        self._rows: list[dict[str, Any]] = []
        self._elements: list[Element] = []
        self._numbers: dict[str, int] = {}
        self._motors: list[Motor] = []
        self._controllers: list[Controller] = []
        self._ground: Batch | None = None

    # ------------------------------------------------------------------ joints

    @_all_or_nothing
    def add_joint(
        self,
        kind: JointKind | str,
        a: int | str | None,
        b: int | str | None,
        *,
        anchor: Sequence[float] | None = None,
        axis: Sequence[float] | None = None,
        second_axis: Sequence[float] | None = None,
        anchor_a: Sequence[float] | None = None,
        anchor_b: Sequence[float] | None = None,
        axis_a: Sequence[float] | None = None,
        axis_b: Sequence[float] | None = None,
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
        frame = self._frame(i, j, pa, pb, *_bases(kind, za, zb))
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
            self._excluded.add((min(i, j), max(i, j)))
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
        frames = [self._coords[k][1] for k in c]
        element = self._element(where, name, "gear", *self._frames[frames[1]][:2])
        self._elements[element] = Element(
            self._elements[element].name, "gear", frames[1], self._frames[frames[1]][:2], -1, -1
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
        frame = self._coords[coordinate][1]
        element = self._element(where, name, "motor", *self._frames[frame][:2])
        kind, along = self._coords[coordinate][0], coordinate
        self._elements[element] = Element(
            self._elements[element].name,
            "motor",
            frame,
            self._frames[frame][:2],
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
        anchor_a: Sequence[float] = (0.0, 0.0, 0.0),
        anchor_b: Sequence[float] = (0.0, 0.0, 0.0),
        stiffness: float = 0.0,
        damping: float = 0.0,
        rest_length: float | None = None,
        name: str | None = None,
    ) -> str:
        """A spring and damper between two points, anchors in the frames of the bodies [m] (None: the ground).

        stiffness [N/m], damping [N s/m]; rest_length [m], as it is now if left out. Implicit: any stiffness is stable.
        """
        where = self._label("add_spring", name)
        i, j = self._joined(where, a, b)
        k, d = _spring_constants(where, stiffness, damping)
        pa, pb = (
            self._to_principal(body, checks.vector(f"{where}.{label}", p))
            for body, label, p in ((i, "anchor_a", anchor_a), (j, "anchor_b", anchor_b))
        )
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
        frame = self._coords[coordinate][1]
        element = self._element(where, name, "spring", *self._frames[frame][:2])
        turns = self._coords[coordinate][0] == ANGLE
        self._elements[element] = Element(
            self._elements[element].name,
            "spring",
            frame,
            self._frames[frame][:2],
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
        anchor: Sequence[float],
        axis: Sequence[float] = (0.0, 0.0, 1.0),
        stiffness: Sequence[float],
        damping: Sequence[float] = (0.0,) * 6,
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
        z = _unit(where + ".axis", axis)
        element = self._element(where, name, "bushing", i, j)
        frame = self._frame(i, j, self._local(i, p), self._local(j, p), *_bases(JointKind.FIXED, z, z))
        self._elements[element] = Element(self._elements[element].name, "bushing", frame, (i, j), -1, -1)
        # Turning b by a small angle t about x of A moves y . z by -t_x, x . z by t_y, x . y by -t_z.
        kinds = (*((POINT, c, 0) for c in range(3)), (DOT, 1, 2), (DOT, 0, 2), (DOT, 0, 1))
        for n, row in enumerate(kinds):
            if k[n] > 0.0 or d[n] > 0.0:
                self._row(
                    RowRole.SPRING, element, self._coord(row[0], frame, row[1], row[2]), stiffness=k[n], damping=d[n]
                )
        return self._elements[element].name

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

    # ------------------------------------------------------------------ helpers

    def _placed_body(self, body: int) -> int:
        """Index of a body in the model."""
        return self._count if body == WORLD else body

    def _joined(self, where: str, a: int | str | None, b: int | str | None) -> tuple[int, int]:
        """Indices of two different bodies, one of them not static."""
        pair = []
        for body in (a, b):
            if body is None or (isinstance(body, str) and body == GROUND and GROUND not in self._names):
                self._ground = self._ground or bare_static(GROUND)
                pair.append(WORLD)
                continue
            found = self._bodies(where, body)  # type: ignore[attr-defined]
            if len(found) != 1:
                raise SceneError(
                    message(where, "joins single bodies", f"{body!r} names {len(found)} bodies", "Give an index.")
                )
            pair.append(found[0])
        if pair[0] == pair[1]:
            raise SceneError(
                message(where, "needs two different bodies", f"{a!r} twice", "Join it to another, or to None.")
            )
        kinds = [self._batch_of(body)[0].kind for body in pair]
        if BodyKind.DYNAMIC not in kinds:
            raise SceneError(
                message(
                    where,
                    "one of the two bodies must be dynamic",
                    f"{a!r} and {b!r} are {kinds[0].name.lower()} and {kinds[1].name.lower()}",
                    "Bodies that do not obey forces cannot be held by a joint.",
                )
            )
        return pair[0], pair[1]

    def _batch_of(self, body: int) -> tuple[Batch, int]:
        """The batch that holds a body, and its place there."""
        if body == WORLD:
            return self._ground, 0
        k = bisect_right(self._starts, body) - 1
        return self._batches[k], body - self._starts[k]

    def _pose(self, body: int) -> tuple[np.ndarray, np.ndarray]:
        """Principal frame of a body in the world, now."""
        batch, k = self._batch_of(body)
        p, q = batch.position[k], batch.orientation[k]
        return p + rotation.rotate(q, batch.center), rotation.multiply(q, batch.axes)

    def _to_principal(self, body: int, point: np.ndarray) -> np.ndarray:
        """A point of the user's body frame in the principal frame."""
        batch, _ = self._batch_of(body)
        return rotation.rotate(rotation.conjugate(batch.axes), point - batch.center)

    def _direction_to_world(self, body: int, direction: np.ndarray) -> np.ndarray:
        batch, k = self._batch_of(body)
        return rotation.rotate(batch.orientation[k], direction)

    def _local(self, body: int, point: np.ndarray) -> np.ndarray:
        """A world point in the principal frame of a body."""
        p, q = self._pose(body)
        return rotation.rotate(rotation.conjugate(q), point - p)

    def _world(self, frame: int, side: int) -> tuple[np.ndarray, np.ndarray]:
        """Origin and orientation of a frame, now."""
        f = self._frames[frame]
        p, q = self._pose(f[side])
        return p + rotation.rotate(q, f[2 + side]), rotation.multiply(q, f[4 + side])

    def _anchors(
        self, where: str, kind: JointKind, i: int, j: int, anchor: Any, anchor_a: Any, anchor_b: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Anchors in the principal frames of the two bodies."""
        if anchor is not None and (anchor_a is not None or anchor_b is not None):
            raise SceneError(
                message(where, "takes an anchor in the world or in the bodies", "both", "Leave one kind out.")
            )
        if anchor is not None:
            p = checks.vector(where + ".anchor", anchor)
            if kind == JointKind.DISTANCE:
                raise SceneError(
                    message(where, "a distance joint has two anchors", "anchor", "Give anchor_a and anchor_b.")
                )
            return self._local(i, p), self._local(j, p)
        if anchor_a is None and anchor_b is None:
            raise SceneError(message(where, "needs an anchor", "none", "anchor=(x, y, z) in the world, for example."))
        if kind == JointKind.DISTANCE and (anchor_a is None or anchor_b is None):
            raise SceneError(message(where, "a distance joint has two anchors", "one", "Give anchor_a and anchor_b."))
        pair = []
        for body, label, p in ((i, "anchor_a", anchor_a), (j, "anchor_b", anchor_b)):
            pair.append(None if p is None else self._to_principal(body, checks.vector(f"{where}.{label}", p)))
        for own, other, k in ((0, 1, i), (1, 0, j)):
            if pair[own] is None:
                at, q = self._pose((i, j)[other])
                pair[own] = self._local(k, at + rotation.rotate(q, pair[other]))
        return pair[0], pair[1]

    def _axes(
        self, where: str, kind: JointKind, i: int, j: int, axis: Any, second: Any, axis_a: Any, axis_b: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """World axes of the two frames, now."""
        if axis is not None and (axis_a is not None or axis_b is not None):
            raise SceneError(message(where, "takes an axis in the world or in the bodies", "both", "Leave one out."))
        given = [None, None]
        if axis is not None:
            given = [_unit(where + ".axis", axis)] * 2
        for k, (body, label, value) in enumerate(((i, "axis_a", axis_a), (j, "axis_b", axis_b))):
            if value is not None:
                given[k] = self._direction_to_world(body, _unit(f"{where}.{label}", value))
        if second is not None:
            if kind != JointKind.UNIVERSAL:
                raise SceneError(message(where + ".second_axis", "belongs to a universal joint", kind, "Leave it out."))
            given[1] = _unit(where + ".second_axis", second)
        if kind == JointKind.UNIVERSAL:
            if given[0] is None or given[1] is None or (second is None and axis_b is None):
                raise SceneError(message(where, "needs two axes", "one", "Give axis and second_axis."))
            if abs(float(given[0] @ given[1])) > 0.02:
                raise SceneError(
                    message(
                        where,
                        "the two axes of a universal joint must be at a right angle",
                        f"{np.degrees(np.arccos(given[0] @ given[1])):.4g} degrees",
                        "Turn one of them.",
                    )
                )
            return given[0], given[1]
        if given[0] is None and given[1] is None:
            if kind in NEEDS_AXIS:
                raise SceneError(
                    message(where, f"a {kind} joint needs an axis", "none", "axis=(0, 0, 1), for example.")
                )
            return np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0])
        first = given[1] if given[0] is None else given[0]
        return first, first if given[1] is None else given[1]

    def _check_fit(self, where: str, kind: JointKind, frame: int) -> None:
        """Refuse anchors that are far from each other (a prismatic joint may slide along its axis, and so on)."""
        (p, q), (r, s) = self._world(frame, 0), self._world(frame, 1)
        d = rotation.rotate(rotation.conjugate(q), r - p)
        held = [row[1] for row in ROWS[kind] if row[0] == POINT]
        miss = float(np.linalg.norm(d[held])) if held else 0.0
        size = min(
            (
                float(b.bound.max(initial=0.0))
                for b in (self._batch_of(k)[0] for k in self._frames[frame][:2])
                if b.shapes
            ),
            default=1.0,
        )
        if miss > MISFIT * size:
            raise SceneError(
                message(
                    where,
                    "the anchors of the two bodies must meet at the start",
                    f"{miss:.6g} m apart (assembled up to {MISFIT * size:.3g} m)",
                    "Move the bodies, or correct anchor_a and anchor_b.",
                )
            )
        z = float(rotation.rotate(q, np.array([0.0, 0.0, 1.0])) @ rotation.rotate(s, np.array([0.0, 0.0, 1.0])))
        held_axis = NEEDS_AXIS - {JointKind.UNIVERSAL, JointKind.POINT_ON_PLANE} | {JointKind.FIXED}
        if kind in held_axis and z < np.cos(MISFIT):
            raise SceneError(
                message(
                    where,
                    "the axes of the two bodies must agree at the start",
                    f"{np.degrees(np.arccos(max(-1.0, z))):.4g} degrees apart",
                    "Turn the bodies, or correct axis_a and axis_b.",
                )
            )

    def _frame(
        self,
        i: int,
        j: int,
        pa: np.ndarray,
        pb: np.ndarray,
        qa: np.ndarray,
        qb: np.ndarray,
        *,
        local: bool = False,
    ) -> int:
        """A pair of frames: origins in the principal frames, orientations in the world (local: there too)."""
        if not local:
            qa = rotation.multiply(rotation.conjugate(self._pose(i)[1]), qa)
            qb = rotation.multiply(rotation.conjugate(self._pose(j)[1]), qb)
        self._frames.append((i, j, np.asarray(pa, float), np.asarray(pb, float), qa, qb))
        return len(self._frames) - 1

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


def _unit(where: str, axis: Any) -> np.ndarray:
    """A direction of length one."""
    return checks.direction(where, axis)


def _spring_constants(where: str, stiffness: float, damping: float) -> tuple[float, float]:
    k = checks.number(where + ".stiffness", stiffness, at_least=0.0)
    d = checks.number(where + ".damping", damping, at_least=0.0)
    if k == 0.0 and d == 0.0:
        raise SceneError(message(where, "needs a stiffness or a damping", "both 0", "Give one of them."))
    return k, d


def _bases(kind: JointKind, za: np.ndarray, zb: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """World orientations of the two frames with the axes given; their x axes agree as far as they can."""
    if kind == JointKind.UNIVERSAL:  # x of A and y of B are the two axes
        y = zb - (zb @ za) * za
        y /= np.linalg.norm(y)
        a = rotation.from_matrix(np.column_stack([za, y, np.cross(za, y)]))
        x = za - (za @ zb) * zb
        x /= np.linalg.norm(x)
        return a, rotation.from_matrix(np.column_stack([x, zb, np.cross(x, zb)]))
    a = rotation.from_normal(za)
    x = rotation.rotate(a, np.array([1.0, 0.0, 0.0]))
    if abs(x @ zb) > 0.9:
        x = rotation.rotate(a, np.array([0.0, 1.0, 0.0]))
    x = x - (x @ zb) * zb
    x /= np.linalg.norm(x)
    return a, rotation.from_matrix(np.column_stack([x, np.cross(zb, x), zb]))
