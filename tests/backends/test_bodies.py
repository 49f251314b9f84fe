"""Bodies: the kick of the forces, the drift, energies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tumble.backends.base import (
    BODY_BLOCK,
    FreeArrays,
    KickedArrays,
    LoadArrays,
    MassArrays,
    MotionArrays,
    WeightArrays,
    blocks,
)
from tumble.enums import BodyKind
from tumble.scene import rotation

from . import data
from .cover import covers
from .data import assert_close, frozen

H = 5e-3
NUMBERS = (1, 9, 512, 700)
"""Bodies: one, some of every kind, two whole blocks, two and a part"""
GRAVITY = frozen([0.3, -0.2, -9.81])


def world(own):
    """(n, 3) spins in world axes."""
    return rotation.rotate(own.orientation, own.spin)


def kick(own, matrix, before):
    """Bodies that are kicked as they stand."""
    return KickedArrays(own.inertia, own.locked, own.position, own.orientation, matrix, own.spin, before)


@covers("predict")
@pytest.mark.parametrize("n", NUMBERS)
def test_free_velocities_are_those_of_newton_and_euler(backend, n):
    rng = np.random.default_rng(n)
    own = data.bodies(n, n)
    force, torque, prescribed = (rng.normal(size=(n, k)) for k in (3, 3, 6))
    matrix, inverse, before, free = (np.full((n, k), np.nan) for k in (9, 6, 6, 6))
    masses = MassArrays(own.kind, own.inverse_mass, own.inertia, own.locked)
    loads = LoadArrays(GRAVITY, force, torque)
    kicked = FreeArrays(matrix, inverse, before, free)
    backend.predict(masses, loads, prescribed, own.orientation, own.velocity, own.spin, H, kicked)
    assert_close(matrix, rotation.matrix(own.orientation).reshape(n, 9))
    assert_close(inverse, own.inverse_inertia, 1.0 + np.abs(own.inverse_inertia).max(), 1e3)
    dynamic = (own.kind == BodyKind.DYNAMIC)[:, None]
    old = np.where(own.locked, 0.0, np.c_[own.velocity, world(own)])
    kick = np.c_[
        np.where(own.inverse_mass > 0.0, GRAVITY, 0.0) + own.inverse_mass * force,
        np.einsum("nij,nj->ni", data.symmetric(own.inverse_inertia), torque),
    ]
    given = np.where((own.kind == BodyKind.KINEMATIC)[:, None], prescribed, 0.0)
    assert_close(before, np.where(dynamic, old, given))
    assert_close(free, np.where(dynamic, old + H * kick, given), 1.0 + np.abs(kick).max())


def drifted(own, i, h, spin):
    """Orientation and spin of a dynamic body after h, by integrating its equations to 1e-12.

    Without locks the angular momentum in world axes stays; a locked axis has no speed, and the free ones keep theirs.
    """
    momentum_free = np.flatnonzero(~own.locked[i, 3:])
    r = rotation.matrix(own.orientation[i : i + 1])[0]
    locked = own.locked[i, 3:].any()

    def inertia(q):
        m = rotation.matrix(q[None] / np.linalg.norm(q))[0]
        return m @ np.diag(own.inertia[i]) @ m.T

    momentum = inertia(own.orientation[i]) @ (r @ spin)

    def speed(q):
        w, part = np.zeros(3), np.ix_(momentum_free, momentum_free)
        w[momentum_free] = np.linalg.solve(inertia(q)[part], momentum[momentum_free])
        return w if locked or not np.allclose(own.inertia[i], own.inertia[i, 0]) else r @ spin

    def rate(_, q):
        return 0.5 * rotation.multiply(np.r_[0.0, speed(q)], q)

    q = solve_ivp(rate, (0.0, h), own.orientation[i], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    q /= np.linalg.norm(q)
    return q, rotation.matrix(q[None])[0].T @ speed(q)


def unlocked(own):
    """Spins that keep locked axes still."""
    w = np.where(own.locked[:, 3:], 0.0, world(own))
    return own._replace(spin=rotation.rotate(rotation.conjugate(own.orientation), w))


@covers("drift_bodies")
@pytest.mark.parametrize("n", NUMBERS)
def test_drift_is_motion_without_forces(backend, n):
    """Positions to rounding; rotations against Euler's equations, to the order of the map (4; 2 with one axis locked)
    for general bodies; angular momentum and energy of free bodies to rounding for all."""
    rng = np.random.default_rng(n)
    own = unlocked(data.bodies(n, n))
    prescribed = rng.normal(size=(n, 6))
    out = [np.full((n, k), np.nan) for k in (3, 4, 3)]
    backend.drift_bodies(
        own.kind, own.inertia, own.locked, prescribed, H,
        MotionArrays(own.position, own.orientation, own.velocity, own.spin), *out,
    )  # fmt: skip
    position, orientation, spin = out
    dynamic, kinematic = own.kind == BodyKind.DYNAMIC, own.kind == BodyKind.KINEMATIC
    velocity = np.where(dynamic[:, None], own.velocity, np.where(kinematic[:, None], prescribed[:, :3], 0.0))
    assert_close(position, own.position + H * velocity)
    still = own.kind == BodyKind.STATIC
    assert np.array_equal(orientation[still], own.orientation[still])
    assert_close(np.linalg.norm(orientation, axis=1), np.ones(n))
    turned = rotation.turned(own.orientation[kinematic], H * prescribed[kinematic, 3:])
    assert_close(orientation[kinematic], turned, 1.0)

    free = np.flatnonzero(dynamic & ~own.locked[:, 3:].any(axis=1))
    momentum = [
        rotation.rotate(q[free], own.inertia[free] * s[free])
        for q, s in ((own.orientation, own.spin), (orientation, spin))
    ]
    assert_close(momentum[1], momentum[0], 1.0 + np.abs(momentum[0]).max())
    energy = [np.sum(own.inertia[free] * s[free] ** 2, axis=1) for s in (own.spin, spin)]
    assert_close(energy[1], energy[0], 1.0 + np.abs(energy[0]).max(initial=0.0), 1e3)
    for i in np.flatnonzero(dynamic)[:40]:
        q, s = drifted(own, i, H, own.spin[i])
        angle = H * np.linalg.norm(own.spin[i])
        error = 1e-11 + 0.1 * angle ** (3 if own.locked[i, 3:].any() else 5)
        assert np.abs(orientation[i] - q).max() <= error, i
        assert np.abs(spin[i] - s).max() <= 1e-10 + error / H, i


@covers("advance")
@pytest.mark.parametrize("n", NUMBERS)
def test_advance_writes_velocities_poses_and_energies(backend, n):
    """The velocity after the kick, then the drift that `drift_bodies` makes (the same bits); sums by NumPy."""
    rng = np.random.default_rng(n)
    own = unlocked(data.bodies(n, n))
    dynamic, kinematic = own.kind == BodyKind.DYNAMIC, own.kind == BodyKind.KINEMATIC
    size = frozen(np.where(dynamic, rng.uniform(0.1, 1.0, n), np.inf))
    force, torque, prescribed = (rng.normal(size=(n, k)) for k in (3, 3, 6))
    matrix, inverse, before, free = (np.full((n, k), np.nan) for k in (9, 6, 6, 6))
    own.velocity[own.locked[:, :3]] = 0.0
    masses = MassArrays(own.kind, own.inverse_mass, own.inertia, own.locked)
    loads = LoadArrays(GRAVITY, force, torque)
    kicked = FreeArrays(matrix, inverse, before, free)
    backend.predict(masses, loads, prescribed, own.orientation, own.velocity, own.spin, H, kicked)
    change = np.where(own.locked, 0.0, rng.normal(size=(n, 6)))
    rest = 0.7 * H
    position, orientation = own.position.copy(), own.orientation.copy()
    velocity, spin = own.velocity.copy(), own.spin.copy()
    partial = np.full((blocks(n, BODY_BLOCK), 8), np.nan)
    weights = WeightArrays(own.kind, size, own.mass, own.inverse_mass)
    motion = MotionArrays(position, orientation, velocity, spin)
    sums = backend.advance(weights, kick(own, matrix, before), loads, free, change, H, rest, motion, partial)
    new = np.where(dynamic[:, None], free + change, np.where(kinematic[:, None], prescribed, 0.0))
    moved = dynamic | kinematic
    assert_close(velocity[moved], new[moved, :3])
    assert np.array_equal(velocity[~moved], own.velocity[~moved])
    kicked = rotation.rotate(rotation.conjugate(own.orientation), new[:, 3:])
    start = own._replace(velocity=velocity.copy(), spin=np.where(dynamic[:, None], kicked, own.spin))
    wanted = [np.full((n, k), np.nan) for k in (3, 4, 3)]
    backend.drift_bodies(
        own.kind, own.inertia, own.locked, prescribed, rest,
        MotionArrays(own.position, own.orientation, start.velocity, np.ascontiguousarray(start.spin)), *wanted,
    )  # fmt: skip
    assert_close(position, wanted[0])
    assert_close(orientation, wanted[1], 1.0)
    assert_close(spin[dynamic], wanted[2][dynamic], 1.0 + np.abs(wanted[2]).max(), 1e3)

    mass = np.where(dynamic, own.mass, 0.0)[:, None]

    def kinetic(v, w):
        return 0.5 * np.sum(mass * v**2) + 0.5 * np.sum((own.inertia * w**2)[dynamic])

    mean = 0.5 * (before + new)
    work = H * np.sum((force * mean[:, :3] * (own.inverse_mass > 0.0))[dynamic])
    work += H * np.sum((torque * mean[:, 3:])[dynamic])
    speed = np.linalg.norm(new[:, :3], axis=1)
    wanted = [
        kinetic(own.velocity, own.spin), kinetic(velocity, spin), -np.sum(mass * GRAVITY * own.position),
        -np.sum(mass * GRAVITY * position), work, speed[dynamic].max(initial=0.0), 0.0,
        (H * speed / size)[dynamic].max(initial=0.0),
    ]  # fmt: skip
    total = 1.0 + np.abs(mass * GRAVITY * own.position).sum() + wanted[0] + wanted[1]
    assert_close(sums, wanted, total)


def test_bodies_that_are_not_finite_are_counted(backend):
    n = 600
    own = data.bodies(1, n)
    change = np.zeros((n, 6))
    change[[20, 21, 599], [0, 4, 2]] = np.nan, np.inf, np.inf
    before, matrix = np.zeros((n, 6)), rotation.matrix(own.orientation).reshape(n, 9).copy()
    zero, size = np.zeros((n, 3)), frozen(np.ones(n))
    weights = WeightArrays(own.kind, size, own.mass, own.inverse_mass)
    motion = MotionArrays(own.position.copy(), own.orientation.copy(), own.velocity.copy(), own.spin.copy())
    sums = backend.advance(
        weights, kick(own, matrix, before), LoadArrays(GRAVITY, zero, zero.copy()), np.zeros((n, 6)), change, H, H,
        motion, np.zeros((blocks(n, BODY_BLOCK), 8)),
    )  # fmt: skip
    assert sums[6] == 3.0


@covers("largest_speed")
@pytest.mark.parametrize("n", NUMBERS)
def test_largest_speed(backend, n):
    free = np.random.default_rng(n).normal(size=(n, 6))
    top = backend.largest_speed(data.bodies(n, n).kind, free)
    assert_close(top, np.linalg.norm(free[:, :3], axis=1).max(), roundings=4.0)
