"""Projected Gauss-Seidel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from .. import checks
from ..enums import Scaling, Variant
from ..errors import OptionsError, ProblemError, message
from ..problem.operators import ArticulatedOperator
from .base import AntiRelaxedSolver, ScaledProblem
from .variants import take_variant

__all__ = ["SolverGaussSeidel"]


@dataclass(frozen=True, kw_only=True)
class SolverGaussSeidel(AntiRelaxedSolver):
    """Sweeps contact by contact with the step omega / lambda_max(N_ii), which does not diverge for omega < 2.

    Sequential, so the result does not depend on the number of threads.
    """

    variant: str = Variant.DEFAULT
    """"paper": Algorithm 2 of Mazhar et al. 2015: impulses as they are, step 3 omega / trace(N_ii). Faster where the
    blocks are nearly round, and it diverges on others."""
    omega: float = 1.0
    """Relaxation, between 0 and 2."""
    mixing: float = 1.0
    """Part of the new impulse, the rest is the old one: lambda of that algorithm, up to 1."""
    name: ClassVar[str] = "gauss_seidel"
    sequential: ClassVar[bool] = True
    jointed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        take_variant(self, {"scaling": Scaling.NONE})
        super().__post_init__()
        checks.number(type(self).__name__ + ".mixing", self.mixing, above=0.0, at_most=1.0)
        where = type(self).__name__ + ".omega"
        if checks.number(where, self.omega, above=0.0) >= 2.0:
            raise OptionsError(message(where, "must be < 2", self.omega, "1 is plain Gauss-Seidel."))

    def _iterate(self, scaled: ScaledProblem) -> tuple[int, int, int, float]:
        if isinstance(scaled.operator, ArticulatedOperator):
            raise ProblemError(
                message(
                    type(self).__name__,
                    "cannot take jointed bodies",
                    "joints are eliminated in the product, and a sweep has none",
                    "Use SolverAPGD or SolverBarzilaiBorwein.",
                )
            )
        step = scaled.problem.scratch_of(_Step, size=(scaled.cone.bias.shape[1],)).size
        if self.variant == Variant.PAPER:
            _trace_steps(scaled, step)
        else:
            scaled.backend.block_steps(scaled.cone.count, scaled.diagonal, scaled.gauge.scale, step)
        step *= self.omega
        return scaled.backend.gauss_seidel(
            *self._groups(scaled), float(self.damping), step, float(self.mixing), self.sequential
        )


def _trace_steps(scaled: ScaledProblem, step: np.ndarray) -> None:
    """rows / trace(N_ii) of every block into step (cap,); a bounded row is a block of one row."""
    n, d = scaled.cone.count, scaled.diagonal
    rows = np.where(scaled.problem.bounded, 1, scaled.problem.dim)
    trace = d[0, :n] + np.where(rows > 1, d[1, :n] + d[2, :n], 0.0)
    step[:n] = np.divide(rows, trace, out=np.zeros(n), where=trace > 0.0)


class _Step(NamedTuple):  # length, of each contact
    size: np.ndarray
