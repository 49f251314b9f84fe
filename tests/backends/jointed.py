"""Random joint rows on random bodies with contacts, factored by NumPy, and what they do, as dense matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tumble.backends.base import ArticulatedArrays
from tumble.backends.joint_arrays import FactorArrays, MobilityArrays

from . import data
from .trees import body_factor, is_tree, sides_of, tree_arrays

OWN_BODIES = 60
MECHANISM_BODIES = 4
ROWS = 9
"""Equality rows a mechanism, the last of which repeats the first and is dropped, but in trees (`trees`)."""


@dataclass
class Jointed:
    """The arrays of a pass and their twins: rows G^T (equalities) and B^T (bounded rows) as dense matrices."""

    arrays: ArticulatedArrays
    mechanism_of: np.ndarray
    mechanism_body_start: np.ndarray
    mechanism_body: np.ndarray
    equality: np.ndarray  # (rows, 6 bodies)
    bounded: np.ndarray  # (bounded, 6 bodies)
    inverse_mass: np.ndarray
    answer: np.ndarray  # S^+ (rows, rows)

    @property
    def bodies(self):
        return len(self.arrays.contacts.inverse_mass)

    @property
    def answers(self):
        """Scratch of the diagonal."""
        tree, rows = self.arrays.factor.tree, len(self.arrays.factor.by_bodies.own)
        nodes = len(tree.body)
        return MobilityArrays(*(np.full((nodes, 36), np.nan) for _ in range(3)), *np.full((2, rows, 6), np.nan))

    @property
    def total(self):
        return self.arrays.contacts.count + len(self.bounded)

    def velocity(self, x, more=0.0):
        """A^-1 P x (bodies, 6) and the joints' answer S^+ G^T v; more: velocities to begin with."""
        v = data.pushed(self.arrays.contacts, x) + more
        n = self.arrays.contacts.count
        v = v.ravel() + self.inverse_mass @ (self.bounded.T @ x[0, n : self.total])
        y = self.answer @ (self.equality @ v)
        return (v - self.inverse_mass @ (self.equality.T @ y)).reshape(-1, 6), y

    def rows(self, v):
        """P^T v (3, total)."""
        n, out = self.arrays.contacts.count, np.zeros((3, self.total))
        out[:, :n] = data.relative(self.arrays.contacts, v)
        out[0, n:] = self.bounded @ v.ravel()
        return out

    def compliant(self, x):
        """E x (3, total)."""
        n, out = self.arrays.contacts.count, np.zeros((3, self.total))
        out[:, :n] = data.compliant(self.arrays.contacts, x)
        out[0, n:] = self.arrays.bounded_compliance * x[0, n : self.total]
        return out

    def size(self, x):
        """Of the numbers in a product."""
        used = np.where(np.isfinite(x), x, 0.0)
        free = np.abs(data.pushed(self.arrays.contacts, used)).max(initial=0.0)
        return 1.0 + free + np.abs(self.compliant(used)).max(initial=0.0) + np.abs(self.inverse_mass).max()


def random_rows(rng, sides):
    """Rows (r, 24) for the bodies (r, 4), zero where there is none."""
    return rng.normal(size=(len(sides), 24)) * np.repeat(sides >= 0, 6, axis=1)


def dense(sides, rows, n):
    """(r, 6 n) of rows with up to four bodies."""
    out = np.zeros((len(sides), 6 * n))
    for r, s in np.argwhere(sides >= 0):
        out[r, 6 * sides[r, s] : 6 * sides[r, s] + 6] += rows[r, 6 * s : 6 * s + 6]
    return out


def weighted(sides, rows, inverse_mass):
    """M^-1 J side by side (r, 24)."""
    out = np.zeros_like(rows)
    for r, s in np.argwhere(sides >= 0):
        k = slice(6 * sides[r, s], 6 * sides[r, s] + 6)
        out[r, 6 * s : 6 * s + 6] = inverse_mass[k, k] @ rows[r, 6 * s : 6 * s + 6]
    return out


def factor(s):
    """Unit lower L and 1 / D of S = L D L^T, with 0 for a last row that depends on the others, and S^+ of that."""
    n = len(s)
    lower, inverse = np.eye(n), np.zeros(n)
    left = s.copy()
    for k in range(n):
        if left[k, k] > 1e-9 * s[k, k]:
            inverse[k] = 1.0 / left[k, k]
            lower[k + 1 :, k] = left[k + 1 :, k] * inverse[k]
            left = left - np.outer(left[:, k], left[k]) * inverse[k]
    top = np.linalg.inv(lower)
    return lower, inverse, top.T @ np.diag(inverse) @ top


