"""Lemke's pivoting method for the linear complementarity problem of m-sided friction cones."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import checks
from ..enums import Law, Status
from ..errors import ProblemError, message
from ..problem.polyhedral import PolyhedralProblem
from .polyhedral import PolyhedralSolver, lcp_error

__all__ = ["SolverLemke", "lemke"]

PERTURBATION = 1e-9
"""Of the right side: breaks ties, so that the pivots cannot cycle. The answer is computed from the true right side."""

LARGEST_TABLE = 5000
"""Rows. The table is dense (200 MB), and a problem takes about as many pivots as rows, each a pass over it."""


@dataclass(frozen=True, kw_only=True)
class SolverLemke(PolyhedralSolver):
    """Stewart-Trinkle's problem, or the optimality of the relaxed law's quadratic program, solved exactly by pivots
    on a dense table of n (m + 2) rows, at most 5000: for small problems."""

    seconds: float = 60.0
    """No further pivot after this [s]; it then ends as with `max_iterations`."""

    name: ClassVar[str] = "lemke"
    default_iterations: ClassVar[int] = 20_000

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("SolverLemke.seconds", self.seconds, above=0.0, unit="s")

    def _flat(self, problem: PolyhedralProblem, law: Law) -> tuple[np.ndarray, int, Status, float]:
        rows = problem.count * (len(problem.directions) + 2)
        if rows > LARGEST_TABLE:
            remedy = "Use fewer facets, or SolverAPGD or SolverAuto for the round cone."
            raise ProblemError(message("SolverLemke", f"takes at most {LARGEST_TABLE} rows", rows, remedy))
        scaled, scale = problem.scaled()
        matrix, q = scaled.lcp(law)
        z, pivots, ending = lemke(matrix.toarray(), q, self.limit, time.perf_counter() + self.seconds)
        impulse = scaled.impulse(z[: scaled.basis.shape[1]])
        impulse[: problem.dim] *= scale.reshape(-1, problem.dim).T
        return impulse, pivots, ending, lcp_error(matrix, q, z)


def lemke(matrix: np.ndarray, q: np.ndarray, limit: int, deadline: float = math.inf) -> tuple[np.ndarray, int, Status]:
    """z with 0 <= z ⊥ M z + q >= 0. Returns z, the pivots and how it ended (stalled: a ray). deadline: of
    `time.perf_counter`."""
    n = len(q)
    if n == 0 or q.min() >= 0.0:
        return np.zeros(n), 0, Status.CONVERGED
    noise = np.random.default_rng(0).uniform(0.5, 1.0, n)
    # basic = constant + table nonbasic. Names: w_i = i, z_i = n + i, the artificial variable 2 n.
    constant = q + PERTURBATION * np.abs(q).max() * noise
    table = np.concatenate([matrix, np.ones((n, 1))], axis=1)
    basic, nonbasic = np.arange(n), np.arange(n, 2 * n + 1)
    column, row = n, int(np.argmin(constant))
    for pivots in range(1, limit + 1):
        leaving = basic[row]
        _exchange(table, constant, row, column)
        basic[row], nonbasic[column] = nonbasic[column], leaving
        if leaving == 2 * n:
            return _from_basis(matrix, q, basic), pivots, Status.CONVERGED
        partner = leaving + n if leaving < n else leaving - n
        column = int(np.flatnonzero(nonbasic == partner)[0])
        falls = table[:, column] < -1e-11 * max(1.0, np.abs(table[:, column]).max())
        if not falls.any():
            return _from_basis(matrix, q, basic), pivots, Status.STALLED
        ratio = np.full(n, np.inf)
        ratio[falls] = np.maximum(constant[falls], 0.0) / -table[falls, column]
        least = ratio.min()
        ties = np.flatnonzero(ratio <= least * (1.0 + 1e-12))
        last = ties[basic[ties] == 2 * n]
        row = int(last[0] if len(last) else ties[np.argmin(table[ties, column])])
        if time.perf_counter() > deadline:
            break
    return _from_basis(matrix, q, basic), pivots, Status.MAX_ITERATIONS


def _exchange(table: np.ndarray, constant: np.ndarray, row: int, column: int) -> None:
    """Solve the row for the nonbasic variable of the column and put it into the other rows."""
    pivot = table[row, column]
    new, start = -table[row] / pivot, -constant[row] / pivot
    new[column] = 1.0 / pivot
    factor = table[:, column].copy()
    factor[row] = 0.0
    table[:, column] = 0.0
    table += np.outer(factor, new)
    constant += factor * start
    table[row], constant[row] = new, start


def _from_basis(matrix: np.ndarray, q: np.ndarray, basic: np.ndarray) -> np.ndarray:
    """z of a basis, from the true right side; negative rounding is cut off."""
    n = len(q)
    used = np.sort(basic[(basic >= n) & (basic < 2 * n)] - n)
    z = np.zeros(n)
    if len(used):
        z[used] = np.linalg.lstsq(matrix[np.ix_(used, used)], -q[used], rcond=None)[0]
    return np.maximum(z, 0.0)
