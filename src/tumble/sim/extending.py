"""Bodies that are added between runs: another model in the state of the old one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import OptionsError, message
from ..scene.joint_frames import GROUND
from ..scene.model import Model, State

if TYPE_CHECKING:
    from .simulation import Simulation

__all__ = ["extended"]

KEPT = ("body_kind", "body_mass", "body_inertia", "body_center", "body_axes", "body_locked")
BY_BODY = ("position", "orientation", "velocity", "spin")


def extended(sim: Simulation, model: Model) -> Simulation:
    """See `Simulation.extended`."""
    where = "Simulation.extended"
    if not isinstance(model, Model):
        raise OptionsError(message(where, "takes a model", type(model).__name__, "Give scene.build()."))
    old = sim.model
    # The ground of joints is the last body of both.
    ground = bool(old.joints.elements) and old.name(old.body_count - 1).startswith(GROUND)
    count = old.body_count - ground
    rows = np.concatenate([np.arange(count), [model.body_count - 1] if ground else []]).astype(np.int64)
    if model.body_count < old.body_count:
        raise OptionsError(message(where, f"needs {old.body_count} bodies or more", model.body_count, "Only add some."))
    for name in KEPT:
        before, now = getattr(old, name), getattr(model, name)[rows]
        if not np.array_equal(before, now):
            first = int(np.flatnonzero(np.any((before != now).reshape(len(before), -1), axis=1))[0])
            rule, remedy = f"{name} of '{old.name(first)}' must stay as it was", "Add bodies to the same builder."
            raise OptionsError(message(where, rule, now[first].tolist(), remedy))
    if old.joints.names != model.joints.names or len(old.joints.motors) != len(model.joints.motors):
        got = f"{len(old.joints.names)} and {len(model.joints.names)}"
        raise OptionsError(message(where, "must have the same joints", got, "Joints come with the first scene."))
    other = type(sim)(model, options=sim.options, solver=sim.solver, threads=sim.threads, backend=sim.backend)
    other.state = _state(sim.state, other.state, rows, old, model)
    other.unconverged = sim.unconverged
    joints, before = other._work.joints, sim._work.joints
    if joints is not None and before is not None:
        joints.targets.functions.update(before.targets.functions)
    return other


def _state(now: State, initial: State, rows: np.ndarray, old: Model, model: Model) -> State:
    """Old bodies as they are, new ones as their scene says."""
    out = initial.copy()
    out.time, out.step, out.memory = now.time, now.step, now.memory.copy()
    out.recovers = now.recovers
    for name in BY_BODY:
        getattr(out, name)[rows] = getattr(now, name)
    for name in ("coordinate", "row_impulse", "target", "energy_owed"):
        setattr(out, name, getattr(now, name).copy())
    if len(out.presence):
        out.presence = out.presence.copy()
        out.presence[rows] = now.presence if len(now.presence) else 1
    totals = dict(zip(old.flow.columns, now.flow.tolist()))
    out.flow = np.array([totals.get(name, value) for name, value in zip(model.flow.columns, initial.flow.tolist())])
    return out
