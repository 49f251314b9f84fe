"""Quantities of whole arrays: what simulations, frames of trajectories and contacts say, as functions.

Positions and orientations are those of the bodies' frames, velocities those of the centres of mass, as `Simulation` and
`Trajectory` give them; `model` is a `Model` (or, where no inertia is needed, the `model` of a trajectory). Contacts are
`Simulation.contact_forces()` or `Trajectory.contacts(frame)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import checks
from .enums import BodyKind
from .errors import OptionsError, message
from .scene import rotation

__all__ = [
    "ForceNetwork",
    "angular_momentum",
    "center_of_mass",
    "coordination",
    "force_network",
    "momentum",
    "pair_correlation",
    "stress",
]


def _chosen(model: Any, bodies: Any) -> np.ndarray:
    """(k,) indices: all dynamic bodies, a mask or a list of them."""
    count = len(model.body_kind)
    if bodies is None:
        return np.flatnonzero(np.asarray(model.body_kind) == BodyKind.DYNAMIC)
    chosen = np.asarray(bodies)
    if chosen.dtype == bool and chosen.shape == (count,):
        return np.flatnonzero(chosen & (np.asarray(model.body_kind) == BodyKind.DYNAMIC))
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1 or np.any((chosen < 0) | (chosen >= count)):
        rule = f"must be indices of bodies or a mask ({count},)"
        raise OptionsError(message("bodies", rule, checks.short(bodies), "For example sim.present()."))
    return chosen


def _centers(model: Any, position: Any, orientation: Any) -> np.ndarray:
    """(n, 3) centres of mass [m]"""
    n = len(model.body_kind)
    place = checks.array("position", position, (n, 3), error=OptionsError)
    turn = checks.quaternions("orientation", orientation, n, error=OptionsError)
    return place + rotation.rotate(turn, model.body_center)


def center_of_mass(model: Any, position: Any, orientation: Any, *, bodies: Any = None) -> np.ndarray:
    """Of all dynamic bodies, or of some (indices or a mask), (3,) [m]."""
    chosen = _chosen(model, bodies)
    mass = np.asarray(model.body_mass)[chosen]
    if not mass.sum() > 0.0:
        raise OptionsError(message("center_of_mass", "needs a mass", "0 kg", "Choose dynamic bodies."))
    return mass @ _centers(model, position, orientation)[chosen] / mass.sum()


def momentum(model: Any, velocity: Any, *, bodies: Any = None) -> np.ndarray:
    """Linear momentum of all dynamic bodies, or of some, (3,) [kg m/s]."""
    chosen = _chosen(model, bodies)
    v = checks.array("velocity", velocity, (len(model.body_kind), 3), error=OptionsError)
    return np.asarray(model.body_mass)[chosen] @ v[chosen]


def angular_momentum(
    model: Any,
    position: Any,
    orientation: Any,
    velocity: Any,
    angular_velocity: Any,
    *,
    about: ArrayLike = (0.0, 0.0, 0.0),
    bodies: Any = None,
) -> np.ndarray:
    """Of all dynamic bodies, or of some, about a point [m], (3,) [kg m^2/s]; orbits and spins together."""
    chosen, n = _chosen(model, bodies), len(model.body_kind)
    arm = _centers(model, position, orientation)[chosen] - checks.vector("about", about, error=OptionsError)
    v = checks.array("velocity", velocity, (n, 3), error=OptionsError)[chosen]
    w = checks.array("angular_velocity", angular_velocity, (n, 3), error=OptionsError)[chosen]
    axes = rotation.multiply(np.asarray(orientation, float), model.body_axes)[chosen]
    spin = rotation.rotate(axes, model.body_inertia[chosen] * rotation.rotate(rotation.conjugate(axes), w))
    orbit = np.asarray(model.body_mass)[chosen, None] * np.cross(arm, v)
    return (orbit + spin).sum(axis=0)


def _column(contacts: Any, name: str) -> np.ndarray:
    return np.asarray(contacts[name] if isinstance(contacts, Mapping) else getattr(contacts, name))


def stress(
    model: Any, position: Any, orientation: Any, contacts: Any, *, volume: float, bodies: Any = None
) -> np.ndarray:
    """Mean stress in a volume [m^3] of grains, (3, 3) [Pa]: Love and Weber's sum of forces times branches.

    Compression is positive. A branch joins the centres of mass of two bodies; towards a body that is not among the
    chosen ones (all dynamic ones: towards a wall) it ends at the contact point. Symmetric in equilibrium.
    """
    space = checks.number("stress.volume", volume, above=0.0, unit="m^3")
    member = np.zeros(len(model.body_kind), bool)
    member[_chosen(model, bodies)] = True
    centers = _centers(model, position, orientation)
    a, b = _column(contacts, "body_a"), _column(contacts, "body_b")
    point, force = _column(contacts, "point"), _column(contacts, "force")
    start = np.where(member[a, None], centers[a], point)
    end = np.where(member[b, None], centers[b], point)
    return np.einsum("ki,kj->ij", end - start, force) / space


def coordination(model: Any, contacts: Any, *, bodies: Any = None, force: float = 0.0) -> np.ndarray:
    """How many other bodies touch each of the chosen ones (all dynamic ones), (k,).

    force: pairs count that press on each other with more than this, all their points together [N].
    """
    chosen = _chosen(model, bodies)
    pair, pressed = _pairs(contacts)
    kept = pair[pressed > checks.number("coordination.force", force, at_least=0.0, unit="N")]
    return np.bincount(kept.ravel(), minlength=len(model.body_kind))[chosen]


def _pairs(contacts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Bodies (p, 2) of each pair that touches, and the normal force between them (p,) [N]."""
    a, b = (_column(contacts, name).astype(np.int64) for name in ("body_a", "body_b"))
    pressed = np.einsum("ki,ki->k", _column(contacts, "force"), _column(contacts, "normal"))
    pair, number = np.unique(np.sort(np.stack([a, b], axis=1), axis=1).reshape(-1, 2), axis=0, return_inverse=True)
    return pair, np.bincount(number.reshape(-1), pressed, len(pair))


