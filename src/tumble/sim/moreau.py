"""The Moreau-Jean integrator: half a drift, the kick at that pose, and the other half (theta = 1/2 is the midpoint).

Contacts are found and kicked in the middle, where they hold in velocity until the next middle:
max(gap, 0) / h + u_n >= 0. (The row gap + h (u_old + u_new) / 2 >= 0 would bounce.) What overlap is left is taken out
by pseudo-velocities that move positions and nothing else: one more problem of the same contacts, without friction,
solved to a hundredth of the overlap.

Joints are kicked three times, so that the whole is symmetric in time: at the start along their rows there, so that they
close at the end; in the middle, where they leave the velocity across them as it is while forces and contacts act; and
at the end along the rows there, so that they hold in velocity (RATTLE). Without the last kick an impact would swing
from step to step for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..backends.base import KickedArrays, MotionArrays
from ..collide.contacts import Contacts
from ..enums import Law
from ..kernels import anderson, joint_steps, motion
from ..kernels import contact_rows as formulas
from ..options import StepOptions
from ..problem.cone_problem import BlockGroup, ConeProblem
from ..problem.joint_closing import close_at_end
from ..problem.joints import CLOSED, PROJECTED, Joints, motion_of
from ..scene.model import Model, State
from ..solve.apgd import SolverAPGD
from .mechanism import world_velocity

if TYPE_CHECKING:
    from .workspace import Workspace

__all__ = ["Middle", "correct_positions", "enter_middle", "hold_in_velocity"]

WORTH_REMOVING = 1e-5
"""Overlaps below this part of the smaller shape are left."""
CORRECTION = SolverAPGD(tolerance=1e-2, max_iterations=200)
ENTRIES = 40
"""Rounds at most for the joints' kick at the start; three are usual. The middle closes what they leave."""
ERRATIC = 4
"""Rounds without halving the violation after which a step that can be divided is."""
STALLED = 8
"""Rounds without halving the violation after which nothing more is expected."""
CLOSINGS = 6
"""Rounds at most that close joints again after overlaps were removed."""


class MixArrays(NamedTuple):
    """Earlier rounds of the joints' kick at the start, newest first, and scratch."""

    dg: np.ndarray  # (6, rows) differences of what they left open
    dx: np.ndarray  # (6, rows) and of the impulses
    q: np.ndarray  # (6, rows)
    g: np.ndarray  # (rows,) of the last round
    x: np.ndarray  # (rows,)
    small: np.ndarray  # (mechanisms, 6, 7)


class Middle:
    """Scratch of the integrator for n bodies, of which joints hold some in so many rows and mechanisms."""

    def __init__(self, n: int, rows: int, mechanisms: int, zeros: Callable[..., np.ndarray]) -> None:
        self.velocity, self.start_spin = zeros((n, 3)), zeros((n, 3))
        """As kicked at the start"""
        self.position, self.orientation, self.spin = zeros((n, 3)), zeros((n, 4)), zeros((n, 3))
        """In the middle"""
        self.energy = np.zeros(0)
        """Of the mechanisms of jointed bodies at the start, less that in the middle before the kick [J]"""
        self.entry, self.change = np.zeros(rows), np.zeros(rows)
        """Impulses of the kick at the start, and what a round adds to them"""
        self.past = MixArrays(*np.zeros((3, 6, rows)), *np.zeros((2, rows)), np.zeros((mechanisms, 6, 7)))


def enter_middle(
    model: Model, state: State, work: Workspace, h: float, theta: float, predict: Callable, divisible: bool
) -> tuple[KickedArrays | None, float]:
    """Drift to the middle on scratch and predict there; returns the bodies there and the work of the joints' kick at
    the start [J].

    divisible: None where that kick is not found soon. The step is then too long for the motion: a solution that lies
    far off closes the joints, but it may be another one than that of a shorter step.
    """
    joints, lead, b = work.joints, (1.0 - theta) * h, work.backend
    start = None if joints is None else joints.begin(state)
    if work.middle is None:
        rows, mechanisms = (0, 0) if joints is None or start is None else (len(start.body), joints.mechanism_count)
        work.middle = Middle(model.body_count, rows, mechanisms, b.zeros)
    m = work.middle
    kick = KickedArrays(
        model.body_inertia, model.body_locked, m.position, m.orientation, work.matrix, m.spin, work.before
    )
    m.velocity[...], m.start_spin[...] = state.velocity, state.spin
    entry, change, best, stalled = m.entry, m.change, np.inf, 0
    if joints is not None:
        old = np.zeros((model.body_count, 6))
        world_velocity(work, state, old)
        take, scale = b.over_rows(joint_steps.take_kick), b.over_rows(anderson.divided_row)
        mix = b.over_mechanisms(anderson.mixed_round)
        entry[:] = 0.0
    for turn in range(ENTRIES):
        b.drift_bodies(
            model.body_kind, model.body_inertia, model.body_locked, work.prescribed, lead,
            MotionArrays(state.position, state.orientation, m.velocity, m.start_spin),
            m.position, m.orientation, m.spin,
        )  # fmt: skip
        predict(model, kick, m.velocity, state.time + lead, h, work)
        if joints is None or start is None:
            return kick, 0.0
        joints.prepare(kick, state, h, work.inverse_inertia, work.free, theta=theta, again=turn > 0)
        miss = joints.miss(kick, work.free, theta * h, work.next_pose)
        stalled = 0 if joints.drift <= 0.5 * best else stalled + 1
        best = min(best, joints.drift)
        if divisible and stalled > ERRATIC and best > CLOSED * joints.size:
            return None, 0.0
        rounding = joints.drift <= 100.0 * PROJECTED * joints.size and stalled > 0
        if joints.drift <= PROJECTED * joints.size or rounding or stalled > STALLED or turn == ENTRIES - 1:
            break
        scale(len(entry), miss, -h, change)
        start.solve(change)
        mix(joints.mechanism_count, start.factors.mechanism, turn, change, miss, m.past, entry)
        new = old.copy()
        start.push(entry, new)
        take(len(joints.bodies), joints.bodies, model.body_kind, motion_of(state), new, m.velocity, m.start_spin)
    assert joints is not None and start is not None
    along = old.copy()  # what a state from outside has across its joints, ideal ones take
    start.push(start.stopping(old), along)
    m.energy = joints.energy.of(state.orientation, along) - joints.energy.of(kick.orientation, kick.before)
    joints.end_impulse[joints.equality] = entry
    new = old.copy()
    start.push(entry, new)
    body, mean = joints.bodies, np.zeros_like(old)
    b.over_rows(motion.mean_velocity)(len(body), body, model.body_kind, old, new, mean)
    b.over_rows(anderson.times_row)(len(entry), entry, start.speeds(mean), change)
    return kick, float(b.total(len(entry), change))


