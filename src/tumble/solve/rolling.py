"""Rolling friction, five rows a contact: projection on its set, measure, and the problem without units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..enums import Law
from ..problem.rolling import RollingProblem

__all__ = ["RollingForm", "RollingResiduals", "measure_rolling", "project_rolling"]

TINY = 1e-300


@dataclass(frozen=True)
class RollingResiduals:
    """Measures of a solution with rolling friction. a = u, or u + (mu |u_T| + rho |w|) e_n under Coulomb's law."""

    law: Law
    natural_map: float
    """Scale-free, with one weight a contact, as in `Residuals`."""
    objective: float
    """g.(N g / 2 + r) [J]"""
    penetration_speed: float
    """max(0, -u_n) [m/s]"""


def project_rolling(x: np.ndarray, mu: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """Rows (n, 5) projected on |t| <= mu n, |m| <= rho n: the exact minimiser over n of a piecewise quadratic.

    f(n) = (n - n0)^2 + max(0, |t| - mu n)^2 + max(0, |m| - rho n)^2 is convex, so of the minimisers of its pieces the
    one that lies in its own piece is right; f' tells.
    """
    n0, a, b = x[:, 0], np.linalg.norm(x[:, 1:3], axis=1), np.linalg.norm(x[:, 3:5], axis=1)
    best = np.zeros_like(n0)
    found = np.full(len(n0), np.inf)
    for first in (0.0, 1.0):
        for second in (0.0, 1.0):
            n = np.maximum(0.0, (n0 + first * mu * a + second * rho * b) / (1.0 + first * mu**2 + second * rho**2))
            value = (n - n0) ** 2 + np.maximum(0.0, a - mu * n) ** 2 + np.maximum(0.0, b - rho * n) ** 2
            best, found = np.where(value < found, n, best), np.minimum(found, value)
    out = x.copy()
    out[:, 0] = best
    out[:, 1:3] *= np.minimum(1.0, mu * best / np.maximum(a, TINY))[:, None]
    out[:, 3:5] *= np.minimum(1.0, rho * best / np.maximum(b, TINY))[:, None]
    return out


class RollingForm:
    """A rolling problem without units: impulse = unit S x with one scale for (n, t1, t2) and one for (m1, m2).

    A scale that differs between sliding and rolling rows turns rho into rho s_n / s_m, a pure number.
    """

    dim = 5

    def __init__(self, problem: RollingProblem) -> None:
        self.problem, self.count = problem, problem.count
        diagonal = np.maximum(problem.matrix.diagonal().reshape(-1, 5), 0.0)
        sliding, rolling = diagonal[:, :3].mean(axis=1), diagonal[:, 3:].mean(axis=1)
        s = 1.0 / np.sqrt(np.where(sliding > 0.0, sliding, 1.0))
        m = np.where(rolling > 0.0, 1.0 / np.sqrt(np.where(rolling > 0.0, rolling, 1.0)), s)
        self.scale = np.stack([s, s, s, m, m], axis=1)
        bias = self.scale * np.asarray(problem.bias, float).reshape(-1, 5)
        size = float(np.linalg.norm(bias))
        self.unit = size if 0.0 < size < np.inf else 1.0
        self.bias = bias / self.unit
        self.friction, self.rolling_friction = problem.friction, problem.rolling_friction * s / m
        flat = self.scale.ravel()
        self.matrix = sp.csr_matrix(sp.diags(flat) @ problem.matrix @ sp.diags(flat))

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """u = N x + r (count, 5)."""
        return (self.matrix @ x.ravel()).reshape(x.shape) + self.bias

    def correction(self, u: np.ndarray) -> np.ndarray:
        """mu |u_T| + rho |w| (count,)."""
        return self.friction * np.linalg.norm(u[:, 1:3], axis=1) + self.rolling_friction * np.linalg.norm(
            u[:, 3:5], axis=1
        )

    def project(self, x: np.ndarray) -> np.ndarray:
        """Nearest point of the sets."""
        return project_rolling(x, self.friction, self.rolling_friction)

    def natural_map(self, x: np.ndarray, u: np.ndarray, law: Law) -> float:
        """|x - Pi(x - a)| / max(|r|, |x|, |u|): the scale is that of the measure."""
        a = u.copy()
        if law == Law.COULOMB:
            a[:, 0] += self.correction(u)
        difference = np.linalg.norm(x - self.project(x - a))
        size = max(np.linalg.norm(x), np.linalg.norm(u), np.linalg.norm(self.bias))
        if not (np.isfinite(size) and np.isfinite(difference)):
            return np.inf
        return float(difference / size) if size > 0.0 else 0.0

    def descend(self, x: np.ndarray, law: Law, tolerance: float, iterations: int) -> tuple[np.ndarray, int]:
        """Accelerated projected gradient from x, as a polish; the correction is refreshed in every iteration. Returns
        the best x and the iterations."""
        top = _largest_eigenvalue(self.matrix)
        x = self.project(x)
        best, best_error = x, self.natural_map(x, self.velocity(x), law)
        last, momentum = x, 0.0
        for k in range(iterations):
            if best_error <= tolerance:
                return best, k
            y = x + momentum / (momentum + 3.0) * (x - last)
            a = self.velocity(y)
            if law == Law.COULOMB:
                a[:, 0] += self.correction(a)
            last, x = x, self.project(y - a / top)
            momentum = 0.0 if np.vdot(a, x - last) > 0.0 else momentum + 1.0
            error = self.natural_map(x, self.velocity(x), law)
            if error < best_error:
                best, best_error = x, error
        return best, iterations

    def from_impulse(self, impulse: np.ndarray) -> np.ndarray:
        """x (count, 5) of impulses (5, count)."""
        return impulse.T / (self.scale * self.unit)

    def to_impulse(self, x: np.ndarray) -> np.ndarray:
        """Impulses (5, count) on their sets."""
        g = self.unit * self.scale * np.nan_to_num(x, posinf=0.0, neginf=0.0)
        return project_rolling(g, self.problem.friction, self.problem.rolling_friction).T


def _largest_eigenvalue(matrix: sp.csr_matrix) -> float:
    """An upper bound that is close for small blocks: Gershgorin's, sharpened by the Frobenius norm."""
    rows = float(abs(matrix).sum(axis=1).max())
    return max(min(rows, float(np.sqrt(matrix.multiply(matrix).sum()))), TINY)


def measure_rolling(problem: RollingProblem, impulse: np.ndarray, law: Law | str) -> RollingResiduals:
    """Measure impulses (5, count) of a rolling problem under a law."""
    law = Law(law)
    g = impulse.T.ravel()
    u = problem.matrix @ g + problem.bias
    return RollingResiduals(
        law,
        _natural_map(problem, impulse.T, u.reshape(-1, 5), law),
        float(0.5 * g @ (u + problem.bias)),
        float(max(0.0, -u[::5].min(initial=0.0))),
    )


def _natural_map(problem: RollingProblem, g: np.ndarray, u: np.ndarray, law: Law) -> float:
    """As in `Residuals`, with one weight a contact, w^2 = mean diagonal of (n, t1, t2): the sets stay as they are."""
    diagonal = problem.matrix.diagonal().reshape(-1, 5)[:, :3].mean(axis=1)
    w = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))[:, None]
    a = u.copy()
    if law == Law.COULOMB:
        a[:, 0] += problem.friction * np.linalg.norm(u[:, 1:3], axis=1)
        a[:, 0] += problem.rolling_friction * np.linalg.norm(u[:, 3:5], axis=1)
    bias = np.asarray(problem.bias, float).reshape(-1, 5) / w
    difference = w * g - project_rolling(w * g - a / w, problem.friction, problem.rolling_friction)
    size = max(float(np.linalg.norm(x)) for x in (bias, w * g, u / w))
    error = float(np.linalg.norm(difference))
    if not (np.isfinite(size) and np.isfinite(error)):
        return np.inf
    return error / size if size > 0.0 else 0.0
