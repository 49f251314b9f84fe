"""Meshes from files (trimesh) and their convex parts (CoACD). Both libraries are imported on first use."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..errors import FileError, SceneError, TumbleError, message
from .hulls import ConvexHull
from .meshes import Mesh
from .shape import Placed

__all__ = ["convex_parts", "read_mesh"]

METRES = {
    "m": 1.0,
    "km": 1e3,
    "dm": 1e-1,
    "cm": 1e-2,
    "mm": 1e-3,
    "um": 1e-6,
    "inch": 0.0254,
    "foot": 0.3048,
    "yard": 0.9144,
}
SUFFIXES = (".stl", ".obj", ".ply", ".glb", ".gltf", ".dae")


def read_mesh(path: str | Path, scale: float, unit: str | None, *, clean: bool, cavity: bool) -> Mesh:
    """See `Mesh.load`."""
    path = checks.file_name("Mesh.load.path", path, "part.stl")
    factor = checks.number("Mesh.load.scale", scale, above=0.0, error=SceneError)
    if unit is not None:
        factor *= METRES[checks.choice("Mesh.load.unit", unit, METRES, error=SceneError)]
    checks.flag("Mesh.load.clean", clean, error=SceneError)
    vertices, triangles = _read(path)
    try:
        return (Mesh.cleaned if clean else Mesh)(vertices * factor, triangles, cavity=cavity)
    except TumbleError as cause:
        text = str(cause).replace("use Mesh.cleaned(vertices, triangles)", "load it with clean=True")
        raise SceneError(f"{path}: {text}") from cause


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of all parts of a file."""
    if path.suffix.lower() not in SUFFIXES:
        raise FileError(
            message(
                str(path), "a mesh file ends in " + ", ".join(SUFFIXES), checks.short(path.suffix), "Convert the file."
            )
        )
    try:
        with path.open("rb") as file:
            head = file.read(84)
        size = path.stat().st_size
    except OSError as cause:
        raise FileError(
            message(str(path), "must be a readable file", cause.strerror, "Check the file name.")
        ) from cause
    if size == 0:
        raise FileError(message(str(path), "must hold a mesh", "an empty file", "Export it again."))
    if path.suffix.lower() == ".stl" and not head.lstrip().lower().startswith(b"solid"):
        _check_stl(path, head, size)
    own = _collada_unit(path) if path.suffix.lower() == ".dae" else 1.0
    import trimesh

    try:
        mesh = trimesh.load_scene(path, process=False).to_mesh()
        vertices, triangles = np.array(mesh.vertices, float), np.array(mesh.faces)
    except Exception as cause:  # readers of damaged files raise whatever their parsing runs into
        raise FileError(
            message(
                str(path),
                "must be a whole file of its kind",
                f"{type(cause).__name__}: {' '.join(str(cause).split())}"[:200],
                "Export it again.",
            )
        ) from cause
    if len(triangles) == 0:
        raise FileError(message(str(path), "must hold triangles", "none", "Export the surface as triangles."))
    return vertices * own, triangles


def _collada_unit(path: Path) -> float:
    """Metres in the unit that a COLLADA file names; trimesh needs another package to read it."""
    try:
        import collada  # noqa: F401
    except ImportError as cause:
        raise FileError(
            message(str(path), "needs the package pycollada", "not installed", "Run pip install 'tumble[urdf]'.")
        ) from cause
    found = re.search(rb"<unit\b[^>]*\bmeter\s*=\s*[\"']([-+.\deE]+)[\"']", path.read_bytes())
    return float(found[1]) if found else 1.0


def _check_stl(path: Path, head: bytes, size: int) -> None:
    """A binary STL has 84 bytes, the last four of them a count, and 50 bytes for each triangle."""
    expected = 84 + 50 * int.from_bytes(head[80:84], "little")
    if len(head) < 84 or size < expected:
        raise FileError(
            message(
                str(path),
                "must be a whole STL file",
                f"{size} bytes of {expected if len(head) == 84 else 'at least 84'}",
                "Export or copy it again.",
            )
        )


def convex_parts(mesh: Mesh, threshold: float, max_parts: int | None, seed: int) -> list[Placed]:
    """See `Mesh.decompose`."""
    where = "Mesh.decompose"
    options: dict[str, Any] = {
        "threshold": checks.number(where + ".threshold", threshold, at_least=0.01, at_most=1.0, error=SceneError),
        "seed": checks.seed(where + ".seed", seed),
    }
    if max_parts is not None:
        options["max_convex_hull"] = checks.integer(where + ".max_parts", max_parts, at_least=1, error=SceneError)
    try:
        import coacd
    except ImportError as cause:
        raise SceneError(
            message(where, "needs the package coacd", "not installed", "Run pip install 'tumble[coacd]'.")
        ) from cause
    coacd.set_log_level("error")
    parts = coacd.run_coacd(coacd.Mesh(mesh.vertices, mesh.triangles), **options)
    return [Placed(ConvexHull(np.asarray(points, float))) for points, _ in parts]
