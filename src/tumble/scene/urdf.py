"""Robots from URDF files: links become bodies, joints become joints. See `docs/robots.md` for the rules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import checks
from ..enums import BodyKind
from ..errors import SceneError, message
from . import rotation
from .mass import mass_properties
from .shape import Placed
from .shapes import Box, Cylinder, Sphere
from .urdf_file import Geometry, Pose, UrdfFile, UrdfJoint, compose, read_urdf
from .urdf_meshes import MeshFinder, PackagePaths

if TYPE_CHECKING:
    from .builder import SceneBuilder

__all__ = ["RobotPlan", "UrdfRobot", "add_urdf"]

MOTORS = ("hold", "speed", "torque")
"""hold: a servo that keeps the value at the start; speed, torque: such a motor with target 0."""
SERVO_ERROR = 1e-3
"""A servo without gains of its own gives its whole effort at this part of the joint's range (of 1 rad or 1 m)."""
SERVO_TIME = 0.05
"""Its damping over its stiffness [s]: the time in which an error falls to a third."""
PRIMITIVES = {
    "box": lambda size: Box(size),
    "cylinder": lambda size: Cylinder(*size),
    "sphere": lambda size: Sphere(*size),
}
Gain = float | Mapping[str, float] | None
"""Of all servos, or {joint: gain}"""
OUTSIDE = 1e-6
"""How far a value may lie outside of its limits [rad or m]; it is then taken to the limit."""


@dataclass(frozen=True, kw_only=True)
class UrdfRobot:
    """A robot in a scene. Keys are the names of the file, without prefix."""

    name: str
    path: Path
    bodies: dict[str, int]
    """Body of a link; links that are fixed to each other share one."""
    frames: dict[str, Pose]
    """Position (3,) and orientation (4,) of a link's frame in its body's frame."""
    joints: dict[str, str]
    """Name in the scene of each joint that moves (floating ones hold nothing and are not here)."""
    motors: dict[str, str]
    """Name in the scene of the motor on a joint."""
    values: dict[str, float]
    """Value of each joint at the start [rad or m]; `sim.joint_values` and targets are values of the file as well."""
    efforts: dict[str, float]
    """Largest torque [N m] or force [N] of a joint's motor, where the file gives one."""
    meshes: dict[str, Path]
    """Mesh files; those of moving bodies became their convex hulls."""
    mass: float
    """Of the bodies that move [kg]."""
    read: tuple[str, ...]
    """What was made of the file: each body and joint, then what was chosen."""
    ignored: tuple[str, ...]
    """What the file says and the scene does not honour."""


