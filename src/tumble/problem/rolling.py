"""Problems with rolling friction, five rows a contact, as matrices.

Rows (n, t1, t2, m1, m2); the set is {|g_T| <= mu g_n, |m| <= rho g_n}: two cones that share the normal impulse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

__all__ = ["RollingProblem"]


@dataclass(frozen=True)
class RollingProblem:
    """Symmetric N (5 n, 5 n), bias (5 n,), mu (n,), rho (n,), contact by contact. `h`: the step it belongs to [s]."""

    matrix: sp.csr_matrix
    bias: np.ndarray
    friction: np.ndarray
    rolling_friction: np.ndarray
    h: float = 1.0

    @property
    def count(self) -> int:
        """Number of contacts."""
        return len(self.friction)

    @property
    def dim(self) -> int:
        """Rows a contact."""
        return 5
