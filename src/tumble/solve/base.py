"""What every solver shares: options, the scaled problem and the solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from .. import checks
from ..backends.base import (
    MEASURE_ROOM,
    MEASURES,
    ConeArrays,
    GaugeArrays,
    IterationArrays,
    ScaledArrays,
    StopRule,
    UnshiftedArrays,
    blocks,
)
from ..enums import Law, Scaling, Status, Stop
from ..errors import ProblemError, message
from ..problem.cone_problem import ConeProblem
from ..problem.operators import ArticulatedOperator, ContactOperator
from ..problem.rolling import RollingProblem
from ..records import record
from ..showing import Shown
from .residuals import Residuals, measure, weigh, weights_of

__all__ = ["AntiRelaxedSolver", "IterativeSolver", "Solution", "Solver"]

CONVERGED, LOCAL = Status.CONVERGED, Stop.LOCAL
STATUS = (CONVERGED, Status.MAX_ITERATIONS, Status.STALLED, Status.DIVERGED)
STOP = {Stop.NATURAL_MAP: 0, Stop.RESIDUAL_EQ25: 1, Stop.CERTIFICATE: 2, Stop.LOCAL: 3}
LOCAL_TOLERANCE = 1e-4
"""Of the local error: a step is solved when no contact errs by more than this part of its own motion (at least of what
gravity moves in a step)."""
SCALING: dict[str, int] = {Scaling.NONE: 0, Scaling.SCALAR: 1, Scaling.NORMAL_TANGENTIAL: 2}


@dataclass(frozen=True, repr=False)
class Solution(Shown):
    """Impulses of a problem and what is known about them."""

    impulse: np.ndarray
    """(3, cap), rows n, u, w [N s]"""
    law: Law
    """The law that was solved"""
    solver: str
    status: Status
    iterations: int
    products: int
    """Products N x spent"""
    residuals: Residuals
    history: np.ndarray
    """Stopping quantity at the iterations where it was measured, NaN elsewhere"""
    tried: tuple[tuple[str, int, float, float], ...] = ()
    """What `auto` tried: solver, iterations, seconds, natural map"""
    ray: np.ndarray | None = None
    """Impulses that show why a solution is out of reach (`solve.reach`)"""
    left: float = 0.0
    """Part of the guess's stopping quantity that is left; 0 where that was not measured"""

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.status == CONVERGED


class Solver(Protocol):
    """Anything that turns a problem into a solution."""

    name: ClassVar[str]

    def solve(self, problem: ConeProblem, *, law: Law | str = Law.COULOMB, guess: np.ndarray | None = None) -> Solution:
        """Solve under a law, from a guess (3, cap) or from zero."""
        ...


