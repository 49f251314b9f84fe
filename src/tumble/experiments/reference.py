"""What the solver studies compare with: the interior point method, and the spectrum of N."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..errors import ExperimentError, message
from ..problem.cone_problem import ConeProblem
from ..problem.operators import ContactOperator
from ..solve.interior_point import SolverInteriorPoint

NULL = 1e-10
"""Eigenvalues below this part of the largest count as zero."""


def interior_point(tolerance: float) -> SolverInteriorPoint:
    """The interior point method alone, without first-order iterations after it."""
    return SolverInteriorPoint(tolerance=tolerance, polish=0)


def rank_and_spread(problem: ConeProblem) -> tuple[int, float]:
    """Rank of N and the ratio of its largest to its smallest nonzero eigenvalue, for a scene without joints.

    N has 3 rows a contact but at most 6 a body independent ones. Its condition number is then infinite, and a printed
    one of 1e22 is rounding. The nonzero eigenvalues are those of M^-1/2 D D' M^-1/2.
    """
    operator = problem.operator
    if not isinstance(operator, ContactOperator):
        raise ExperimentError(
            message("rank of N", "needs contacts without joints", type(operator).__name__, "Use another scene.")
        )
    moving = np.flatnonzero(operator.contacts.inverse_mass[:, 0] > 0.0)
    inverse = operator.inverse_mass().tocsr()
    blocks = np.stack([inverse[6 * i : 6 * i + 6, 6 * i : 6 * i + 6].toarray() for i in moving])
    half = sp.bsr_matrix((np.linalg.cholesky(blocks), np.arange(len(moving)), np.arange(len(moving) + 1)))
    columns = (6 * moving[:, None] + np.arange(6)).ravel()
    rows = operator.jacobian()[: 3 * problem.count][:, columns] @ half
    gram = rows @ rows.T if rows.shape[0] < rows.shape[1] else rows.T @ rows
    values = np.linalg.eigvalsh(gram.toarray())
    nonzero = values[values > NULL * values[-1]]
    return len(nonzero), float(nonzero[-1] / nonzero[0])
