"""Joints closed at the end of a step (SHAKE): impulses along the rows of the kick that make g = 0 after the drift.

Each mechanism is solved on its own, in a fixed order of operations, so mechanisms go in parallel and the
bits do not depend on threads. The plain iteration y -= S^+ g(y) / h stalls for bodies that turn by a radian and more in
a step; Anderson's acceleration then takes it on.
"""

from __future__ import annotations

import math

from .anderson import DEPTH, mix_weights
from .jit import formula
from .joint_rows import coordinate_of, frame_pair, push_row, solve_mechanism
from .joints import ANGLE, arctangent
from .linalg import row3, row4, row9
from .motion import after_kick, drift

ROUNDS = 60
"""At most so many; two or three are usual."""
SLOW = 0.1
"""It begins when a round leaves more than this part of the violation."""
STALLED = 12
"""Rounds without halving the best violation after which nothing more is expected, and after which .."""
STALLED_CLOSED = 2
""".. what is far below what joints are asked to close to counts as rounding."""


@formula
def _move(k, rest, bodies, trial):
    """Pose of body k after the drift with its new velocity."""
    velocity = trial.velocity
    inertia, locked = bodies.inertia, bodies.locked
    lx, ly, lz = locked[k, 3], locked[k, 4], locked[k, 5]
    before = (bodies.before[k, 3], bodies.before[k, 4], bodies.before[k, 5])
    after = (velocity[k, 3], velocity[k, 4], velocity[k, 5])
    s = after_kick(row9(bodies.matrix, k), row3(bodies.spin, k), before, after, lx, ly, lz)
    q, _ = drift(row4(bodies.orientation, k), row3(inertia, k), s, lx, ly, lz, rest)
    for i in range(3):
        trial.position[k, i] = bodies.position[k, i] + rest * velocity[k, i]
    for i in range(4):
        trial.orientation[k, i] = q[i]


@formula
def _value_after(c, rest, frames, pair, velocity, kick):
    """Coordinate c after the drift, of this pair of frames there; whole turns of an angle counted from where its speed
    would have taken it (kick: `CoordinateArrays`)."""
    value, jacobian = kick
    first, second, _ = coordinate_of(c, frames, pair)
    if frames.kind[c] != ANGLE:
        return first
    a, b = frames.body[frames.frame[c], 0], frames.body[frames.frame[c], 1]
    ahead = value[c]
    for i in range(6):
        ahead += rest * (jacobian[c, i] * velocity[a, i] + jacobian[c, 6 + i] * velocity[b, i])
    angle = arctangent(first, second)
    turns = math.floor((ahead - angle) / (2.0 * math.pi) + 0.5)
    return angle + 2.0 * math.pi * turns


@formula
def _violations(first, end, rest, rows, frames, trial, kick, g):
    """g of the rigid rows, 0 of the others; returns the largest and its row. Rows of a joint lie together: its frames
    are placed once."""
    worst, at = 0.0, first
    here = 0
    pair = frame_pair(here, frames, trial.position, trial.orientation)
    for r in range(first, end):
        g[r] = 0.0
        if not rows.rigid[r]:
            continue
        total = -rows.wanted[r]
        for k in range(2):
            c = rows.coord[r, k]
            if c >= 0:
                if frames.frame[c] != here:
                    here = frames.frame[c]
                    pair = frame_pair(here, frames, trial.position, trial.orientation)
                total += rows.weight[r, k] * _value_after(c, rest, frames, pair, trial.velocity, kick)
        g[r] = total
        if not abs(total) <= worst:  # also where it is not a number
            worst, at = abs(total), r
    return worst, at


@formula
def close_mechanism(mechanism, rule, rows, frames, bodies, kick, trial, work, found):
    rest, done, rounds = rule
    velocity, small = trial.velocity, work.small
    first, end = rows.factor.mechanism[mechanism], rows.factor.mechanism[mechanism + 1]
    low, high = rows.mechanism_body_start[mechanism], rows.mechanism_body_start[mechanism + 1]
    y, g, f, best_y = work.y, work.g, work.f, work.best
    for k in range(low, high):
        b = rows.mechanism_body[k]
        for i in range(6):
            work.base[b, i] = velocity[b, i]
    for r in range(first, end):
        y[r], best_y[r] = 0.0, 0.0
    best, last, stalled, count, fast = math.inf, math.inf, 0, 0, False
    at = first
    for turn in range(min(rounds, ROUNDS)):
        for k in range(low, high):
            b = rows.mechanism_body[k]
            for i in range(6):
                velocity[b, i] = work.base[b, i]
        for r in range(first, end):
            if y[r] != 0.0:
                push_row(rows.body, rows.weighted, r, y[r], velocity)
        for k in range(low, high):
            _move(rows.mechanism_body[k], rest, bodies, trial)
        worst, here = _violations(first, end, rest, rows, frames, trial, kick, g)
        if turn == 0:
            found[mechanism, 1] = worst
        stalled = 0 if worst <= 0.5 * best else stalled + 1
        if worst < best:
            best, at = worst, here
            for r in range(first, end):
                best_y[r] = y[r]
        found[mechanism, 3] = turn
        closed = best <= 100.0 * done
        if best <= done or stalled >= STALLED or (closed and stalled >= STALLED_CLOSED) or not math.isfinite(worst):
            break
        fast = fast or worst > SLOW * last
        last = worst
        for r in range(first, end):
            f[r] = -g[r] / rest
        solve_mechanism(mechanism, rows.factor, f)
        if turn > 0:  # the newest difference first
            for j in range(min(count, DEPTH - 1), 0, -1):
                for r in range(first, end):
                    work.dg[j, r], work.dx[j, r] = work.dg[j - 1, r], work.dx[j - 1, r]
            for r in range(first, end):
                work.dg[0, r] = g[r] - work.last_g[r]
                work.dx[0, r] = y[r] + f[r] - work.last_x[r]
            count = min(count + 1, DEPTH)
        for r in range(first, end):
            work.last_g[r], work.last_x[r] = g[r], y[r] + f[r]
            y[r] += f[r]
        if fast and count > 0:
            mix_weights(first, end, count, g, work.dg, work.q, small, mechanism)
            for j in range(count):
                weight = small[mechanism, j, DEPTH]
                for r in range(first, end):
                    y[r] -= weight * work.dx[j, r]
    for k in range(low, high):
        b = rows.mechanism_body[k]
        for i in range(6):
            velocity[b, i] = work.base[b, i]
    for r in range(first, end):
        y[r] = best_y[r]
        if y[r] != 0.0:
            push_row(rows.body, rows.weighted, r, y[r], velocity)
    found[mechanism, 0], found[mechanism, 2] = best, at
