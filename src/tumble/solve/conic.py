"""Cone programs for Clarabel, dual (in impulses) and primal (in velocities), and a factor of a matrix.

Everything is without units. Rows of x that carry an impulse are described by `Cones`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..errors import ProblemError, message

__all__ = ["Cones", "DualProgram", "LinearlyBoundedProgram", "PrimalProgram", "factor"]


@dataclass(frozen=True)
class Cones:
    """Sets of a vector of impulses: cones |x[t]| <= mu x[n], rows >= 0, rows within bounds."""

    size: int
    friction: np.ndarray
    """(cones,)"""
    normal: np.ndarray
    """(cones,) row of the normal impulse; two cones may share one"""
    tangent: np.ndarray
    """(cones, k) rows of the tangential impulses"""
    unilateral: np.ndarray
    """Rows >= 0"""
    interval: np.ndarray
    """Rows with |x| <= bound"""
    bound: np.ndarray


class _Program:
    """A Clarabel solver whose linear term or right side can be replaced."""

    def __init__(self, p, q, a, b, cones: list, limit: int, precision: float) -> None:
        import clarabel

        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.presolve_enable = False
        settings.max_iter = min(limit, 2**31)
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = precision
        settings.tol_ktratio = 1e-9
        # The problem is scaled already: less regularisation than the defaults, more refinement.
        settings.static_regularization_constant = 1e-10
        settings.iterative_refinement_reltol = settings.iterative_refinement_abstol = 1e-14
        settings.iterative_refinement_max_iter = 30
        self._solver = clarabel.DefaultSolver(sp.triu(p, format="csc"), q, a.tocsc(), b, cones, settings)
        self.iterations = 0
        self.solves = 0
        self.exhausted = False
        """Whether the last solve ended for want of iterations, not for want of digits"""

    def _run(self):
        solution = self._solver.solve()
        self.iterations += int(solution.iterations)
        self.solves += 1
        self.exhausted = str(solution.status) == "MaxIterations"
        return solution

    @staticmethod
    def cone_list(nonnegative: int, cones: int, dim: int) -> list:
        """The rows of A: first the nonnegative ones, then second-order cones of one dimension."""
        import clarabel

        out = [clarabel.NonnegativeConeT(nonnegative)] if nonnegative else []
        return out + [clarabel.SecondOrderConeT(dim)] * cones


class DualProgram(_Program):
    """min x.N x / 2 + q.x, x in the cones."""

    def __init__(self, matrix: sp.spmatrix, cones: Cones, limit: int, precision: float) -> None:
        n, k = len(cones.friction), cones.tangent.shape[1]
        unit = sp.identity(cones.size, format="csr")
        rows = np.column_stack([cones.normal, cones.tangent]).ravel()
        factor_ = np.column_stack([cones.friction, np.ones((n, k))]).ravel()
        a = sp.vstack(
            [-unit[cones.unilateral], unit[cones.interval], -unit[cones.interval], -sp.diags(factor_) @ unit[rows]]
        )
        b = np.concatenate([np.zeros(len(cones.unilateral)), cones.bound, cones.bound, np.zeros((k + 1) * n)])
        blocks = self.cone_list(len(cones.unilateral) + 2 * len(cones.interval), n, k + 1)
        super().__init__(sp.csc_matrix(matrix), np.zeros(cones.size), a, b, blocks, limit, precision)

    def solve(self, q: np.ndarray) -> np.ndarray:
        """Impulses x for the linear term q."""
        self._solver.update(q=q)
        return np.array(self._run().x)


class PrimalProgram(_Program):
    """min |y|^2 / 2, L y + q in the dual cones, with N = L L^T: velocities in the norm of the kinetic energy.

    A row within bounds adds bound |u| to the objective. Impulses are the multipliers.
    """

    def __init__(self, root: sp.spmatrix, cones: Cones, limit: int, precision: float) -> None:
        self._cones = cones
        n, k, bounded = len(cones.friction), cones.tangent.shape[1], len(cones.interval)
        rows = np.column_stack([cones.normal, cones.tangent]).ravel()
        self._factor = np.column_stack([np.ones(n), np.repeat(cones.friction[:, None], k, axis=1)]).ravel()
        self._rows = rows
        one = sp.identity(bounded)
        a = sp.bmat(
            [
                [-root[cones.unilateral], None],
                [root[cones.interval], -one],
                [-root[cones.interval], -one],
                [-sp.diags(self._factor) @ root[rows], None],
            ]
            if bounded
            else [[-root[cones.unilateral]], [-sp.diags(self._factor) @ root[rows]]]
        )
        p = sp.block_diag([sp.identity(root.shape[1]), sp.csc_matrix((bounded, bounded))], format="csc")
        q = np.concatenate([np.zeros(root.shape[1]), cones.bound])
        blocks = self.cone_list(len(cones.unilateral) + 2 * bounded, n, k + 1)
        super().__init__(p, q, a, np.zeros(a.shape[0]), blocks, limit, precision)

    def solve(self, q: np.ndarray) -> np.ndarray:
        """Impulses x for the free velocities q."""
        c = self._cones
        self._solver.update(
            b=np.concatenate([q[c.unilateral], -q[c.interval], q[c.interval], self._factor * q[self._rows]])
        )
        z = np.array(self._run().z)
        first, second = len(c.unilateral), len(c.interval)
        x = np.zeros(c.size)
        x[c.unilateral] = z[:first]
        x[c.interval] = z[first + second : first + 2 * second] - z[first : first + second]
        np.add.at(x, self._rows, self._factor * z[first + 2 * second :])
        return x


def factor(matrix: sp.spmatrix) -> sp.csr_matrix:
    """L with L L^T = N + eps I, eps the smallest of 1e-13, 1e-12, ... (of the largest diagonal) that leaves no negative
    pivot: a semidefinite or, by rounding, slightly indefinite matrix becomes definite."""
    n = matrix.shape[0]
    top = float(abs(matrix.diagonal()).max(initial=0.0)) or 1.0
    for exponent in range(-13, 0):
        shifted = sp.csc_matrix(matrix + sp.identity(n) * (top * 10.0**exponent))
        try:
            lu = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:
            continue
        pivots = lu.U.diagonal()
        if np.all(pivots > 0.0) and np.array_equal(lu.perm_r, lu.perm_c):
            root = lu.L @ sp.diags(np.sqrt(pivots))
            return sp.csr_matrix(root)[lu.perm_r]
    raise ProblemError(message("factor", "needs a positive semidefinite matrix", "negative pivots", "Use SolverAPGD."))


class LinearlyBoundedProgram(_Program):
    """min c.P c / 2 + q.c, c >= 0, G c >= 0."""

    def __init__(self, matrix: sp.spmatrix, q: np.ndarray, limits: sp.spmatrix, limit: int, precision: float) -> None:
        self._size = len(q)
        rows = sp.vstack([-sp.identity(len(q)), -limits])
        blocks = self.cone_list(rows.shape[0], 0, 1)
        super().__init__(sp.csc_matrix(matrix), q, rows, np.zeros(rows.shape[0]), blocks, limit, precision)

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """c and the multipliers of G c >= 0."""
        solution = self._run()
        return np.maximum(np.array(solution.x), 0.0), np.maximum(np.array(solution.z)[self._size :], 0.0)
