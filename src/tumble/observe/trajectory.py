"""Trajectories in HDF5. Every committed frame stays readable, whenever and however the writer ends.

The layout of the file is described in `layout`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..checks import nearest
from ..enums import BodyKind
from ..errors import FileError, message
from ..scene import rotation
from ..scene.model import Model, State
from .checkpoint import Attribute, plain, replacing
from .clusters import Clusters, by_force, find_clusters, only_one
from .layout import (
    BODY_FIELDS,
    CHUNK_BYTES,
    CONTACT_COLUMNS,
    FORMAT,
    GROUPS,
    JOINT_FIELDS,
    VERSION,
    StoredModel,
    contact_columns,
    create_file,
    difference,
    read_model,
)

__all__ = ["StoredModel", "Trajectory", "TrajectoryWriter"]

DAMAGED = "The file is damaged or of another kind; run the scene again."


class TrajectoryWriter:
    """Streams frames to a file, which is replaced if it exists.

    fields: any of position, orientation, velocity, angular_velocity, contacts. report_columns: names of the
    numbers that `append_report` takes each step. attributes: named values about the run.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        model: Model,
        fields: Sequence[str],
        report_columns: Sequence[str],
        attributes: Mapping[str, Attribute],
    ) -> None:
        self.path = Path(path)
        with replacing(self.path) as temporary:
            create_file(temporary, model, tuple(fields), tuple(report_columns), attributes)
        self._start(model)

    @classmethod
    def reopen(cls, path: str | Path, *, model: Model, step: int) -> TrajectoryWriter:
        """Go on with a file, also one of a killed writer; frames after `step` and their rows are dropped."""
        self = cls.__new__(cls)
        self.path = Path(path)
        with Trajectory(path) as old, replacing(self.path) as temporary:
            other = difference(old.model, model)
            if other is not None:
                raise FileError(
                    message(
                        str(path),
                        "must hold the same scene",
                        f"another {other}",
                        "Resume with the scene file that the run began with.",
                    )
                )
            create_file(temporary, model, old.fields, tuple(old.reports), old.attributes)
            old.copy_to(temporary, int(np.searchsorted(old.steps, step, side="right")))
        self._start(model)
        return self

    def _start(self, model: Model) -> None:
        import h5py

        self._model = model
        self._rows: list[tuple[float, ...]] = []
        self._file = h5py.File(self.path, "r+", libver="latest")
        self._frames, self._steps = dict(self._file["frames"]), dict(self._file["steps"])
        self._contacts = dict(self._file["contacts"]) if "contacts" in self._file else {}
        self._committed, self._finished = self._file["committed"], self._file["finished"]
        self._count = int(self._committed[0])
        self._columns = tuple(json.loads(self._file.attrs["report_columns"]))
        self._file.swmr_mode = True

    @property
    def frames(self) -> int:
        """Number of frames that a reader sees."""
        return self._count

    def append_report(self, values: Sequence[float]) -> None:
        """One row of numbers in the order of the report columns; reaches the file with the next frame."""
        row = tuple(float(v) for v in values)
        if len(row) != len(self._columns):
            raise FileError(
                message(
                    f"{self.path}: steps",
                    f"a row has {len(self._columns)} numbers",
                    len(row),
                    "Give one for each report column.",
                )
            )
        self._rows.append(row)

    def append_frame(self, state: State, contacts: Any = None, joints: Any = None) -> None:
        """Write one frame with the pending reports and commit it; a step that is there already is left as it is.

        contacts: a mapping or object with body_a, body_b, gap (k,) and point, normal, force (k, 3), where the
        force [N] is the one on body B in world axes. joints: an object with force, torque (e, 3), value, speed,
        effort and power (e,).
        """
        if not self._file:
            raise FileError(
                message(
                    str(self.path), "a closed trajectory takes no frame", "append_frame", "Use TrajectoryWriter.reopen."
                )
            )
        frame = self.frames
        if frame and int(self._frames["step"][frame - 1]) == state.step:
            return
        position, orientation = self._model.user_pose(state)
        values = {
            "position": position,
            "orientation": orientation,
            "velocity": state.velocity,
            "angular_velocity": rotation.rotate(state.orientation, state.spin),
            "time": state.time,
            "step": state.step,
            "state_sha256": state.sha256().encode(),
        }
        for name in JOINT_FIELDS:
            if name in self._frames:
                values[name] = getattr(joints, name.removeprefix("joint_"))
        ends = {}
        if self._contacts:
            columns = contact_columns(contacts)
            ends["contact_end"] = self._extend(self._contacts, columns, frame, "contact_end")
        rows = np.array(self._rows, dtype=np.float64).reshape(len(self._rows), len(self._columns))
        ends["report_end"] = self._extend(self._steps, dict(zip(self._columns, rows.T)), frame, "report_end", len(rows))
        for name, dataset in self._frames.items():
            dataset.resize(frame + 1, axis=0)
            dataset[frame] = ends[name] if name in ends else values[name]
        self._file.flush()
        self._committed[0] = self._count = frame + 1
        self._file.flush()
        self._rows.clear()

    def _extend(
        self, group: dict[str, Any], columns: Mapping[str, np.ndarray], frame: int, end: str, count: int | None = None
    ) -> int:
        """Append columns of one length after the rows of the last committed frame; returns the new end."""
        start = int(self._frames[end][frame - 1]) if frame else 0
        stop = start + (len(next(iter(columns.values()))) if count is None else count)
        for name, dataset in group.items():
            dataset.resize(stop, axis=0)
            if stop > start:
                dataset[start:stop] = columns[name]
        return stop

    def close(self, finished: bool = True) -> None:
        """Close the file; `finished` tells the reader that the run came to its end."""
        if not self._file:
            return
        self._finished[0] = int(finished)
        self._file.flush()
        self._file.close()

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(finished=kind is None)


