"""What a scene is made of (Model, frozen) and where everything is (State)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from ..backends.shape_arrays import Geometry
from ..showing import Shown, ShownModel
from . import rotation
from .body_names import BodyNames
from .flow_model import FlowModel
from .joint_model import JointModel
from .materials import Material, PairLaws
from .motion import Motion

__all__ = ["GENTLE", "ContactMemory", "ForceCallback", "Model", "State"]

GENTLE = 0.2
"""Part of an overlap beyond the band that a step takes back where steps are solved."""

ForceCallback = Callable[[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""force(time, position (n,3), orientation (n,4), velocity (n,3), angular_velocity (n,3)) -> force [N], torque [N m]

Called once a step with whole arrays (body frames as the user gave them, world axes); both results are (n, 3), the
torque about the centre of mass in world axes. A function with the attribute `device_arrays = True` gets arrays of the
device, and returns such, where the simulation runs on one (docs/gpu.md).
"""


@dataclass
class ContactMemory:
    """What contacts must remember from one step to the next, sorted by key. Columns have one entry a contact."""

    uid_a: np.ndarray
    """(k,) int64"""
    uid_b: np.ndarray
    """(k,) int64"""
    feature: np.ndarray
    """(k,) int64"""
    impulse: np.ndarray
    """(3, k) impulse on B in world axes [N s]"""
    torque: np.ndarray = field(default_factory=lambda: np.zeros((3, 0)))
    """(3, k) angular impulse of rolling friction on B in world axes [N m s]; (3, 0) in scenes without"""
    laws: dict[str, np.ndarray] = field(default_factory=dict)
    """(rows, k) what contact laws remember besides, by the name of the column, see `sim.laws`; vectors in world axes"""

    @classmethod
    def empty(cls) -> ContactMemory:
        """No contact yet."""
        none = np.zeros(0, np.int64)
        return cls(none, none.copy(), none.copy(), np.zeros((3, 0)))

    def copy(self) -> ContactMemory:
        """An independent copy."""
        own = {name: array.copy() for name, array in vars(self).items() if name != "laws"}
        return ContactMemory(**own, laws={name: column.copy() for name, column in self.laws.items()})


@dataclass(repr=False)
class State(Shown):
    """Everything a restart needs. Frames are those of the centre of mass and the principal axes.

    Use `Simulation.positions()` and its sisters for the frames the user gave.
    """

    time: float
    """[s]"""
    step: int
    position: np.ndarray
    """(n, 3) centres of mass [m]"""
    orientation: np.ndarray
    """(n, 4) principal axes, (w, x, y, z)"""
    velocity: np.ndarray
    """(n, 3) of the centre of mass [m/s]"""
    spin: np.ndarray
    """(n, 3) angular velocity in principal body axes [rad/s]"""
    memory: ContactMemory = field(default_factory=ContactMemory.empty)
    coordinate: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """(c,) coordinates of the joints [m or rad]; angles count whole turns"""
    row_impulse: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """(r,) impulses of bounded joint rows in the last step, of equalities those at its end [N s or N m s]"""
    target: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """(m,) targets of motors set during the run, NaN where the model's counts"""
    energy_owed: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """(mechanisms,) kinetic energy that the drift of jointed bodies took and has not given back yet [J]"""
    presence: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int8))
    """(n,) int8, `Presence`; empty in scenes without emitters and sinks, where all are present"""
    flow: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """(f,) totals of emitters, sinks and measuring planes, see `FlowModel.columns`"""
    recovers: float = GENTLE
    """Part of an overlap beyond the band that the next step takes back (docs/rest.md)"""

    def copy(self) -> State:
        """An independent copy."""
        return State(
            self.time,
            self.step,
            self.position.copy(),
            self.orientation.copy(),
            self.velocity.copy(),
            self.spin.copy(),
            self.memory.copy(),
            self.coordinate.copy(),
            self.row_impulse.copy(),
            self.target.copy(),
            self.energy_owed.copy(),
            self.presence.copy(),
            self.flow.copy(),
            self.recovers,
        )

    def take(self, other: State) -> None:
        """Be as another state of the same model; what is replaced, and never written into, is shared."""
        for name in ("position", "orientation", "velocity", "spin"):
            getattr(self, name)[...] = getattr(other, name)
        self.time, self.step, self.memory = other.time, other.step, other.memory
        self.coordinate, self.row_impulse, self.target = other.coordinate, other.row_impulse, other.target
        self.energy_owed, self.presence, self.flow = other.energy_owed, other.presence, other.flow
        self.recovers = other.recovers

    def sha256(self) -> str:
        """Hash of time, poses, velocities and who is present, bit for bit."""
        digest = hashlib.sha256(np.float64(self.time).tobytes())
        for array in (self.position, self.orientation, self.velocity, self.spin, self.presence):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, repr=False)
