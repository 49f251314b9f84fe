"""Which joint rows touch which, the order of their elimination and the pattern of the factor: from the model alone."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import chain

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..backends.joint_arrays import TreeArrays
from .joint_trees import Tree, tree_arrays, tree_of

__all__ = ["Pattern", "row_bodies"]


def row_bodies(row_coord: np.ndarray, coord_frame: np.ndarray, frame_body: np.ndarray) -> np.ndarray:
    """(r, 4) int32: the bodies of each row's one or two coordinates, -1 where there is none."""
    out = np.full((len(row_coord), 4), -1, np.int32)
    for k in range(2):
        has = row_coord[:, k] >= 0
        out[has, 2 * k : 2 * k + 2] = frame_body[coord_frame[row_coord[has, k]]]
    return out


@dataclass(frozen=True)
class Pattern:
    """Order and sparsity of S = G^T M^-1 G + E. Rows below are in the order of elimination."""

    order: np.ndarray
    """(n,) place -> number in the list of equality rows"""
    mechanism: np.ndarray
    """(mechanisms + 1,) first row of each mechanism"""
    start: np.ndarray
    """(n + 1,) entries of row k up to the diagonal"""
    column: np.ndarray
    pair_start: np.ndarray
    """(entries + 1,)"""
    pair: np.ndarray
    """(.., 2) sides of row and column that share a body"""
    parent: np.ndarray
    """(n,) elimination tree"""
    l_start: np.ndarray
    """(n + 1,) columns of L"""
    mechanism_of: np.ndarray
    """(bodies,) mechanism of each body, -1 without joints"""
    tree: TreeArrays
    """Mechanisms whose bodies are eliminated instead of their rows"""

    @classmethod
    def of(
        cls,
        body: np.ndarray,
        element: np.ndarray,
        movable: np.ndarray,
        free: np.ndarray | None = None,
        *,
        by_bodies: bool = False,
    ) -> Pattern:
        """body (n, 4), element (n,) of the equality rows; movable (bodies,); free (bodies,): those that nothing locks,
        None: rows are eliminated throughout. by_bodies: every tree by its bodies, also where its rows are cheaper."""
        mechanism_of, groups = _mechanisms(body, element, movable)
        known: dict[tuple, _Part] = {}
        parts, bodies = [], []
        for group in groups:
            sides = body[group]
            own, local = np.unique(np.where((sides >= 0) & movable[sides], sides, -1), return_inverse=True)
            local, own = local.reshape(sides.shape) - (own[0] < 0), own[own >= 0]
            number = np.unique(element[group], return_inverse=True)[1]
            loose = np.zeros(0, bool) if free is None else free[own]
            key = local.tobytes(), number.tobytes(), loose.tobytes()
            if key not in known:  # mechanisms of the same form have the same pattern
                known[key] = _Part.of(local, number, len(own), None if free is None else loose, by_bodies)
            parts.append(known[key])
            bodies.append(own)
        rows = np.concatenate([[0], np.cumsum([len(p.order) for p in parts])]).astype(np.int64)
        places = [group[p.order] for group, p in zip(groups, parts)]
        columns = [p.column + first for p, first in zip(parts, rows)]
        parents = [np.where(p.parent >= 0, p.parent + first, -1) for p, first in zip(parts, rows)]
        trees = [None if p.tree is None else (p.tree, own, first) for p, own, first in zip(parts, bodies, rows)]
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([*places, none]), rows, _joined([p.start for p in parts]), np.concatenate([*columns, none]),
            _joined([p.pair_start for p in parts]), np.concatenate([*(p.pair for p in parts), none.reshape(0, 2)]),
            np.concatenate([*parents, none]), _joined([p.l_start for p in parts]), mechanism_of,
            tree_arrays(trees, len(movable)),
        )  # fmt: skip


@dataclass(frozen=True)
class _Part:
    """The pattern of one mechanism, whose rows, bodies and entries are numbered from 0."""

    order: np.ndarray
    start: np.ndarray
    column: np.ndarray
    pair_start: np.ndarray
    pair: np.ndarray
    parent: np.ndarray
    l_start: np.ndarray
    tree: Tree | None

    @classmethod
    def of(cls, body: np.ndarray, element: np.ndarray, bodies: int, free: np.ndarray | None, by_bodies: bool) -> _Part:
        """body (rows, 4): those that can move."""
        group, movable = list(range(len(body))), np.ones(bodies, bool)
        tree = None if free is None else tree_of(group, body, movable, free, by_bodies)
        order = _minimum_degree(group, body, element, movable) if tree is None else list(chain(*tree.rows))
        number = np.array(order, np.int64)
        start, column, pair_start, pair = _compressed(_entries(body[number], movable), len(number))
        if tree is not None:
            place = np.argsort(number)
            tree = Tree(tree.body, tree.parent, [[int(place[r]) for r in own] for own in tree.rows])
        return cls(number, start, column, pair_start, pair, *_elimination_tree(start, column), tree)


