"""Before the first step: joints are closed, in positions and velocities; contradictory ones are refused."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from ..backends.base import KickedArrays
from ..enums import RowRole
from ..errors import SceneError, TumbleWarning, message
from ..problem.joint_closing import close, still
from ..problem.joints import Joints
from ..scene import rotation
from ..scene.builder import motion_pose
from ..scene.model import Model, State
from ..scene.motion import Motion

__all__ = ["Assembly", "assemble"]

ROUNDS = 60
CLOSED = 1e-12
"""Violation at which the joints count as closed [m or rad, times the size of the mechanism where larger than 1]."""
WORTH_SAYING = 1e-6
OUTSIDE = 1e-6
"""A joint may start this far outside its limits [rad or m]."""
LARGEST_TURN = 0.5
"""Angle by which a body is turned in a round at most [rad]."""


@dataclass(frozen=True)
class Assembly:
    """How far the bodies had to be moved for the joints to close."""

    moved: float
    """Largest distance [m]"""
    moved_body: str
    turned: float
    """Largest angle [rad]"""
    speed_changed: float
    """Largest change of a velocity [m/s]"""
    redundant: tuple[tuple[str, ...], ...]
    """Joints with a row that depends on those of others: harmless, their forces are then not unique"""


def assemble(model: Model, joints: Joints, state: State, h: float) -> Assembly:
    """Move the bodies, lightest first, until all rigid rows hold; then the velocities likewise."""
    before_position, before_orientation = state.position.copy(), state.orientation.copy()
    state.coordinate = joints.coordinates(state, joints.jacobian)
    state.row_impulse = np.zeros(joints.count)
    state.energy_owed = np.zeros(joints.mechanism_count)
    if len(state.target) != len(model.joints.motors):
        state.target = np.full(len(model.joints.motors), np.nan)
    worst, g = np.inf, np.zeros(0)
    for _ in range(ROUNDS):
        move, g = close(joints, state)
        new = float(np.abs(g).max(initial=0.0))
        if new <= CLOSED * joints.size or (0.9 * worst < new < 1e-10) or not np.isfinite(new):
            worst = new
            break
        worst = new
        longest = float(np.linalg.norm(move[:, 3:], axis=1).max(initial=0.0))
        move *= min(1.0, LARGEST_TURN / longest) if longest > 0.0 else 1.0
        state.position += move[:, :3]
        moved = np.any(move[:, 3:] != 0.0, axis=1)
        state.orientation[moved] = rotation.turned(state.orientation[moved], move[moved, 3:])
        state.coordinate = joints.coordinates(state, joints.jacobian)
    if not worst <= 1e-9 * joints.size:
        _refuse(joints, g, worst)
    state.coordinate = joints.coordinates(state, joints.jacobian)
    redundant = tuple(joints.redundant_names())
    _check_limits(joints, state)
    velocity = np.concatenate([state.velocity, rotation.rotate(state.orientation, state.spin)], axis=1)
    for body, motion in model.motions.items():
        velocity[body] = _motion_velocity(model, motion, body, state.time)
    old = velocity.copy()
    still(joints, state, velocity)
    changed = np.abs(velocity - old).max(axis=1)
    if changed.max(initial=0.0) > 1e-13 * max(1.0, np.abs(old).max(initial=0.0)):
        state.velocity[:] = velocity[:, :3]
        state.spin[:] = rotation.rotate(rotation.conjugate(state.orientation), velocity[:, 3:])
    _check_speeds(model, joints, state, h)
    distance = np.linalg.norm(state.position - before_position, axis=1)
    cosine = np.abs(np.sum(state.orientation * before_orientation, axis=1)).clip(0.0, 1.0)
    body = int(np.argmax(distance))
    out = Assembly(
        float(distance[body]),
        model.name(body),
        float(2.0 * np.arccos(cosine).max()),
        float(changed.max(initial=0.0)),
        redundant,
    )
    if out.moved > WORTH_SAYING * joints.size:
        warnings.warn(
            message(
                "Simulation",
                "the joints did not close at the start and were assembled",
                f"bodies moved by up to {out.moved:.4g} m ('{out.moved_body}')",
                "See Simulation.assembly; correct the anchors or the bodies to avoid it.",
            ),
            TumbleWarning,
            stacklevel=3,
        )
    return out


def _refuse(joints: Joints, g: np.ndarray, worst: float) -> None:
    """Name the joints that cannot be closed together."""
    names = joints.model.names
    rows = [int(r) for r in np.argsort(-np.abs(g)) if abs(g[r]) > 0.05 * worst]
    fighting = dict.fromkeys(names[joints.model.row_element[r]] for r in rows)
    for together in joints.redundant_names():  # an open row that depends on others: those hold it open
        if any(n in fighting for n in together):
            fighting |= dict.fromkeys(together)
    raise SceneError(
        message(
            "Simulation",
            "the joints cannot all be closed at once",
            f"{', '.join(repr(n) for n in fighting)} stay open by up to {worst:.4g} m or rad",
            "These joints fight each other: correct their anchors, lengths or targets, or remove one.",
        )
    )


def _check_limits(joints: Joints, state: State) -> None:
    """Refuse joints that start outside their limits."""
    j = joints.model
    for row in np.flatnonzero((j.row_role == RowRole.LOWER) | (j.row_role == RowRole.UPPER)):
        value = float(state.coordinate[j.row_coord[row, 0]])
        lower = j.row_role[row] == RowRole.LOWER
        limit = float(j.row_offset[row] if lower else -j.row_offset[row])
        if (limit - value if lower else value - limit) > OUTSIDE:
            raise SceneError(
                message(
                    f"joint '{j.names[j.row_element[row]]}'",
                    f"must start {'above' if lower else 'below'} its limit {limit:g}",
                    f"{value:g} rad or m",
                    "A joint's value is 0 as the scene is built: move the bodies or the limits.",
                )
            )


def _motion_velocity(model: Model, motion: Motion, body: int, time: float) -> np.ndarray:
    """Velocity (6,) of a body of prescribed motion."""
    e = 1e-6
    where = f"body '{model.name(body)}'"
    (p, q), (r, s) = motion_pose(where, motion, time), motion_pose(where, motion, time + e)
    turn = rotation.multiply(s, rotation.conjugate(q))
    return np.concatenate([(r - p) / e, 2.0 * np.sign(turn[0]) * turn[1:] / e])


def _check_speeds(model: Model, joints: Joints, state: State, h: float) -> None:
    """Refuse motors and joints that prescribe different speeds for the same motion."""
    velocity = np.concatenate([state.velocity, rotation.rotate(state.orientation, state.spin)], axis=1)
    kick = KickedArrays(
        model.body_inertia, model.body_locked, state.position, state.orientation, np.zeros((0, 9)), state.spin, velocity
    )
    joints.prepare(kick, state, h, joints.inverse_inertia(state), velocity.copy(), controllers=False)
    joints.forget()
    scale = float(np.abs(joints.exact.kicked.wanted).max(initial=0.0))
    bad = joints.contradictions(1e-6 * scale + 1e-9)
    if bad:
        names, miss = bad[0]
        raise SceneError(
            message(
                "Simulation",
                "the joints and motors must not contradict each other",
                f"{', '.join(repr(n) for n in names)} by {miss:.4g} m/s or rad/s",
                "These fight each other: remove one, or give a motor a maximum or a stiffness.",
            )
        )