def packed(lowers, first):
    """Columns of the strictly lower parts of L, one mechanism after the other: starts, rows, values."""
    start, row, value = [0], [], []
    for lower, begin in zip(lowers, first, strict=False):
        for k in range(len(lower)):
            below = np.flatnonzero(lower[k + 1 :, k]) + k + 1
            row.append(below + begin)
            value.append(lower[below, k])
            start.append(start[-1] + len(below))
    none = [np.zeros(0)]
    return np.array(start), np.concatenate([*row, *none]).astype(np.int64), np.concatenate([*value, *none])


def jointed(seed, count, *, mechanisms=6, soft=False, bounded=5):
    """Contacts on bodies, some of which are joined in mechanisms."""
    rng = np.random.default_rng(1000 + seed)
    own = data.bodies(seed, OWN_BODIES)
    contacts = data.contacts(seed, count, soft=soft, own=own)
    inverse_mass = data.inverse_mass_matrix(contacts)
    free = np.flatnonzero(np.all(own.inverse_mass > 0.0, axis=1) & ~own.locked.any(axis=1))
    members = rng.permutation(free)[: MECHANISM_BODIES * mechanisms].reshape(mechanisms, MECHANISM_BODIES)
    mechanism_of = np.full(OWN_BODIES, -1)
    mechanism_of[members] = np.arange(mechanisms)[:, None]
    sides = np.full((ROWS * mechanisms, 4), -1, np.int32)
    for c in range(mechanisms):
        for k in range(ROWS):
            count_of = rng.integers(1, 5)
            sides[ROWS * c + k, :count_of] = rng.permutation(members[c])[:count_of]
        sides[ROWS * c + ROWS - 1] = sides[ROWS * c]
        if is_tree(c):
            sides[ROWS * c : ROWS * c + ROWS] = sides_of(c, members[c])
    rows = random_rows(rng, sides)
    for c in range(mechanisms):
        if not is_tree(c):
            rows[ROWS * c + ROWS - 1] = 2.0 * rows[ROWS * c]
    compliance = np.zeros(len(rows))
    compliance[2::ROWS] = 0.5
    equality = dense(sides, rows, OWN_BODIES)
    s = equality @ inverse_mass @ equality.T + np.diag(compliance)
    first = ROWS * np.arange(mechanisms + 1)
    parts = [factor(s[k : k + ROWS, k : k + ROWS]) for k in first[:-1]]
    none = np.eye(ROWS), np.zeros(ROWS)
    by_rows = [none if is_tree(c) else part for c, part in enumerate(parts)]
    l_start, l_row, l_value = packed([p[0] for p in by_rows], first)
    tree = tree_arrays(mechanisms, members, OWN_BODIES)
    by_bodies, pivot = body_factor(tree, mechanisms, equality, compliance, inverse_mass)
    factors = FactorArrays(
        first.astype(np.int64), l_start, l_row, l_value,
        np.concatenate([p[1] for p in by_rows] + [np.zeros(0)]) + pivot,
        np.array([0 if is_tree(c) else 1 for c in range(mechanisms)], np.int64), tree, by_bodies,
    )  # fmt: skip
    answer = np.zeros_like(s)
    for k, part in zip(first[:-1], parts, strict=True):
        answer[k : k + ROWS, k : k + ROWS] = part[2]
    number = bounded if mechanisms else 0
    b_sides = np.full((number, 4), -1, np.int32)
    for k in range(number):
        b_sides[k, : k % 4 + 1] = members[k * mechanisms // number][: k % 4 + 1]
    b_rows = random_rows(rng, b_sides)
    arrays = ArticulatedArrays(
        contacts, sides, rows, weighted(sides, rows, inverse_mass), factors, np.full(len(rows), np.nan), b_sides,
        b_rows, weighted(b_sides, b_rows, inverse_mass), np.abs(rng.normal(size=number)),
        np.searchsorted(np.arange(number) * mechanisms // max(1, number), np.arange(mechanisms + 1)),
    )  # fmt: skip
    # The buffers of a problem with joints hold the bounded rows after the contacts.
    assert number <= data.SPARE
    return Jointed(
        arrays, mechanism_of, MECHANISM_BODIES * np.arange(mechanisms + 1), members.ravel(), equality,
        dense(b_sides, b_rows, OWN_BODIES), inverse_mass, answer,
    )  # fmt: skip
