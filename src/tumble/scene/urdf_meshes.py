"""Mesh files that a URDF names: where they are, and the shapes they become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from ..errors import FileError, SceneError, TumbleError, message
from .hulls import ConvexHull
from .meshes import Mesh
from .shape import Shape

__all__ = ["MeshFinder", "PackagePaths"]

PackagePaths = Mapping[str, str | Path] | Sequence[str | Path] | str | Path | None


@dataclass
class MeshFinder:
    """Finds and loads the meshes of one robot; equal meshes become the same shape.

    packages: {package: folder}, or folders that hold packages (or are one). Then the folders above the URDF count.
    """

    urdf: Path
    packages: PackagePaths = None
    made: dict[tuple[Path, tuple[float, ...], bool], Shape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.packages
        if isinstance(given, (str, Path)):
            given = [given]
        named = isinstance(given, Mapping)
        for folder in (given.values() if named else given) or ():  # type: ignore[union-attr]
            if not isinstance(folder, (str, Path)) or not Path(folder).is_dir():
                raise FileError(
                    message("package_paths", "must be folders that exist", repr(folder), "Check the spelling.")
                )
        self._named = {str(k): Path(v) for k, v in given.items()} if named else {}  # type: ignore[union-attr]
        self._listed = [] if named else [Path(p) for p in given or ()]

    def find(self, name: str) -> Path | None:
        """The file that a URDF calls by this name, or None."""
        return next((p for p in self._places(name) if p.is_file()), None)

    def path(self, where: str, name: str) -> Path:
        """The file, or an error that says where it was sought."""
        found = self.find(name)
        if found is None:
            places = list(dict.fromkeys(str(p.parent) for p in self._places(name)))
            shown = ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
            raise FileError(
                message(where, "the mesh must exist", f"{name!r}, sought in {shown}", "Give package_paths=[folder].")
            )
        return found

    def shape(self, where: str, name: str, scale: tuple[float, ...], *, hull: bool) -> Shape:
        """A mesh scaled along its axes, or its convex hull."""
        path = self.path(where, name)
        key = (path, scale, hull)
        if key not in self.made:
            if 0.0 in scale:
                raise SceneError(message(where + ": scale", "must not be 0", list(scale), "Leave it out for 1 1 1."))
            try:
                mesh = Mesh.load(path, clean=True)
                points = mesh.vertices * np.array(scale)
                self.made[key] = ConvexHull(points) if hull else _surface(points, mesh.triangles, scale)
            except TumbleError as cause:
                raise type(cause)(f"{where}: {cause}") from cause
        return self.made[key]

    def _places(self, name: str) -> Iterator[Path]:
        """Where a file may be, best first."""
        scheme, mark, rest = name.partition("://")
        if not mark:
            rest, scheme = name, ""
        rest = unquote(rest) if mark else rest
        above = list(self.urdf.resolve().parents)
        if scheme in ("package", "model"):
            package, _, inner = rest.partition("/")
            if package in self._named:
                yield self._named[package] / inner
            for folder in (*self._listed, *above):
                yield folder / package / inner
                if folder.resolve().name == package:
                    yield folder / inner
            for folder in (*self._listed, *above):
                yield folder / inner
            return
        path = Path(rest)
        if path.is_absolute():
            yield path
            return
        for folder in (*above[:1], *self._named.values(), *self._listed, *above[1:]):
            yield folder / path


def _surface(points: np.ndarray, triangles: np.ndarray, scale: tuple[float, ...]) -> Mesh:
    """A mesh with its normals outwards."""
    mesh = Mesh(points, triangles[:, ::-1] if np.prod(scale) < 0.0 else triangles)
    return mesh.flipped() if mesh.watertight and mesh.volume < 0.0 else mesh
