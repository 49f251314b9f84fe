"""The reports of a run's steps, without growing for ever: in the file, or the last of them in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..errors import FileError, message
from ..observe.trajectory import Trajectory
from ..showing import ReportTable, report_html

__all__ = ["KEPT", "RecentReports", "StoredReports"]

KEPT = 100_000
"""Steps whose reports are kept where no file is written (36 MB)."""


class StoredReports(Mapping[str, np.ndarray]):
    """Columns of the reports of a run, read from its trajectory when they are asked for."""

    def __init__(self, path: Path, run_id: str, columns: Sequence[str], rows: tuple[int, int]) -> None:
        self._path, self._run_id, self._columns, self._rows = path, run_id, tuple(columns), rows

    def __getitem__(self, column: str) -> np.ndarray:
        if column not in self._columns:
            raise KeyError(column)
        with Trajectory(self._path) as run:
            if run.run_id != self._run_id or run.end("report_end", run.frames) < self._rows[1]:
                remedy = "It was replaced since; keep runs under different names."
                raise FileError(message(str(self._path), "must be the file of the run", "another run", remedy))
            return run.report_column(column, *self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        rows = self._rows[1] - self._rows[0]
        return f"StoredReports({len(self)} columns of {rows} steps in {self._path})"

    def _repr_html_(self) -> str:
        return report_html(self)


class RecentReports:
    """The rows of the last `KEPT` steps."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns, self._count = tuple(columns), 0
        self._rows = np.empty((64, len(self._columns)))

    def append(self, row: Sequence[float]) -> None:
        """One more step."""
        if self._count == len(self._rows) < KEPT:
            self._rows = np.resize(self._rows, (min(KEPT, 2 * len(self._rows)), len(self._columns)))
        self._rows[self._count % KEPT] = row
        self._count += 1

    def table(self) -> dict[str, np.ndarray]:
        """One array for each column, oldest first."""
        kept = min(self._count, KEPT)
        rows = np.roll(self._rows[:kept], -(self._count % KEPT) if self._count > KEPT else 0, axis=0)
        return ReportTable({name: rows[:, i].copy() for i, name in enumerate(self._columns)})
