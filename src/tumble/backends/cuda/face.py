"""Conjugate gradients in the face of the impulses: seven kernels an iteration, recorded and repeated as a graph.

See `backends.cpu.face`. The scalars stay on the device; where the gradients are spent the iterations that are left of a
round change nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba.cuda as cuda
import numpy as np

from ...kernels.cones import bound_of, coulomb_shift, is_interval, project
from ..cpu.face import EDGE, FREE, HELD, NORMAL, RAY, SPENT, _along
from ..cpu.first_order import CONVERGED, MAX_ITERATIONS, RUNNING, STALLED
from . import provider
from .apgd import _judge, _kept
from .barzilai_borwein import Vectors, _lay
from .launch import Kernel
from .nesterov import THREADS, relative

SQUARES, FIRST, SHARE, TURN, COUNT, DONE = range(6)
"""Places of the scalars: what is left (squared), of it at the start, a and b of the iteration, iterations, the end"""


class Face(NamedTuple):
    """What the kernels have beside `Loop`, whose d is the direction and whose old is N x."""

    x: Any  # (3, cap) from which the face is taken
    kind: Any  # (cap,) cases
    nd: Any  # (3, cap)
    moved: Any  # (3, cap)
    left: Any  # (3, cap)
    trial: Any  # (3, cap)
    scalars: Any  # (6,)
    coulomb: int


def enter(p, q):
    """Cases of all contacts, what is left of their equations, and its square in a block. p.x, p.old: x and N x."""
    shared = cuda.shared.array(THREADS, np.float64)
    t = cuda.threadIdx.x
    c = cuda.grid(1)
    squares = 0.0
    if c < p.size[0]:
        x0, x1, x2, m = p.x[0, c], p.x[1, c], p.x[2, c], p.friction[c]
        u0, u1, u2 = p.old[0, c] + p.bias[0, c], p.old[1, c] + p.bias[1, c], p.old[2, c] + p.bias[2, c]
        case = HELD
        if is_interval(m):
            if abs(x0) < bound_of(m):
                case = NORMAL
        elif x0 > 0.0:
            case = FREE if math.sqrt(x1 * x1 + x2 * x2) < EDGE * m * x0 else RAY
        if case == RAY and q.coulomb:
            u0 += coulomb_shift(u1, u2, m)
        q.kind[c] = case
        r0, r1, r2 = _along(case, x0, x1, x2, -u0, -u1, -u2)
        q.left[0, c], q.left[1, c], q.left[2, c] = r0, r1, r2
        p.d[0, c], p.d[1, c], p.d[2, c] = r0, r1, r2
        squares = r0 * r0 + r1 * r1 + r2 * r2
        for k in range(3):
            q.moved[k, c] = 0.0
    shared[t] = squares
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            shared[t] += shared[t + half]
        half //= 2
    if t == 0:
        p.partial[cuda.blockIdx.x, 0] = shared[0]


def into(p, q):
    """N d in the face, and d.Nd of a block. p.x: the direction."""
    shared = cuda.shared.array(THREADS, np.float64)
    t = cuda.threadIdx.x
    c = cuda.grid(1)
    bent = 0.0
    if c < p.size[0]:
        u0, u1, u2 = relative(c, p)
        n0, n1, n2 = _along(q.kind[c], q.x[0, c], q.x[1, c], q.x[2, c], u0, u1, u2)
        q.nd[0, c], q.nd[1, c], q.nd[2, c] = n0, n1, n2
        bent = p.x[0, c] * n0 + p.x[1, c] * n1 + p.x[2, c] * n2
    shared[t] = bent
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            shared[t] += shared[t + half]
        half //= 2
    if t == 0:
        p.partial[cuda.blockIdx.x, 0] = shared[0]


def advance(p, q):
    """moved += a d, left -= a N d, and what is left in a block."""
    shared = cuda.shared.array(THREADS, np.float64)
    t = cuda.threadIdx.x
    c = cuda.grid(1)
    squares = 0.0
    if c < p.size[0]:
        a = q.scalars[SHARE]
        for k in range(3):
            q.moved[k, c] += a * p.d[k, c]
            r = q.left[k, c] - a * q.nd[k, c]
            q.left[k, c] = r
            squares += r * r
    shared[t] = squares
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            shared[t] += shared[t + half]
        half //= 2
    if t == 0:
        p.partial[cuda.blockIdx.x, 0] = shared[0]


def decide(p, q, what):
    """The sum of all blocks, and the scalar that follows from it; one block. what: 0 at the start, 1 a from d.Nd, 2 b
    from what is left."""
    shared = cuda.shared.array(THREADS, np.float64)
    t = cuda.threadIdx.x
    value = 0.0
    for block in range(t, p.size[1], THREADS):
        value += p.partial[block, 0]
    shared[t] = value
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            shared[t] += shared[t + half]
        half //= 2
    if t == 0:
        s, found = q.scalars, shared[0]
        if what == 0:
            s[SQUARES], s[FIRST], s[COUNT], s[DONE], s[TURN] = found, found, 0.0, 0.0, 0.0
        elif what == 1:
            s[SHARE] = 0.0
            if s[DONE] == 0.0:
                s[COUNT] += 1.0
                if found > 0.0:
                    s[SHARE] = s[SQUARES] / found
                else:
                    s[DONE] = 1.0
        elif s[DONE] == 0.0:
            s[TURN] = found / s[SQUARES]
            s[SQUARES] = found
            if found <= SPENT * s[FIRST]:
                s[DONE] = 1.0


def turn(p, q):
    """d <- left + b d"""
    c = cuda.grid(1)
    if c < p.size[0]:
        b = q.scalars[TURN]
        for k in range(3):
            p.d[k, c] = q.left[k, c] + b * p.d[k, c]


def back(p, q):
    """trial = Pi(x + moved)"""
    c = cuda.grid(1)
    if c < p.size[0]:
        q.trial[0, c], q.trial[1, c], q.trial[2, c] = project(
            p.x[0, c] + q.moved[0, c], p.x[1, c] + q.moved[1, c], p.x[2, c] + q.moved[2, c], p.friction[c]
        )


_enter, _into, _advance, _turn, _back = (Kernel(kernel, THREADS) for kernel in (enter, into, advance, turn, back))
_decide = Kernel(decide, THREADS)


def face_gradients(op: Any, cone: Any, gauge: Any, stop: Any, work: Any, face: Any) -> tuple[int, int, int, float]:
    """See `backends.cpu.face.face_gradients`."""
    n, d, trial = cone.count, face.d, face.trial
    v = Vectors(op, cone, gauge, work, d)
    p, along, tried = v.p, v.p._replace(x=d), v.p._replace(x=trial)
    q = Face(p.x, face.kind, face.nd, face.moved, face.left, trial, _kept("face", (6,)), int(gauge.coulomb))
    v.prepare((_into, _advance, _turn), p, q)
    _decide.prepare(p, q, 0)

    def iteration() -> None:
        v.run(_lay, along)
        v.push(along)
        v.run(_into, along, q)
        _decide.launch(1, p, q, 1)
        v.run(_advance, p, q)
        _decide.launch(1, p, q, 2)
        v.run(_turn, p, q)

    best_value, products = v.value(stop, p), 1
    work.best[:, :n] = work.x[:, :n]
    work.history[0] = best_value
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    v.run(_enter, p, q)
    _decide.launch(1, p, q, 0)
    k, checks = 0, 0
    while k < stop.limit:
        ahead = min(stop.check_every, stop.limit - k)
        v.repeat("face", ahead, (p, q), iteration)
        scalars = provider.fetch(q.scalars)
        k, done = int(scalars[COUNT]), scalars[DONE] != 0.0
        v.run(_back, p, q)
        now = v.value(stop, tried, "trial")
        status, best_value, checks = _judge(k, now, stop.tolerance, best_value, checks, work.history)
        if checks == 0:
            work.best[:, :n] = trial[:, :n]
        if status != RUNNING or done:
            return k, products + k, STALLED if status == RUNNING else status, best_value
        products += 1
    return k, products + k, MAX_ITERATIONS, best_value
