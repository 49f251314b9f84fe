"""Contacts in lanes, and the passes of an accelerated iteration: against NumPy, in both precisions."""

from __future__ import annotations

import numpy as np
import pytest

import tumble as tb
from tumble.backends.base import LANE_CONTACTS, LANE_FEW, LANES, ConeArrays, GaugeArrays, blocks
from tumble.enums import BlockKind, Law, Status
from tumble.kernels.nesterov import Scalar, first_scalars, next_scalars
from tumble.problem.cone_problem import BlockGroup, ConeProblem
from tumble.problem.operators import ContactOperator
from tumble.solve.lanes import lanes_of

from . import data, sets
from .cover import covers
from .data import COUNTS, SPARE, assert_close, spare

BETA, STEP, BLEND = 0.7, 0.3, 0.6
NATURAL, EQ25, LOCAL = 0, 1, 3


def scalars():
    """Of an iteration in the middle of a run."""
    out = first_scalars(0.999, 0.9, 300.0)
    out[Scalar.BETA], out[Scalar.CURVATURE], out[Scalar.BLEND] = BETA, 1.0 / STEP, BLEND
    return out


def step(x, d, u, bias, old, shift, mu):
    """Twin of an iteration: x, d, shift after it and its sums, from u = N x. One correction for g and h."""
    s = shift + BLEND * (sets.correction(u + bias, mu) - shift)
    g, h = u + bias, u - old
    g[0] += s
    sums = np.sum(d * d), np.sum(d * h), np.sum(g * d)
    z = sets.project(x + BETA * d - STEP * (g + BETA * h), mu)
    return z, z - x, s, sums


