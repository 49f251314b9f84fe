"""Contact forces of a step: per contact, summed per body and per pair of bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..enums import BodyKind
from ..errors import OptionsError, message
from ..scene.model import Model, State
from ..showing import ShownForces
from .stepper import StepResult

if TYPE_CHECKING:
    from .workspace import Workspace

__all__ = ["ContactForces", "apply_force"]


@dataclass(frozen=True, repr=False)
class ContactForces(ShownForces):
    """Copies of the contacts of one step (k contacts). Forces act on body b; body a feels the opposite."""

    model: Model
    body_a: np.ndarray
    """(k,)"""
    body_b: np.ndarray
    """(k,)"""
    point: np.ndarray
    """(k, 3) where the force acts [m]"""
    normal: np.ndarray
    """(k, 3) from a to b"""
    gap: np.ndarray
    """(k,) at the start of the step [m]"""
    impulse: np.ndarray
    """(k, 3) on b in world axes [N s]"""
    force: np.ndarray
    """(k, 3) mean over the step, impulse / dt [N]"""
    arm_a: np.ndarray
    """(k, 3) from a's centre of mass to the point [m]"""
    arm_b: np.ndarray
    """(k, 3)"""
    torque: np.ndarray
    """(k, 3) of rolling and spinning friction on b in world axes, mean over the step [N m]"""

    def __len__(self) -> int:
        return len(self.gap)

    def per_body(self) -> tuple[np.ndarray, np.ndarray]:
        """Force (n, 3) [N] and torque about the centre of mass (n, 3) [N m] on every body, world axes."""
        n = self.model.body_count
        force, torque = np.zeros((n, 3)), np.zeros((n, 3))
        np.add.at(force, self.body_b, self.force)
        np.add.at(force, self.body_a, -self.force)
        np.add.at(torque, self.body_b, np.cross(self.arm_b, self.force) + self.torque)
        np.add.at(torque, self.body_a, -np.cross(self.arm_a, self.force) - self.torque)
        return force, torque

    def on(self, bodies: int | str | np.ndarray, *, by: int | str | np.ndarray | None = None) -> np.ndarray:
        """Total force (3,) on some bodies (indices or a name), from all others or only from those in `by` [N]."""
        target = self._mask(bodies)
        source = ~target if by is None else self._mask(by)
        on_b = target[self.body_b] & source[self.body_a]
        on_a = target[self.body_a] & source[self.body_b]
        return self.force[on_b].sum(axis=0) - self.force[on_a].sum(axis=0)

    def per_pair(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of bodies (p, 2) in contact and the total force (p, 3) of the first on the second [N]."""
        pairs, inverse = np.unique(np.stack([self.body_a, self.body_b], axis=1), axis=0, return_inverse=True)
        force = np.zeros((len(pairs), 3))
        np.add.at(force, np.ravel(inverse), self.force)
        return pairs, force

    def _mask(self, bodies: int | str | np.ndarray) -> np.ndarray:
        mask = np.zeros(self.model.body_count, bool)
        mask[self.model.bodies(bodies) if isinstance(bodies, str) else np.atleast_1d(bodies)] = True
        return mask


def contact_forces(model: Model, result: StepResult) -> ContactForces:
    """Copies out of a step's buffers."""
    dt = result.dt
    c, k = result.contacts, result.contacts.count
    arrays = result.problem.step_operator.contacts
    frame, arms = arrays.frame[:, :k].reshape(3, 3, k), arrays.arms[:, :k]
    impulse = np.einsum("rdk,rk->kd", frame, result.impulse[:3, :k])
    torque = np.zeros((k, 3))
    if len(result.impulse) == 6:
        torque = np.einsum("rdk,rk->kd", frame, result.impulse[3:, :k]) / dt
    return ContactForces(
        model,
        c.body_a[:k].copy(),
        c.body_b[:k].copy(),
        c.point[:, :k].T.copy(),
        c.normal[:, :k].T.copy(),
        c.gap[:k].copy(),
        impulse,
        impulse / dt,
        arms[:3].T.copy(),
        arms[3:].T.copy(),
        torque,
    )


def apply_force(
    model: Model, state: State, work: Workspace, body: int | str, force: Any, torque: Any, point: Any
) -> None:
    """See `Simulation.apply_force`."""
    where = "Simulation.apply_force"
    if isinstance(body, str):
        rows = model.bodies(body)
    else:
        rows = np.array([checks.integer(f"{where}.body", body, at_least=0, at_most=model.body_count - 1)])
    if np.any(model.body_kind[rows] != BodyKind.DYNAMIC):
        remedy = "Static and kinematic bodies take no forces."
        raise OptionsError(message(where, "must be a dynamic body", checks.short(body), remedy))
    push = checks.vector(f"{where}.force", force, error=OptionsError)
    turn = np.tile(checks.vector(f"{where}.torque", torque, error=OptionsError), (len(rows), 1))
    if point is not None:
        turn = turn + np.cross(checks.vector(f"{where}.point", point, error=OptionsError) - state.position[rows], push)
    if work.applied is None:
        work.applied = np.zeros((model.body_count, 6))
    work.applied[rows, :3] += push
    work.applied[rows, 3:] += turn
