"""Coulomb's law as a fixed point: relaxed problems one after the other, each with the correction of the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from .. import checks
from ..enums import Law, Status
from ..errors import OptionsError, message
from ..problem.cone_problem import ConeProblem
from .apgd import SolverAPGD
from .base import Solver
from .matrix_form import MatrixForm, MeasuredSolver

__all__ = ["SolverFixedPoint", "fixed_point"]

SLOW = 0.9
"""A round that does not bring the error below this part of the last one counts against the present step."""
SMALLEST_STEP = 0.05
PATIENCE = 40
"""Rounds without a better iterate after which the outer loop has stalled."""
FUTILE = 2
"""Inner solves in a row that miss their tolerance after which it gives up: each took all the iterations it has."""


class Form(Protocol):
    """What the outer loop asks of a problem without units."""

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """u = N x + r."""
        ...

    def correction(self, u: np.ndarray) -> np.ndarray:
        """mu |u_T|, or its like."""
        ...

    def natural_map(self, x: np.ndarray, u: np.ndarray, law: Law) -> float:
        """The error."""
        ...


def fixed_point(
    form: Form,
    inner: Callable[[np.ndarray, float], np.ndarray | None],
    x: np.ndarray,
    step: float,
    tolerance: float,
    limit: int,
) -> tuple[np.ndarray, int, Status]:
    """s <- s + step (mu |u_T(s)| - s), where u(s) solves the relaxed problem with the bias r + s e_n.

    `inner(s, error)` returns x for a correction s (count,), precise enough for the present error, or None where it
    gives up. The step shrinks when the error does not. Returns the best x, the rounds and how it ended.
    """
    u = form.velocity(x)
    shift = form.correction(u)
    best, best_error, error = x, form.natural_map(x, u, Law.COULOMB), np.inf
    slow, since = 0, 0
    for round_ in range(1, limit + 1):
        found = inner(shift, min(best_error, 1.0))
        if found is None:
            return best, round_, Status.STALLED
        x = found
        u = form.velocity(x)
        last, error = error, form.natural_map(x, u, Law.COULOMB)
        if error < best_error:
            best, best_error, since = x, error, 0
        else:
            since += 1
        if best_error <= tolerance:
            return best, round_, Status.CONVERGED
        if not np.isfinite(error):
            return best, round_, Status.DIVERGED
        if since > PATIENCE:
            return best, round_, Status.STALLED
        slow = slow + 1 if error > SLOW * last else 0
        if slow >= 2:
            step, slow = max(SMALLEST_STEP, 0.5 * step), 0
        shift = shift + step * (form.correction(u) - shift)
    return best, limit, Status.MAX_ITERATIONS


@dataclass(frozen=True, kw_only=True)
class SolverFixedPoint(MeasuredSolver):
    """The outer loop around any solver of the relaxed law; under the relaxed law it is that solver.

    Each inner solve starts from the last one's impulses and is ten times as precise as the present error.
    """

    inner: Solver | None = None
    """Solver of the relaxed problems. None: `SolverAPGD`."""
    step: float = 1.0
    """How far the correction moves in a round; it shrinks when progress ends."""

    name: ClassVar[str] = "fixed_point"
    default_tolerance: ClassVar[float] = 1e-7
    default_iterations: ClassVar[int] = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("SolverFixedPoint.step", self.step, above=0.0, at_most=1.0)
        if self.inner is not None and not hasattr(self.inner, "solve"):
            raise OptionsError(
                message(
                    "SolverFixedPoint.inner", "must be a solver", checks.short(self.inner), "For example SolverAPGD()."
                )
            )

    def _find(self, problem: ConeProblem, law: Law, start: np.ndarray) -> tuple[np.ndarray, int, int, Status]:
        inner: Any = self.inner if self.inner is not None else SolverAPGD()  # a dataclass with a tolerance
        if law == Law.RELAXED:
            solution = replace(inner, tolerance=self.target).solve(problem, law=law, guess=start)
            return solution.impulse, solution.iterations, solution.products, solution.status
        shifted = replace(problem, bias=problem.bias.copy(), scratch={})
        form = MatrixForm(problem, matrix=False)
        spent, guess, missed = [0], [start], [0]

        def relaxed(shift: np.ndarray, error: float) -> np.ndarray | None:
            if missed[0] >= FUTILE:
                return None
            shifted.bias[0, : form.count] = problem.bias[0, : form.count] + shift * form.unit / form.scale[:, 0]
            precise = replace(inner, tolerance=min(1e-3, max(0.3 * self.target, 0.1 * error)))
            solution = precise.solve(shifted, law=Law.RELAXED, guess=guess[0])
            spent[0] += solution.products
            missed[0] = 0 if solution.converged else missed[0] + 1
            guess[0] = solution.impulse
            return form.from_impulse(solution.impulse)

        x, rounds, ending = fixed_point(form, relaxed, form.from_impulse(start), self.step, self.target, self.limit)
        return form.to_impulse(x), rounds, spent[0], ending
