"""The part of the scene builder that adds bodies, one by one or in whole arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import checks, memory
from ..enums import BodyKind
from ..errors import SceneError, message
from . import rotation
from .batch import Batch, bits, locked_axes, places, rows, shapes_of_each
from .mass import all_properties, many_masses, mass_properties
from .materials import Material, MaterialTable
from .motion import Motion, conveyor, first_pose
from .shapes import Box, Placed, Sphere, as_placed
from .table import Table

__all__ = ["Bodies"]

MAX_BODIES = 2**31 - 1


class Bodies:
    """Bodies in batches, by name and index. `SceneBuilder` has them: use its methods."""

    def __init__(self) -> None:
        super().__init__()
        self._materials = MaterialTable()
        self._batches: list[Batch] = []
        self._starts: list[int] = []
        self._names: dict[str, tuple[int, int]] = {}
        self._count = 0
        self._excluded = Table([("pair", np.int64, 2)])

    def add_body(
        self,
        shapes: Any,
        *,
        mass: float | None = None,
        density: float | None = None,
        inertia: Any = None,
        center: ArrayLike | None = None,
        material: Material | str | Sequence[Material | str] | None = None,
        position: ArrayLike = (0.0, 0.0, 0.0),
        orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        angular_velocity: ArrayLike = (0.0, 0.0, 0.0),
        force: ArrayLike = (0.0, 0.0, 0.0),
        torque: ArrayLike = (0.0, 0.0, 0.0),
        locked: Iterable[str] = (),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> int:
        """A dynamic body; returns its index.

        shapes: a shape, a `Placed` one or several; None: a body that touches nothing, with mass and inertia. mass [kg]
        or density [kg/m^3]; inertia as in `mass_properties`; center: of mass in the body's frame [m], if not that of
        the shapes (needs mass and inertia).
        position and orientation are those of the body's frame; velocity [m/s] is that of the centre of mass and
        angular_velocity [rad/s], force [N], torque [N m] are in world axes. locked: any of x, y, z, rx, ry, rz
        (world axes). group and mask are bits: two bodies collide when each is in a group the other's mask holds.
        """
        where = self._label("add_body", name)
        placed = () if shapes is None else as_placed(where, shapes)
        properties = mass_properties(where, placed, mass=mass, density=density, inertia=inertia, center=center)
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
        position: ArrayLike = (0.0, 0.0, 0.0),
        orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        surface_velocity: Any = None,
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> int:
        """A body that never moves; returns its index. surface_velocity: as in `add_kinematic`, which it then is."""
        if surface_velocity is not None:
            place = {"position": position, "orientation": orientation, "surface_velocity": surface_velocity}
            return self.add_kinematic(shapes, material=material, group=group, mask=mask, name=name, **place)
        where = self._label("add_static", name)
        return self._add(
            where,
            self._surfaces(where, shapes),
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
        position: ArrayLike = (0.0, 0.0, 0.0),
        orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        angular_velocity: ArrayLike = (0.0, 0.0, 0.0),
        motion: Motion | None = None,
        surface_velocity: Any = None,
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> int:
        """A body with a prescribed motion: constant velocities, or a `Motion`, which then sets the pose as well.

        surface_velocity: (3,) [m/s] or a `SurfaceVelocity`: what touches the body is carried along its surface.
        """
        where = self._label("add_kinematic", name)
        if motion is not None:
            position, orientation = first_pose(where, motion, velocity=velocity, angular_velocity=angular_velocity)
        if surface_velocity is not None:
            velocities = {"velocity": velocity, "angular_velocity": angular_velocity}
            motion = conveyor(where, surface_velocity, motion, position, orientation, velocities)
        return self._add(
            where,
            self._surfaces(where, shapes),
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

    def add_copies(
        self,
        shapes: Any,
        *,
        position: Any,
        orientation: Any = (1.0, 0.0, 0.0, 0.0),
        mass: Any = None,
        density: Any = None,
        material: Material | str | Sequence[Material | str] | None = None,
        velocity: Any = (0.0, 0.0, 0.0),
        angular_velocity: Any = (0.0, 0.0, 0.0),
        force: Any = (0.0, 0.0, 0.0),
        torque: Any = (0.0, 0.0, 0.0),
        locked: Iterable[str] = (),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> range:
        """Many dynamic bodies with the same shapes in one call; returns their indices.

        shapes as in `add_body`; position (n, 3) [m]; orientation (4,) or (n, 4); mass or density: a number or (n,);
        velocities, forces and torques: (3,) or (n, 3).
        """
        where = self._label("add_copies", name)
        points = places(where, position)
        placed = as_placed(where, shapes)
        unit = mass_properties(where, placed, mass=1.0, density=None)
        m = many_masses(where, mass, density, np.full(len(points), sum(p.shape.volume for p in placed)))
        return self._add(
            where,
            placed,
            BodyKind.DYNAMIC,
            len(points),
            name=name,
            material=material,
            position=points,
            orientation=orientation,
            velocity=velocity,
            angular_velocity=angular_velocity,
            force=force,
            torque=torque,
            locked=locked,
            group=group,
            mask=mask,
            mass=m,
            inertia=m[:, None] * unit.moments,
            center=unit.center,
            axes=unit.axes,
        )

    def add_bodies(
        self,
        shapes: Iterable[Any],
        *,
        position: Any,
        orientation: Any = (1.0, 0.0, 0.0, 0.0),
        mass: Any = None,
        density: Any = None,
        material: Material | str | Sequence[Material | str] | None = None,
        velocity: Any = (0.0, 0.0, 0.0),
        angular_velocity: Any = (0.0, 0.0, 0.0),
        force: Any = (0.0, 0.0, 0.0),
        torque: Any = (0.0, 0.0, 0.0),
        locked: Iterable[str] = (),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> range:
        """Many dynamic bodies, each of its own shapes, in one call; returns their indices.

        shapes: for each body what `add_body` takes (a shape, a `Placed` one or several); many hulls are made at once
        by `ConvexHull.many`. position (n, 3) [m]; orientation (4,) or (n, 4); mass or density: a number or (n,);
        material: one, or one a body; velocities, forces and torques: (3,) or (n, 3).
        """
        where = self._label("add_bodies", name)
        points = places(where, position)
        placed = shapes_of_each(where, shapes, len(points))
        m, center, moments, axes = all_properties(where, placed, mass=mass, density=density)
        return self._add(
            where,
            tuple(p for own in placed for p in own),
            BodyKind.DYNAMIC,
            len(points),
            owner=np.repeat(np.arange(len(placed)), [len(own) for own in placed]),
            name=name,
            material=material,
            position=points,
            orientation=orientation,
            velocity=velocity,
            angular_velocity=angular_velocity,
            force=force,
            torque=torque,
            locked=locked,
            group=group,
            mask=mask,
            mass=m,
            inertia=moments,
            center=center,
            axes=axes,
        )

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
        torque: Any = (0.0, 0.0, 0.0),
        locked: Iterable[str] = (),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> range:
        """Many dynamic spheres in one call; returns their indices.

        position (n, 3) [m]; radius, mass or density: a number or (n,); velocities, forces and torques: (3,) or (n, 3).
        """
        where = self._label("add_spheres", name)
        points = places(where, position)
        count = len(points)
        r = checks.positive_array(where + ".radius", radius, count, unit="m")
        m = many_masses(where, mass, density, 4.0 / 3.0 * np.pi * r**3)
        parameters = np.zeros((count, 1, 4))
        parameters[:, 0, 3] = r
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
            torque=torque,
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
        torque: Any = (0.0, 0.0, 0.0),
        locked: Iterable[str] = (),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        name: str | None = None,
    ) -> range:
        """Many dynamic boxes in one call; returns their indices. size: edge lengths (3,) or (n, 3) [m]."""
        where = self._label("add_boxes", name)
        points = places(where, position)
        count = len(points)
        edges = rows(where + ".size", size, count, 3)
        checks.positive_array(where + ".size", edges.ravel(), 3 * count, unit="m")
        m = many_masses(where, mass, density, edges.prod(axis=1))
        parameters = np.zeros((count, 1, 4))
        parameters[:, 0, :3] = 0.5 * edges
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
            torque=torque,
            locked=locked,
            group=group,
            mask=mask,
            mass=m,
            inertia=inertia,
            parameters=parameters,
            bound=0.5 * np.linalg.norm(edges, axis=1)[:, None],
            smallest=0.5 * edges.min(axis=1)[:, None],
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
        owner: np.ndarray | None = None,
    ) -> range:
        """owner: the body of each shape, where bodies have different ones; center and axes are then (count, ..)."""
        self._check_room(where, count)
        orientation = checks.as_quaternions(orientation)
        checks.warn_of_order(where + ".orientation", orientation)
        name = self._free_name(where, name, kind)
        unit = 1 if owner is None else count
        materials = self._materials.of_shapes(where, material, len(shapes)) if owner is None else ()
        if owner is not None:
            materials = np.array(self._materials.of_shapes(where, material, count, each="body"))[owner]
        batch = Batch(
            name=name,
            kind=np.full(unit, kind),
            count=count,
            mass=np.zeros(count) if mass is None else mass,
            inertia=np.zeros((count, 3)) if inertia is None else inertia,
            center=np.zeros((1, 3)) if center is None else center.reshape(unit, 3),
            axes=rotation.IDENTITY[None] if axes is None else axes.reshape(unit, 4),
            position=rows(where + ".position", position, count, 3),
            orientation=checks.quaternions(
                where + ".orientation", rows(where + ".orientation", orientation, count, 4), count
            ),
            velocity=rows(where + ".velocity", velocity, count, 3),
            angular_velocity=rows(where + ".angular_velocity", angular_velocity, count, 3),
            force=rows(where + ".force", force, count, 3),
            torque=rows(where + ".torque", torque, count, 3),
            locked=np.tile(locked_axes(where, locked), (unit, 1)),
            group=np.full(unit, bits(where + ".group", group)),
            mask=np.full(unit, bits(where + ".mask", mask)),
            shapes=shapes,
            owner=np.zeros(len(shapes), np.int64) if owner is None else owner,
            parameters=np.array([p.shape.parameters for p in shapes], float).reshape(1, -1, 4)
            if parameters is None
            else parameters,
            bound=np.array([[p.shape.bound for p in shapes]]) if bound is None else bound,
            smallest=np.array([[p.shape.smallest for p in shapes]]) if smallest is None else smallest,
            material=materials,
            motion=motion,
        )
        if np.any(batch.locked):
            batch.velocity[:, batch.locked[0, :3]] = 0.0
            batch.angular_velocity[:, batch.locked[0, 3:]] = 0.0
        self._names[name] = (self._count, count)
        return self._take(batch)

    def _take(self, batch: Batch) -> range:
        """Number the bodies of a batch after those that are there."""
        first, self._count = self._count, self._count + batch.count
        self._batches.append(batch)
        self._starts.append(first)
        return range(first, self._count)

    def _check_room(self, where: str, count: int) -> None:
        """Whether so many bodies more can be there."""
        if self._count + count > MAX_BODIES:
            raise SceneError(message(where, f"at most {MAX_BODIES} bodies", self._count + count, "Split the scene."))
        memory.check_bodies(where, self._count + count)

    @staticmethod
    def _surfaces(where: str, shapes: Any) -> tuple[Placed, ...]:
        """Shapes of a body that is not dynamic."""
        placed = as_placed(where, shapes)
        for p in placed:
            p.shape.check_use(where, dynamic=False)
        return placed

    def _bodies(self, where: str, body: int | str) -> range:
        if isinstance(body, str):
            if body in self._names:
                first, count = self._names[body]
                return range(first, first + count)
            one = re.fullmatch(r"(.+)\[(\d+)\]", body)  # "balls[3]", one of many
            first, count = self._names.get(one[1], (0, 0)) if one else (0, 0)
            if one and int(one[2]) < count:
                return range(first, first + count)[int(one[2]) : int(one[2]) + 1]
            raise SceneError(message(where, "unknown body", checks.short(body), checks.nearest(body, self._names)))
        index = checks.integer(where, body, at_least=0, error=SceneError)
        if index >= self._count:
            raise SceneError(message(where, f"body index must be below {self._count}", index, "Count from 0."))
        return range(index, index + 1)

    def _exclude(self, pairs: np.ndarray) -> None:
        """Pairs of bodies (e, 2) that never collide."""
        block = np.zeros(len(pairs), self._excluded.rows.dtype)
        block["pair"] = pairs
        self._excluded.extend(block)

    def _free_name(self, where: str, name: str | None, kind: BodyKind) -> str:
        if name is None:
            return f"{kind.name.lower()}{len(self._names)}"
        if not isinstance(name, str) or not name or "[" in name:
            raise SceneError(
                message(where + ".name", "must be a text without brackets", checks.short(name), "Or leave it out.")
            )
        if name in self._names:
            raise SceneError(message(where + ".name", "names are unique", checks.short(name), "Choose another name."))
        return name

    @staticmethod
    def _label(method: str, name: str | None) -> str:
        return method if name is None else f"{method}({checks.short(name)})"
