"""For ParaView and VTK: bodies as surfaces or points, contacts as points with their forces."""

from __future__ import annotations

import json
import shutil
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..enums import ShapeKind
from ..errors import FileError
from ..files import PatientFile, replacing
from .run import Plan
from .source import Frame, Source
from .surfaces import Surfaces

__all__ = ["WRITERS", "Piece", "Pieces"]

UNITS = {"velocity": "m/s", "angular_velocity": "rad/s", "force": "N", "gap": "m", "radius": "m", "mass": "kg"}
"""Of arrays by name; the others are counts, indices and unit vectors."""


@dataclass
class Piece:
    """What VTK calls PolyData, at one time. An array that is the very one of the time before is stored once."""

    points: np.ndarray
    cells: np.ndarray
    """(n, w) numbers of points: vertices (w = 1) or triangles (w = 3)"""
    point_data: dict[str, np.ndarray] = field(default_factory=dict)
    cell_data: dict[str, np.ndarray] = field(default_factory=dict)


class Pieces:
    """Makes the pieces of a run; what does not change from frame to frame stays the same array."""

    def __init__(self, source: Source, plan: Plan) -> None:
        self._source, self._plan = source, plan
        self._present = np.zeros(0, bool)
        self._still: Any = None
        if plan.shapes == "surfaces":
            flat = bool(np.any(source.kind == ShapeKind.HALF_SPACE))
            ends = (plan.frames[0], plan.frames[-1])
            self._all = Surfaces.of(source, plan.segments, 2.0 * source.reach(ends) if flat else 0.0)

    def bodies(self, frame: Frame) -> Piece:
        """All bodies that are present."""
        if self._still is None or not np.array_equal(frame.present, self._present):
            self._present = frame.present
            self._still = self._surfaces() if self._plan.shapes == "surfaces" else self._points()
        cells, static, rows = self._still
        moving = {
            name: np.asarray(values[rows], self._plan.dtype)
            for name, values in (("velocity", frame.velocity), ("angular_velocity", frame.angular_velocity))
            if values is not None
        }
        if self._plan.shapes == "points":
            moving["orientation"] = np.asarray(frame.orientation[rows], self._plan.dtype)
            return Piece(np.asarray(frame.position[rows], self._plan.dtype), cells, static | moving)
        points = self._part.placed(self._source, frame)
        return Piece(np.asarray(points, self._plan.dtype), cells, {}, static | moving)

    def _surfaces(self) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
        """Triangles, what their cells have once and for all, and the row of each cell's body."""
        source = self._source
        self._part = self._all.only(self._present[source.owner])[0]
        shape = self._part.triangle_shape
        rows = source.owner[shape]
        static = {
            "body": source.bodies[rows].astype(np.int32),
            "shape_kind": source.kind[shape].astype(np.int8),
            "body_kind": source.model.body_kind[source.bodies[rows]].astype(np.int8),
        }
        return self._part.triangle.astype(np.int64), static, rows

    def _points(self) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
        source, rows = self._source, np.flatnonzero(self._present)
        radius = np.zeros(len(source.bodies))
        np.maximum.at(radius, source.owner, np.linalg.norm(source.local[0], axis=1) + source.bound)
        static = {
            "body": source.bodies[rows].astype(np.int32),
            "body_kind": source.model.body_kind[source.bodies[rows]].astype(np.int8),
            "radius": radius[rows].astype(self._plan.dtype),
            "mass": source.mass[rows].astype(self._plan.dtype),
        }
        return np.arange(len(rows))[:, None], static, rows

    def contacts(self, frame: Frame) -> Piece:
        """The contacts as points; forces act on body_b."""
        c, dtype = frame.contacts, self._plan.dtype
        data = {name: np.asarray(c[name], dtype) for name in ("force", "normal", "gap")}
        data |= {name: np.asarray(c[name], np.int32) for name in ("body_a", "body_b")}
        return Piece(np.asarray(c["point"], dtype), np.arange(len(c["gap"]))[:, None], data)


def _beside(out: Path, word: str) -> Path:
    """run.vtkhdf -> run.contacts.vtkhdf"""
    stem, dot, rest = out.name.partition(".")
    return out.with_name(f"{stem}.{word}{dot}{rest}")


