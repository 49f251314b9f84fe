"""Bodies of a kind in whole arrays, and how batches of them become the arrays of a Model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks, memory
from ..backends.shape_arrays import Geometry
from ..enums import BodyKind, ShapeKind
from ..errors import SceneError, message
from . import rotation
from .geometry import pooled
from .model import State
from .motion import Motion
from .shape import Placed
from .shapes import as_placed

__all__ = ["Batch", "bare_static", "body_arrays", "initial_state", "shape_arrays"]

AXES = ("x", "y", "z", "rx", "ry", "rz")


@dataclass
class Batch:
    """Copies of a unit of u bodies with m shapes in all, added together; copies may differ in size.

    Bodies of the same shapes are copies of a unit of one. Bodies of different shapes are one large unit, and so is a
    part that is repeated, copy after copy.
    """

    name: str
    kind: np.ndarray  # (u,) BodyKind
    count: int  # of bodies, a multiple of u
    mass: np.ndarray  # (count,)
    inertia: np.ndarray  # (count, 3)
    center: np.ndarray  # (u, 3)
    axes: np.ndarray  # (u, 4)
    position: np.ndarray  # (count, 3) of the user's frame
    orientation: np.ndarray  # (count, 4)
    velocity: np.ndarray  # (count, 3)
    angular_velocity: np.ndarray  # (count, 3) world
    force: np.ndarray  # (count, 3)
    torque: np.ndarray  # (count, 3)
    locked: np.ndarray  # (u, 6) bool
    group: np.ndarray  # (u,)
    mask: np.ndarray  # (u,)
    shapes: tuple[Placed, ...]
    owner: np.ndarray  # (m,) the body of each shape, in its unit
    parameters: np.ndarray  # (copies or 1, m, 4)
    bound: np.ndarray  # (copies or 1, m)
    smallest: np.ndarray  # (copies or 1, m)
    material: Sequence[int] | np.ndarray  # (m,)
    motion: Motion | None

    @property
    def copies(self) -> int:
        """How often the unit is there."""
        return self.count // len(self.kind)

    def reach(self, body: int) -> float | None:
        """Radius of the largest bounding sphere of the shapes of a body [m]; None without shapes."""
        copy, own = divmod(body, len(self.kind))
        bound = self.bound[copy if len(self.bound) > 1 else 0, self.owner == own]
        return float(bound.max()) if len(bound) else None


def bare_static(name: str) -> Batch:
    """One body without shapes at the origin of the world, which never moves."""
    three = np.zeros((1, 3))
    return Batch(
        name=name,
        kind=np.array([BodyKind.STATIC]),
        count=1,
        mass=np.zeros(1),
        inertia=three,
        center=three,
        axes=rotation.IDENTITY[None],
        position=three,
        orientation=rotation.IDENTITY[None],
        velocity=three,
        angular_velocity=three,
        force=three,
        torque=three,
        locked=np.zeros((1, 6), bool),
        group=np.array([1]),
        mask=np.array([0xFFFFFFFF]),
        shapes=(),
        owner=np.zeros(0, np.int64),
        parameters=np.zeros((1, 0, 4)),
        bound=np.zeros((1, 0)),
        smallest=np.zeros((1, 0)),
        material=(),
        motion=None,
    )


# ---------------------------------------------------------------------- checks of what all bodies have


def rows(where: str, value: Any, count: int, width: int) -> np.ndarray:
    """(width,) or (count, width) as a fresh (count, width)."""
    if checks.dimensions(value) == 1:
        return np.tile(checks.array(where, value, (width,)), (count, 1))
    return checks.array(where, value, (count, width))


def places(where: str, position: Any) -> np.ndarray:
    """Positions (n, 3) of at least one body."""
    if isinstance(position, np.ndarray) and position.ndim:
        memory.check_bodies(where, len(position))
    points = checks.array(where + ".position", position, (None, 3))
    if len(points) == 0:
        raise SceneError(message(where + ".position", "needs at least one point", "0 points", "Check the packing."))
    return points


def shapes_of_each(where: str, shapes: Iterable[Any], count: int) -> list[tuple[Placed, ...]]:
    """The shapes of each of so many bodies."""
    try:
        each = list(shapes)
    except TypeError:
        remedy = "For one shape many times use add_copies."
        raise SceneError(message(where, "needs the shapes of each body", checks.short(shapes), remedy)) from None
    if len(each) != count:
        got = f"{len(each)} for {count} positions"
        raise SceneError(message(where + ".shapes", "needs one entry a body", got, "Give as many of both."))
    return [as_placed(f"{where}.shapes[{i}]", own) for i, own in enumerate(each)]


def locked_axes(where: str, locked: Iterable[str]) -> np.ndarray:
    """(6,) bool"""
    try:
        words = locked.split() if isinstance(locked, str) else list(locked)
    except TypeError:  # also arrays without an axis, which call themselves iterable
        got, remedy = checks.short(locked), "Any of " + ", ".join(AXES) + "."
        raise SceneError(message(where + ".locked", "must be a list of axes", got, remedy)) from None
    for word in words:
        checks.choice(where + ".locked", word, AXES, error=SceneError)
    return np.array([axis in words for axis in AXES])


def bits(where: str, value: int) -> int:
    """A set of 32 bits."""
    out = checks.integer(where, value, at_least=0, error=SceneError)
    if out > 0xFFFFFFFF:
        raise SceneError(message(where, "must fit in 32 bits", out, "Give at most 0xFFFFFFFF."))
    return out


# ---------------------------------------------------------------------- arrays of a Model


def body_arrays(batches: Sequence[Batch]) -> dict[str, np.ndarray]:
    """The columns `body_...` of a Model."""
    kind = _each(batches, "kind", np.int8)
    locked = _each(batches, "locked", bool)
    mass = _stack(b.mass for b in batches)
    dynamic = kind == BodyKind.DYNAMIC
    inverse = np.where(dynamic, 1.0 / np.where(dynamic, mass, 1.0), 0.0)
    return {
        "body_kind": kind,
        "body_uid": np.arange(len(kind), dtype=np.int64),
        "body_mass": mass,
        "body_inertia": _stack(b.inertia for b in batches),
        "body_inverse_mass": np.where(locked[:, :3], 0.0, inverse[:, None]),
        "body_locked": locked,
        "body_center": _each(batches, "center"),
        "body_axes": _each(batches, "axes"),
        "body_force": _stack(b.force for b in batches),
        "body_torque": _stack(b.torque for b in batches),
        "body_group": _each(batches, "group", np.uint32),
        "body_mask": _each(batches, "mask", np.uint32),
        "body_size": _stack(map(_sizes, batches)),
    }


def initial_state(batches: Sequence[Batch]) -> State:
    """Where everything is at the start."""
    place, turn = _stack(b.position for b in batches), _stack(b.orientation for b in batches)
    orientation = rotation.multiply(turn, _each(batches, "axes"))
    spin = rotation.rotate(rotation.conjugate(orientation), _stack(b.angular_velocity for b in batches))
    return State(
        0.0,
        0,
        place + rotation.rotate(turn, _each(batches, "center")),
        orientation,
        _stack(b.velocity for b in batches),
        np.ascontiguousarray(spin),
    )


def shape_arrays(batches: Sequence[Batch]) -> dict[str, np.ndarray | Geometry]:
    """The columns `shape_...` of a Model, and `geometry`."""
    entries, geometry = pooled([p.shape.geometry for b in batches for p in b.shapes])
    columns: dict[str, list[np.ndarray]] = {}
    first = 0
    for b in batches:
        m, unit = len(b.shapes), len(b.kind)
        inverse = rotation.conjugate(b.axes)[b.owner]
        entry, entries = entries[:m], entries[m:]
        kind = np.array([p.shape.kind for p in b.shapes], np.int8)
        position = np.array([p.position for p in b.shapes], float).reshape(-1, 3) - b.center[b.owner]
        orientation = np.array([p.orientation for p in b.shapes], float).reshape(-1, 4)
        for name, value in {
            "kind": np.tile(kind, b.copies),
            "body": (first + unit * np.arange(b.copies)[:, None] + b.owner).ravel(),
            "local": np.tile(_place(b.owner), b.copies),
            "parameters": _parameters(b, kind == ShapeKind.HULL, entry, geometry),
            "geometry": np.tile(entry, b.copies),
            "position": np.tile(rotation.rotate(inverse, position), (b.copies, 1)),
            "orientation": np.tile(rotation.multiply(inverse, orientation), (b.copies, 1)),
            "material": np.tile(b.material, b.copies),
            "bound": np.broadcast_to(b.bound, (b.copies, m)).ravel(),
            "smallest": np.broadcast_to(b.smallest, (b.copies, m)).ravel(),
        }.items():
            columns.setdefault(name, []).append(value)
        first += b.count
    dtypes = {"kind": np.int8} | dict.fromkeys(("body", "local", "geometry", "material"), np.int32)
    return {"shape_" + k: _stack(v, dtypes.get(k, np.float64)) for k, v in columns.items()} | {"geometry": geometry}


def _parameters(batch: Batch, hull: np.ndarray, entry: np.ndarray, geometry: Geometry) -> np.ndarray:
    """(copies m, 4), hulls with their first point and number of points."""
    out = np.broadcast_to(batch.parameters, (batch.copies, len(batch.shapes), 4)).copy()
    start, end = geometry.hull_start[entry[hull]], geometry.hull_start[entry[hull] + 1]
    out[:, hull, 0], out[:, hull, 1] = start, end - start
    return out.reshape(-1, 4)


def _place(owner: np.ndarray) -> np.ndarray:
    """Number of each shape on its body; the shapes of a body follow each other."""
    return np.arange(len(owner)) - np.searchsorted(owner, owner)


def _sizes(batch: Batch) -> np.ndarray:
    """(count,) smallest half-extent of the shapes of each body [m]."""
    out = np.full((len(batch.smallest), len(batch.kind)), np.inf)
    every: Any = (slice(None), batch.owner)
    np.minimum.at(out, every, batch.smallest)
    return np.broadcast_to(out, (batch.copies, out.shape[1])).ravel()


def _stack(values: Iterable[np.ndarray], dtype: Any = np.float64) -> np.ndarray:
    return np.ascontiguousarray(np.concatenate(list(values)), dtype=dtype)


def _each(batches: Sequence[Batch], attribute: str, dtype: Any = np.float64) -> np.ndarray:
    """What all copies share, for each body."""
    values = [getattr(b, attribute) for b in batches]
    return _stack((np.tile(v, (b.copies,) + (1,) * (v.ndim - 1)) for v, b in zip(values, batches)), dtype)
