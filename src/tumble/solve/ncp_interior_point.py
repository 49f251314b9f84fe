"""Interior-point method for Coulomb's law that keeps the correction mu |u_T| in its Newton matrix.

Cones are made round, x = c (mu g_n, g_T), z = (a_n / mu, a_T) / c, so that both lie in {first >= |rest|}; c makes the
mean diagonal of each block 1. Equations: z - N x - q - |z_T| e_1 = 0 and x o z = sigma nu e, scaled by Nesterov-Todd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from .. import checks
from ..enums import Law, Status
from ..problem.cone_problem import ConeProblem, bounds_of
from .matrix_form import TINY, MatrixForm, MeasuredSolver
from .polish import polished

__all__ = ["SolverNCPInteriorPoint"]

DENSE = 600
"""Up to so many rows the Newton matrix is dense."""
SMALLEST_SIGMA = 0.1
"""Smaller ones run ahead of the central path: the last digits of sliding contacts are lost."""
FLOOR = float(np.sqrt(np.finfo(float).eps))
"""x o z = nu is lost in rounding below nu = eps; where neither x nor z is then clearly zero both are sqrt(nu)."""
PATIENCE = 15
"""Iterations without a better iterate after which it has stalled."""


@dataclass(frozen=True, kw_only=True)
class SolverNCPInteriorPoint(MeasuredSolver):
    """Both laws; the relaxed one without the correction. 10-40 iterations, each with a factorisation of the problem's
    size. Not convex under Coulomb's law, so it may fail; the best iterate is returned."""

    polish: int = 200
    """At most so many projected-gradient iterations at the end where the tolerance is not met (`polish.py`)."""

    name: ClassVar[str] = "ncp_interior_point"
    default_iterations: ClassVar[int] = 80

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("SolverNCPInteriorPoint.polish", self.polish, at_least=0)

    def _find(self, problem: ConeProblem, law: Law, start: np.ndarray) -> tuple[np.ndarray, int, int, Status]:
        form = MatrixForm(problem)
        x, iterations, ending = self._follow(form, law, form.project(form.from_impulse(start)))
        impulse, products = form.to_impulse(x), iterations
        if ending != Status.CONVERGED and self.polish:
            impulse, more = polished(problem, law, impulse, self.target, self.polish)
            products += more
        return impulse, iterations, products, ending

    def _follow(self, form: MatrixForm, law: Law, x: np.ndarray) -> tuple[np.ndarray, int, Status]:
        """The best point on the way along the central path."""
        path = _CentralPath(form, law == Law.COULOMB)
        best, best_error, since = x, form.natural_map(x, form.velocity(x), law), 0
        for k in range(1, self.limit + 1):
            with np.errstate(all="ignore"):  # at the end of the path rounding may divide by nothing; it is looked for
                moved = path.advance()
            if not moved:
                return best, k, _stalled(best_error)
            x = form.project(path.impulse())
            error = form.natural_map(x, form.velocity(x), law)
            since += 1
            if error < best_error:
                best, best_error, since = x, error, 0
            if best_error <= self.target:
                return best, k, Status.CONVERGED
            if since > PATIENCE:
                return best, k, _stalled(best_error)
        return best, self.limit, Status.MAX_ITERATIONS


def _stalled(error: float) -> Status:
    """Why it cannot go on."""
    return Status.LIMITED_BY_ROUNDING if error <= FLOOR else Status.STALLED


