"""Jointed bodies in a step: reactions and projection at the kick, and velocities along the joints at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..backends.base import KickedArrays
from ..kernels import joint_steps
from ..problem.joints import motion_of
from ..scene.model import State

if TYPE_CHECKING:
    from .workspace import Workspace

__all__ = ["Reaction", "react", "world_velocity"]


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
    `change`, which work.velocity has already.

    start: what Moreau's integrator has to add to the kinetic energy for the way to the middle. Euler's drift begins
    with velocities along the joints, before the projection.
    """
    joints = work.joints
    assert joints is not None
    done = joints.react(bounded, kick.orientation, work.before, work.velocity)
    resisted = max(0.0, -done.ideal) if start is None else 0.0
    loads = (h, work.force, work.torque)
    closed = joints.project(kick, work.velocity, rest, work.next_pose, loads, change, work.free)
    wanted = joints.kicked_energy
    if start is not None:
        energy, ideal = joints.closed_energies
        wanted = start + energy - ideal
    return Reaction(
        done.total + (closed.energy - done.energy) - done.recovered,
        done.recovered,
        resisted,
        done.motors + closed.motors,
        closed.crossed,
        wanted,
    )


def world_velocity(work: Workspace, state: State, out: np.ndarray) -> None:
    """Velocities (n, 6) of jointed bodies, angular ones in world axes."""
    assert work.joints is not None
    body = work.joints.bodies
    work.backend.over_rows(joint_steps.world_velocity)(len(body), body, motion_of(state), out)
