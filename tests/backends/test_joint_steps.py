"""What a step does to joint rows, mechanisms and jointed bodies: each formula against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tumble.backends.base import MotionArrays
from tumble.backends.joint_arrays import (
    BoundedState,
    BuiltRows,
    IdealArrays,
    JointedBodies,
    JointRows,
    KeptEnergy,
    MechanismArrays,
    PosedArrays,
    RowSystem,
)
from tumble.enums import BodyKind, RowRole
from tumble.kernels import joint_steps, mechanism_energy
from tumble.kernels.joint_steps import CROSSED, ENERGY, HUGE, IDEAL, LIMIT_RECOVERY, MOTORS, SUMS, WORK
from tumble.scene import rotation

from . import data
from .cover import covers
from .data import assert_close
from .jointed import dense, jointed, random_rows

H = 2e-3
MOTOR_COUNT = 4
EULER, MOREAU = -1.0, 0.5


def some_rows(rng, n, roles, coords=30, bodies=40):
    """Rows of given roles on random coordinates, some of them of motors."""
    coord = rng.integers(0, coords, (n, 2))
    coord[::3, 1] = -1
    role = rng.choice(np.array([int(r) for r in roles], np.int8), n)
    motor = np.where(rng.random(n) < 0.4, rng.integers(0, MOTOR_COUNT, n), -1)
    motor[(role == RowRole.SPEED) | (role == RowRole.BOUNDED_SPEED)] = 1
    driven = (motor >= 0) & (role != RowRole.SPEED) & (role != RowRole.BOUNDED_SPEED)
    body = np.array([np.where(np.arange(4) < k, rng.permutation(bodies)[:4], -1) for k in rng.integers(1, 5, n)])
    positive = np.abs(rng.normal(size=(3, n))) + 0.1
    return JointRows(
        rng.permutation(n), body.reshape(n, 4).astype(np.int32), coord, rng.normal(size=(n, 2)), rng.normal(size=n),
        role, role == RowRole.RIGID, motor, driven, positive[0] * np.where(rng.random(n) < 0.7, 99.0, 0.0),
        positive[1], positive[2], np.abs(rng.normal(size=(n, 4))), np.abs(rng.normal(size=(n, 4))),
    )  # fmt: skip


def built(rng, rows, bodies=40):
    """Numbers of rows at random."""
    n = len(rows.role)
    jacobian = random_rows(rng, rows.body)
    return BuiltRows(jacobian, rng.normal(size=(n, 24)), *rng.normal(size=(3, n)), *np.full((2, n), np.nan))


def spring(g, k, d, theta, old):
    """Bias and compliance of a spring and damper; theta: of their mean over Moreau's step."""
    if theta < 0.0:
        return k * g / (H * k + d), 1.0 / (H * (H * k + d))
    s = theta * (theta * H * k + d)
    return (k * g + (1.0 - theta) * (d - (1.0 - theta) * H * k) * old) / s, 1.0 / (H * s)


@covers("over_rows")
@pytest.mark.parametrize("n", [0, 1, 300])
def test_rows_are_weighted_sums_of_coordinates(backend, n):
    rng = np.random.default_rng(n)
    own, rows = data.bodies(2, 40), some_rows(rng, n, RowRole)
    value, target, jacobian = rng.normal(size=30), rng.normal(size=MOTOR_COUNT), rng.normal(size=(30, 12))
    out = BuiltRows(*(np.full((n, 24), np.nan) for _ in range(2)), *(np.full(n, np.nan) for _ in range(5)))
    backend.made("over_rows", joint_steps.build_row)(
        n, rows, value, target, jacobian, own.inverse_mass, own.inverse_inertia, out
    )
    use = np.where(rows.coord >= 0, rows.weight, 0.0)
    parts = use[:, :, None] * jacobian[rows.coord]
    assert_close(out.jacobian, parts.reshape(n, 24))
    inverse_mass = data.inverse_mass_matrix(data.contacts(2, 0, own=own))
    has = np.where(np.repeat(rows.body >= 0, 6, axis=1), out.jacobian, 0.0)
    assert_close(dense(rows.body, out.weighted, 40), dense(rows.body, has, 40) @ inverse_mass)
    wanted = rows.offset + np.where(rows.driven, target[rows.motor], 0.0)
    assert_close(out.wanted, wanted)
    assert_close(out.g, np.sum(use * value[rows.coord], axis=1) - wanted)
    square = (out.jacobian.reshape(n, 4, 2, 3) ** 2).sum(axis=3)
    assert_close(out.whole, (square[:, :, 0] * rows.light + square[:, :, 1] * rows.nimble).sum(axis=1))