class _CentralPath:
    """The iterate and its Newton step. Blocks: round cones (1 to 3 rows), then intervals with two multipliers."""

    def __init__(self, form: MatrixForm, coulomb: bool) -> None:
        self.form, self.coulomb = form, coulomb
        n, dim = form.count, form.dim
        self.cone, self.bounded = form.cone, ~form.cone
        round_ = np.ones((n, dim))
        round_[form.sliding, 0] = form.friction[form.sliding]
        diagonal = form.matrix.diagonal().reshape(n, dim) / round_**2
        mean = (diagonal * form.carry).sum(axis=1) / form.carry.sum(axis=1)
        self.turn = (
            round_ * np.where(self.bounded | ~(mean > 0.0), 1.0, np.sqrt(np.where(mean > 0.0, mean, 1.0)))[:, None]
        )
        flat = 1.0 / self.turn.ravel()
        matrix = sp.csr_matrix(sp.diags(flat) @ form.matrix @ sp.diags(flat))
        self.matrix = matrix[form.rows][:, form.rows]
        self.bias = form.bias / self.turn
        self.bound = np.where(self.bounded, bounds_of(form.friction), 1.0)
        unit = np.zeros((n, dim))
        unit[:, 0] = 1.0
        size = max(1.0, float(np.abs(self.bias).max()))
        self.x, self.z = size * unit * self.cone[:, None], size * unit * self.cone[:, None]
        self.up, self.down = np.full(n, size), np.full(n, size)
        self.dense = len(form.rows) <= DENSE
        if self.dense:
            self.matrix = self.matrix.toarray()

    def impulse(self) -> np.ndarray:
        """x of the form."""
        return self.x / self.turn

    def _full(self, rows: np.ndarray) -> np.ndarray:
        out = np.zeros(self.x.size)
        out[self.form.rows] = rows
        return out.reshape(self.x.shape)

    def advance(self) -> bool:
        """One predictor-corrector step; False when it cannot move."""
        x, z, cone, bounded = self.x, self.z, self.cone, self.bounded
        velocity = z.copy()
        velocity[bounded, 0] = (self.up - self.down)[bounded]
        speed = np.linalg.norm(z[:, 1:], axis=1)
        slope = z[:, 1:] / np.maximum(speed, TINY)[:, None] if self.coulomb else np.zeros_like(z[:, 1:])
        slope[~self.form.sliding] = 0.0
        rows = self.form.rows
        product = self._full(self.matrix @ x.ravel()[rows])
        residual = velocity - product - self.bias
        residual[:, 0] -= np.einsum("ij,ij->i", slope, z[:, 1:])
        residual *= self.form.carry
        scaling = _Scaling(x, z, cone)
        low, high = np.where(bounded, self.bound + x[:, 0], 1.0), np.where(bounded, self.bound - x[:, 0], 1.0)
        squares = scaling.squares.copy()
        squares[bounded] = 0.0
        squares[bounded, 0, 0] = (self.up / low + self.down / high)[bounded]
        lift = np.zeros_like(squares)  # I - e slope^T
        lift[:, range(x.shape[1]), range(x.shape[1])] = 1.0
        lift[:, 0, 1:] = -slope
        solve = self._factor(lift @ squares)
        if solve is None:
            return False

        def direction(target: float, second: np.ndarray):
            """dx, dz and the intervals' steps towards x o z = target e."""
            push = scaling.push(target, second)
            push[bounded] = 0.0
            push[bounded, 0] = (target / low - self.up - target / high + self.down)[bounded]
            dx = self._full(solve((residual + np.einsum("ijk,ik->ij", lift, push)).ravel()[rows]))
            dz = push - np.einsum("ijk,ik->ij", squares, dx)
            dup = np.where(bounded, (target - self.up * (low + dx[:, 0])) / low, 0.0)
            ddown = np.where(bounded, (target - self.down * (high - dx[:, 0])) / high, 0.0)
            return dx, dz, dup, ddown

        pairs = np.einsum("ij,ij->i", x, z)
        nu = (pairs[cone].sum() + (self.up * low + self.down * high)[bounded].sum()) / (cone.sum() + 2 * bounded.sum())
        dx, dz, dup, ddown = direction(0.0, np.zeros_like(x))
        affine = self._longest(dx, dz, dup, ddown)
        sigma = min(1.0, max(SMALLEST_SIGMA, (1.0 - affine) ** 3))
        second = scaling.second(dx, dz) * (affine if self.coulomb else 1.0)
        dx, dz, dup, ddown = direction(sigma * nu, second)
        step = min(1.0, 0.99 * self._longest(dx, dz, dup, ddown))
        if not (np.all(np.isfinite(dx)) and np.all(np.isfinite(dz)) and step > 1e-10):
            return False
        self.x = x + step * dx
        self.z = np.where(cone[:, None], z + step * dz, 0.0)
        self.up, self.down = self.up + step * dup, self.down + step * ddown
        return True

    def _factor(self, blocks: np.ndarray):
        n, dim, _ = blocks.shape
        big = sp.bsr_matrix((blocks, np.arange(n), np.arange(n + 1)), shape=(n * dim, n * dim)).tocsr()
        small = big[self.form.rows][:, self.form.rows]
        try:
            if self.dense:
                inverse = np.linalg.inv(self.matrix + small.toarray())
                return inverse.__matmul__
            return splu(sp.csc_matrix(self.matrix + small)).solve
        except (RuntimeError, np.linalg.LinAlgError):
            return None

    def _longest(self, dx, dz, dup, ddown) -> float:
        """The longest step up to 1 that stays in all sets."""
        c, b = self.cone, self.bounded
        step = min(1.0, _cone_step(self.x[c], dx[c]), _cone_step(self.z[c], dz[c]))
        if b.any():
            for value, change in (
                (self.bound + self.x[:, 0], dx[:, 0]),
                (self.bound - self.x[:, 0], -dx[:, 0]),
                (self.up, dup),
                (self.down, ddown),
            ):
                falls = b & (change < 0.0)
                step = min(step, float(np.min(-value[falls] / change[falls], initial=1.0)))
        return step