class Trajectory:
    """Reads the committed frames of a file; a writer may be at work on it or may have been killed."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = _open(self.path)
        try:
            with self._guard():
                self._load()
        except BaseException:
            self._file.close()
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
        if attributes["format_version"] != VERSION:
            raise FileError(
                message(
                    str(self.path),
                    f"must have version {VERSION} of the layout",
                    f"version {attributes['format_version']}",
                    "Read it with the tumble that wrote it, or run the scene again.",
                )
            )
        self.fields: tuple[str, ...] = tuple(json.loads(attributes.pop("fields")))
        self._columns = tuple(json.loads(attributes.pop("report_columns")))
        del attributes["format"], attributes["format_version"]
        self.attributes = attributes
        self.frames = int(file["committed"][0])
        self.finished = bool(file["finished"][0])
        self.times: np.ndarray = file["frames/time"][: self.frames]
        self.steps: np.ndarray = file["frames/step"][: self.frames]
        if len(self.times) < self.frames or not np.all(np.diff(self.steps) > 0):
            raise OSError("the frames do not follow each other")
        self.model = read_model(file["model"])

    def read(self, field: str, frame: int) -> np.ndarray:
        """One field (n, k) of one frame; negative frames count from the end."""
        dataset = self._dataset(field)
        with self._guard():
            return dataset[self._frame(frame)]

    def array(self, field: str) -> np.ndarray:
        """One field of all frames (frames, n, k)."""
        dataset = self._dataset(field)
        with self._guard():
            return dataset[: self.frames]

    def contacts(self, frame: int) -> dict[str, np.ndarray]:
        """body_a, body_b, gap (k,), point, normal, force (k, 3) of one frame."""
        if "contacts" not in self.fields:
            self._dataset("contacts")
        with self._guard():
            index = self._frame(frame)
            rows = slice(self._end("contact_end", index), self._end("contact_end", index + 1))
            return {name: self._file[f"contacts/{name}"][rows] for name in CONTACT_COLUMNS}

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
        return find_clusters(*pair, self.model.body_kind == BodyKind.DYNAMIC, through_others=through)

    def joints(self, name: str) -> np.ndarray:
        """joint_force, joint_torque (frames, e, 3), joint_value, joint_speed, joint_effort or joint_power (frames, e).

        The e names are `model.joint_names`."""
        if name not in JOINT_FIELDS or not self.model.joint_names:
            known = JOINT_FIELDS if self.model.joint_names else ()
            raise FileError(message(str(self.path), "must hold what is asked for", repr(name), nearest(name, known)))
        with self._guard():
            return self._file[f"frames/{name}"][: self.frames]

    @property
    def reports(self) -> dict[str, np.ndarray]:
        """The report columns, one number for each step up to the last frame."""
        with self._guard():
            stop = self._end("report_end", self.frames)
            return {name: self._file[f"steps/{name}"][:stop] for name in self._columns}

    @property
    def final_state_sha256(self) -> str | None:
        """Hash of the last recorded state, None without frames."""
        with self._guard():
            return self._file["frames/state_sha256"][self.frames - 1].decode() if self.frames else None

    def copy_to(self, path: Path, frames: int) -> None:
        """Copy the first frames with their rows into a new, empty trajectory file of the same layout."""
        import h5py

        with self._guard(), h5py.File(path, "r+", libver="latest") as new:
            for group, end in GROUPS.items():
                for name, source in self._file.get(group, {}).items():
                    stop = self._end(end, frames)
                    target = new[f"{group}/{name}"]
                    target.resize(stop, axis=0)
                    row = source.dtype.itemsize * max(1, int(np.prod(source.shape[1:])))
                    block = max(1, 16 * CHUNK_BYTES // row)
                    for start in range(0, stop, block):
                        target[start : min(start + block, stop)] = source[start : min(start + block, stop)]
            new["committed"][0] = frames

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Trajectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _frame(self, frame: int) -> int:
        index = frame + self.frames if frame < 0 else frame
        if not 0 <= index < self.frames:
            raise FileError(message(str(self.path), f"has {self.frames} frames", f"frame {frame}", "Count from 0."))
        return index

    def _end(self, end: str | None, frames: int) -> int:
        """Rows that belong to the first frames."""
        return frames if end is None or not frames else int(self._file[f"frames/{end}"][frames - 1])

    def _dataset(self, field: str) -> Any:
        if field not in self.fields or field not in BODY_FIELDS:
            raise FileError(
                message(
                    str(self.path), "must hold the field that is asked for", repr(field), nearest(field, self.fields)
                )
            )
        return self._file[f"frames/{field}"]

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except (OSError, KeyError, RuntimeError, TypeError, ValueError) as cause:
            if isinstance(cause, FileError):
                raise
            raise FileError(
                message(str(self.path), "must be a whole trajectory", f"{type(cause).__name__}: {cause}", DAMAGED)
            ) from cause


def _open(path: Path) -> Any:
    """The file for reading; one that its writer has not closed needs the SWMR mode of HDF5."""
    import h5py

    if not path.is_file():
        raise FileError(message(str(path), "must be a trajectory", "no such file", "Check the name."))
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
