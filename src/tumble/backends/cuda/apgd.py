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
from typing import Any

import numpy as np

from ...kernels.nesterov import Scalar
from ..base import MEASURES, STALL_CHECKS, ArticulatedArrays, Measure
from ..cpu.apgd import PATIENCE
from ..cpu.apgd_lanes import GAINING, NOISE, SPENT, TRIES
from ..cpu.first_order import CONVERGED, DIVERGED, MAX_ITERATIONS, RUNNING, STALLED
from ..cpu.measure import LOCAL, NATURAL_MAP, RESIDUAL_EQ25
from . import provider
from .launch import Kernel
from .measure import measure
from .nesterov import (
    TEAMS,
    THREADS,
    Gauge,
    Loop,
    _begin,
    _bodies,
    _contacts,
    _descend,
    _lighten,
    _look,
    _looked,
    _scalars,
    set_sizes,
)
from .rolling_rows import contacts_of, is_rolling, product


class Run:
    """The loop over one problem, in one precision."""

    look, bodies = _look, _bodies
    _begin, descend = staticmethod(_begin), staticmethod(_descend)

    def __init__(
        self, op: Any, cone: Any, gauge: Any, stop: Any, work: Any, scalars: np.ndarray, dtype: Any, *steps: Any
    ) -> None:
        """steps: arrays for the last step and for N x before it, where there are such in this precision."""
        self.count, self.check_every, self.kind = cone.count, stop.check_every, stop.kind
        self.p = p = self._arrays(op, cone, work.x, dtype, *steps)
        own = contacts_of(op)
        self.gauge = Gauge(
            gauge.scale, gauge.weight, gauge.friction, int(gauge.coulomb), gauge.speed, _kept("values", (5,))
        )
        room = cone.count if provider.SIMULATED else p.x.shape[1]  # of a recorded launch, for all numbers of contacts
        self._blocks, self._body_blocks = -(-room // THREADS), -(-len(p.inverse) // TEAMS)
        first = tuple(map(float, scalars))
        set_sizes(1, cone.count, -(-cone.count // THREADS), own.count, first, p.size, p.scalars)
        _lighten(len(p.inverse), own.inverse_mass, own.inverse_inertia, p.inverse)
        self._begin(own.count, p, own.slot_a, own.slot_b, own.arms)
        self._contacts = self._kernel(p.x.dtype.char)
        self._prepare()
        self._move()

    def _arrays(self, op: Any, cone: Any, x: Any, dtype: Any, *steps: Any) -> Loop:
        return _loop(op, cone, x, dtype, *steps)

    def _kernel(self, precision: str) -> Kernel:
        return _contacts[precision]

    def _prepare(self) -> None:
        """Nothing can be compiled while launches are recorded."""
        for kernel in (self._contacts, _scalars, self.bodies):
            kernel.prepare(self.p)
        self.look.prepare(self.p, self.gauge)
        _looked.prepare(self.p, self.gauge)

    def _move(self) -> None:
        """Velocities of the impulses x."""
        self.bodies.launch(self._body_blocks, self.p)

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
            self._move()

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
        self.look.launch(self._blocks, self.p, self.gauge)
        _looked.launch(1, self.p, self.gauge)

    def change_limit(self, cap: float) -> None:
        """Lift the limit on the momentum or set it again."""
        found = provider.fetch(self.p.scalars)
        self.p.scalars[int(Scalar.LIMIT)] = float(found[Scalar.LIFTED]) if found[Scalar.LIMIT] == cap else cap


def _loop(op: Any, cone: Any, x: Any, dtype: Any, *steps: Any) -> Loop:
    """Arrays of the loop, with the problem's numbers in its precision."""
    (rows, cap), n, bodies = x.shape, cone.count, len(op.inverse_mass)
    tag = np.dtype(dtype).char

    def taken(name: str, array: Any) -> Any:
        if array.dtype == dtype:
            return array
        out = _kept(name + tag, array.shape, dtype)
        out[..., :n] = array[..., :n]
        return out

    def own(name: str, shape: tuple[int, ...], kind: Any = dtype) -> Any:
        return _kept(name + tag, shape, kind)

    soft = op.compliance.shape[1] > 0
    d, old = steps if steps else (own("d", (rows, cap)), own("old", (rows, cap)))
    return Loop(
        own("size", (3,), np.int64), op.body_a, op.body_b, taken("frame", op.frame), taken("arms", op.arms),
        taken("compliance", op.compliance) if soft else own("rigid", (2, 0)), taken("bias", cone.bias),
        taken("friction", cone.friction), taken("x", x), d, old,
        own("shift", (cap,)), own("force", (cap, 4 if rows == 3 else 8)), op.entry_start,
        own("entry_contact", (2 * cap + 1,), np.int32),
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
    key = () if provider.SIMULATED else _places(arrays)
    kind = (name, arrays[8].dtype.char)
    found = _GRAPHS.get(kind)
    if found is None or found[0] != key or provider.SIMULATED:
        found = _GRAPHS[kind] = key, provider.Graph(launches)
    return found[1]


def _places(arrays: tuple) -> tuple:
    """Where these arrays lie, in any depth, and numbers among them."""
    return tuple(
        _places(a) if isinstance(a, tuple) else (a.data.ptr, a.shape) if hasattr(a, "dtype") else a for a in arrays
    )


def _run(op: Any, *arguments: Any) -> Run:
    """The loop over contacts, over those of jointed bodies, or over those with six rows, whose kernels are compiled
    where there are some."""
    if isinstance(op, ArticulatedArrays):
        from .jointed import JointedRun

        return JointedRun(op, *arguments)
    if is_rolling(op):
        from .rolling import RollingRun

        return RollingRun(op, *arguments)
    return Run(op, *arguments)


def curvature(op: Any, count: int, ones: Any, image: Any) -> float:
    """|N 1| / |1|, the first guess of the largest eigenvalue."""
    ones[:, :count] = 1.0
    product(op, ones, image)
    squares = float((image[:, :count] ** 2).sum())
    return math.sqrt(squares / (len(ones) * count)) if squares > 0.0 and math.isfinite(squares) else 1.0


def exact_value(op: Any, gauge: Any, stop: Any, work: Any, x: Any) -> float:
    """The stopping quantity of impulses, measured in double precision by a fresh product."""
    product(op, x, work.nx)
    values = _kept("measured", (MEASURES,))
    measure(gauge, x, work.nx, work.partial, values)
    return _stop_value(stop.kind, stop.rows, provider.fetch(values))


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
    run = _run(op, cone, gauge, stop, work, scalars, np.float64, d, old)
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
    if isinstance(op, ArticulatedArrays):  # bounds of joints may be far below single precision
        return apgd(op, cone, gauge, stop, work, scalars, d, old)
    n = cone.count
    scalars[Scalar.CURVATURE] = curvature(op, n, work.best, work.nx)
    run = _run(op, cone, gauge, stop, work, scalars, np.float32)
    work.x[:, :n] = run.p.x[:, :n]
    best_value = exact_value(op, gauge, stop, work, work.x)
    work.best[:, :n] = work.x[:, :n]
    work.history[0] = best_value
    products, cap = 3, float(scalars[Scalar.LIMIT])
    if best_value <= stop.tolerance:
        return 0, products, CONVERGED, best_value

    def verified() -> float:
        """The proposal x after a step in double precision, which is kept where it is the best."""
        product(op, work.x, work.nx)
        run.descend(n, cone.bias, cone.friction, work.nx, 1.0 / float(run.p.scalars[0]), int(gauge.coulomb), work.x)
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
