"""Writing trajectories. Every frame that was committed stays readable, whenever and however the writer ends."""

from __future__ import annotations

import contextlib
import os
import stat
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError, message
from ..files import Lock, unwritable, with_number
from ..scene import rotation
from ..scene.model import Model, State
from .background import Background
from .checkpoint import Attribute
from .column import Column, Single, Table
from .layout import JOINT_FIELDS, Plan, contact_columns, create_file
from .live import FORMAT_BOUNDS, LiveFile
from .trajectory import Trajectory

__all__ = ["TrajectoryWriter"]

BLOCK = 2**26
"""Bytes copied at a time."""


class TrajectoryWriter:
    """Streams frames to a file, which takes the place of one that is there with the first frame.

    plan: what is recorded. attributes: named values about the run. history, description: texts, see `layout`.
    background: frames are written by a thread of their own, while the caller goes on.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        model: Model,
        plan: Plan,
        attributes: Mapping[str, Attribute],
        history: str = "[]",
        description: str = "{}",
        background: bool = False,
    ) -> None:
        self.path = Path(path).resolve()
        with self._locked() as temporary:
            create_file(temporary, model, plan, attributes, history=history, description=description)
            self._start(temporary, model, least=0, background=background)

    @classmethod
    def reopen(
        cls,
        path: str | Path,
        *,
        model: Model,
        frames: int,
        history: str = "[]",
        description: str = "{}",
        keep: bool = True,
        background: bool = False,
    ) -> TrajectoryWriter:
        """Go on behind the first frames of a file, also one of a killed writer.

        keep: what is there stays until as many frames are written again; else the shorter file takes its place."""
        self = cls.__new__(cls)
        self.path = Path(path).resolve()
        with self._locked() as temporary:
            with Trajectory(path) as old:
                old.check_appendable()
                least = old.frames if keep else 0
                ends = {name: old.end(name, frames) for name in old.ends}
            _copy(self.path, temporary)
            with _appendable(self.path):
                _shorten(temporary, frames, ends, history, description)
                self._start(temporary, model, least=least, background=background)
        return self

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Path]:
        """Hold the lock; gives the name under which the file is made."""
        self._lock = Lock(self.path)
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        try:
            temporary.unlink(missing_ok=True)  # of a writer that was killed
            yield temporary
        except BaseException as cause:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            self._lock.release()
            if isinstance(cause, (OSError, RuntimeError)):
                raise unwritable(self.path, with_number(cause)) from cause
            raise

    def _start(self, temporary: Path, model: Model, *, least: int, background: bool) -> None:
        self._model, self._least = model, least
        self._live = LiveFile(temporary)
        file = self._live.h5
        self._frames = {name: Column(dataset) for name, dataset in file["frames"].items()}
        self._contacts = {name: Column(dataset) for name, dataset in file.get("contacts", {}).items()}
        self._steps = {"steps": Table(file["steps"])} if "steps" in file else {}
        self._committed, self._finished = Single(file["committed"]), Single(file["finished"])
        self._count = int(file["committed"][0])
        self._last = int(self._frames["step"][self._count - 1]) if self._count else -1
        self._ends = {e: int(self._frames[e][self._count - 1]) if self._count else 0 for e in self._end_names()}
        self._row: Any = file["steps"].dtype if self._steps else np.dtype([])
        self._recorded = file["model/recorded"][...]
        self._all = len(self._recorded) == model.body_count
        self._centred = not model.body_center.any() and bool(np.all(model.body_axes == rotation.IDENTITY))
        """Whether the bodies' frames are those that the steps work with"""
        self._rows: list[tuple[float, ...]] = []
        self._uncommitted: deque[np.ndarray] = deque()
        self._live.start(str(file.attrs.get("run_id", "")))
        if self._count and self._count >= least:
            self._live.publish(self.path)
        self._background = Background() if background else None
        self._leave = weakref.finalize(self, _leave, self._live, self._lock, self._background)

    def _end_names(self) -> list[str]:
        return [name for name in ("report_end", "contact_end") if name in self._frames]

    # ------------------------------------------------------------------ frames

    @property
    def frames(self) -> int:
        """Number of frames in the file."""
        return self._count

    @property
    def last_step(self) -> int:
        """Step of the last frame, -1 without."""
        return self._last

    @property
    def rows(self) -> int:
        """Number of reports in the file."""
        return self._ends["report_end"]

    @property
    def pending(self) -> np.ndarray:
        """(r, columns) reports since the last frame that was committed."""
        rows = np.concatenate([*self._uncommitted, np.array(self._rows, self._row)])
        return rows.view(np.float64).reshape(len(rows), len(self._row))

    @property
    def is_open(self) -> bool:
        """Whether frames can be appended."""
        return bool(self._leave.alive)

    @property
    def caught_up(self) -> bool:
        """Whether the file has its name: False before the first frame, and while frames are written again."""
        return self._live.published

    def append_report(self, values: Sequence[float]) -> None:
        """One row of numbers in the order of the report columns; reaches the file with the next frame."""
        row = tuple(map(float, values))
        if len(row) != len(self._row):
            remedy = "Give one for each report column."
            raise FileError(message(f"{self.path}: steps", f"a row has {len(self._row)} numbers", len(row), remedy))
        self._rows.append(row)

    def append_frame(self, state: State, contacts: Any = None, joints: Any = None) -> None:
        """Write one frame with the pending reports and commit it; a step that is there already is left as it is.

        contacts: a mapping or object with body_a, body_b, gap (k,) and point, normal, force (k, 3), where the
        force [N] is the one on body B in world axes. joints: an object with force, torque (e, 3), value, speed,
        effort and power (e,).
        """
        self._check_open()
        if state.step == self._last:
            return
        try:
            self._last = state.step
            columns = contact_columns(contacts) if self._contacts else {}
            joint = {n: getattr(joints, n.removeprefix("joint_")) for n in JOINT_FIELDS if n in self._frames}
            rows, self._rows = np.array(self._rows, self._row), []
            self._uncommitted.append(rows)
            if self._background is None:
                self._write(state, columns, joint, rows)
            else:
                columns, joint = _copies(columns), _copies(joint)
                state = state.copy()
                self._background.do(lambda: self._write(state, columns, joint, rows))
        except BaseException:  # a frame that is half counted must not be gone on with
            self._leave()
            raise

    def _write(
        self, state: State, contacts: dict[str, np.ndarray], joint: dict[str, np.ndarray], rows: np.ndarray
    ) -> None:
        frame = self._count
        values = {
            **self._bodies(state),
            **joint,
            "time": state.time,
            "step": state.step,
            "state_sha256": state.sha256().encode(),
            "presence": state.presence,
        }
        self._check_intact()
        with self._guard():
            self._live.make_room(self._size(len(rows), len(contacts.get("gap", ()))))
            if self._contacts:
                values["contact_end"] = self._extend(self._contacts, contacts, "contact_end")
            values["report_end"] = self._extend(self._steps, {"steps": rows}, "report_end")
            for name, column in self._frames.items():
                column.write(frame, values[name], 1)
            self._committed.set(frame + 1)
            self._count = frame + 1
            self._uncommitted.popleft()
            self._ends = {name: int(values[name]) for name in self._ends}
            if not self._live.published and self._count >= self._least:
                self._live.publish(self.path)

    def _size(self, reports: int, contacts: int) -> int:
        """Bytes that a frame takes at most, with its indices."""
        groups = ((self._frames, 1), (self._steps, reports), (self._contacts, contacts))
        return sum(column.growth(rows) for group, rows in groups for column in group.values())

    def _bodies(self, state: State) -> dict[str, np.ndarray]:
        """The fields of the recorded bodies."""
        chosen = slice(None) if self._all else self._recorded
        pose = (state.position, state.orientation) if self._centred else self._model.user_pose(state)
        fields = {"position": pose[0], "orientation": pose[1], "velocity": state.velocity}
        if "angular_velocity" in self._frames:
            fields["angular_velocity"] = rotation.rotate(state.orientation, state.spin)
        return {name: array[chosen] for name, array in fields.items()}

    def _extend(self, group: Mapping[str, Any], columns: Mapping[str, np.ndarray], end: str) -> int:
        """Append columns of one length after the rows of the last committed frame; returns the new end."""
        start = self._ends[end]
        stop = start + len(next(iter(columns.values())))
        if stop > start:
            for name, column in group.items():
                column.write(start, columns[name], stop - start)
        return stop

    # ------------------------------------------------------------------ between and at the end

    def settle(self) -> None:
        """Wait until all frames are on the disk, and see to it that the file is still the one that carries the name."""
        self._check_open()
        with self._guard():
            if self._background is not None:
                self._background.wait()
            self._live.sync()
        if self._live.published and not self._live.is_at(self.path):
            got = "another file in its place" if self.path.exists() else "no file of that name"
            remedy = "Somebody removed or replaced it; start the run again and leave its file alone."
            raise FileError(message(str(self.path), "must stay where it is while a run writes it", got, remedy))
        self._check_intact()

    def _check_intact(self) -> None:
        """Refuse to write on where somebody else has cut the file or written into it."""
        if not self._live.is_intact:
            got, remedy = "one that was cut or written over", "Start the run again and leave its file alone."
            raise FileError(message(str(self.path), "must stay as it is while a run writes it", got, remedy))

    def mark(self, finished: bool) -> None:
        """Tell readers whether the run came to its end."""
        self.settle()
        if self._live.published:
            self._set_finished(finished)

    def _set_finished(self, finished: bool) -> None:
        with self._guard():
            self._finished.set(int(finished))

    def rest(self) -> None:
        """Let others write the file; `wake` takes it up again if they did not."""
        self._live.trim()
        self._lock.release()

    def wake(self) -> bool:
        """Take the file up again after `rest`; False where it is no longer the same."""
        if not self._live.h5 or not self._live.is_at(self.path):
            return False
        self._lock.acquire()
        try:
            self._check_intact()
        except FileError:
            self.leave()
            raise
        return self._live.is_at(self.path)

    def leave(self) -> None:
        """Let go of the file as it stands; again does nothing."""
        self._leave()

    def close(self, finished: bool = True) -> None:
        """Let go of the file; `finished` tells the reader that the run came to its end."""
        if not self.is_open:
            return
        try:
            if self._background is not None:
                self._background.wait()
            with self._guard():
                if not self._live.published and self._count >= self._least:
                    self._live.publish(self.path)
            if self._live.published:
                self._set_finished(finished)
        finally:
            self._leave()

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(finished=kind is None)

    def _check_open(self) -> None:
        if not self.is_open:
            if self._background is not None:
                self._background.wait()  # it tells why the file is closed: the disk was full
            remedy = "Use TrajectoryWriter.reopen."
            raise FileError(message(str(self.path), "a closed trajectory takes no frame", "append_frame", remedy))

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """What HDF5 cannot write is said in one sentence, and the file is left as it is."""
        try:
            yield
        except (OSError, RuntimeError) as cause:
            self._leave()
            raise unwritable(self.path, with_number(cause)) from cause