def _joined(starts: list[np.ndarray]) -> np.ndarray:
    """Starts of lists that follow each other, each of which begins with 0."""
    ends = np.cumsum([0] + [int(s[-1]) for s in starts])
    return np.concatenate([[0], *(s[1:] + first for s, first in zip(starts, ends))]).astype(np.int64)


def _mechanisms(body: np.ndarray, element: np.ndarray, movable: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Connected sets of movable bodies, and the rows of each, in the order of their first rows. Rows without a movable
    body stand alone."""
    count, n = body.shape[0], len(movable)
    own = np.where((body >= 0) & movable[body], body, n)
    first = own.min(axis=1, initial=n)
    row, side = np.nonzero((own < n) & (own != first[:, None]))
    links = sp.coo_matrix((np.ones(len(row)), (first[row], own[row, side])), shape=(n + 1, n + 1))
    part = connected_components(links, directed=False)[1].astype(np.int64)
    key = np.where(first < n, part[np.minimum(first, n)], -1 - element.astype(np.int64))
    _, begin, inverse = np.unique(key, return_index=True, return_inverse=True)
    number = np.empty(len(begin), np.int64)
    number[np.argsort(begin)] = np.arange(len(begin))
    of_row = number[inverse.reshape(count)]
    mechanism_of = np.full(n + 1, -1, np.int64)
    mechanism_of[own] = of_row[:, None]
    rows = np.argsort(of_row, kind="stable")
    ends = np.cumsum(np.bincount(of_row, minlength=len(begin)))
    mechanism_of[n] = -1
    return mechanism_of[:n], np.split(rows, ends[:-1]) if len(begin) else []


def _minimum_degree(rows: list[int], body: np.ndarray, element: np.ndarray, movable: np.ndarray) -> list[int]:
    """Rows of a mechanism, element by element, always the element with the fewest neighbours left."""
    members: dict[int, list[int]] = {}
    at_body: dict[int, set[int]] = {}
    for r in rows:
        members.setdefault(int(element[r]), []).append(r)
        for b in body[r]:
            if b >= 0 and movable[b]:
                at_body.setdefault(int(b), set()).add(int(element[r]))
    near: dict[int, set[int]] = {e: set() for e in members}
    for touching in at_body.values():
        for e in touching:
            near[e] |= touching
    for e in near:
        near[e].discard(e)
    heap = [(len(n), e) for e, n in near.items()]
    heapq.heapify(heap)
    out: list[int] = []
    done: set[int] = set()
    while heap:
        degree, e = heapq.heappop(heap)
        if e in done or degree != len(near[e]):
            continue
        done.add(e)
        out += members[e]
        for other in near[e]:
            near[other] |= near[e]
            near[other] -= {other, e}
            heapq.heappush(heap, (len(near[other]), other))
    return out


def _entries(body: np.ndarray, movable: np.ndarray) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """(row, column <= row) -> sides that share a movable body; the diagonal is always there."""
    at_body: dict[int, list[tuple[int, int]]] = {}
    entries: dict[tuple[int, int], list[tuple[int, int]]] = {(r, r): [] for r in range(len(body))}
    for r in range(len(body)):
        for side in range(4):
            b = int(body[r, side])
            if b >= 0 and movable[b]:
                at_body.setdefault(b, []).append((r, side))
    for sides in at_body.values():
        for r, s in sides:
            for c, t in sides:
                if c <= r:
                    entries.setdefault((r, c), []).append((s, t))
    return entries


def _compressed(
    entries: dict[tuple[int, int], list[tuple[int, int]]], count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    keys = sorted(entries)
    start = np.zeros(count + 1, np.int64)
    for r, _ in keys:
        start[r + 1] += 1
    pairs = [entries[k] for k in keys]
    flat = [p for group in pairs for p in group]
    return (
        np.cumsum(start),
        np.array([c for _, c in keys], np.int64),
        np.cumsum([0] + [len(p) for p in pairs]).astype(np.int64),
        np.array(flat, np.int64).reshape(-1, 2),
    )


def _elimination_tree(start: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parents and the starts of L's columns."""
    count = len(start) - 1
    parent = np.full(count, -1, np.int64)
    mark = np.full(count, -1, np.int64)
    length = np.zeros(count + 1, np.int64)
    for k in range(count):
        mark[k] = k
        for e in range(start[k], start[k + 1]):
            i = column[e]
            while i < k and mark[i] != k:
                if parent[i] < 0:
                    parent[i] = k
                length[i + 1] += 1
                mark[i] = k
                i = parent[i]
    return parent, np.cumsum(length)
