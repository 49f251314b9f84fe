"""Where the frames of a joint lie on its two bodies."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import checks
from ..enums import BodyKind, JointKind
from ..errors import SceneError, message
from ..kernels.joints import DISTANCE, DOT, POINT
from . import rotation
from .batch import Batch, bare_static
from .table import Table

__all__ = ["GROUND", "ROWS", "JointFrames", "bases"]

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
NEEDS_AXIS = set(JointKind) - {JointKind.FIXED, JointKind.SPHERICAL, JointKind.DISTANCE}
MISFIT = 0.25
"""Anchors that differ by more than this part of the smaller body at the start are an error."""
GROUND, WORLD = "ground", -1
"""The name of the body that joints to the world hang on, and its index until the scene is built: then it comes last."""
FRAME = [("body", np.int64, 2), ("position", float, (2, 3)), ("orientation", float, (2, 4))]
"""A pair of frames: bodies, and places in their principal frames."""


class JointFrames:
    """Bodies by index, their poses now, and pairs of frames on them."""

    _batches: list[Batch]
    _starts: list[int]
    _names: dict[str, tuple[int, int]]
    _count: int
    _bodies: Callable[[str, int | str], range]

    def __init__(self) -> None:
        super().__init__()
        self._frames = Table(FRAME)
        self._ground: Batch | None = None

    # ------------------------------------------------------------------ bodies

    def _in_model(self, bodies: np.ndarray) -> np.ndarray:
        """Indices of bodies in the model."""
        return np.where(bodies == WORLD, self._count, bodies)

    def _joined(self, where: str, a: int | str | None, b: int | str | None) -> tuple[int, int]:
        """Indices of two different bodies, one of them not static."""
        pair = []
        for body in (a, b):
            if body is None or (isinstance(body, str) and body == GROUND and GROUND not in self._names):
                self._ground = self._ground or bare_static(GROUND)
                pair.append(WORLD)
                continue
            found = self._bodies(where, body)
            if len(found) != 1:
                raise SceneError(
                    message(where, "joins single bodies", f"{body!r} names {len(found)} bodies", "Give an index.")
                )
            pair.append(found[0])
        if pair[0] == pair[1]:
            raise SceneError(
                message(where, "needs two different bodies", f"{a!r} twice", "Join it to another, or to None.")
            )
        kinds = [BodyKind(self._own(body, "kind")) for body in pair]
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
            assert self._ground is not None
            return self._ground, 0
        k = bisect_right(self._starts, body) - 1
        return self._batches[k], body - self._starts[k]

    def _own(self, body: int, column: str) -> Any:
        """What copies of a body share."""
        batch, k = self._batch_of(body)
        return getattr(batch, column)[k % len(batch.kind)]

    def _pose(self, body: int) -> tuple[np.ndarray, np.ndarray]:
        """Principal frame of a body in the world, now."""
        batch, k = self._batch_of(body)
        p, q = batch.position[k], batch.orientation[k]
        return p + rotation.rotate(q, self._own(body, "center")), rotation.multiply(q, self._own(body, "axes"))

    def _to_principal(self, body: int, point: np.ndarray) -> np.ndarray:
        """A point of the user's body frame in the principal frame."""
        return rotation.rotate(rotation.conjugate(self._own(body, "axes")), point - self._own(body, "center"))

    def _direction_to_world(self, body: int, direction: np.ndarray) -> np.ndarray:
        batch, k = self._batch_of(body)
        return rotation.rotate(batch.orientation[k], direction)

    def _local(self, body: int, point: np.ndarray) -> np.ndarray:
        """A world point in the principal frame of a body."""
        p, q = self._pose(body)
        return rotation.rotate(rotation.conjugate(q), point - p)

    def _world(self, frame: int, side: int) -> tuple[np.ndarray, np.ndarray]:
        """Origin and orientation of a frame, now."""
        f = self._frames.rows[frame]
        p, q = self._pose(int(f["body"][side]))
        return p + rotation.rotate(q, f["position"][side]), rotation.multiply(q, f["orientation"][side])

    def _sides(self, frame: int) -> tuple[int, int]:
        """The two bodies of a pair of frames."""
        a, b = self._frames.rows["body"][frame].tolist()
        return a, b

    # ------------------------------------------------------------------ frames

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

    def _spring_anchors(
        self, where: str, i: int, j: int, anchors: Any, anchor_a: Any, anchor_b: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """The ends of a spring in the principal frames of the two bodies."""
        own = (("anchor_a", anchor_a), ("anchor_b", anchor_b))
        if anchors is None:
            points = [checks.vector(f"{where}.{label}", (0.0, 0.0, 0.0) if p is None else p) for label, p in own]
            return self._to_principal(i, points[0]), self._to_principal(j, points[1])
        if any(p is not None for _, p in own):
            raise SceneError(
                message(where, "takes anchors in the world or in the bodies", "both", "Leave one kind out.")
            )
        world = checks.array(where + ".anchors", anchors, (2, 3))
        return self._local(i, world[0]), self._local(j, world[1])

    def _axes(
        self, where: str, kind: JointKind, i: int, j: int, axis: Any, second: Any, axis_a: Any, axis_b: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """World axes of the two frames, now."""
        if axis is not None and (axis_a is not None or axis_b is not None):
            raise SceneError(message(where, "takes an axis in the world or in the bodies", "both", "Leave one out."))
        given: list[np.ndarray | None] = [None, None]
        if axis is not None:
            given = [checks.direction(where + ".axis", axis)] * 2
        for k, (body, label, value) in enumerate(((i, "axis_a", axis_a), (j, "axis_b", axis_b))):
            if value is not None:
                given[k] = self._direction_to_world(body, checks.direction(f"{where}.{label}", value))
        if second is not None:
            if kind != JointKind.UNIVERSAL:
                raise SceneError(message(where + ".second_axis", "belongs to a universal joint", kind, "Leave it out."))
            given[1] = checks.direction(where + ".second_axis", second)
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
        first, other = given
        if first is None:
            first = np.array([0.0, 0.0, 1.0]) if other is None else other
        return first, first if other is None else other

    def _check_fit(self, where: str, kind: JointKind, frame: int) -> None:
        """Refuse anchors that are far from each other (a prismatic joint may slide along its axis, and so on)."""
        (p, q), (r, s) = self._world(frame, 0), self._world(frame, 1)
        d = rotation.rotate(rotation.conjugate(q), r - p)
        held = [row[1] for row in ROWS[kind] if row[0] == POINT]
        miss = float(np.linalg.norm(d[held])) if held else 0.0
        reach = [batch.reach(place) for batch, place in map(self._batch_of, self._sides(frame))]
        size = min((r for r in reach if r is not None), default=1.0)
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
        return self._frames.append((i, j), (pa, pb), (qa, qb))


def bases(kind: JointKind, za: np.ndarray, zb: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