@dataclass(frozen=True, kw_only=True)
class IterativeSolver:
    """Options of the solvers with compiled iterations."""

    tolerance: float | None = None
    """The stopping quantity must fall below this. None: 1e-4 of the local error in the steps of a simulation, whatever
    their size; 1e-7 of the natural map of a stored problem of up to 64 contacts, 1e-5 of a larger one."""
    stop: str | None = None
    """Stopping quantity: local, natural_map, residual_eq25 [m/s] or certificate (see `docs/measures.md`). None: local
    where no tolerance is given and the problem is a step's, else natural_map."""
    max_iterations: int | None = None
    """None: 4000, and up to 20000 for fewer than 1000 contacts, where iterations cost little."""
    scaling: str = Scaling.NORMAL_TANGENTIAL
    """none, scalar (one number a contact) or normal_tangential."""
    check_every: int = 10
    """Iterations between two measurements."""
    record: bool = False
    """Keep the history of the stopping quantity."""

    name: ClassVar[str] = ""
    rolls: ClassVar[bool] = False
    """Whether it takes problems with rolling friction"""
    jointed: ClassVar[bool] = True
    """Whether it takes scenes with joints"""

    def __post_init__(self) -> None:
        where = type(self).__name__ + "."
        if self.tolerance is not None:
            checks.number(where + "tolerance", self.tolerance, at_least=0.0)
        if self.stop is not None:
            object.__setattr__(self, "stop", Stop(checks.choice(where + "stop", self.stop, list(Stop))))
        if self.max_iterations is not None:
            checks.integer(where + "max_iterations", self.max_iterations, at_least=1)
        object.__setattr__(self, "scaling", Scaling(checks.choice(where + "scaling", self.scaling, list(Scaling))))
        checks.integer(where + "check_every", self.check_every, at_least=1)
        checks.flag(where + "record", self.record)

    def solve(self, problem: ConeProblem, *, law: Law | str = Law.COULOMB, guess: np.ndarray | None = None) -> Solution:
        """Solve under a law, from a guess (3, cap) [N s] or from zero."""
        law = checked_law(type(self).__name__, law)
        checked_problem(type(self).__name__, problem, rolling=self.rolls)
        impulse = _room_for(problem)
        history = np.full(self.iteration_limit(problem.count) + 1, np.nan) if self.record else np.zeros(1)
        if problem.count == 0:
            return Solution(impulse, law, self.name, Status.CONVERGED, 0, 0, measure(problem, impulse, law), history)
        if guess is not None:
            guess = checked_guess(type(self).__name__, guess, problem)
        scaled = ScaledProblem(problem, self.scaling, law == Law.COULOMB, guess, history)
        iterations, products, code, value = self._iterate(scaled)
        first = float(scaled.work.history[0])
        unscale = problem.backend.unscale_rolling if problem.is_rolling else problem.backend.unscale_impulses
        unscale(problem.count, scaled.gauge.scale, problem.friction, scaled.work.best, impulse)
        return record(
            Solution,
            impulse=impulse,
            law=law,
            solver=self.name,
            status=STATUS[code],
            iterations=int(iterations),
            products=int(products),
            residuals=measure(problem, impulse, law),
            history=history,
            tried=(),
            ray=None,
            left=min(1.0, value / first) if first > 0.0 else 0.0,
        )

    def rule_for(self, problem: ConeProblem) -> tuple[Stop, float]:
        """The stopping quantity and its tolerance for a problem."""
        return stopping_rule(self.stop, self.tolerance, problem)

    def iteration_limit(self, contacts: int) -> int:
        """The most iterations for a problem of this size."""
        if self.max_iterations is not None:
            return self.max_iterations
        return max(4000, min(20000, 4_000_000 // max(1, contacts)))

    def _iterate(self, scaled: ScaledProblem) -> tuple[int, int, int, float]:
        """Fill scaled.work.best; returns iterations, products, status code and the best stopping quantity."""
        raise NotImplementedError

    def _groups(self, s: ScaledProblem) -> tuple[tuple, ConeArrays, GaugeArrays, StopRule, IterationArrays]:
        """What all compiled iterations begin with."""
        stop, tolerance = self.rule_for(s.problem)
        rule = StopRule(
            STOP[stop], tolerance, self.iteration_limit(s.cone.count), self.check_every, s.problem.dim * s.cone.count
        )
        return s.operator.arrays, s.cone, s.gauge, rule, s.work


@dataclass(frozen=True, kw_only=True)
class AntiRelaxedSolver(IterativeSolver):
    """First-order solvers: methods of the relaxed law that refresh the correction mu |u_T| as they go."""

    damping: float = 300.0
    """Coulomb's law: from iteration `damping` on, the correction is refreshed by damping / k of its change only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number(type(self).__name__ + ".damping", self.damping, above=0.0)


def stopping_rule(stop: str | None, tolerance: float | None, problem: ConeProblem) -> tuple[Stop, float]:
    """The stopping quantity and its tolerance where one or both are left out."""
    if stop is None:
        stop = LOCAL if tolerance is None and problem.speed > 0.0 else Stop.NATURAL_MAP
    if tolerance is None:
        tolerance = LOCAL_TOLERANCE if stop == LOCAL else 1e-7 if problem.count <= 64 else 1e-5
    return stop if isinstance(stop, Stop) else Stop(stop), float(tolerance)


def checked_law(where: str, law: Law | str) -> Law:
    """A law by its name."""
    return law if isinstance(law, Law) else Law(checks.choice(where + ".law", law, list(Law)))


def checked_problem(where: str, problem: ConeProblem, *, rolling: bool = False) -> None:
    """Refuse what is not a cone problem, and one with six rows a contact unless `rolling`."""
    if isinstance(problem, RollingProblem):
        raise ProblemError(
            message(
                where + ".problem",
                "cannot take a stored problem with rolling friction",
                f"{problem.count} contacts of five rows",
                "Use SolverInteriorPoint or SolverAuto.",
            )
        )
    if not isinstance(problem, ConeProblem):
        raise ProblemError(
            message(
                where + ".problem",
                "must be a ConeProblem",
                checks.short(problem),
                "Use ConeProblem.from_matrix or a simulation's last.problem.",
            )
        )
    if problem.is_rolling and not rolling:
        raise ProblemError(
            message(
                where + ".problem",
                "cannot take rolling friction",
                f"{problem.count} contacts of six rows",
                "Use SolverAPGD or SolverAuto.",
            )
        )


def checked_guess(where: str, guess: np.ndarray, problem: ConeProblem) -> np.ndarray:
    """A finite guess in the problem's layout (3, cap), or contact by contact (3, count)."""
    if guess is problem.guess:
        return guess  # the stepper's own warm start
    own = problem.backend
    rows = guess if not own.HOSTED and type(guess) is type(problem.bias) else np.asarray(guess)
    needed = problem.bias.shape[0]
    if rows.ndim != 2 or rows.shape[0] != needed or rows.shape[1] not in (problem.count, problem.bias.shape[1]):
        raise ProblemError(
            message(
                where + ".guess",
                f"must have shape ({needed}, {problem.count})",
                f"shape {rows.shape}",
                "Rows are the normal and the two tangential impulses (and three torques with rolling friction).",
            )
        )
    out = problem.guess
    given = rows[:, : problem.count]
    if isinstance(given, np.ndarray):  # what lies on a device comes from a solver there
        given = own.send(
            checks.array(where + ".guess", given, (needed, problem.count), largest=np.inf, error=ProblemError)
        )
    out[:, : problem.count] = given
    return out


def _room_for(problem: ConeProblem) -> np.ndarray:
    """An array of the bias' shape, zero where there is no contact."""
    if not problem.backend.HOSTED:
        return problem.backend.zeros(problem.bias.shape)
    out = np.empty(problem.bias.shape)
    out[:, problem.count :] = 0.0
    return out


class ScaledProblem:
    """A problem in scaled impulses x = S^-1 g: operator S N S, bias S r, friction mu s_n / s_t."""

    def __init__(
        self, problem: ConeProblem, scaling: str, coulomb: bool, guess: np.ndarray | None, history: np.ndarray
    ) -> None:
        self.problem, n = problem, problem.count
        self.backend = b = problem.backend
        mode, s = SCALING[scaling], problem.kept(_scaled)
        bias, friction, x = s.bias, s.friction, problem.guess
        if guess is None:
            guess = x  # in place: every row is read before it is written
            guess[:] = 0.0
        if mode and mode not in problem.known and isinstance(problem.operator, ContactOperator):
            made = problem.known[mode] = weights_of(problem, mode)
            self.operator = problem.operator.room_for_scaled()
            frame, compliance = self.operator.arrays.frame, self.operator.arrays.compliance
            room = ScaledArrays(frame, compliance, bias, friction, x)
            b.scale_contacts(
                problem.operator.arrays, problem.dim, mode, problem.bias, problem.friction, guess, made, room
            )
        elif mode and mode not in problem.known and isinstance(problem.operator, ArticulatedOperator):
            op = problem.operator
            made = problem.known[mode] = weights_of(problem, mode)._replace(diagonal=op.diagonal)
            self.operator = op.room_for_scaled()
            contacts = self.operator.arrays.contacts
            room = ScaledArrays(contacts.frame, contacts.compliance, bias, friction, x)
            b.scale_articulated(
                op.arrays, mode, problem.bias, problem.friction, guess, made, room, self.operator.bounded
            )
        else:
            made = weigh(problem, mode)
            self.operator = problem.operator.scaled(made.scale) if mode else problem.operator
            scale_rows = b.scale_rolling if problem.is_rolling else b.scale_rows
            scale_rows(n, problem.bias, problem.friction, made.scale, guess, bias, friction, x)
        self.diagonal, scale, weight, _ = made
        self.cone = ConeArrays(n, bias, friction)
        self.gauge = GaugeArrays(n, bias, problem.friction, scale, weight, coulomb, float(problem.pace))
        s.shift[:] = 0.0
        self.work = IterationArrays(x, problem.product_room, s.shift, s.best, s.partial, s.values, history)


def without_shift(work: IterationArrays) -> UnshiftedArrays:
    """What iterations without a correction in an array work on."""
    return UnshiftedArrays(work.x, work.nx, work.best, work.partial, work.values, work.history)


class _Scaled(NamedTuple):
    """The scaled problem, and what `IterationArrays` has besides the guess."""

    bias: np.ndarray
    friction: np.ndarray
    best: np.ndarray
    shift: np.ndarray
    partial: np.ndarray
    values: np.ndarray


def _scaled(problem: ConeProblem) -> _Scaled:
    shape, cap = problem.bias.shape, problem.bias.shape[1]
    rows, parts = (*problem.friction.shape[:-1], cap), (blocks(cap) + 2, MEASURE_ROOM)
    return _Scaled(*map(problem.backend.zeros, (shape, rows, shape, (cap,), parts, (MEASURES,))))