@pytest.mark.parametrize("theta", [EULER, MOREAU])
def test_bias_and_compliance_of_equality_rows(backend, theta):
    rng, n = np.random.default_rng(3), 300
    rows = some_rows(rng, n, (RowRole.RIGID, RowRole.SPEED, RowRole.SPRING))
    out, before, target = built(rng, rows), rng.normal(size=(40, 6)), rng.normal(size=MOTOR_COUNT)
    backend.made("over_rows", joint_steps.kick_row)(n, rows, target, H, theta, before, out)
    speed = dense(rows.body, out.jacobian, 40) @ before.ravel()
    bias, soft = spring(out.g, rows.stiffness, rows.damping, theta, speed)
    is_spring, driven = rows.role == RowRole.SPRING, rows.role == RowRole.SPEED
    rigid = out.g / H if theta < 0.0 else -speed
    wanted = np.where(is_spring, bias, np.where(driven, -target[rows.motor], rigid))
    assert_close(out.bias, wanted)
    assert_close(out.compliance, np.where(is_spring, soft, 0.0))
    held = rng.random(n) < 0.5
    backend.made("over_rows", joint_steps.hold_row)(n, held, out.compliance)
    assert np.array_equal(out.compliance, np.where(held, 0.0, HUGE))


@covers("take_rows")
@pytest.mark.parametrize("theta", [EULER, MOREAU])
def test_bounded_rows_of_a_step(backend, theta):
    rng, n = np.random.default_rng(4), 300
    own = data.bodies(2, 40)
    roles = (RowRole.LOWER, RowRole.UPPER, RowRole.BOUNDED_SPEED, RowRole.BOUNDED_POSITION, RowRole.FRICTION)
    rows = some_rows(rng, n, roles)
    value, target, jacobian = rng.normal(size=30), rng.normal(size=MOTOR_COUNT), rng.normal(size=(30, 12))
    slack, free, before = np.abs(rng.normal(size=n)), *rng.normal(size=(2, 40, 6))
    out = BuiltRows(*(np.full((n, 24), np.nan) for _ in range(2)), *(np.full(n, np.nan) for _ in range(5)))
    state = BoundedState(np.full(n, np.nan), np.zeros(n, bool), np.zeros(n, bool), np.ones(n))
    poses = (value, target, jacobian, own.inverse_mass, own.inverse_inertia)
    backend.made("over_rows", joint_steps.bounded_row)(n, rows, slack, (H, theta), (free, before), poses, out, state)
    limit = (rows.role == RowRole.LOWER) | (rows.role == RowRole.UPPER)
    assert np.array_equal(state.limit, limit) and not state.impulse.any()
    of_bodies = dense(rows.body, out.jacobian, 40)
    speed, old = of_bodies @ free.ravel(), of_bodies @ before.ravel()
    bias = out.g / np.where(limit | (theta < 0.0), H, theta * H)
    bias = np.where(limit & (out.g < 0.0), LIMIT_RECOVERY * out.g, bias)
    bias[rows.role == RowRole.FRICTION] = 0.0
    bias = np.where(rows.role == RowRole.BOUNDED_SPEED, -target[rows.motor], bias)
    soft = (rows.role == RowRole.BOUNDED_POSITION) & (rows.stiffness > 0.0)
    springs = spring(out.g, rows.stiffness, rows.damping, theta, old)
    assert_close(out.bias, np.where(soft, springs[0], bias) + speed)
    assert_close(out.compliance, np.where(soft, springs[1], 0.0))
    assert_close(state.bound, np.where(limit, 0.0, -H * rows.most))
    kept = ~limit | (out.g <= slack + 2.0 * H * np.abs(speed))
    assert np.array_equal(state.kept, kept) and 0 < kept.sum() < n

    velocity, passed = 1e3 * rng.normal(size=(40, 6)), np.ones(n, bool)
    backend.made("over_rows", joint_steps.passes_limit)(n, rows, out, state, H, velocity, passed)
    assert np.array_equal(passed, ~kept & (out.g + H * (of_bodies @ velocity.ravel()) < 0.0)) and passed.any()
    taken = (
        np.zeros((n, 4), np.int32), np.full((n, 24), np.nan), np.full((n, 24), np.nan), *np.full((3, n), np.nan),
        np.zeros(n, np.int64), np.full(5, -1),
    )  # fmt: skip
    first = np.array([7, 7, 100, 250, n])  # of four mechanisms; the rows before are on bodies without joints
    count = backend.take_rows(rows, first, out, state, taken)
    assert count == kept.sum()
    assert taken[-1].tolist() == [kept[:f].sum() for f in first]
    sources = (rows.body, out.jacobian, out.weighted, out.compliance, out.bias, state.bound, rows.number)
    for got, source in zip(taken[:-1], sources, strict=True):
        assert np.array_equal(got[:count], source[kept])

    impulse, kind = rng.normal(size=n), own.kind
    after, work = rng.normal(size=(40, 6)), np.full((3, n), np.nan)
    backend.made("over_rows", joint_steps.row_work)(n, rows, out, limit, impulse, before, after, kind, work)
    y, mean = impulse[rows.number], 0.5 * (before + after)
    moving = np.where((kind == BodyKind.DYNAMIC)[:, None], mean, 0.0)
    assert_close(work[0], y * (of_bodies @ moving.ravel()), roundings=1e3)
    assert_close(work[1], np.where(rows.motor >= 0, y * (of_bodies @ mean.ravel()), 0.0), roundings=1e3)
    beyond, new = limit & (out.g < 0.0), of_bodies @ after.ravel()
    wanted = np.where(beyond, np.clip(0.5 * y * (old + new), 0.0, np.maximum(y * new, 0.0)), 0.0)
    assert_close(work[2], wanted, roundings=1e3)


