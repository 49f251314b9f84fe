"""Interior-point method for the relaxed law (Clarabel), and Coulomb's law as a fixed point around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..enums import Law, Status
from ..problem.cone_problem import ConeProblem, bounds_of
from ..problem.operators import ContactOperator
from ..problem.rolling import RollingProblem
from .base import Solution
from .conic import Cones, DualProgram, PrimalProgram, factor
from .fixed_point import fixed_point
from .matrix_form import MatrixForm, MeasuredSolver, refuse
from .polish import polished
from .rolling import RollingForm, measure_rolling

__all__ = ["SolverInteriorPoint"]


@dataclass(frozen=True, kw_only=True)
class SolverInteriorPoint(MeasuredSolver):
    """Relaxed law: 10-30 Newton steps, whatever the conditioning; each factorises a matrix of the problem's size.

    Coulomb's law: relaxed problems one after the other, with the correction mu |u_T| of the last in the bias.
    Takes contacts, jointed bodies, matrices and `RollingProblem` (dual form).
    """

    form: str = "dual"
    """dual: min g.N g / 2 + r.g over impulses in the cones. primal: min v.M v / 2 - k.v over velocities with
    P^T v + b in the dual cones; on contacts from masses and Jacobian, else from a factor of N."""
    step: float = 1.0
    """Coulomb's law: how far the correction moves in a round; it shrinks when progress ends."""
    polish: int = 200
    """At most so many projected-gradient iterations after each solve that misses the tolerance (`polish.py`); with
    rolling friction up to twenty times as many, at the end."""

    name: ClassVar[str] = "interior_point"
    default_iterations: ClassVar[int] = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("SolverInteriorPoint.form", self.form, ["dual", "primal"])
        checks.number("SolverInteriorPoint.step", self.step, above=0.0, at_most=1.0)
        checks.integer("SolverInteriorPoint.polish", self.polish, at_least=0)

    @property
    def _precision(self) -> float:
        return min(1e-9, max(1e-14, 1e-3 * self.target))

    def solve(
        self, problem: ConeProblem | RollingProblem, *, law: Law | str = Law.COULOMB, guess: np.ndarray | None = None
    ) -> Solution:
        """Solve under a law. The method has its own interior start: a guess serves Coulomb's correction only."""
        if not isinstance(problem, RollingProblem):
            return super().solve(problem, law=law, guess=guess)
        law = Law(checks.choice("SolverInteriorPoint.law", law, list(Law)))
        if self.form == "primal":
            raise refuse("SolverInteriorPoint", "cannot take rolling friction", "form 'primal'", "form='dual'")
        form = RollingForm(problem)
        n, row = form.count, 5 * np.arange(form.count)[:, None]
        cones = Cones(
            5 * n,
            np.concatenate([form.friction, form.rolling_friction]),
            np.tile(row[:, 0], 2),
            np.concatenate([row + np.array([1, 2]), row + np.array([3, 4])]),
            *_none(),
        )
        x, iterations, products, ending = self._central(form, cones, np.arange(5 * n), law, np.zeros((n, 5)))
        impulse = form.to_impulse(x)
        residuals: Any = measure_rolling(problem, impulse, law)  # fewer measures than those of cones
        for _ in range(10 if self.polish else 0):  # until the measure, which has weights of its own, is met
            if residuals.natural_map <= self.target:
                break
            x, more = form.descend(x, law, 0.0, 2 * self.polish)
            products += more
            impulse = form.to_impulse(x)
            residuals = measure_rolling(problem, impulse, law)
        if residuals.natural_map <= self.target:
            ending = Status.CONVERGED
        elif ending == Status.CONVERGED:
            ending = Status.STALLED
        return Solution(impulse, law, self.name, ending, iterations, products, residuals, np.zeros(1))

    def _find(self, problem: ConeProblem, law: Law, start: np.ndarray) -> tuple[np.ndarray, int, int, Status]:
        form = MatrixForm(problem)
        place = np.zeros(form.matrix.shape[0], int)
        place[form.rows] = np.arange(len(form.rows))
        place = place.reshape(form.count, form.dim)
        cone, bounded = form.sliding, ~form.cone
        cones = Cones(
            len(form.rows),
            form.friction[cone],
            place[cone, 0],
            place[cone, 1:],
            place[~cone & ~bounded, 0],
            place[bounded, 0],
            bounds_of(form.friction[bounded]),
        )
        x, iterations, products, ending = self._central(form, cones, form.rows, law, form.from_impulse(start))
        return form.to_impulse(x), iterations, products, ending

    def _polished(self, form: MatrixForm | RollingForm, x: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Settle what the gap leaves open in a relaxed problem with the bias r + shift e_n."""
        if not self.polish or isinstance(form, RollingForm):
            return x
        problem = form.problem
        bias = problem.bias.copy()
        bias[0, : form.count] += shift * form.unit / form.scale[:, 0]
        shifted = replace(problem, bias=bias, scratch={})
        return form.from_impulse(polished(shifted, Law.RELAXED, form.to_impulse(x), 0.5 * self.target, self.polish)[0])

    def _central(
        self, form: MatrixForm | RollingForm, cones: Cones, rows: np.ndarray, law: Law, x: np.ndarray
    ) -> tuple[np.ndarray, int, int, Status]:
        """x of either law, iterations, products and ending."""
        program = self._program(form, cones, rows)

        def relaxed(shift: np.ndarray, _: float) -> np.ndarray:
            bias = form.bias.copy()
            bias[:, 0] += shift
            x = np.zeros(bias.size)
            x[rows] = program.solve(bias.ravel()[rows])
            x = x.reshape(bias.shape)
            x = form.project(x) if np.all(np.isfinite(x)) else np.zeros_like(x)
            return self._polished(form, x, shift)

        if law == Law.RELAXED:
            x = relaxed(np.zeros(form.count), 0.0)
            # Its own precision is far below the tolerance: where it has iterations left, digits are what it lacks.
            ending = Status.MAX_ITERATIONS if program.exhausted else Status.LIMITED_BY_ROUNDING
        else:
            x, _, ending = fixed_point(form, relaxed, x, self.step, self.target, self.limit)
        return x, program.iterations, program.solves, ending

    def _program(self, form: MatrixForm | RollingForm, cones: Cones, rows: np.ndarray) -> DualProgram | PrimalProgram:
        matrix = form.matrix[rows][:, rows]
        if self.form == "dual":
            return DualProgram(matrix, cones, self.limit, self._precision)
        if isinstance(form, MatrixForm) and isinstance(form.problem.operator, ContactOperator):
            root = _contact_root(form.problem.operator, form)[rows]
        else:
            root = factor(matrix)
        return PrimalProgram(root, cones, self.limit, self._precision)


def _none() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(0, int), np.zeros(0, int), np.zeros(0)


def _contact_root(operator: ContactOperator, form: MatrixForm) -> sp.csr_matrix:
    """S D^T M^-1/2 with the bodies that can move."""
    inverse = operator.inverse_mass().tocsr()
    n = inverse.shape[0] // 6
    blocks = np.stack([inverse[6 * i : 6 * i + 6, 6 * i : 6 * i + 6].toarray() for i in range(n)])
    values, vectors = np.linalg.eigh(blocks)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    root = sp.bsr_matrix((root, np.arange(n), np.arange(n + 1)), shape=inverse.shape)
    out = sp.csc_matrix(sp.diags(form.scale.ravel()) @ operator.jacobian() @ root)
    out.eliminate_zeros()
    return out[:, np.flatnonzero(np.diff(out.indptr))].tocsr()
