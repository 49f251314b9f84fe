"""Mechanisms of four bodies that are trees, and what eliminating their bodies leaves, by NumPy."""

from __future__ import annotations

import numpy as np

from tumble.backends.joint_arrays import BodyFactor, TreeArrays
from tumble.kernels.joint_trees import MOST_ROWS

PARENT = (1, 3, 3, -1)
"""Body 0 hangs on 1, 1 and 2 on 3"""
HELD = ((3, 3, 3, 0), (2, 3, 2, 2))
"""Rows that hold each: on a root that floats, or with one that hangs on the ground"""


def is_tree(mechanism):
    """Which of the mechanisms of `jointed` are trees."""
    return mechanism % 3 > 0


def sides_of(mechanism, members):
    """Bodies (9, 4) of the rows of a tree."""
    sides = np.full((9, 4), -1, np.int32)
    r = 0
    for k, count in enumerate(HELD[mechanism % 2]):
        for _ in range(count):
            sides[r, :2] = members[k], members[PARENT[k]] if PARENT[k] >= 0 else -1
            r += 1
    sides[1::3, [0, 1]] = sides[1::3, [1, 0]]  # either side may come first
    return sides


def tree_arrays(mechanisms, members, bodies):
    """Nodes of those mechanisms, nine rows each."""
    start, body, parent, rows = [0], [], [], []
    for c in range(mechanisms):
        if is_tree(c):
            first, at = len(body), 9 * c
            body += list(members[c])
            parent += [first + p if p >= 0 else -1 for p in PARENT]
            for count in HELD[c % 2]:
                rows.append((at, at + count))
                at += count
        start.append(len(body))
    node = np.full(bodies, -1, np.int64)
    node[body] = np.arange(len(body))
    inner = np.isin(np.arange(len(body)), parent)
    integers = [np.array(a, np.int64) for a in (start, body, parent)]
    return TreeArrays(*integers, np.array(rows, np.int64).reshape(-1, 2), inner, node)


def body_factor(tree, mechanisms, equality, compliance, inverse_mass):
    """The factor by definition, and 1 / D of the rows; equality (rows, 6 bodies) and inverse_mass are dense."""
    n, nodes = len(equality), len(tree.body)
    used = np.array([tree.start[c] < tree.start[c + 1] for c in range(mechanisms)], bool)
    size = n if nodes else 0
    own, held, across, lower = (np.zeros((size, w)) for w in (6, 6, 6, MOST_ROWS))
    inertia, packed, pivot = [], np.zeros((nodes, 36)), np.zeros(n)
    for b in tree.body:
        at = slice(6 * b, 6 * b + 6)
        inertia.append(np.linalg.inv(inverse_mass[at, at]))
    for k in range(nodes):
        b, p, rows = tree.body[k], tree.parent[k], slice(*tree.rows[k])
        g = equality[rows, 6 * b : 6 * b + 6]
        own[rows] = np.linalg.solve(inertia[k], g.T).T
        s = g @ own[rows].T + np.diag(compliance[rows])
        chol = np.linalg.cholesky(s) if len(s) else s
        scale = np.diag(chol)
        lower[rows, : len(s)] = np.tril(chol / scale, -1)
        pivot[rows] = 1.0 / scale**2
        if p >= 0:
            held[rows] = equality[rows, 6 * tree.body[p] : 6 * tree.body[p] + 6]
            across[rows] = np.linalg.solve(s, held[rows])
            inertia[p] = inertia[p] + held[rows].T @ across[rows]
        if tree.inner[k]:
            packed[k] = factor6(inertia[k]).ravel()
    return BodyFactor(used, packed, own, held, across, lower, np.full((nodes, 6), np.nan)), pivot


def factor6(matrix):
    """L below the diagonal, 1 / D on it."""
    chol = np.linalg.cholesky(matrix)
    scale = np.diag(chol)
    return np.tril(chol / scale, -1) + np.diag(1.0 / scale**2)
