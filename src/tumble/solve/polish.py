"""The last digits of a second-order method: a few projected-gradient iterations from its answer."""

from __future__ import annotations

import numpy as np

from ..enums import Law
from ..problem.cone_problem import ConeProblem
from .apgd import SolverAPGD

__all__ = ["polished"]


def polished(
    problem: ConeProblem, law: Law, impulse: np.ndarray, tolerance: float, iterations: int
) -> tuple[np.ndarray, int]:
    """Impulses (3, cap) at least as good, and the products spent.

    An interior point is good to the square root of its gap at contacts on the edge of two cases (grazing, about to
    slide); the projection settles these at once.
    """
    solution = SolverAPGD(tolerance=tolerance, max_iterations=iterations, check_every=5).solve(
        problem, law=law, guess=impulse
    )
    return solution.impulse, solution.products
