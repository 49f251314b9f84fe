"""One step, top to bottom: predict -> place -> broad -> narrow -> assemble -> solve -> advance -> report.

Bodies drift, are kicked by forces, joints and contacts at one pose, and drift again (`integrators.md`). Each stage is a
function that takes what it reads and returns what it found. The State is read until everything is solved; then
`_advance` and nobody else writes it, in this order: the drift, the push that takes overlaps out (`moreau`), velocities
along the joints (`mechanism`), what contacts and joints remember, the time, who comes and goes (`flow_step`, with the
places that `room` finds). Where the joints do not close it puts back what it had written; `parts`, which tries again,
and `Simulation`, which undoes a step that blew up, put back states as a whole.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..backends.base import KickedArrays, MotionArrays
from ..collide.contacts import Contacts
from ..enums import Integrator, Status
from ..options import StepOptions
from ..problem.assemble import taken_back
from ..problem.cone_problem import ConeProblem
from ..records import record
from ..scene.model import State
from ..solve.base import Solution, Solver
from ..solve.unique_forces import unique_solution
from .books import Books
from .mechanism import Reaction, react
from .moreau import correct_positions, enter_middle, hold_in_velocity
from .prediction import at_start, drop_normal_surface, predict, prescribe_motion
from .report import Solved, StepReport, step_report
from .stuck import leave_overlaps, limit_impulses
from .workspace import Workspace

__all__ = ["StepResult", "step"]

LIMIT_ROUNDS = 3
"""Solves again at most so often because a joint limit that was thought far has been passed."""


@dataclass(frozen=True)
class StepResult:
    """A step's report and what it worked with; the arrays are reused by the next step."""

    report: StepReport
    contacts: Contacts
    problem: ConeProblem
    solution: Solution
    """Of the problem, whose impulses are shifted where there is cohesion; with restitution, of the last hits"""
    impulse: np.ndarray
    """(3, cap) impulses of the contacts themselves, rows n, u, w [N s]; with rolling friction (6, cap), then the
    torques about n, u, w [N m s]"""
    dt: float
    """Time over which the impulses acted [s]: the step's, or that of its last part"""
    not_finite: int
    """Bodies whose new state is not finite"""
    travel: float
    """Largest travel of a dynamic body in units of its smallest half-extent"""


class _Scheme(NamedTuple):
    """The options as a step uses them."""

    h: float
    rest: float
    """Drift after the kick [s]: Euler kicks at the start. Contacts hold until the next kick."""
    margin: float
    """Up to which gap a pair is a contact [m], negative: its own"""
    recovery: float
    """[m/s], negative: each pair's own"""
    moreau: bool
    options: StepOptions
    divisible: bool
    """Give up, with the state as it was, where the joints cannot be closed"""

    @classmethod
    def of(cls, options: StepOptions, work: Workspace, divisible: bool) -> _Scheme:
        h, moreau = float(options.dt), options.integrator == Integrator.MOREAU
        margin = -1.0 if options.margin is None else float(options.margin)
        if work.reach > (work.smallest_margin if margin < 0.0 else margin):
            margin = work.reach
        recovery = -1.0 if options.recovery_speed is None else float(options.recovery_speed)
        return cls(h, float(options.theta) * h if moreau else h, margin, recovery, moreau, options, divisible)


class _Begun(NamedTuple):
    """Bodies at the pose of the kick."""

    kick: KickedArrays
    entry: float
    """Work of the joints' kick at the start, with Moreau's integrator [J]"""


class _Task(NamedTuple):
    """What is to be solved."""

    problem: ConeProblem
    guess: np.ndarray
    warm: int
    """Contacts that were there a step ago"""


def step(
    state: State, options: StepOptions, *, solver: Solver, work: Workspace, divisible: bool = False
) -> StepResult | None:
    """Advance the state by one step and report.

    divisible: give up, with the state as it was, where the joints cannot be closed at the end (see `parts`).
    """
    scheme, seconds, contacts = _Scheme.of(options, work, divisible), {}, work.contacts
    h, margin = scheme.h, scheme.margin
    if work.seen is not None:
        work.seen.show(state.presence)
    lap = _Laps(seconds)
    begun = _predict(state, scheme, work)
    if begun is None:
        return None
    lap("predict")
    kick = begun.kick
    work.pairs.place(kick.position, kick.orientation, work.matrix, work.free, h, margin)
    lap("place")
    work.pairs.find(work.free, h, margin)
    lap("broad")
    work.narrow.find(work.pairs, kick.position, work.free, h, margin, contacts)
    lap("narrow")
    task = _assemble(state, begun, scheme, work)
    lap("assemble")
    solved = _solve(task, solver, scheme, work)
    lap("solve")
    books = _advance(state, begun, task, solved, scheme, work)
    if books is None:
        return None
    lap("advance")
    flow = dict(zip(work.model.flow.columns, state.flow.tolist())) if work.flow is not None else {}
    report = step_report(state, contacts, work.rows.overlap, solved, task.warm, books, work.joints, h, seconds, flow)
    return record(
        StepResult,
        report=report,
        contacts=contacts,
        problem=solved.problem,
        solution=solved.solution,
        impulse=solved.impulse,
        dt=h,
        not_finite=books.not_finite,
        travel=books.travel,
    )


