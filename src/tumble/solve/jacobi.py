"""Projected Jacobi."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .gauss_seidel import SolverGaussSeidel

__all__ = ["SolverJacobi"]


@dataclass(frozen=True, kw_only=True)
class SolverJacobi(SolverGaussSeidel):
    """All contacts at once with the step omega / lambda_max(N_ii), or 3 omega / trace(N_ii) in variant "paper".

    omega must be about one over the number of contacts of a body; 0.3 suits packings of spheres.
    """

    omega: float = 0.3
    name: ClassVar[str] = "jacobi"
    sequential: ClassVar[bool] = False