def test_impulses_targets_and_what_is_remembered(backend):
    rng, n = np.random.default_rng(5), 40
    motor, target, impulse = rng.integers(0, n, 7), rng.normal(size=n), np.full(7, np.nan)
    backend.made("over_rows", joint_steps.torque_impulse)(7, motor, H, target, impulse)
    assert_close(impulse, H * target[motor])
    given, out = np.where(rng.random(n) < 0.5, np.nan, rng.normal(size=n)), np.full(n, np.nan)
    take = backend.made("over_rows", joint_steps.take_target)
    take(n, target, given, out)
    assert np.array_equal(out, np.where(np.isnan(given), target, given))
    take(n, target, given[:0], out)
    assert np.array_equal(out, target)
    take(n, target[:0], given, out)
    assert np.array_equal(out, np.where(np.isnan(given), 0.0, np.nan), equal_nan=True)
    number, whole = rng.permutation(n)[:7], rng.normal(size=n)
    wanted = whole.copy()
    wanted[number] = impulse
    backend.made("over_rows", joint_steps.take_bounded)(7, number, impulse, whole)
    assert np.array_equal(whole, wanted)
    role, ends = rng.integers(0, 8, n).astype(np.int8), rng.normal(size=(2, n))
    for symmetric in (False, True):
        end, carried = ends.copy()
        backend.made("over_rows", joint_steps.remember_row)(n, role, whole, end, symmetric, carried)
        equality = role <= RowRole.SPRING
        assert np.array_equal(end, np.where(equality, ends[0], whole))
        assert np.array_equal(carried, np.where(equality & symmetric, ends[1] + ends[0], ends[1]))


