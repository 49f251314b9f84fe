"""Alternating direction method of multipliers with a factorised matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import SuperLU, splu

from .. import checks
from ..enums import Law, Status
from ..errors import OptionsError, message
from ..problem.cone_problem import ConeProblem
from .matrix_form import MatrixForm, MeasuredSolver

__all__ = ["SolverADMM"]

CHECK = 10
"""Iterations between two measurements."""
ADAPT = 20
"""Iterations between two looks at rho, doubled at every change: a change costs a factorisation."""
PATIENCE = 200
"""Measurements after which it has stalled: none of them better, and none farther away than those before."""
BETTER, FARTHER = 1.0 - 1e-6, 1.25
"""What counts as better (a thousand roundings do not), and as farther: impulses may walk for thousands of iterations at
the same error, straight along a direction in which the matrix has nearly nothing, until a cone stops them."""


@dataclass(frozen=True, kw_only=True)
class SolverADMM(MeasuredSolver):
    """x minimises the quadratic, z lies in the cones, y pulls them together; one triangular solve an iteration.

    The matrix N + rho I is factorised at the start and when rho is adapted to the balance of the two residuals.
    Coulomb's law: the correction mu |u_T| is refreshed in every iteration, by damping / k from iteration `damping` on.
    """

    rho: float = 0.1
    """First penalty, in units of the scaled diagonal (which is 1)."""
    relaxation: float = 1.6
    """Over-relaxation, between 0 and 2."""
    damping: float = 300.0
    """Coulomb's law: from iteration `damping` on, the correction is refreshed by damping / k of its change only."""

    name: ClassVar[str] = "admm"
    default_iterations: ClassVar[int] = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("SolverADMM.rho", self.rho, above=0.0)
        if checks.number("SolverADMM.relaxation", self.relaxation, above=0.0) >= 2.0:
            raise OptionsError(message("SolverADMM.relaxation", "must be < 2", self.relaxation, "1 is plain ADMM."))
        checks.number("SolverADMM.damping", self.damping, above=0.0)

    def _find(self, problem: ConeProblem, law: Law, start: np.ndarray) -> tuple[np.ndarray, int, int, Status]:
        form = MatrixForm(problem)
        coulomb = law == Law.COULOMB
        rho, adapt, next_look = float(self.rho), ADAPT, ADAPT
        solve = factorise(form.matrix, rho).solve
        z = form.project(form.from_impulse(start))
        u = form.velocity(z)
        shift = form.correction(u) if coulomb else np.zeros(form.count)
        y = form.slack(u, law) / -rho  # at a solution y = -a / rho
        best, best_error, since, products = z, form.natural_map(z, u, law), 0, 1
        mark, anchor, reach = best_error, z, 0.0
        for k in range(1, self.limit + 1):
            if best_error <= self.target:
                return form.to_impulse(best), k - 1, products, Status.CONVERGED
            bias = form.bias.copy()
            bias[:, 0] += shift
            right = rho * (z + y) - bias
            x = solve(right.ravel()).reshape(right.shape)
            if coulomb:  # N x + r, from the equation that x solves
                u = right - rho * x + form.bias
                shift = shift + min(1.0, self.damping / k) * (form.correction(u) - shift)
            mixed = self.relaxation * x + (1.0 - self.relaxation) * z
            last, z = z, form.project(mixed - y)
            y = y + z - mixed
            if not np.all(np.isfinite(z)):
                return form.to_impulse(best), k, products, Status.DIVERGED
            if k % CHECK == 0 or k == self.limit:
                error = form.natural_map(z, form.velocity(z), law)
                products += 1
                since += 1
                if error < best_error:
                    best, best_error = z, error
                away = float(np.linalg.norm(z - anchor))
                if error < BETTER * mark:
                    mark, anchor, reach, since = error, z, 0.0, 0
                elif away > FARTHER * reach:
                    reach, since = away, 0
                if since > PATIENCE:
                    return form.to_impulse(best), k, products, Status.STALLED
            if k == next_look:
                apart, moved = np.linalg.norm(x - z), rho * np.linalg.norm(z - last)
                ratio = np.sqrt(max(apart, 1e-300) / max(moved, 1e-300))
                if not 0.5 < ratio < 2.0:
                    new = float(np.clip(rho * np.clip(ratio, 0.1, 10.0), 1e-6, 1e4))
                    y *= rho / new
                    rho, adapt = new, 2 * adapt
                    solve = factorise(form.matrix, rho).solve
                next_look += adapt
        ending = Status.CONVERGED if best_error <= self.target else Status.MAX_ITERATIONS
        return form.to_impulse(best), self.limit, products, ending


def factorise(matrix: sp.csr_matrix, rho: float) -> SuperLU:
    """The factor of N + rho I, symmetric and without pivoting."""
    return splu(
        sp.csc_matrix(matrix + rho * sp.identity(matrix.shape[0])),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
