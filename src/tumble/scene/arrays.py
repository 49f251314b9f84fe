"""Arrays in files of their own: `position = {array = "points.csv", columns = ["x", "y", "z"]}` in a scene file."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..errors import FileError, SceneError, TumbleError, message
from .settings import Location

__all__ = ["loaded_arrays"]

KEYS = ("array", "columns", "key", "rows")
ENDINGS = (".npy", ".npz", ".csv", ".txt", ".dat")


def loaded_arrays(node: Any, folder: Path, where: Callable[[Location], str], at: Location = ()) -> Any:
    """Nested tables and lists with the arrays in files as lists."""
    if isinstance(node, dict) and "array" in node:
        place = where(at)
        for key in node:
            if key not in KEYS:
                got, remedy = checks.short(node[key]), checks.nearest(key, KEYS)
                raise SceneError(message(f"{place}.{key}", "unknown key", got, remedy))
        try:
            return _load(place, folder, **node)
        except TumbleError:
            raise
        except (OSError, ValueError, TypeError, KeyError, EOFError) as cause:
            rule, got = "must be a file of numbers", f"{type(cause).__name__}: {cause}"
            raise FileError(message(f"{place}.array", rule, got, "Check the file and its columns.")) from cause
    if isinstance(node, dict):
        return {k: loaded_arrays(v, folder, where, (*at, k)) for k, v in node.items()}
    if isinstance(node, list) and any(isinstance(v, (dict, list)) for v in node):
        return [loaded_arrays(v, folder, where, (*at, i)) for i, v in enumerate(node)]
    return node


def _load(place: str, folder: Path, array: str, columns: Any = None, key: str | None = None, rows: Any = None) -> Any:
    path = folder / checks.file_name(f"{place}.array", array, "points.csv", error=SceneError)
    if path.suffix not in ENDINGS:
        rule = "must end in " + ", ".join(ENDINGS)
        raise FileError(message(f"{place}.array", rule, checks.short(path.name), "Store the array as one of these."))
    if path.suffix in (".npy", ".npz"):
        values = np.load(path, allow_pickle=False)
        if path.suffix == ".npz":
            name = key if key is not None else (values.files or [""])[0]
            if name not in values.files:
                remedy = checks.nearest(name, values.files)
                raise SceneError(message(f"{place}.key", "must be an array of the file", checks.short(name), remedy))
            values = values[name]
        names: list[str] = []
    else:
        values, names = _text(path)
    if columns is not None:
        values = values[:, [_column(place, c, names, values.shape[1]) for c in columns]]
        values = values[:, 0] if len(columns) == 1 else values
    if rows is not None:
        start, stop = rows
        values = values[int(start) : int(stop)]
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise FileError(message(f"{place}.array", "must be finite numbers", values.dtype, "Check the file."))
    return np.asarray(values, float).tolist()


def _text(path: Path) -> tuple[np.ndarray, list[str]]:
    """Numbers of a text file, and the names in its first line if that is not of numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        first = next(csv.reader(file), [])
    comma = "," if path.suffix == ".csv" or len(first) > 1 else None
    try:
        [float(word) for word in (first if comma else " ".join(first).split())]
        names: list[str] = []
    except ValueError:
        names = [word.partition("[")[0].strip(" #") for word in (first if comma else " ".join(first).split())]
    return np.loadtxt(path, delimiter=comma, skiprows=1 if names else 0, ndmin=2, encoding="utf-8"), names


def _column(place: str, column: Any, names: list[str], width: int) -> int:
    """By name or by number from 0."""
    if isinstance(column, str):
        if column not in names:
            remedy = checks.nearest(column, names)
            raise SceneError(message(f"{place}.columns", "unknown column", checks.short(column), remedy))
        return names.index(column)
    return checks.integer(f"{place}.columns", column, at_least=0, at_most=width - 1, error=SceneError)
