"""Performance profiles of solvers over a set of problems (Dolan and More, 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..errors import ProblemError, message

__all__ = ["PerformanceProfile", "performance_profile"]


@dataclass(frozen=True)
class PerformanceProfile:
    """share[s, k]: part of the problems that solver s solves within factor[k] times the cost of the best solver."""

    factor: np.ndarray
    """(k,) rising from 1"""
    share: np.ndarray
    """(solvers, k) between 0 and 1"""


def performance_profile(costs: Any) -> PerformanceProfile:
    """From costs (problems, solvers), for example seconds; infinite or NaN where a solver failed.

    The factors are those at which some share changes. A problem that nobody solves counts for nobody.
    """
    table = np.array(costs, float, ndmin=2, copy=True)
    checks.array(
        "performance_profile.costs", np.where(np.isfinite(table), table, 0.0), (None, None), error=ProblemError
    )
    table[~np.isfinite(table)] = np.inf
    if np.any(table <= 0.0):
        rule = "must be > 0"
        raise ProblemError(message("performance_profile.costs", rule, table.min(), "Give infinity for a failure."))
    best = table.min(axis=1, keepdims=True, initial=np.inf)
    ratio = np.where(np.isfinite(table), table / np.where(np.isfinite(best), best, 1.0), np.inf)
    factor = np.unique(np.concatenate([[1.0], ratio[np.isfinite(ratio)]]))
    share = (ratio[:, :, None] <= factor).mean(axis=0) if len(table) else np.zeros((table.shape[1], len(factor)))
    return PerformanceProfile(factor, share)
