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
from types import ModuleType
from typing import NamedTuple

import numpy as np

from ...enums import Law
from ...kernels import laws as formulas
from ...kernels import motion
from ...problem.bounded_rows import NO_IMPULSE
from ...problem.cone_problem import BlockGroup, ConeProblem
from ...scene.materials import PairLaws
from ...solve.base import Solution, Solver
from .base import ContactLaw, FoundContacts, fitting

__all__ = ["Restitution"]

ROUNDS = 12
"""Rounds of hits in a step at most; what would hit after the last one is braked."""
OPENINGS = 4
"""Solves again at most so often in a round because opening one contact has closed another."""
STILL = 1e-9
"""Touching contacts that part by less than this part of the fastest relative speed are at rest."""
OPEN = 4.0
"""An opened contact may close by this many times the largest relative speed of the step: as good as any, and of the
scale of the problem, by which solvers measure their error."""


class BounceArrays(NamedTuple):
    """Restitution by pair of materials (k * k,)."""

    restitution: np.ndarray
    restitution_threshold: np.ndarray


class MovedArrays(NamedTuple):
    """Contacts in a round of hits."""

    impulse: np.ndarray  # (3 or 6, cap) of the round
    speed: np.ndarray  # (cap,) normal speeds before the round
    after: np.ndarray  # (3 or 6, cap) what all impulses and forces of the step add to the velocities
    opened: np.ndarray  # (cap,) bool


