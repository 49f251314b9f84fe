"""The scene builder: checks everything when it is called and freezes it into a Model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..enums import BodyKind
from ..errors import SceneError, message
from . import rotation
from .mass import mass_properties
from .materials import Material, combined_friction
from .model import ForceCallback, Model, State
from .motion import Motion
from .shapes import Box, Placed, Sphere, as_placed

__all__ = ["SceneBuilder"]

AXES = ("x", "y", "z", "rx", "ry", "rz")
STANDARD_GRAVITY = (0.0, 0.0, -9.81)
MAX_BODIES = 2**31 - 1


@dataclass
class _Batch:
    """Equal treatment for one body or a million: `count` bodies with the same shapes up to their size."""

    name: str
    kind: BodyKind
    count: int
    mass: np.ndarray  # (count,)
    inertia: np.ndarray  # (count, 3)
    center: np.ndarray  # (3,)
    axes: np.ndarray  # (4,)
    position: np.ndarray  # (count, 3) of the user's frame
    orientation: np.ndarray  # (count, 4)
    velocity: np.ndarray  # (count, 3)
    angular_velocity: np.ndarray  # (count, 3) world
    force: np.ndarray  # (count, 3)
    torque: np.ndarray  # (count, 3)
    locked: np.ndarray  # (6,) bool
    group: int
    mask: int
    shapes: tuple[Placed, ...]
    parameters: np.ndarray  # (count, len(shapes), 3)
    bound: np.ndarray  # (count, len(shapes))
    smallest: np.ndarray  # (count, len(shapes))
    material: tuple[int, ...]
    motion: Motion | None


class SceneBuilder:
    """Collects materials, bodies and forces.

    gravity: acceleration (3,) [m/s^2]; the default points down the z axis with 9.81 m/s^2.
    """

    def __init__(self, *, gravity: Sequence[float] = STANDARD_GRAVITY) -> None:
        self._gravity = checks.vector("SceneBuilder.gravity", gravity)
        self._materials: list[Material] = []
        self._friction: dict[tuple[int, int], float] = {}
        self._batches: list[_Batch] = []
        self._names: dict[str, tuple[int, int]] = {}
        self._excluded: set[tuple[int, int]] = set()
        self._forces: list[ForceCallback] = []
        self._count = 0

    # ------------------------------------------------------------------ materials

    def add_material(self, material: Material) -> Material:
        """Register a material and return it."""
        if not isinstance(material, Material):
            raise SceneError(
                message("add_material", "needs a Material", repr(material), "For example Material(friction=0.3).")
            )
        if material.name is not None and any(m.name == material.name and m is not material for m in self._materials):
            raise SceneError(message("add_material", "names are unique", repr(material.name), "Choose another name."))
        if not any(m is material for m in self._materials):
            self._materials.append(material)
        return material

    def set_friction(self, a: Material | str, b: Material | str, friction: float) -> None:
        """Friction between two materials, in place of the smaller of their own values."""
        value = checks.number("set_friction.friction", friction, at_least=0.0, error=SceneError)
        pair = sorted((self._material_index("set_friction", a), self._material_index("set_friction", b)))
        self._friction[(pair[0], pair[1])] = value

    # ------------------------------------------------------------------ bodies

    def add_body(
        self,
        shapes: Any,
        *,
        mass: float | None = None,
        density: float | None = None,
        inertia: Any = None,
        material: Material | str | Sequence[Material | str] | None = None,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
        velocity: Sequence[float] = (0.0, 0.0, 0.0),
        angular_velocity: Sequence[float] = (0.0, 0.0, 0.0),
        force: Sequence[float] = (0.0, 0.0, 0.0),
        torque: Sequence[float] = (0.0, 0.0, 0.0),
        locked: Iterable[str] = (),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> int:
        """A dynamic body; returns its index.

        shapes: a shape, a `Placed` one or several. mass [kg] or density [kg/m^3]; inertia as in `mass_properties`.
        position and orientation are those of the body's frame; velocity [m/s] is that of the centre of mass and
        angular_velocity [rad/s], force [N], torque [N m] are in world axes. locked: any of x, y, z, rx, ry, rz
        (world axes). group and mask are bits: two bodies collide when each is in a group the other's mask holds.
        """
        where = self._label("add_body", name)
        placed = as_placed(where, shapes)
        properties = mass_properties(where, placed, mass=mass, density=density, inertia=inertia)
        return self._add(
            where,
            placed,
            BodyKind.DYNAMIC,
            1,
            name=name,
            material=material,
            position=position,
            orientation=orientation,
            velocity=velocity,
            angular_velocity=angular_velocity,
            force=force,
            torque=torque,
            locked=locked,
            group=group,
            mask=mask,
            motion=None,
            mass=np.array([properties.mass]),
            inertia=properties.moments[None],
            center=properties.center,
            axes=properties.axes,
        )[0]

    def add_static(
        self,
        shapes: Any,
        *,
        material: Material | str | Sequence[Material | str] | None = None,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> int:
        """A body that never moves; returns its index."""
        where = self._label("add_static", name)
        return self._add(
            where,
            as_placed(where, shapes),
            BodyKind.STATIC,
            1,
            name=name,
            material=material,
            position=position,
            orientation=orientation,
            group=group,
            mask=mask,
        )[0]

    def add_kinematic(
        self,
        shapes: Any,
        *,
        material: Material | str | Sequence[Material | str] | None = None,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
        velocity: Sequence[float] = (0.0, 0.0, 0.0),
        angular_velocity: Sequence[float] = (0.0, 0.0, 0.0),
        motion: Motion | None = None,
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> int:
        """A body with a prescribed motion: constant velocities, or a `Motion`, which then sets the pose as well."""
        where = self._label("add_kinematic", name)
        if motion is not None:
            if not callable(motion):
                raise SceneError(
                    message(
                        where + ".motion",
                        "must be a function of time",
                        repr(motion),
                        "It returns a position (3,) and an orientation (4,); see Oscillation.",
                    )
                )
            if any(
                np.any(checks.vector(f"{where}.{name}", value))
                for name, value in (("velocity", velocity), ("angular_velocity", angular_velocity))
            ):
                raise SceneError(
                    message(
                        where,
                        "takes a motion or velocities, not both",
                        f"velocity={velocity}",
                        "Leave the velocities out.",
                    )
                )
            position, orientation = motion_pose(where, motion, 0.0)
        return self._add(
            where,
            as_placed(where, shapes),
            BodyKind.KINEMATIC,
            1,
            name=name,
            material=material,
            position=position,
            orientation=orientation,
            velocity=velocity,
            angular_velocity=angular_velocity,
            group=group,
            mask=mask,
            motion=motion,
        )[0]

    def add_spheres(
        self,
        radius: Any,
        *,
        position: Any,
        mass: Any = None,
        density: Any = None,
        material: Material | str | None = None,
        velocity: Any = (0.0, 0.0, 0.0),
        angular_velocity: Any = (0.0, 0.0, 0.0),
        force: Any = (0.0, 0.0, 0.0),
        locked: Iterable[str] = (),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> range:
        """Many dynamic spheres in one call; returns their indices.

        position (n, 3) [m]; radius, mass or density: a number or (n,); velocities and forces: (3,) or (n, 3).
        """
        where = self._label("add_spheres", name)
        points = checks.array(where + ".position", position, (None, 3))
        count = self._needs_some(where, len(points))
        r = checks.positive_array(where + ".radius", radius, count, unit="m")
        m = self._many_masses(where, mass, density, 4.0 / 3.0 * np.pi * r**3)
        parameters = np.zeros((count, 1, 3))
        parameters[:, 0, 0] = r
        return self._add(
            where,
            (Placed(Sphere(1.0)),),
            BodyKind.DYNAMIC,
            count,
            name=name,
            material=material,
            position=points,
            orientation=(1.0, 0.0, 0.0, 0.0),
            velocity=velocity,
            angular_velocity=angular_velocity,
            force=force,
            locked=locked,
            group=group,
            mask=mask,
            mass=m,
            inertia=np.repeat((0.4 * m * r**2)[:, None], 3, axis=1),
            parameters=parameters,
            bound=r[:, None],
            smallest=r[:, None],
        )

    def add_boxes(
        self,
        size: Any,
        *,
        position: Any,
        orientation: Any = (1.0, 0.0, 0.0, 0.0),
        mass: Any = None,
        density: Any = None,
        material: Material | str | None = None,
        velocity: Any = (0.0, 0.0, 0.0),
        angular_velocity: Any = (0.0, 0.0, 0.0),
        force: Any = (0.0, 0.0, 0.0),
        locked: Iterable[str] = (),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> range:
        """Many dynamic boxes in one call; returns their indices. size: edge lengths (3,) or (n, 3) [m]."""
        where = self._label("add_boxes", name)
        points = checks.array(where + ".position", position, (None, 3))
        count = self._needs_some(where, len(points))
        edges = self._rows(where + ".size", size, count, 3)
        checks.positive_array(where + ".size", edges.ravel(), 3 * count, unit="m")
        m = self._many_masses(where, mass, density, edges.prod(axis=1))
        s2 = edges**2
        inertia = m[:, None] / 12.0 * np.stack([s2[:, 1] + s2[:, 2], s2[:, 0] + s2[:, 2], s2[:, 0] + s2[:, 1]], axis=1)
        return self._add(
            where,
            (Placed(Box((1.0, 1.0, 1.0))),),
            BodyKind.DYNAMIC,
            count,
            name=name,
            material=material,
            position=points,
            orientation=orientation,
            velocity=velocity,
            angular_velocity=angular_velocity,
            force=force,
            locked=locked,
            group=group,
            mask=mask,
            mass=m,
            inertia=inertia,
            parameters=0.5 * edges[:, None, :],
            bound=0.5 * np.linalg.norm(edges, axis=1)[:, None],
            smallest=0.5 * edges.min(axis=1)[:, None],
        )

    # ------------------------------------------------------------------ the rest

    def exclude_pair(self, a: int | str, b: int | str) -> None:
        """Two bodies, by index or name, that never collide (names of many bodies: each with each)."""
        for i in self._bodies("exclude_pair", a):
            for j in self._bodies("exclude_pair", b):
                if i != j:
                    self._excluded.add((min(i, j), max(i, j)))

    def add_force(self, callback: ForceCallback) -> None:
        """A force field evaluated once a step with whole arrays; see `ForceCallback`."""
        if not callable(callback):
            raise SceneError(
                message(
                    "add_force",
                    "needs a function",
                    repr(callback),
                    "force(time, position, orientation, velocity, angular_velocity) -> force, torque.",
                )
            )
        self._forces.append(callback)

    def build(self) -> Model:
        """Freeze the scene."""
        if not self._batches:
            raise SceneError(
                message(
                    "SceneBuilder.build",
                    "a scene needs at least one body",
                    0,
                    "Call add_body, add_spheres or another add_ method first.",
                )
            )
        batches = self._batches
        counts = [b.count for b in batches]

        def stack(values: Iterable[np.ndarray], dtype: Any = np.float64) -> np.ndarray:
            return np.ascontiguousarray(np.concatenate(list(values)), dtype=dtype)

        def each(attribute: str) -> np.ndarray:
            return stack(
                np.broadcast_to(np.asarray(getattr(b, attribute)), (b.count, *np.shape(getattr(b, attribute))))
                for b in batches
            )

        kind = stack((np.full(c, b.kind) for b, c in zip(batches, counts)), np.int8)
        center, axes = each("center"), each("axes")
        locked = each("locked").astype(bool)
        mass, inertia = stack(b.mass for b in batches), stack(b.inertia for b in batches)
        dynamic = kind == BodyKind.DYNAMIC
        inverse = np.where(dynamic, 1.0 / np.where(dynamic, mass, 1.0), 0.0)
        user_position, user_orientation = stack(b.position for b in batches), stack(b.orientation for b in batches)
        orientation = rotation.multiply(user_orientation, axes)
        spin = rotation.rotate(rotation.conjugate(orientation), stack(b.angular_velocity for b in batches))
        state = State(
            0.0,
            0,
            user_position + rotation.rotate(user_orientation, center),
            orientation,
            stack(b.velocity for b in batches),
            np.ascontiguousarray(spin),
        )
        shapes = self._shape_arrays()
        materials = tuple(self._materials)
        return Model(
            gravity=self._gravity.copy(),
            body_kind=kind,
            body_uid=np.arange(self._count, dtype=np.int64),
            body_mass=mass,
            body_inertia=inertia,
            body_inverse_mass=np.where(locked[:, :3], 0.0, inverse[:, None]),
            body_locked=locked,
            body_center=center,
            body_axes=axes,
            body_force=stack(b.force for b in batches),
            body_torque=stack(b.torque for b in batches),
            body_group=stack((np.full(c, b.group) for b, c in zip(batches, counts)), np.uint32),
            body_mask=stack((np.full(c, b.mask) for b, c in zip(batches, counts)), np.uint32),
            body_size=stack(b.smallest.min(axis=1) for b in batches),
            **shapes,
            materials=materials,
            friction=self._friction_table(),
            excluded=np.array(sorted((a << 32) + b for a, b in self._excluded), dtype=np.int64),
            names=tuple((name, first, count) for name, (first, count) in self._names.items()),
            motions={self._names[b.name][0]: b.motion for b in batches if b.motion is not None},
            forces=tuple(self._forces),
            initial=state,
        )

    # ------------------------------------------------------------------ helpers

    def _add(
        self,
        where: str,
        shapes: tuple[Placed, ...],
        kind: BodyKind,
        count: int,
        *,
        name: str | None,
        material: Any,
        position: Any,
        orientation: Any,
        velocity: Any = (0.0, 0.0, 0.0),
        angular_velocity: Any = (0.0, 0.0, 0.0),
        force: Any = (0.0, 0.0, 0.0),
        torque: Any = (0.0, 0.0, 0.0),
        locked: Iterable[str] = (),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        motion: Motion | None = None,
        mass: np.ndarray | None = None,
        inertia: np.ndarray | None = None,
        center: np.ndarray | None = None,
        axes: np.ndarray | None = None,
        parameters: np.ndarray | None = None,
        bound: np.ndarray | None = None,
        smallest: np.ndarray | None = None,
    ) -> range:
        if self._count + count > MAX_BODIES:
            raise SceneError(message(where, f"at most {MAX_BODIES} bodies", self._count + count, "Split the scene."))
        name = self._free_name(where, name, kind)
        batch = _Batch(
            name=name,
            kind=kind,
            count=count,
            mass=np.zeros(count) if mass is None else mass,
            inertia=np.zeros((count, 3)) if inertia is None else inertia,
            center=np.zeros(3) if center is None else center,
            axes=rotation.IDENTITY if axes is None else axes,
            position=self._rows(where + ".position", position, count, 3),
            orientation=checks.quaternions(
                where + ".orientation", self._rows(where + ".orientation", orientation, count, 4), count
            ),
            velocity=self._rows(where + ".velocity", velocity, count, 3),
            angular_velocity=self._rows(where + ".angular_velocity", angular_velocity, count, 3),
            force=self._rows(where + ".force", force, count, 3),
            torque=self._rows(where + ".torque", torque, count, 3),
            locked=self._locked(where, locked),
            group=self._bits(where + ".group", group),
            mask=self._bits(where + ".mask", mask),
            shapes=shapes,
            parameters=np.array([[p.shape.parameters for p in shapes]]) if parameters is None else parameters,
            bound=np.array([[p.shape.bound for p in shapes]]) if bound is None else bound,
            smallest=np.array([[p.shape.smallest for p in shapes]]) if smallest is None else smallest,
            material=self._materials_of(where, material, len(shapes)),
            motion=motion,
        )
        if np.any(batch.locked):
            batch.velocity[:, batch.locked[:3]] = 0.0
            batch.angular_velocity[:, batch.locked[3:]] = 0.0
        first = self._count
        self._batches.append(batch)
        self._names[name] = (first, count)
        self._count += count
        return range(first, self._count)

    def _shape_arrays(self) -> dict[str, np.ndarray]:
        columns: dict[str, list[np.ndarray]] = {
            k: []
            for k in ("kind", "body", "local", "parameters", "position", "orientation", "material", "bound", "smallest")
        }
        first = 0
        for b in self._batches:
            k = len(b.shapes)
            inverse = rotation.conjugate(b.axes)
            place = rotation.rotate(inverse, np.array([p.position for p in b.shapes]) - b.center)
            turn = rotation.multiply(inverse, np.array([p.orientation for p in b.shapes]))
            columns["kind"].append(np.tile([p.shape.kind for p in b.shapes], b.count))
            columns["body"].append(np.repeat(np.arange(first, first + b.count), k))
            columns["local"].append(np.tile(np.arange(k), b.count))
            columns["parameters"].append(b.parameters.reshape(-1, 3))
            columns["position"].append(np.tile(place, (b.count, 1)))
            columns["orientation"].append(np.tile(turn, (b.count, 1)))
            columns["material"].append(np.tile(b.material, b.count))
            columns["bound"].append(b.bound.ravel())
            columns["smallest"].append(b.smallest.ravel())
            first += b.count
        dtypes = {"kind": np.int8, "body": np.int32, "local": np.int32, "material": np.int32}
        return {
            "shape_" + k: np.ascontiguousarray(np.concatenate(v), dtype=dtypes.get(k, np.float64))
            for k, v in columns.items()
        }

    def _friction_table(self) -> np.ndarray:
        table = np.array([[combined_friction(a, b) for b in self._materials] for a in self._materials], float)
        for (i, j), value in self._friction.items():
            table[i, j] = table[j, i] = value
        return table

    def _material_index(self, where: str, material: Material | str) -> int:
        if isinstance(material, str):
            for i, known in enumerate(self._materials):
                if known.name == material:
                    return i
            names = [m.name for m in self._materials if m.name is not None]
            raise SceneError(message(where, "unknown material", repr(material), checks.nearest(material, names)))
        if not isinstance(material, Material):
            raise SceneError(
                message(
                    where + ".material",
                    "must be a Material or its name",
                    repr(material),
                    "For example Material(friction=0.3).",
                )
            )
        self.add_material(material)
        return next(i for i, known in enumerate(self._materials) if known is material)

    def _materials_of(self, where: str, material: Any, count: int) -> tuple[int, ...]:
        if material is None:
            default = next((m for m in self._materials if m.name == "default"), None)
            material = default or self.add_material(Material(name="default"))
        if isinstance(material, (Material, str)) or not isinstance(material, Iterable):
            return (self._material_index(where, material),) * count
        materials = list(material)
        if len(materials) != count:
            raise SceneError(
                message(
                    where + ".material", f"needs one material or {count}", len(materials), "Give one for each shape."
                )
            )
        return tuple(self._material_index(where, m) for m in materials)

    def _bodies(self, where: str, body: int | str) -> range:
        if isinstance(body, str):
            if body in self._names:
                first, count = self._names[body]
                return range(first, first + count)
            raise SceneError(message(where, "unknown body", repr(body), checks.nearest(body, self._names)))
        index = checks.integer(where, body, at_least=0, error=SceneError)
        if index >= self._count:
            raise SceneError(message(where, f"body index must be below {self._count}", index, "Count from 0."))
        return range(index, index + 1)

    def _free_name(self, where: str, name: str | None, kind: BodyKind) -> str:
        if name is None:
            return f"{kind.name.lower()}{len(self._names)}"
        if not isinstance(name, str) or not name or "[" in name:
            raise SceneError(
                message(where + ".name", "must be a text without brackets", repr(name), "Or leave it out.")
            )
        if name in self._names:
            raise SceneError(message(where + ".name", "names are unique", repr(name), "Choose another name."))
        return name

    @staticmethod
    def _label(method: str, name: str | None) -> str:
        return method if name is None else f"{method}('{name}')"

    @staticmethod
    def _needs_some(where: str, count: int) -> int:
        if count == 0:
            raise SceneError(message(where + ".position", "needs at least one point", "0 points", "Check the packing."))
        return count

    @staticmethod
    def _rows(where: str, value: Any, count: int, width: int) -> np.ndarray:
        """(width,) or (count, width) as a fresh (count, width)."""
        if checks.dimensions(value) == 1:
            return np.tile(checks.array(where, value, (width,)), (count, 1))
        return checks.array(where, value, (count, width))

    @staticmethod
    def _many_masses(where: str, mass: Any, density: Any, volume: np.ndarray) -> np.ndarray:
        if (mass is None) == (density is None):
            raise SceneError(
                message(
                    where,
                    "needs either mass or density",
                    f"mass={mass}, density={density}",
                    "Give exactly one of them.",
                )
            )
        if mass is not None:
            return checks.positive_array(where + ".mass", mass, len(volume), unit="kg")
        return volume * checks.positive_array(where + ".density", density, len(volume), unit="kg/m^3")

    @staticmethod
    def _locked(where: str, locked: Iterable[str]) -> np.ndarray:
        if not isinstance(locked, Iterable):
            raise SceneError(
                message(where + ".locked", "must be a list of axes", repr(locked), "Any of " + ", ".join(AXES) + ".")
            )
        words = locked.split() if isinstance(locked, str) else list(locked)
        for word in words:
            checks.choice(where + ".locked", word, AXES, error=SceneError)
        return np.array([axis in words for axis in AXES])

    @staticmethod
    def _bits(where: str, value: int) -> int:
        bits = checks.integer(where, value, at_least=0, error=SceneError)
        if bits > 0xFFFFFFFF:
            raise SceneError(message(where, "must fit in 32 bits", bits, "Give at most 0xFFFFFFFF."))
        return bits


def motion_pose(where: str, motion: Motion, time: float) -> tuple[np.ndarray, np.ndarray]:
    """Pose of a motion at a time, checked."""
    try:
        position, orientation = motion(time)
    except (TypeError, ValueError) as cause:
        raise SceneError(
            message(
                where + ".motion",
                "must return a position and an orientation",
                f"{type(cause).__name__}: {cause}",
                "See tumble.Oscillation for an example.",
            )
        ) from cause
    return (
        checks.array(where + ".motion position", position, (3,)),
        checks.quaternion(where + ".motion orientation", orientation),
    )
