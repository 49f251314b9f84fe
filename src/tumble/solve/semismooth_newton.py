"""Semismooth Newton: the law as one nonsmooth system of equations, F(x) = x - Pi(x - a(x)) = 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from .. import checks
from ..enums import Law, Status
from ..problem.cone_problem import ConeProblem, bounds_of
from .apgd import SolverAPGD
from .matrix_form import TINY, MatrixForm, MeasuredSolver

__all__ = ["SolverSemismoothNewton"]

TRIES = 3
"""Regularisations tried in one iteration."""
MEMORY = 3
"""Norms that the nonmonotone line search looks back on."""


@dataclass(frozen=True, kw_only=True)
class SolverSemismoothNewton(MeasuredSolver):
    """Newton's method on the natural map of either law, with an element of its generalised Jacobian.

    Starts after some accelerated projected-gradient iterations, which find most contacts' cases, and goes back to them
    (three times as many each time) when the line search fails. A polish: a few steps from a good guess.
    """

    warm_up: int = 100
    """First-order iterations before the first Newton step; 0 with a guess that is good already."""
    rescues: int = 3
    """How often it goes back to first-order iterations."""
    regularization: float = 1e-6
    """Added to the diagonal (of size 1) at first: hyperstatic problems have a singular Jacobian. It shrinks
    tenfold after a whole step and grows when the line search fails."""

    name: ClassVar[str] = "semismooth_newton"
    default_iterations: ClassVar[int] = 60

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("SolverSemismoothNewton.warm_up", self.warm_up, at_least=0)
        checks.integer("SolverSemismoothNewton.rescues", self.rescues, at_least=0)
        checks.number("SolverSemismoothNewton.regularization", self.regularization, at_least=0.0, at_most=1.0)

    def _find(self, problem: ConeProblem, law: Law, start: np.ndarray) -> tuple[np.ndarray, int, int, Status]:
        form = MatrixForm(problem)
        first, products = max(self.warm_up, 1), 0

        def first_order(x: np.ndarray, count: int) -> np.ndarray:
            nonlocal products
            found = SolverAPGD(tolerance=self.target, max_iterations=count).solve(
                problem, law=law, guess=form.to_impulse(x)
            )
            products += found.products
            return form.from_impulse(found.impulse)

        x = form.from_impulse(start)
        if self.warm_up:
            x = first_order(x, self.warm_up)
        best, best_error, rescues = x, form.natural_map(x, form.velocity(x), law), 0
        norms: list[float] = []
        added = self.regularization
        for k in range(self.limit + 1):
            error = form.natural_map(x, form.velocity(x), law)
            if error < best_error:
                best, best_error = x, error
            if best_error <= self.target:
                return form.to_impulse(best), k, products, Status.CONVERGED
            if k == self.limit:
                break
            value, jacobian = _linearise(form, x, law)
            norms = [*norms[1 - MEMORY :], float(np.linalg.norm(value))]
            for _ in range(TRIES):
                x, length = _line_search(form, x, _newton_step(jacobian, value, added), law, max(norms))
                if length > 0.0:
                    break
                added = min(1.0, 100.0 * added)
            if length == 1.0:
                added = max(1e-12, 0.1 * added)
            if length == 0.0:
                if rescues == self.rescues:
                    return form.to_impulse(best), k + 1, products, Status.STALLED
                rescues += 1
                first *= 3
                x, norms, added = first_order(best, first), [], self.regularization
        return form.to_impulse(best), self.limit, products, Status.MAX_ITERATIONS


def _linearise(form: MatrixForm, x: np.ndarray, law: Law) -> tuple[np.ndarray, sp.csr_matrix]:
    """F(x) and an element of its generalised Jacobian I - V (I - A N)."""
    u = form.velocity(x)
    y = x - form.slack(u, law)
    slope = projection_slopes(y, form.friction)
    answer = np.zeros_like(slope)
    answer[:, range(form.dim), range(form.dim)] = 1.0
    if law == Law.COULOMB:
        t = np.linalg.norm(u[:, 1:], axis=1)
        mu = np.where(form.cone, form.friction, 0.0)
        answer[:, 0, 1:] = (mu / np.maximum(t, TINY))[:, None] * u[:, 1:]
    jacobian = sp.identity(x.size, format="csr") - block_diagonal(slope) + block_diagonal(slope @ answer) @ form.matrix
    return x - form.project(y), jacobian


def _newton_step(jacobian: sp.csr_matrix, value: np.ndarray, added: float) -> np.ndarray:
    """-(J + added I)^-1 F, or -F where that cannot be."""
    try:
        lu = splu(sp.csc_matrix(jacobian + added * sp.identity(value.size)))
        step = -lu.solve(value.ravel()).reshape(value.shape)
    except RuntimeError:  # exactly singular
        return -value
    return step if np.all(np.isfinite(step)) else -value


def _line_search(
    form: MatrixForm, x: np.ndarray, step: np.ndarray, law: Law, allowed: float
) -> tuple[np.ndarray, float]:
    """The first of 1, 1/2, ... 1/64 of the step that lessens |F|; its length, 0 when there is none."""
    t = 1.0
    while t > 0.01:
        trial = x + t * step
        norm = np.linalg.norm(trial - form.project(trial - form.slack(form.velocity(trial), law)))
        if norm <= (1.0 - 1e-3 * t) * allowed:
            return trial, t
        t *= 0.5
    return x, 0.0


def projection_slopes(y: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """An element of the generalised Jacobian of the projection, (n, dim, dim)."""
    n, dim = y.shape
    bound = bounds_of(friction)
    bounded = np.isfinite(bound)
    mu = np.where(bounded, 0.0, friction)
    t = np.linalg.norm(y[:, 1:], axis=1)
    out = np.zeros((n, dim, dim))
    inside = np.where(bounded, np.abs(y[:, 0]) <= bound, (t <= mu * y[:, 0]) & (mu > 0.0))
    zero = np.where(bounded, ~inside, mu * t <= -y[:, 0])
    direction = y[:, 1:] / np.maximum(t, TINY)[:, None]
    normal = np.concatenate([np.ones((n, 1)), mu[:, None] * direction], axis=1)  # (1, mu t/|t|), the cone's ray
    edge = normal[:, :, None] * normal[:, None, :] / (1.0 + mu * mu)[:, None, None]
    ratio = mu * np.maximum(0.0, y[:, 0] + mu * t) / (1.0 + mu * mu) / np.maximum(t, TINY)
    edge[:, 1:, 1:] += ratio[:, None, None] * (np.eye(dim - 1) - direction[:, :, None] * direction[:, None, :])
    out[:] = np.where(zero[:, None, None], 0.0, edge)
    whole = np.eye(dim)
    out[inside & (mu > 0.0)] = whole
    out[inside & bounded] = np.diag([1.0] + [0.0] * (dim - 1))
    return out


def block_diagonal(blocks: np.ndarray) -> sp.csr_matrix:
    """A block-diagonal matrix of (n, dim, dim)."""
    n, dim, _ = blocks.shape
    return sp.bsr_matrix((blocks, np.arange(n), np.arange(n + 1)), shape=(n * dim, n * dim)).tocsr()