class VtkHdf:
    """The file format of VTK in HDF5, version 2.0: PolyData at many times."""

    def __init__(self, source: Source, plan: Plan, places: Mapping[Path, Path]) -> None:
        self._pieces = Pieces(source, plan)
        bodies, *contacts = (_Temporal(places[path]) for path in self.paths(source, plan))
        self._bodies, self._contacts = bodies, contacts

    @staticmethod
    def paths(source: Source, plan: Plan) -> list[Path]:
        """The file of bodies, and that of contacts where they were recorded."""
        return [plan.out, *([_beside(plan.out, "contacts")] if source.has_contacts else [])]

    def add(self, frame: Frame) -> None:
        """One more time."""
        self._bodies.add(frame.time, self._pieces.bodies(frame))
        for file in self._contacts:
            file.add(frame.time, self._pieces.contacts(frame))

    def finish(self) -> None:
        """Close the files."""
        for file in (self._bodies, *self._contacts):
            file.close()


class _Temporal:
    """A VTKHDF file that grows by a piece a time."""

    def __init__(self, path: Path) -> None:
        import h5py

        self._disk = PatientFile(path)
        self._file = h5py.File(self._disk, "w")
        self._leave = weakref.finalize(self, _leave, self._file, self._disk)  # before Python itself goes
        self._root: Any = self._file.create_group("VTKHDF")
        self._root.attrs["Version"] = np.array([2, 0], np.int64)
        self._root.attrs.create("Type", np.bytes_(b"PolyData"), dtype=h5py.string_dtype("ascii", len(b"PolyData")))
        self._before: dict[str, tuple[np.ndarray, int]] = {}
        self._steps: dict[str, list[Any]] = {}
        self._parts = 0

    def add(self, time: float, piece: Piece) -> None:
        """One more time."""
        self._disk.check()
        known = self._before.get("cells")
        if known is None or known[0] is not piece.cells or self._rows != len(piece.points):
            self._topology(piece)
        self._note("Values", time)
        self._note("PartOffsets", self._part)
        self._note("NumberOfParts", 1)
        self._note("PointOffsets", self._append("Points", piece.points))
        kind = "Vertices" if piece.cells.shape[1] == 1 else "Polygons"
        cells = [self._cell_start if name == kind else 0 for name in ("Vertices", "Lines", "Polygons", "Strips")]
        ids = [self._id_start if name == kind else 0 for name in ("Vertices", "Lines", "Polygons", "Strips")]
        self._note("CellOffsets", cells)
        self._note("ConnectivityIdOffsets", ids)
        for group, arrays in (("PointData", piece.point_data), ("CellData", piece.cell_data)):
            for name, array in arrays.items():
                self._note(f"{group}Offsets/{name}", self._append(f"{group}/{name}", array))

    def _topology(self, piece: Piece) -> None:
        """A part: numbers of points and cells, and which points a cell has."""
        kind = "Vertices" if piece.cells.shape[1] == 1 else "Polygons"
        self._part, self._parts, self._rows = self._parts, self._parts + 1, len(piece.points)
        self._append("NumberOfPoints", np.array([len(piece.points)]))
        for name in ("Vertices", "Lines", "Polygons", "Strips"):
            cells = piece.cells if name == kind else np.zeros((0, 1), np.int64)
            self._append(f"{name}/NumberOfCells", np.array([len(cells)]))
            self._append(f"{name}/NumberOfConnectivityIds", np.array([cells.size]))
            start = self._append(f"{name}/Connectivity", cells.ravel())
            # One more offset than cells: those of part p begin p rows further on than its cells.
            offset = self._append(f"{name}/Offsets", cells.shape[1] * np.arange(len(cells) + 1))
            if name == kind:
                self._id_start, self._cell_start = start, offset - self._part
        self._before["cells"] = (piece.cells, 0)

    def _append(self, name: str, array: np.ndarray) -> int:
        """The row at which an array begins in the dataset of that name."""
        known = self._before.get(name)
        if known is not None and known[0] is array:
            return known[1]
        if name not in self._root:
            rows = max(1, min(len(array), 2**18)) if array.ndim else 1
            made = self._root.create_dataset(
                name, (0, *array.shape[1:]), array.dtype, maxshape=(None, *array.shape[1:]),
                chunks=(rows, *array.shape[1:]), compression="gzip", compression_opts=1, shuffle=True,
            )  # fmt: skip
            last = name.rpartition("/")[2]
            made.attrs["unit"] = "m" if name == "Points" else UNITS.get(last, "1")
        dataset = self._root[name]
        start = len(dataset)
        dataset.resize(start + len(array), axis=0)
        dataset[start:] = array
        self._before[name] = (array, start)
        return start

    def _note(self, name: str, value: Any) -> None:
        self._steps.setdefault(name, []).append(value)

    def close(self) -> None:
        """Write the table of times."""
        steps = self._root.create_group("Steps")
        steps.attrs["NSteps"] = np.int64(len(self._steps["Values"]))
        for name, values in self._steps.items():
            steps[name] = np.asarray(values, np.float64 if name == "Values" else np.int64)
        steps["Values"].attrs["unit"] = "s"
        self._leave()
        self._disk.check()