@dataclass
class RobotPlan:
    """What a robot will become, checked before anything is added to a scene."""

    file: UrdfFile
    fixed: bool
    values: dict[str, float]
    top: dict[str, str] = field(default_factory=dict)
    """The link whose frame is that of a link's body"""
    frames: dict[str, Pose] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    """Joints that do not move"""
    read: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, file: UrdfFile, *, fixed: bool | None, values: Mapping[str, float] | None = None) -> RobotPlan:
        """Decide which links share a body. fixed None: the root is fixed if it has no mass."""
        plan = cls(file, bool(fixed), _values(file, {} if values is None else values), ignored=list(file.ignored))
        plan._hold()
        above = file.above
        for name in file.links:
            joint = above.get(name)
            if joint is None or joint.name not in plan.held:
                plan.top[name], plan.frames[name] = name, (np.zeros(3), rotation.IDENTITY)
            else:
                plan.top[name] = plan.top[joint.parent]
                plan.frames[name] = compose(plan.frames[joint.parent], plan._step(joint))
        if fixed is None:
            plan.fixed = plan.mass(file.root)[0] == 0.0 and not plan.is_frame(file.root)
        plan._check_masses()
        return plan

    @property
    def moving(self) -> list[UrdfJoint]:
        """Joints between different bodies."""
        return [j for j in self.file.joints.values() if j.name not in self.held]

    @property
    def groups(self) -> dict[str, list[str]]:
        """Links of each body, under the link that names it."""
        out: dict[str, list[str]] = {}
        for name, top in self.top.items():
            out.setdefault(top, []).append(name)
        return out

    def poses(self, base: Pose) -> dict[str, Pose]:
        """World poses of all links."""
        out, above = {self.file.root: base}, self.file.above
        for name in self.file.links:
            if name in above:
                out[name] = compose(out[above[name].parent], self._step(above[name]))
        return out

    def mass(self, top: str) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass [kg], centre (3,) [m] and inertia (3, 3) about it of a body, in its frame."""
        parts = [(self.file.links[n], self.frames[n]) for n in self.groups[top]]
        total = sum(link.mass for link, _ in parts)
        if total == 0.0:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        centers = [p + rotation.rotate(q, link.center) for link, (p, q) in parts]
        center = sum((link.mass * c for (link, _), c in zip(parts, centers)), np.zeros(3)) / total
        inertia = np.zeros((3, 3))
        for (link, (_, q)), c in zip(parts, centers):
            turn, arm = rotation.matrix(q), c - center
            inertia += turn @ link.inertia @ turn.T + link.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        return total, center, 0.5 * (inertia + inertia.T)

    def shapes(self, top: str) -> list[tuple[str, Geometry]]:
        """Collision shapes of a body in its frame, each with its link."""
        out = []
        for name in self.groups[top]:
            for g in self.file.links[name].shapes:
                out.append((name, Geometry(g.kind, g.size, g.file, compose(self.frames[name], g.pose))))
        return out

    def is_frame(self, top: str) -> bool:
        """Whether a massless root is a mere frame, since only floating joints leave it."""
        if self.fixed or top != self.file.root or self.mass(top)[0] > 0.0 or self.shapes(top):
            return False
        return all(j.kind == "floating" for j in self.moving if self.top[j.parent] == top)

    def _step(self, joint: UrdfJoint) -> Pose:
        return compose(joint.pose, joint.motion(self.values[joint.name]))

    def _hold(self) -> None:
        """Joints without motion, and those that carry nothing: no mass and no shape."""
        weighs = {n: link.mass > 0.0 or bool(link.shapes) for n, link in self.file.links.items()}
        above = self.file.above
        for name in reversed(self.file.links):  # children come before their parents
            if name in above:
                weighs[above[name].parent] |= weighs[name]
        for j in self.file.joints.values():
            if j.kind == "fixed":
                self.held.add(j.name)
            elif not weighs[j.child]:
                self.held.add(j.name)
                self.ignored.append(f"joint '{j.name}': held, since what it carries has neither mass nor shape")
            elif j.lower == j.upper:
                self.held.add(j.name)
                self.read.append(f"joint '{j.name}': held at {j.lower:g}, where both limits are")
        changed = True
        while changed:  # what follows a joint that does not move, does not move
            changed = False
            for j in self.file.joints.values():
                if j.name not in self.held and j.mimic and (j.mimic[1] == 0.0 or j.mimic[0] in self.held):
                    self.held.add(j.name)
                    self.read.append(f"joint '{j.name}': held at {self.values[j.name]:g}, since it follows one that is")
                    changed = True

    def _check_masses(self) -> None:
        path, above = self.file.path, self.file.above
        for top in self.groups:
            if (self.fixed and top == self.file.root) or self.is_frame(top):
                continue
            mass, center, inertia = self.mass(top)
            where = f"{path}: link '{top}'"
            if mass == 0.0:
                rule, remedy = "a root that moves needs a mass", "Add <inertial>, or hold the robot with fixed=True."
                if top in above:
                    rule = f"moves by joint '{above[top].name}' and needs a mass"
                    remedy = "Add <inertial>, or make the joint fixed."
                raise SceneError(message(where, rule, "0 kg", remedy))
            mass_properties(where, (), mass=mass, density=None, inertia=inertia, center=center)


def add_urdf(
    scene: SceneBuilder,
    path: str | Path,
    *,
    position: ArrayLike = (0.0, 0.0, 0.0),
    orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    fixed: bool = False,
    values: Mapping[str, float] | None = None,
    motors: str | Mapping[str, str] | None = None,
    stiffness: Gain = None,
    damping: Gain = None,
    self_collision: bool = False,
    material: Any = None,
    package_paths: PackagePaths = None,
    prefix: str = "",
) -> UrdfRobot:
    """See `SceneBuilder.add_urdf`."""
    base = checks.vector("add_urdf.position", position), checks.quaternion("add_urdf.orientation", orientation)
    checks.flag("add_urdf.fixed", fixed, error=SceneError)
    checks.flag("add_urdf.self_collision", self_collision, error=SceneError)
    if not isinstance(prefix, str):
        raise SceneError(message("add_urdf.prefix", "must be a text", checks.short(prefix), "For example 'left_'."))
    file = read_urdf(path)
    plan = RobotPlan.of(file, fixed=fixed, values=values)
    finder = MeshFinder(file.path, package_paths)
    modes = _modes(plan, motors)
    gains = _gains(plan, modes, stiffness, damping)
    shapes = {top: _placed(plan, top, finder) for top in plan.groups}
    _check_names(scene, plan, prefix)

    bodies, poses = {}, plan.poses(base)
    for top in plan.groups:
        place: dict[str, Any] = dict(position=poses[top][0], orientation=_unit(poses[top][1]), name=prefix + top)
        place["material"] = material if shapes[top] else None
        if plan.is_frame(top):
            plan.read.append(f"link '{top}': a frame without a body, since it has no mass")
        elif fixed and top == file.root:
            if shapes[top]:
                bodies[top] = scene.add_static(shapes[top], **place)
            else:  # it carries joints and touches nothing, like the ground
                bodies[top] = scene._add("add_urdf", (), BodyKind.STATIC, 1, **place)[0]
        else:
            mass, center, inertia = plan.mass(top)
            bodies[top] = scene.add_body(shapes[top] or None, mass=mass, inertia=inertia, center=center, **place)
    joints = {j.name: _add_joint(scene, plan, j, bodies, poses, prefix) for j in plan.moving if j.kind != "floating"}
    for j in plan.moving:
        if j.mimic is not None:
            scene.add_gear(joints[j.mimic[0]], joints[j.name], j.mimic[1], name=f"{prefix}{j.name}:mimic")
    driven = {}
    for name, mode in modes.items():
        most = file.joints[name].effort
        own: dict[str, Any] = {} if mode == "torque" or not most else {"maximum": most}
        if mode == "hold":
            mode = "position"
            own |= {"target": plan.values[name]} | gains.get(name, {})
        driven[name] = scene.add_motor(joints[name], mode, name=f"{prefix}{name}:motor", **own)
    if not self_collision:
        for a, b in combinations(bodies.values(), 2):
            scene.exclude_pair(a, b)
    meshes = {g.file: finder.path(link, g.file) for top in plan.groups for link, g in plan.shapes(top) if g.file}
    hulls = {g.file for top in plan.groups if not (fixed and top == file.root) for _, g in plan.shapes(top) if g.file}
    plan.read.extend(f"mesh '{name}': its convex hull" for name in sorted(hulls))
    return UrdfRobot(
        name=file.name,
        path=file.path,
        bodies={name: bodies[top] for name, top in plan.top.items() if top in bodies},
        frames={name: plan.frames[name] for name, top in plan.top.items() if top in bodies},
        joints=joints,
        motors=driven,
        values=dict(plan.values),
        efforts={j.name: j.effort for j in file.joints.values() if j.effort is not None},
        meshes=meshes,
        mass=sum(plan.mass(top)[0] for top in bodies if not (fixed and top == file.root)),
        read=(*_made(plan, bodies, shapes), *plan.read),
        ignored=tuple(plan.ignored),
    )


def _made(plan: RobotPlan, bodies: Mapping[str, int], shapes: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """A line for each body and each joint that moves."""
    for top in bodies:
        static = plan.fixed and top == plan.file.root
        others = [name for name, carrier in plan.top.items() if carrier == top and name != top]
        words = "fixed" if static else f"a body of {plan.mass(top)[0]:g} kg"
        count = f"{len(shapes[top])} shape{'' if len(shapes[top]) == 1 else 's'}"
        yield f"link '{top}': {words}, {count}" + (f", with {', '.join(others)}" if others else "")
    for j in plan.moving:
        limited = np.isfinite([j.lower, j.upper]).any()
        yield f"joint '{j.name}': {j.kind}" + (f" from {j.lower:g} to {j.upper:g}" if limited else "")


def _add_joint(
    scene: SceneBuilder,
    plan: RobotPlan,
    joint: UrdfJoint,
    bodies: Mapping[str, int],
    poses: Mapping[str, Pose],
    prefix: str,
) -> str:
    """A joint whose coordinate is the file's value."""
    at, turn = compose(poses[joint.parent], joint.pose)
    a, b = (bodies[plan.top[link]] for link in (joint.parent, joint.child))
    own: dict[str, Any] = dict(axis=rotation.rotate(turn, joint.axis), name=prefix + joint.name)
    if joint.kind == "planar":
        return scene.add_joint("planar", a, b, anchor=at, **own)
    value = plan.values[joint.name]
    if math.isfinite(joint.lower):
        own["limits"] = (joint.lower, joint.upper)
    kind = "prismatic" if joint.kind == "prismatic" else "revolute"
    name = scene.add_joint(kind, a, b, anchor=poses[joint.child][0], value=value, friction=joint.friction, **own)
    if joint.damping > 0.0:
        scene.add_joint_spring(name, damping=joint.damping, name=f"{name}:damper")
    return name


