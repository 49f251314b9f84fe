"""Problems without a solution in reach, told by the impulses that a solver has found so far.

Each p in K and each solution with velocities v obey p.u >= 0 (with Coulomb's law up to p.(mu |u_T| e_n)), hence
|v - v_free|_M >= -r.p / sqrt(p.N p): a lower bound of the motion of any solution, reached by the solution itself. Where
none exists the impulses of every method run along a ray that moves nothing, and the bound grows without end.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..problem.cone_problem import ConeProblem
from ..problem.operators import MatrixOperator

__all__ = ["FAR", "least_motion", "moved_mass", "out_of_reach"]

FAR = 1e3
"""Out of reach is what moves everything that can move so many times faster than the worst contact asks for."""


class _Ray(NamedTuple):
    impulse: np.ndarray
    product: np.ndarray


def least_motion(problem: ConeProblem, impulse: np.ndarray) -> float:
    """No solution changes the velocities by less, in the norm of the kinetic energy, sqrt(v.M v) [sqrt(kg) m/s]."""
    n, (ray, product) = problem.count, problem.vectors_of(_Ray)
    ray[:] = 0.0
    ray[:, :n] = np.where(problem.bounded, 0.0, impulse[:, :n])  # intervals end somewhere
    problem.operator.product(ray, product)
    asked, moved = -float(np.sum(problem.bias[:, :n] * ray[:, :n])), float(np.sum(ray[:, :n] * product[:, :n]))
    if not asked > 0.0:
        return 0.0
    return asked / math.sqrt(moved) if moved > 0.0 else math.inf


def out_of_reach(problem: ConeProblem, impulse: np.ndarray) -> bool:
    """Whether any solution would move the bodies absurdly far; not for stored problems, whose bodies are not known."""
    n = problem.count
    if n == 0 or isinstance(problem.operator, MatrixOperator):
        return False
    mass = moved_mass(problem)
    worst = float(np.max(-problem.bias[0, :n]))
    return least_motion(problem, impulse) > FAR * math.sqrt(mass) * worst > 0.0


def moved_mass(problem: ConeProblem) -> float:
    """Of all bodies that can move [kg]."""
    ease = problem.operator.contacts.inverse_mass.max(axis=1)
    return float(np.sum(1.0 / ease[ease > 0.0]))
