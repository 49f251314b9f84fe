"""URDF files: what they say, checked. The parser is yourdfpy (the extra `tumble[urdf]`), imported on first use."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from .. import checks
from ..errors import SceneError, message
from . import rotation
from .urdf_xml import Notes, check, check_unique, parsed, prune

__all__ = ["Geometry", "Pose", "UrdfFile", "UrdfJoint", "UrdfLink", "compose", "read_urdf"]

Pose = tuple[np.ndarray, np.ndarray]
"""Position (3,) [m] and orientation (4,)."""
KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
UNIT = 1e-3
"""How far the length of an axis may be from 1; it is then made 1."""


@dataclass(frozen=True)
class Geometry:
    """A collision shape: its kind, its sizes [m] (or scale factors of a mesh), its file, its pose in the link."""

    kind: str
    size: tuple[float, ...]
    file: str | None
    pose: Pose


@dataclass(frozen=True)
class UrdfLink:
    """A link: mass [kg] (0: none), centre (3,) [m] and inertia (3, 3) about it [kg m^2] in the link's frame."""

    name: str
    mass: float
    center: np.ndarray
    inertia: np.ndarray
    shapes: tuple[Geometry, ...]


@dataclass(frozen=True)
class UrdfJoint:
    """A joint: its frame in the parent, its axis (3,) in that frame; numbers in N, m, rad and s; inf: no limit."""

    name: str
    kind: str
    parent: str
    child: str
    pose: Pose
    axis: np.ndarray
    lower: float
    upper: float
    effort: float | None
    damping: float
    friction: float
    mimic: tuple[str, float, float] | None
    """The joint it follows, multiplier and offset."""

    def motion(self, value: float) -> Pose:
        """Pose of the child in the joint's frame at a value [rad or m]."""
        if self.kind == "prismatic":
            return value * self.axis, rotation.IDENTITY
        if self.kind in ("revolute", "continuous"):
            return np.zeros(3), rotation.from_axis_angle(self.axis, value)
        return np.zeros(3), rotation.IDENTITY


@dataclass(frozen=True)
class UrdfFile:
    """A robot: links from the root to the leaves, joints, and what the file says in vain."""

    path: Path
    name: str
    links: dict[str, UrdfLink]
    joints: dict[str, UrdfJoint]
    root: str
    ignored: tuple[str, ...]

    @property
    def above(self) -> dict[str, UrdfJoint]:
        """The joint that carries a link."""
        return {j.child: j for j in self.joints.values()}


def compose(a: Pose, b: Pose) -> Pose:
    """Pose b, given in the frame of a, in the frame that a is given in."""
    return a[0] + rotation.rotate(a[1], b[0]), rotation.multiply(a[1], b[1])


def read_urdf(path: str | Path) -> UrdfFile:
    """Read and check a robot; meshes are not opened."""
    path = checks.file_name("add_urdf.path", path, "robot.urdf")
    parser = _parser(path)
    tree = parsed(path)
    notes = Notes()
    prune(tree, "", notes)
    check(path, tree, "")
    for tag in ("link", "joint"):
        check_unique(path, tag, [e.attrib["name"] for e in tree.findall(tag)])
    tree.attrib.setdefault("name", path.stem)
    robot = parser.load(io.BytesIO(ElementTree.tostring(tree)), build_scene_graph=False, load_meshes=False).robot
    links = {link.name: _link(path, link) for link in robot.links}
    joints = {joint.name: _joint(path, joint, links, notes) for joint in robot.joints}
    for j in joints.values():
        _check_mimic(path, j, joints)
    root, order = _tree(path, links, joints)
    return UrdfFile(path, robot.name, {n: links[n] for n in order}, joints, root, notes.lines())


def _parser(path: Path) -> Any:
    try:
        from yourdfpy import URDF
    except ImportError as cause:
        raise SceneError(
            message(str(path), "a robot needs the package yourdfpy", "not installed", "Run pip install 'tumble[urdf]'.")
        ) from cause
    return URDF


# ---------------------------------------------------------------------- links and joints


def _pose(matrix: np.ndarray | None) -> Pose:
    if matrix is None:
        return np.zeros(3), rotation.IDENTITY
    return np.array(matrix[:3, 3]), rotation.from_matrix(matrix[:3, :3])


def _link(path: Path, link: Any) -> UrdfLink:
    where = f"{path}: link '{link.name}'"
    shapes = tuple(_geometry(c) for c in link.collisions)
    if link.inertial is None:
        return UrdfLink(link.name, 0.0, np.zeros(3), np.zeros((3, 3)), shapes)
    mass = checks.number(where + ": mass", link.inertial.mass, at_least=0.0, unit="kg", error=SceneError)
    center, turn = _pose(link.inertial.origin)
    axes = rotation.matrix(turn)
    inertia = axes @ link.inertial.inertia @ axes.T if mass > 0.0 else np.zeros((3, 3))
    return UrdfLink(link.name, mass, center, 0.5 * (inertia + inertia.T), shapes)


def _geometry(collision: Any) -> Geometry:
    g, pose = collision.geometry, _pose(collision.origin)
    if g.box is not None:
        return Geometry("box", tuple(g.box.size.tolist()), None, pose)
    if g.cylinder is not None:
        return Geometry("cylinder", (g.cylinder.radius, g.cylinder.length), None, pose)
    if g.sphere is not None:
        return Geometry("sphere", (g.sphere.radius,), None, pose)
    scale = np.broadcast_to(1.0 if g.mesh.scale is None else g.mesh.scale, 3)
    return Geometry("mesh", tuple(scale.tolist()), g.mesh.filename, pose)


