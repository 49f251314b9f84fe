"""Triangle meshes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import checks
from ..enums import ShapeKind
from ..errors import SceneError, message
from . import rotation
from .geometry import MeshArrays
from .hulls import ConvexHull
from .mesh_arrays import Edges, merged_points, mesh_arrays, normals
from .shape import Placed, Shape, positive_length
from .solids import Moments, enclosed

__all__ = ["Mesh"]

DEGENERATE = 1e-12
"""Twice the area over the square of the longest edge below which a triangle counts as a line."""


@dataclass(frozen=True, eq=False, repr=False)
class Mesh(Shape):
    """A surface of triangles (m, 3), given by indices of vertices (n, 3) [m], counter-clockwise seen from outside.

    Equal vertices are merged and unused ones dropped. On a dynamic body it must be closed, the boundary of a solid.
    cavity: a closed surface whose normals point inwards bounds a room, free inside and solid outside; say so with
    True, otherwise inward normals are refused. Use the same object for many bodies: they then share its arrays.
    """

    vertices: np.ndarray
    triangles: np.ndarray
    cavity: bool = False

    def __post_init__(self) -> None:
        vertices = checks.array("Mesh.vertices", self.vertices, (None, 3))
        triangles = _indices(self.triangles, len(vertices))
        checks.flag("Mesh.cavity", self.cavity, error=SceneError)
        vertices, triangles = merged_points(vertices, triangles)
        bad = np.flatnonzero(_degenerate(vertices, triangles))
        if bad.size:
            raise SceneError(
                message(
                    "Mesh.triangles",
                    "must have an area above 0",
                    f"{bad.size} of {len(triangles)} without area, the first is number {bad[0]}",
                    "Drop them, or use Mesh.cleaned(vertices, triangles).",
                )
            )
        positive_length("Mesh.vertices (largest extent)", float(np.ptp(vertices, axis=0).max()))
        for name, value in (("vertices", vertices), ("triangles", triangles)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    kind = ShapeKind.MESH

    def __repr__(self) -> str:
        return f"Mesh({len(self.vertices)} vertices, {len(self.triangles)} triangles)"

    # ------------------------------------------------------------------ other ways to make one

    @classmethod
    def load(
        cls, path: str | Path, scale: float = 1.0, unit: str | None = None, *, clean: bool = False, cavity: bool = False
    ) -> Mesh:
        """Read an STL, OBJ, PLY, GLB, glTF or COLLADA file; the parts of a scene are put where they belong.

        Numbers in the file are metres unless `unit` names another unit ("mm", "cm", "inch", ...); scale multiplies
        them once more. clean: drop triangles without area, as in `cleaned`. Axes stay as they are in the file.
        """
        from .mesh_files import read_mesh

        return read_mesh(path, scale, unit, clean=clean, cavity=cavity)

    @classmethod
    def cleaned(cls, vertices: Any, triangles: Any, *, cavity: bool = False) -> Mesh:
        """A mesh without the triangles that have no area."""
        vertices = checks.array("Mesh.vertices", vertices, (None, 3))
        vertices, triangles = merged_points(vertices, _indices(triangles, len(vertices)))
        kept = triangles[~_degenerate(vertices, triangles)]
        return cls(vertices, kept, cavity)

    def flipped(self, *, cavity: bool = False) -> Mesh:
        """The same surface with inside and outside exchanged."""
        return Mesh(self.vertices, self.triangles[:, ::-1], cavity)

    def scaled(self, factor: float) -> Mesh:
        """A mesh larger by a factor > 0, about the origin of its frame."""
        factor = checks.number("Mesh.scaled.factor", factor, above=0.0, error=SceneError)
        return Mesh(self.vertices * factor, self.triangles, self.cavity)

    def transformed(self, position: ArrayLike = (0.0, 0.0, 0.0), orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0)) -> Mesh:
        """The mesh turned by an orientation (w, x, y, z) and then moved by a position (3,) [m]."""
        move = checks.vector("Mesh.transformed.position", position)
        turn = checks.quaternion("Mesh.transformed.orientation", orientation)
        return Mesh(rotation.rotate(turn, self.vertices) + move, self.triangles, self.cavity)

    def convex_hull(self) -> ConvexHull:
        """The smallest convex solid around it."""
        return ConvexHull(self.vertices)

    def decompose(self, *, threshold: float = 0.05, max_parts: int | None = None, seed: int = 0) -> list[Placed]:
        """Convex parts that fill the mesh approximately, by CoACD (the extra `tumble[coacd]`).

        threshold: concavity that a part may have, relative to the size, from 0.01 (many parts) to 1 (few).
        max_parts: an upper bound of their number.
        """
        from .mesh_files import convex_parts

        return convex_parts(self, threshold, max_parts, seed)

    # ------------------------------------------------------------------ the surface

    @cached_property
    def edges(self) -> Edges:
        """How triangles meet: neighbours, and the numbers of open, crowded and twisted edges."""
        return Edges.of(len(self.vertices), self.triangles)

    @property
    def watertight(self) -> bool:
        """Whether every edge joins two triangles that run along it in opposite directions."""
        return self.edges.open == self.edges.crowded == self.edges.twisted == 0

    @property
    def area(self) -> float:
        """[m^2]"""
        return float(normals(self.vertices, self.triangles)[1].sum())

    @cached_property
    def geometry(self) -> MeshArrays:
        """Arrays for the pool."""
        arrays = mesh_arrays(self.vertices, self.triangles, self.edges.opposite)
        for array in arrays:
            array.setflags(write=False)
        return arrays

    @property
    def parameters(self) -> np.ndarray:
        """1 for an open mesh, which is met from both sides, else 0; zeros."""
        return np.array([0.0 if self.watertight else 1.0, 0.0, 0.0, 0.0])

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    @property
    def bound(self) -> float:
        return float(np.linalg.norm(self.vertices, axis=1).max())

    @cached_property
    def smallest(self) -> float:
        """Half of the smallest extent of a solid, half of the larger horizontal extent of a mere surface [m]."""
        extent = np.ptp(self.vertices, axis=0)
        if self.watertight and self.volume > 0.0 and extent.min() > 0.0:
            return 0.5 * float(extent.min())
        return 0.5 * float(extent[:2].max())

    # ------------------------------------------------------------------ the solid

    @property
    def volume(self) -> float:
        """Volume inside [m^3], negative where normals point inwards; NaN unless watertight."""
        return self._moments.zeroth

    @property
    def center(self) -> np.ndarray:
        return self._middle + self._moments.center

    @property
    def unit_inertia(self) -> np.ndarray:
        return self._moments.unit_inertia

    @property
    def _middle(self) -> np.ndarray:
        return 0.5 * (self.box[0] + self.box[1])

    @cached_property
    def _moments(self) -> Moments:
        if not self.watertight:
            return Moments(np.nan, np.full(3, np.nan), np.full((3, 3), np.nan))
        return enclosed(self.vertices - self._middle, self.triangles)

    def check_use(self, where: str, *, dynamic: bool) -> None:
        if dynamic:
            self._check_solid(where)
        if self.watertight and self.volume < 0.0 and (dynamic or not self.cavity):
            room = "" if dynamic else ", or Mesh(..., cavity=True) for a room seen from inside"
            raise SceneError(
                message(
                    where,
                    "the normals of a closed mesh must point outwards",
                    f"volume {self.volume:.6g} m^3",
                    f"Use mesh.flipped(){room}.",
                )
            )

    def _check_solid(self, where: str) -> None:
        edges = self.edges
        if edges.crowded:
            raise SceneError(
                message(
                    where,
                    "at most two triangles of a solid share an edge",
                    f"{edges.crowded} edges with more",
                    "Use mesh.convex_hull() or mesh.decompose(), or separate the parts.",
                )
            )
        if edges.twisted:
            raise SceneError(
                message(
                    where,
                    "neighbouring triangles must run along their edge in opposite directions",
                    f"{edges.twisted} edges passed twice in the same direction",
                    "Reverse some triangles, for example with trimesh.repair.fix_winding.",
                )
            )
        if edges.open:
            raise SceneError(
                message(
                    where,
                    "the mesh of a dynamic body must be closed",
                    f"{edges.open} open edges",
                    "Use mesh.convex_hull() or mesh.decompose(), or close the holes.",
                )
            )
        size = float(np.ptp(self.vertices, axis=0).max())
        if abs(self.volume) < 1e-12 * size**3:
            raise SceneError(
                message(
                    where,
                    "the mesh of a dynamic body must enclose a volume",
                    f"{self.volume:.3g} m^3",
                    "Give it thickness.",
                )
            )


def _indices(triangles: Any, count: int) -> np.ndarray:
    """Indices (m, 3) int64 of `count` vertices."""
    where = "Mesh.triangles"
    numbers = checks.array(where, triangles, (None, 3), largest=np.inf)
    if len(numbers) == 0:
        raise SceneError(message(where, "needs at least one triangle", "0 triangles", "Check the file or the array."))
    with np.errstate(invalid="ignore"):
        out = numbers.astype(np.int64)
    bad = np.flatnonzero(((numbers != out) | (out < 0) | (out >= count)).any(axis=1))
    if bad.size:
        raise SceneError(
            message(
                where,
                f"must be whole numbers from 0 to {count - 1}, the last vertex",
                f"{numbers[bad[0]].tolist()} at index {int(bad[0])}",
                "Count vertices from 0.",
            )
        )
    return out


def _degenerate(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Which triangles (m,) are lines or points."""
    _, area, longest = normals(vertices, triangles)
    return ~(2.0 * area > DEGENERATE * longest**2)
