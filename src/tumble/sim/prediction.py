"""The kick of the forces: velocities of all bodies before and after it, at the pose at which the step kicks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..backends.base import KickedArrays
from ..collide.contacts import Contacts
from ..errors import BlowUpError, SceneError, message
from ..kernels.contact_rows import surface_bias
from ..kernels.motion import user_frame
from ..problem.cone_problem import ConeProblem
from ..scene import rotation
from ..scene.builder import motion_pose
from ..scene.model import Model, State
from ..scene.motion import Conveyor
from .workspace import Workspace

__all__ = ["at_start", "drop_normal_surface", "predict", "prescribe_motion"]


class SurfaceTouch(NamedTuple):
    """Where contacts are, as `kernels.contact_rows.surface_bias` reads it."""

    body_a: np.ndarray
    body_b: np.ndarray
    normal: np.ndarray  # (3, cap)
    point: np.ndarray  # (3, cap)


def at_start(model: Model, state: State, work: Workspace) -> KickedArrays:
    """Bodies that are kicked as they stand."""
    return KickedArrays(
        model.body_inertia,
        model.body_locked,
        state.position,
        state.orientation,
        work.matrix,
        state.spin,
        work.before,
    )


def predict(model: Model, kick: KickedArrays, velocity: np.ndarray, time: float, h: float, work: Workspace) -> None:
    """Forces, rotation matrices, inverse inertia, and velocities before and after the forces' kick."""
    _external_forces(model, kick, velocity, time, work)
    work.backend.predict(
        work.masses,
        work.loads,
        work.prescribed,
        kick.orientation,
        velocity,
        kick.spin,
        h,
        work.freed,
    )


def prescribe_motion(model: Model, state: State, h: float, work: Workspace) -> None:
    """Velocities of kinematic bodies: constant, or the mean velocity between two poses of a motion."""
    kinematic, fetch = work.kinematic, work.backend.fetch
    if not kinematic.size:
        return
    at = {int(body): row for row, body in enumerate(fetch(kinematic))}
    places, turns = fetch(state.position[kinematic]), fetch(state.orientation[kinematic])
    prescribed = np.zeros((len(at), 6))
    prescribed[:, :3] = fetch(state.velocity[kinematic])
    prescribed[:, 3:] = rotation.rotate(turns, fetch(state.spin[kinematic]))
    for body, motion in model.motions.items():
        row = at[body]
        where = f"body '{model.name(body)}'"
        position, orientation = motion_pose(where, motion, state.time + h)
        turn = rotation.multiply(orientation, rotation.conjugate(turns[row]))
        turn = turn if turn[0] >= 0.0 else -turn
        sine = float(np.linalg.norm(turn[1:]))
        angle = 2.0 * np.arctan2(sine, turn[0])
        prescribed[row, :3] = (position - places[row]) / h
        prescribed[row, 3:] = turn[1:] * (angle / (sine * h)) if sine > 0.0 else 0.0
        work.next_pose[body] = (work.backend.send(position), work.backend.send(orientation))
        if isinstance(motion, Conveyor):
            assert work.surface is not None
            twist = motion.twist(where, state.time, places[row], turns[row])
            work.surface[body] = work.backend.send(twist)
            prescribed[row] += twist
    work.prescribed[kinematic] = work.backend.send(prescribed)


def drop_normal_surface(contacts: Contacts, problem: ConeProblem, center: np.ndarray, surface: np.ndarray) -> None:
    """A surface that runs takes along and does not push: no part along the normal (surface: (n, 6), zero for most)."""
    c = contacts
    touch = SurfaceTouch(c.body_a, c.body_b, c.normal, c.point)
    problem.backend.over_contacts(surface_bias)(c.count, touch, center, surface, problem.bias)


def _external_forces(model: Model, kick: KickedArrays, velocity: np.ndarray, time: float, work: Workspace) -> None:
    """Constant forces and the callbacks, summed into work.force and work.torque (world axes)."""
    if not model.forces and work.applied is None:
        return  # they hold the constant ones from the start
    work.force[:], work.torque[:] = model.body_force, model.body_torque
    send, fetch = work.backend.send, work.backend.fetch
    if work.applied is not None:
        work.force += send(work.applied[:, :3])
        work.torque += send(work.applied[:, 3:])
    if not model.forces:
        return
    on_device = [not work.backend.HOSTED and getattr(f, "device_arrays", False) for f in model.forces]
    given: dict[bool, tuple[np.ndarray, ...]] = {}
    if not all(on_device):
        turned = fetch(kick.orientation)
        frames = work.host.user_frames(fetch(kick.position), turned)
        given[False] = (*frames, fetch(velocity), rotation.rotate(turned, fetch(kick.spin)))
    if any(on_device):
        n, zeros = model.body_count, work.backend.zeros
        frame = zeros((n, 3)), zeros((n, 4)), zeros((n, 3))
        work.backend.over_bodies(user_frame)(
            n, kick.position, kick.orientation, kick.spin, model.body_axes, model.body_center, frame
        )
        given[True] = (frame[0], frame[1], velocity, frame[2])
    for callback, there in zip(model.forces, on_device):
        position, orientation, speed, spin = given[there]
        result = callback(time, position, orientation, speed.copy(), spin)
        try:
            force, torque = result if there else (np.asarray(part, float) for part in result)
            if force.shape != work.force.shape or torque.shape != work.torque.shape:
                raise ValueError(f"shapes {force.shape} and {torque.shape}")
        except (AttributeError, TypeError, ValueError) as cause:
            raise SceneError(
                message(
                    f"force callback '{getattr(callback, '__name__', callback)}'",
                    f"must return a force and a torque of shape {work.force.shape}",
                    cause,
                    "Return zeros for the one you do not need.",
                )
            ) from cause
        finite = np.isfinite(force + torque).all(axis=1)
        if not finite.all():
            force, torque = (fetch(part) if there else part for part in (force, torque))
            bad = np.flatnonzero(~np.isfinite(force + torque).all(axis=1))
            raise BlowUpError(
                message(
                    f"force callback '{getattr(callback, '__name__', callback)}' at t = {time:g} s",
                    "must return finite forces and torques",
                    f"{force[bad[0]].tolist()} N, {torque[bad[0]].tolist()} N m on '{model.name(int(bad[0]))}'",
                    "Check it for division by zero. The state before this step is kept.",
                )
            )
        work.force += force if there else send(force)
        work.torque += torque if there else send(torque)