class _Scaling:
    """Nesterov-Todd scaling of round cones: T x = T^-1 z = lambda, T^2 = eta^2 (2 w w^T - J)."""

    def __init__(self, x: np.ndarray, z: np.ndarray, cone: np.ndarray) -> None:
        dim = x.shape[1]
        self.x, self.z = np.where(cone[:, None], x, np.eye(1, dim)), np.where(cone[:, None], z, np.eye(1, dim))
        x, z = self.x, self.z
        dx, dz = _det(x), _det(z)
        xs, zs = x / np.sqrt(dx)[:, None], z / np.sqrt(dz)[:, None]
        gamma = np.sqrt(0.5 * (1.0 + np.einsum("ij,ij->i", xs, zs)))
        flip = np.array([1.0] + [-1.0] * (dim - 1))
        w = (zs + flip * xs) / (2.0 * gamma)[:, None]
        self.eta = (dz / dx) ** 0.25
        self.w = w
        outer = 2.0 * w[:, :, None] * w[:, None, :] - np.diag(flip)
        self.squares = self.eta[:, None, None] ** 2 * outer
        self.scaled = self.times(x)

    def times(self, v: np.ndarray, inverse: bool = False) -> np.ndarray:
        """T v or T^-1 v."""
        w0, w1 = self.w[:, 0], self.w[:, 1:] * (-1.0 if inverse else 1.0)
        along = np.einsum("ij,ij->i", w1, v[:, 1:])
        out = np.empty_like(v)
        out[:, 0] = w0 * v[:, 0] + along
        out[:, 1:] = v[:, 1:] + (v[:, 0] + along / (1.0 + w0))[:, None] * w1
        return out * (self.eta ** (-1 if inverse else 1))[:, None]

    def second(self, dx: np.ndarray, dz: np.ndarray) -> np.ndarray:
        """(T dx) o (T^-1 dz)."""
        a, b = self.times(dx), self.times(dz, inverse=True)
        out = a[:, :1] * b + b[:, :1] * a
        out[:, 0] = np.einsum("ij,ij->i", a, b)
        return out

    def push(self, target: float, second: np.ndarray) -> np.ndarray:
        """T (lambda \\ (target e - second) - lambda): what dz is for dx = 0."""
        right = -second
        right[:, 0] += target
        lam = self.scaled
        first = (lam[:, 0] * right[:, 0] - np.einsum("ij,ij->i", lam[:, 1:], right[:, 1:])) / _det(lam)
        divided = np.empty_like(right)
        divided[:, 0] = first
        divided[:, 1:] = (right[:, 1:] - first[:, None] * lam[:, 1:]) / lam[:, :1]
        return self.times(divided - lam)


def _det(x: np.ndarray) -> np.ndarray:
    """x_1^2 - |rest|^2, as a product that keeps its digits."""
    t = np.linalg.norm(x[:, 1:], axis=1)
    return np.maximum((x[:, 0] - t) * (x[:, 0] + t), TINY)


def _cone_step(x: np.ndarray, d: np.ndarray) -> float:
    """The longest step up to 1 with x + step d in the round cones."""
    if len(x) == 0:
        return 1.0
    a = d[:, 0] ** 2 - np.sum(d[:, 1:] ** 2, axis=1)
    b = x[:, 0] * d[:, 0] - np.einsum("ij,ij->i", x[:, 1:], d[:, 1:])
    c = _det(x)
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    # Smallest positive root of a s^2 + 2 b s + c, without cancellation.
    q = -(b + np.where(b >= 0.0, root, -root))
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = np.where(a != 0.0, q / a, np.inf), np.where(q != 0.0, c / q, np.inf)
        falls = np.where(d[:, 0] < 0.0, -x[:, 0] / d[:, 0], np.inf)
    has = b * b - a * c >= 0.0
    first, second = np.where(has & (first > 0.0), first, np.inf), np.where(has & (second > 0.0), second, np.inf)
    return float(min(1.0, np.min(np.minimum(np.minimum(first, second), falls))))