class Mechanisms:
    """Rows of mechanisms, trees among them, with numbers, and the bodies that they move."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        self.case = case = jointed(seed, 5)
        a, n = case.arrays, len(case.arrays.body)
        self.n, self.own, self.a = n, data.bodies(seed, case.bodies), a
        rows = some_rows(rng, n, (RowRole.RIGID, RowRole.SPEED, RowRole.SPRING), bodies=case.bodies)
        self.rows = rows._replace(body=a.body)
        numbers = BuiltRows(a.jacobian, a.weighted, *rng.normal(size=(4, n)), np.zeros(n))
        self.system = RowSystem(self.rows, numbers, a.factor)
        own = self.own
        self.bodies = JointedBodies(
            case.mechanism_body_start, case.mechanism_body, own.kind, own.mass, own.inertia, own.orientation
        )
        self.mass = np.zeros((6 * case.bodies, 6 * case.bodies))
        for i, r in enumerate(rotation.matrix(own.orientation)):
            self.mass[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = own.mass[i] * np.eye(3)
            self.mass[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = r @ np.diag(own.inertia[i]) @ r.T

    def velocity(self):
        return self.rng.normal(size=(self.case.bodies, 6))

    def energies(self, v):
        """(mechanisms,) [J]"""
        out = []
        for c in range(6):
            own = np.zeros_like(v)
            members = self.case.mechanism_body[self.case.mechanism_body_start[c] :][:4]
            own[members] = v[members]
            out.append(0.5 * own.ravel() @ self.mass @ own.ravel())
        return np.array(out)

    def by_mechanism(self, x):
        return x.reshape(6, 9).sum(axis=1)

    def works(self, impulse, before, after):
        """All, motors' and ideal work of each mechanism."""
        mean, rows = 0.5 * (before + after), self.rows
        moving = np.where((self.own.kind == BodyKind.DYNAMIC)[:, None], mean, 0.0)
        y = impulse[rows.number]
        every = y * (self.case.equality @ mean.ravel())
        ideal = np.where(rows.rigid & (rows.motor < 0), every, 0.0)
        parts = y * (self.case.equality @ moving.ravel()), np.where(rows.motor >= 0, every, 0.0), ideal
        return [self.by_mechanism(p) for p in parts]


@covers("over_mechanisms")
@pytest.mark.parametrize("carried", [False, True])
def test_free_velocities_obey_the_rows(backend, carried):
    case = Mechanisms(11)
    before, old = case.rng.normal(size=case.n), case.rng.normal(size=case.n)
    free = case.velocity()
    wanted = case.case.equality @ free.ravel() + case.system.built.bias
    y = case.case.answer @ wanted
    after = free.ravel() - case.case.inverse_mass @ (case.case.equality.T @ y)
    out = (*np.full((3, case.n), np.nan), old.copy())
    run = backend.made("over_mechanisms", joint_steps.obey)
    run(6, case.system, before if carried else before[:0], free, out)
    size = 10.0 * (1.0 + np.abs(y).max())
    assert_close(out[0], wanted, size)
    assert_close(out[1], y, size, 1e5)
    assert_close(free.ravel(), after, size, 1e5)
    assert np.array_equal(out[2][case.rows.number], -out[1])
    assert np.array_equal(out[3], before if carried else old)


def test_works_and_energies_at_the_kick(backend):
    case = Mechanisms(12)
    before, velocity, impulse = case.velocity(), case.velocity(), case.rng.normal(size=case.n)
    reaction, sums = case.rng.normal(size=case.n), np.full((SUMS, 6), np.nan)
    after = impulse.copy()
    backend.made("over_mechanisms", joint_steps.react)(
        6, case.system, reaction, case.bodies, after, before, velocity, sums
    )
    wanted = impulse.copy()
    wanted[case.rows.number] -= reaction
    assert np.array_equal(after, wanted)
    for row, work in zip((WORK, MOTORS, IDEAL), case.works(after, before, velocity), strict=True):
        assert_close(sums[row], work, 100.0)
    assert_close(sums[ENERGY], case.energies(velocity), 100.0)

    y, base, speed = case.rng.normal(size=case.n), case.velocity(), case.rng.normal(size=case.n)
    force, torque = case.rng.normal(size=(2, case.case.bodies, 3))
    then = after.copy()
    backend.made("over_mechanisms", joint_steps.closed)(
        6, case.system, case.bodies, (base, y), (H, force, torque), then, before, velocity, speed, sums
    )
    wanted = after.copy()
    wanted[case.rows.number] += y
    assert np.array_equal(then, wanted)
    now = case.case.equality @ velocity.ravel()
    assert_close(sums[MOTORS], case.by_mechanism(np.where(case.rows.motor >= 0, 0.5 * y * (speed + now), 0.0)), 100.0)
    assert_close(sums[IDEAL], case.works(then, before, velocity)[2], 100.0)
    assert_close(sums[ENERGY], case.energies(velocity), 100.0)
    power = np.sum(np.c_[force, torque] * (velocity - base), axis=1)
    members = case.case.mechanism_body.reshape(6, 4)
    assert_close(sums[CROSSED], 0.5 * H * power[members].sum(axis=1))


