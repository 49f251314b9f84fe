"""Friction cones with flat sides: a linear complementarity problem (Coulomb) or a quadratic program (relaxed).

`facets(problem, m)` replaces the disc |g_T| <= mu g_n by the polygon with the m corners mu g_n d_k. The tangential
impulse is D beta with beta >= 0, sum beta <= mu g_n (Stewart-Trinkle, Anitescu-Potra).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..enums import Law
from ..errors import ProblemError, message
from .cone_problem import ConeProblem, contact_first

__all__ = ["PolyhedralProblem", "facets"]


@dataclass(frozen=True)
class PolyhedralProblem:
    """N (dim n, dim n), bias (dim n,) and mu (n,), contact by contact, with the corners (m, dim - 1) of the polygon."""

    matrix: sp.csr_matrix
    bias: np.ndarray
    friction: np.ndarray
    directions: np.ndarray
    dim: int
    h: float = 1.0

    @property
    def count(self) -> int:
        """Number of contacts."""
        return len(self.friction)

    @property
    def basis(self) -> sp.csr_matrix:
        """(dim n, n (1 + m)): impulses from the coefficients (g_n, beta) of each contact."""
        block = np.zeros((self.dim, 1 + len(self.directions)))
        block[0, 0] = 1.0
        block[1:, 1:] = self.directions.T
        return sp.kron(sp.identity(self.count), block, format="csr")

    @property
    def limits(self) -> sp.csr_matrix:
        """(n, n (1 + m)): mu g_n - sum beta of each contact, which must not be negative."""
        m = len(self.directions)
        row = np.repeat(np.arange(self.count), 1 + m)
        value = np.full((self.count, 1 + m), -1.0)
        value[:, 0] = self.friction
        return sp.csr_matrix((value.ravel(), (row, np.arange(len(row)))), shape=(self.count, len(row)))

    def lcp(self, law: Law | str = Law.COULOMB) -> tuple[sp.csr_matrix, np.ndarray]:
        """M, q of 0 <= z ⊥ M z + q >= 0 with z = (coefficients, lambda); lambda is the sliding speed. Relaxed law: the
        optimality of the quadratic program, where lambda also lifts the contact."""
        b, limits, m = self.basis, self.limits, len(self.directions)
        if Law(law) == Law.COULOMB:
            speed = sp.kron(sp.identity(self.count), np.concatenate([[0.0], np.ones(m)])[:, None])
        else:
            speed = -limits.T
        big = sp.bmat([[b.T @ self.matrix @ b, speed], [limits, None]], format="csr")
        return big, np.concatenate([b.T @ self.bias, np.zeros(self.count)])

    def impulse(self, coefficients: np.ndarray) -> np.ndarray:
        """(3, n) from the coefficients."""
        out = np.zeros((3, self.count))
        out[: self.dim] = (self.basis @ coefficients).reshape(self.count, self.dim).T
        return out

    def scaled(self) -> tuple[PolyhedralProblem, np.ndarray]:
        """The same problem without units, and the scale of the impulses (dim n,): impulse = scale * x."""
        d = np.maximum(self.matrix.diagonal().reshape(self.count, self.dim), 0.0)
        n, t = d[:, 0], d[:, 1:].mean(axis=1)
        n = np.where(n > 1e-13 * t, n, t)
        n = np.where(n > 0.0, n, 1.0)
        t = np.where(t > 1e-13 * n, t, n)
        s = np.repeat(1.0 / np.sqrt(t)[:, None], self.dim, axis=1)
        s[:, 0] = 1.0 / np.sqrt(n)
        flat = s.ravel()
        bias = flat * self.bias
        unit = float(np.linalg.norm(bias)) or 1.0
        matrix = sp.csr_matrix(sp.diags(flat) @ self.matrix @ sp.diags(flat))
        scaled = PolyhedralProblem(
            matrix, bias / unit, self.friction * s[:, 0] / s[:, 1], self.directions, self.dim, self.h
        )
        return scaled, unit * flat


def facets(problem: ConeProblem, m: int, *, offset: float = 0.0) -> PolyhedralProblem:
    """The problem with m-sided cones, the first corner `offset` radians from the first tangent. Plane problems have
    two directions and are not changed."""
    checks.integer("facets.m", m, at_least=3, error=ProblemError)
    offset = checks.number("facets.offset", offset, error=ProblemError)
    n, dim = problem.count, problem.dim
    mu = problem.friction[:n].copy()
    if np.any(problem.bounded):
        raise ProblemError(
            message(
                "facets.problem",
                "cannot have bounded rows",
                f"{int(np.sum(problem.bounded))} motors, limits or joint frictions",
                "Use SolverAPGD, SolverInteriorPoint or SolverAuto.",
            )
        )
    if dim == 2:
        directions = np.array([[1.0], [-1.0]])
    else:
        angle = offset + 2.0 * np.pi * np.arange(m) / m
        directions = np.column_stack([np.cos(angle), np.sin(angle)])
    return PolyhedralProblem(
        problem.operator.to_sparse(), contact_first(problem.bias, dim, n), mu, directions, dim, problem.h
    )