def hold_in_velocity(contacts: Contacts, problem: ConeProblem, free: np.ndarray, h: float) -> None:
    """Rewrite the normal bias: an overlap has none."""
    if contacts.count:
        rows = problem.kept(_scratch).rows
        problem.step_operator.relative(free, rows)
        hold = problem.backend.over_contacts(formulas.held_bias)
        hold(contacts.count, contacts.gap, rows, h, problem.bias)


def correct_positions(
    model: Model, state: State, contacts: Contacts, problem: ConeProblem, work: Workspace, options: StepOptions
) -> float:
    """Push overlapping bodies apart without touching velocities; returns the change of the potential energy [J].

    Bodies keep their spin, so their angular momentum turns with them: no way of moving positions alone keeps it.
    """
    n, h, theta, b = contacts.count, float(options.dt), float(options.theta), work.backend
    if n == 0:
        return 0.0
    gap, deep, rows, bias, diagonal, friction, scratch = problem.kept(_scratch)
    problem.step_operator.relative(work.velocity, rows)
    b.over_contacts(formulas.gap_at_end)(n, contacts.gap, contacts.size, rows, theta * h, WORTH_REMOVING, gap, deep)
    if not b.count_true(n, deep):
        return 0.0
    gravity = float(np.linalg.norm(b.fetch(model.gravity))) or 9.81
    recovery = -1.0 if options.recovery_speed is None else float(options.recovery_speed)
    b.over_contacts(formulas.recovery_bias)(n, gap, contacts.size, h, recovery, gravity, bias)
    problem.operator.diagonal_blocks(diagonal)
    b.free_frozen_rows(n, diagonal, bias)  # what the joints hold in the floor stays there
    group = BlockGroup(problem.group.kind, problem.dim, n, friction)
    apart = ConeProblem(group, bias, problem.operator, h, scratch)
    push = problem.step_operator.velocity(CORRECTION.solve(apart, law=Law.RELAXED).impulse)
    before, turned = state.position.copy(), state.orientation.copy()
    b.over_bodies(motion.pushed)(len(before), model.body_kind, push, h, state.position, state.orientation)
    if work.joints is not None and not _close_again(state, work.joints, model.body_kind, b):
        state.position[:], state.orientation[:] = before, turned
        return 0.0
    lifted = b.zeros(len(before))
    b.over_bodies(motion.lifted)(len(before), model.body_mass, model.gravity, before, state.position, lifted)
    return float(b.total(len(before), lifted))


class _Scratch(NamedTuple):
    """Of the correction; without friction, and without a bias along the tangents."""

    gap: np.ndarray
    deep: np.ndarray
    rows: np.ndarray
    bias: np.ndarray
    diagonal: np.ndarray
    friction: np.ndarray
    scratch: dict[tuple, tuple]


def _scratch(problem: ConeProblem) -> _Scratch:
    (rows, cap), zeros = problem.bias.shape, problem.backend.zeros
    friction = zeros((*problem.friction.shape[:-1], cap))
    own = zeros(cap), zeros(cap, bool), zeros((rows, cap)), zeros((rows, cap)), zeros((6, cap))
    return _Scratch(*own, friction, {})


def _close_again(state: State, joints: Joints, kind: np.ndarray, backend: ModuleType) -> bool:
    """Positions back onto the joints, which the correction obeyed to first order; False where they do not come."""
    turn = backend.over_bodies(motion.pushed)
    for _ in range(CLOSINGS):
        move, g = close_at_end(joints, state)
        if float(np.abs(g).max(initial=0.0)) <= CLOSED * 1e-3 * joints.size:
            return True
        turn(len(move), kind, move, 1.0, state.position, state.orientation)
    return float(np.abs(close_at_end(joints, state)[1]).max(initial=0.0)) <= CLOSED * joints.size
