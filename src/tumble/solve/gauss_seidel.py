"""Projected Gauss-Seidel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import checks
from ..errors import OptionsError, ProblemError, message
from ..problem.operators import ArticulatedOperator
from .base import AntiRelaxedSolver, ScaledProblem

__all__ = ["SolverGaussSeidel"]


@dataclass(frozen=True, kw_only=True)
class SolverGaussSeidel(AntiRelaxedSolver):
    """Sweeps contact by contact with the step omega / lambda_max(N_ii), which does not diverge for omega < 2.

    Sequential, so the result does not depend on the number of threads.
    """

    omega: float = 1.0
    """Relaxation, between 0 and 2."""
    name: ClassVar[str] = "gauss_seidel"
    sequential: ClassVar[bool] = True
    jointed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        where = type(self).__name__ + ".omega"
        if checks.number(where, self.omega, above=0.0) >= 2.0:
            raise OptionsError(message(where, "must be < 2", self.omega, "1 is plain Gauss-Seidel."))

    def _iterate(self, scaled: ScaledProblem, coulomb: bool, history: np.ndarray) -> tuple[int, int, int, float]:
        if isinstance(scaled.operator, ArticulatedOperator):
            raise ProblemError(
                message(
                    type(self).__name__,
                    "cannot take jointed bodies",
                    "joints are eliminated in the product, and a sweep has none",
                    "Use SolverAPGD or SolverBarzilaiBorwein.",
                )
            )
        step = scaled.problem.buffer("step", scaled.bias.shape[1])
        scaled.backend.block_steps(scaled.count, scaled.diagonal, scaled.scale, step)
        step *= self.omega
        return scaled.backend.relax(
            *self._common(scaled, coulomb),
            step,
            self.sequential,
            scaled.x,
            scaled.vector("nx"),
            scaled.shift,
            scaled.best,
            scaled.partial,
            scaled.values,
            history,
        )