# ---------------------------------------------------------------------- checks


def _values(file: UrdfFile, given: Mapping[str, float]) -> dict[str, float]:
    """Value of every joint: as given, else the one nearest to zero; a joint with mimic follows the other."""
    where = f"{file.path}: values"
    if not isinstance(given, Mapping):
        raise SceneError(message(where, "must be {joint: value}", checks.short(given), "Values in rad or m."))
    for name in given:
        if name not in file.joints:
            raise SceneError(message(where, "unknown joint", checks.short(name), checks.nearest(name, file.joints)))
        j = file.joints[name]
        if j.kind in ("fixed", "floating", "planar"):
            raise SceneError(message(f"{where}.{name}", "is for joints with one axis", j.kind, "Leave it out."))
        if j.mimic is not None:
            raise SceneError(message(f"{where}.{name}", f"follows '{j.mimic[0]}'", given[name], "Leave it out."))
    out: dict[str, float] = {}

    def value(joint: UrdfJoint) -> float:
        if joint.name not in out:
            if joint.mimic is not None:
                out[joint.name] = joint.mimic[1] * value(file.joints[joint.mimic[0]]) + joint.mimic[2]
            elif joint.name in given:
                out[joint.name] = checks.number(f"{where}.{joint.name}", given[joint.name], error=SceneError)
            else:
                out[joint.name] = min(max(0.0, joint.lower), joint.upper)
        return out[joint.name]

    for j in file.joints.values():
        v = value(j)
        if not j.lower - OUTSIDE <= v <= j.upper + OUTSIDE:
            remedy = "Give another value." if j.mimic is None else f"Give values={{'{j.mimic[0]}': ...}}."
            raise SceneError(
                message(f"{where}.{j.name}", f"must lie between its limits {j.lower:g} and {j.upper:g}", v, remedy)
            )
    return {name: min(max(v, file.joints[name].lower), file.joints[name].upper) for name, v in out.items()}


