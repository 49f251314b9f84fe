"""Problems without a solution in reach, told by the impulses that a solver has found so far.

Each p in K and each solution with velocities v obey p.u >= 0 (with Coulomb's law up to p.(mu |u_T| e_n)), hence
|v - v_free|_M >= -r.p / sqrt(p.N p): a lower bound of the motion of any solution, reached by the solution itself. Where
none exists the impulses of every method run along a ray that moves nothing, and the bound grows without end.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..kernels import reach as formulas
from ..problem.cone_problem import ConeProblem
from ..problem.operators import ArticulatedOperator, MatrixOperator

__all__ = ["FAR", "least_motion", "moved_mass", "out_of_reach", "worst_speed"]

FAR = 1e3
"""Out of reach is what moves everything that can move so many times faster than the worst contact asks for."""


class _Ray(NamedTuple):
    impulse: np.ndarray
    product: np.ndarray


class _Of(NamedTuple):  # each contact
    contact: np.ndarray


class _Masses(NamedTuple):
    body: np.ndarray


def least_motion(problem: ConeProblem, impulse: np.ndarray) -> float:
    """No solution changes the velocities by less, in the norm of the kinetic energy, sqrt(v.M v) [sqrt(kg) m/s]."""
    n, b, (ray, product) = problem.count, problem.backend, problem.vectors_of(_Ray)
    each = problem.scratch_of(_Of, contact=problem.bias.shape[1:]).contact
    b.over_contacts(formulas.ray_of)(n, problem.sliding_friction, impulse, problem.bias, ray, each)
    asked = b.total(n, each)
    if not asked > 0.0:
        return 0.0
    problem.operator.product(ray, product)
    b.over_contacts(formulas.power_of)(n, ray, product, each)
    moved = b.total(n, each)
    return asked / math.sqrt(moved) if moved > 0.0 else math.inf


def out_of_reach(problem: ConeProblem, impulse: np.ndarray) -> bool:
    """Whether any solution would move the bodies absurdly far; not for stored problems, whose bodies are not known."""
    if problem.count == 0 or isinstance(problem.operator, MatrixOperator):
        return False
    if isinstance(problem.operator, ArticulatedOperator):
        scratch = problem.kept(_looking)
        speed, mass, asked, moved = problem.backend.look_out(
            problem.operator.arrays, problem.count, problem.friction, impulse, problem.bias, scratch
        )
        least = FAR * math.sqrt(mass) * speed
        if not asked > 0.0:
            return False
        return (asked / math.sqrt(moved) if moved > 0.0 else math.inf) > least > 0.0
    least = FAR * math.sqrt(moved_mass(problem)) * worst_speed(problem)
    return least_motion(problem, impulse) > least > 0.0


def _looking(problem: ConeProblem) -> tuple:
    zeros, shape, bodies = problem.backend.zeros, problem.bias.shape, len(problem.step_operator.contacts.inverse_mass)
    return zeros(shape), zeros(shape), zeros(shape[1]), zeros(bodies)


def worst_speed(problem: ConeProblem) -> float:
    """At which a contact asks to part, at least 0 [m/s]."""
    each = problem.scratch_of(_Of, contact=problem.bias.shape[1:]).contact
    problem.backend.over_contacts(formulas.wanted_speed)(problem.count, problem.bias, each)
    return problem.backend.largest(problem.count, each)


def moved_mass(problem: ConeProblem) -> float:
    """Of all bodies that can move [kg]."""
    ease = problem.step_operator.contacts.inverse_mass
    mass = problem.scratch_of(_Masses, body=ease.shape[:1]).body
    problem.backend.over_bodies(formulas.mass_of)(len(ease), ease, mass)
    return problem.backend.total(len(ease), mass)
