"""Projected spectral gradient with Barzilai-Borwein steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from .base import AntiRelaxedSolver, ScaledProblem

__all__ = ["SolverBarzilaiBorwein"]


@dataclass(frozen=True, kw_only=True)
class SolverBarzilaiBorwein(AntiRelaxedSolver):
    """Alternating long and short spectral steps with a nonmonotone line search; one product an iteration."""

    name: ClassVar[str] = "barzilai_borwein"

    def _iterate(self, scaled: ScaledProblem) -> tuple[int, int, int, float]:
        last = scaled.problem.vectors_of(_Last)
        return scaled.backend.barzilai_borwein(*self._groups(scaled), float(self.damping), last.x, last.nx)


class _Last(NamedTuple):  # iterate
    x: np.ndarray
    nx: np.ndarray
