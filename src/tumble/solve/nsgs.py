"""Nonsmooth Gauss-Seidel: sweeps that solve the problem of each contact exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from .. import checks
from ..errors import ProblemError, message
from ..problem.operators import ArticulatedOperator
from .base import IterativeSolver, ScaledProblem, without_shift

__all__ = ["SolverNSGS"]


@dataclass(frozen=True, kw_only=True)
class SolverNSGS(IterativeSolver):
    """Contact by contact, the exact solution of its own 3 x 3 problem under either law, the others held.

    The natural choice for few contacts (a handful of sweeps, one for a single contact); slow on tall piles.
    Sequential, so the result does not depend on the number of threads.
    """

    omega: float = 1.0
    """Part of the way to the exact solution that is gone, up to 1."""
    check_every: int = 2
    """Sweeps between two measurements."""
    name: ClassVar[str] = "nsgs"
    jointed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("SolverNSGS.omega", self.omega, above=0.0, at_most=1.0)

    def _iterate(self, scaled: ScaledProblem) -> tuple[int, int, int, float]:
        if isinstance(scaled.operator, ArticulatedOperator):
            raise ProblemError(
                message(
                    "SolverNSGS",
                    "cannot take jointed bodies",
                    "joints are eliminated in the product, and a sweep has none",
                    "Use SolverAPGD, SolverInteriorPoint or SolverAuto.",
                )
            )
        block = scaled.problem.scratch_of(_Blocks, diagonal=scaled.diagonal.shape).diagonal
        op, cone, gauge, stop, work = self._groups(scaled)
        return scaled.backend.nsgs(
            op, cone, gauge, stop, without_shift(work), scaled.diagonal, float(self.omega), block
        )


class _Blocks(NamedTuple):
    diagonal: np.ndarray
