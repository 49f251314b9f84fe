"""Forces of the joints after a step's solve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..enums import RowRole
from ..scene import rotation
from ..scene.model import State

if TYPE_CHECKING:
    from .joints import Joints

__all__ = ["frame_orientations", "speeds", "wrenches"]


def wrenches(joints: Joints, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Force (e, 3) and torque (e, 3) of every element on its body b at its anchor, and the force or torque along
    its coordinate (e,) by motors, springs, friction and limits: means over the step, world axes."""
    j, fetch = joints.model, joints.backend.fetch
    motors, jacobian = fetch(joints.torques.motor), fetch(joints.jacobian)
    first = np.concatenate([j.row_coord[:, 0], [j.motors[k].coordinate for k in motors]]).astype(int)
    element = np.concatenate([j.row_element, [j.motors[k].element for k in motors]]).astype(int)
    weight = np.concatenate([j.row_weight[:, 0], np.ones(len(motors))])
    extra = fetch(joints.torques.impulse)
    impulse = fetch(joints.impulse) + fetch(joints.end_impulse)
    own = weight * np.concatenate([impulse, extra]) / h
    count = len(j.elements)
    force, torque, effort = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
    np.add.at(force, element, own[:, None] * jacobian[first, 6:9])
    np.add.at(torque, element, own[:, None] * jacobian[first, 9:12])
    frame = np.array([e.frame for e in j.elements], int)
    b = j.frame_body[frame, 1]
    for r in joints.two:  # a gear's other coordinate, where it moves the same body (a screw)
        c, e = j.row_coord[r, 1], j.row_element[r]
        if j.frame_body[j.coord_frame[c], 1] == b[e]:
            own_second = j.row_weight[r, 1] * impulse[r] / h
            force[e] += own_second * jacobian[c, 6:9]
            torque[e] += own_second * jacobian[c, 9:12]
    arm = rotation.rotate(fetch(joints.kick_orientation)[b], j.frame_position[2 * frame + 1])
    torque -= np.cross(arm, force)
    along = np.array([[e.turn, e.slide] for e in j.elements])[element]
    free = np.concatenate([j.row_role != RowRole.RIGID, np.ones(len(extra), bool)]) | (
        np.concatenate([j.row_motor >= 0, np.ones(len(extra), bool)])
    )
    free &= first == np.where(along[:, 0] >= 0, along[:, 0], along[:, 1])
    np.add.at(effort, element[free], own[free])
    return force, torque, effort


def speeds(joints: Joints, state: State) -> np.ndarray:
    """(c,) speeds of the coordinates now."""
    j = joints.model
    joints = joints.host
    joints.coordinates(state, joints.trial_jacobian)
    velocity = np.concatenate([state.velocity, rotation.rotate(state.orientation, state.spin)], axis=1)
    return np.einsum("ks,ks->k", joints.trial_jacobian, velocity[j.frame_body[j.coord_frame]].reshape(-1, 12))


def frame_orientations(joints: Joints) -> np.ndarray:
    """(e, 4) frames A of the elements at the start of the step."""
    j = joints.model
    frame = np.array([e.frame for e in j.elements], int)
    return rotation.multiply(
        joints.backend.fetch(joints.kick_orientation)[j.frame_body[frame, 0]], j.frame_orientation[2 * frame]
    )
