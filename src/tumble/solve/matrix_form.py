"""What the solvers with a matrix share: the problem without units, its sets in NumPy, and the frame of `solve`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..enums import Law, Status
from ..errors import ProblemError, message
from ..problem.cone_problem import ConeProblem, bounds_of
from .base import Solution, checked_guess, checked_problem
from .residuals import measure, weigh

__all__ = ["MatrixForm", "MeasuredSolver"]

TINY = 1e-300


@dataclass(frozen=True, kw_only=True)
class MeasuredSolver:
    """A solver whose result is judged by one number: the natural map of what it returns, measured afresh."""

    tolerance: float | None = None
    """The natural map must fall below this. None: 1e-8."""
    max_iterations: int | None = None
    """None: the method's own limit."""

    name: ClassVar[str] = ""
    rolls: ClassVar[bool] = False
    """Whether it takes a simulation's problems with rolling friction"""
    default_tolerance: ClassVar[float] = 1e-8
    default_iterations: ClassVar[int] = 100

    def __post_init__(self) -> None:
        where = type(self).__name__ + "."
        if self.tolerance is not None:
            checks.number(where + "tolerance", self.tolerance, at_least=0.0)
        if self.max_iterations is not None:
            checks.integer(where + "max_iterations", self.max_iterations, at_least=1)

    @property
    def target(self) -> float:
        """The tolerance in use."""
        return self.default_tolerance if self.tolerance is None else float(self.tolerance)

    @property
    def limit(self) -> int:
        """The most iterations."""
        return self.default_iterations if self.max_iterations is None else self.max_iterations

    def solve(self, problem: ConeProblem, *, law: Law | str = Law.COULOMB, guess: np.ndarray | None = None) -> Solution:
        """Solve under a law, from a guess (3, cap) [N s] or from zero."""
        law = Law(checks.choice(type(self).__name__ + ".law", law, list(Law)))
        checked_problem(type(self).__name__, problem)
        start = np.zeros_like(problem.bias)
        if guess is not None:
            start[:] = checked_guess(type(self).__name__, guess, problem)
        if problem.count == 0:
            return Solution(
                start, law, self.name, Status.CONVERGED, 0, 0, measure(problem, start, law), np.zeros(1), ()
            )
        impulse, iterations, products, ending = self._find(problem, law, start)
        residuals = measure(problem, impulse, law)
        if residuals.natural_map <= self.target:
            ending = Status.CONVERGED
        elif ending == Status.CONVERGED:
            ending = Status.STALLED  # rounding on the way back to the problem's units
        return Solution(impulse, law, self.name, ending, iterations, products, residuals, np.zeros(1), ())

    def _find(self, problem: ConeProblem, law: Law, start: np.ndarray) -> tuple[np.ndarray, int, int, Status]:
        """Impulses (3, cap), iterations, products, and the status for the case that the tolerance is missed."""
        raise NotImplementedError