def test_velocities_at_the_end_of_a_step(backend):
    case = Mechanisms(13)
    rows, n, rng = case.rows, case.n, case.rng
    held = (rows.rigid | (rows.role == RowRole.SPEED)) & (rng.random(n) < 0.8)
    target, rate = rng.normal(size=(2, MOTOR_COUNT))
    rate[2] = np.nan
    start, now = rng.normal(size=(2, 30))
    velocity, speed, y = case.velocity(), np.full(n, np.nan), np.full(n, np.nan)
    sums, old = np.full((SUMS, 6), np.nan), velocity.copy()
    backend.made("over_mechanisms", joint_steps.still)(
        6, case.system, case.bodies, held, (target, rate), (start, now, H), velocity, speed, y, sums
    )
    assert np.array_equal(velocity, old)
    across = case.case.equality @ velocity.ravel()
    assert_close(speed, across, 10.0)
    along = (now - start)[rows.coord[:, 0]] / H
    of_motor = np.where(np.isnan(rate[rows.motor]), along, rate[rows.motor])
    goal = np.where(rows.role == RowRole.SPEED, target[rows.motor], np.where(rows.rigid, of_motor, 0.0))
    goal = np.where(rows.motor >= 0, goal, 0.0)
    wanted = case.case.answer @ np.where(held, goal - across, 0.0)
    assert_close(y, wanted, 1.0 + np.abs(wanted).max(), 1e5)
    assert_close(sums[ENERGY], case.energies(velocity), 100.0)
    left = np.full(n, np.nan)
    backend.made("over_mechanisms", joint_steps.push)(6, case.system, y, velocity, left)
    pushed = old.ravel() + case.case.inverse_mass @ (case.case.equality.T @ y)
    assert_close(velocity.ravel(), pushed, 1.0 + np.abs(pushed).max(), 1e3)
    assert np.array_equal(left[rows.number], y)
    backend.made("over_mechanisms", joint_steps.gained)(6, case.system, case.bodies, velocity, speed, y, sums)
    size = np.abs(case.energies(velocity)).max() + 1.0
    assert_close(sums[ENERGY], case.energies(velocity) - case.energies(old), size, 1e3)
    after = case.case.equality @ velocity.ravel()
    assert_close(sums[MOTORS], case.by_mechanism(np.where(rows.motor >= 0, 0.5 * y * (speed + after), 0.0)), size, 1e3)


