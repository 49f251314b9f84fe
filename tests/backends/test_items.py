"""Formulas run on every contact or body: those of the contact laws and of bodies, and sums over contacts."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import tumble as tb
from tumble.enums import BodyKind, Presence, ShapeKind
from tumble.kernels import contact_rows, laws, motion, passing, reach
from tumble.kernels.jit import interpreted
from tumble.scene import rotation
from tumble.scene.flow_model import MeasuringPlane, Sink
from tumble.sim.laws.base import Ended, ReachArrays, SideArrays
from tumble.sim.laws.cohesion import CohesionArrays
from tumble.sim.laws.restitution import BounceArrays, MovedArrays
from tumble.sim.laws.springs import SpringArrays
from tumble.sim.prediction import SurfaceTouch

from .cover import covers
from .data import BODIES, COUNTS, SPARE, assert_close, bodies, frozen, pairs_of_bodies, spare

H = 2e-3
PAIRS = 9
TWINS = {}
"""Formula -> a function of (rng, count) that gives the arguments, and what they are after the pass"""


def twin(name):
    def note(function):
        TWINS[name] = function
        return function

    return note


class Case:
    """Contacts of random pairs of materials."""

    def __init__(self, rng, count):
        self.n = count
        a, b = pairs_of_bodies(rng, count, BODIES)
        pair = np.zeros(count + SPARE, np.int32)
        pair[:count] = rng.integers(0, PAIRS, count)
        normal = spare(3, count, rng)
        normal[:, :count] /= np.linalg.norm(normal[:, :count], axis=0)
        size, gap = np.abs(spare(0, count, rng)), 1e-3 * spare(0, count, rng)
        self.touch, self.sides = ReachArrays(pair, size, gap), SideArrays(a, b, normal)
        self.pair, self.gap, self.size = pair[:count], gap[:count], size[:count]
        self.before, self.free = spare(3, count, rng), spare(3, count, rng)
        self.bias = spare(3, count, rng)

    def flags(self, rng):
        out = np.zeros(self.n + SPARE, bool)
        out[: self.n] = rng.random(self.n) < 0.4
        return out


def some(rng):
    """A property of pairs that some do not have."""
    return np.where(rng.random(PAIRS) < 0.3, 0.0, rng.uniform(0.1, 1.0, PAIRS))


@twin("falling_friction")
def falling_friction(rng, n):
    case = Case(rng, n)
    static, speed, sliding = rng.uniform(0.5, 0.9, PAIRS), rng.uniform(0.2, 2.0, PAIRS), np.abs(spare(0, n, rng))
    v = np.hypot(case.before[1, :n], case.before[2, :n]) / speed[case.pair]
    mu = sliding[:n] + (static[case.pair] - sliding[:n]) * np.exp(-(v**2))
    return (case.touch.pair, static, speed, sliding, case.before, spare(0, n)), {5: mu}


@twin("turning_friction")
def turning_friction(rng, n):
    case, spin, roll, out = Case(rng, n), some(rng), some(rng), spare(3, n)
    wanted = np.stack([np.zeros(n), spin[case.pair], roll[case.pair]])
    return (case.touch.pair, spin, roll, out), {3: wanted}


@twin("taken_turns")
def taken_turns(rng, n):
    rows, out = spare(6, n, rng), spare(6, n, rng)
    return (rows, out), {1: np.concatenate([out[:3, :n], rows[3:, :n]])}


def ageing(rng):
    return some(rng), rng.uniform(0.1, 2.0, PAIRS), 10.0 ** rng.uniform(-6.0, 1.0, PAIRS)


@twin("aged_friction")
def aged_friction(rng, n):
    case, law, age, friction = Case(rng, n), ageing(rng), np.abs(spare(1, n, rng)), spare(0, n, rng)
    b, time, _ = (x[case.pair] for x in law)
    return (case.touch.pair, *law[:2], age, friction), {4: friction[:n] + b * np.log(1.0 + age[0, :n] / time)}


@twin("grown_age")
def grown_age(rng, n):
    case, law, age = Case(rng, n), ageing(rng), np.abs(spare(1, n, rng))
    impulse, after = spare(3, n, rng), spare(3, n, rng)
    after[:, : n // 5] *= 1e-6
    rate = np.linalg.norm(after[1:, :n], axis=0) / law[2][case.pair]
    wanted = age[0, :n] * np.exp(-rate * H) - np.expm1(-rate * H) / rate
    return (case.touch.pair, law[2], impulse, after, H, age), {5: np.where(impulse[:1, :n] > 0.0, wanted, 0.0)}


def springs(rng):
    return SpringArrays(some(rng), rng.uniform(0.1, 2.0, PAIRS), some(rng), rng.uniform(0.1, 2.0, PAIRS))


def of_contacts(s, case):
    """Compliance and damping of the contacts; the normal's dashpot begins where the gap closes."""
    c, d, ct, dt = (x[case.pair] for x in s)
    return c, np.where(case.gap <= 0.0, d, 0.0), ct, dt


