"""A solver that chooses: first-order iterations, then whatever the size of the problem allows."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .. import checks
from ..enums import Law, Status, Stop
from ..problem.cone_problem import ConeProblem
from ..problem.operators import ArticulatedOperator, ContactOperator, MatrixOperator
from ..problem.rolling import RollingProblem
from ..records import record
from .admm import factorise
from .apgd import SolverAPGD, SolverCalm
from .barzilai_borwein import SolverBarzilaiBorwein
from .base import (
    LOCAL,
    AntiRelaxedSolver,
    Solution,
    Solver,
    checked_guess,
    checked_law,
    checked_problem,
    stopping_rule,
)
from .face import SolverFace
from .fixed_point import SolverFixedPoint
from .interior_point import SolverInteriorPoint
from .matrix_form import MatrixForm
from .ncp_interior_point import SolverNCPInteriorPoint
from .nsgs import SolverNSGS
from .reach import out_of_reach
from .semismooth_newton import SolverSemismoothNewton

__all__ = ["SolverAuto"]

FACTORISE = 5000
"""No matrix is factorised above so many contacts (jointed bodies: a fifth of that, their matrix is dense)."""
STEP_LIMIT = 200
"""In a simulation other methods than APGD are tried up to so many contacts only: a run should not stand still."""
AIMS = ((1e-8, 0, 20_000), (1e-6, 100, 0), (1e-5, 400, 1_000_000))
"""In a simulation iterations go beyond the tolerance while they are cheap: (part of g h that no contact errs by more,
iterations, iterations times contacts). Small scenes become exact, and piles come to rest: errors that a step leaves are
gaps and speeds that the next one has to deal with. The last, dearest one waits until neighbours move, on average, no
faster than gravity accelerates them in a step: before that there is nothing at rest to keep."""
QUIET, SMALL = (1e-7, 5_000_000), 500
"""The last aim, and its iterations times contacts, where the warm start leaves little to do and up to so many contacts:
in a stack at rest each layer adds to what the others leave."""
FACE = 4
"""Where nothing moves, so many conjugate gradients a contact are tried before the dear aims."""
PROBE = (500, 5000, 1_000_000)
"""Iterations that look for a proof that there is no solution, where the first ones have found none: at least, at most,
and times contacts."""
SLICE = {Law.RELAXED: 300, Law.COULOMB: 500}
"""First-order iterations between two looks at the progress."""
PATIENT = {Law.RELAXED: 2.0, Law.COULOMB: 3.0}
"""First-order iterations go on while, at the rate of the last slice, so many more slices suffice."""
DEARER = {Law.RELAXED: 1.0, Law.COULOMB: 3.0}
"""What the interior point of a law costs, in relaxed ones."""
DEAR = 1.0
"""Where an interior-point solve is estimated at more [s], the fixed point goes first."""
TOO_DEAR = 60.0
"""Where it is estimated at more than this [s], nothing is factorised."""


@dataclass(frozen=True, kw_only=True)
class SolverAuto:
    """Chooses by law, size and progress, and escalates; every method starts from the best impulses so far.

    | # | method | when |
    | --- | --- | --- |
    | 1 | apgd, slices of 300 (relaxed) or 500 | always; goes on while at its rate 2 or 3 more slices suffice |
    | 2 | apgd, slices that double | until it has had half of what an interior point is estimated to cost |
    | 3 | interior_point (relaxed) | up to 5000 contacts, if estimated at less than a minute |
    | 4 | ncp_interior_point (both laws) | the same |
    | 5 | semismooth_newton, a polish | the same |
    | 6 | fixed_point (Coulomb) | always; before 3-5 where these are estimated at more than 1 s |
    | 7 | nsgs (Coulomb) | without joints |
    | 8 | apgd, what is left of its iterations and time | always |

    The estimate counts the entries of a factor of N + I, which is made after 1; it does not look at the clock, so the
    answer is the same in every run as long as `seconds` is None.
    Jointed bodies: factorisations up to 1000 blocks. Rolling friction in a simulation: apgd alone. The next method is
    started only while the time lasts; the best impulses of all are returned, with the smallest natural map, and
    `Solution.tried` says who did what.
    """

    tolerance: float | None = None
    """The natural map must fall below this. None: 1e-8 (relaxed) or 1e-6 (Coulomb), 1e-5 above 5000 contacts; the steps
    of a simulation: 1e-4 of the local error, whatever their size (`docs/measures.md`)."""
    max_iterations: int | None = None
    """First-order iterations in all. None: 100000 up to 4000 contacts, falling to 1000 for larger problems; the steps
    of a simulation: as `SolverAPGD`."""
    seconds: float | None = None
    """No further method is started after this [s]; what is returned then depends on the speed of the machine. None: no
    limit, each method has its own."""
    steps: bool = False
    """For the steps of a simulation (its default): no clock, so that results are the same on every run. Tolerance and
    iterations are those of `SolverAPGD`, which is tried first and goes beyond the tolerance while iterations are cheap,
    so that piles come to rest; what it misses APGD with less momentum tries, then `SolverBarzilaiBorwein`. Up to 200
    contacts the others follow, unless max_iterations is given."""

    name: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            checks.number("SolverAuto.tolerance", self.tolerance, at_least=0.0)
        if self.max_iterations is not None:
            checks.integer("SolverAuto.max_iterations", self.max_iterations, at_least=1)
        if self.seconds is not None:
            checks.number("SolverAuto.seconds", self.seconds, above=0.0, unit="s")
        checks.flag("SolverAuto.steps", self.steps)

    def solve(
        self, problem: ConeProblem | RollingProblem, *, law: Law | str = Law.COULOMB, guess: np.ndarray | None = None
    ) -> Solution:
        """Solve under a law, from a guess (3, cap) [N s] or from zero."""
        law = checked_law("SolverAuto", law)
        begin = time.perf_counter()
        if isinstance(problem, RollingProblem):
            found = SolverInteriorPoint(tolerance=self.tolerance_for(problem.count, law)).solve(problem, law=law)
            entry = (found.solver, found.iterations, time.perf_counter() - begin, found.residuals.natural_map)
            return replace(found, solver=self.name, tried=(entry,))
        checked_problem("SolverAuto", problem, rolling=True)
        if guess is not None:
            guess = checked_guess("SolverAuto", guess, problem)
        deadline = math.inf if self.seconds is None else begin + self.seconds
        if problem.count == 0:
            found = _descent(SolverAPGD, 0.0, Stop.NATURAL_MAP, 1).solve(problem, law=law)
            return replace(found, solver=self.name, tried=())
        search = _Search(problem, law, *self._rule(problem, law), guess, deadline)
        left, cost = self._first_order(search)
        # The others know the natural map only: where it is not the rule they go far below what suffices.
        tolerance = search.tolerance if search.stop == Stop.NATURAL_MAP else 1e-9
        for make in self._methods(problem, law, tolerance, cost):
            if not search.over:
                search.attempt(make())
        search.descend(left, left, lambda: True)
        return search.result(self.name)

    def _first_order(self, search: _Search) -> tuple[int, _Cost | None]:
        """Rules 1 and 2; returns the iterations left and the estimate, None where nothing is to be factorised."""
        law, n = search.law, search.problem.count
        if search.problem.is_rolling and not self.steps:
            left = self.max_iterations or max(SolverAPGD().iteration_limit(n), min(100_000, 400_000_000 // max(1, n)))
            return search.descend(left, left, lambda: True), None
        if self.steps:
            left = self.max_iterations or _defaults(SolverAPGD).iteration_limit(n)
            if search.local:
                unit = search.problem.speed / search.problem.pace
                for part, least, shared in AIMS:
                    count = min(left, max(least, shared // max(1, n)))
                    if part == AIMS[-1][0]:
                        if search.problem.motion > search.problem.speed:  # nothing rests yet
                            part = math.inf
                        elif n <= SMALL and search.error <= part * unit:  # nothing moves
                            part, count = QUIET[0], min(left, QUIET[1] // max(1, n))
                    if count:
                        found = search.attempt(search.descent(count, min(search.tolerance, part * unit)))
                        if search.gives_up() or found.converged:
                            return 0, None
                    left -= count
                    if part == AIMS[0][0] and left and _rests(search):
                        if _stands_still(search, unit, left):
                            return 0, None
                        left -= search.tried[-1][1] if self.max_iterations else 0
                if not search.over and search.gives_up(max(PROBE[0], min(PROBE[1], PROBE[2] // max(1, n)))):
                    return 0, None
                if left and not (search.over or search.problem.is_rolling) and _has_spectral(search.problem):
                    if law == Law.COULOMB and isinstance(search.problem.operator, ContactOperator):
                        count = left // 2 if self.max_iterations else left  # in lanes, half as dear as the next
                        if count:
                            search.attempt(search.descent(count, method=SolverCalm))
                        left -= left // 2
                    if not search.over:
                        search.attempt(search.descent(left, method=SolverBarzilaiBorwein))
                    left = 0
            left = search.descend(left, left, lambda: True)
            further = self.max_iterations is None and n <= STEP_LIMIT and not search.over
            further = further and not search.problem.is_rolling and search.problem.backend.HOSTED
            return left, _Cost(search.problem) if further else None
        left = self.max_iterations or max(1000, min(100_000, 400_000_000 // max(1, n)))
        most = left
        left = search.descend(left, SLICE[law], lambda: search.promising(PATIENT[law]))
        jointed = isinstance(search.problem.operator, ArticulatedOperator)
        if search.over or n > (FACTORISE // 5 if jointed else FACTORISE):
            return left, None
        cost = _Cost(search.problem)
        enough = 0.5 * DEARER[law] * cost.solve / cost.iteration
        left = search.descend(left, SLICE[law], lambda: search.iterations < min(most, enough), growth=2)
        return left, cost

    def _rule(self, problem: ConeProblem, law: Law) -> tuple[Stop, float]:
        """The stopping quantity and its tolerance for a problem."""
        if self.steps:
            return stopping_rule(None, self.tolerance, problem)
        return Stop.NATURAL_MAP, self.tolerance_for(problem.count, law)

    def tolerance_for(self, contacts: int, law: Law) -> float:
        """The tolerance of the natural map for a stored problem of this size."""
        if self.tolerance is not None:
            return float(self.tolerance)
        if contacts > FACTORISE:
            return 1e-5
        return 1e-6 if law == Law.COULOMB else 1e-8

    def _methods(
        self, problem: ConeProblem, law: Law, tolerance: float, cost: _Cost | None
    ) -> list[Callable[[], Solver]]:
        """What comes after the first-order iterations, in order."""
        if problem.is_rolling:
            return []
        relaxed = law == Law.RELAXED
        seconds = math.inf if cost is None else DEARER[law] * cost.solve
        out: list[Callable[[], Solver]] = []
        if seconds < TOO_DEAR:
            if relaxed:
                out.append(lambda: SolverInteriorPoint(tolerance=tolerance))
            out.append(lambda: SolverNCPInteriorPoint(tolerance=tolerance))
            out.append(lambda: SolverSemismoothNewton(tolerance=tolerance, warm_up=0, max_iterations=30))
        if not relaxed and not (self.steps and cost is None):
            rounds = SolverFixedPoint(tolerance=tolerance, max_iterations=30)
            out.insert(0 if seconds > DEAR else len(out), lambda: rounds)
            if not isinstance(problem.operator, ArticulatedOperator):
                out.append(lambda: SolverNSGS(tolerance=tolerance, max_iterations=500))
        return out


@functools.cache
def _defaults(method: type[AntiRelaxedSolver]) -> AntiRelaxedSolver:
    return method()


def _descent(method: type[AntiRelaxedSolver], tolerance: float, stop: Stop, iterations: int) -> AntiRelaxedSolver:
    """A first-order method with these options, which have been checked: several are made in every step."""
    made = object.__new__(method)
    vars(made).update(vars(_defaults(method)), tolerance=tolerance, stop=stop, max_iterations=iterations)
    return made


def _rests(search: _Search) -> bool:
    """Whether nothing moves and few contacts are left to settle."""
    problem = search.problem
    small = problem.count <= SMALL and problem.motion <= problem.speed and not problem.is_rolling
    return small and _has_spectral(problem) and search.error <= search.tolerance


def _has_spectral(problem: ConeProblem) -> bool:
    """Whether the other compiled iterations take the problem: on a device that of free bodies only."""
    return problem.backend.HOSTED or isinstance(problem.operator, ContactOperator)


def _stands_still(search: _Search, unit: float, left: int) -> bool:
    """Whether conjugate gradients for the present cases of the contacts leave nothing to do."""
    count = min(left, FACE * search.problem.count)
    search.attempt(search.descent(count, AIMS[0][0] * unit, SolverFace), QUIET[0] * unit)
    return search.error <= QUIET[0] * unit


class _Cost:
    """Estimates in seconds of one thread, from counts alone; good to a factor of 3 on 50 to 2000 contacts."""

    def __init__(self, problem: ConeProblem) -> None:
        form = MatrixForm(problem)
        fill = factorise(form.matrix, 1.0).L.nnz
        matrix = isinstance(problem.operator, MatrixOperator)
        self.iteration = 1e-6 + (2e-8 * form.count + 2.5e-9 * form.matrix.nnz if matrix else 4.5e-8 * form.count)
        """A first-order iteration"""
        self.solve = 20.0 * (3e-4 + 1.5e-6 * form.count + 5e-8 * fill)
        """A relaxed interior-point solve"""


class _Search:
    """The best impulses so far and what was tried."""

    def __init__(
        self,
        problem: ConeProblem,
        law: Law,
        stop: Stop,
        tolerance: float,
        guess: np.ndarray | None,
        deadline: float,
    ) -> None:
        self.problem, self.law, self.deadline = problem, law, deadline
        self.stop, self.tolerance, self.local = stop, tolerance, stop == LOCAL
        self.guess = guess  # the first attempt always replaces it
        self.best: Solution | None = None
        self.lost = False
        """There is no solution in reach, .."""
        self.ray: np.ndarray | None = None
        """.. as these impulses show."""
        self.tried: list[tuple[str, int, float, float]] = []
        self.products = 0
        self.left = 1.0
        """Part of the first guess's stopping quantity that is left"""

    @property
    def error(self) -> float:
        """The smallest stopping quantity so far."""
        return math.inf if self.best is None else self._error(self.best)

    def _error(self, found: Solution) -> float:
        return found.residuals.local_error if self.local else found.residuals.natural_map

    @property
    def over(self) -> bool:
        """Solved, given up, or out of time."""
        late = self.best is not None and time.perf_counter() > self.deadline
        return self.error <= self.tolerance or self.lost or late

    def attempt(self, solver: Solver, needed: float = math.inf) -> Solution:
        """Let a solver start from the best impulses. What errs by more than needed is not kept."""
        begin = time.perf_counter()
        found = solver.solve(self.problem, law=self.law, guess=self.guess)
        error = self._error(found)
        self.tried.append((solver.name, found.iterations, time.perf_counter() - begin, error))
        self.products += found.products
        if self.best is None or (error < self.error and error <= needed):
            self.best, self.guess = found, found.impulse
            self.left *= found.left
        return found

    def gives_up(self, probe: int = 0) -> bool:
        """Whether the impulses so far, or those after so many iterations that do not mind their size, show that there
        is no solution in reach: nothing more is tried then."""
        if self.error <= self.tolerance and not isinstance(self.problem.operator, ArticulatedOperator):
            return False
        found = self.best
        assert found is not None
        if probe:
            solver = _descent(SolverAPGD, 0.0, Stop.NATURAL_MAP, probe)
            found = solver.solve(self.problem, law=Law.RELAXED, guess=self.guess)
        self.lost = out_of_reach(self.problem, found.impulse)
        self.ray = found.impulse if self.lost else None
        return self.lost

    @property
    def iterations(self) -> int:
        """First-order iterations so far."""
        return sum(entry[1] for entry in self.tried if entry[0] == SolverAPGD.name)

    def descend(self, left: int, size: int, wanted: Callable[[], bool], growth: int = 1) -> int:
        """Slices of APGD while they are wanted; large problems get all in one. Returns the iterations left, none when
        the method itself has given up."""
        while left > 0 and not self.over and wanted():
            count = min(left, size if self.problem.count <= FACTORISE else left, self._affordable())
            found = self.attempt(self.descent(count))
            left, size = left - count, size * growth
            if found.status != Status.MAX_ITERATIONS:
                return 0
        return left

    def descent(
        self, iterations: int, aim: float | None = None, method: type[AntiRelaxedSolver] = SolverAPGD
    ) -> AntiRelaxedSolver:
        """So many iterations of a first-order method, to the tolerance or to an aim beyond it."""
        return _descent(method, self.tolerance if aim is None else aim, self.stop, iterations)

    def _affordable(self) -> int:
        """First-order iterations that the time left allows, at the speed of the last ones."""
        if math.isfinite(self.deadline):
            for name, iterations, seconds, _ in reversed(self.tried):
                if name == SolverAPGD.name and iterations:
                    return max(100, int((self.deadline - time.perf_counter()) * iterations / seconds))
        return 2**62

    def promising(self, patient: float) -> bool:
        """Whether the last slice's rate reaches the tolerance within so many more slices."""
        if not self.tried:
            return True
        if self.tolerance == 0.0 or not 0.0 < self.error < math.inf:
            return False
        before = min([1.0, *(entry[3] for entry in self.tried[:-1])])
        return math.log(self.error / self.tolerance) <= patient * math.log(max(1.0, before / self.error))

    def result(self, name: str) -> Solution:
        """The best, with the sums of all."""
        solved = self.error <= self.tolerance
        late = time.perf_counter() > self.deadline
        status = Status.CONVERGED if solved else Status.MAX_ITERATIONS if late else Status.STALLED
        if self.lost:
            status = Status.OUT_OF_REACH
        if not math.isfinite(self.error):
            status = Status.DIVERGED
        iterations = sum(entry[1] for entry in self.tried)
        assert self.best is not None
        b = self.best
        return record(
            Solution,
            impulse=b.impulse,
            law=b.law,
            solver=name,
            status=status,
            iterations=iterations,
            products=self.products,
            residuals=b.residuals,
            history=b.history,
            tried=tuple(self.tried),
            ray=self.ray,
            left=self.left,
        )
