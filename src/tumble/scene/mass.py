"""Mass, centre and inertia of a body made of placed shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..errors import SceneError, message
from . import rotation
from .shape import Placed
from .solids import weighted

__all__ = ["MassProperties", "all_properties", "many_masses", "mass_properties"]


@dataclass(frozen=True)
class MassProperties:
    """Mass [kg], centre (3,) [m], principal moments (3,) [kg m^2] and axes (4,), in the frame the user gave."""

    mass: float
    center: np.ndarray
    moments: np.ndarray
    axes: np.ndarray


def mass_properties(
    where: str,
    shapes: Sequence[Placed],
    *,
    mass: float | None,
    density: float | None,
    inertia: Any = None,
    center: object = None,
) -> MassProperties:
    """From a density [kg/m^3] or a mass [kg] spread evenly over the shapes (where shapes overlap, both count).

    inertia: principal moments (3,) or a tensor (3, 3) about the centre of mass in the user's axes [kg m^2]; it
    replaces the computed one and needs `mass`. center: of mass (3,) in place of the computed one; needs both.
    """
    if not shapes or center is not None:
        return _given_properties(where, shapes, mass, density, inertia, center)
    if (mass is None) == (density is None):
        raise SceneError(
            message(
                where, "needs either mass or density", f"mass={mass}, density={density}", "Give exactly one of them."
            )
        )
    for p in shapes:
        p.shape.check_use(where, dynamic=True)
    volumes = np.array([p.shape.volume for p in shapes])
    turns = [rotation.matrix(np.array(p.orientation)) for p in shapes]
    # einsum, not @: BLAS adds in an order that depends on the machine.
    centers = np.array([p.position + np.einsum("ij,j->i", turn, p.shape.center) for p, turn in zip(shapes, turns)])
    if mass is not None:
        total = checks.number(where + ".mass", mass, above=0.0, unit="kg", error=SceneError)
        masses = total * volumes / volumes.sum()
    else:
        rho = checks.number(where + ".density", density, above=0.0, unit="kg/m^3", error=SceneError)
        masses = rho * volumes
        weight = where + ": mass (density times volume)"
        total = checks.number(weight, float(masses.sum()), above=0.0, unit="kg", error=SceneError)
    center = weighted(masses, centers) / total
    if inertia is not None:
        if mass is None:
            raise SceneError(message(where, "inertia needs mass", "density", "Give mass together with inertia."))
        tensor = _given_inertia(where, inertia)
    else:
        tensor = np.zeros((3, 3))
        for m, p, turn, arm in zip(masses, shapes, turns, centers - center):
            own = np.einsum("ij,jk,lk->il", turn, p.shape.unit_inertia, turn)
            tensor += m * (own + np.sum(arm * arm) * np.eye(3) - np.outer(arm, arm))
    moments, axes = principal_axes(tensor)
    _check_moments(where, moments)
    return MassProperties(total, center, moments, axes)


def many_masses(where: str, mass: Any, density: Any, volume: np.ndarray) -> np.ndarray:
    """Masses (n,) from a mass or a density, a number or one for each of the volumes (n,)."""
    if (mass is None) == (density is None):
        raise SceneError(
            message(
                where,
                "needs either mass or density",
                f"mass={mass}, density={density}",
                "Give exactly one of them.",
            )
        )
    if mass is not None:
        return checks.positive_array(where + ".mass", mass, len(volume), unit="kg")
    dense = checks.positive_array(where + ".density", density, len(volume), unit="kg/m^3")
    return checks.positive_array(where + ": mass (density times volume)", volume * dense, len(volume), unit="kg")


def all_properties(
    where: str, bodies: Sequence[Sequence[Placed]], *, mass: Any, density: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Masses (n,), centres (n, 3), moments (n, 3) and axes (n, 4) of bodies of different shapes, as `mass_properties`.

    mass or density: a number or (n,). `where` names the caller; bodies are told by their number.
    """
    owner, shapes = np.repeat(np.arange(len(bodies)), [len(b) for b in bodies]), [p for b in bodies for p in b]
    number = {id(p.shape): k for k, p in enumerate(shapes)}
    kinds, which = np.unique([number[id(p.shape)] for p in shapes], return_inverse=True)
    for k in kinds:
        shapes[k].shape.check_use(f"{where}.shapes[{owner[k]}]", dynamic=True)
    solids = [shapes[k].shape for k in kinds]
    volumes = np.array([s.volume for s in solids])[which]
    own_centers = np.array([s.center for s in solids])[which]
    own_tensors = np.array([s.unit_inertia for s in solids])[which]
    turns = rotation.matrix(np.array([p.orientation for p in shapes]))
    centers = np.array([p.position for p in shapes]) + np.einsum("nij,nj->ni", turns, own_centers)
    volume = np.bincount(owner, volumes)
    total = many_masses(where, mass, density, volume)
    if mass is not None:
        masses = total[owner] * volumes / volume[owner]
    else:
        masses = np.broadcast_to(np.asarray(density, float), len(bodies))[owner] * volumes
        total = np.bincount(owner, masses)
    center = np.stack([np.bincount(owner, masses * x) for x in centers.T], axis=1) / total[:, None]
    arms = centers - center[owner]
    tensors = np.einsum("nij,njk,nlk->nil", turns, own_tensors, turns)
    tensors = tensors + np.sum(arms * arms, axis=1)[:, None, None] * np.eye(3) - arms[:, :, None] * arms[:, None, :]
    tensor = np.zeros((len(bodies), 3, 3))
    np.add.at(tensor, owner, masses[:, None, None] * tensors)
    moments, axes = all_principal_axes(tensor)
    bad = np.flatnonzero(~(moments.min(axis=1) > 0.0))
    if bad.size:
        _check_moments(f"{where}.shapes[{bad[0]}]", moments[bad[0]])
    return total, center, moments, axes


