"""Tables of a run: bodies, contacts, joints and steps, as data frames, CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..errors import OptionsError, message
from ..observe.layout import CONTACT_COLUMNS, JOINT_FIELDS
from ..observe.layout import UNITS as STORED
from ..observe.trajectory import Trajectory
from .run import Plan
from .source import Frame, Source, needed

__all__ = ["WRITERS", "TABLES", "to_dataframe"]

TABLES = ("bodies", "contacts", "joints", "steps")
REPEATED = ("frame", "time", "body", "body_a", "body_b", "name")
"""Columns with few different values"""
PARTS = {3: "xyz", 4: "wxyz"}
SHORT = {"position": "", "orientation": "q", "velocity": "v", "angular_velocity": "w"}
"""Names of columns: x, qw, vx, wx, .."""


Column = tuple[str, str, np.ndarray]
"""Name, unit and values."""


def _spread(name: str, unit: str, values: np.ndarray) -> Iterator[Column]:
    """A column for each component."""
    if values.ndim == 1:
        yield name, unit, values
        return
    for i, part in enumerate(PARTS[values.shape[1]]):
        yield f"{name}{part}", unit, np.ascontiguousarray(values[:, i])


class Rows:
    """What the rows of the tables are, frame by frame."""

    def __init__(self, source: Source, dtype: Any = np.float64) -> None:
        self._source, self._dtype = source, dtype
        self._joints = source.run.model.joint_names
        self._series = {n: source.run.joints(n) for n in JOINT_FIELDS} if self._joints else {}
        self._shown = np.asarray(source.names, dtype=object)

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables that there are something to say in, row by row of frames."""
        return ("bodies", *(("contacts",) if self._source.has_contacts else ()), *(("joints",) if self._joints else ()))

    def _common(self, frame: Frame, count: int) -> list[Column]:
        return [
            ("frame", "1", np.full(count, frame.index, np.int32)),
            ("time", "s", np.full(count, frame.time)),
        ]

    def bodies(self, frame: Frame) -> list[Column]:
        """A row for each body that is present."""
        rows = np.flatnonzero(frame.present)
        columns = self._common(frame, len(rows))
        columns.append(("body", "1", self._source.bodies[rows].astype(np.int32)))
        columns.append(("name", "", self._shown[rows]))
        for field, short in SHORT.items():
            values = getattr(frame, field)
            if values is not None:
                columns += _spread(short, STORED[field], values[rows].astype(self._dtype))
        return columns

    def contacts(self, frame: Frame) -> list[Column]:
        """A row for each contact; forces act on body_b."""
        c = frame.contacts
        columns = self._common(frame, len(c["gap"]))
        for name in CONTACT_COLUMNS:
            values = c[name] if c[name].dtype.kind == "i" else c[name].astype(self._dtype)
            columns += _spread(name if values.ndim == 1 else f"{name}_", STORED.get(name, "1"), values)
        return columns

    def joints(self, frame: Frame) -> list[Column]:
        """A row for each joint, motor and spring."""
        columns = self._common(frame, len(self._joints))
        columns.append(("name", "", np.asarray(self._joints, dtype=object)))
        for name, values in self._series.items():
            now = values[frame.index].astype(self._dtype)
            columns += _spread(name if now.ndim == 1 else f"{name}_", STORED[name], now)
        return columns


def step_columns(run: Trajectory) -> list[Column]:
    """A row for each step."""
    units = run.units("steps")
    return [(name, units.get(name, "1"), values) for name, values in run.reports.items()]


def to_dataframe(run: Trajectory, table: str = "bodies") -> Any:
    """A table of the run as a pandas data frame; units are in `frame.attrs["units"]`. See docs/export.md."""
    checks.choice("to_dataframe.table", table, TABLES)
    pandas = needed("pandas", "pandas", "pandas")
    if table == "steps":
        columns = step_columns(run)
        found = pandas.DataFrame({name: values for name, _, values in columns})
        found.attrs["units"] = {name: unit for name, unit, _ in columns}
        return found
    source = Source(run)
    rows = Rows(source)
    if table == "contacts":
        run.needs_contacts()
    if table not in rows.tables:
        raise OptionsError(message(str(run.path), f"must hold {table}", "none", "The scene has none."))
    parts = [getattr(rows, table)(source.frame(i)) for i in range(run.frames)]
    units = {name: unit for name, unit, _ in parts[0]} if parts else {}
    columns = {name: np.concatenate([part[i][2] for part in parts]) for i, name in enumerate(units)}
    found = pandas.DataFrame(columns)
    if "name" in found:
        found["name"] = found["name"].astype("category")
    found.attrs["units"] = units
    return found