# ---------------------------------------------------------------------- the stages


def _predict(state: State, scheme: _Scheme, work: Workspace) -> _Begun | None:
    """Prescribed motion, and velocities before and after the kick of the forces; None where Moreau's integrator cannot
    close the joints on the way to the middle."""
    h, model = scheme.h, work.model
    prescribe_motion(model, state, h, work)
    if scheme.moreau:
        kick, entry = enter_middle(model, state, work, h, scheme.options.theta, predict, scheme.divisible)
        return None if kick is None else _Begun(kick, entry)
    kick = at_start(model, state, work)
    predict(model, kick, state.velocity, state.time, h, work)
    if work.joints is not None:
        work.joints.prepare(kick, state, h, work.inverse_inertia, work.free)
    return _Begun(kick, 0.0)


def _assemble(state: State, begun: _Begun, scheme: _Scheme, work: Workspace) -> _Task:
    """The cone problem of the contacts, changed by the laws of their materials, and a guess."""
    h, contacts = scheme.h, work.contacts
    problem = work.rows.assemble(
        contacts,
        begun.kick.position,
        work.free,
        work.inverse_inertia,
        h,
        scheme.recovery,
        work.before,
        state.memory,
        recovers=state.recovers if scheme.options.leave_gaps and not scheme.moreau else None,
    )
    if scheme.moreau:
        hold_in_velocity(contacts, problem, work.free, h)
    if work.surface is not None:
        drop_normal_surface(contacts, problem, begun.kick.position, work.surface)
    remembered = work.rows.recall(contacts, state.memory)
    work.laws.change(contacts, problem, work.rows.before, work.free, h, remembered)
    guess, warm = _first_guess(problem, state, scheme.options, work)
    return _Task(problem, guess, warm)


def _first_guess(problem: ConeProblem, state: State, options: StepOptions, work: Workspace) -> tuple[np.ndarray, int]:
    """Impulses that the solver starts from, those remembered where there are any, and how many contacts had some."""
    contacts, guess, warm = work.contacts, problem.guess, 0
    if options.warm_start:
        warm = work.rows.warm_start(contacts, state.memory, guess)
    else:
        guess[:] = 0.0
    if work.joints is not None:
        bounded = slice(contacts.count, problem.count)
        guess[:, bounded] = 0.0
        if options.warm_start:
            guess[0, bounded] = state.row_impulse[work.joints.bounded.active]
    work.laws.start(guess)
    return guess, warm


def _solve(task: _Task, solver: Solver, scheme: _Scheme, work: Workspace) -> Solved:
    """Impulses of the contacts: the solver's, or the unique ones, and those of further rounds of hits."""
    problem, solution = _solve_with_limits(task, solver, scheme, work)
    unique = None
    if scheme.options.unique_forces:
        solution, unique = unique_solution(problem, solution)
    problem, solution, impulse = work.laws.rebounds(problem, solution, solver=solver, law=scheme.options.law)
    return Solved(problem, solution, impulse, unique)


def _solve_with_limits(task: _Task, solver: Solver, scheme: _Scheme, work: Workspace) -> tuple[ConeProblem, Solution]:
    """Solve, and again with more rows while a joint passes a limit that was thought far; the last problem with it."""
    problem, guess, law, contacts = task.problem, task.guess, scheme.options.law, work.contacts
    solution = _in_reach(solver.solve(problem, law=law, guess=guess), task, solver, scheme, work)
    joints = work.joints
    for _ in range(LIMIT_ROUNDS):
        if joints is None or joints.bounded.all_count:
            break
        work.set_velocity(problem.step_operator.velocity(work.laws.unshifted(solution)))
        if not joints.catch_limits(work.velocity, scheme.h):
            break
        problem = work.rows.with_new_bounds(contacts, scheme.h, work.laws.pull)
        guess[:, : contacts.count] = solution.impulse[:, : contacts.count]
        guess[:, contacts.count : problem.count] = 0.0
        solution = solver.solve(problem, law=law, guess=guess)
    return problem, solution


