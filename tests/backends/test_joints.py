"""Joints: coordinates and rows, the factor of their system, elimination, projection and energies."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tumble as tb
from tumble.backends.base import MotionArrays
from tumble.backends.joint_arrays import (
    CoordinateArrays,
    EnergyArrays,
    FactorArrays,
    FactorWork,
    MechanismArrays,
    PatternArrays,
    PosedArrays,
    SystemArrays,
    frame_arrays,
)
from tumble.enums import BodyKind
from tumble.kernels import joint_steps, mechanism_energy
from tumble.kernels.joints import ANGLE, DISTANCE, DOT, POINT
from tumble.problem.elimination import Pattern
from tumble.problem.joint_system import body_factor
from tumble.scene import rotation

from ..naive.mechanisms import rod
from . import data
from .cover import TwiceRun, copied, covers
from .data import assert_close, frozen
from .jointed import dense, jointed, random_rows, weighted

# ---------------------------------------------------------------------- coordinates


def unit(rng, n):
    """Random quaternions."""
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def coordinate_values(frames, position, orientation):
    """Values by definition: the place of B's origin along an axis of A, the cosine of two axes, the distance, and sine
    and cosine of the angle from A's x to B's x about z of A."""
    f = frames.frame
    a, b = frames.body[f].T
    p = position[a] + rotation.rotate(orientation[a], frames.position[2 * f])
    q = position[b] + rotation.rotate(orientation[b], frames.position[2 * f + 1])
    ma = rotation.matrix(rotation.multiply(orientation[a], frames.orientation[2 * f]))
    mb = rotation.matrix(rotation.multiply(orientation[b], frames.orientation[2 * f + 1]))
    k = np.arange(len(f))
    i, j = frames.axis.T
    first = {
        POINT: np.einsum("kc,kc->k", ma[k, :, i], q - p),
        DOT: np.einsum("kc,kc->k", ma[k, :, i], mb[k, :, j]),
        DISTANCE: np.linalg.norm(q - p, axis=1),
        ANGLE: np.einsum("kc,kc->k", ma[:, :, 1], mb[:, :, 0]),
    }
    cosine = np.einsum("kc,kc->k", ma[:, :, 0], mb[:, :, 0])
    value = np.choose(frames.kind, [first[kind] for kind in (POINT, DOT, DISTANCE, ANGLE)])
    return value, np.where(frames.kind == ANGLE, cosine, 0.0)


def random_frames(rng, count, n):
    """Coordinates of all kinds on n bodies. Angles are about an axis that both frames share."""
    frame_count = count // 2
    body = np.array([rng.permutation(n)[:2] for _ in range(frame_count)]).astype(np.int32)
    place, turn = rng.normal(size=(2 * frame_count, 3)), unit(rng, 2 * frame_count)
    kind = rng.integers(0, 4, count)
    frame = rng.integers(0, frame_count, count)
    return frame_arrays(
        frozen(body), frozen(place), frozen(turn), frozen(kind), frozen(frame), frozen(rng.integers(0, 3, (count, 2)))
    )


def test_coordinates_and_their_derivatives(backend):
    """Values by definition, Jacobians by central differences (steps of 1e-6: 1e-9 of the values)."""
    rng = np.random.default_rng(1)
    n, count = 20, 60
    frames = random_frames(rng, count, n)
    position, orientation = rng.normal(size=(n, 3)), unit(rng, n)
    # Give frames of angles a common z: turn frame B so that both agree but for a turn about z.
    turn = frames.orientation.copy()
    for k in np.flatnonzero(frames.kind == ANGLE):
        f = frames.frame[k]
        a, b = frames.body[f]
        world = rotation.multiply(orientation[a], turn[2 * f])
        angle = rng.uniform(-np.pi, np.pi)
        about_z = np.array([np.cos(0.5 * angle), 0.0, 0.0, np.sin(0.5 * angle)])
        turn[2 * f + 1] = rotation.multiply(rotation.conjugate(orientation[b]), rotation.multiply(world, about_z))
    frames = frames._replace(orientation=frozen(turn))
    value, jacobian = np.full(count, np.nan), np.full((count, 12), np.nan)
    near, lead, velocity = 20.0 * rng.normal(size=count), 0.7, rng.normal(size=(n, 6))
    old = rng.normal(size=(count, 12))
    see = backend.made("over_rows", joint_steps.coordinates_now)
    see(len(frames.body), frames, (position, orientation), (near, lead, velocity, old), (value, jacobian))
    wanted, cosine = coordinate_values(frames, position, orientation)
    angle, turning = np.arctan2(wanted, cosine), frames.kind == ANGLE
    place = near + lead * np.einsum("kc,kc->k", old, velocity[frames.body[frames.frame]].reshape(count, 12))
    angle += 2.0 * np.pi * np.round((place - angle) / (2.0 * np.pi))
    assert_close(value, np.where(turning, angle, wanted))
    again = np.full(count, np.nan)
    see(len(frames.body), frames, (position, orientation), (near, 0.0, velocity, old), (again, jacobian))
    assert np.all(np.abs(again - near)[turning] <= np.pi + 1e-12) and np.array_equal(again[~turning], value[~turning])

    def moved(v, h):
        x, q = position + h * v[:, :3], rotation.turned(orientation, h * v[:, 3:])
        first, other = coordinate_values(frames, x, q)
        return np.where(frames.kind == ANGLE, np.arctan2(first, other), first)

    sides = frames.body[frames.frame]
    v, h = rng.normal(size=(n, 6)), 1e-6
    change = moved(v, h) - moved(v, -h)
    change = np.where(frames.kind == ANGLE, np.remainder(change + np.pi, 2 * np.pi) - np.pi, change)
    speed = np.einsum("kc,kc->k", jacobian, v[sides].reshape(count, 12))
    assert np.abs(speed - change / (2.0 * h)).max() <= 1e-8
    assert {POINT, DOT, DISTANCE, ANGLE} == set(frames.kind.tolist())


@covers("row_speeds", "push_rows")
@pytest.mark.parametrize("n", [0, 30, 700])
def test_speeds_across_rows_and_impulses_along_them(backend, n):
    rng = np.random.default_rng(2)
    own = data.bodies(2, 40)
    body = np.array([np.where(np.arange(4) < k, rng.permutation(40)[:4], -1) for k in rng.integers(1, 5, n)])
    body = body.reshape(n, 4).astype(np.int32)
    jacobian = random_rows(rng, body)
    inverse_mass = data.inverse_mass_matrix(data.contacts(2, 0, own=own))
    both, wanted = weighted(body, jacobian, inverse_mass), dense(body, jacobian, 40)
    v, x, speed = rng.normal(size=(40, 6)), rng.normal(size=n), np.full(n, np.nan)
    x[::4] = 0.0
    backend.row_speeds(body, jacobian, v, speed)
    assert_close(speed, wanted @ v.ravel())
    after = v.copy()
    backend.push_rows(body, both, x, after)
    assert_close(after.ravel(), v.ravel() + inverse_mass @ (wanted.T @ x), 1.0 + np.abs(after).max(), roundings=1e3)


# ---------------------------------------------------------------------- the system


@covers("factor_joints", "solve_joints", "forward_joints")
@pytest.mark.parametrize("mechanisms", [0, 1, 7])
def test_factor_of_joint_rows(backend, mechanisms):
    """L D L^T is the system; rows that depend on others are dropped; the solution solves what can be solved."""
    rng = np.random.default_rng(mechanisms)
    own = data.bodies(mechanisms, 60)
    free = np.flatnonzero(np.all(own.inverse_mass > 0.0, axis=1) & ~own.locked.any(axis=1))
    rows_of, size = 8, 5
    body = np.full((rows_of * mechanisms, 4), -1, np.int32)
    for r in range(len(body)):
        members = free[size * (r // rows_of) : size * (r // rows_of) + size]
        near = r % rows_of % (size - 1)  # a chain, so that the factor is sparse
        body[r, :2] = members[near : near + 2]
        if r % rows_of == 3:
            body[r, 2] = members[0]
    jacobian = random_rows(rng, body)
    body[rows_of - 1 :: rows_of] = body[::rows_of]
    jacobian[rows_of - 1 :: rows_of] = -3.0 * jacobian[::rows_of]  # depends on another row
    pattern = Pattern.of(body, np.arange(len(body)), own.movable)
    body, jacobian = np.ascontiguousarray(body[pattern.order]), np.ascontiguousarray(jacobian[pattern.order])
    inverse_mass = data.inverse_mass_matrix(data.contacts(mechanisms, 0, own=own))
    m_j = weighted(body, jacobian, inverse_mass)
    n, entries = len(body), int(pattern.l_start[-1])
    compliance = np.where(pattern.order % rows_of == 2, 0.3, 0.0)
    g = dense(body, jacobian, 60)
    s = g @ inverse_mass @ g.T + np.diag(compliance)
    factors = FactorArrays(
        pattern.mechanism, pattern.l_start, np.zeros(entries, np.int64), np.zeros(entries), np.full(n, np.nan),
        np.full(mechanisms, -1), pattern.tree, body_factor(pattern),
    )  # fmt: skip
    used, mark, path = (np.zeros(n, np.int64) for _ in range(3))
    p = pattern
    backend.factor_joints(
        PatternArrays(p.start, p.column, p.pair_start, p.pair, p.parent),
        SystemArrays(body, own.inverse_mass, own.inverse_inertia, jacobian, m_j, compliance, np.diag(s).copy()),
        factors,
        FactorWork(used, np.zeros(n), mark, path),
    )
    l_row, l_value, inverse_pivot = factors.l_row, factors.l_value, factors.inverse_pivot
    lower = np.eye(n)
    for j in range(n):
        at = slice(pattern.l_start[j], pattern.l_start[j + 1])
        lower[l_row[at], j] = l_value[at]
    kept = inverse_pivot > 0.0
    pivot = np.where(kept, 1.0 / np.where(kept, inverse_pivot, 1.0), 0.0)
    size_of = np.abs(s).max(initial=1.0)
    assert_close(lower @ np.diag(pivot) @ lower.T, s, size_of, 1e4)
    assert np.all(inverse_pivot >= 0.0)
    assert np.array_equal(factors.dropped, np.ones(mechanisms))

    wanted = rng.normal(size=n)
    x = s @ wanted  # what can be solved
    backend.solve_joints(factors, x)
    assert_close(s @ x, s @ wanted, size_of * np.abs(wanted).max(initial=1.0), 1e6)
    assert np.all(x[~kept] == 0.0) or mechanisms == 0 or np.all(np.isfinite(x))
    y = s @ wanted
    backend.forward_joints(factors, y)
    assert_close(lower @ y, s @ wanted, size_of * np.abs(wanted).max(initial=1.0), 1e4)
    assert np.all(np.abs(y[~kept]) <= 1e-9 * size_of), "right sides that can be solved contradict nothing"


@covers("factor_joints")
def test_factor_of_trees_by_their_bodies(backend):
    """That of the twin, number for number; and where a joint holds twice, its rows are eliminated instead."""
    case = jointed(8, 5)
    a, f = case.arrays, case.arrays.factor
    n = len(a.body)
    s = case.equality @ case.inverse_mass @ case.equality.T
    compliance = np.zeros(n)
    compliance[2::9] = 0.5
    s += np.diag(compliance)
    for repeated in (False, True):
        jacobian, both = a.jacobian.copy(), a.weighted.copy()
        if repeated:  # the first two rows of mechanism 2 hold one body on another
            jacobian[19, :12] = np.roll(jacobian[18, :12], 6)
            both[19, :12] = np.roll(both[18, :12], 6)
        start = np.concatenate([[0], np.cumsum(np.arange(n) % 9 + 1)])
        column = np.concatenate([np.arange(9 * (r // 9), r + 1) for r in range(n)])
        sides = [
            [(i, j) for i in range(4) for j in range(4) if a.body[r, i] == a.body[c, j] >= 0]
            for r in range(n)
            for c in column[start[r] : start[r + 1]]
        ]
        parent = np.where(np.arange(n) % 9 == 8, -1, np.arange(n) + 1)
        l_start = np.concatenate([[0], np.cumsum(8 - np.arange(n) % 9)])
        made = FactorArrays(
            f.mechanism, l_start, np.zeros(l_start[-1], np.int64), np.full(l_start[-1], np.nan), np.full(n, np.nan),
            np.full(6, -1), f.tree, copied(f.by_bodies, {}),
        )  # fmt: skip
        for array in made.by_bodies:
            array[:] = 0
        backend.factor_joints(
            PatternArrays(
                start, column, np.cumsum([0] + [len(p) for p in sides]), np.array([p for q in sides for p in q]), parent
            ),
            SystemArrays(
                a.body,
                a.contacts.inverse_mass,
                a.contacts.inverse_inertia,
                jacobian,
                both,
                compliance,
                np.diag(s).copy(),
            ),
            made,
            FactorWork(np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64)),
        )
        used = f.by_bodies.used.copy()
        used[2] = not repeated
        assert np.array_equal(made.by_bodies.used, used)
        if repeated:
            assert made.dropped[2] == 1 and made.inverse_pivot[19] == 0.0
            continue
        assert np.array_equal(made.dropped, [1, 0, 0, 1, 0, 0])
        of_trees = np.repeat(used, 9)
        assert_close(made.inverse_pivot[of_trees], f.inverse_pivot[of_trees], roundings=1e5)
        lower_half = np.tril(np.ones((6, 6))).ravel() > 0
        inner = f.tree.inner
        packed = made.by_bodies.inertia[inner][:, lower_half], f.by_bodies.inertia[inner][:, lower_half]
        assert_close(*packed, np.abs(packed[1]).max(), 1e5)
        below = np.zeros(f.by_bodies.lower.shape, bool)
        for first, end in f.tree.rows:
            below[first:end, : end - first] = np.tril(np.ones((end - first, end - first)), -1)
        assert_close(made.by_bodies.lower[below], f.by_bodies.lower[below], np.abs(f.by_bodies.lower).max(), 1e5)
        for name in ("own", "held"):
            x, y = getattr(made.by_bodies, name), getattr(f.by_bodies, name)
            assert_close(x[of_trees], y[of_trees], np.abs(y).max(), 1e5)
        has_parent = np.abs(f.by_bodies.held).max(axis=1) > 0.0
        x, y = made.by_bodies.across, f.by_bodies.across
        assert_close(x[has_parent], y[has_parent], np.abs(y).max(), 1e5)


@covers("eliminate", "solve_joints")
@pytest.mark.parametrize("mechanisms", [0, 2, 6])
def test_elimination_takes_velocities_across_the_rows(backend, mechanisms):
    case = jointed(3, 5, mechanisms=mechanisms)
    v = np.random.default_rng(4).normal(size=(case.bodies, 6))
    after = v.copy()
    backend.eliminate(case.arrays, after)
    y = case.answer @ (case.equality @ v.ravel())
    size = 1.0 + np.abs(y).max(initial=0.0)
    assert_close(case.arrays.reaction, y, size, 1e5)
    assert_close(after.ravel(), v.ravel() - case.inverse_mass @ (case.equality.T @ y), size * 10.0, 1e5)
    a = case.arrays
    x = np.random.default_rng(5).normal(size=len(case.equality))
    solved = x.copy()
    backend.solve_joints(a.factor, solved)
    assert_close(solved, case.answer @ x, 1.0 + np.abs(case.answer).max(initial=0.0), 1e4)


# ---------------------------------------------------------------------- energies


@covers("turn_inertia")
def test_world_inertia_of_some_bodies(backend):
    own = data.bodies(6, 80)
    some, moves = np.unique(np.random.default_rng(6).integers(0, 80, 30)), own.kind == BodyKind.DYNAMIC
    out = np.full((80, 6), 7.0)
    backend.turn_inertia(some, moves, own.inertia, own.locked, own.orientation, out)
    wanted = np.full((80, 6), 7.0)
    wanted[some] = own.inverse_inertia[some]
    assert_close(out, wanted, roundings=1e3)


class Mechanisms:
    """Some mechanisms of moving bodies and their common motions."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.own = own = data.bodies(seed, 60)
        self.start = np.array([0, 4, 7, 7, 12])
        dynamic = np.flatnonzero(own.kind == BodyKind.DYNAMIC)
        self.body = rng.permutation(dynamic)[:12]
        self.velocity = rng.normal(size=(60, 6))
        self.twist_start = np.array([0, 2, 2, 2, 8])
        self.twist = rng.normal(size=(8, 6))
        self.twist[2:8] = np.eye(6)
        self.mass = np.zeros((360, 360))
        for i, r in enumerate(rotation.matrix(own.orientation)):
            self.mass[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = own.mass[i] * np.eye(3)
            self.mass[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = r @ np.diag(own.inertia[i]) @ r.T

    def only(self, c, v):
        """Velocities of the bodies of one mechanism, zero elsewhere."""
        out = np.zeros((60, 6))
        members = self.body[self.start[c] : self.start[c + 1]]
        out[members] = v[members]
        return out.ravel()

    def energies(self, v):
        """(mechanisms,) [J]"""
        return np.array([0.5 * x @ self.mass @ x for x in (self.only(c, v) for c in range(4))])

    def motions(self, c):
        """Common motions of a mechanism (360, t): v = a + w x position."""
        twist = self.twist[self.twist_start[c] : self.twist_start[c + 1]]
        out = [self.only(c, np.c_[t[:3] + np.cross(t[3:], self.own.position), np.tile(t[3:], (60, 1))]) for t in twist]
        return np.array(out).reshape(-1, 360).T


@covers("mechanism_energies")
def test_kinetic_energies_of_mechanisms(backend):
    case, out = Mechanisms(1), np.full(4, np.nan)
    own = case.own
    backend.mechanism_energies(case.start, case.body, own.mass, own.inertia, own.orientation, case.velocity, out)
    assert_close(out, case.energies(case.velocity))


def test_energy_is_kept_by_the_inner_motion_alone(backend):
    """The change is along what the common motions leave, changes none of their momenta, and gives back what is owed."""
    case = Mechanisms(2)
    own, before = case.own, case.energies(case.velocity)
    rng = np.random.default_rng(3)
    kept = np.array([True, False, True, True])
    wanted, rest = before * rng.uniform(0.97, 1.03, 4), np.zeros(4)
    owed, after = 1e-3 * before, case.velocity.copy()
    old_owed = owed.copy()
    backend.made("over_mechanisms", mechanism_energy.keep_mechanism_energy)(
        4,
        MechanismArrays(case.start, case.body, case.twist_start, case.twist),
        PosedArrays(own.mass, own.inertia, own.position, own.orientation),
        EnergyArrays(kept, wanted, rest, owed),
        after,
        np.full((12, 6), np.nan),
        np.full((6, 12, 6), np.nan),
    )
    gained = case.energies(after) - before
    assert np.array_equal(case.only(1, after), case.only(1, case.velocity)) and owed[1] == old_owed[1]
    for c in (0, 3):
        v, change = case.only(c, case.velocity), case.only(c, after) - case.only(c, case.velocity)
        q = case.motions(c)
        momentum = q.T @ case.mass
        inner = v - q @ np.linalg.solve(momentum @ q, momentum @ v)
        factor = (change @ inner) / (inner @ inner)
        assert_close(change, factor * inner, np.abs(v).max(), 1e3)
        assert_close(momentum @ change, np.zeros(q.shape[1]), np.abs(momentum @ v).max() + 1.0, 1e3)
        assert_close(gained[c] + owed[c], wanted[c] - before[c] + old_owed[c], before[c], 1e3)
        own_energy = 0.5 * inner @ case.mass @ inner
        left = (3e-3 * before[c] / own_energy) ** 2  # what is not given back of a motion that is not slow
        assert abs(owed[c]) <= 1.01 * left * abs(wanted[c] - before[c] + old_owed[c]) + 1e-12 * before[c]


# ---------------------------------------------------------------------- projection


class Spy(TwiceRun):
    """Keeps what the pass that closes joints was given by a step, and what it made of it."""

    def close_rows(self, joints, rows, equality, kick, rule, trial, found):
        coordinates = CoordinateArrays(joints.value, joints.jacobian)
        arguments = (rule, equality, joints.frames, kick, coordinates, trial, rows.closing, found)
        self.given = [copied(a, {}) for a in arguments]
        self._twice("close_joints", self.backend.close_joints)(*(copied(a, {}) for a in arguments))
        out = self.backend.close_rows(joints, rows, equality, kick, rule, trial, found)
        self.made = [copied(a, {}) for a in arguments]
        return out


def chains(count):
    """Pendulums of three rods, one end on the ground, in a plane and out of it, and a sliding one."""
    rng = np.random.default_rng(count)
    scene = tb.SceneBuilder()
    for k in range(count):
        at, last = np.array([3.0 * k, 0.0, 0.0]), None
        for i in range(3):
            way = rng.normal(size=3)
            end = at + 0.5 * way / np.linalg.norm(way)
            b = rod(scene, at, end, radius=0.1, name=f"rod {k} {i}")
            if i == 1:
                scene.add_joint("revolute", last, b, anchor=at, axis=(0, 1, 0), name=f"hinge {k} {i}")
            elif i == 2 and k % 2:
                scene.add_joint("distance", last, b, anchor_a=(0.1, 0, 0), anchor_b=(0, 0.2, 0.1), name=f"rope {k}")
            else:
                scene.add_joint("spherical", last, b, anchor=at, name=f"ball {k} {i}")
            at, last = end, b
    return scene.build()


@covers("close_joints", "close_rows")
@pytest.mark.parametrize("count", [1, 6])
def test_joints_are_closed_at_the_end_of_the_drift(backend, count):
    """Rows hold after a drift with the new velocities, to what the pass says and to rounding of the size; the change of
    velocity belongs to impulses along the rows."""
    spy = Spy(backend.backend)
    model = chains(count)
    rng = np.random.default_rng(count)
    sim = tb.Simulation(model, options=tb.StepOptions(dt=5e-3), backend=spy)
    state = sim._held.acting
    state.velocity[:] = 2.0 * rng.normal(size=state.velocity.shape)
    state.spin[:] = 4.0 * rng.normal(size=state.spin.shape)
    for _ in range(4):
        sim.step()
    rule, rows, frames, kick, _, trial, *_ = spy.given
    rest, start = rule.rest, trial.velocity
    (velocity, _, _), work, found = spy.made[5:]
    moved = model.body_kind == BodyKind.DYNAMIC
    change = (dense(rows.body, rows.weighted, model.body_count).T @ work.y).reshape(-1, 6)
    assert_close(velocity, start + change, 10.0, 1e3)

    spin = kick.spin + rotation.rotate(rotation.conjugate(kick.orientation), velocity[:, 3:] - kick.before[:, 3:])
    out = [np.zeros_like(a) for a in (kick.position, kick.orientation, kick.spin)]
    backend.drift_bodies(
        model.body_kind, model.body_inertia, model.body_locked, np.zeros((len(moved), 6)), rest,
        MotionArrays(kick.position, kick.orientation, np.ascontiguousarray(velocity[:, :3]), spin), *out,
    )  # fmt: skip

    def miss(position, orientation):
        value, _ = coordinate_values(frames, position, orientation)
        total = np.where(rows.coord[:, 1] >= 0, rows.weight[:, 1] * value[rows.coord[:, 1]], 0.0)
        return np.abs(rows.weight[:, 0] * value[rows.coord[:, 0]] + total - rows.wanted)

    after = miss(out[0], out[1])
    assert rows.rigid.all() and not np.any(frames.kind[rows.coord[:, 0]] == ANGLE)
    mechanisms = [slice(a, b) for a, b in pairwise(rows.factor.mechanism)]
    assert len(mechanisms) == count
    for c, part in enumerate(mechanisms):
        assert_close(after[part].max(), found[c, 0], 10.0)
        assert found[c, 0] <= 1e-13 * 3.0 * count and found[c, 1] > 1e-11, "it was open before"
