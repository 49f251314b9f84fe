"""Problems with rolling friction, five rows a contact, as matrices.

Rows (n, t1, t2, m1, m2); the set is {|g_T| <= mu g_n, |m| <= rho g_n}: two cones that share the normal impulse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..errors import ProblemError, message
from .cone_problem import ConeProblem, contact_first

__all__ = ["RollingProblem"]


@dataclass(frozen=True)
class RollingProblem:
    """Symmetric N (5 n, 5 n), bias (5 n,), mu (n,), rho (n,), contact by contact. `h`: the step it belongs to [s]."""

    matrix: sp.csr_matrix
    bias: np.ndarray
    friction: np.ndarray
    rolling_friction: np.ndarray
    h: float = 1.0

    @classmethod
    def from_contacts(cls, problem: ConeProblem) -> RollingProblem:
        """From a simulation's problem with rolling friction, which must not resist spinning and have no joints."""
        n, mu = problem.count, problem.friction
        if np.any(problem.bounded) or np.any(mu[1, :n]):
            raise ProblemError(
                message(
                    "RollingProblem.from_contacts",
                    "five rows a contact hold neither spinning friction nor bounded rows of joints",
                    f"{np.sum(mu[1, :n] > 0.0)} contacts that resist spinning, {np.sum(problem.bounded)} rows",
                    "Leave these out of the scene, or keep the state instead (a checkpoint).",
                )
            )
        keep = (6 * np.arange(n)[:, None] + np.array([0, 1, 2, 4, 5])).ravel()
        matrix = problem.operator.to_sparse()[keep][:, keep].tocsr()
        bias = contact_first(problem.bias, 6, n)[keep]
        return cls(matrix, bias, mu[0, :n].copy(), mu[2, :n].copy(), problem.h)

    @property
    def count(self) -> int:
        """Number of contacts."""
        return len(self.friction)

    @property
    def dim(self) -> int:
        """Rows a contact."""
        return 5
