"""The text of a TOML scene with the files that it includes, and which entry came from where."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import FileError, SceneError, message
from .settings import Location

__all__ = ["Document", "read_text"]

FILE_KEYS = ("file", "image", "urdf", "array")
"""Keys whose values are names of files, relative to the file that they stand in"""
DEEPEST = 20
"""Includes within includes"""
LEVELS = 100
"""Tables in tables, as deep as what reads them can go"""


def read_text(path: Path) -> str:
    """The text of a scene file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        reason = getattr(cause, "strerror", None) or "not a text in UTF-8"
        raise FileError(message(str(path), "must be a readable text file", reason, "Check the file name.")) from cause


class Document:
    """One table of tables. Entries of included files come before the file's own; an entry of the same name as an
    included one changes that one, key by key, and so does a table; a single value replaces it."""

    def __init__(self, path: Path, text: str, *, chain: Sequence[Path] = ()) -> None:
        self.path = path
        self.data: dict[str, Any] = {}
        self._origin: dict[str, list[tuple[Path, int]]] = {}
        own = _parsed(path, text)
        include = own.pop("include", [])
        names = [include] if isinstance(include, str) else include
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise SceneError(
                message(f"{path}: include", "must be names of files", checks.short(include), 'Say ["common.toml"].')
            )
        chain = (*chain, path.resolve())
        for i, name in enumerate(names):
            self._include(f"{path}: include[{i}]", path.parent / name, chain)
        self._merge(own, {k: [(path, i) for i in range(len(v))] for k, v in own.items() if isinstance(v, list)})

    def _include(self, where: str, path: Path, chain: Sequence[Path]) -> None:
        if path.resolve() in chain or len(chain) > DEEPEST:
            raise SceneError(message(where, "must not include itself", path, "Take one of the includes out."))
        if path.suffix != ".toml":
            raise SceneError(message(where, "must be a .toml file", path, "Only tables can be included."))
        part = Document(path, read_text(path), chain=chain)
        self._merge(_moved(part.data, path.parent), part._origin)

    def _merge(self, new: dict[str, Any], origin: dict[str, list[tuple[Path, int]]]) -> None:
        for key, value in new.items():
            old = self.data.get(key)
            if isinstance(old, dict) and isinstance(value, dict):
                self.data[key] = _overlaid(old, value)
            elif isinstance(old, list) and _is_rows(old) and _is_rows(value):
                self._merge_rows(old, self._origin[key], value, origin[key])
            else:
                self.data[key] = value
                if isinstance(value, list):
                    self._origin[key] = list(origin[key])

    def _merge_rows(self, old: list, origins: list, new: list, places: list) -> None:
        names = {row["name"]: i for i, row in enumerate(old) if isinstance(row.get("name"), str)}
        for row, place in zip(new, places):
            at = names.get(row.get("name")) if isinstance(row.get("name"), str) else None
            if at is None:
                old.append(row)
                origins.append(place)
            else:
                old[at], origins[at] = _overlaid(old[at], row), place

    def where(self, at: Location) -> str:
        """File and place of a value of the merged tables, as its author finds it."""
        path, steps = self.path, list(at)
        if len(steps) > 1 and isinstance(steps[1], int) and steps[1] < len(self._origin.get(str(steps[0]), ())):
            path, steps[1] = self._origin[str(steps[0])][steps[1]]
        words = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)
        return f"{path}: {words.lstrip('.') or 'scene'}"


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        data = tomllib.loads(text)
    except ValueError as cause:  # of TOML, and integers of thousands of digits
        raise FileError(message(str(path), "must be valid TOML", cause, "Correct this line.")) from cause
    except RecursionError as cause:
        raise _too_deep(path) from cause
    level: list[Any] = [data]
    for _ in range(LEVELS):
        level = [v for node in level for v in (node.values() if isinstance(node, dict) else node) if _is_nest(v)]
    if level:
        raise _too_deep(path)
    return data


def _is_nest(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _too_deep(path: Path) -> FileError:
    got, remedy = "lists in lists in lists", "The deepest scene has six levels."
    return FileError(message(str(path), "must not be nested so deep", got, remedy))


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _overlaid(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    out = dict(old)
    for key, value in new.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = _overlaid(out[key], value) if both else value
    return out


def _moved(node: Any, folder: Path, key: str = "") -> Any:
    """An included table whose file names hold from anywhere."""
    if isinstance(node, dict):
        return {k: _moved(v, folder, key if key == "package_paths" else k) for k, v in node.items()}
    if isinstance(node, list):
        return [_moved(v, folder, key) for v in node]
    if isinstance(node, str) and (key in FILE_KEYS or key == "package_paths") and not node.startswith("="):
        return str((folder / node).resolve())
    return node
