"""Accelerated projected gradient descent: three kernels an iteration, recorded once and repeated as a graph.

| kernel | does |
| --- | --- |
| contacts | `nesterov_pass` of every contact from the velocities of its bodies, its world impulse, sums of a block |
| scalars | one block: adds the sums and runs `kernels.nesterov.next_scalars` |
| bodies | two threads a body sum its entries in a fixed order and write its velocity |

Step length and momentum stay on the device; the host looks every `check_every` iterations. Arrays of the loop are of
either precision; what is computed from them is double, and whatever is reported is measured in double.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba.cuda as cuda
import numpy as np

from ...kernels.cones import coulomb_shift, local_error, natural_map, project
from ...kernels.nesterov import Scalar, next_scalars
from ..base import MEASURES, STALL_CHECKS, Measure
from ..cpu.apgd import PATIENCE
from ..cpu.apgd_lanes import GAINING, NOISE, SPENT, TRIES
from ..cpu.first_order import CONVERGED, DIVERGED, MAX_ITERATIONS, RUNNING, STALLED
from ..cpu.measure import LOCAL, NATURAL_MAP, RESIDUAL_EQ25
from . import provider
from .launch import Kernel, device_function, pass_over
from .measure import measure
from .rows import contact_product

THREADS = 4 if provider.SIMULATED else 256
"""Threads of a block in the loop; a power of two, since sums halve."""
TEAM = 2
"""Threads that sum the entries of a body. On an H200 eight take 2.4 times as long (a pile of a million spheres)."""
TEAMS = THREADS // TEAM
RESIDENT = 3
"""Blocks of contacts on a multiprocessor in single precision; in double they would leave too few registers."""
SHARED, SHARED_SUMS = 3 * THREADS, 5 * THREADS
xp = provider.xp


class Loop(NamedTuple):
    """What the kernels of the loop read and write; numbers of contacts have room for `capacity`."""

    size: Any  # (2,) int64: contacts, blocks of them
    body_a: Any  # (cap,) int32
    body_b: Any
    frame: Any  # (9, cap) scaled
    arms: Any  # (6, cap)
    compliance: Any  # (2, cap) scaled, (2, 0) where all are rigid
    bias: Any  # (3, cap) scaled
    friction: Any  # (cap,) of the scaled cones
    x: Any  # (3, cap)
    d: Any  # (3, cap) the last step
    old: Any  # (3, cap) N x before it
    shift: Any  # (cap,) Coulomb's correction
    force: Any  # (cap, 4) world impulse on B
    entry_start: Any  # (bodies + 1,) int64
    entry_contact: Any  # (2 cap + 1,) int32
    entry_arm: Any  # (2 cap + 1, 4): arm, and 1 on side B, -1 on side A
    inverse: Any  # (bodies, 9): inverse masses and inertias
    velocity: Any  # (bodies, 8): of the impulses x
    scalars: Any  # (10,) float64, see `Scalar`
    partial: Any  # (blocks, 5) float64


class Gauge(NamedTuple):
    """What the looks in between measure with; see `GaugeArrays`."""

    scale: Any
    weight: Any
    friction: Any
    coulomb: int
    speed: float
    values: Any  # (5,) natural map, r^, g^, u^ (squares summed), the largest local error squared


@device_function
def relative(c, p):
    """N x of contact c from the velocities of its bodies."""
    a, b, f, r, v = p.body_a[c], p.body_b[c], p.frame, p.arms, p.velocity
    ux = v[b, 0] - v[a, 0] + (v[b, 4] * r[5, c] - v[b, 5] * r[4, c]) - (v[a, 4] * r[2, c] - v[a, 5] * r[1, c])
    uy = v[b, 1] - v[a, 1] + (v[b, 5] * r[3, c] - v[b, 3] * r[5, c]) - (v[a, 5] * r[0, c] - v[a, 3] * r[2, c])
    uz = v[b, 2] - v[a, 2] + (v[b, 3] * r[4, c] - v[b, 4] * r[3, c]) - (v[a, 3] * r[1, c] - v[a, 4] * r[0, c])
    n = f[0, c] * ux + f[1, c] * uy + f[2, c] * uz
    u = f[3, c] * ux + f[4, c] * uy + f[5, c] * uz
    w = f[6, c] * ux + f[7, c] * uy + f[8, c] * uz
    if p.compliance.shape[1] > 0:
        n += p.compliance[0, c] * p.x[0, c]
        u += p.compliance[1, c] * p.x[1, c]
        w += p.compliance[1, c] * p.x[2, c]
    return n, u, w


@device_function
def lay_force(c, p, n, u, w):
    """The world impulse of contact c."""
    f = p.frame
    p.force[c, 0] = f[0, c] * n + f[3, c] * u + f[6, c] * w
    p.force[c, 1] = f[1, c] * n + f[4, c] * u + f[7, c] * w
    p.force[c, 2] = f[2, c] * n + f[5, c] * u + f[8, c] * w


def contacts(p):
    """One step of every contact; see `backends.cpu.apgd.nesterov_pass`."""
    shared = cuda.shared.array(SHARED, np.float64)
    t = cuda.threadIdx.x
    c = cuda.grid(1)
    dd, dh, gd = 0.0, 0.0, 0.0
    if c < p.size[0]:
        beta, step, blend = p.scalars[1], 1.0 / p.scalars[0], p.scalars[2]
        n0, n1, n2 = relative(c, p)
        g0, g1, g2 = n0 + p.bias[0, c], n1 + p.bias[1, c], n2 + p.bias[2, c]
        mu, s = p.friction[c], p.shift[c]
        s = s + blend * (coulomb_shift(g1, g2, mu) - s)
        g0 = g0 + s
        h0, h1, h2 = n0 - p.old[0, c], n1 - p.old[1, c], n2 - p.old[2, c]
        d0, d1, d2 = p.d[0, c], p.d[1, c], p.d[2, c]
        x0, x1, x2 = p.x[0, c], p.x[1, c], p.x[2, c]
        dd = d0 * d0 + d1 * d1 + d2 * d2
        dh = d0 * h0 + d1 * h1 + d2 * h2
        gd = d0 * g0 + d1 * g1 + d2 * g2
        z0, z1, z2 = project(
            x0 + beta * d0 - step * (g0 + beta * h0),
            x1 + beta * d1 - step * (g1 + beta * h1),
            x2 + beta * d2 - step * (g2 + beta * h2),
            mu,
        )
        p.shift[c] = s
        p.x[0, c], p.x[1, c], p.x[2, c] = z0, z1, z2
        p.d[0, c], p.d[1, c], p.d[2, c] = z0 - x0, z1 - x1, z2 - x2
        p.old[0, c], p.old[1, c], p.old[2, c] = n0, n1, n2
        lay_force(c, p, z0, z1, z2)
    shared[t], shared[t + THREADS], shared[t + 2 * THREADS] = dd, dh, gd
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(3):
                shared[t + k * THREADS] += shared[t + half + k * THREADS]
        half //= 2
    cuda.syncthreads()
    if t < 3:
        p.partial[cuda.blockIdx.x, t] = shared[t * THREADS]


def scalars(p):
    """Sums of all blocks, and the scalars of the next iteration; one block."""
    shared = cuda.shared.array(SHARED, np.float64)
    t = cuda.threadIdx.x
    for k in range(3):
        value = 0.0
        for block in range(t, p.size[1], THREADS):
            value += p.partial[block, k]
        shared[t + k * THREADS] = value
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(3):
                shared[t + k * THREADS] += shared[t + half + k * THREADS]
        half //= 2
    if t == 0:
        next_scalars(shared[0], shared[THREADS], shared[2 * THREADS], p.scalars)


def bodies(p):
    """Velocities of all bodies from the world impulses of their contacts."""
    shared = cuda.shared.array((THREADS, 6), np.float64)
    t = cuda.threadIdx.x
    lane = t % TEAM
    i = cuda.blockIdx.x * TEAMS + t // TEAM
    fx, fy, fz, tx, ty, tz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if i < p.inverse.shape[0]:
        for e in range(p.entry_start[i] + lane, p.entry_start[i + 1], TEAM):
            c, s = p.entry_contact[e], p.entry_arm[e, 3]
            x, y, z = p.entry_arm[e, 0], p.entry_arm[e, 1], p.entry_arm[e, 2]
            gx, gy, gz = s * p.force[c, 0], s * p.force[c, 1], s * p.force[c, 2]
            fx += gx
            fy += gy
            fz += gz
            tx += y * gz - z * gy
            ty += z * gx - x * gz
            tz += x * gy - y * gx
    shared[t, 0], shared[t, 1], shared[t, 2] = fx, fy, fz
    shared[t, 3], shared[t, 4], shared[t, 5] = tx, ty, tz
    half = TEAM // 2
    while half > 0:
        cuda.syncthreads()
        if lane < half:
            for k in range(6):
                shared[t, k] += shared[t + half, k]
        half //= 2
    if lane == 0 and i < p.inverse.shape[0]:
        q = p.inverse
        tx, ty, tz = shared[t, 3], shared[t, 4], shared[t, 5]
        p.velocity[i, 0] = q[i, 0] * shared[t, 0]
        p.velocity[i, 1] = q[i, 1] * shared[t, 1]
        p.velocity[i, 2] = q[i, 2] * shared[t, 2]
        p.velocity[i, 3] = q[i, 3] * tx + q[i, 6] * ty + q[i, 7] * tz
        p.velocity[i, 4] = q[i, 6] * tx + q[i, 4] * ty + q[i, 8] * tz
        p.velocity[i, 5] = q[i, 7] * tx + q[i, 8] * ty + q[i, 5] * tz


def look(p, gauge):
    """The stopping quantities of the impulses: sums and largest of a block."""
    shared = cuda.shared.array(SHARED_SUMS, np.float64)
    t = cuda.threadIdx.x
    c = cuda.grid(1)
    one, r2, g2, u2, local = 0.0, 0.0, 0.0, 0.0, 0.0
    if c < p.size[0]:
        n0, n1, n2 = relative(c, p)
        w, m = gauge.weight[c], gauge.friction[c]
        sn, st = w * gauge.scale[0, c], w * gauge.scale[1, c]
        fn, ft = 1.0 / sn, 1.0 / st
        gn, gu, gw = sn * p.x[0, c], st * p.x[1, c], st * p.x[2, c]
        rn, ru, rw = fn * p.bias[0, c], ft * p.bias[1, c], ft * p.bias[2, c]
        un, ut, uw = fn * n0 + rn, ft * n1 + ru, ft * n2 + rw
        s = coulomb_shift(ut, uw, m) if gauge.coulomb else 0.0
        one = natural_map(gn, gu, gw, un + s, ut, uw, m)
        r2, u2 = rn * rn + ru * ru + rw * rw, un * un + ut * ut + uw * uw
        g2 = gn * gn + gu * gu + gw * gw
        local = local_error(one, r2, u2, w, gauge.speed)
    shared[t], shared[t + THREADS], shared[t + 2 * THREADS] = one, r2, g2
    shared[t + 3 * THREADS], shared[t + 4 * THREADS] = u2, local
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(4):
                shared[t + k * THREADS] += shared[t + half + k * THREADS]
            shared[t + 4 * THREADS] = max(shared[t + 4 * THREADS], shared[t + half + 4 * THREADS])
        half //= 2
    cuda.syncthreads()
    if t < 5:
        p.partial[cuda.blockIdx.x, t] = shared[t * THREADS]


def looked(p, gauge):
    """Those of all blocks; one block."""
    shared = cuda.shared.array(SHARED_SUMS, np.float64)
    t = cuda.threadIdx.x
    for k in range(5):
        value = 0.0
        for block in range(t, p.size[1], THREADS):
            value = max(value, p.partial[block, k]) if k == 4 else value + p.partial[block, k]
        shared[t + k * THREADS] = value
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(4):
                shared[t + k * THREADS] += shared[t + half + k * THREADS]
            shared[t + 4 * THREADS] = max(shared[t + 4 * THREADS], shared[t + half + 4 * THREADS])
        half //= 2
    if t == 0:
        for k in range(5):
            gauge.values[k] = shared[k * THREADS]


def begin(c, p, slot_a, slot_b, arms, dump):
    """Contact c of a run that has not begun: its impulse on the cone, its entries."""
    x0, x1, x2 = project(p.x[0, c], p.x[1, c], p.x[2, c], p.friction[c])
    p.x[0, c], p.x[1, c], p.x[2, c] = x0, x1, x2
    lay_force(c, p, x0, x1, x2)
    p.shift[c] = 0.0
    for k in range(3):
        p.d[k, c], p.old[k, c] = 0.0, 0.0
    for side in range(2):
        e = slot_b[c] if side == 1 else slot_a[c]
        if e < dump:
            p.entry_contact[e] = c
            for k in range(3):
                p.entry_arm[e, k] = arms[3 * side + k, c]
            p.entry_arm[e, 3] = 1.0 if side == 1 else -1.0


def lighten(i, inverse_mass, inverse_inertia, inverse):
    """Inverse mass and inertia of body i in the precision of the loop."""
    for k in range(3):
        inverse[i, k] = inverse_mass[i, k]
    for k in range(6):
        inverse[i, 3 + k] = inverse_inertia[i, k]


def descend(c, bias, friction, nx, t, coulomb, x):
    """x <- Pi(x - t (N x + bias + correction)), the correction that of the present velocity."""
    g0, g1, g2 = nx[0, c] + bias[0, c], nx[1, c] + bias[1, c], nx[2, c] + bias[2, c]
    if coulomb:
        g0 += coulomb_shift(g1, g2, friction[c])
    x[0, c], x[1, c], x[2, c] = project(x[0, c] - t * g0, x[1, c] - t * g1, x[2, c] - t * g2, friction[c])


_contacts = {"d": Kernel(contacts, THREADS), "f": Kernel(contacts, THREADS, RESIDENT)}
_scalars, _bodies = Kernel(scalars, THREADS), Kernel(bodies, THREADS)
_look, _looked = Kernel(look, THREADS), Kernel(looked, THREADS)
_begin, _lighten, _descend = pass_over(begin), pass_over(lighten), pass_over(descend)


class Run:
    """The loop over one problem, in one precision."""

    def __init__(self, op: Any, cone: Any, gauge: Any, stop: Any, work: Any, scalars: np.ndarray, dtype: Any) -> None:
        self.count, self.check_every, self.kind = cone.count, stop.check_every, stop.kind
        self.p = p = _loop(op, cone, work.x, dtype)
        self.gauge = Gauge(
            gauge.scale, gauge.weight, gauge.friction, int(gauge.coulomb), gauge.speed, _kept("values", (5,))
        )
        room = cone.count if provider.SIMULATED else p.x.shape[1]  # of a recorded launch, for all numbers of contacts
        self._blocks, self._body_blocks = -(-room // THREADS), -(-len(p.inverse) // TEAMS)
        p.size[:] = provider.send(np.array([cone.count, -(-cone.count // THREADS)]))
        p.scalars[:] = provider.send(scalars)
        _lighten(len(p.inverse), op.inverse_mass, op.inverse_inertia, p.inverse)
        _begin(cone.count, p, op.slot_a, op.slot_b, op.arms, int(op.entry_start[-1]))
        self._contacts = _contacts[p.x.dtype.char]
        for kernel in (self._contacts, _scalars, _bodies):  # nothing can be compiled while launches are recorded
            kernel.prepare(p)
        _look.prepare(p, self.gauge)
        _looked.prepare(p, self.gauge)
        _bodies.launch(self._body_blocks, p)

    def iterate(self, count: int) -> None:
        """So many iterations."""
        if count == self.check_every:
            _graph(("iterate", count), self.p, lambda: self._iterations(count)).launch()
        else:
            self._iterations(count)

    def _iterations(self, count: int) -> None:
        for _ in range(count):
            self._contacts.launch(self._blocks, self.p)
            _scalars.launch(1, self.p)
            _bodies.launch(self._body_blocks, self.p)

    def value(self) -> float:
        """The natural map or the local error of the impulses."""
        _graph("look", (*self.p, *self.gauge), self._look).launch()
        nat, rr, gg, uu, local = provider.fetch(self.gauge.values).tolist()
        size = max(rr, gg, uu)
        if not (math.isfinite(nat) and math.isfinite(size)):
            return math.inf
        if self.kind == LOCAL:
            return math.sqrt(local)
        return math.sqrt(nat / size) if size > 0.0 else 0.0

    def _look(self) -> None:
        _look.launch(self._blocks, self.p, self.gauge)
        _looked.launch(1, self.p, self.gauge)

    def change_limit(self, cap: float) -> None:
        """Lift the limit on the momentum or set it again."""
        found = provider.fetch(self.p.scalars)
        self.p.scalars[int(Scalar.LIMIT)] = float(found[Scalar.LIFTED]) if found[Scalar.LIMIT] == cap else cap


def _loop(op: Any, cone: Any, x: Any, dtype: Any) -> Loop:
    """Arrays of the loop, with the problem's numbers in its precision."""
    cap, n, bodies = x.shape[1], cone.count, len(op.inverse_mass)
    double, tag = dtype == np.float64, np.dtype(dtype).char

    def taken(name: str, array: Any) -> Any:
        if double:
            return array
        out = _kept(name + tag, array.shape, dtype)
        out[..., :n] = array[..., :n]
        return out

    def own(name: str, shape: tuple[int, ...], kind: Any = dtype) -> Any:
        return _kept(name + tag, shape, kind)

    soft = op.compliance.shape[1] > 0
    return Loop(
        own("size", (2,), np.int64), op.body_a, op.body_b, taken("frame", op.frame), taken("arms", op.arms),
        taken("compliance", op.compliance) if soft else own("rigid", (2, 0)), taken("bias", cone.bias),
        taken("friction", cone.friction), taken("x", x), own("d", (3, cap)), own("old", (3, cap)),
        own("shift", (cap,)), own("force", (cap, 4)), op.entry_start, own("entry_contact", (2 * cap + 1,), np.int32),
        own("entry_arm", (2 * cap + 1, 4)), own("inverse", (bodies, 9)), own("velocity", (bodies, 8)),
        own("scalars", (len(Scalar),), np.float64), own("partial", (-(-cap // THREADS), 5), np.float64),
    )  # fmt: skip


_ARRAYS: dict[str, Any] = {}
_GRAPHS: dict[Any, tuple[tuple, provider.Graph]] = {}


def _kept(name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """An array that outlives a solve; its content is whatever was left there."""
    found = _ARRAYS.get(name)
    if found is None or found.shape != shape:
        found = _ARRAYS[name] = provider.zeros(shape, dtype)
    return found


def _graph(name: Any, arrays: tuple, launches: Any) -> provider.Graph:
    """The recorded launches over these arrays; recorded anew when one of them has moved."""
    key = tuple((a.data.ptr, a.shape) if hasattr(a, "dtype") and not provider.SIMULATED else None for a in arrays)
    key += tuple(a for a in arrays if isinstance(a, (int, float)))
    kind = (name, arrays[8].dtype.char)
    found = _GRAPHS.get(kind)
    if found is None or found[0] != key or provider.SIMULATED:
        found = _GRAPHS[kind] = key, provider.Graph(launches)
    return found[1]


def curvature(op: Any, count: int, ones: Any, product: Any) -> float:
    """|N 1| / |1|, the first guess of the largest eigenvalue."""
    ones[:, :count] = 1.0
    contact_product(op, ones, product)
    squares = float((product[:, :count] ** 2).sum())
    return math.sqrt(squares / (3 * count)) if squares > 0.0 and math.isfinite(squares) else 1.0


def exact_value(op: Any, gauge: Any, stop: Any, work: Any, x: Any) -> float:
    """The stopping quantity of impulses, measured in double precision by a fresh product."""
    contact_product(op, x, work.nx)
    values = _kept("measured", (MEASURES,))
    measure(gauge, x, work.nx, work.partial, values)
    return _stop_value(stop.kind, gauge.dim * gauge.count, provider.fetch(values))


def _stop_value(kind: int, rows: int, values: np.ndarray) -> float:
    if kind == LOCAL:
        return float(values[Measure.LOCAL]) if math.isfinite(values[Measure.NATURAL]) else math.inf
    if kind == NATURAL_MAP:
        return float(values[Measure.NATURAL])
    if kind == RESIDUAL_EQ25:
        return float(values[Measure.EQ25]) / rows
    size = float(values[Measure.SCALE])
    if not math.isfinite(size):
        return math.inf
    return max(math.sqrt(values[Measure.GAP]), values[Measure.SHIFT_HAT]) / size if size > 0.0 else 0.0


def apgd(
    op: Any, cone: Any, gauge: Any, stop: Any, work: Any, scalars: np.ndarray, d: Any, old: Any
) -> tuple[int, int, int, float]:
    """As `backends.cpu.apgd_lanes.apgd_lanes`: (iterations, products, status, best stopping value)."""
    n, products = cone.count, 1
    if scalars[Scalar.COUNT] == 0.0:
        scalars[Scalar.CURVATURE] = curvature(op, n, work.best, work.nx)
        products = 2
    run = Run(op, cone, gauge, stop, work, scalars, np.float64)
    by_look = stop.kind in (NATURAL_MAP, LOCAL)

    def value() -> float:
        return run.value() if by_look else exact_value(op, gauge, stop, work, work.x)

    best_value = value()
    work.best[:, :n] = work.x[:, :n]
    work.history[0] = best_value
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value
    cap, mark, since, checks, k = float(scalars[Scalar.LIMIT]), best_value, 0, 0, 0
    while k < stop.limit:
        ahead = min(stop.check_every, stop.limit - k)
        run.iterate(ahead)
        k += ahead
        now = value()
        status, best_value, checks = _judge(k, now, stop.tolerance, best_value, checks, work.history)
        if checks == 0:
            work.best[:, :n] = work.x[:, :n]
        if status != RUNNING:
            return k, k + products, status, best_value
        if best_value < 0.7 * mark:
            mark, since = best_value, k
        elif gauge.coulomb and k - since > PATIENCE:
            run.change_limit(cap)
            mark, since = best_value, k
    return k, k + products, MAX_ITERATIONS, best_value


def _judge(
    k: int, value: float, tolerance: float, best_value: float, checks: int, history: np.ndarray
) -> tuple[int, float, int]:
    """See `backends.cpu.first_order.judge`."""
    if k < history.size:
        history[k] = value
    checks += 1
    if value < best_value:
        best_value, checks = value, 0
    if best_value <= tolerance:
        return CONVERGED, best_value, checks
    if not math.isfinite(value):
        return DIVERGED, best_value, checks
    return (STALLED if checks > STALL_CHECKS else RUNNING), best_value, checks


def apgd_single(
    op: Any, cone: Any, gauge: Any, stop: Any, work: Any, scalars: np.ndarray, d: Any, old: Any
) -> tuple[int, int, int, float]:
    """As `backends.cpu.apgd_lanes.apgd_single_lanes`: the loop in single precision, whatever ends it in double."""
    n = cone.count
    scalars[Scalar.CURVATURE] = curvature(op, n, work.best, work.nx)
    run = Run(op, cone, gauge, stop, work, scalars, np.float32)
    work.x[:, :n] = run.p.x[:, :n]
    best_value = exact_value(op, gauge, stop, work, work.x)
    work.best[:, :n] = work.x[:, :n]
    work.history[0] = best_value
    products, cap = 3, float(scalars[Scalar.LIMIT])
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value

    def verified() -> float:
        """The proposal x after a step in double precision, which is kept where it is the best."""
        contact_product(op, work.x, work.nx)
        _descend(n, cone.bias, cone.friction, work.nx, 1.0 / float(run.p.scalars[0]), int(gauge.coulomb), work.x)
        found = exact_value(op, gauge, stop, work, work.x)
        if found < best_value:
            work.best[:, :n] = work.x[:, :n]
        return found

    low = mark = best_value
    aim, k, since, tries, idle = stop.tolerance, 0, 0, 0, 0
    while k < stop.limit:
        ahead = min(stop.check_every, stop.limit - k)
        run.iterate(ahead)
        k += ahead
        now = run.value()
        if not math.isfinite(now):
            break
        if now < low or k == ahead:
            low = now
            work.x[:, :n] = run.p.x[:, :n]
        if low < 0.7 * mark:
            mark, since, idle = low, k, 0
        if low <= aim:
            found = verified()
            best_value, products = min(best_value, found), products + 2
            if best_value <= stop.tolerance:
                return k, k + products, CONVERGED, best_value
            tries += 1
            if tries == TRIES:
                return k, k + products, SPENT, best_value
            aim = 0.5 * low
        elif k - since > GAINING:
            found = verified()
            best_value, mark, since, products = min(best_value, found), low, k, products + 2
            if found < NOISE * low:
                return k, k + products, CONVERGED if found <= stop.tolerance else SPENT, best_value
            idle += 1
            if gauge.coulomb and idle % (PATIENCE // GAINING) == 0:
                run.change_limit(cap)
    found = verified()
    best_value = min(best_value, found)
    status = CONVERGED if best_value <= stop.tolerance else MAX_ITERATIONS if k >= stop.limit else SPENT
    return k, k + products + 2, status, best_value
