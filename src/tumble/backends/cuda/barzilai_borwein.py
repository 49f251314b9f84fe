"""Spectral gradient iterations (Barzilai and Borwein): five kernels an iteration, recorded and repeated as a graph.

| kernel | does |
| --- | --- |
| aim | Coulomb's correction, the direction of every contact, its world impulse |
| bodies | velocities of that direction (`nesterov.bodies`) |
| bend | N d, sums of a block |
| share | one block: adds the sums and runs `kernels.spectral.next_spectral` |
| move | x += s d, N x += s N d |

Every look takes N x anew, so that nothing adds up.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba.cuda as cuda
import numpy as np

from ...kernels.cones import coulomb_shift, project
from ...kernels.spectral import Spectral, begin_spectral, blend_of, next_spectral
from ..cpu.first_order import CONVERGED, MAX_ITERATIONS, RUNNING, STALLED
from ..cpu.measure import LOCAL, NATURAL_MAP
from . import provider
from .apgd import Gauge, _begin, _graph, _judge, _kept, _lighten, _loop, curvature, exact_value
from .launch import Kernel
from .nesterov import SHARED_SUMS, TEAMS, THREADS, _bodies, _look, _looked, lay_force, relative, set_sizes

SUMS = 5
STEP, SHARE, COUNT, SQUARES = (
    int(place) for place in (Spectral.STEP, Spectral.SHARE, Spectral.COUNT, Spectral.SQUARES)
)


class Search(NamedTuple):
    """What the kernels have beside `Loop`, whose d is the direction and whose old is N x."""

    x: Any  # (3, cap)
    nd: Any  # (3, cap)
    scalars: Any  # see `Spectral`
    coulomb: int
    damping: float


def aim(p, q):
    """d = Pi(x - t g) - x, with the correction moved towards that of the present velocity, and its world impulse."""
    c = cuda.grid(1)
    if c < p.size[0]:
        mu, s, t = p.friction[c], p.shift[c], q.scalars[STEP]
        g0, g1, g2 = p.old[0, c] + p.bias[0, c], p.old[1, c] + p.bias[1, c], p.old[2, c] + p.bias[2, c]
        if q.coulomb:
            s = s + blend_of(q.scalars[COUNT] + 1.0, q.damping) * (coulomb_shift(g1, g2, mu) - s)
            p.shift[c] = s
        x0, x1, x2 = p.x[0, c], p.x[1, c], p.x[2, c]
        z0, z1, z2 = project(x0 - t * (g0 + s), x1 - t * g1, x2 - t * g2, mu)
        p.d[0, c], p.d[1, c], p.d[2, c] = z0 - x0, z1 - x1, z2 - x2
        lay_force(c, p, z0 - x0, z1 - x1, z2 - x2)


def bend(p, q):
    """N d, and sums of a block: d.d, d.Nd, Nd.Nd, g.d and the objective. p.x: the direction."""
    shared = cuda.shared.array(SHARED_SUMS, np.float64)
    t = cuda.threadIdx.x
    c = cuda.grid(1)
    dd, dnd, nn, gd, f = 0.0, 0.0, 0.0, 0.0, 0.0
    if c < p.size[0]:
        q.nd[0, c], q.nd[1, c], q.nd[2, c] = relative(c, p)
        for k in range(3):
            b = p.bias[k, c]
            if k == 0:
                b += p.shift[c]
            d, n, nx = p.x[k, c], q.nd[k, c], p.old[k, c]
            dd += d * d
            dnd += d * n
            nn += n * n
            gd += d * (nx + b)
            f += q.x[k, c] * (0.5 * nx + b)
    shared[t], shared[t + THREADS], shared[t + 2 * THREADS] = dd, dnd, nn
    shared[t + 3 * THREADS], shared[t + 4 * THREADS] = gd, f
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(SUMS):
                shared[t + k * THREADS] += shared[t + half + k * THREADS]
        half //= 2
    cuda.syncthreads()
    for k in range(t, SUMS, THREADS):
        p.partial[cuda.blockIdx.x, k] = shared[k * THREADS]


def share(p, q):
    """Sums of all blocks, and the scalars of what follows; one block."""
    shared = cuda.shared.array(SHARED_SUMS, np.float64)
    t = cuda.threadIdx.x
    for k in range(SUMS):
        value = 0.0
        for block in range(t, p.size[1], THREADS):
            value += p.partial[block, k]
        shared[t + k * THREADS] = value
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(SUMS):
                shared[t + k * THREADS] += shared[t + half + k * THREADS]
        half //= 2
    if t == 0:
        next_spectral(
            shared[0], shared[THREADS], shared[2 * THREADS], shared[3 * THREADS], shared[4 * THREADS], q.coulomb,
            q.scalars,
        )  # fmt: skip


def move(p, q):
    """x += s d and N x likewise."""
    c = cuda.grid(1)
    if c < p.size[0]:
        s = q.scalars[SHARE]
        for k in range(3):
            p.x[k, c] += s * p.d[k, c]
            p.old[k, c] += s * q.nd[k, c]


def lay(p):
    """The world impulses of x."""
    c = cuda.grid(1)
    if c < p.size[0]:
        lay_force(c, p, p.x[0, c], p.x[1, c], p.x[2, c])


def take(p):
    """N x from the velocities of the bodies."""
    c = cuda.grid(1)
    if c < p.size[0]:
        p.old[0, c], p.old[1, c], p.old[2, c] = relative(c, p)


_aim, _bend, _share, _move = (Kernel(kernel, THREADS) for kernel in (aim, bend, share, move))
_lay, _take = Kernel(lay, THREADS), Kernel(take, THREADS)


class Vectors:
    """Kernels over the contacts of one problem in double precision, and looks at impulses."""

    def __init__(self, op: Any, cone: Any, gauge: Any, work: Any, d: Any) -> None:
        self.op, self.work, self.given = op, work, gauge
        self.p = p = _loop(op, cone, work.x, np.float64, d, work.nx)
        self.gauge = Gauge(
            gauge.scale, gauge.weight, gauge.friction, int(gauge.coulomb), gauge.speed, _kept("values", (5,))
        )
        room = cone.count if provider.SIMULATED else p.x.shape[1]
        self.blocks, self.body_blocks = -(-room // THREADS), -(-len(p.inverse) // TEAMS)
        set_sizes(1, cone.count, -(-cone.count // THREADS), cone.count, (0.0,), p.size, p.partial[0])
        _lighten(len(p.inverse), op.inverse_mass, op.inverse_inertia, p.inverse)
        _begin(cone.count, p, op.slot_a, op.slot_b, op.arms)

    def run(self, kernel: Kernel, *groups: Any) -> None:
        """A thread for each contact."""
        kernel.launch(self.blocks, *groups)

    def push(self, p: Any) -> None:
        """Velocities of the bodies from the world impulses."""
        _bodies.launch(self.body_blocks, p)

    def repeat(self, name: str, count: int, groups: tuple, launches: Any) -> None:
        """So many iterations, recorded once for the arrays at hand."""

        def all_of_them() -> None:
            for _ in range(count):
                launches()

        _graph((name, count), tuple(part for group in groups for part in group), all_of_them).launch()

    def value(self, stop: Any, p: Any, name: str = "value") -> float:
        """The stopping quantity of impulses p.x, whose N x goes into p.old."""
        if stop.kind not in (NATURAL_MAP, LOCAL):
            return exact_value(self.op, self.given, stop, self.work._replace(nx=p.old), p.x)
        _graph(name, (*p, *self.gauge), lambda: self._look(p)).launch()
        nat, rr, gg, uu, local = provider.fetch(self.gauge.values).tolist()
        size = max(rr, gg, uu)
        if not (math.isfinite(nat) and math.isfinite(size)):
            return math.inf
        return math.sqrt(local) if stop.kind == LOCAL else math.sqrt(nat / size) if size > 0.0 else 0.0

    def _look(self, p: Any) -> None:
        self.run(_lay, p)
        self.push(p)
        self.run(_take, p)
        self.run(_look, p, self.gauge)
        _looked.launch(1, p, self.gauge)

    def prepare(self, kernels: tuple, *groups: Any) -> None:
        """Compile what is to be recorded."""
        for kernel in kernels:
            kernel.prepare(*groups)
        for kernel in (_lay, _take, _bodies):
            kernel.prepare(self.p)
        for kernel in (_look, _looked):
            kernel.prepare(self.p, self.gauge)


def barzilai_borwein(
    op: Any, cone: Any, gauge: Any, stop: Any, work: Any, damping: float, d: Any, nd: Any
) -> tuple[int, int, int, float]:
    """See `backends.cpu.barzilai_borwein`."""
    n, scalars = cone.count, np.zeros(len(Spectral) + 10)
    begin_spectral(1.0 / curvature(op, n, d, nd), scalars)
    v = Vectors(op, cone, gauge, work, d)
    p, along = v.p, v.p._replace(x=d)
    q = Search(p.x, nd, _kept("spectral", scalars.shape), int(gauge.coulomb), float(damping))
    q.scalars[:] = provider.send(scalars)
    v.prepare((_aim, _bend, _share, _move), p, q)

    def iteration() -> None:
        v.run(_aim, p, q)
        v.push(p)
        v.run(_bend, along, q)
        _share.launch(1, p, q)
        v.run(_move, p, q)

    best_value, products = v.value(stop, p), 2
    work.best[:, :n] = work.x[:, :n]
    work.history[0] = best_value
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    k, checks, last = 0, 0, best_value
    while k < stop.limit:
        ahead = min(stop.check_every, stop.limit - k)
        v.repeat("spectral", ahead, (p, q), iteration)
        k, products = k + ahead, products + ahead + 1
        now = v.value(stop, p)
        status, best_value, checks = _judge(k, now, stop.tolerance, best_value, checks, work.history)
        if checks == 0:
            work.best[:, :n] = work.x[:, :n]
        if status != RUNNING:
            return k, products, status, best_value
        if now == last and float(q.scalars[SQUARES]) == 0.0:
            return k, products, STALLED, best_value
        last = now
    return k, products, MAX_ITERATIONS, best_value
