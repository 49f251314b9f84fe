"""The relaxed law with m-sided friction cones, a convex quadratic program (Clarabel)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..enums import Law, Status
from ..problem.polyhedral import PolyhedralProblem
from .conic import LinearlyBoundedProgram
from .polyhedral import PolyhedralSolver, lcp_error

__all__ = ["SolverPolyhedralQP"]


@dataclass(frozen=True, kw_only=True)
class SolverPolyhedralQP(PolyhedralSolver):
    """min g.N g / 2 + r.g over impulses in m-sided cones, by an interior-point method."""

    name: ClassVar[str] = "polyhedral_qp"
    laws: ClassVar[tuple[Law, ...]] = (Law.RELAXED,)
    default_iterations: ClassVar[int] = 100

    def _flat(self, problem: PolyhedralProblem, law: Law) -> tuple[np.ndarray, int, Status, float]:
        scaled, scale = problem.scaled()
        b, limits = scaled.basis, scaled.limits
        matrix, q = b.T @ scaled.matrix @ b, b.T @ scaled.bias
        program = LinearlyBoundedProgram(matrix, q, limits, self.limit, min(1e-9, max(1e-14, 1e-3 * self.target)))
        c, multiplier = program.solve()
        impulse = scaled.impulse(c)
        impulse[: problem.dim] *= scale.reshape(-1, problem.dim).T
        full, right = scaled.lcp(law)  # the multipliers of the limits are part of z
        error = lcp_error(full, right, np.concatenate([c, multiplier]))
        return impulse, program.iterations, Status.STALLED, error
