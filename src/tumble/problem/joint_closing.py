"""Closing joints by positions alone: at the start of a run, and after overlaps were pushed apart."""

from __future__ import annotations

import numpy as np

from ..scene.model import State
from .joint_system import JointSystem
from .joints import Joints

__all__ = ["close", "close_at_end", "still"]


def close(joints: Joints, state: State) -> tuple[np.ndarray, np.ndarray]:
    """One Newton step towards g = 0 at the present pose: displacements (n, 6) and the violations g (r,).

    Springs and speeds do not count (their compliance is huge).
    """
    joints.targets.take(state, state.time)
    return _newton(joints, state, joints.system, joints.jacobian)


def close_at_end(joints: Joints, state: State) -> tuple[np.ndarray, np.ndarray]:
    """The same at the end of a step, with its targets."""
    return _newton(joints, state, joints.exact.end, joints.trial_jacobian)


def _newton(joints: Joints, state: State, system: JointSystem, jacobian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rigid, g = joints.rigid, np.zeros(joints.count)
    value = joints.coordinates(state, jacobian)
    system.assemble(value, joints.targets.value, jacobian, joints.inverse_inertia(state))
    system.hold(rigid)
    y = np.where(rigid, -system.built.g, 0.0)
    g[joints.equality] = -y
    system.solve(y)
    move = np.zeros((len(state.position), 6))
    system.push(y, move)
    return move, g


def still(joints: Joints, state: State, velocity: np.ndarray) -> None:
    """Change velocities (n, 6) so that the rigid rows hold in velocity; after `close` at the same pose."""
    y = joints.system.speeds(velocity)
    for row, motor in enumerate(joints.exact.motor):
        if motor >= 0 and joints.rigid[row]:
            y[row] -= joints.targets.speed(int(motor), state.time)
    y = np.where(joints.rigid, -y, 0.0)
    joints.system.solve(y)
    joints.system.push(y, velocity)
