"""Accelerated projected gradient descent (Nesterov), the default method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import checks
from ..backends.base import PaperArrays
from ..enums import Scaling, Variant
from ..kernels.nesterov import first_scalars
from ..problem.operators import ContactOperator
from .base import AntiRelaxedSolver, ScaledProblem
from .lanes import lanes_of
from .variants import take_variant

__all__ = ["SolverAPGD"]

MOMENTUM = {False: 0.995, True: 0.97}
"""Largest weight of the momentum under the relaxed law, and under Coulomb's."""
UNDAMPED = 1e30
"""A `damping` that never begins."""


@dataclass(frozen=True, kw_only=True)
class SolverAPGD(AntiRelaxedSolver):
    """Nesterov's method with an adaptive step that shrinks and grows, gradient restart and best iterate.

    One product an iteration, about 1.05 with the step-length search.
    """

    variant: str = Variant.DEFAULT
    """"paper": Algorithm 1 of Mazhar et al. 2015, and with Coulomb's law its anti-relaxed form: impulses as they are,
    growth 0.9, steps halved only, the whole momentum, the correction refreshed in full."""

    growth: float = 0.9999
    """After each iteration the estimate of the largest eigenvalue is multiplied by this, so that steps can grow."""

    momentum_limit: float | None = None
    """Coulomb's law: largest weight of the momentum. Without a limit the impulses and the correction chase each other
    in settled piles (on five steps of 1000 settling spheres 0.97 took a third of the iterations of no limit). Lifted,
    and set again, after 400 iterations without progress: ill-conditioned stacks need the whole momentum."""

    name: ClassVar[str] = "apgd"
    rolls: ClassVar[bool] = True

    def __post_init__(self) -> None:
        take_variant(self, {"growth": 0.9, "momentum_limit": 1.0, "scaling": Scaling.NONE, "damping": UNDAMPED})
        super().__post_init__()
        checks.number("SolverAPGD.growth", self.growth, above=0.0, at_most=1.0)
        if self.momentum_limit is not None:
            checks.number("SolverAPGD.momentum_limit", self.momentum_limit, at_least=0.0, at_most=1.0)

    def _iterate(self, scaled: ScaledProblem) -> tuple[int, int, int, float]:
        v, b = scaled.vector, scaled.backend
        groups = self._groups(scaled)
        if self.variant == Variant.PAPER:
            work = scaled.work
            iterates = PaperArrays(work.x, v("x_old"), v("x_new"), work.nx, v("nx_old"), v("product"))
            return b.apgd_paper(*groups, float(self.growth), iterates)
        coulomb = scaled.gauge.coulomb
        limit = self.momentum_limit if self.momentum_limit is not None else MOMENTUM[coulomb]
        scalars = first_scalars(float(self.growth), float(limit), float(self.damping) if coulomb else 0.0)
        if isinstance(scaled.problem.operator, ContactOperator):
            return b.apgd_lanes(*groups, scalars, lanes_of(scaled.problem, np.float64))
        return b.apgd(*groups, scalars, v("x_old"), v("nx_old"))
