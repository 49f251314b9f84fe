"""Mechanisms without loops whose bodies are eliminated instead of their rows: which they are, and in what order.

The rows of all joints of one body touch each other, so a trunk with ten legs is a dense block of their rows. Its
bodies, leaves first, fill nothing in: a leaf hands its parent what it weighs across the joint (`kernels.joint_trees`).
Rows stay the better choice for chains and for small mechanisms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..backends.joint_arrays import TreeArrays
from ..kernels.joint_trees import MOST_ROWS

__all__ = ["Tree", "tree_arrays", "tree_of"]

DEARER = 0.4
"""A multiplication by bodies counts so much of one by rows: these are found through lists, and by bodies the diagonal
blocks of contacts come along."""


@dataclass(frozen=True)
class Tree:
    """Bodies of a mechanism as nodes, leaves first; what holds a node is the joint to its parent, or to the ground."""

    body: list[int]
    parent: list[int]
    """Places in `body`, -1 of the root"""
    rows: list[list[int]]
    """Rows of the joint that holds each; none of a root that floats"""


def tree_of(
    rows: list[int], body: np.ndarray, movable: np.ndarray, free: np.ndarray, by_bodies: bool = False
) -> Tree | None:
    """The tree of a mechanism with these rows, body (n, 4), if it is one and cheaper than its rows (by_bodies: always).

    free (bodies,): bodies that nothing locks."""
    edges: dict[tuple[int, ...], list[int]] = {}
    for r in rows:
        pair = tuple(sorted({int(b) for b in body[r] if b >= 0 and movable[b]}))
        if not 1 <= len(pair) <= 2 or not all(free[b] for b in pair):
            return None
        edges.setdefault(pair, []).append(r)
    near: dict[int, dict[int, list[int]]] = {}
    ground: dict[int, list[int]] = {}
    for pair, own in edges.items():
        if len(own) > MOST_ROWS:
            return None
        if len(pair) == 1:
            ground[pair[0]] = own
        else:
            near.setdefault(pair[0], {})[pair[1]] = own
            near.setdefault(pair[1], {})[pair[0]] = own
    if len(ground) > 1 or len(near) != 1 + sum(len(pair) == 2 for pair in edges):
        return None
    tree = _leaves_first(near, ground)
    return tree if by_bodies or DEARER * _by_bodies(tree) < _by_rows(tree) else None


def _leaves_first(near: dict[int, dict[int, list[int]]], ground: dict[int, list[int]]) -> Tree:
    """Every body after all that hang on it."""
    root = next(iter(ground), max(near, key=lambda b: (len(near[b]), -b)))
    above, order = {root: -1}, [root]
    for b in order:
        for other in sorted(near[b]):
            if other not in above:
                above[other] = b
                order.append(other)
    order.reverse()
    place = {b: k for k, b in enumerate(order)}
    held = [near[b][above[b]] if above[b] >= 0 else ground.get(root, []) for b in order]
    return Tree(order, [place[above[b]] if above[b] >= 0 else -1 for b in order], held)


def _by_rows(tree: Tree) -> float:
    """Multiplications of factoring, leaves first: a row changes all pairs of rows left at the parent."""
    left = [0] * len(tree.body)
    for k, parent in enumerate(tree.parent):
        if parent >= 0:
            left[parent] += len(tree.rows[k])
    total = 0.0
    for k, parent in enumerate(tree.parent):
        n = len(tree.rows[k])
        if parent >= 0:
            left[parent] -= n
            beyond = left[parent] + len(tree.rows[parent])
            total += sum(0.5 * (beyond + i) * (beyond + i + 1) for i in range(n))
    return total


def _by_bodies(tree: Tree) -> float:
    """The same by bodies."""
    inner, total = set(tree.parent), 0.0
    for k, own in enumerate(tree.rows):
        n = len(own)
        total += n**3 / 6.0 + 9.0 * n * n + 21.0 * n
        if k in inner:
            total += 56.0 + 30.0 * n
    return total


def tree_arrays(trees: list[tuple[Tree, np.ndarray, int] | None], bodies: int) -> TreeArrays:
    """Of all mechanisms, in their order: the tree, whose bodies and rows in the order of elimination are numbered from
    0, those bodies, and the first of the rows; bodies: of the scene."""
    start, body, parent, rows = [0], [], [], []
    for found in trees:
        nodes = start[-1]
        if found is not None:
            tree, own, first = found
            body.append(own[tree.body])
            above = np.array(tree.parent, np.int64)
            parent.append(np.where(above >= 0, nodes + above, -1))
            ranges = np.array([(held[0], held[-1] + 1) if held else (0, 0) for held in tree.rows], np.int64)
            rows.append(np.where(ranges[:, 1:] > 0, ranges + first, 0))
            nodes += len(tree.body)
        start.append(nodes)
    none = np.zeros(0, np.int64)
    body, parent = np.concatenate([*body, none]).astype(np.int64), np.concatenate([*parent, none])
    node = np.full(bodies, -1, np.int64)
    node[body] = np.arange(len(body))
    inner = np.isin(np.arange(len(body)), parent)
    return TreeArrays(np.array(start, np.int64), body, parent, np.concatenate([*rows, none.reshape(0, 2)]), inner, node)