def test_bodies_before_and_after_a_kick(backend):
    rng, n = np.random.default_rng(7), 80
    own = data.bodies(7, n)
    some = np.sort(rng.permutation(n)[:50])
    state = MotionArrays(own.position, own.orientation, own.velocity.copy(), own.spin.copy())
    out = np.full((n, 6), np.nan)
    backend.made("over_rows", joint_steps.world_velocity)(50, some, state, out)
    turned = rotation.rotate(own.orientation, own.spin)
    assert_close(out[some], np.c_[own.velocity, turned][some], 10.0)
    assert np.isnan(np.delete(out, some, axis=0)).all()
    after, velocity, spin = rng.normal(size=(n, 6)), own.velocity.copy(), own.spin.copy()
    backend.made("over_rows", joint_steps.take_kick)(50, some, own.kind, state, after, velocity, spin)
    taken = np.isin(np.arange(n), some) & (own.kind == BodyKind.DYNAMIC)
    assert_close(velocity, np.where(taken[:, None], after[:, :3], own.velocity), 10.0)
    change = rotation.rotate(rotation.conjugate(own.orientation), after[:, 3:] - turned)
    assert_close(spin, np.where(taken[:, None], own.spin + change, own.spin), 10.0)
    noted = np.full((n, 4), np.nan)
    backend.made("over_rows", joint_steps.note_orientation)(50, some, own.orientation, noted)
    assert np.array_equal(noted[some], own.orientation[some]) and np.isnan(np.delete(noted, some, axis=0)).all()
    x, q = np.full((n, 3), np.nan), np.full((n, 4), np.nan)
    after[some[::2], 3:] = 0.0
    backend.made("over_rows", joint_steps.set_off)(50, some, state, 0.3, after, x, q)
    assert_close(x[some], (own.position + 0.3 * after[:, :3])[some], 10.0)
    assert_close(q[some], rotation.turned(own.orientation, 0.3 * after[:, 3:])[some], 1.0)


def test_ideal_joints_keep_the_energy_of_the_drift(backend):
    """Of mechanisms whose partners stay, and that have an inner motion; and what is too long a step for them."""
    case = Mechanisms(14)
    own, velocity = case.own, case.velocity()
    energy, fall, mass = case.energies(velocity), np.full(6, 3.0), np.full(6, 2.0)
    partner_start, partner = np.array([0, 0, 1, 2, 2, 2, 2]), np.array([1, 1])
    first = own.position.copy()
    ideal = IdealArrays(
        np.array([True, True, True, False, True, True]), fall, mass, partner_start, partner, first,
        own.orientation.copy(), np.ones(len(first)),
    )  # fmt: skip
    start, members = case.case.mechanism_body_start, case.case.mechanism_body
    mechanisms = MechanismArrays(start, members, np.array([0, 0, 0, 0, 0, 3, 3]), np.eye(6)[:3])
    bodies = PosedArrays(own.mass, own.inertia, own.position, own.orientation)
    free, dropped = np.array([4, 4, 4, 4, 2, 4]), np.array([0, 0, 0, 0, 1, 0])
    wanted, owed = energy * np.array([1.01, 1.02, 0.99, 1.01, 1.02, 1.5]), 1e-3 * energy
    for moved in (False, True):
        own.position[1] = first[1] + (1e-9 if moved else 0.0)
        work = KeptEnergy(
            np.zeros(6, bool), *np.full((2, 6), np.nan), np.zeros(6, bool), np.full((24, 6), np.nan),
            np.full((6, 24, 6), np.nan),
        )  # fmt: skip
        after = velocity.copy()
        backend.made("over_mechanisms", mechanism_energy.keep_ideal_energy)(
            6, mechanisms, bodies, ideal, wanted, owed, (free, dropped), (H, 1e-6), after, work
        )
        kept = np.array([True, not moved, not moved, False, False, True])
        assert np.array_equal(work.kept, kept)
        assert_close(work.rest, fall * H * H + 0.5 * mass * (1e-6 / H) ** 2)
        gained = case.energies(after) - energy
        assert_close(gained[kept] + work.owed[kept], (wanted - energy + owed)[kept], energy.max(), 1e3)
        assert np.all(np.abs(work.owed[kept]) < 1e-2 * energy[kept])
        assert not gained[~kept].any() and np.array_equal(work.owed[~kept], owed[~kept])
        assert np.array_equal(work.strained, [False] * 5 + [True]), "half as much again is no drift"


@covers("worst_of")
def test_worst_joint(backend):
    found = np.random.default_rng(9).random((50, 4))
    found[:, 2] = np.arange(50)
    assert backend.worst_of(found) == (found[:, 0].max(), found[:, 1].max(), found[:, 0].argmax())
    found[20, 0] = np.nan
    assert np.isnan(backend.worst_of(found)[0]) and backend.worst_of(found)[2] == 20
    assert backend.worst_of(found[:0]) == (0.0, 0.0, 0)
