"""What the two solvers of flat-sided cones share: options, measure, the way back to the cone problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..enums import Law, Status
from ..problem.cone_problem import ConeProblem
from ..problem.polyhedral import PolyhedralProblem, facets
from .base import Solution
from .matrix_form import MeasuredSolver, refuse

__all__ = ["PolyhedralResiduals", "PolyhedralSolver"]


@dataclass(frozen=True)
class PolyhedralResiduals:
    """Measures of a solution of a polyhedral problem."""

    law: Law
    natural_map: float
    """|min(z, M z + q)| / max(|z|, |M z + q|, |q|) of the problem without units."""
    objective: float
    """g.(N g / 2 + r) [J]"""


@dataclass(frozen=True, kw_only=True)
class PolyhedralSolver(MeasuredSolver):
    """Solves the m-sided problem; a cone problem is given its sides first.

    For a `PolyhedralProblem` status and residuals are its own. For a cone problem they are those of the round cone,
    which m sides miss by O(1/m^2): `converged` then means that even the round cone is met within the tolerance.
    """

    facets: int = 8
    """Sides of a cone."""
    offset: float = 0.0
    """Angle of the first corner from the first tangent [rad]."""
    laws: ClassVar[tuple[Law, ...]] = (Law.COULOMB, Law.RELAXED)

    def __post_init__(self) -> None:
        super().__post_init__()
        where = type(self).__name__
        checks.integer(where + ".facets", self.facets, at_least=3)
        checks.number(where + ".offset", self.offset)

    def solve(
        self,
        problem: ConeProblem | PolyhedralProblem,
        *,
        law: Law | str = Law.COULOMB,
        guess: np.ndarray | None = None,
    ) -> Solution:
        """Solve. The method needs no guess and takes none into account."""
        law = Law(checks.choice(type(self).__name__ + ".law", law, list(Law)))
        if law not in self.laws:
            raise refuse(type(self).__name__, f"cannot take the {law} law", "a quadratic program", "SolverLemke")
        if not isinstance(problem, PolyhedralProblem):
            return super().solve(problem, law=law, guess=guess)
        impulse, iterations, ending, error = self._flat(problem, law)
        if error <= self.target:
            ending = Status.CONVERGED
        g = np.ascontiguousarray(impulse[: problem.dim].T).ravel()
        objective = float(g @ (0.5 * (problem.matrix @ g) + problem.bias))
        residuals: Any = PolyhedralResiduals(law, error, objective)  # fewer measures than those of cones
        return Solution(impulse, law, self.name, ending, iterations, 0, residuals, np.zeros(1))

    def _find(self, problem: ConeProblem, law: Law, start: np.ndarray) -> tuple[np.ndarray, int, int, Status]:
        impulse, iterations, ending, error = self._flat(facets(problem, self.facets, offset=self.offset), law)
        out = np.zeros_like(problem.bias)
        out[:, : problem.count] = impulse
        return out, iterations, 0, Status.STALLED if error <= self.target else ending

    def _flat(self, problem: PolyhedralProblem, law: Law) -> tuple[np.ndarray, int, Status, float]:
        """Impulses (3, n), iterations, ending and the error of the polyhedral problem."""
        raise NotImplementedError


def lcp_error(matrix: np.ndarray | sp.spmatrix, q: np.ndarray, z: np.ndarray) -> float:
    """|min(z, M z + q)| / max(|z|, |M z + q|, |q|)"""
    w = matrix @ z + q
    size = max(np.linalg.norm(z), np.linalg.norm(w), np.linalg.norm(q))
    if not np.isfinite(size):
        return np.inf
    return float(np.linalg.norm(np.minimum(z, w)) / size) if size > 0.0 else 0.0