class Model(ShownModel, BodyNames):
    """A frozen scene as flat arrays: n bodies, m shapes. Made by `SceneBuilder.build`."""

    gravity: np.ndarray
    body_kind: np.ndarray
    """(n,) int8, `BodyKind`"""
    body_uid: np.ndarray
    """(n,) int64, never reused"""
    body_mass: np.ndarray
    """(n,) [kg], 0 for bodies that are not dynamic"""
    body_inertia: np.ndarray
    """(n, 3) principal moments [kg m^2]"""
    body_inverse_mass: np.ndarray
    """(n, 3) per world axis [1/kg], 0 where locked"""
    body_locked: np.ndarray
    """(n, 6) bool: translation and rotation about the world axes"""
    body_center: np.ndarray
    """(n, 3) centre of mass in the user's frame [m]"""
    body_axes: np.ndarray
    """(n, 4) principal axes in the user's frame"""
    body_force: np.ndarray
    """(n, 3) constant force [N], world axes"""
    body_torque: np.ndarray
    """(n, 3) constant torque [N m], world axes"""
    body_group: np.ndarray
    """(n,) uint32 bits: the collision groups the body is in"""
    body_mask: np.ndarray
    """(n,) uint32 bits: the groups it collides with"""
    body_size: np.ndarray
    """(n,) smallest half-extent of its shapes [m]"""
    shape_kind: np.ndarray
    """(m,) int8, `ShapeKind`"""
    shape_body: np.ndarray
    """(m,) int32"""
    shape_local: np.ndarray
    """(m,) int32: the shape's number on its body"""
    shape_parameters: np.ndarray
    """(m, 4) [m], see `Shape.parameters`: sphere (0, 0, 0, r), capsule (0, 0, length/2, r), box (half-extents,
    rounding), cylinder and cone (R, R, height/2, rounding), ellipsoid (semi-axes, rounding), hull (first point and
    number of points in `geometry`, 0, rounding), height field (dx, dy, lowest, highest), mesh (1 if open,
    0, 0, 0), half-space zeros"""
    shape_geometry: np.ndarray
    """(m,) int32: number of the hull, mesh or height field in `geometry`, each counted from 0; -1 for other kinds"""
    shape_position: np.ndarray
    """(m, 3) in the body's principal frame [m]"""
    shape_orientation: np.ndarray
    """(m, 4)"""
    shape_material: np.ndarray
    """(m,) int32"""
    shape_bound: np.ndarray
    """(m,) radius of the bounding sphere about the origin of the shape's frame [m]"""
    shape_smallest: np.ndarray
    """(m,) smallest half-extent [m]"""
    geometry: Geometry
    """Hulls, meshes and height fields; bodies that were given the same shape object share an entry"""
    materials: tuple[Material, ...]
    friction: np.ndarray
    """(k, k) coefficient for every pair of materials"""
    pair_laws: PairLaws
    """What pairs of materials have beyond friction"""
    excluded: np.ndarray
    """(e,) int64 sorted, a * 2^32 + b for pairs of bodies a < b that never collide"""
    names: tuple[tuple[str, int, int], ...]
    """(name, first body, count)"""
    motions: Mapping[int, Motion]
    """Prescribed motion of a kinematic body, by index"""
    forces: tuple[ForceCallback, ...]
    joints: JointModel
    initial: State
    flow: FlowModel = field(default_factory=FlowModel)
    """Emitters, sinks and measuring planes"""

    def __post_init__(self) -> None:
        for value in (*vars(self).values(), *self.geometry, *vars(self.initial).values()):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        object.__setattr__(self, "motions", MappingProxyType(dict(self.motions)))

    def __reduce__(self) -> tuple:
        """For pickle and deepcopy, which cannot take the read-only table of motions."""
        return _model, ({f.name: getattr(self, f.name) for f in fields(self)} | {"motions": dict(self.motions)},)

    @cached_property
    def shape_rank(self) -> np.ndarray:
        """(m,) int32: place of each shape's body among all bodies in the order of their uid, whatever their places in
        the arrays."""
        rank = np.empty(self.body_count, np.int32)
        rank[np.argsort(self.body_uid)] = np.arange(self.body_count)
        out = rank[self.shape_body]
        out.setflags(write=False)
        return out

    def sent(self, backend: ModuleType) -> Model:
        """The model with its arrays where the passes of a backend read them."""
        if backend.HOSTED:
            return self
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        arrays = {name: backend.send(value) for name, value in arrays.items() if isinstance(value, np.ndarray)}
        there = replace(self, **arrays, geometry=Geometry(*map(backend.send, self.geometry)))
        vars(there)["shape_rank"] = backend.send(self.shape_rank)
        return there

    @property
    def body_count(self) -> int:
        """Number of bodies n."""
        return len(self.body_kind)

    @property
    def shape_count(self) -> int:
        """Number of shapes m."""
        return len(self.shape_kind)

    def user_pose(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Position (n, 3) and orientation (n, 4) of the frames the user gave."""
        return self.user_frames(state.position, state.orientation)

    def user_frames(self, position: np.ndarray, orientation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same for centres of mass (n, 3) and principal axes (n, 4)."""
        orientation = rotation.multiply(orientation, rotation.conjugate(self.body_axes))
        return position - rotation.rotate(orientation, self.body_center), orientation

    def centered_pose(self, position: np.ndarray, orientation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The inverse of `user_pose`."""
        return (
            position + rotation.rotate(orientation, self.body_center),
            rotation.multiply(orientation, self.body_axes),
        )


def _model(parts: dict[str, Any]) -> Model:
    return Model(**parts)
