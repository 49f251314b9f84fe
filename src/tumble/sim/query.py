"""Geometry without dynamics: contacts of a scene, distances of shapes, rays and overlaps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from .. import backends, checks
from ..backends.shape_arrays import RayArrays, SeenArrays, ShapeTree, part_of, pools_of
from ..collide.broadphase import PairSearch
from ..collide.contacts import Contacts
from ..collide.narrowphase import ContactSearch
from ..enums import BodyKind, Presence, ShapeKind, ShapeTrait
from ..errors import OptionsError, message
from ..kernels.jit import most_threads
from ..scene import rotation
from ..scene.builder import SceneBuilder
from ..scene.geometry import joined
from ..scene.model import Model, State
from ..scene.presence import Seen, present
from ..scene.shape import Placed, Shape
from ..scene.trees import box_tree, morton
from ..showing import Shown

__all__ = ["ContactPoints", "Distance", "GeometryQuestions", "RayHits", "contacts", "distance", "overlaps", "ray_cast"]

Pose = Any
"""None (the origin), a position (3,) [m], or a position and an orientation (w, x, y, z)."""
PAIR = np.array([BodyKind.DYNAMIC, BodyKind.STATIC], np.int8)
SAME = 1e-9
"""Contact points whose depths differ by less than this part of size and depth are equally deep."""
Backend = str | ModuleType
"""A name, or what `backends.choose` gave for it."""


@dataclass(frozen=True, repr=False)
class ContactPoints(Shown):
    """Contact points of a scene as it stands (k of them), sorted by pair."""

    body_a: np.ndarray
    """(k,) the smaller index"""
    body_b: np.ndarray
    """(k,)"""
    point: np.ndarray
    """(k, 3) midway between the two surfaces [m]"""
    normal: np.ndarray
    """(k, 3) unit vectors from a to b"""
    gap: np.ndarray
    """(k,) distance of the surfaces, negative where they overlap [m]"""

    def __len__(self) -> int:
        return len(self.gap)


@dataclass(frozen=True)
class Distance:
    """Of two shapes."""

    gap: float
    """[m], negative where they overlap: then minus the length of the shortest way out"""
    normal: np.ndarray
    """(3,) unit vector from a to b"""
    point_a: np.ndarray
    """(3,) nearest point of a [m]"""
    point_b: np.ndarray
    """(3,) nearest point of b [m]"""


@dataclass(frozen=True, repr=False)
class RayHits(Shown):
    """What k rays hit first."""

    body: np.ndarray
    """(k,) index of the body, -1 where the ray hits nothing"""
    distance: np.ndarray
    """(k,) along the ray [m], the limit where it hits nothing"""
    point: np.ndarray
    """(k, 3) [m], NaN where the ray hits nothing"""
    normal: np.ndarray
    """(k, 3) outward normal of the surface, zeros where the ray hits nothing"""

    def __len__(self) -> int:
        return len(self.body)


def contacts(
    model: Model, *, margin: float = 0.0, state: State | None = None, backend: Backend = "cpu"
) -> ContactPoints:
    """Contact points of all pairs with a gap up to `margin` [m], at the model's initial state or another.

    Pairs count as in a simulation: at least one body is dynamic, groups and masks agree, the pair is not excluded.
    """
    margin = checks.number("contacts.margin", margin, at_least=0.0, unit="m", error=OptionsError)
    return _find(model, model.initial if state is None else state, margin, backends.choose(backend))


def distance(shape_a: Shape, pose_a: Pose, shape_b: Shape, pose_b: Pose, *, backend: Backend = "cpu") -> Distance:
    """Signed distance of two shapes at two poses (None, a position, or a position and an orientation).

    Exact for convex shapes. Where a mesh or height field overlaps the other shape, the depth is that at single
    triangles, an approximation.
    """
    (pa, qa), (pb, qb) = _pose("distance.pose_a", pose_a), _pose("distance.pose_b", pose_b)
    scene = SceneBuilder()
    scene.add_static([shape_a], position=pa, orientation=qa)
    scene.add_static([shape_b], position=pb, orientation=qb)
    model = scene.build()
    surface = ShapeKind.having(ShapeTrait.SURFACE)
    a, b = (int(k) for k in model.shape_kind)
    if a == b == ShapeKind.HALF_SPACE or {a, b} == {ShapeKind.HALF_SPACE, ShapeKind.HEIGHT_FIELD}:
        raise OptionsError(
            message(
                "distance",
                "needs at least one bounded body",
                f"{ShapeKind(a).name} and {ShapeKind(b).name}",
                "Two surfaces without end have no distance; replace one by a Box or Mesh.",
            )
        )
    if a in surface or b in surface:
        return _surface_distance(model, backends.choose(backend))
    return _convex_distance(model, backends.choose(backend))


def overlaps(model: Model, state: State, shape: Any, pose: Pose = None, *, backend: Backend = "cpu") -> np.ndarray:
    """Indices of the bodies that a shape (or several placed ones) at a pose would overlap or touch."""
    position, orientation = _pose("overlaps.pose", pose)
    scene = SceneBuilder()
    scene.add_static(shape, position=position, orientation=orientation)
    both, both_state = _with_probe(model, state, scene.build())
    found = _find(both, both_state, 0.0, backends.choose(backend))
    return np.unique(found.body_a[found.gap <= 0.0])


def ray_cast(
    model: Model,
    state: State,
    origin: Any,
    direction: Any,
    *,
    limit: float | np.ndarray = math.inf,
    mask: int = 0xFFFFFFFF,
    backend: Backend = "cpu",
) -> RayHits:
    """The first body on each ray. origin, direction: (3,) or (k, 3), the direction of any length; limit [m].

    A ray that starts inside a shape hits it at distance 0. Surfaces (meshes, height fields) are hit from both sides.
    mask: bits of the groups that rays see.
    """
    o, d = _rays(origin, direction)
    count = len(o)
    limits = np.full(count, np.inf)
    if checks.dimensions(limit) != 0:
        limits = checks.array("ray_cast.limit", limit, (count,), error=OptionsError)
    elif not (isinstance(limit, float) and limit == math.inf):
        limits[:] = checks.number("ray_cast.limit", limit, error=OptionsError)
    if np.any(limits < 0.0):
        raise OptionsError(message("ray_cast.limit", "must be >= 0 m", limit, "Leave it out for rays without end."))
    backend = backends.choose(backend)
    search = _placed(model, state, 0.0, backend)
    seen = ((model.body_group & np.uint32(mask)) != 0)[model.shape_body] & present(model, state)[model.shape_body]
    bounded = np.flatnonzero(seen & (model.shape_kind != ShapeKind.HALF_SPACE))
    box = search.box[bounded]
    order = np.argsort(morton(0.5 * (box[:, :3] + box[:, 3:])), kind="stable") if len(box) else bounded
    planes = np.flatnonzero(seen & (model.shape_kind == ShapeKind.HALF_SPACE))
    hit, out = np.zeros(count, np.int64), np.zeros((count, 4))
    reach = np.where(np.isinf(limits), _far(o, box), limits)
    backend.cast_rays(
        RayArrays(o, d, np.where(np.isinf(limits) & (len(planes) > 0), math.inf, reach)),
        part_of(search.shapes, SeenArrays),
        pools_of(model.geometry).rays,
        ShapeTree(box_tree(box[order, :3], box[order, 3:]), bounded[order]),
        planes,
        np.zeros((most_threads(), backend.SCRATCH)),
        hit,
        out,
    )
    body = np.where(hit >= 0, model.shape_body[np.maximum(hit, 0)], -1).astype(np.int64)
    met = (hit >= 0)[:, None]
    along = np.where(hit >= 0, out[:, 0], limits)
    point = np.where(met, o + out[:, :1] * d, np.nan)
    return RayHits(body, along, point, np.where(met, out[:, 1:], 0.0))


# ---------------------------------------------------------------------- the search


def _placed(model: Model, state: State, margin: float, backend: ModuleType) -> PairSearch:
    seen = Seen(model, backend) if len(state.presence) else None
    search = PairSearch(model if seen is None else seen.model, backend)
    if seen is not None:
        seen.show(state.presence)
    matrix = rotation.matrix(state.orientation).reshape(-1, 9)
    search.place(state.position, state.orientation, matrix, np.zeros((model.body_count, 6)), 0.0, margin)
    return search


def _find(model: Model, state: State, margin: float, backend: ModuleType) -> ContactPoints:
    search = _placed(model, state, margin, backend)
    still = np.zeros((model.body_count, 6))
    search.find(still, 0.0, margin)
    table = Contacts()
    ContactSearch(model, backend, search.blocks).find(search, state.position, still, 0.0, margin, table)
    k = table.count
    return ContactPoints(
        table.body_a[:k].astype(np.int64),
        table.body_b[:k].astype(np.int64),
        table.point[:, :k].T.copy(),
        table.normal[:, :k].T.copy(),
        table.gap[:k].copy(),
    )


def _convex_distance(model: Model, backend: ModuleType) -> Distance:
    search = _placed(model, model.initial, 0.0, backend)
    order = np.argsort([ShapeKind(k).rank for k in model.shape_kind.tolist()], kind="stable")
    pose = np.concatenate([search.shapes.position, search.shapes.matrix], axis=1)[order]
    out = np.zeros((1, 7))
    backend.convex_gaps(
        model.shape_kind[order],
        model.shape_parameters[order],
        model.shape_geometry[order],
        pose[:1].copy(),
        pose[1:].copy(),
        pools_of(model.geometry).hulls,
        np.zeros((most_threads(), backend.SCRATCH)),
        out,
    )
    gap, normal, point = float(out[0, 0]), out[0, 1:4], out[0, 4:7]
    other = point + gap * normal
    if order[0] != 0:
        normal, point, other = -normal, other, point
    if gap < 0.0:  # the point found may be any of a face: the middle of the deepest contact points is on both
        found = _find(dataclasses.replace(model, body_kind=PAIR), model.initial, 0.0, backend)
        deepest = found.gap <= gap + SAME * (model.shape_smallest.min() - gap)
        if deepest.any():
            middle, half = found.point[deepest].mean(axis=0), 0.5 * gap * normal
            point, other = middle - half, middle + half
    return Distance(gap, normal, point, other)


def _surface_distance(model: Model, backend: ModuleType) -> Distance:
    """By contacts with a margin as wide as the two are apart."""
    search = _placed(model, model.initial, 0.0, backend)
    bounded = model.shape_kind != ShapeKind.HALF_SPACE
    low, high = search.box[bounded, :3].min(axis=0), search.box[bounded, 3:].max(axis=0)
    margin = float(np.linalg.norm(high - low))
    if not np.all(bounded):
        plane = int(np.flatnonzero(~bounded)[0])
        up = search.shapes.matrix[plane].reshape(3, 3)[:, 2]
        margin += abs(float(up @ (0.5 * (low + high) - search.shapes.position[plane])))
    found = _find(dataclasses.replace(model, body_kind=PAIR), model.initial, margin, backend)
    if not len(found):
        raise OptionsError(
            message(
                "distance",
                "the first shape must lie outside a closed mesh or above a height field",
                "no facing triangle",
                "Closed meshes are met from outside; use their open half, or flipped(), for the inside.",
            )
        )
    k = int(np.argmin(found.gap))
    gap, normal, half = float(found.gap[k]), found.normal[k], 0.5 * found.gap[k] * found.normal[k]
    return Distance(gap, normal, found.point[k] - half, found.point[k] + half)


def _with_probe(model: Model, state: State, probe: Model) -> tuple[Model, State]:
    """The model with all bodies static and the probe as one dynamic body at the end."""
    n = model.body_count
    parameters = probe.shape_parameters.copy()
    parameters[probe.shape_kind == ShapeKind.HULL, 0] += len(model.geometry.hull_point)
    geometry, offset = joined(model.geometry, probe.geometry)
    entry = probe.shape_geometry.copy()
    for kind, first in offset.items():
        entry[probe.shape_kind == kind] += first

    def both(name: str, mine: np.ndarray | None = None) -> np.ndarray:
        return np.concatenate([getattr(model, name), getattr(probe, name) if mine is None else mine])

    fields = [f.name for f in dataclasses.fields(Model)]
    arrays = {f: both(f) for f in fields if f.startswith(("body_", "shape_"))}
    arrays["body_kind"] = np.append(np.full(n, BodyKind.STATIC), BodyKind.DYNAMIC).astype(np.int8)
    arrays["body_mask"] = np.full(n + 1, 0xFFFFFFFF, np.uint32)
    arrays["body_group"] = np.ones(n + 1, np.uint32)
    arrays["body_uid"] = np.arange(n + 1)
    arrays["shape_body"] = both("shape_body", probe.shape_body + n).astype(np.int32)
    arrays["shape_parameters"] = both("shape_parameters", parameters)
    arrays["shape_geometry"] = both("shape_geometry", entry).astype(np.int32)
    arrays["shape_material"] = np.zeros(len(arrays["shape_body"]), np.int32)
    whole = dataclasses.replace(
        model,
        **arrays,
        geometry=geometry,
        excluded=np.zeros(0, np.int64),
        motions={},
        forces=(),
        friction=np.zeros((1, 1)),
    )
    p = probe.initial
    return whole, State(
        state.time,
        state.step,
        np.concatenate([state.position, p.position]),
        np.concatenate([state.orientation, p.orientation]),
        np.zeros((n + 1, 3)),
        np.zeros((n + 1, 3)),
        presence=np.append(state.presence, np.int8(Presence.PRESENT)) if len(state.presence) else state.presence,
    )


# ---------------------------------------------------------------------- input


def _pose(where: str, pose: Pose) -> tuple[np.ndarray, np.ndarray]:
    """Position (3,) and orientation (4,) of a pose."""
    if pose is None:
        return np.zeros(3), rotation.IDENTITY.copy()
    if isinstance(pose, Placed):
        raise OptionsError(message(where, "must be a pose", "a Placed shape", "Give its position and orientation."))
    if isinstance(pose, Sequence) and len(pose) == 2:
        return (
            checks.vector(where + " position", pose[0], error=OptionsError),
            checks.quaternion(where + " orientation", pose[1], error=OptionsError),
        )
    return checks.vector(where, pose, error=OptionsError), rotation.IDENTITY.copy()


def _rays(origin: Any, direction: Any) -> tuple[np.ndarray, np.ndarray]:
    """Origins and unit directions, both (k, 3)."""
    many = max(
        (len(v) for v in (origin, direction) if checks.dimensions(v) == 2),
        default=1,
    )

    def rows(where: str, value: Any) -> np.ndarray:
        if checks.dimensions(value) == 1:
            return np.tile(checks.array(where, value, (3,), error=OptionsError), (many, 1))
        return checks.array(where, value, (many, 3), error=OptionsError)

    o, d = rows("ray_cast.origin", origin), rows("ray_cast.direction", direction)
    length = np.linalg.norm(d, axis=1)
    if np.any(length < checks.SMALLEST):
        raise OptionsError(
            message("ray_cast.direction", "must not be zero", f"ray {int(np.argmin(length))}", "Give a direction.")
        )
    return o, d / length[:, None]


def _far(origin: np.ndarray, box: np.ndarray) -> np.ndarray:
    """A length (k,) that takes each ray beyond all boxes [m]."""
    if not len(box):
        return np.zeros(len(origin))
    low, high = box[:, :3].min(axis=0), box[:, 3:].max(axis=0)
    return 1.01 * np.linalg.norm(np.maximum(np.abs(low - origin), np.abs(high - origin)), axis=1)


class GeometryQuestions:
    """What a simulation answers about its bodies as they stand now."""

    model: Model
    state: State
    backend: ModuleType

    def _asked(self) -> ModuleType:
        """The backend that answers: the processor's where bodies live on a device."""
        return self.backend if self.backend.HOSTED else backends.choose("cpu")

    def contacts(self, *, margin: float = 0.0) -> ContactPoints:
        """Contact points with a gap up to `margin` [m] as the bodies stand now (no forces; see `contact_forces`)."""
        return contacts(self.model, margin=margin, state=self.state, backend=self._asked())

    def ray_cast(
        self, origin: Any, direction: Any, *, limit: float | np.ndarray = math.inf, mask: int = 0xFFFFFFFF
    ) -> RayHits:
        """The first body on each ray: origin, direction (3,) or (k, 3); limit [m]; mask: groups that rays see."""
        return ray_cast(self.model, self.state, origin, direction, limit=limit, mask=mask, backend=self._asked())

    def overlaps(self, shape: Any, pose: Any = None) -> np.ndarray:
        """Indices of the bodies that a shape at a pose (position, or position and orientation) would overlap."""
        return overlaps(self.model, self.state, shape, pose, backend=self._asked())