class _Tables:
    """A file for each table: run.csv, run.contacts.csv, run.joints.csv, run.steps.csv."""

    open: Callable[..., Any]

    def __init__(self, source: Source, plan: Plan, places: Mapping[Path, Path]) -> None:
        self._source = source
        self._rows = Rows(source, plan.dtype)
        self._every = plan.frames
        places_ = [places[path] for path in self.paths(source, plan)]
        self._files = dict(zip(self._names(source), (type(self).open(path) for path in places_)))

    @staticmethod
    def _names(source: Source) -> list[str]:
        found = ["bodies", *(["contacts"] if source.has_contacts else [])]
        found += ["joints"] if source.run.model.joint_names else []
        return [*found, "steps"]

    @classmethod
    def paths(cls, source: Source, plan: Plan) -> list[Path]:
        """The file of bodies and those beside it."""
        others = cls._names(source)[1:]
        return [plan.out, *(plan.out.with_name(f"{plan.out.stem}.{word}{plan.out.suffix}") for word in others)]

    def add(self, frame: Frame) -> None:
        """The rows of one more frame."""
        for name in self._rows.tables:
            self._files[name].add(getattr(self._rows, name)(frame))

    def finish(self) -> None:
        """The table of steps, and close the files."""
        self._files["steps"].add(step_columns(self._source.run))
        for file in self._files.values():
            file.close()


class _CsvFile:
    """Numbers as Python writes them, which reads back to the same bits; units in the heads of the columns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file)
        self._empty = True

    def add(self, columns: Sequence[Column]) -> None:
        """Some rows."""
        if self._empty:
            self._writer.writerow(f"{name} [{unit}]" if unit not in ("", "1") else name for name, unit, _ in columns)
            self._empty = False
        # Single precision as its own shortest text, not as that of the double next to it.
        texts = (v.astype(str).tolist() if v.dtype == np.float32 else v.tolist() for _, _, v in columns)
        self._writer.writerows(zip(*texts))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _ParquetFile:
    """A group of rows for every few hundred thousand; units are metadata of the columns."""

    ROWS = 250_000

    def __init__(self, path: Path) -> None:
        needed("pyarrow", "pyarrow", "parquet")
        self._path = path
        self._writer: Any = None
        self._waiting: list[Sequence[Column]] = []
        self._count = 0

    def add(self, columns: Sequence[Column]) -> None:
        """Some rows."""
        self._waiting.append(columns)
        self._count += len(columns[0][2]) if columns else 0
        if self._count >= self.ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow
        import pyarrow.parquet

        arrays, fields = [], []
        for i, (name, unit, values) in enumerate(self._waiting[0]):
            whole = np.concatenate([part[i][2] for part in self._waiting])
            array = pyarrow.array(whole, pyarrow.string() if values.dtype == object else None)
            arrays.append(array)
            fields.append(pyarrow.field(name, array.type, metadata={"unit": unit} if unit else None))
        table = pyarrow.table(arrays, schema=pyarrow.schema(fields))
        if self._writer is None:
            repeated = [f.name for f in fields if f.name in REPEATED]
            noise = [f.name for f in fields if pyarrow.types.is_floating(f.type) and f.name not in REPEATED]
            how = {"use_dictionary": repeated, "use_byte_stream_split": noise, "compression": "zstd"}
            self._writer = pyarrow.parquet.ParquetWriter(self._path, table.schema, **how)
        self._writer.write_table(table)
        self._waiting, self._count = [], 0

    def close(self) -> None:
        """Write what waits."""
        if self._waiting:
            self._flush()
        self._writer.close()


class Csv(_Tables):
    """Comma-separated values."""

    open = _CsvFile


class Parquet(_Tables):
    """Columns, packed."""

    open = _ParquetFile


WRITERS = {"csv": Csv, "parquet": Parquet}
