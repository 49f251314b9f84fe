"""Reading trajectories (HDF5), also while they are written and after the writer was killed.

The layout of the file is described in `layout`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..checks import nearest
from ..enums import BodyKind, Presence
from ..errors import FileError, message
from ..files import check_readable, is_file
from ..looking import TrajectoryLooks
from ..showing import ShownTrajectory
from .checkpoint import UNREADABLE, plain
from .clusters import Clusters, by_force, find_clusters, only_one
from .description import Description, from_text
from .flow_series import FlowSeries, flow_series
from .layout import (
    BODY_FIELDS,
    CONTACT_COLUMNS,
    FORMAT,
    JOINT_FIELDS,
    READABLE,
    SCALARS,
    Plan,
    StoredModel,
    read_model,
)

__all__ = ["StoredModel", "Trajectory"]

TRIES = 5
"""To open a file that changes meanwhile."""
DAMAGED = "The file is damaged or of another kind; run the scene again."


class Trajectory(ShownTrajectory, TrajectoryLooks):
    """Reads the committed frames of a file; a writer may be at work on it or may have been killed."""

    def __init__(self, path: str | Path) -> None:
        self.path = checks.file_name("Trajectory.path", path, "run.h5")
        for tries in range(TRIES, 0, -1):
            stamp = _stamp(self.path)
            self._file = open_readable(self.path)
            try:
                with self.reading():
                    self._load()
                return
            except BaseException as cause:
                self._file.close()
                # What was opened ends where the file did: a writer may have gone far beyond it since.
                if tries == 1 or not isinstance(cause, FileError) or _stamp(self.path) == stamp:
                    raise

    def _load(self) -> None:
        file = self._file
        if file.attrs.get("format") != FORMAT:
            raise FileError(
                message(
                    str(self.path),
                    "must be a tumble trajectory",
                    "another HDF5 file",
                    "Give the file that a run saved.",
                )
            )
        attributes = plain(file.attrs)
        self.version = int(attributes.pop("format_version"))
        if self.version not in READABLE:
            raise FileError(
                message(
                    str(self.path),
                    f"must have a version of the layout among {READABLE}",
                    f"version {self.version}",
                    "Read it with the tumble that wrote it, or run the scene again.",
                )
            )
        # Before the header of anything that grows: HDF5 remembers those, and a writer may be at work.
        self.frames = int(file["committed"][0])
        self.fields: tuple[str, ...] = tuple(map(str, json.loads(str(attributes.pop("fields")))))
        old_columns = json.loads(str(attributes.pop("report_columns", "[]")))
        self._columns = tuple(old_columns if self.version == 2 else self._step_columns())
        self.run_id = str(attributes.pop("run_id", ""))
        """Ties a trajectory to its checkpoint; empty in files of version 2"""
        self._parts = int(attributes.pop("parts", 1)), attributes.pop("part", 0)
        del attributes["format"]
        self.attributes = attributes
        self.finished = bool(file["finished"][0])
        self.model = read_model(file["model"])
        n = len(self.model.body_kind)
        self.bodies: np.ndarray = np.arange(n) if self.version == 2 else file["model/recorded"][...].astype(np.int64)
        """(k,) indices of the bodies whose fields are recorded"""
        self.ends = tuple(end for end in ("report_end", "contact_end") if end in file["frames"])
        self._check(n)
        self.times: np.ndarray = file["frames/time"][: self.frames].astype(np.float64)
        self.steps: np.ndarray = file["frames/step"][: self.frames].astype(np.int64)
        _expect(bool(np.isfinite(self.times).all()), "times that are numbers")
        _expect(bool(np.all(np.diff(self.steps) > 0)), "frames that follow each other")

    def _step_columns(self) -> tuple[str, ...]:
        return tuple(self._file["steps"].dtype.names or ()) if "steps" in self._file else ()

    def _check(self, n: int) -> None:
        """Types, widths and counts, before anything is read at their word."""
        file, f = self._file, self.frames
        _expect(f >= 0, "a count of frames that is not negative")
        _expect(
            self.bodies.ndim == 1 and bool(np.all((self.bodies >= 0) & (self.bodies < n))),
            "recorded bodies of the model",
        )
        wanted: dict[str, tuple[tuple[int, ...], str]] = {
            name: ((), np.dtype(dtype).kind) for name, dtype in SCALARS.items()
        }
        for field in self.fields:
            _expect(field == "contacts" or field in BODY_FIELDS, f"known fields, not '{field[:40]}'")
            if field != "contacts":
                wanted[field] = ((len(self.bodies), BODY_FIELDS[field]), "f")
        if "presence" in file["frames"]:
            wanted["presence"] = ((n,), "i")
        if self.model.joint_names:
            wanted |= {name: ((len(self.model.joint_names), *s), "f") for name, s in JOINT_FIELDS.items()}
        if "contacts" in self.fields:
            wanted["contact_end"] = ((), "i")
        self._check_extra(n)
        for name, (shape, kind) in wanted.items():
            found = file[f"frames/{name}"]
            right = found.shape[1:] == shape and found.dtype.kind == kind and len(found) >= f
            _expect(right, f"frames/{name} of {f} rows {shape} of kind '{kind}', not {found.shape} {found.dtype}")
        self._check_rows()

    def _check_extra(self, n: int) -> None:
        """What newer files have, by which arrays are indexed."""
        model, joints = self.model, len(self.model.joint_names)
        for name, values, shape, count in (
            ("shape_material", model.shape_material, (len(model.shape_kind),), len(model.materials)),
            ("joint_body", model.joint_body, (joints, 2), n),
        ):
            if values is not None:
                right = values.shape == shape and values.dtype.kind == "i"
                _expect(right and bool(np.all((values >= 0) & (values < count))), f"a model/{name} of its model")
        if model.joint_place is not None:
            right = model.joint_place.shape == (joints, 2, 3) and model.joint_place.dtype.kind == "f"
            _expect(right and bool(np.isfinite(model.joint_place).all()), "a model/joint_place of its model")
        _expect((model.joint_place is None) == (model.joint_body is None), "both of model/joint_body and joint_place")

    def _check_rows(self) -> None:
        """The tables that frames point into."""
        file, f = self._file, self.frames
        tables = {"report_end": [file[f"steps/{c}"] for c in self._columns] if self.version == 2 else []}
        if self.version > 2 and "steps" in file:
            tables["report_end"] = [file["steps"]]
            kinds = {file["steps"].dtype[c].kind for c in self._columns}
            _expect(kinds <= {"f"}, "steps of floating-point numbers")
        if "contacts" in self.fields:
            tables["contact_end"] = [file[f"contacts/{c}"] for c in CONTACT_COLUMNS]
            for dataset, (shape, dtype) in zip(tables["contact_end"], CONTACT_COLUMNS.values()):
                right = dataset.shape[1:] == shape and dataset.dtype.kind == np.dtype(dtype).kind
                _expect(right, f"{dataset.name} of rows {shape}, not {dataset.shape} {dataset.dtype}")
        for end, datasets in tables.items():
            rows = file[f"frames/{end}"][:f].astype(np.int64)
            rising = bool(np.all(np.diff(rows) >= 0) and np.all(rows >= 0))
            _expect(rising, f"frames/{end} that rises")
            for dataset in datasets:
                enough = len(dataset.shape) >= 1 and (not f or rows[-1] <= len(dataset))
                _expect(enough, f"{dataset.name} of {rows[-1] if f else 0} rows, not {dataset.shape}")

    def check_appendable(self) -> None:
        """Refuse what this version cannot go on with."""
        if self.version != READABLE[-1] or self._parts[0] != 1:
            got = f"version {self.version}" if self.version != READABLE[-1] else f"one of {self._parts[0]} parts"
            remedy = "Go on with the tumble that wrote it, or start the run again under another name."
            raise FileError(message(str(self.path), f"must be a whole run of version {READABLE[-1]}", got, remedy))

    @property
    def plan(self) -> Plan:
        """What is recorded."""
        body = [self._file[f"frames/{f}"] for f in self.fields if f != "contacts"]
        return Plan(
            fields=self.fields,
            columns=dict.fromkeys(self._columns, ""),
            bodies=self.bodies,
            single=any(dataset.dtype == np.float32 for dataset in body),
            compress=any(dataset.compression is not None for dataset in body),
        )

    @property
    def options(self) -> dict[str, Any]:
        """Step, solver and what is saved, as the run began."""
        with self.reading():
            found = json.loads(str(self.attributes.get("options", "{}")))
            parts = (found, *(found.get(name, {}) for name in ("step", "save", "solver")))
            _expect(all(isinstance(part, dict) for part in parts), "options in tables")
            return found

    @property
    def history(self) -> list[dict[str, Any]]:
        """What happened to the run: when it began, was resumed, was changed and how."""
        with self.reading():
            return list(json.loads(self._file["history"][()])) if "history" in self._file else []

    @property
    def description(self) -> Description:
        """Everything that acts: model, step options and solver, by name."""
        with self.reading():
            return from_text(self._file["model/description"][()]) if self.version > 2 else {}

    def read(self, field: str, frame: int) -> np.ndarray:
        """One field (k, width) of the recorded `bodies` in one frame; negative frames count from the end."""
        with self.reading():
            return _finite(field, self._dataset(field)[self._frame(frame)])

    def array(self, field: str) -> np.ndarray:
        """One field of all frames (frames, k, width)."""
        with self.reading():
            return _finite(field, self._dataset(field)[: self.frames])

    def contacts(self, frame: int) -> dict[str, np.ndarray]:
        """body_a, body_b, gap (k,), point, normal, force (k, 3) of one frame."""
        self.needs_contacts()
        with self.reading():
            index = self._frame(frame)
            rows = slice(self.end("contact_end", index), self.end("contact_end", index + 1))
            columns = ((name, self._file[f"contacts/{name}"][rows]) for name in CONTACT_COLUMNS)
            return {name: _finite(name, a) if a.dtype.kind == "f" else a for name, a in columns}

    def needs_contacts(self) -> None:
        """Refuse a file without contacts."""
        if "contacts" not in self.fields:
            raise FileError(
                message(
                    str(self.path),
                    "must hold contacts",
                    ", ".join(self.fields),
                    "Record them with 'contacts' in Save.fields, or tumble run --contacts.",
                )
            )

    def clusters(
        self, frame: int, *, gap: float | None = None, force: float | None = None, through_fixed: bool = False
    ) -> Clusters:
        """As `Simulation.clusters`, from the contacts of one frame.

        Only contacts that were recorded can connect: those within the margin of the step that led to the frame, with
        their gaps as it began.
        """
        only_one("Trajectory.clusters", gap, force)
        c = self.contacts(frame)
        if gap is not None:
            near = c["gap"] <= checks.number("Trajectory.clusters.gap", gap, unit="m")
            pair = c["body_a"][near], c["body_b"][near]
        else:
            least = checks.number("Trajectory.clusters.force", force, at_least=0.0, unit="N")
            pair = by_force(c["body_a"], c["body_b"], c["normal"], c["force"], least)
        through = checks.flag("Trajectory.clusters.through_fixed", through_fixed)
        member = (self.model.body_kind == BodyKind.DYNAMIC) & self.present(frame)
        return find_clusters(*pair, member, through_others=through)

    def present(self, frame: int) -> np.ndarray:
        """(n,) bool: bodies that are there, that is neither waiting in an emitter nor taken by a sink."""
        with self.reading():
            if "presence" not in self._file["frames"]:
                return np.ones(len(self.model.body_kind), bool)
            return self._file["frames/presence"][self._frame(frame)] == Presence.PRESENT

    def flow(self, plane: str) -> FlowSeries:
        """What passed a measuring plane, step by step up to the last frame."""
        return flow_series(f"{self.path}: flow", self.reports, plane)

    def joints(self, name: str) -> np.ndarray:
        """joint_force, joint_torque (frames, e, 3), joint_value, joint_speed, joint_effort or joint_power (frames, e).

        The e names are `model.joint_names`."""
        if name not in JOINT_FIELDS or not self.model.joint_names:
            known = JOINT_FIELDS if self.model.joint_names else ()
            raise FileError(message(str(self.path), "must hold what is asked for", repr(name), nearest(name, known)))
        with self.reading():
            values = self._file[f"frames/{name}"][: self.frames].astype(np.float64)
            _expect(not np.isinf(values).any(), f"{name} without infinite numbers")
            return values  # NaN where a joint has no coordinate of its own

    @property
    def reports(self) -> dict[str, np.ndarray]:
        """The report columns, one number for each step up to the last frame."""
        stop = self.end("report_end", self.frames)
        return {name: self.report_column(name, 0, stop) for name in self._columns}

    def report_column(self, name: str, start: int, stop: int) -> np.ndarray:
        """Some rows of one report column."""
        with self.reading():
            if self.version == 2:
                return self._file[f"steps/{name}"][start:stop].astype(np.float64)
            return self._file["steps"].fields(name)[start:stop].astype(np.float64)

    @property
    def final_state_sha256(self) -> str | None:
        """Hash of the last recorded state, None without frames."""
        with self.reading():
            return self._file["frames/state_sha256"][self.frames - 1].decode() if self.frames else None

    def units(self, table: str) -> dict[str, str]:
        """Unit of each column of a table of the file, "steps" or "contacts"."""
        with self.reading():
            found = self._file.get(table, {})
            if hasattr(found, "dtype"):
                return dict(json.loads(found.attrs.get("unit", "{}")))
            return {name: str(found[name].attrs.get("unit", "1")) for name in found}

    def to_dataframe(self, table: str = "bodies") -> Any:
        """A table as a pandas data frame, one of bodies, contacts, joints and steps; units are in its `attrs`.

        `docs/export.md` lists the columns."""
        from ..export.tables import to_dataframe

        return to_dataframe(self, table)

    def to_xarray(self) -> Any:
        """All frames but contacts as an xarray dataset, with named axes and units; `docs/export.md`."""
        from ..export.labelled import to_xarray

        return to_xarray(self)

    def export(self, to: str, out: str | Path | None = None, **options: Any) -> Any:
        """Write the run for another tool, as `tumble export`: vtkhdf, vtp-series, csv, parquet, gsd or usd.

        Options are those of `tumble.export.export`; `docs/export.md`."""
        from ..export.run import export

        return export(self, to, out, **options)

    def __len__(self) -> int:
        return self.frames

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Trajectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _frame(self, frame: int) -> int:
        frame = checks.integer(f"{self.path}: frame", frame, at_least=-(2**63), error=FileError)
        index = frame + self.frames if frame < 0 else frame
        if not 0 <= index < self.frames:
            raise FileError(message(str(self.path), f"has {self.frames} frames", f"frame {frame}", "Count from 0."))
        return index

    def end(self, name: str, frames: int) -> int:
        """Rows of reports (`report_end`) or contacts (`contact_end`) that belong to the first frames."""
        with self.reading():
            return int(self._file[f"frames/{name}"][frames - 1]) if frames else 0

    def _dataset(self, field: str) -> Any:
        if field not in self.fields or field not in BODY_FIELDS:
            hint = nearest(field, self.fields)
            if field in BODY_FIELDS:
                hint = f"Record it with '{field}' in Save.fields."
            raise FileError(message(str(self.path), "must hold the field that is asked for", repr(field), hint))
        return self._file[f"frames/{field}"]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What damaged files make h5py, NumPy and json say, in one sentence."""
        if not self._file:
            raise FileError(message(str(self.path), "must be open", "a closed trajectory", "Open it again."))
        try:
            yield
        except FileError:
            raise
        except UNREADABLE as cause:
            raise FileError(
                message(str(self.path), "must be a whole trajectory", f"{type(cause).__name__}: {cause}", DAMAGED)
            ) from cause


def _stamp(path: Path) -> tuple[int, ...]:
    """What changes where a file is written or replaced; nothing of one that is not there, which is told later."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _expect(right: bool, wanted: str) -> None:
    if not right:
        raise ValueError(f"it must have {wanted}")


def _finite(name: str, values: np.ndarray) -> np.ndarray:
    """In double precision, whatever the file has."""
    values = values.astype(np.float64, copy=False)
    _expect(bool(np.isfinite(values).all()), f"{name} without NaN and infinite numbers")
    return values


def open_readable(path: Path) -> Any:
    """The file for reading; one of version 2 that its writer has not closed needs the SWMR mode of HDF5."""
    import h5py

    if not is_file(path):
        raise FileError(message(str(path), "must be a trajectory", "no such file", "Check the name."))
    check_readable(path)
    try:
        try:
            return h5py.File(path, "r")
        except OSError as cause:
            # Only here: on a truncated file that mode waits for a writer instead of giving up.
            if "consistency flags" not in str(cause):
                raise
            return h5py.File(path, "r", swmr=True, libver="latest")
    except OSError as cause:
        raise FileError(message(str(path), "must be a whole HDF5 file", cause, DAMAGED)) from cause
