"""Accelerated projected gradient descent (Nesterov), the default method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from .. import checks
from ..backends.base import PaperArrays
from ..enums import Precision, Scaling, Status, Stop, Variant
from ..kernels.nesterov import Scalar, first_scalars
from ..problem.operators import ContactOperator
from .base import STATUS, STOP, AntiRelaxedSolver, ScaledProblem, without_shift
from .lanes import lanes_of
from .variants import take_variant

__all__ = ["SolverAPGD", "SolverCalm"]

MOMENTUM = {False: 0.995, True: 0.97}
"""Largest weight of the momentum under the relaxed law, and under Coulomb's."""
SINGLE_FROM = 1000
"""Contacts from which "auto" begins in single precision: fewer fit into the caches of one core in any case."""
PAPER, SINGLE, MIXED, AUTO = Variant.PAPER, Precision.SINGLE, Precision.MIXED, Precision.AUTO
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

    precision: str = Precision.AUTO
    """Of the iterations over contacts without joints: "double"; "mixed": single while it gains, then double; "single",
    which ends where that gains no more; or "auto": "mixed" from 1000 contacts on, but "double" on a device and where
    the history is recorded. Sums, results and whatever they are judged by are double in any case."""

    name: ClassVar[str] = "apgd"
    rolls: ClassVar[bool] = True
    lifted: ClassVar[float] = 1.0
    """Coulomb's law: the limit on the momentum after 400 iterations without progress"""

    def __post_init__(self) -> None:
        take_variant(self, {"growth": 0.9, "momentum_limit": 1.0, "scaling": Scaling.NONE, "damping": UNDAMPED})
        super().__post_init__()
        where = "SolverAPGD.precision"
        object.__setattr__(self, "precision", Precision(checks.choice(where, self.precision, list(Precision))))
        checks.number("SolverAPGD.growth", self.growth, above=0.0, at_most=1.0)
        if self.momentum_limit is not None:
            checks.number("SolverAPGD.momentum_limit", self.momentum_limit, at_least=0.0, at_most=1.0)

    def _iterate(self, scaled: ScaledProblem) -> tuple[int, int, int, float]:
        b, vectors_of = scaled.backend, scaled.problem.vectors_of
        groups = self._groups(scaled)
        if self.variant == PAPER:
            work, other = scaled.work, vectors_of(_Paper)
            iterates = PaperArrays(work.x, other.x_old, other.x_new, work.nx, other.nx_old, other.nx_new)
            return b.apgd_paper(*groups, float(self.growth), iterates)
        coulomb = scaled.gauge.coulomb
        limit = self.momentum_limit if self.momentum_limit is not None else MOMENTUM[coulomb]
        damping = float(self.damping) if coulomb else 0.0
        scalars = first_scalars(float(self.growth), float(limit), damping, self.lifted)
        if not b.HOSTED:
            return self._on_device(scaled, groups, scalars)
        if isinstance(scaled.problem.operator, ContactOperator):
            return self._over_lanes(scaled, groups, scalars)
        return b.apgd(*groups, scalars, *vectors_of(_Last))

    def _on_device(self, scaled: ScaledProblem, groups: tuple, scalars: np.ndarray) -> tuple[int, int, int, float]:
        """In single precision while it gains, where that is asked for, then in double."""
        single = self.precision in (Precision.SINGLE, Precision.MIXED)
        b, k, products = scaled.backend, 0, 0
        op, cone, gauge, stop, work = groups
        if single and stop.kind in (STOP[Stop.NATURAL_MAP], STOP[Stop.LOCAL]):
            k, products, code, value = b.apgd_single(*groups, scalars.copy(), None, None)
            if code != b.SPENT:
                return k, products, code, value
            if self.precision == Precision.SINGLE:
                return k, products, STATUS.index(Status.STALLED), value
            n, first = scaled.problem.count, work.history[0]
            work.x[:, :n] = work.best[:, :n]
            stop = stop._replace(limit=stop.limit - k)
            last = scaled.problem.vectors_of(_Last)
            more, spent, code, value = b.apgd(op, cone, gauge, stop, work, scalars, *last)
            work.history[0] = first
            return k + more, products + spent, code, value
        return b.apgd(*groups, scalars, *scaled.problem.vectors_of(_Last))

    def _over_lanes(self, scaled: ScaledProblem, groups: tuple, scalars: np.ndarray) -> tuple[int, int, int, float]:
        """In single precision while it gains, then in double."""
        b, problem, k, products = scaled.backend, scaled.problem, 0, 0
        op, cone, gauge, stop, work = groups
        work = without_shift(work)
        single = self.precision in (SINGLE, MIXED) or (
            problem.count >= SINGLE_FROM and self.precision == AUTO and not self.record
        )
        if single and stop.kind != STOP[Stop.CERTIFICATE]:
            k, products, code, value = b.apgd_single_lanes(
                op, cone, gauge, stop, work, scalars, *lanes_of(problem, np.float32)
            )
            first = work.history[0]
            if code != b.SPENT:
                return k, products, code, value
            if self.precision == SINGLE:
                return k, products, STATUS.index(Status.STALLED), value
            work.x[:, : problem.count] = work.best[:, : problem.count]
            stop = stop._replace(limit=stop.limit - k)
            scalars[Scalar.THETA], scalars[Scalar.BETA] = 1.0, 0.0
        more, spent, code, value = b.apgd_lanes(op, cone, gauge, stop, work, scalars, *lanes_of(problem, np.float64))
        if k:
            work.history[0] = first
        return k + more, products + spent, code, value


class _Last(NamedTuple):
    step: np.ndarray
    nx: np.ndarray


class _Paper(NamedTuple):
    x_old: np.ndarray
    x_new: np.ndarray
    nx_old: np.ndarray
    nx_new: np.ndarray


@dataclass(frozen=True, kw_only=True)
class SolverCalm(SolverAPGD):
    """For piles that move under Coulomb's law, as a part of `auto`: with more momentum the impulses and the correction
    chase each other there, at an error some five times as large."""

    momentum_limit: float | None = 0.9
    damping: float = UNDAMPED
    lifted: ClassVar[float] = 0.9