def _modes(plan: RobotPlan, motors: str | Mapping[str, str] | None) -> dict[str, str]:
    """Mode of the motor on each joint that has one."""
    where = f"{plan.file.path}: motors"
    if motors is None:
        return {}
    free = {j.name: j for j in plan.moving if j.kind not in ("floating", "planar")}
    if isinstance(motors, str):
        mode = checks.choice(where, motors, MOTORS, error=SceneError)
        out = {name: mode for name, j in free.items() if j.mimic is None}
    elif isinstance(motors, Mapping):
        out = {}
        for name, mode in motors.items():
            if name not in free:
                known = "does not move by one axis" if name in plan.file.joints else "unknown joint"
                raise SceneError(message(where, known, checks.short(name), checks.nearest(str(name), free)))
            out[name] = checks.choice(f"{where}.{name}", mode, MOTORS, error=SceneError)
    else:
        raise SceneError(
            message(where, "must be a mode or {joint: mode}", checks.short(motors), "Modes: " + ", ".join(MOTORS) + ".")
        )
    for name in [n for n, mode in out.items() if mode != "torque" and free[n].effort == 0.0]:
        plan.read.append(f"joint '{name}': no motor, since its effort is 0")
        del out[name]
    return out


def _gains(plan: RobotPlan, modes: Mapping[str, str], stiffness: Gain, damping: Gain) -> dict[str, dict[str, float]]:
    """Stiffness and damping of the servos (`hold`). Without a stiffness: from effort and range, where there is an
    effort; a motor without limits drives its joint exactly."""
    given: dict[str, dict[str, float]] = {}
    for key, gain in (("stiffness", stiffness), ("damping", damping)):
        where = f"{plan.file.path}: {key}"
        if gain is None:
            continue
        each = gain if isinstance(gain, Mapping) else {name: gain for name, mode in modes.items() if mode == "hold"}
        if not each:
            raise SceneError(message(where, "is for motors that hold", checks.short(gain), 'Give motors="hold" too.'))
        for name, value in each.items():
            if modes.get(name) != "hold":
                holding = [n for n, mode in modes.items() if mode == "hold"]
                raise SceneError(
                    message(where, "has no motor that holds it", checks.short(name), checks.nearest(str(name), holding))
                )
            given.setdefault(name, {})[key] = checks.number(
                f"{where}.{name}",
                value,
                above=0.0 if key == "stiffness" else None,
                at_least=None if key == "stiffness" else 0.0,
                error=SceneError,
            )
    out = {}
    for name in (n for n, mode in modes.items() if mode == "hold"):
        gain, joint = given.get(name, {}), plan.file.joints[name]
        if "stiffness" not in gain and joint.effort:
            whole = joint.upper - joint.lower
            gain["stiffness"] = joint.effort / (SERVO_ERROR * (whole if math.isfinite(whole) else 1.0))
        if "stiffness" in gain:
            out[name] = {"damping": SERVO_TIME * gain["stiffness"]} | gain
        elif "damping" in gain:
            raise SceneError(
                message(
                    f"{plan.file.path}: damping.{name}",
                    "needs a stiffness",
                    gain["damping"],
                    "The file gives no effort.",
                )
            )
    return out


