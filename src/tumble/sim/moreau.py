"""The Moreau-Jean integrator: contacts in velocity, positions with a mean velocity, overlaps removed apart.

A contact whose gap is predicted to close (gap + h v_n / 2 <= 0 with the old velocity) gets u_n >= 0; the others keep
gap / h + u_n >= 0. The row gap + h (u_old + u_new) / 2 >= 0 would bounce. Positions move with theta v_new +
(1 - theta) v_old. What overlap is left is taken out by pseudo-velocities that move positions and nothing else: one more
problem of the same contacts, without friction, solved to a hundredth of the overlap.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..collide.contacts import Contacts
from ..enums import BodyKind, Law
from ..options import StepOptions
from ..problem.cone_problem import BlockGroup, ConeProblem
from ..scene import rotation
from ..scene.model import Model, State
from ..solve.apgd import SolverAPGD

__all__ = ["correct_positions", "hold_in_velocity", "mean_poses"]

WORTH_REMOVING = 1e-5
"""Overlaps below this part of the smaller shape are left."""
CORRECTION = SolverAPGD(tolerance=1e-2, max_iterations=200)


def hold_in_velocity(contacts: Contacts, problem: ConeProblem, before: np.ndarray, free: np.ndarray, h: float) -> None:
    """Rewrite the normal bias: closing contacts have none of their gap."""
    n = contacts.count
    if n == 0:
        return
    rows = problem.vector("x_old")
    problem.operator.relative(before, rows)
    gap = contacts.gap[:n]
    closing = gap + 0.5 * h * rows[0, :n] <= 0.0
    problem.operator.relative(free, rows)
    problem.bias[0, :n] = np.where(closing, 0.0, np.maximum(gap, 0.0) / h) + rows[0, :n]


def mean_poses(
    model: Model,
    state: State,
    before: np.ndarray,
    matrix: np.ndarray,
    start: tuple[np.ndarray, np.ndarray],
    options: StepOptions,
    backend: ModuleType,
) -> float:
    """After `advance`: poses moved with the mean velocity instead; returns the change of the potential energy [J].

    start: positions and orientations at the beginning of the step.
    """
    h, theta = float(options.dt), float(options.theta)
    dynamic = np.flatnonzero(model.body_kind == BodyKind.DYNAMIC)
    position, orientation = start
    spin = np.einsum("nij,nj->ni", matrix.reshape(-1, 3, 3), state.spin)
    mean = theta * np.concatenate([state.velocity, spin], axis=1) + (1.0 - theta) * before
    old = state.position[dynamic].copy()
    backend.trial_pose(dynamic, matrix, position, orientation, mean, h, state.position, state.orientation)
    moved = state.position[dynamic] - old
    return -float(np.sum(model.body_mass[dynamic, None] * model.gravity * moved))


def correct_positions(
    model: Model,
    state: State,
    contacts: Contacts,
    problem: ConeProblem,
    before: np.ndarray,
    after: np.ndarray,
    options: StepOptions,
) -> float:
    """Push overlapping bodies apart without touching velocities; returns the change of the potential energy [J]."""
    n, h, theta = contacts.count, float(options.dt), float(options.theta)
    if n == 0:
        return 0.0
    rows = problem.vector("x_old")
    problem.operator.relative(theta * after + (1.0 - theta) * before, rows)
    end = contacts.gap[:n] + h * rows[0, :n]
    size = contacts.size[:n]
    if not np.any(end < -WORTH_REMOVING * size):
        return 0.0
    gravity = float(np.linalg.norm(model.gravity)) or 9.81
    cap = np.sqrt(0.02 * gravity * size) if options.recovery_speed is None else float(options.recovery_speed)
    bias = np.zeros_like(problem.bias)
    bias[0, :n] = np.maximum(end / h, -cap)
    group = BlockGroup(problem.group.kind, problem.dim, n, np.zeros_like(problem.friction))
    apart = ConeProblem(group, bias, problem.operator, h, {})
    push = problem.operator.velocity(CORRECTION.solve(apart, law=Law.RELAXED).impulse)
    dynamic = np.flatnonzero(model.body_kind == BodyKind.DYNAMIC)
    state.position[dynamic] += h * push[dynamic, :3]
    _turn_by(state, dynamic, h * push[dynamic, 3:])
    return -float(np.sum(model.body_mass[dynamic, None] * model.gravity * h * push[dynamic, :3]))


def _turn_by(state: State, bodies: np.ndarray, angle: np.ndarray) -> None:
    """Turn bodies by small rotation vectors (k, 3) in world axes."""
    half = 0.5 * np.linalg.norm(angle, axis=1)
    sinc = np.where(half > 1e-12, np.sin(half) / np.where(half > 1e-12, 2.0 * half, 1.0), 0.5)
    q = np.concatenate([np.cos(half)[:, None], sinc[:, None] * angle], axis=1)
    turned = rotation.multiply(q, state.orientation[bodies])
    state.orientation[bodies] = turned / np.linalg.norm(turned, axis=1)[:, None]