@dataclass(frozen=True)
class ForceNetwork:
    """Pairs of bodies that press on each other, and the chains of the strong ones."""

    pair: np.ndarray
    """(p, 2) bodies"""
    force: np.ndarray
    """(p,) normal force between them [N]"""
    strong: np.ndarray
    """(p,) bool: above the threshold"""
    chain: np.ndarray
    """(p,) which chain of strong pairs, the largest is 0; -1 for weak ones"""
    length: np.ndarray
    """(c,) pairs of each chain, falling"""
    threshold: float
    """[N]"""


def force_network(contacts: Any, *, threshold: float | None = None) -> ForceNetwork:
    """Who presses on whom, and which strong pairs hang together. threshold [N]: the mean force if left out."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pair, force = _pairs(contacts)
    pair, force = pair[force > 0.0], force[force > 0.0]
    mean = float(force.mean()) if len(force) else 0.0
    least = mean if threshold is None else checks.number("force_network.threshold", threshold, at_least=0.0, unit="N")
    strong = force > least
    nodes, edge = np.unique(pair[strong], return_inverse=True)
    edge = edge.reshape(-1, 2)
    graph = coo_array((np.ones(len(edge)), (edge[:, 0], edge[:, 1])), shape=(len(nodes), len(nodes)))
    label = connected_components(graph, directed=False)[1][edge[:, 0]] if len(edge) else np.zeros(0, int)
    length = np.bincount(label)
    order = np.argsort(-length, kind="stable")
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    chain = np.full(len(pair), -1)
    chain[strong] = rank[label]
    return ForceNetwork(pair, force, strong, chain, length[order], least)


def pair_correlation(
    points: Any, *, reach: float, bins: int = 100, low: ArrayLike, high: ArrayLike, periodic: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Distances (bins,) [m] and g(r): how much denser than on average it is at a distance from a point.

    points (n, 3) lie in the box from low to high [m]. Without periodic sides only points farther than `reach` from them
    are looked around from, so that no side shows.
    """
    from scipy.spatial import KDTree

    where = "pair_correlation"
    x = checks.array(f"{where}.points", points, (None, 3), error=OptionsError)
    a, b = (checks.vector(f"{where}.{n}", v, error=OptionsError) for n, v in (("low", low), ("high", high)))
    far, count = (
        checks.number(f"{where}.reach", reach, above=0.0, unit="m"),
        checks.integer(f"{where}.bins", bins, at_least=1),
    )
    inside = np.all((x >= a) & (x <= b), axis=1)
    limit = 0.5 if periodic else 0.5 * (1.0 - 1e-12)
    if np.any(far > limit * (b - a)):
        got = f"{far} in a box of {(b - a).tolist()}"
        raise OptionsError(message(f"{where}.reach", "must be below half the box", got, "Look less far."))
    if not inside.all():
        raise OptionsError(
            message(f"{where}.points", "must lie in the box", f"{int((~inside).sum())} outside", "Choose those inside.")
        )
    box = b - a if periodic else None
    tree = KDTree(x - a, boxsize=box)
    eyes = np.arange(len(x)) if periodic else np.flatnonzero(np.all((x - a > far) & (b - x > far), axis=1))
    found = tree.sparse_distance_matrix(KDTree(x[eyes] - a, boxsize=box), far, output_type="ndarray")
    distance = found["v"][found["i"] != eyes[found["j"]]]
    seen, edges = np.histogram(distance, bins=count, range=(0.0, far))
    density = (len(x) - 1) / np.prod(b - a)
    shell = 4.0 / 3.0 * np.pi * np.diff(edges**3)
    return 0.5 * (edges[1:] + edges[:-1]), seen / (max(1, len(eyes)) * density * shell)