def _leave(file: Any, disk: PatientFile) -> None:
    file.close()
    disk.close()


class VtpSeries:
    """A file .vtp for each time in a folder, and the list of them, which ParaView opens as one."""

    def __init__(self, source: Source, plan: Plan, places: Mapping[Path, Path]) -> None:
        self._pieces = Pieces(source, plan)
        self._lists: list[tuple[str, Path, list[dict[str, Any]]]] = []
        for path, word in zip(self.paths(source, plan), ("bodies", "contacts")):
            self._lists.append((word, places[path], []))
        self._folder = plan.out.with_name(plan.out.name.partition(".")[0] + "-vtp")
        self._fresh = not self._folder.exists()
        self._folder.mkdir(exist_ok=True)
        for path in self.paths(source, plan):  # it would list files of which some are replaced, if this is killed
            path.unlink(missing_ok=True)

    @staticmethod
    def paths(source: Source, plan: Plan) -> list[Path]:
        """The lists of bodies, and of contacts where they were recorded."""
        return [plan.out, *([_beside(plan.out, "contacts")] if source.has_contacts else [])]

    def add(self, frame: Frame) -> None:
        """One more time."""
        for word, _, entries in self._lists:
            path = self._folder / f"{word}_{len(entries):06d}.vtp"
            try:
                with replacing(path) as temporary:
                    write_vtp(temporary, getattr(self._pieces, word)(frame), frame.time)
            except FileError:
                if self._fresh:  # there will be no list of these files
                    shutil.rmtree(self._folder, ignore_errors=True)
                raise
            entries.append({"name": f"{self._folder.name}/{path.name}", "time": frame.time})

    def finish(self) -> None:
        """Write the lists; files of a longer series that was here before go."""
        for word, path, entries in self._lists:
            path.write_text(json.dumps({"file-series-version": "1.0", "files": entries}, indent=1))
            for old in self._folder.glob(f"{word}_*.vtp"):
                if int(old.stem.rpartition("_")[2]) >= len(entries):
                    old.unlink()


VTK_TYPES = {"f4": "Float32", "f8": "Float64", "i1": "Int8", "i4": "Int32", "i8": "Int64"}


def write_vtp(path: Path, piece: Piece, time: float) -> None:
    """One time, as XML with the arrays as they are in memory behind it."""
    blocks: list[bytes] = []
    place = 0

    def block(name: str, values: np.ndarray, unit: str = "") -> str:
        nonlocal place
        values = np.ascontiguousarray(values)
        width = values.shape[1] if values.ndim > 1 else 1
        data = values.tobytes()
        blocks.extend((np.uint64(len(data)).tobytes(), data))
        start, place = place, place + 8 + len(data)
        key = f'<InformationKey name="UNITS_LABEL" location="vtkDataArray">{unit}</InformationKey>' if unit else ""
        about = f'type="{VTK_TYPES[values.dtype.str[1:]]}" Name="{name}" NumberOfComponents="{width}"'
        return f'<DataArray {about} format="appended" offset="{start}">{key}</DataArray>'

    def table(tag: str, arrays: Mapping[str, np.ndarray]) -> str:
        return f"<{tag}>" + "".join(block(n, a, UNITS.get(n, "1")) for n, a in arrays.items()) + f"</{tag}>"

    tag = "Verts" if piece.cells.shape[1] == 1 else "Polys"
    cells = piece.cells.astype(np.int64)
    counts = {t: len(cells) if t == tag else 0 for t in ("Verts", "Lines", "Strips", "Polys")}
    offsets = cells.shape[1] * np.arange(1, len(cells) + 1, dtype=np.int64)
    numbers = " ".join(f'NumberOf{t}="{n}"' for t, n in counts.items())
    words = (
        '<?xml version="1.0"?>\n<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64">'
        '<PolyData><FieldData><DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" format="ascii">'
        f'{time!r}</DataArray></FieldData><Piece NumberOfPoints="{len(piece.points)}" {numbers}>'
        + table("PointData", piece.point_data)
        + table("CellData", piece.cell_data)
        + "<Points>" + block("Points", piece.points, "m") + "</Points>"
        + f"<{tag}>" + block("connectivity", cells.ravel()) + block("offsets", offsets) + f"</{tag}>"
        + '</Piece></PolyData><AppendedData encoding="raw">_'
    )  # fmt: skip
    with path.open("wb") as file:
        file.write(words.encode())
        file.writelines(blocks)
        file.write(b"</AppendedData></VTKFile>\n")


WRITERS = {"vtkhdf": VtkHdf, "vtp-series": VtpSeries}
