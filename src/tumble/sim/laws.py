"""Contact laws beyond plain friction: mu that falls with speed, restitution, cohesion.

All of them act on the assembled problem.
- Friction: mu + (mu_s - mu) exp(-(v / v_s)^2) with the sliding speed v at the start of the step.
- Restitution e: a contact that would close in this step (gap + h v_free,n <= 0) and approaches faster than the
  threshold leaves with u_n >= -e v_old,n in place of gap / h + u_n >= 0.
- Cohesion c [N]: the cone is shifted, g + h c e_n in K, while gap <= range. With g' = g + h c e_n this is the plain
  problem with the bias r - N h c e_n, so every solver and measure takes it; the shift is taken off after the solve.
"""

from __future__ import annotations

import numpy as np

from ..collide.contacts import Contacts
from ..problem.cone_problem import ConeProblem
from ..scene.materials import PairLaws

__all__ = ["apply_laws"]

DEFAULT_RANGE = 1e-6
"""Range of cohesion in half-extents of the smaller shape."""


def apply_laws(
    laws: PairLaws, contacts: Contacts, problem: ConeProblem, before: np.ndarray, free: np.ndarray, h: float
) -> np.ndarray | None:
    """Change friction and bias of the problem; returns the shift of the normal impulses (count,) [N s], or None."""
    n = contacts.count
    if n == 0 or not laws.active:
        return None
    pair = contacts.pair[:n]
    old = problem.vector("x_old")
    problem.operator.relative(before, old)
    slide = np.hypot(old[1, :n], old[2, :n])
    static, kinetic = laws.static_friction.ravel()[pair], contacts.friction[:n]
    falling = np.exp(-((slide / laws.friction_speed.ravel()[pair]) ** 2))
    problem.friction[:n] = kinetic + (static - kinetic) * falling
    _bounce(laws, contacts, problem, old[0, :n].copy(), free, h)
    return _shift(laws, contacts, problem, h)


def _bounce(
    laws: PairLaws, contacts: Contacts, problem: ConeProblem, approach: np.ndarray, free: np.ndarray, h: float
) -> None:
    n, pair = contacts.count, contacts.pair[: contacts.count]
    e = laws.restitution.ravel()[pair]
    if not np.any(e):
        return
    new = problem.vector("x_new")
    problem.operator.relative(free, new)
    closing = contacts.gap[:n] + h * new[0, :n] <= 0.0
    hit = (e > 0.0) & closing & (-approach > laws.restitution_threshold.ravel()[pair])
    problem.bias[0, :n] = np.where(hit, e * approach + new[0, :n], problem.bias[0, :n])


def _shift(laws: PairLaws, contacts: Contacts, problem: ConeProblem, h: float) -> np.ndarray | None:
    n, pair = contacts.count, contacts.pair[: contacts.count]
    cohesion, reach = laws.cohesion.ravel()[pair], laws.cohesion_range.ravel()[pair]
    reach = np.where(reach < 0.0, DEFAULT_RANGE * contacts.size[:n], reach)
    shift = np.where(contacts.gap[:n] <= reach, h * cohesion, 0.0)
    if not np.any(shift):
        return None
    pull, product = problem.vector("x_new"), problem.vector("product")
    pull[:] = 0.0
    pull[0, :n] = shift
    problem.operator.product(pull, product)
    problem.bias[:, : problem.count] -= product[:, : problem.count]
    return shift