class Restitution(ContactLaw):
    """Contacts that hit."""

    @staticmethod
    def acts(pairs: PairLaws) -> bool:
        """Where any pair bounces."""
        return bool(np.any(pairs.restitution))

    def __init__(self, pairs: PairLaws, backend: ModuleType) -> None:
        super().__init__(pairs, backend)
        self._bounce = BounceArrays(*(backend.send(pairs.of_pairs(name)) for name in BounceArrays._fields))
        self._diagonal, self._after = backend.zeros((6, 0)), backend.zeros((0, 0))
        self.hit = backend.zeros(0, bool)
        """Whether a contact hits in this step's first round"""
        self.hits = 0
        """Contacts that hit in this step's first round"""
        run = backend.over_contacts
        self._hit_bias, self._alone = run(formulas.hit_bias), run(formulas.alone)
        self._braked, self._opened_bias = run(formulas.braked), run(formulas.opened_bias)
        self._next_hit, self._braked_bias = run(formulas.next_hit), run(formulas.braked_bias)
        self._add, self._subtract = run(formulas.added), run(formulas.subtracted)
        self._sum = backend.over_bodies(motion.sum_of_velocities)

    def change(self, found: FoundContacts) -> None:
        """Give contacts that hit their bias."""
        n, bias = found.count, found.problem.bias
        self.hit = fitting(self.hit, bias.shape[1])
        touch = found.touch
        self._hit_bias(n, touch.pair, touch.gap, self._bounce, found.before, found.free, found.h, self.hit, bias)
        self.hits = self.backend.count_true(n, self.hit)

    def start(self, found: FoundContacts, guess: np.ndarray) -> None:
        """Start contacts that hit from the impulse that each needs alone.

        Exact where a pair of spheres meets nobody else, so that binary collisions are exact whatever the tolerance.
        """
        if self.hits:
            self._guess(found.count, found.problem, self.hit, guess)

    def _guess(self, n: int, problem: ConeProblem, hit: np.ndarray, guess: np.ndarray) -> None:
        self._diagonal = fitting(self._diagonal, 6, problem.bias.shape[1])
        problem.operator.diagonal_blocks(self._diagonal)
        self._alone(n, hit, self._diagonal, problem.bias, guess)

    def rebounds(
        self,
        found: FoundContacts,
        problem: ConeProblem,
        solution: Solution,
        shift: np.ndarray | None,
        *,
        solver: Solver,
        law: Law | str,
    ) -> tuple[ConeProblem, Solution, np.ndarray]:
        """Further rounds of hits in this step: (problem and solution of the last one, all impulses (3 or 6, cap)
        [N s]).

        problem, solution: of the first round; shift: impulses (3 or 6, cap) by which cohesion shifts its cones.
        """
        n, h, run = found.count, found.h, self.backend
        pair, _, gap = found.touch
        blocks, capacity = problem.count, problem.bias.shape[1]
        hit, fresh, opened = self.hit, run.zeros(capacity, bool), run.zeros(capacity, bool)
        speed, spent = found.before[0].copy(), [solution]
        room = OPEN * run.largest_vector(n, found.before)
        total, impulse = np.zeros_like(problem.bias), solution.impulse.copy()
        if shift is not None:
            self._subtract(blocks, shift, impulse)
        for _ in range(ROUNDS):
            closed_bias = problem.bias[0].copy()
            opened[:] = False
            for _ in range(OPENINGS):
                after = self._velocities(found, problem, total, impulse)
                moved = MovedArrays(impulse, speed, after, opened)
                self._braked(n, pair, gap, self._bounce, moved, hit, room, STILL, fresh)
                if not run.count_true(n, fresh):
                    break
                guess = solution.impulse.copy()
                self._opened_bias(n, fresh, opened, closed_bias, room, problem.bias, guess)
                self._guess(n, problem, hit, guess)
                solution = solver.solve(problem, law=law, guess=guess)
                spent.append(solution)
                impulse = solution.impulse.copy()
                if shift is not None:
                    self._subtract(blocks, shift, impulse)
            self._add(blocks, impulse, total)
            if not run.count_true(n, opened):
                break
            speed = self._velocities(found, problem, total, None)[0].copy()
            problem = self._what_is_left(found, problem, solution.impulse, closed_bias, speed, hit)
            self._next_hit(n, pair, gap, self._bounce, speed, h, hit, problem.bias)
            if not run.count_true(n, hit):
                break
            guess = np.zeros_like(impulse)
            self._guess(n, problem, hit, guess)
            solution, shift = solver.solve(problem, law=law, guess=guess), None
            spent.append(solution)
            impulse = solution.impulse
        else:  # too many rounds: whatever still closes is stopped
            self._braked_bias(n, gap, hit, speed, h, problem.bias)
            solution = solver.solve(problem, law=law)
            spent.append(solution)
            self._add(blocks, solution.impulse, total)
        return problem, _all_of(spent), total

    def _velocities(
        self, found: FoundContacts, problem: ConeProblem, total: np.ndarray, impulse: np.ndarray | None
    ) -> np.ndarray:
        """Relative velocities (3 or 6, cap) after all impulses of the step, whose array is reused."""
        if impulse is not None:
            both = total.copy()
            self._add(problem.count, impulse, both)
            total = both
        change = problem.step_operator.velocity(total)
        velocity = np.empty_like(found.velocity_free)
        self._sum(len(velocity), found.velocity_free, change, velocity)
        self._after = fitting(self._after, *problem.bias.shape)
        problem.step_operator.relative(velocity, self._after)
        return self._after

    def _what_is_left(
        self,
        found: FoundContacts,
        problem: ConeProblem,
        impulse: np.ndarray,
        closed_bias: np.ndarray,
        speed: np.ndarray,
        hit: np.ndarray,
    ) -> ConeProblem:
        """The problem of what more the contacts give after these impulses; forces (of motors, friction of joints) give
        nothing more, and what hit asks for no more than to stay apart."""
        n = found.count
        product, bias, friction = np.zeros_like(problem.bias), problem.bias.copy(), problem.friction.copy()
        problem.operator.product(impulse, product)
        bias[0] = closed_bias
        self._add(problem.count, product, bias)
        self._braked_bias(n, found.touch.gap, hit, speed, found.h, bias)
        group = BlockGroup(problem.group.kind, problem.dim, problem.count, friction)
        p = problem
        left = ConeProblem(group, bias, p.operator, p.h, {}, p.speed, p.motion, p.gap_shift)
        forces = n + np.flatnonzero(left.bounded[n:])
        left.sliding_friction[forces] = NO_IMPULSE
        bias[:, forces] = 0.0
        return left


def _all_of(spent: list[Solution]) -> Solution:
    """The last solution with the iterations of all; converged only if all are."""
    missed = [s.status for s in spent if not s.converged]
    return replace(
        spent[-1],
        iterations=sum(s.iterations for s in spent),
        products=sum(s.products for s in spent),
        status=missed[0] if missed else spent[-1].status,
    )
