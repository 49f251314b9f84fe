"""Random bodies, contacts and rows, seeded, with everything that a pass may meet; and how twins are compared.

Columns after the last contact are NaN: a pass that reads them gives itself away. Arrays that belong to a model are
read-only, as the engine gives them, so that no kernel is compiled for the tests alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tumble.backends.base import ContactArrays
from tumble.enums import BodyKind
from tumble.scene import rotation

COUNTS = (0, 7, 2048, 2500)
"""Contacts: none, a few, two whole blocks, two and a part"""
SPARE = 5
"""Columns after the last contact"""
BODIES = 300
"""More than a block of bodies"""
EPS = np.finfo(float).eps


def frozen(array):
    """The array, read-only."""
    out = np.array(array)
    out.setflags(write=False)
    return out


def assert_close(got, wanted, size=None, roundings=100.0):
    """Equal up to so many roundings of `size`: by default of the largest number wanted."""
    got, wanted = np.asarray(got, float), np.asarray(wanted, float)
    assert got.shape == wanted.shape
    assert np.all(np.isfinite(wanted)), "the twin must give numbers"
    if wanted.size == 0:
        return
    size = np.abs(wanted).max() if size is None else size
    error = np.abs(got - wanted)
    assert np.all(error <= roundings * EPS * size), f"{np.nanmax(error):.3g} off, numbers of size {np.max(size):.3g}"


def spare(rows, count, rng=None):
    """A float array (rows, count + SPARE), or (count + SPARE,) for rows 0, random and then NaN."""
    out = np.full((rows, count + SPARE) if rows else count + SPARE, np.nan)
    out[..., :count] = 0.0 if rng is None else rng.normal(size=out[..., :count].shape)
    return out


class Bodies(NamedTuple):
    """Bodies of all kinds: the first two static and kinematic, then some with locked axes."""

    kind: np.ndarray
    mass: np.ndarray
    inertia: np.ndarray
    locked: np.ndarray
    inverse_mass: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    velocity: np.ndarray  # linear
    spin: np.ndarray  # body axes
    movable: np.ndarray
    inverse_inertia: np.ndarray  # world (n, 6)


def bodies(seed, n=BODIES):
    """Random bodies; the first eight have every kind of lock."""
    rng = np.random.default_rng(seed)
    kind = np.full(n, BodyKind.DYNAMIC, np.int8)
    if n > 1:
        kind[0], kind[1] = BodyKind.STATIC, BodyKind.KINEMATIC
    kind[9::50] = BodyKind.STATIC
    dynamic = kind == BodyKind.DYNAMIC
    locked = np.zeros((n, 6), bool)
    locks = [(0,), (0, 1, 2), (3,), (3, 4), (3, 4, 5), (0, 1, 2, 3, 4, 5), (1, 5)]
    for k, axes in enumerate(locks[: max(0, n - 2)]):
        locked[2 + k, list(axes)] = True
    mass = np.where(dynamic, 10.0 ** rng.uniform(-1, 1, n), 0.0)
    inertia = mass[:, None] * rng.uniform(0.5, 0.9, (n, 3))  # any two of the moments are more than the third
    inertia[11 % n :: 7, 1] = inertia[11 % n :: 7, 0]  # two equal moments
    inertia[12 % n :: 7] = inertia[12 % n :: 7, :1]  # balls
    inverse_mass = np.where(locked[:, :3] | ~dynamic[:, None], 0.0, 1.0 / np.where(dynamic, mass, 1.0)[:, None])
    q = rng.normal(size=(n, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    inverse = world_inverse_inertia(kind, inertia, locked, q)
    movable = np.any(inverse_mass > 0.0, axis=1) | np.any(inverse != 0.0, axis=1)
    return Bodies(
        frozen(kind), frozen(mass), frozen(inertia), frozen(locked), frozen(inverse_mass), rng.normal(size=(n, 3)), q,
        rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), movable, inverse,
    )  # fmt: skip


def world_inverse_inertia(kind, inertia, locked, orientation):
    """(n, 6): inverse of the inertia restricted to the world axes that are free; zero for bodies that are not
    dynamic."""
    out = np.zeros((len(kind), 6))
    for i, (r, m, lock) in enumerate(zip(rotation.matrix(orientation), inertia, locked[:, 3:], strict=True)):
        free = np.flatnonzero(~lock)
        if kind[i] != BodyKind.DYNAMIC or not free.size:
            continue
        full = np.zeros((3, 3))
        full[np.ix_(free, free)] = np.linalg.inv((r @ np.diag(m) @ r.T)[np.ix_(free, free)])
        out[i] = full[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return out


def symmetric(six):
    """(n, 3, 3) from xx, yy, zz, xy, xz, yz."""
    return six[:, [0, 3, 4, 3, 1, 5, 4, 5, 2]].reshape(-1, 3, 3)


def pairs_of_bodies(rng, count, n):
    """Two different bodies a < b for each contact, sorted as the engine's are."""
    a = rng.integers(0, n, count)
    b = (a + rng.integers(1, n, count)) % n
    pairs = np.sort(np.c_[a, b], axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    out = np.zeros((2, count + SPARE), np.int32)
    out[:, :count] = pairs.T
    return np.ascontiguousarray(out[0]), np.ascontiguousarray(out[1])


def entries(body_a, body_b, count, movable):
    """Twin of `fill_entries`: sides of contacts sorted by body, in the order of the contacts; slots and starts."""
    side_body = np.c_[body_a[:count], body_b[:count]].ravel()
    moves = movable[side_body]
    start = np.concatenate([[0], np.cumsum(np.bincount(side_body[moves], minlength=len(movable)))]).astype(np.int64)
    slot = np.full(2 * count, start[-1])
    slot[np.flatnonzero(moves)[np.argsort(side_body[moves], kind="stable")]] = np.arange(start[-1])
    return slot[::2].astype(np.int32), slot[1::2].astype(np.int32), start


def frames(rng, count):
    """Random right-handed frames (9, cap)."""
    q = rng.normal(size=(count, 4))
    out = spare(9, count)
    out[:, :count] = rotation.matrix(q / np.linalg.norm(q, axis=1)[:, None]).reshape(count, 9).T
    return out


def contacts(seed, count, *, soft=False, own=None):
    """Random contacts between random bodies (or those given)."""
    rng = np.random.default_rng(seed)
    own = bodies(seed) if own is None else own
    n = len(own.kind)
    body_a, body_b = pairs_of_bodies(rng, count, n)
    slot = np.zeros((2, count + SPARE), np.int32)
    slot[0, :count], slot[1, :count], start = entries(body_a, body_b, count, own.movable)
    arms = spare(6, count, rng)
    entry_arm = np.full((2 * (count + SPARE) + 1, 3), np.nan)
    entry_arm[slot[0, :count]] = arms[:3, :count].T
    entry_arm[slot[1, :count]] = arms[3:, :count].T
    compliance = np.abs(spare(2, count, rng)) if soft else np.zeros((2, 0))
    return ContactArrays(
        count, body_a, body_b, frames(rng, count), arms, slot[0].copy(), slot[1].copy(), start, entry_arm,
        np.full((2 * (count + SPARE) + 1, 3), np.nan), own.inverse_mass, own.inverse_inertia,
        np.full((n, 6), np.nan), compliance,
    )  # fmt: skip


# ---------------------------------------------------------------------- what contacts do, from its definition


def in_use(op):
    """Frames (count, 3, 3) with rows n, u, w, arms (count, 2, 3) and the two bodies of the contacts in use."""
    n = op.count
    return op.frame[:, :n].T.reshape(n, 3, 3), op.arms[:, :n].T.reshape(n, 2, 3), op.body_a[:n], op.body_b[:n]


def relative(op, v):
    """D^T v (3, count): velocity of the point of b against that of a, along n, u, w."""
    e, arm, a, b = in_use(op)
    at = [v[k, :3] + np.cross(v[k, 3:], arm[:, s]) for s, k in enumerate((a, b))]
    return np.einsum("nij,nj->ni", e, at[1] - at[0]).T


def pushed(op, x):
    """M^-1 D x (bodies, 6): the impulse acts on b at its arm, its opposite on a."""
    e, arm, a, b = in_use(op)
    force = np.einsum("nij,ni->nj", e, x[:3, : op.count].T)
    wrench = np.zeros((len(op.inverse_mass), 6))
    np.add.at(wrench, a, -np.c_[force, np.cross(arm[:, 0], force)])
    np.add.at(wrench, b, np.c_[force, np.cross(arm[:, 1], force)])
    return accelerated(op, wrench)


def accelerated(op, wrench):
    """M^-1 times forces and torques (bodies, 6)."""
    turned = np.einsum("nij,nj->ni", symmetric(op.inverse_inertia), wrench[:, 3:])
    return np.c_[op.inverse_mass * wrench[:, :3], turned]


def compliant(op, x):
    """E x (3, count)."""
    if op.compliance.shape[1] == 0:
        return np.zeros((3, op.count))
    return op.compliance[[0, 1, 1], : op.count] * x[:3, : op.count]


def jacobian(op):
    """D^T (3 count, 6 bodies), dense, contact by contact: column by column what `relative` says."""
    m = 6 * len(op.inverse_mass)
    out = np.zeros((3 * op.count, m))
    for k in range(m):
        out[:, k] = relative(op, np.eye(1, m, k).reshape(-1, 6)).T.ravel()
    return out


def inverse_mass_matrix(op):
    """M^-1 (6 bodies, 6 bodies), dense."""
    n = len(op.inverse_mass)
    out = np.zeros((6 * n, 6 * n))
    for i, turn in enumerate(symmetric(op.inverse_inertia)):
        out[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = np.diag(op.inverse_mass[i])
        out[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = turn
    return out