def _given_properties(
    where: str, shapes: Sequence[Placed], mass: float | None, density: float | None, inertia: Any, center: object
) -> MassProperties:
    """Everything from the user: a body without shapes, or with a centre of mass of its own."""
    if mass is None or inertia is None or density is not None:
        raise SceneError(
            message(
                where,
                "needs mass and inertia" + ("" if shapes else ", since it has no shapes"),
                f"mass={mass}, density={density}, inertia={inertia}",
                "Give both, or shapes with a density. For example Sphere(0.1).",
            )
        )
    for p in shapes:
        p.shape.check_use(where, dynamic=True)
    total = checks.number(where + ".mass", mass, above=0.0, unit="kg", error=SceneError)
    at = np.zeros(3) if center is None else checks.array(where + ".center", center, (3,))
    return MassProperties(total, at, *principal_axes(_given_inertia(where, inertia)))


def principal_axes(tensor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moments (3,) and axes (4,) of a symmetric tensor; a diagonal one keeps the frame it has."""
    off = np.abs(tensor - np.diag(np.diag(tensor))).max()
    if off <= 1e-14 * np.abs(tensor).max():
        return np.diag(tensor).copy(), rotation.IDENTITY.copy()
    moments, vectors = np.linalg.eigh(tensor)
    if np.linalg.det(vectors) < 0:
        vectors[:, 2] *= -1.0
    return moments, rotation.from_matrix(vectors)


def all_principal_axes(tensors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for tensors (n, 3, 3)."""
    moments = np.diagonal(tensors, axis1=1, axis2=2).copy()
    axes = np.tile(rotation.IDENTITY, (len(tensors), 1))
    off = np.abs(tensors - moments[:, :, None] * np.eye(3)).max(axis=(1, 2))
    skew = np.flatnonzero(off > 1e-14 * np.abs(tensors).max(axis=(1, 2)))
    moments[skew], vectors = np.linalg.eigh(tensors[skew])
    vectors[np.linalg.det(vectors) < 0, :, 2] *= -1.0
    for k, own in zip(skew, vectors):
        axes[k] = rotation.from_matrix(own)
    return moments, axes


def _check_moments(where: str, moments: np.ndarray) -> None:
    if not moments.min() > 0.0:
        got, remedy = (
            moments.tolist(),
            "Its shapes are too small for their distance: move them closer, or give inertia.",
        )
        raise SceneError(message(where, "must have principal moments > 0 kg m^2", got, remedy))


def _given_inertia(where: str, inertia: Any) -> np.ndarray:
    where += ".inertia"
    if np.ndim(inertia) == 1:
        tensor = np.diag(checks.array(where, inertia, (3,)))
    else:
        tensor = checks.array(where, inertia, (3, 3))
        if np.abs(tensor - tensor.T).max() > 1e-9 * np.abs(tensor).max():
            raise SceneError(message(where, "must be symmetric", tensor.tolist(), "Average it with its transpose."))
        tensor = 0.5 * (tensor + tensor.T)
    moments = np.linalg.eigvalsh(tensor)
    if moments[0] <= 0.0:
        raise SceneError(
            message(where, "must have principal moments > 0 kg m^2", moments.tolist(), "Check signs and units.")
        )
    if moments[0] + moments[1] < moments[2] * (1 - 1e-9):
        raise SceneError(
            message(
                where,
                "no principal moment may exceed the sum of the others",
                moments.tolist(),
                "No solid body has such an inertia.",
            )
        )
    return tensor
