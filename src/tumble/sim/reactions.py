"""Forces of joints, motors and springs in the last step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import checks
from ..problem import joint_forces
from ..problem.joints import Joints
from ..scene import rotation
from ..scene.joint_model import JointModel
from ..scene.model import State
from ..showing import Shown

__all__ = ["JointReaction", "JointReactions", "joint_reactions"]

FRAMES = ("world", "joint")


@dataclass(frozen=True)
class JointReaction:
    """What one joint, gear, motor or spring did in a step."""

    name: str
    kind: str
    force: np.ndarray
    """(3,) on body b at its anchor [N]"""
    torque: np.ndarray
    """(3,) on body b about its anchor [N m]"""
    value: float
    """Its turn [rad], slide or length [m] at the end of the step; NaN where it has none"""
    speed: float
    effort: float
    """Force or torque along that coordinate [N or N m]: of a motor, spring, friction or limit"""
    power: float
    """effort times speed [W]"""


@dataclass(frozen=True, repr=False)
class JointReactions(Shown):
    """Copies for all e joints, gears, motors and springs; arrays as in `JointReaction`. Body a feels the opposite."""

    model: JointModel
    frame: str
    """world: world axes; joint: axes of frame A, the third is the joint's axis"""
    force: np.ndarray
    torque: np.ndarray
    value: np.ndarray
    speed: np.ndarray
    effort: np.ndarray
    power: np.ndarray

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, name: str) -> JointReaction:
        k = self.model.element(name)
        e = self.model.elements[k]
        numbers = (float(a[k]) for a in (self.value, self.speed, self.effort, self.power))
        return JointReaction(e.name, e.kind, self.force[k].copy(), self.torque[k].copy(), *numbers)


def joint_reactions(joints: Joints, state: State, h: float, frame: str) -> JointReactions:
    """Mean forces over the last step, at the pose it began with."""
    checks.choice("joint_reactions.frame", frame, FRAMES)
    j = joints.model
    force, torque, effort = joint_forces.wrenches(joints, h)
    coordinate = np.array([e.turn if e.turn >= 0 else e.slide for e in j.elements], np.int64)
    has = coordinate >= 0
    value = np.full(len(j.elements), np.nan)
    speed = np.full(len(j.elements), np.nan)
    value[has] = state.coordinate[coordinate[has]]
    speed[has] = joint_forces.speeds(joints, state)[coordinate[has]]
    if frame == "joint":
        axes = joint_forces.frame_orientations(joints)
        force, torque = (rotation.rotate(rotation.conjugate(axes), x) for x in (force, torque))
    return JointReactions(j, frame, force, torque, value, speed, effort, effort * np.nan_to_num(speed))
