"""Restitution: contacts that hit, and those that are hit because of it within the same step.

A contact that would close in this step (gap + h v_free,n <= 0) and approaches faster than the threshold *hits*: it
leaves with u_n >= -e v_n in place of gap / h + u_n >= 0. The work of an impulse g on a contact is g (v_n + u_n) / 2,
so contacts that hit with e = 1 keep the energy exactly, one alone or many at once.

The others do not. A body thrown off one contact may meet a second one in the same step, whose row gap / h + u_n >= 0
then brakes it: g (v_n - gap / h) / 2, an impact without restitution (this took 4 to 18 % of a dense elastic cloud's
energy in a second). Such contacts are left open, the step is solved without them, and those that now close are a second
round of hits, from the velocities after the first one; and so on. Impulses of the rounds add up. Likewise contacts that
touch and were parting when another hit pressed them together: their rows, g v_n / 2, would give energy. Contacts that
rest or touch (v_n + u_n below the threshold) stay in the rows: touching bodies share one impact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..collide.contacts import Contacts
from ..enums import Law
from ..problem.bounded_rows import NO_IMPULSE
from ..problem.cone_problem import BlockGroup, ConeProblem
from ..scene.materials import PairLaws
from ..solve.base import Solution, Solver

__all__ = ["guess_hits", "hits", "rebounds"]

ROUNDS = 12
"""Rounds of hits in a step at most; what would hit after the last one is braked."""
OPENINGS = 4
"""Solves again at most so often in a round because opening one contact has closed another."""
STILL = 1e-9
"""Touching contacts that part by less than this part of the fastest relative speed are at rest."""
OPEN = 4.0
"""An opened contact may close by this many times the largest relative speed of the step: as good as any, and of the
scale of the problem, by which solvers measure their error."""


def hits(
    laws: PairLaws, contacts: Contacts, problem: ConeProblem, approach: np.ndarray, free: np.ndarray, h: float
) -> np.ndarray | None:
    """Give contacts that hit their bias; returns which (count,), or None in scenes without restitution.

    approach: normal speeds (count,) before the step, negative when closing; free: velocities (n, 6) without contacts.
    """
    n, pair = contacts.count, contacts.pair[: contacts.count]
    if not np.any(laws.restitution):
        return None
    e = laws.restitution.ravel()[pair]
    new = problem.vector("x_new")
    problem.operator.relative(free, new)
    closing = contacts.gap[:n] + h * new[0, :n] <= 0.0
    hit = (e > 0.0) & closing & (-approach > laws.restitution_threshold.ravel()[pair])
    problem.bias[0, :n] = np.where(hit, e * approach + new[0, :n], problem.bias[0, :n])
    return hit


def guess_hits(problem: ConeProblem, hit: np.ndarray | None, guess: np.ndarray) -> None:
    """Start contacts that hit from the impulse that each needs alone, into guess (3 or 6, cap).

    Exact where a pair of spheres meets nobody else, so that binary collisions are exact whatever the tolerance.
    """
    if hit is None or not hit.any():
        return
    diagonal = problem.buffer("diagonal", 6, problem.bias.shape[1])
    problem.operator.diagonal_blocks(diagonal)
    at = np.flatnonzero(hit)
    stiff = diagonal[0, at] > 0.0
    guess[0, at] = np.where(stiff, np.maximum(-problem.bias[0, at], 0.0) / np.where(stiff, diagonal[0, at], 1.0), 0.0)


def rebounds(
    laws: PairLaws,
    contacts: Contacts,
    problem: ConeProblem,
    solution: Solution,
    impulse: np.ndarray,
    hit: np.ndarray | None,
    before: np.ndarray,
    free: np.ndarray,
    *,
    solver: Solver,
    law: Law | str,
    h: float,
) -> tuple[ConeProblem, Solution, np.ndarray]:
    """Further rounds of hits in this step: (problem and solution of the last one, all impulses (3 or 6, cap) [N s]).

    impulse: of the first round, whose problem, solution and hits (count,) are given.
    """
    if hit is None or not np.any(impulse[0, : contacts.count] > 0.0):
        return problem, solution, impulse
    n, pair = contacts.count, contacts.pair[: contacts.count]
    e, threshold = laws.restitution.ravel()[pair], laws.restitution_threshold.ravel()[pair]
    gap = contacts.gap[:n]
    rows = problem.vector("x_old")
    problem.operator.relative(before, rows)
    speed = rows[0, :n].copy()
    room = OPEN * float(np.sqrt((rows[:3, :n] ** 2).sum(axis=0).max()))
    spent = [solution]
    shift = solution.impulse - impulse  # of cohesion, in the first round
    total = np.zeros_like(impulse)
    for _ in range(ROUNDS):
        true_bias, opened = problem.bias[0, :n].copy(), np.zeros(n, bool)
        for _ in range(OPENINGS):
            after = _normal_speeds(problem, free, total + impulse, rows)[:n]
            braked = (e > 0.0) & ~hit & (impulse[0, :n] > 0.0) & (np.abs(speed + after) > threshold)
            braked &= (gap > 0.0) | (speed > np.maximum(threshold, STILL * room))
            if not np.any(braked & ~opened):
                break
            opened |= braked
            problem.bias[0, :n] = true_bias + np.where(opened, room, 0.0)
            guess = solution.impulse.copy()
            guess[:, :n] *= ~opened
            guess_hits(problem, hit, guess)
            solution = solver.solve(problem, law=law, guess=guess)
            spent.append(solution)
            impulse = solution.impulse - shift
        total = total + impulse
        if not opened.any():
            break
        speed = _normal_speeds(problem, free, total, rows)[:n].copy()
        problem = _after(problem, solution.impulse, true_bias)
        problem.bias[0, :n] = np.where(hit, np.maximum(gap, 0.0) / h + speed, problem.bias[0, :n])
        hit = (e > 0.0) & (gap + h * speed <= 0.0) & (-speed > threshold)
        if not hit.any():
            break
        problem.bias[0, :n] = np.where(hit, (1.0 + e) * speed, problem.bias[0, :n])
        guess = np.zeros_like(impulse)
        guess_hits(problem, hit, guess)
        solution, shift = solver.solve(problem, law=law, guess=guess), 0.0
        spent.append(solution)
        impulse = solution.impulse
    else:  # too many rounds: whatever still closes is stopped
        problem.bias[0, :n] = np.where(hit, np.maximum(gap, 0.0) / h + speed, problem.bias[0, :n])
        solution = solver.solve(problem, law=law)
        spent.append(solution)
        total = total + solution.impulse
    return problem, _all_of(spent), total


def _normal_speeds(problem: ConeProblem, free: np.ndarray, impulse: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Normal speeds of the contacts after these impulses, as the first of the rows (3 or 6, cap), which are scratch."""
    problem.operator.relative(free + problem.operator.velocity(impulse), rows)
    return rows[0]


def _after(problem: ConeProblem, impulse: np.ndarray, normal_bias: np.ndarray) -> ConeProblem:
    """The problem of what more the contacts give, after these impulses; forces (of motors, friction of joints) give
    nothing more."""
    product = problem.vector("product")
    problem.operator.product(impulse, product)
    bias = problem.bias.copy()
    bias[0, : len(normal_bias)] = normal_bias
    bias[:, : problem.count] += product[:, : problem.count]
    friction = problem.friction.copy()
    group = BlockGroup(problem.group.kind, problem.dim, problem.count, friction)
    after = ConeProblem(group, bias, problem.operator, problem.h, {}, problem.speed, problem.motion, problem.gap_shift)
    sliding = after.sliding_friction
    interval = sliding < 0.0
    sliding[interval] = NO_IMPULSE
    bias[:, interval] = 0.0
    return after


def _all_of(spent: list[Solution]) -> Solution:
    """The last solution with the iterations of all; converged only if all are."""
    missed = [s.status for s in spent if not s.converged]
    return replace(
        spent[-1],
        iterations=sum(s.iterations for s in spent),
        products=sum(s.products for s in spent),
        status=missed[0] if missed else spent[-1].status,
    )
