"""Collision shapes. Each knows its size, volume and inertia; `Placed` puts one somewhere on a body."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from .. import checks
from ..enums import ShapeKind
from ..errors import SceneError, message
from . import rotation

__all__ = ["Box", "HalfSpace", "Placed", "Shape", "Sphere", "open_box"]


@dataclass(frozen=True)
class Sphere:
    """A ball of the given radius [m] about the origin of its frame."""

    radius: float

    def __post_init__(self) -> None:
        checks.number("Sphere.radius", self.radius, above=0.0, unit="m", error=SceneError)

    kind = ShapeKind.SPHERE

    @property
    def volume(self) -> float:
        """[m^3]"""
        return 4.0 / 3.0 * math.pi * self.radius**3

    @property
    def unit_inertia(self) -> np.ndarray:
        """Principal moments (3,) for mass 1 [m^2]."""
        return np.full(3, 0.4 * self.radius**2)

    @property
    def parameters(self) -> np.ndarray:
        """Numbers (3,) the kernels need: radius, 0, 0."""
        return np.array([self.radius, 0.0, 0.0])

    @property
    def bound(self) -> float:
        """Radius of the bounding sphere about the frame's origin [m]."""
        return float(self.radius)

    @property
    def smallest(self) -> float:
        """Smallest half-extent [m]."""
        return float(self.radius)


@dataclass(frozen=True)
class Box:
    """A cuboid with edge lengths size = (x, y, z) [m], centred on its frame."""

    size: tuple[float, float, float]

    def __post_init__(self) -> None:
        size = checks.vector("Box.size", self.size)
        for axis, value in zip("xyz", size):
            checks.number(f"Box.size ({axis})", float(value), above=0.0, unit="m", error=SceneError)
        object.__setattr__(self, "size", tuple(float(v) for v in size))

    kind = ShapeKind.BOX

    @property
    def volume(self) -> float:
        """[m^3]"""
        return self.size[0] * self.size[1] * self.size[2]

    @property
    def unit_inertia(self) -> np.ndarray:
        """Principal moments (3,) for mass 1 [m^2]."""
        x, y, z = (s * s for s in self.size)
        return np.array([y + z, x + z, x + y]) / 12.0

    @property
    def parameters(self) -> np.ndarray:
        """Numbers (3,) the kernels need: half-extents."""
        return 0.5 * np.array(self.size)

    @property
    def bound(self) -> float:
        """Radius of the bounding sphere about the frame's origin [m]."""
        return 0.5 * math.sqrt(sum(s * s for s in self.size))

    @property
    def smallest(self) -> float:
        """Smallest half-extent [m]."""
        return 0.5 * min(self.size)


@dataclass(frozen=True)
class HalfSpace:
    """Everything below an unbounded plane: the points x with normal . x <= offset [m]. Never on a dynamic body."""

    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    offset: float = 0.0

    def __post_init__(self) -> None:
        normal = checks.vector("HalfSpace.normal", self.normal)
        length = float(np.linalg.norm(normal))
        if length == 0.0:
            raise SceneError(
                message("HalfSpace.normal", "must have a direction", tuple(self.normal), "(0, 0, 1) points up.")
            )
        object.__setattr__(self, "normal", tuple(float(v) for v in normal / length))
        checks.number("HalfSpace.offset", self.offset, unit="m", error=SceneError)

    kind = ShapeKind.HALF_SPACE
    volume = math.inf
    bound = math.inf
    smallest = math.inf
    parameters = np.zeros(3)


Shape = Sphere | Box | HalfSpace


@dataclass(frozen=True)
class Placed:
    """A shape at a position [m] and orientation (w, x, y, z) in the body's frame."""

    shape: Shape
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    orientation: tuple[float, float, float, float] = field(default=(1.0, 0.0, 0.0, 0.0))

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Shape):
            raise SceneError(
                message(
                    "Placed.shape",
                    "must be a Sphere, Box or HalfSpace",
                    repr(self.shape),
                    "For example Placed(Sphere(0.1), (0, 0, 1)).",
                )
            )
        object.__setattr__(self, "position", tuple(checks.vector("Placed.position", self.position).tolist()))
        q = checks.quaternion("Placed.orientation", self.orientation)
        object.__setattr__(self, "orientation", tuple(q.tolist()))


def as_placed(where: str, shapes: object) -> tuple[Placed, ...]:
    """One shape, one placed shape or a sequence of them, as a tuple of placed shapes.

    A half-space is stored with its plane as the x-y plane of its frame.
    """
    if isinstance(shapes, (Placed, Sphere, Box, HalfSpace)):
        shapes = (shapes,)
    try:
        items = tuple(shapes)  # type: ignore[arg-type]
    except TypeError:
        items = ()
    if not items:
        raise SceneError(
            message(
                where, "must be a shape or a non-empty sequence of shapes", repr(shapes), "For example Sphere(0.1)."
            )
        )
    out = []
    for item in items:
        placed = item if isinstance(item, Placed) else Placed(item)
        if isinstance(placed.shape, HalfSpace):
            normal = np.array(placed.shape.normal)
            turn = rotation.multiply(np.array(placed.orientation), rotation.from_normal(normal))
            origin = np.array(placed.position) + rotation.rotate(
                np.array(placed.orientation), placed.shape.offset * normal
            )
            placed = Placed(HalfSpace(), tuple(origin), tuple(turn / np.linalg.norm(turn)))
        out.append(placed)
    return tuple(out)


def open_box(
    *,
    inner: tuple[float, float, float],
    thickness: float | None = None,
    center: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> list[Placed]:
    """Floor and four walls of a container without a lid.

    inner: free width, depth and height [m]; the floor's surface lies at `center`, the walls stand on its level.
    thickness [m]: of floor and walls; a tenth of the larger of width and depth if left out.
    """
    x, y, z = checks.vector("open_box.inner", inner)
    for axis, value in zip("xyz", (x, y, z)):
        checks.number(f"open_box.inner ({axis})", float(value), above=0.0, unit="m", error=SceneError)
    t = (
        0.1 * max(x, y)
        if thickness is None
        else checks.number("open_box.thickness", thickness, above=0.0, unit="m", error=SceneError)
    )
    cx, cy, cz = checks.vector("open_box.center", center)
    # Walls reach down to the floor's underside, so that no edge of the floor shows inside.
    walls = [
        Placed(Box((x + 2 * t, y + 2 * t, t)), (cx, cy, cz - t / 2)),
        Placed(Box((t, y + 2 * t, z + t)), (cx - (x + t) / 2, cy, cz + (z - t) / 2)),
        Placed(Box((t, y + 2 * t, z + t)), (cx + (x + t) / 2, cy, cz + (z - t) / 2)),
        Placed(Box((x, t, z + t)), (cx, cy - (y + t) / 2, cz + (z - t) / 2)),
        Placed(Box((x, t, z + t)), (cx, cy + (y + t) / 2, cz + (z - t) / 2)),
    ]
    return walls