def _joint(path: Path, joint: Any, links: Mapping[str, UrdfLink], notes: Notes) -> UrdfJoint:
    label = f"joint '{joint.name}'"
    where = f"{path}: {label}"
    kind = checks.choice(where + ": type", joint.type, KINDS, error=SceneError)
    for role in ("parent", "child"):
        link = getattr(joint, role)
        if link not in links:
            raise SceneError(message(f"{where}: {role}", "unknown link", repr(link), checks.nearest(link, links)))
    axis = np.asarray(joint.axis, float)
    length = float(np.linalg.norm(axis))
    if kind not in ("fixed", "floating"):
        if not abs(length - 1.0) <= UNIT:
            raise SceneError(
                message(where + ": axis", "must have length 1", f"{axis.tolist()}", "Divide it by its length.")
            )
        axis = axis / length
    lower, upper = _limits(where, kind, joint.limit)
    single = kind in ("revolute", "continuous", "prismatic")
    if not single or kind == "continuous":
        for key in ("lower", "upper"):
            if joint.limit is not None and getattr(joint.limit, key) is not None:
                notes.add(f"limit {key} of a {kind} joint", label)
    resisting = {key: float(getattr(joint.dynamics, key, None) or 0.0) for key in ("damping", "friction")}
    for key, value in resisting.items():
        checks.number(f"{where}: dynamics.{key}", value, at_least=0.0, error=SceneError)
    if not single:
        for key, value in resisting.items():
            if value > 0.0:
                notes.add(f"dynamics {key} of a {kind} joint", label)
        if joint.mimic is not None:
            notes.add(f"mimic of a {kind} joint", label)
    effort = None if joint.limit is None else joint.limit.effort
    if effort is not None:
        checks.number(where + ": limit.effort", effort, at_least=0.0, error=SceneError)
    follows = None
    if joint.mimic is not None and single:
        follows = (joint.mimic.joint, float(joint.mimic.multiplier), float(joint.mimic.offset))
    return UrdfJoint(
        name=joint.name,
        kind=kind,
        parent=joint.parent,
        child=joint.child,
        pose=_pose(joint.origin),
        axis=axis,
        lower=lower,
        upper=upper,
        effort=effort,
        **resisting,
        mimic=follows,
    )


def _limits(where: str, kind: str, limit: Any) -> tuple[float, float]:
    """Lower and upper limit; infinite for joints without."""
    if kind not in ("revolute", "prismatic"):
        return -math.inf, math.inf
    if limit is None:
        remedy = "Add it, or make the joint continuous." if kind == "revolute" else "Add it."
        raise SceneError(message(where, f"a {kind} joint needs a <limit>", "nothing", remedy))
    lower, upper = (0.0 if v is None else v for v in (limit.lower, limit.upper))  # as URDF has it
    if lower > upper:
        raise SceneError(message(where + ": limit", "must have lower <= upper", f"({lower}, {upper})", "Swap the two."))
    return lower, upper


def _check_mimic(path: Path, joint: UrdfJoint, joints: Mapping[str, UrdfJoint]) -> None:
    where = f"{path}: joint '{joint.name}': mimic"
    seen, j = [joint.name], joint
    while j.mimic is not None:
        name = j.mimic[0]
        if name not in joints:
            raise SceneError(message(where, "unknown joint", repr(name), checks.nearest(name, joints)))
        if name in seen:
            raise SceneError(
                message(where, "joints must not follow each other in a circle", " -> ".join([*seen, name]), "Cut it.")
            )
        seen.append(name)
        j = joints[name]
    if j is not joint and j.kind in ("floating", "planar"):
        raise SceneError(message(where, "follows a joint with one axis", f"'{j.name}' is {j.kind}", "Follow another."))


def _tree(path: Path, links: Mapping[str, UrdfLink], joints: Mapping[str, UrdfJoint]) -> tuple[str, list[str]]:
    """The root, and all links with parents before children."""
    if not links:
        raise SceneError(message(str(path), "a robot needs a link", "none", "Add <link name=...>."))
    below: dict[str, list[str]] = {name: [] for name in links}
    carrier: dict[str, str] = {}
    for j in joints.values():
        if j.child in carrier:
            raise SceneError(
                message(
                    f"{path}: link '{j.child}'",
                    "a link is the child of one joint, since a URDF is a tree",
                    f"joints '{carrier[j.child]}' and '{j.name}'",
                    "Close the loop with scene.add_joint instead.",
                )
            )
        carrier[j.child] = j.name
        below[j.parent].append(j.child)
    roots = [name for name in links if name not in carrier]
    if len(roots) != 1:
        got = "no root: the joints make a loop" if not roots else "roots " + ", ".join(f"'{r}'" for r in roots)
        raise SceneError(
            message(str(path), "a robot has one root link, that is no joint's child", got, "Join all links in a tree.")
        )
    order = list(_walk(roots[0], below))
    if len(order) < len(links):
        rest = [f"'{name}'" for name in links if name not in order]
        raise SceneError(
            message(str(path), "all links hang from the root", f"a loop of {', '.join(rest)}", "Open the loop.")
        )
    return roots[0], order


def _walk(root: str, below: Mapping[str, list[str]]) -> Iterator[str]:
    waiting = [root]
    while waiting:
        name = waiting.pop()
        yield name
        waiting.extend(reversed(below[name]))