def _in_reach(solution: Solution, task: _Task, solver: Solver, scheme: _Scheme, work: Workspace) -> Solution:
    """The solution of the task's problem, or where it has none that of the same without overlaps to be recovered."""
    if solution.ray is None:
        return solution
    problem, status = task.problem, Status.STALLED  # bodies that jam each other without an overlap
    if leave_overlaps(problem, work.contacts, solution.ray, work.free, work.laws.hit):
        task.guess[:] = 0.0
        solution, status = solver.solve(problem, law=scheme.options.law, guess=task.guess), Status.OUT_OF_REACH
    if solution.ray is not None:
        limit_impulses(problem, solution.impulse)
    return replace(solution, status=status)


def _advance(
    state: State, begun: _Begun, task: _Task, solved: Solved, scheme: _Scheme, work: Workspace
) -> Books | None:
    """Write the state at the end of the step; None, with the state as it was, where the joints do not close."""
    model, contacts, joints, h = work.model, work.contacts, work.joints, scheme.h
    problem, impulse = solved.problem, solved.impulse
    books, change, after = work.bookkeeper.contacts(problem, impulse, work, h)
    if scheme.moreau:  # its velocities push nothing apart
        books.normal, books.recovery = books.normal + books.recovery, 0.0
    reaction = None
    if joints is not None:
        bounded = impulse[0, contacts.count : problem.count]
        start = work.middle.energy if scheme.moreau and work.middle is not None else None
        reaction = react(begun.kick, bounded, work, change, h, scheme.rest, start)
        if scheme.divisible and joints.open(state):
            return None
    if work.laws.columns:
        if reaction is not None:
            problem.step_operator.relative(work.velocity, after)
        books.elastic = work.laws.end(impulse, after, work.velocity, h)
    if work.flow is not None:
        work.flow.begin(state)
    if reaction is not None:
        work.set_velocity(change)
    kept = None
    if scheme.divisible:
        kept = (state.position.copy(), state.orientation.copy(), state.velocity.copy(), state.spin.copy())
    books.take_sums(_drift(state, begun.kick, change, scheme, work))
    if scheme.moreau:
        books.lift(correct_positions(model, state, contacts, problem, work, scheme.options))
    if reaction is not None:
        _hold(state, begun, reaction, books, scheme, work)
        strained = joints is not None and joints.strained and solved.solution.converged
        if kept is not None and strained:  # where it has not converged it is the contacts' fault
            state.position, state.orientation, state.velocity, state.spin = kept
            return None
    state.memory = work.rows.remember(contacts, impulse)
    state.recovers = taken_back(solved.solution.converged, solved.solution.left)
    if joints is not None:
        joints.finish(state, work.velocity, h)
    state.step += 1
    state.time += h
    if work.flow is not None:
        books.came = work.flow.end(state)
    return books


def _drift(state: State, kick: KickedArrays, change: np.ndarray, scheme: _Scheme, work: Workspace) -> np.ndarray:
    """Velocities and poses after the kick and the drift that follows; returns sums of energies and largest speeds."""
    sums = work.backend.advance(
        work.weights,
        kick,
        work.loads,
        work.free,
        change,
        scheme.h,
        scheme.rest,
        MotionArrays(state.position, state.orientation, state.velocity, state.spin),
        work.body_partial,
    )
    for body, (position, orientation) in work.next_pose.items():
        state.position[body], state.orientation[body] = position, orientation
    return sums


def _hold(state: State, begun: _Begun, reaction: Reaction, books: Books, scheme: _Scheme, work: Workspace) -> None:
    """Velocities along the joints at the end of the step, and what the joints did in it."""
    assert work.joints is not None
    left, by_motors = work.joints.hold(state, work.held, scheme.h, reaction.wanted)
    books.kinetic += left
    books.joints = begun.entry + reaction.work + left
    books.recovery += reaction.recovered
    books.resist(reaction.resisted)
    books.motors = reaction.by_motors + by_motors
    books.external -= reaction.crossed


class _Laps:
    """Stopwatch for the stages, one after the other."""

    __slots__ = ("_last", "_seconds")

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds, self._last = seconds, time.perf_counter()

    def __call__(self, stage: str) -> None:
        now = time.perf_counter()
        self._seconds[stage], self._last = now - self._last, now