def _leave(live: LiveFile, lock: Lock, background: Background | None) -> None:
    if background is not None:
        background.stop()
    live.leave()
    lock.release()


def _copies(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.array(array) for name, array in arrays.items()}


def _copy(source: Path, target: Path) -> None:
    """A copy by the system, which shares the blocks where the file system can."""
    with source.open("rb") as old, target.open("wb") as new:
        os.fchmod(new.fileno(), stat.S_IMODE(os.fstat(old.fileno()).st_mode))
        while True:
            try:
                if not os.copy_file_range(old.fileno(), new.fileno(), BLOCK):
                    return
            except (AttributeError, OSError):
                break
        while block := old.read(BLOCK):
            new.write(block)


@contextlib.contextmanager
def _appendable(path: Path) -> Iterator[None]:
    """What HDF5 and NumPy say to datasets of the wrong kind, in one sentence."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as cause:
        got, remedy = f"{type(cause).__name__}: {cause}", "The file is damaged; start the run again."
        raise FileError(message(str(path), "must be a whole trajectory to go on with", got, remedy)) from cause


def _shorten(path: Path, frames: int, ends: Mapping[str, int], history: str, description: str) -> None:
    """Cut a file after some frames; new texts take the place of the old."""
    import h5py

    file: Any
    with h5py.File(path, "r+", libver=FORMAT_BOUNDS) as file:
        for dataset in file["frames"].values():
            dataset.resize(frames, axis=0)
        if "steps" in file:
            file["steps"].resize(ends["report_end"], axis=0)
        for dataset in file.get("contacts", {}).values():
            dataset.resize(ends["contact_end"], axis=0)
        file["committed"][0], file["finished"][0] = frames, 0
        for name, text in (("history", history), ("model/description", description)):
            del file[name]
            file[name] = text
