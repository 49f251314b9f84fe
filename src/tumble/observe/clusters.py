"""Connected bodies: clusters by touch or by force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from ..errors import OptionsError, message
from ..showing import Shown

__all__ = ["Clusters", "by_force", "find_clusters", "only_one"]


@dataclass(frozen=True, repr=False)
class Clusters(Shown):
    """Groups of bodies connected by contacts, the largest first (equal ones: the lowest body index first)."""

    label: np.ndarray
    """(n,) number of each body's cluster, -1 for bodies that are not in question (static, kinematic, absent)"""
    size: np.ndarray
    """(c,) bodies in each cluster, falling; a body that touches no other is a cluster of one"""

    def __len__(self) -> int:
        return len(self.size)

    def bodies(self, cluster: int) -> np.ndarray:
        """Indices of the bodies of a cluster, rising."""
        return np.flatnonzero(self.label == cluster)

    def mass(self, mass: np.ndarray) -> np.ndarray:
        """(c,) mass of each cluster from that of the bodies (n,) [kg]."""
        mine = self.label >= 0
        return np.bincount(self.label[mine], weights=np.asarray(mass, float)[mine], minlength=len(self))

    def center(self, position: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """(c, 3) centre of mass of each cluster from the bodies' places (n, 3) and masses (n,) [m]."""
        mine = self.label >= 0
        weight, place = np.asarray(mass, float)[mine], np.asarray(position, float)[mine]
        moment = [np.bincount(self.label[mine], weights=weight * x, minlength=len(self)) for x in place.T]
        return np.stack(moment, axis=1) / self.mass(mass)[:, None]

    def radius_of_gyration(self, position: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """(c,) root of sum m |x - center|^2 / sum m over the bodies of each cluster, taken as points [m]."""
        mine = self.label >= 0
        label = self.label[mine]
        away = np.asarray(position, float)[mine] - self.center(position, mass)[label]
        second = np.bincount(label, weights=np.asarray(mass, float)[mine] * (away**2).sum(axis=1), minlength=len(self))
        return np.sqrt(second / self.mass(mass))


def find_clusters(
    body_a: np.ndarray, body_b: np.ndarray, member: np.ndarray, *, through_others: bool = False
) -> Clusters:
    """Connected components of the bodies in `member` (n,) bool under the connections body_a, body_b (k,).

    Connections to bodies that are no members are left out; with through_others they connect the members at both ends
    of them, as two balls on one floor.
    """
    member = np.asarray(member, bool)
    n = len(member)
    a, b = np.asarray(body_a, np.int64), np.asarray(body_b, np.int64)
    if not through_others:
        keep = member[a] & member[b]
        a, b = a[keep], b[keep]
    graph = coo_matrix((np.ones(len(a), bool), (a, b)), shape=(n, n))
    raw = connected_components(graph, directed=False)[1][member]
    _, first, back, size = np.unique(raw, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -size))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    label = np.full(n, -1, np.int64)
    label[member] = rank[np.ravel(back)]
    return Clusters(label, size[order].astype(np.int64))


def by_force(
    body_a: np.ndarray, body_b: np.ndarray, normal: np.ndarray, force: np.ndarray, threshold: float
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (p,), (p,) of bodies that press on each other with more than `threshold` [N], all their points together.

    normal (k, 3) from a to b; force (k, 3) on b [N].
    """
    if not len(body_a):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    pairs, back = np.unique(np.stack([body_a, body_b], axis=1), axis=0, return_inverse=True)
    pressure = np.bincount(np.ravel(back), weights=np.einsum("ij,ij->i", normal, force), minlength=len(pairs))
    strong = pairs[pressure > threshold]
    return strong[:, 0], strong[:, 1]


def only_one(where: str, gap: float | None, force: float | None) -> None:
    """Bodies are connected by a gap or by a force."""
    if (gap is None) == (force is None):
        raise OptionsError(
            message(
                where,
                "takes either gap or force",
                f"gap={gap}, force={force}",
                "Give gap [m], the largest distance of two bodies that touch, or force [N], the least that connects.",
            )
        )
