"""Shapes with a formula of their own, the half-space, and how shapes are put on a body."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import checks
from ..enums import ShapeKind
from ..errors import SceneError, message
from . import rotation
from .shape import Placed, Shape, norm, positive_length, three_lengths

__all__ = [
    "Box",
    "Capsule",
    "Cone",
    "Cylinder",
    "Ellipsoid",
    "Frustum",
    "HalfSpace",
    "Placed",
    "Shape",
    "Sphere",
    "as_placed",
    "open_box",
]


class _Symmetric(Shape):
    """A shape whose bounding box is centred on its frame; `half` (3,) are its half-extents [m]."""

    @property
    def half(self) -> np.ndarray:
        raise NotImplementedError

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        return -self.half, self.half

    @property
    def smallest(self) -> float:
        return float(self.half.min())


@dataclass(frozen=True)
class Sphere(_Symmetric):
    """A ball of the given radius [m] about the origin of its frame."""

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_length("Sphere.radius", self.radius))

    kind = ShapeKind.SPHERE
    key = "sphere"

    @property
    def half(self) -> np.ndarray:
        return np.full(3, self.radius)

    @property
    def volume(self) -> float:
        return 4.0 / 3.0 * math.pi * self.radius**3

    @property
    def unit_inertia(self) -> np.ndarray:
        return 0.4 * self.radius**2 * np.eye(3)

    @property
    def parameters(self) -> np.ndarray:
        return np.array([0.0, 0.0, 0.0, self.radius])

    @property
    def bound(self) -> float:
        return self.radius


@dataclass(frozen=True)
class Capsule(_Symmetric):
    """All points within radius [m] of a segment along z, centred on its frame.

    length [m]: distance of the centres of the two end balls, so that the capsule is length + 2 radius long.
    """

    radius: float
    length: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_length("Capsule.radius", self.radius))
        object.__setattr__(self, "length", positive_length("Capsule.length", self.length, "Use a Sphere for length 0."))

    kind = ShapeKind.CAPSULE
    key = "capsule"

    @property
    def half(self) -> np.ndarray:
        return np.array([self.radius, self.radius, self.length / 2 + self.radius])

    @property
    def volume(self) -> float:
        return math.pi * self.radius**2 * (self.length + 4.0 / 3.0 * self.radius)

    @property
    def unit_inertia(self) -> np.ndarray:
        r, l = self.radius, self.length
        caps = 4.0 / 3.0 * r / (l + 4.0 / 3.0 * r)  # part of the mass in the two half balls
        tube = 1.0 - caps
        across = tube * (r * r / 4 + l * l / 12) + caps * (0.4 * r * r + l * l / 4 + 0.375 * l * r)
        return np.diag([across, across, tube * r * r / 2 + caps * 0.4 * r * r])

    @property
    def parameters(self) -> np.ndarray:
        return np.array([0.0, 0.0, self.length / 2, self.radius])

    @property
    def bound(self) -> float:
        return self.length / 2 + self.radius


@dataclass(frozen=True)
class Box(_Symmetric):
    """A cuboid with edge lengths size = (x, y, z) [m], centred on its frame."""

    size: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", three_lengths("Box.size", self.size))

    kind = ShapeKind.BOX
    key = "box"
    roundable = True

    @property
    def half(self) -> np.ndarray:
        return 0.5 * np.array(self.size)

    @property
    def volume(self) -> float:
        return self.size[0] * self.size[1] * self.size[2]

    @property
    def unit_inertia(self) -> np.ndarray:
        x, y, z = (s * s for s in self.size)
        return np.diag([y + z, x + z, x + y]) / 12.0

    @property
    def parameters(self) -> np.ndarray:
        return np.array([*self.half, 0.0])

    @property
    def bound(self) -> float:
        return 0.5 * norm(*self.size)


class Revolved(_Symmetric):
    """A solid that is turned about z, with straight sides, of |z| <= parameters[2]."""

    @staticmethod
    def end_radii(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Radii (k,) of the lower and upper ends of solids with these parameters (k, 4)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Cylinder(Revolved):
    """A solid cylinder along z with radius and height [m], centred on its frame."""

    radius: float
    height: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_length("Cylinder.radius", self.radius))
        object.__setattr__(self, "height", positive_length("Cylinder.height", self.height))

    kind = ShapeKind.CYLINDER
    key = "cylinder"
    roundable = True

    @staticmethod
    def end_radii(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return parameters[:, 0], parameters[:, 0]

    @property
    def half(self) -> np.ndarray:
        return np.array([self.radius, self.radius, self.height / 2])

    @property
    def volume(self) -> float:
        return math.pi * self.radius**2 * self.height

    @property
    def unit_inertia(self) -> np.ndarray:
        across = self.radius**2 / 4 + self.height**2 / 12
        return np.diag([across, across, self.radius**2 / 2])

    @property
    def parameters(self) -> np.ndarray:
        return np.array([*self.half, 0.0])

    @property
    def bound(self) -> float:
        return norm(self.radius, self.height / 2)


@dataclass(frozen=True)
class Cone(Revolved):
    """A solid cone along z: base disc of the given radius [m] at z = -height/2, apex at z = +height/2."""

    radius: float
    height: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_length("Cone.radius", self.radius))
        object.__setattr__(self, "height", positive_length("Cone.height", self.height))

    kind = ShapeKind.CONE
    key = "cone"
    roundable = True

    @staticmethod
    def end_radii(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return parameters[:, 0], np.zeros(len(parameters))

    @property
    def half(self) -> np.ndarray:
        return np.array([self.radius, self.radius, self.height / 2])

    @property
    def volume(self) -> float:
        return math.pi * self.radius**2 * self.height / 3

    @property
    def center(self) -> np.ndarray:
        return np.array([0.0, 0.0, -self.height / 4])

    @property
    def unit_inertia(self) -> np.ndarray:
        across = 0.15 * self.radius**2 + 0.0375 * self.height**2
        return np.diag([across, across, 0.3 * self.radius**2])

    @property
    def parameters(self) -> np.ndarray:
        return np.array([*self.half, 0.0])

    @property
    def bound(self) -> float:
        return norm(self.radius, self.height / 2)


@dataclass(frozen=True)
class Frustum(Revolved):
    """A solid truncated cone along z: discs of bottom_radius [m] at z = -height/2 and top_radius at z = +height/2."""

    bottom_radius: float
    top_radius: float
    height: float

    def __post_init__(self) -> None:
        for name in ("bottom_radius", "top_radius", "height"):
            remedy = "" if name == "height" else "Use a Cone for an end without area."
            object.__setattr__(self, name, positive_length(f"Frustum.{name}", getattr(self, name), remedy))

    kind = ShapeKind.FRUSTUM
    key = "frustum"

    @staticmethod
    def end_radii(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return parameters[:, 0], parameters[:, 1]

    @property
    def half(self) -> np.ndarray:
        widest = max(self.bottom_radius, self.top_radius)
        return np.array([widest, widest, self.height / 2])

    @property
    def volume(self) -> float:
        a, b = self.bottom_radius, self.top_radius
        return math.pi * self.height * (a * a + a * b + b * b) / 3

    @property
    def center(self) -> np.ndarray:
        return np.array([0.0, 0.0, self._middle - self.height / 2])

    @property
    def _middle(self) -> float:
        """Height of the centroid over the bottom [m]."""
        a, b = self.bottom_radius, self.top_radius
        return self.height * (a * a + 2 * a * b + 3 * b * b) / (4 * (a * a + a * b + b * b))

    @property
    def unit_inertia(self) -> np.ndarray:
        a, b, h = self.bottom_radius, self.top_radius, self.height
        square = a * a + a * b + b * b
        disc = 0.15 * (a**4 + a**3 * b + a * a * b * b + a * b**3 + b**4) / square  # of the discs about a diameter
        across = disc + h * h * (a * a + 3 * a * b + 6 * b * b) / (10 * square) - self._middle**2
        return np.diag([across, across, 2 * disc])

    @property
    def parameters(self) -> np.ndarray:
        return np.array([self.bottom_radius, self.top_radius, self.height / 2, 0.0])

    @property
    def bound(self) -> float:
        return norm(max(self.bottom_radius, self.top_radius), self.height / 2)


@dataclass(frozen=True)
class Ellipsoid(_Symmetric):
    """A solid ellipsoid with semi_axes = (a, b, c) [m] along x, y and z, centred on its frame."""

    semi_axes: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "semi_axes", three_lengths("Ellipsoid.semi_axes", self.semi_axes))

    kind = ShapeKind.ELLIPSOID
    key = "ellipsoid"
    roundable = True

    @property
    def half(self) -> np.ndarray:
        return np.array(self.semi_axes)

    @property
    def volume(self) -> float:
        return 4.0 / 3.0 * math.pi * math.prod(self.semi_axes)

    @property
    def unit_inertia(self) -> np.ndarray:
        x, y, z = (s * s for s in self.semi_axes)
        return np.diag([y + z, x + z, x + y]) / 5.0

    @property
    def parameters(self) -> np.ndarray:
        return np.array([*self.semi_axes, 0.0])

    @property
    def bound(self) -> float:
        return max(self.semi_axes)


@dataclass(frozen=True)
class HalfSpace(Shape):
    """Everything below an unbounded plane: the points x with normal . x <= offset [m]. Never on a dynamic body."""

    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", tuple(checks.direction("HalfSpace.normal", self.normal).tolist()))
        checks.number("HalfSpace.offset", self.offset, unit="m", error=SceneError)

    kind = ShapeKind.HALF_SPACE
    key = "half_space"
    volume = math.inf  # pyright: ignore[reportAssignmentType]  -- constants where others compute
    bound = math.inf  # pyright: ignore[reportAssignmentType]
    smallest = math.inf  # pyright: ignore[reportAssignmentType]
    parameters = np.zeros(4)  # pyright: ignore[reportAssignmentType]

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        return np.full(3, -math.inf), np.full(3, math.inf)

    def check_use(self, where: str, *, dynamic: bool) -> None:
        if dynamic:
            raise SceneError(
                message(
                    where,
                    "a HalfSpace has no finite mass",
                    "HalfSpace on a dynamic body",
                    "Use add_static or add_kinematic, or a Box.",
                )
            )


PLAIN: tuple[type[Shape], ...] = (Sphere, Box, HalfSpace, Capsule, Cylinder, Cone, Ellipsoid, Frustum)
"""Shapes whose keys in a scene file are the fields of their class."""
REVOLVED: dict[ShapeKind, type[Revolved]] = {shape.kind: shape for shape in PLAIN if issubclass(shape, Revolved)}


def as_placed(where: str, shapes: object) -> tuple[Placed, ...]:
    """One shape, one placed shape or a sequence of them, as a tuple of placed shapes.

    A half-space is stored with its plane as the x-y plane of its frame.
    """
    if isinstance(shapes, (Placed, Shape)):
        shapes = (shapes,)
    try:
        items = tuple(shapes)  # type: ignore[arg-type]
    except TypeError:
        items = ()
    if not items:
        raise SceneError(
            message(
                where,
                "must be a shape or a non-empty sequence of shapes",
                checks.short(shapes),
                "For example Sphere(0.1).",
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
    inner: ArrayLike,
    thickness: float | None = None,
    center: ArrayLike = (0.0, 0.0, 0.0),
) -> list[Placed]:
    """Floor and four walls of a container without a lid.

    inner: free width, depth and height [m]; the floor's surface lies at `center`, the walls stand on its level.
    thickness [m]: of floor and walls; a tenth of the larger of width and depth if left out.
    """
    x, y, z = three_lengths("open_box.inner", inner)
    t = 0.1 * max(x, y) if thickness is None else positive_length("open_box.thickness", thickness)
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
