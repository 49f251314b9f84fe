"""Jointed bodies in a step: reactions and projection at the kick, and velocities along the joints at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..backends.base import KickedArrays
from ..enums import BodyKind
from ..problem import joint_forces
from ..scene import rotation
from ..scene.model import Model, State

if TYPE_CHECKING:
    from .workspace import Workspace

__all__ = ["Reaction", "hold_joints", "kicked", "react", "world_velocity"]


@dataclass(frozen=True, slots=True)
class Reaction:
    """What the joints did at the kick."""

    work: float
    """Of all joints [J], but for what was `recovered`"""
    recovered: float
    """By pushing joints back from beyond their limits [J]"""
    resisted: float
    """What rigid rows that close a gap of their own took of what contacts pushed [J]; only Euler's velocities push"""
    by_motors: float
    crossed: float
    """Work that external impulses seem to do through the velocity that the projection adds [J]: the joints, which react
    to them, take it back"""
    wanted: np.ndarray
    """(mechanisms,) kinetic energy that the drift is to keep [J]"""


def react(
    kick: KickedArrays,
    bounded: np.ndarray,
    work: Workspace,
    change: np.ndarray,
    h: float,
    rest: float,
    start: np.ndarray | None,
) -> Reaction:
    """Reactions of the joints to the solved impulses (those of `bounded` rows given) and the projection onto them, into
    `change`.

    start: what Moreau's integrator has to add to the kinetic energy for the way to the middle. Euler's drift begins
    with velocities along the joints, before the projection.
    """
    joints = work.joints
    assert joints is not None
    body = joints.bodies
    joints.take_reactions(bounded)
    work.set_velocity(change)
    along, before = work.velocity[body], joints.energy.of(kick.orientation, work.velocity)
    done, by_motors = joint_forces.work_done(joints, work.before, work.velocity)
    recovered = joint_forces.recovered(joints, work.before, work.velocity)
    resisted = 0.0
    if start is None:
        resisted = max(0.0, -float(joint_forces.ideal_work(joints, work.before, work.velocity).sum()))
    by_motors += joints.project(kick, work.velocity, rest, work.next_pose)
    after = joints.energy.of(kick.orientation, work.velocity)
    np.subtract(work.velocity, work.free, out=change)
    added = work.velocity[body] - along
    crossed = 0.5 * h * float(np.sum(work.force[body] * added[:, :3]) + np.sum(work.torque[body] * added[:, 3:]))
    wanted = before if start is None else start + after - joint_forces.ideal_work(joints, work.before, work.velocity)
    return Reaction(done + float((after - before).sum()) - recovered, recovered, resisted, by_motors, crossed, wanted)


def hold_joints(model: Model, state: State, work: Workspace, h: float, wanted: np.ndarray) -> tuple[float, float]:
    """The joints' kick at the end, after the drift: velocities along the joints, with the kinetic energy (mechanisms,)
    that ideal ones leave; returns its work, and motors' [J]."""
    joints = work.joints
    assert joints is not None
    body, velocity = joints.bodies, work.held
    old = world_velocity(state, body)
    velocity[body] = old
    done = joints.hold(state, velocity, h, wanted)
    kicked(model, state, body, velocity[body] - old, state.velocity, state.spin)
    return done


def world_velocity(state: State, body: np.ndarray) -> np.ndarray:
    """(bodies, 6) velocities of some bodies, angular ones in world axes."""
    return np.concatenate([state.velocity[body], rotation.rotate(state.orientation[body], state.spin[body])], axis=1)


def kicked(
    model: Model, state: State, body: np.ndarray, change: np.ndarray, velocity: np.ndarray, spin: np.ndarray
) -> None:
    """Velocities and spins of the dynamic ones of some bodies after a kick that changes them by (bodies, 6) at the
    state's pose."""
    moved = model.body_kind[body] == BodyKind.DYNAMIC
    body, change = body[moved], change[moved]
    spin[body] = state.spin[body] + rotation.rotate(rotation.conjugate(state.orientation[body]), change[:, 3:])
    velocity[body] = state.velocity[body] + change[:, :3]
