"""The scene builder: checks everything when it is called and freezes it into a Model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import checks
from ..errors import SceneError, message
from ..showing import ShownBuilder
from .batch import body_arrays, initial_state, shape_arrays
from .bodies import Bodies
from .changes import changed
from .flow import Flow
from .joint_frames import GROUND
from .joint_model import JointModel
from .materials import Material
from .mechanism import Mechanism
from .model import ForceCallback, Model
from .motion import Conveyor, Motion, motion_pose
from .replicate import replicate

if TYPE_CHECKING:
    from ..sim.query import ContactPoints
    from .urdf import UrdfRobot
    from .urdf_meshes import PackagePaths

__all__ = ["SceneBuilder", "motion_pose"]

STANDARD_GRAVITY = (0.0, 0.0, -9.81)


class SceneBuilder(ShownBuilder, Bodies, Mechanism, Flow):
    """Collects materials, bodies, joints, forces, and what lets bodies in and out.

    gravity: acceleration (3,) [m/s^2]; the default points down the z axis with 9.81 m/s^2.
    """

    def __init__(self, *, gravity: ArrayLike = STANDARD_GRAVITY) -> None:
        super().__init__()
        self._gravity = checks.vector("SceneBuilder.gravity", gravity)
        self._forces: list[ForceCallback] = []

    # ------------------------------------------------------------------ materials

    def add_material(self, material: Material) -> Material:
        """Register a material and return it."""
        return self._materials.add(material)

    def set_pair(self, a: Material | str, b: Material | str, **properties: float) -> None:
        """Properties of a `Material` (friction, restitution ..) between two of them, in place of the combined ones."""
        self._materials.set_pair("set_pair", a, b, **properties)

    # ------------------------------------------------------------------ robots

    def add_urdf(
        self,
        path: str | Path,
        *,
        position: ArrayLike = (0.0, 0.0, 0.0),
        orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        fixed: bool = False,
        values: Mapping[str, float] | None = None,
        motors: str | Mapping[str, str] | None = None,
        stiffness: float | Mapping[str, float] | None = None,
        damping: float | Mapping[str, float] | None = None,
        self_collision: bool = False,
        material: Material | str | None = None,
        package_paths: PackagePaths = None,
        prefix: str = "",
    ) -> UrdfRobot:
        """A robot from a URDF file (the extra `tumble[urdf]`); says what was read and what was ignored.

        position [m], orientation: of the root link's frame; fixed: the root never moves. values: {joint: value} at the
        start [rad or m], else the value nearest to zero within the limits. motors: "hold", "speed" or "torque" for all
        joints, or {joint: mode}; the file's effort is the largest torque or force. stiffness [N m/rad or N/m], damping
        [N m s/rad or N s/m]: of the servos ("hold"), one number or {joint: gain}; without them from effort and range.
        Links of the robot do not collide with each other; with self_collision=True all but neighbours do. material: of
        all its shapes. package_paths: {package: folder} or folders in which `package://` names are sought. prefix: put
        before all names. Rules: `docs/robots.md`.
        """
        from .urdf import add_urdf

        return add_urdf(
            self,
            path,
            position=position,
            orientation=orientation,
            fixed=fixed,
            values=values,
            motors=motors,
            stiffness=stiffness,
            damping=damping,
            self_collision=self_collision,
            material=material,
            package_paths=package_paths,
            prefix=prefix,
        )

    # ------------------------------------------------------------------ copies

    def replicate(
        self,
        part: SceneBuilder,
        *,
        position: Any,
        orientation: Any = (1.0, 0.0, 0.0, 0.0),
        name: str = "copy",
    ) -> np.ndarray:
        """Put copies of a part here, and return the indices (n, k) of their bodies.

        part: another builder with k bodies and all that joins them; it stays as it is, and its gravity does not count.
        position (n, 3) [m], orientation (4,) or (n, 4): of the part's origin and axes. What the part says in world axes
        (velocities, forces, joints to the ground) moves with each copy. Names of copy i begin with "{name}{i}/".
        Emitters, sinks, measuring planes, force callbacks and prescribed motions cannot be replicated.
        """
        return replicate(self, part, position, orientation, name)

    # ------------------------------------------------------------------ the rest

    def exclude_pair(self, a: int | str, b: int | str) -> None:
        """Two bodies, by index or name, that never collide (names of many bodies: each with each)."""
        one, two = self._bodies("exclude_pair", a), self._bodies("exclude_pair", b)
        pairs = np.stack([np.repeat(one, len(two)), np.tile(two, len(one))], axis=1)
        self._exclude(pairs[pairs[:, 0] != pairs[:, 1]])

    def add_force(self, callback: ForceCallback) -> None:
        """A force field evaluated once a step with whole arrays; see `ForceCallback`."""
        if not callable(callback):
            raise SceneError(
                message(
                    "add_force",
                    "needs a function",
                    checks.short(callback),
                    "force(time, position, orientation, velocity, angular_velocity) -> force, torque.",
                )
            )
        self._forces.append(callback)

    def contacts(self, *, margin: float = 0.0) -> ContactPoints:
        """Contact points of the scene as it stands, with a gap up to `margin` [m]: geometry without dynamics."""
        from ..sim.query import contacts

        return contacts(self.build(), margin=margin)

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
        batches, names = list(self._batches), dict(self._names)
        if self._ground is not None:  # after the user's bodies, whose numbers it must not change
            batches.append(self._ground)
            names[GROUND if GROUND not in names else f"{GROUND}{self._count}"] = (self._count, 1)
        joints, initial = self._joint_model(), initial_state(batches)
        motions = {k: b.motion for k, b in zip(self._starts, self._batches) if b.motion is not None}
        self._check_conveyors(motions, joints)
        flow = self._flow_model(joints, initial)
        gravity, materials = changed(self._gravity.copy(), self._materials)
        excluded = np.sort(self._in_model(self._excluded.rows["pair"]), axis=1)
        arrays: dict[str, Any] = {**body_arrays(batches), **shape_arrays(batches)}
        return Model(
            gravity=gravity,
            **arrays,
            materials=tuple(materials.known),
            friction=materials.friction(),
            pair_laws=materials.laws(),
            excluded=np.unique((excluded[:, 0] << 32) + excluded[:, 1]),
            names=tuple((name, first, count) for name, (first, count) in names.items()),
            motions=motions,
            forces=tuple(self._forces),
            joints=joints,
            initial=initial,
            flow=flow,
        )

    @staticmethod
    def _check_conveyors(motions: Mapping[int, Motion], joints: JointModel) -> None:
        """A joint would be dragged along with the surface."""
        jointed = set(np.unique(joints.frame_body).tolist())
        for body, motion in motions.items():
            if isinstance(motion, Conveyor) and body in jointed:
                remedy = "Join another body, or put the belt on a body of its own."
                raise SceneError(message(f"body {body}", "takes a surface velocity or joints", "both", remedy))