@twin("spring_compliance")
def spring_compliance(rng, n):
    case, s = Case(rng, n), springs(rng)
    c, d, ct, dt = of_contacts(s, case)
    wanted = np.stack([c / (H * (H + c * d)), ct / (H * (H + ct * dt))])
    return (case.touch.pair, case.touch.gap, s, H, spare(2, n)), {4: wanted}


@twin("turned_stretch")
def turned_stretch(rng, n):
    stretch = spare(3, n, rng)
    stretch[0, : n // 3] *= 10.0
    whole, flat = np.linalg.norm(stretch[:, :n], axis=0), np.linalg.norm(stretch[1:, :n], axis=0)
    wanted = stretch[:, :n] * np.where(flat > 0.5 * whole, whole / flat, 1.0)
    wanted[0] = 0.0
    return (stretch,), {0: wanted}


@twin("spring_bias")
def spring_bias(rng, n):
    case, s, stretch = Case(rng, n), springs(rng), spare(3, n, rng)
    c, d, ct, dt = of_contacts(s, case)
    wanted = case.bias[:, :n].copy()
    wanted[0] = np.where(c > 0.0, case.gap / (H + c * d) + case.free[0, :n], wanted[0])
    wanted[1:] += np.where(ct > 0.0, stretch[1:, :n] / (H + ct * dt), 0.0)
    return (case.touch.pair, case.touch.gap, s, stretch, case.free, H, case.bias), {6: wanted}


@twin("spring_end")
def spring_end(rng, n):
    case, s, stretch, energy = Case(rng, n), springs(rng), spare(3, n, rng), spare(0, n)
    impulse, after, velocity = spare(3, n, rng), spare(3, n, rng), rng.normal(size=(BODIES, 6))
    shift = np.abs(spare(0, n, rng)) if n % 2 else np.zeros(0)
    c, d, ct, dt = of_contacts(s, case)
    pressed = impulse[0, :n] + (shift[:n] if n % 2 else 0.0) > 0.0
    old = stretch[1:, :n]
    new = np.where(pressed & (ct > 0.0), ct * (dt * old - impulse[1:3, :n]) / (H + ct * dt), 0.0)
    spin = velocity[case.sides.body_a[:n], 3:] + velocity[case.sides.body_b[:n], 3:]
    angle = 0.5 * H * np.einsum("kn,nk->n", case.sides.normal[:, :n], spin)
    turned = np.stack(
        [
            stretch[0, :n],
            np.cos(angle) * new[0] - np.sin(angle) * new[1],
            np.sin(angle) * new[0] + np.cos(angle) * new[1],
        ]
    )
    force = impulse[0, :n] / H + np.where(pressed, d * after[0, :n], 0.0)
    stored = np.divide((new**2).sum(axis=0), 2.0 * ct, out=np.zeros(n), where=ct > 0.0)
    ended = Ended(impulse, shift, after, velocity, H)
    wanted = {5: turned, 6: 0.5 * c * force**2 + stored}
    return (case.touch.pair, case.touch.gap, case.sides, s, ended, stretch, energy), wanted


def impulse_of(work, speed, inverse_mass):
    """Of g (v - g / 2m) = W the smaller root; a slower pair is stopped, with g v / 2 <= W."""
    rest = speed**2 - 2.0 * work * inverse_mass
    parts = (speed - np.sqrt(np.maximum(rest, 0.0))) / inverse_mass
    return np.where(rest > 0.0, parts, 2.0 * work / speed)


@twin("cohesion_shift")
def cohesion_shift(rng, n):
    case = Case(rng, n)
    tables = CohesionArrays(some(rng), rng.uniform(-1e-3, 2e-3, PAIRS), 1e-3 * some(rng))
    diagonal = rng.uniform(1.0, 2.0, (6, n + SPARE))
    soft = np.abs(spare(2, n, rng)) * 0.1 if n % 2 else np.zeros((2, 0))
    pull, reach, spring = (x[case.pair] for x in tables)
    reach, spring = np.where(reach < 0.0, 1e-6 * case.size, reach), pull * spring
    shift = np.where(case.gap <= reach + spring, H * pull, 0.0)
    opened = np.maximum(case.gap, 0.0)
    unstretched = spring - np.minimum(opened, spring)
    left = pull * (reach + spring - opened)
    left -= 0.5 * pull * np.divide(unstretched**2, spring, out=np.zeros(n), where=spring > 0.0)
    mass = diagonal[0, :n] - (soft[0, :n] if n % 2 else 0.0)
    moves = (shift > 0.0) & (case.before[0, :n] > 0.0)
    speed = np.where(moves, case.before[0, :n], 1.0)
    wanted = np.where(moves, np.minimum(shift, impulse_of(left, speed, mass)), shift)
    return (case.touch, tables, 1e-6, case.before, diagonal, soft, H, spare(0, n)), {7: wanted}


@twin("pulled")
def pulled(rng, n):
    contacts, shift, pull = n // 2, spare(0, n, rng), spare(6, n, rng)
    wanted = np.zeros((6, n))
    wanted[0, :contacts] = shift[:contacts]
    return (contacts, shift, pull), {1: wanted[0], 2: wanted}


@twin("added")
def added(rng, n):
    x, out = spare(6, n, rng), spare(6, n, rng)
    return (x, out), {1: out[:, :n] + x[:, :n]}


@twin("subtracted")
def subtracted(rng, n):
    x, out = spare(3, n, rng), spare(3, n, rng)
    return (x, out), {1: out[:, :n] - x[:, :n]}


@twin("shifted")
def shifted(rng, n):
    shift, impulse = spare(0, n, rng), spare(3, n, rng)
    return (shift, impulse), {1: impulse[:, :n] + np.eye(3, 1) * shift[:n]}


@twin("unshifted")
def unshifted(rng, n):
    impulse, shift = spare(6, n, rng), spare(0, n, rng)
    return (impulse, shift, spare(6, n)), {2: impulse[:, :n] - np.eye(6, 1) * shift[:n]}


def bounce(rng):
    return BounceArrays(some(rng), rng.uniform(0.0, 0.5, PAIRS))


@twin("hit_bias")
def hit_bias(rng, n):
    case, law = Case(rng, n), bounce(rng)
    e, threshold = (x[case.pair] for x in law)
    approach = case.before[0, :n]
    hit = (e > 0.0) & (case.gap + H * case.free[0, :n] <= 0.0) & (-approach > threshold)
    wanted = case.bias[:, :n].copy()
    wanted[0] = np.where(hit, e * approach + case.free[0, :n], wanted[0])
    return (case.touch.pair, case.touch.gap, law, case.before, case.free, H, case.flags(rng), case.bias), {
        6: hit,
        7: wanted,
    }


@twin("alone")
def alone(rng, n):
    case, diagonal, guess = Case(rng, n), np.abs(spare(6, n, rng)), spare(3, n, rng)
    diagonal[0, : n // 4] = 0.0
    hit, wanted = case.flags(rng), guess[:, :n].copy()
    stiff = diagonal[0, :n] > 0.0
    own = np.divide(np.maximum(-case.bias[0, :n], 0.0), diagonal[0, :n], out=np.zeros(n), where=stiff)
    wanted[0] = np.where(hit[:n], own, wanted[0])
    return (hit, diagonal, case.bias, guess), {3: wanted}


@twin("braked")
def braked(rng, n):
    case, law, hit = Case(rng, n), bounce(rng), np.zeros(n + SPARE, bool)
    hit[:n] = rng.random(n) < 0.2
    moved = MovedArrays(spare(3, n, rng), spare(0, n, rng), spare(3, n, rng), hit[::-1].copy())
    e, threshold = (x[case.pair] for x in law)
    speed, room, least = moved.speed[:n], 0.3, 0.5
    wanted = (e > 0.0) & ~hit[:n] & (moved.impulse[0, :n] > 0.0) & (np.abs(speed + moved.after[0, :n]) > threshold)
    wanted &= (case.gap > 0.0) | (speed > np.maximum(threshold, least * room))
    return (case.touch.pair, case.touch.gap, law, moved, hit, room, least, case.flags(rng)), {
        7: wanted & ~moved.opened[:n]
    }


@twin("opened_bias")
def opened_bias(rng, n):
    case, closed, guess = Case(rng, n), spare(0, n, rng), spare(6, n, rng)
    fresh, opened = case.flags(rng), case.flags(rng)
    both, wanted = (fresh | opened)[:n], case.bias[:, :n].copy()
    wanted[0] = closed[:n] + np.where(both, 0.7, 0.0)
    start = np.where(both, 0.0, guess[:, :n])
    return (fresh, opened, closed, 0.7, case.bias, guess), {1: both, 4: wanted, 5: start}


@twin("braked_bias")
def braked_bias(rng, n):
    case, speed = Case(rng, n), spare(0, n, rng)
    hit, wanted = case.flags(rng), case.bias[:, :n].copy()
    wanted[0] = np.where(hit[:n], np.maximum(case.gap, 0.0) / H + speed[:n], wanted[0])
    return (case.touch.gap, hit, speed, H, case.bias), {4: wanted}


@twin("next_hit")
def next_hit(rng, n):
    case, law, speed = Case(rng, n), bounce(rng), spare(0, n, rng)
    e, threshold = (x[case.pair] for x in law)
    hit = (e > 0.0) & (case.gap + H * speed[:n] <= 0.0) & (-speed[:n] > threshold)
    wanted = case.bias[:, :n].copy()
    wanted[0] = np.where(hit, (1.0 + e) * speed[:n], wanted[0])
    return (case.touch.pair, case.touch.gap, law, speed, H, case.flags(rng), case.bias), {5: hit, 6: wanted}


@twin("recalled_numbers")
def recalled_numbers(rng, n):
    old, found = rng.normal(size=(2, 40)), np.zeros(n + SPARE, np.int64)
    found[:n] = rng.integers(-5, 40, n)
    wanted = np.where(found[:n] >= 0, old[:, np.maximum(found[:n], 0)], 0.0)
    return (found, old, spare(2, n)), {2: wanted}


@twin("placed")
def placed(rng, n):
    case, place = Case(rng, n), rng.permutation(BODIES).astype(np.int32)
    a, b = case.sides.body_a, case.sides.body_b
    return (place, a, b), {1: place[a[:n]], 2: place[b[:n]]}


@twin("immovable_bias")
def immovable_bias(rng, n):
    case, alone, diagonal = Case(rng, n), np.abs(spare(0, n, rng)), np.abs(spare(6, n, rng))
    diagonal[0, : n // 3] *= 1e-12
    wanted = case.bias[:, :n].copy()
    wanted[0] = np.where(diagonal[0, :n] <= 1e-9 * alone[:n], np.maximum(wanted[0], 0.02), wanted[0])
    return (alone, diagonal, 1e-9, 0.02, case.bias), {4: wanted}


@twin("surface_bias")
def surface_bias(rng, n):
    """Bias less the normal speed of surfaces that run, b against a."""
    case, point, center, surface = Case(rng, n), spare(3, n, rng), *(rng.normal(size=(BODIES, k)) for k in (3, 6))
    t, wanted = case.sides, case.bias[:, :n].copy()
    for side, sign in ((t.body_a[:n], 1.0), (t.body_b[:n], -1.0)):
        speed = surface[side, :3] + np.cross(surface[side, 3:], point[:, :n].T - center[side])
        wanted[0] += sign * np.einsum("ki,ik->k", speed, t.normal[:, :n])
    return (SurfaceTouch(t.body_a, t.body_b, t.normal, point), center, surface, case.bias), {3: wanted}


@twin("held_bias")
def held_bias(rng, n):
    case = Case(rng, n)
    wanted = case.bias[:, :n].copy()
    wanted[0] = np.maximum(case.gap, 0.0) / H + case.free[0, :n]
    return (case.touch.gap, case.free, H, case.bias), {3: wanted}


@twin("gap_at_end")
def gap_at_end(rng, n):
    case = Case(rng, n)
    end = case.gap + 0.4 * H * case.before[0, :n]
    arguments = case.touch.gap, case.touch.size, case.before, 0.4 * H, 1e-4, spare(0, n), case.flags(rng)
    return arguments, {5: end, 6: end < -1e-4 * case.size}


@twin("recovery_bias")
def recovery_bias(rng, n):
    """An overlap is taken back with the speed that lifts a hundredth of the size, or the one that is given."""
    case, given = Case(rng, n), -1.0 if n % 2 else 0.2
    most = np.sqrt(2.0 * 9.81 * case.size / 100.0) if given < 0.0 else given
    wanted = case.bias[:, :n].copy()
    wanted[0] = np.maximum(case.gap / H, -most)
    return (case.touch.gap, case.touch.size, H, given, 9.81, case.bias), {5: wanted}


def formulas_in(module, index):
    """Everything in a module that is done to an item of this name."""
    own = (v for v in vars(module).values() if callable(v) and getattr(v, "__module__", "") == module.__name__)
    return {f.__name__: f for f in own if next(iter(inspect.signature(interpreted(f)).parameters)) == index}


OF_PASSES = {
    "contact_row",
    "diagonal_block",
    "gap_to_close",
    "recalled_vector",
    "recovered_work",
    "work_of_driven",
    "world_vector",
}
"""Formulas of the passes in `test_rows.py` and `test_operator.py`"""
OF_CONTACTS = formulas_in(laws, "c") | formulas_in(contact_rows, "c") | formulas_in(reach, "c")
FORMULAS = {n: f for n, f in OF_CONTACTS.items() if n not in OF_PASSES}


def test_every_formula_of_a_law_has_a_twin():
    assert sorted(TWINS) == sorted(FORMULAS)


@covers("over_contacts")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_formulas_of_contacts_do_what_their_twins_do(backend, name, count):
    rng = np.random.default_rng(count)
    arguments, wanted = TWINS[name](rng, count)
    run = backend.made("over_contacts", FORMULAS[name])
    run(count, *arguments)
    for place, array in wanted.items():
        got = arguments[place]
        if name == "turning_friction":
            got = got.copy()
            assert not got[0, :count].any()
        assert_close(got[..., :count], array, np.abs(array).max(initial=0.0) + 1e-300, 1e3)
        if got.dtype.kind == "f":
            assert np.all(np.isnan(got[..., count:]))


@twin("ray_of")
def ray_of(rng, n):
    mu, impulse, bias = spare(0, n, rng), spare(6, n, rng), spare(6, n, rng)
    ray = np.where(mu[:n] < 0.0, 0.0, impulse[:, :n])
    return (mu, impulse, bias, spare(6, n), spare(0, n)), {3: ray, 4: -np.sum(bias[:, :n] * ray, axis=0)}


@twin("power_of")
def power_of(rng, n):
    ray, product = spare(3, n, rng), spare(3, n, rng)
    return (ray, product, spare(0, n)), {2: np.sum(ray[:, :n] * product[:, :n], axis=0)}


@twin("wanted_speed")
def wanted_speed(rng, n):
    bias = spare(3, n, rng)
    return (bias, spare(0, n)), {1: -bias[0, :n]}


@twin("overlap_share")
def overlap_share(rng, n):
    case, size = Case(rng, n), np.where(rng.random(BODIES) < 0.1, np.inf, rng.uniform(0.1, 1.0, BODIES))
    a, b = case.sides.body_a, case.sides.body_b
    wanted = -case.gap / np.minimum(size[a[:n]], size[b[:n]])
    return (case.touch.gap, a, b, size, spare(0, n)), {4: wanted}


@twin("scaled_by")
def scaled_by(rng, n):
    x = spare(3, n, rng)
    return (0.3, x), {1: 0.3 * x[:, :n]}


@twin("left_overlap")
def left_overlap(rng, n):
    case = Case(rng, n)
    hit = case.flags(rng) if n % 2 else np.zeros(0, bool)
    impulse, free, bias = np.abs(spare(3, n, rng)), spare(3, n, rng), spare(3, n, rng)
    asks = (case.gap < 0.0) & (impulse[0, :n] > 0.5) & (bias[0, :n] < free[0, :n])
    if hit.size:
        asks &= ~hit[:n]
    wanted = bias[:, :n].copy()
    wanted[0] = np.where(asks, free[0, :n], wanted[0])
    left = np.where(asks, -case.gap, 0.0)
    return (case.touch.gap, impulse, 0.5, hit, free, bias, spare(0, n)), {5: wanted, 6: left}


@covers("over_bodies")
@pytest.mark.parametrize("n", [1, 512, 700])
def test_formulas_of_bodies_do_what_their_twins_do(backend, n):
    rng = np.random.default_rng(n)
    own, (x, y), out = bodies(n, n), rng.normal(size=(2, n, 6)), np.full((n, 6), np.nan)
    backend.made("over_bodies", motion.sum_of_velocities)(n, x, y, out)
    assert np.array_equal(out, x + y)
    backend.made("over_bodies", motion.difference_of_velocities)(n, x, y, out)
    assert np.array_equal(out, x - y)
    dynamic = own.kind == BodyKind.DYNAMIC
    position, orientation = own.position.copy(), own.orientation.copy()
    backend.made("over_bodies", motion.pushed)(n, own.kind, x, 0.1, position, orientation)
    assert_close(position, own.position + 0.1 * np.where(dynamic[:, None], x[:, :3], 0.0))
    turned = rotation.turned(own.orientation, 0.1 * x[:, 3:])
    assert_close(orientation, np.where(dynamic[:, None], turned, own.orientation), 1.0)
    mass = np.full(n, np.nan)
    backend.made("over_bodies", reach.mass_of)(n, own.inverse_mass, mass)
    ease = own.inverse_mass.max(axis=1)
    assert_close(mass, np.divide(1.0, ease, out=np.zeros(n), where=ease > 0.0))
    axes = rng.normal(size=(n, 4))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    center, frame = rng.normal(size=(n, 3)), (np.zeros((n, 3)), np.zeros((n, 4)), np.zeros((n, 3)))
    backend.made("over_bodies", motion.user_frame)(n, own.position, own.orientation, own.spin, axes, center, frame)
    given = rotation.multiply(own.orientation, rotation.conjugate(axes))
    assert_close(frame[0], own.position - rotation.rotate(given, center), 10.0)
    assert_close(frame[1], given, 1.0)
    assert_close(frame[2], rotation.rotate(own.orientation, own.spin), 10.0)
    energy, gravity = np.full(n, np.nan), frozen([0.3, -0.2, -9.81])
    backend.made("over_bodies", motion.lifted)(n, own.mass, gravity, own.position, position, energy)
    assert_close(energy, -own.mass * ((position - own.position) @ gravity), 100.0)


class Passing:
    """Bodies on their way, some of them absent."""

    def __init__(self, n):
        rng = np.random.default_rng(n)
        self.kind = bodies(n, n).kind
        self.before, self.after = rng.normal(size=(2, n, 3))
        self.presence = rng.integers(0, 3, n).astype(np.int8)
        self.here = (self.kind == BodyKind.DYNAMIC) & (self.presence == Presence.PRESENT)


@pytest.mark.parametrize("n", [1, 512, 700])
@pytest.mark.parametrize("among", [False, True])
def test_what_a_step_sees_of_bodies_that_come_and_go(backend, n, among):
    case, own = Passing(n), bodies(n, n)
    rng = np.random.default_rng(n)
    here, moving = case.presence == Presence.PRESENT, rng.random(n) < 0.3
    kind, mass = np.full(n, 9, np.int8), np.full((n, 3), np.nan)
    run = backend.made("over_bodies", passing.shown_body)
    run(n, case.presence, moving if among else moving[:0], own.kind, own.inverse_mass, kind, mass)
    assert np.array_equal(kind, np.where(moving if among else here, own.kind, BodyKind.STATIC))
    assert np.array_equal(mass, np.where(here[:, None], own.inverse_mass, 0.0))
    body, shape = rng.integers(0, n, 2 * n), rng.integers(0, 7, 2 * n).astype(np.int8)
    seen = np.full(2 * n, 9, np.int8)
    backend.made("over_bodies", passing.shown_shape)(2 * n, case.presence, body, shape, seen)
    assert np.array_equal(seen, np.where(here[body], shape, np.int8(ShapeKind.HALF_SPACE)))


@pytest.mark.parametrize("n", [1, 512, 700])
def test_room_for_bodies_that_wait(backend, n):
    case, own = Passing(n), bodies(n, n)
    rng = np.random.default_rng(n)
    first = n // 3
    waits = np.zeros(n, bool)
    backend.made("over_bodies", passing.waits)(n - first, first, case.presence, waits)
    assert np.array_equal(waits[: n - first], case.presence[first:] == Presence.WAITING)
    low, high, reach = np.array([-0.5, -0.2, 0.0]), np.array([0.1, 0.4, 0.3]), 0.3 * rng.random(n)
    there, matrix = np.full(n, 9, np.int8), np.full((n, 9), np.nan)
    backend.made("over_bodies", passing.beside)(
        n, case.presence, own.kind, reach, (low, high, 0.2), own.position, own.orientation, there, matrix
    )
    wide = reach[:, None] + 0.2
    near = np.all((own.position >= low - wide) & (own.position <= high + wide), axis=1)
    kept = (case.presence == Presence.PRESENT) & (near | (own.kind != BodyKind.DYNAMIC))
    assert np.array_equal(there, np.where(kept, Presence.PRESENT, Presence.WAITING))
    assert np.array_equal(matrix[kept], rotation.matrix(own.orientation[kept]).reshape(-1, 9))
    assert np.isnan(matrix[~kept]).all()


@pytest.mark.parametrize("count", COUNTS)
def test_the_later_of_two_bodies_that_touch_gives_way(backend, count):
    case = Case(np.random.default_rng(count), count)
    a, b, gap = case.sides.body_a, case.sides.body_b, case.touch.gap
    order, fits = np.full(BODIES, -1), np.ones(9, bool)
    order[3:12] = np.arange(9)
    backend.made("over_contacts", passing.crowded)(count, gap, 1e-4, a, b, order, fits)
    wanted = np.ones(9, bool)
    for c in range(count):
        if gap[c] < 1e-4 and max(order[a[c]], order[b[c]]) >= 0:
            wanted[max(order[a[c]], order[b[c]])] = False
    assert np.array_equal(fits, wanted)


@pytest.mark.parametrize("n", [1, 512, 700])
@pytest.mark.parametrize("outside", [None, False, True])
def test_sinks_take_what_lies_behind_a_plane_in_a_box_or_outside(backend, n, outside):
    case, out = Passing(n), np.ones(n, bool)
    point, normal, box = (
        np.array([0.1, 0.2, 0.0]),
        np.array([0.6, 0.0, 0.8]),
        tb.BoxRegion(low=(-1, -0.5, -1), high=(1, 1, 0.5)),
    )
    sink = Sink("s", point, normal) if outside is None else Sink("s", box=box, outside=outside)
    run = backend.made("over_bodies", passing.taken)
    run(n, case.kind == BodyKind.DYNAMIC, case.presence, case.after, sink.arrays, out)
    behind = (case.after - point) @ normal < 0.0
    inside = np.all((case.after >= (-1, -0.5, -1)) & (case.after <= (1, 1, 0.5)), axis=1)
    assert np.array_equal(out, case.here & (behind if outside is None else inside != outside))


@pytest.mark.parametrize("n", [1, 512, 700])
@pytest.mark.parametrize("part", [{}, {"radius": 0.8}, {"size": (0.9, 1.5), "axis": np.array([0.8, 0.0, -0.6])}])
@pytest.mark.parametrize("flow", [False, True])
def test_planes_count_what_crosses_the_part_that_counts(backend, n, part, flow):
    case, forward, backward = Passing(n), np.ones(n, bool), np.ones(n, bool)
    point, normal = np.array([0.1, 0.2, 0.0]), np.array([0.6, 0.0, 0.8])
    plane = MeasuringPlane("p", point, normal, **part)
    presence = case.presence if flow else np.zeros(0, np.int8)
    run = backend.made("over_bodies", passing.crossed)
    run(n, case.kind, presence, case.before, case.after, plane.arrays, forward, backward)
    here = case.here if flow else case.kind == BodyKind.DYNAMIC
    old, new = (case.before - point) @ normal, (case.after - point) @ normal
    arm = case.before + (old / (old - new))[:, None] * (case.after - case.before) - point
    if "radius" in part:
        here = here & (np.linalg.norm(arm, axis=1) <= 0.8)
    elif part:
        v = np.cross(normal, part["axis"])
        here = here & (np.abs(arm @ part["axis"]) <= 0.45) & (np.abs(arm @ v) <= 0.75)
    assert np.array_equal(forward, here & (old < 0.0) & (new >= 0.0))
    assert np.array_equal(backward, here & (old >= 0.0) & (new < 0.0))
    assert n == 1 or (forward.any() and backward.any())


@covers("count_true", "list_true", "total", "largest", "largest_vector", "largest_entry")
@pytest.mark.parametrize("count", COUNTS)
def test_sums_and_maxima_over_contacts(backend, count):
    rng = np.random.default_rng(count)
    x, rows, flags = spare(0, count, rng), spare(3, count, rng), np.ones(count + SPARE, bool)
    flags[:count] = rng.random(count) < 0.5
    assert backend.count_true(count, flags) == flags[:count].sum()
    places = np.full(count, -1)
    found = backend.list_true(count, flags, places)
    assert np.array_equal(places[:found], np.flatnonzero(flags[:count]))
    assert_close(backend.total(count, x), x[:count].sum(), max(1.0, np.abs(x[:count]).sum()))
    assert backend.largest(count, x) == x[:count].max(initial=0.0)
    assert backend.largest(count, -np.abs(x)) == 0.0
    assert_close(backend.largest_vector(count, rows), np.linalg.norm(rows[:, :count], axis=0).max(initial=0.0))
    table = rng.normal(size=(3, count))
    assert backend.largest_entry(table) == np.abs(table).max(initial=0.0)
