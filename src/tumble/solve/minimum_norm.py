"""The point of smallest norm in a product of cones and intervals on which a linear map has a given value.

min |y|^2 / 2, y in the sets, A y = c. Its dual is smooth: min phi(x) = sum_i psi_i((A^T x)_i) - c.x, where psi has the
projection on the set as its gradient, so y = Pi(A^T x) and the gradient of phi is A y - c. Newton's matrix A V A^T is
singular where forces are scarce, so each round adds delta / 2 |x - x_last|^2 (the method of multipliers), with a delta
that shrinks; y is exact for whatever A y is, and |A y - c| is the only error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..problem.cone_problem import bounded_rows
from .matrix_form import project
from .semismooth_newton import block_diagonal, projection_slopes

__all__ = ["MinimumNorm", "minimum_norm", "norm"]

FIRST_DELTA, LAST_DELTA, SHRINK = 1e-2, 1e-12, 0.1
ROUND = 30
"""Newton steps in a round."""
SHORTEST = 1e-6
"""Shortest step of the line search."""


@dataclass(frozen=True)
class MinimumNorm:
    """The point and how it was found."""

    y: np.ndarray
    """(m, dim)"""
    error: float
    """|A y - c| / |c|"""
    iterations: int


def minimum_norm(
    columns: sp.csr_matrix, friction: np.ndarray, value: np.ndarray, tolerance: float, limit: int
) -> MinimumNorm:
    """columns: A^T (dim m, k), of which no column is zero. friction (m,): the sets, cones |t| <= mu n and
    intervals. value: c (k,). Stops at `tolerance` (relative) or after so many Newton steps."""
    size = norm(value)
    if size == 0.0 or len(friction) == 0:
        return MinimumNorm(np.zeros((len(friction), columns.shape[0] // max(1, len(friction)))), float(size > 0.0), 0)
    scale = 1.0 / np.sqrt(np.asarray(columns.multiply(columns).sum(axis=0)).ravel())
    columns = sp.csr_matrix(columns @ sp.diags(scale))
    target = scale * value
    unit = norm(target)
    dual = _Dual(columns, np.where(bounded_rows(friction), friction / unit, friction), target / unit)
    x, delta, iterations = np.zeros(len(value)), FIRST_DELTA, 0
    best, least = dual.point(x), np.inf
    while iterations < limit:
        inner = max(0.3 * tolerance, min(1e-3, 0.03 * least))
        x, steps = dual.minimise(x, delta, inner, min(ROUND, limit - iterations), free_start=iterations == 0)
        iterations += max(1, steps)
        y = dual.point(x)
        error = norm(columns.T @ y.ravel() - dual.target)
        if error < least:
            best, least = y, error
        if error <= tolerance or delta <= LAST_DELTA:
            break
        delta = max(SHRINK * delta, LAST_DELTA)
    y = unit * best
    return MinimumNorm(y, norm((columns.T @ y.ravel() - target) / scale) / size, iterations)


class _Dual:
    """phi and its Newton steps."""

    def __init__(self, columns: sp.csr_matrix, friction: np.ndarray, target: np.ndarray) -> None:
        self.columns, self.friction, self.target = columns, friction, target
        self.transposed = columns.T.tocsr()
        self.shape = (len(friction), columns.shape[0] // len(friction))

    def point(self, x: np.ndarray) -> np.ndarray:
        """y = Pi(A^T x)."""
        return project((self.columns @ x).reshape(self.shape), self.friction)

    def minimise(
        self, start: np.ndarray, delta: float, tolerance: float, limit: int, *, free_start: bool
    ) -> tuple[np.ndarray, int]:
        """x that minimises phi + delta / 2 |x - start|^2 until the gradient is below the tolerance; Newton steps."""
        x = start
        value, gradient, image = self._at(x, start, delta)
        error = norm(gradient)
        for k in range(limit):
            if error <= tolerance:
                return x, k
            if free_start and k == 0:  # as if no set were there: the answer where none is felt
                slopes = np.broadcast_to(np.eye(self.shape[1]), (self.shape[0], self.shape[1], self.shape[1]))
            else:
                slopes = projection_slopes(image, self.friction)
            matrix = self.transposed @ (block_diagonal(slopes) @ self.columns) + delta * sp.identity(len(x))
            try:
                lu = splu(
                    sp.csc_matrix(matrix),
                    permc_spec="MMD_AT_PLUS_A",
                    diag_pivot_thresh=0.0,
                    options={"SymmetricMode": True},
                )
            except RuntimeError:  # singular to rounding: this is as far as it goes
                return x, k
            step = -lu.solve(gradient)
            slope, length = float(np.sum(gradient * step)), 1.0
            while length > SHORTEST:
                trial = self._at(x + length * step, start, delta)
                # At the end phi has no digits left to fall by; the gradient still tells.
                if trial[0] <= value + 1e-4 * length * slope or norm(trial[1]) < 0.5 * error:
                    break
                length *= 0.5
            else:
                return x, k + 1
            x = x + length * step
            value, gradient, image = trial
            error = norm(gradient)
        return x, limit

    def _at(self, x: np.ndarray, start: np.ndarray, delta: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, gradient and A^T x."""
        image = (self.columns @ x).reshape(self.shape)
        y = project(image, self.friction)
        away = x - start
        value = np.sum(image * y) - 0.5 * np.sum(y * y) - np.sum(self.target * x) + 0.5 * delta * np.sum(away * away)
        return float(value), self.transposed @ y.ravel() - self.target + delta * away, image


def norm(x: np.ndarray) -> float:
    """Pairwise sums: the same bits for any number of threads."""
    return float(np.sqrt(np.sum(x * x)))