class MatrixForm:
    """A cone problem as a sparse matrix without units: impulse = unit S x, matrix S N S, bias S r / unit.

    Rows are (count, dim), contact by contact. `friction` are the sets: mu s_n / s_t, or intervals. `rows`
    are those that carry an impulse: frictionless contacts and bounded rows have no tangential ones. With
    `matrix=False` products go through the operator, and there is no matrix.
    """

    def __init__(self, problem: ConeProblem, *, matrix: bool = True) -> None:
        self.problem, self.count, self.dim = problem, problem.count, problem.dim
        n, dim = self.count, self.dim
        _, scale, weight, _ = weigh(problem, 2)
        self.scale = np.repeat(scale[1, :n, None], dim, axis=1)
        self.scale[:, 0] = scale[0, :n]
        bias = self.scale * problem.bias[:dim, :n].T
        size = float(np.linalg.norm(bias))
        self.unit = size if 0.0 < size < np.inf else 1.0
        self.bias = bias / self.unit
        mu = problem.friction[:n]
        self.cone = ~problem.bounded
        self.friction = np.where(
            self.cone, mu * self.scale[:, 0] / self.scale[:, 1], mu / (self.scale[:, 0] * self.unit)
        )
        # The measure's weights: g^ = hat x, u^ = u / hat; they are 1 for an isotropic block.
        self.hat = self.scale * weight[:n, None]
        self.hat_friction = np.where(self.cone, mu, mu * weight[:n] / self.unit)
        flat = self.scale.ravel()
        self._matrix: sp.csr_matrix | None = None
        if matrix:
            self._matrix = sp.csr_matrix(sp.diags(flat) @ problem.operator.to_sparse() @ sp.diags(flat))
        self.sliding = self.cone & (mu > 0.0)
        carry = np.repeat(self.sliding[:, None], dim, axis=1)
        carry[:, 0] = True
        self.carry = carry
        self.rows = np.flatnonzero(carry.ravel())

    @property
    def matrix(self) -> sp.csr_matrix:
        """N without units, of a form that was made with it."""
        assert self._matrix is not None
        return self._matrix

    def reduced(self) -> sp.csr_matrix:
        """The matrix of the rows that carry an impulse."""
        return self.matrix if len(self.rows) == self.matrix.shape[0] else self.matrix[self.rows][:, self.rows]

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """u = N x + r (count, dim)."""
        if self._matrix is None:
            g, product = np.zeros_like(self.problem.bias), np.zeros_like(self.problem.bias)
            g[: self.dim, : self.count] = (self.scale * x).T
            self.problem.operator.product(g, product)
            return self.scale * product[: self.dim, : self.count].T + self.bias
        return (self.matrix @ x.ravel()).reshape(x.shape) + self.bias

    def correction(self, u: np.ndarray) -> np.ndarray:
        """mu |u_T| (count,), zero for bounded rows."""
        return np.where(self.cone, self.friction, 0.0) * np.linalg.norm(u[:, 1:], axis=1)

    def slack(self, u: np.ndarray, law: Law) -> np.ndarray:
        """a = u, or u + mu |u_T| e_n."""
        if law != Law.COULOMB:
            return u
        a = u.copy()
        a[:, 0] += self.correction(u)
        return a

    def project(self, x: np.ndarray) -> np.ndarray:
        """Nearest point of the sets."""
        return project(x, self.friction)

    def natural_map(self, x: np.ndarray, u: np.ndarray, law: Law) -> float:
        """As `Residuals.natural_map`."""
        g, h, r = self.hat * x, u / self.hat, self.bias / self.hat
        difference = np.linalg.norm(g - project(g - self.slack(u, law) / self.hat, self.hat_friction))
        size = max(np.linalg.norm(g), np.linalg.norm(h), np.linalg.norm(r))
        if not (np.isfinite(size) and np.isfinite(difference)):
            return np.inf
        return float(difference / size) if size > 0.0 else 0.0

    def from_impulse(self, impulse: np.ndarray) -> np.ndarray:
        """x (count, dim) of impulses (3, cap)."""
        return impulse[: self.dim, : self.count].T / (self.scale * self.unit)

    def to_impulse(self, x: np.ndarray) -> np.ndarray:
        """Impulses (3, cap) on their sets."""
        out = np.zeros_like(self.problem.bias)
        g = project(
            self.unit * self.scale * np.nan_to_num(x, posinf=0.0, neginf=0.0), self.problem.friction[: self.count]
        )
        out[: self.dim, : self.count] = g.T
        return out


def project(x: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """Rows (n, dim) projected on |t| <= mu n, or on their intervals."""
    bound = bounds_of(friction)
    cone = np.isinf(bound)
    normal, mu = x[:, 0], np.where(cone, friction, 0.0)
    t = np.linalg.norm(x[:, 1:], axis=1)
    outside = np.maximum(0.0, t - mu * normal)
    pn = np.maximum(0.0, normal + mu * outside / (1.0 + mu * mu))
    out = x * np.minimum(1.0, mu * pn / np.maximum(t, TINY))[:, None]
    out[:, 0] = np.where(cone, pn, np.clip(normal, -bound, bound))
    return out


def refuse(where: str, what: str, why: str, instead: str) -> ProblemError:
    """The error of a solver that cannot take a kind of problem."""
    return ProblemError(message(where, what, why, f"Use {instead}."))
