"""Jointed bodies in a step: reactions and projection at the kick, and velocities along the joints at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..backends.base import KickedArrays, MotionArrays
from ..kernels import joint_steps
from ..scene.model import Model, State

if TYPE_CHECKING:
    from .workspace import Workspace

__all__ = ["Reaction", "hold_joints", "motion_of", "react", "world_velocity"]


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
    work.set_velocity(change)
    done = joints.react(bounded, kick.orientation, work.before, work.velocity)
    resisted = max(0.0, -done.ideal) if start is None else 0.0
    closed = joints.project(kick, work.velocity, rest, work.next_pose, (h, work.force, work.torque))
    work.keep_change(change)
    n = joints.mechanism_count
    wanted = done.energy if start is None else start + closed.energy - closed.ideal
    added = work.backend.total(n, closed.energy) - work.backend.total(n, done.energy)
    return Reaction(
        done.total + added - done.recovered,
        done.recovered,
        resisted,
        done.motors + closed.motors,
        closed.crossed,
        wanted,
    )


def hold_joints(model: Model, state: State, work: Workspace, h: float, wanted: np.ndarray) -> tuple[float, float]:
    """The joints' kick at the end, after the drift: velocities along the joints, with the kinetic energy (mechanisms,)
    that ideal ones leave; returns its work, and motors' [J]."""
    assert work.joints is not None
    body, velocity = work.joints.bodies, work.held
    world_velocity(work, state, velocity)
    done = work.joints.hold(state, velocity, h, wanted)
    take = work.backend.over_rows(joint_steps.take_kick)
    take(len(body), body, model.body_kind, motion_of(state), velocity, state.velocity, state.spin)
    return done


def world_velocity(work: Workspace, state: State, out: np.ndarray) -> None:
    """Velocities (n, 6) of jointed bodies, angular ones in world axes."""
    assert work.joints is not None
    body = work.joints.bodies
    work.backend.over_rows(joint_steps.world_velocity)(len(body), body, motion_of(state), out)


def motion_of(state: State) -> MotionArrays:
    """Poses and velocities."""
    return MotionArrays(state.position, state.orientation, state.velocity, state.spin)