@covers("nesterov_pass")
@pytest.mark.parametrize("rows", [3, 6])
@pytest.mark.parametrize("count", COUNTS)
def test_a_pass_is_nesterovs_step_from_one_product(backend, count, rows):
    rng = np.random.default_rng(count)
    mu = spare(0, count) if rows == 3 else spare(3, count)
    mu[..., :count] = rng.uniform(0.0, 1.0, mu[..., :count].shape)
    first = np.atleast_2d(mu)[0]
    first[1:count:5], first[2:count:7] = 0.0, -0.5
    nx, x, d, old, bias = (spare(rows, count, rng) for _ in range(5))
    bounded = np.flatnonzero(first[:count] < 0.0)
    for array in (nx, x, d, old, bias):
        array[1:, bounded] = 0.0
    shift = spare(0, count, rng)
    z, change, s, sums = step(*(a[..., :count] for a in (x, d, nx, bias, old, shift, mu)))
    partial = np.full((blocks(count) + 2, 4), np.nan)
    backend.nesterov_pass(ConeArrays(count, bias, mu), scalars(), nx, x, d, old, shift, partial)
    for got, wanted in ((x, z), (d, change), (old, nx[:, :count]), (shift, s)):
        assert_close(got[..., :count], wanted, 1.0 + np.abs(wanted).max(initial=0.0))
    total = partial[: -(-count // 1024), :3].sum(axis=0)
    assert_close(total, sums, 10.0 + count)


@covers("gradient_step")
@pytest.mark.parametrize("coulomb", [False, True])
@pytest.mark.parametrize("count", COUNTS)
def test_a_projected_gradient_step(backend, count, coulomb):
    rng = np.random.default_rng(count)
    mu, nx, x, bias = spare(0, count), spare(3, count, rng), spare(3, count, rng), spare(3, count, rng)
    mu[:count] = rng.uniform(0.0, 1.0, count)
    a = sets.slack(nx[:, :count] + bias[:, :count], mu[:count], coulomb)
    wanted = sets.project(x[:, :count] - STEP * a, mu[:count])
    backend.gradient_step(ConeArrays(count, bias, mu), nx, STEP, coulomb, x)
    assert_close(x[:, :count], wanted)


class Case:
    """Contacts in lanes with everything that a pass may meet, and the same in arrays."""

    def __init__(self, backend, count, dtype, *, soft=True, coulomb=True):
        rng = np.random.default_rng(count + 1)
        self.count, self.backend = count, backend
        self.op = op = data.contacts(count, count, soft=soft)
        self.mu = spare(0, count)
        self.mu[:count] = rng.uniform(0.1, 1.0, count)
        self.mu[1:count:5] = 0.0
        bias, scale, weight = spare(3, count, rng), spare(2, count), spare(0, count)
        scale[:, :count], weight[:count] = rng.uniform(0.5, 2.0, (2, count)), rng.uniform(0.5, 2.0, count)
        self.friction = self.mu * scale[1] / scale[0]
        self.x = spare(3, count, rng)
        self.x[:, :count] = sets.project(self.x[:, :count], self.mu[:count])
        problem = ConeProblem(BlockGroup(BlockKind.CONE, 3, count, self.mu), bias, ContactOperator(op, backend), h=0.01)
        self.cone = ConeArrays(count, bias, self.mu)
        self.gauge = GaugeArrays(count, bias, self.friction, scale, weight, coulomb, 0.3)
        self.lanes, self.sums, self.bodies = lanes_of(problem, dtype)
        for array in (*self.lanes[2:], *self.sums, *self.bodies[3:]):
            array[...] = 77  # left there by another problem
        self.eps = 100.0 * np.finfo(dtype).eps / data.EPS  # in units of assert_close
        bodies, lanes = self.bodies, self.lanes
        backend.pack_contacts(op.frame, op.compliance, self.cone, self.friction, scale, weight, lanes, self.x)
        backend.pack_ends(count, lanes.part, op.slot_a, op.slot_b, op.arms, bodies.start, bodies.place, bodies.arm)
        backend.pack_bodies(bodies.part, op.inverse_mass, op.inverse_inertia, bodies.inverse)
        backend.body_lanes(self.bodies)

    def product(self, x):
        """N x."""
        return data.relative(self.op, data.pushed(self.op, x)) + data.compliant(self.op, x)

    def impulses(self):
        """What the lanes hold."""
        out = np.full((3, self.count + SPARE), np.nan)
        self.backend.unpack_lanes(self.count, self.lanes.part, self.lanes.block, out)
        return out


@covers("pack_contacts", "pack_ends", "pack_bodies", "body_lanes", "contact_lanes", "sum_lanes", "unpack_lanes")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", COUNTS)
def test_iterations_in_lanes_are_those_of_the_product(backend, count, dtype):
    """Three, so that every number that an iteration leaves is read by another."""
    case = Case(backend, count, dtype)
    n = count
    assert_close(case.impulses()[:, :n], case.x[:, :n], 1.0 + np.abs(case.x[:, :n]).max(initial=0.0), case.eps)
    x, d, old, shift = case.x[:, :n], np.zeros((3, n)), np.zeros((3, n)), np.zeros(n)
    bias, mu = case.cone.bias[:, :n], case.mu[:n]
    for _ in range(3):
        padded = np.zeros((3, n + SPARE))
        padded[:, :n] = x
        u = case.product(padded)
        z, change, shift, sums = step(x, d, u, bias, old, shift, mu)
        size = 1.0 + np.abs(u).max(initial=0.0) + np.abs(old).max(initial=0.0)
        x, d, old = z, change, u
        backend.contact_lanes(case.lanes, scalars(), case.sums.step, case.sums.totals)
        got = backend.sum_lanes(n, case.lanes.part, case.sums.totals)
        backend.body_lanes(case.bodies)
        assert_close(case.impulses()[:, :n], x, size, case.eps)
        assert_close(got, sums, (1.0 + n) * size**2, case.eps)


@covers("measure_lanes", "tangent_lanes", "lane_value")
@pytest.mark.parametrize("coulomb", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", COUNTS[1:])
def test_stopping_values_in_lanes(backend, count, dtype, coulomb):
    case = Case(backend, count, dtype, coulomb=coulomb)
    n, gauge = count, case.gauge
    given = case.lanes, coulomb, gauge.speed, case.sums.error
    s, w = gauge.scale[[0, 1, 1], :n], gauge.weight[:n]
    g, r, mu = s * case.x[:, :n], gauge.bias[:, :n] / s, gauge.friction[:n]
    u = case.product(case.x) / s + r
    tolerance = 3e-4 if dtype == np.float32 else 1e-9
    value = backend.lane_value(NATURAL, *given)
    assert abs(value - sets.natural_map(g, u, r, mu, w, coulomb)) <= tolerance
    rho, _ = sets.natural(g, u, mu, w, coulomb)
    motion = np.maximum(gauge.speed, np.maximum(np.linalg.norm(u, axis=0), np.linalg.norm(r, axis=0)))
    local = np.max(w * np.linalg.norm(rho, axis=0) / motion)
    assert abs(backend.lane_value(LOCAL, *given) - local) <= tolerance * (1.0 + local)
    a, small = sets.slack(u, mu, coulomb), 1e-7  # g scaled: on the cone of other friction, up to rounding
    g = sets.project(g, mu)
    limit = np.linalg.norm((g - sets.project(g - small * a, mu)) / small) / (3 * n)
    assert abs(backend.lane_value(EQ25, *given) - limit) <= (1e-2 if dtype == np.float32 else 1e-4) * limit


@covers("apgd_lanes", "apgd_single_lanes")
@pytest.mark.parametrize("law", list(Law))
@pytest.mark.parametrize("precision", ["single", "double", "auto"])
def test_precisions_end_at_the_same_velocities(backend, precision, law):
    """Single precision solves what it can represent; a tolerance far below that, auto reaches and single does not."""
    count, rng = 1300, np.random.default_rng(5)
    op, own = data.contacts(count, count), data.bodies(count)
    bias = spare(3, count)
    bias[:, :count] = data.relative(op, rng.normal(size=(data.BODIES, 6)) * own.movable[:, None])
    bias[0, :count] += rng.uniform(0.0, 0.3, count)
    mu = spare(0, count)
    mu[:count] = rng.uniform(0.1, 0.6, count)
    group = BlockGroup(BlockKind.CONE, 3, count, mu)
    problem = ConeProblem(group, bias, ContactOperator(op, backend), h=1e-2)
    easy = tb.SolverAPGD(tolerance=1e-5, stop="natural_map", precision=precision).solve(problem, law=law)
    assert easy.status == Status.CONVERGED and easy.residuals.natural_map <= 1.1e-5
    if law == Law.COULOMB:
        return
    hard = tb.SolverAPGD(tolerance=1e-11, stop="natural_map", precision=precision, max_iterations=30000)
    found = hard.solve(problem, law=law)
    assert (found.status == Status.CONVERGED) == (precision != "single")
    assert found.residuals.natural_map <= (1e-5 if precision == "single" else 1.1e-11)


def test_the_scalars_of_an_iteration():
    """Longer steps only by decay, shorter ones at once but at most halved; no restart right after one."""
    s = first_scalars(0.5, 0.9, 10.0)
    s[Scalar.CURVATURE] = 2.0
    next_scalars(1.0, 1.5, -1.0, s)
    assert s[Scalar.CURVATURE] == 1.0 and s[Scalar.BETA] == 0.0 and s[Scalar.BLEND] == 1.0
    next_scalars(1.0, 1.7, -1.0, s)
    assert s[Scalar.CURVATURE] == 1.7 and 0.0 < s[Scalar.BETA] <= 0.9
    next_scalars(1.0, 100.0, 1.0, s)
    assert s[Scalar.CURVATURE] == 3.4 and s[Scalar.BETA] == 0.0 and s[Scalar.THETA] == 1.0
    for _ in range(100):
        next_scalars(1.0, 0.0, 1.0 if s[Scalar.RESTED] else -1.0, s)
        assert s[Scalar.RESTED] == 0.0 and s[Scalar.BETA] <= 0.9
    assert s[Scalar.BETA] == 0.9 and s[Scalar.BLEND] == pytest.approx(10.0 / 103)


def test_lanes_fit_into_their_blocks():
    assert LANE_CONTACTS % LANES == 0 and LANE_FEW % LANES == 0