def _placed(plan: RobotPlan, top: str, finder: MeshFinder) -> list[Placed]:
    out = []
    hull = not (plan.fixed and top == plan.file.root)
    for link, g in plan.shapes(top):
        where = f"{plan.file.path}: link '{link}': {g.kind}"
        if g.file is not None:
            shape = finder.shape(where, g.file, g.size, hull=hull)
        else:
            try:
                shape = PRIMITIVES[g.kind](g.size)
            except SceneError as cause:
                raise SceneError(f"{where}: {cause}") from cause
        out.append(Placed(shape, tuple(g.pose[0]), tuple(_unit(g.pose[1]))))
    return out


def _check_names(scene: SceneBuilder, plan: RobotPlan, prefix: str) -> None:
    """Names that are taken, before anything is added."""
    elements = {e.name for e in scene._elements}
    for name in [prefix + top for top in plan.groups if not plan.is_frame(top)]:
        if name in scene._names:
            raise SceneError(
                message(f"{plan.file.path}: link", "names of bodies are unique", checks.short(name), "Give a prefix.")
            )
    for j in plan.moving:
        if prefix + j.name in elements:
            raise SceneError(
                message(f"{plan.file.path}: joint", "names are unique", checks.short(prefix + j.name), "Give a prefix.")
            )


def _unit(q: np.ndarray) -> np.ndarray:
    return q / np.linalg.norm(q)
