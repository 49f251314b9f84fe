"""Everything that acts in a run, as named short texts: two runs are the same where all of them are.

Arrays of more than a few numbers, long lists and functions are told by a hash. A function's is that of its code, its
constants and default values, and of the values that it takes from around it. An object of a user's class is told by all
it holds and by the code of its methods. Installed libraries, and what a function reaches through a module, are told by
name.
"""

from __future__ import annotations

import enum
import hashlib
import inspect
import json
import sys
import sysconfig
import types
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Change", "Description", "changes", "describe", "from_text", "to_text"]

Description = dict[str, str]
SHORT = 16
"""Numbers of an array that are written out."""
LONG = 64
"""Entries from which a list is told by a hash."""
DEEP = 60
"""Things within things that are looked into."""
LIBRARIES = tuple({str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "purelib", "platlib")})
OURS = __name__.partition(".")[0]
PLAIN = (type(None), bool, int, float, complex, str, bytes, Path)


class Change(NamedTuple):
    """A value that is another one now."""

    name: str
    before: str
    now: str


def describe(**parts: Any) -> Description:
    """The description of some values, say model, step and solver."""
    found: Description = {}
    describer = _Describer(found)
    for name, part in parts.items():
        describer.visit(name, part)
    return found


def changes(before: Description, now: Description) -> list[Change]:
    """All differences, in the order of the present description."""
    names = [*now, *(name for name in before if name not in now)]
    pairs = ((name, before.get(name, "nothing"), now.get(name, "nothing")) for name in names)
    return [Change(*pair) for pair in pairs if pair[1] != pair[2]]


def to_text(description: Description) -> str:
    """For a file."""
    return json.dumps(description)


def from_text(text: str | bytes) -> Description:
    """The inverse of `to_text`."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("a description is a table of texts")
    return {str(name): str(value) for name, value in found.items()}


class _Describer:
    def __init__(self, found: Description, inside: tuple[int, ...] = (), known: dict[int, str] | None = None) -> None:
        self._found, self._inside = found, inside
        self._known: dict[int, str] = {} if known is None else known
        """Functions and classes that were met already, by identity: each is looked into once"""

    def visit(self, name: str, value: Any) -> None:
        """Add a value, or its parts, under a name."""
        if isinstance(value, enum.Enum):
            value = value.value
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, PLAIN):
            self._found[name] = str(value) if isinstance(value, Path) else repr(value)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self._found[name] = _array(value)
        elif id(value) in self._inside or len(self._inside) > DEEP:
            self._found[name] = "itself"
        else:
            _Describer(self._found, (*self._inside, id(value)), self._known)._visit_parts(name, value)

    def _visit_parts(self, name: str, value: Any) -> None:
        if isinstance(getattr(value, "py_func", None), types.FunctionType):  # compiled by Numba
            value = value.py_func
        if isinstance(value, types.MethodType):
            self.visit(name, value.__func__)
            self.visit(f"{name}.self", value.__self__)
        elif isinstance(value, (types.FunctionType, type)):
            if id(value) not in self._known:
                self._known[id(value)] = self._code(value)
            self._found[name] = self._known[id(value)]
        elif isinstance(value, types.CodeType):
            self._found[name] = self._digest(_code_parts(value))
        elif isinstance(value, (types.ModuleType, types.BuiltinFunctionType)):
            self._found[name] = getattr(value, "__qualname__", value.__name__)
        elif isinstance(value, np.ndarray):
            self.visit(name, value.tolist())
        else:
            self._visit_entries(name, value)

    def _code(self, value: types.FunctionType | type) -> str:
        """A function or a class in one word, with the hash of what it does if that is the user's."""
        kind = "function " if isinstance(value, types.FunctionType) else ""
        if _is_installed(value.__module__):
            return f"{kind}{value.__qualname__}"
        parts = _function_parts(value) if isinstance(value, types.FunctionType) else _methods(value)
        return f"{kind}{value.__qualname__} {self._digest(parts)}" if parts else f"{kind}{value.__qualname__}"

    def _visit_entries(self, name: str, value: Any) -> None:
        entries = _entries(name, value)
        if len(entries) > LONG and isinstance(value, (Mapping, list, tuple, set, frozenset)):
            self._found[name] = f"{len(entries)} entries {self._digest(dict(entries))}"
            return
        if not isinstance(value, (Mapping, list, tuple)):
            self.visit(name, type(value))
        elif not entries:
            self._found[name] = "empty"
        for entry, part in entries:
            self.visit(entry, part)

    def _digest(self, parts: Mapping[str, Any]) -> str:
        found: Description = {}
        for name, part in parts.items():
            _Describer(found, self._inside, self._known).visit(name, part)
        return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]


def _entries(name: str, value: Any) -> list[tuple[str, Any]]:
    """The named parts of a value that has some."""
    if is_dataclass(value):
        return [(f"{name}.{f.name}", getattr(value, f.name)) for f in fields(value)]
    if hasattr(value, "_fields"):  # a named tuple
        return [(f"{name}.{f}", getattr(value, f)) for f in value._fields]
    if isinstance(value, Mapping):
        return [(f"{name}[{key}]", part) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"{name}[{i}]", part) for i, part in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return [(f"{name}[{i}]", part) for i, part in enumerate(sorted(value, key=repr))]
    return [(f"{name}.{key}", part) for key, part in _held(value).items()]


def _held(value: Any) -> dict[str, Any]:
    """All that an object holds, also under private names; of types in C what pickle would keep."""
    slots = (name for kind in type(value).__mro__ for name, s in vars(kind).items() if inspect.ismemberdescriptor(s))
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})
    if held:
        return held
    with suppress(Exception):  # what cannot be pickled has nothing to tell
        kept = value.__reduce_ex__(2)
        return {} if isinstance(kept, str) else {"state": kept[1:3]}
    return {}


def _methods(kind: type) -> dict[str, Any]:
    """Functions of a user's class and of those it comes from, by name."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if not _is_installed(base.__module__):
            for name, part in vars(base).items():
                part = getattr(part, "fget", None) or getattr(part, "__func__", part)
                if isinstance(part, types.FunctionType):
                    found[name] = part
    return found


def _is_installed(module: str | None) -> bool:
    """Whether a module is ours or a library's, told by version and name, and not the user's."""
    found = sys.modules.get(module or "")
    if (module or "").partition(".")[0] == OURS:
        return True
    if found is None or module == "__main__":  # scene files are not kept among the modules
        return False
    place = getattr(found, "__file__", None)
    return place is None or str(Path(place).resolve()).startswith(LIBRARIES)


def _array(array: np.ndarray) -> str:
    if array.size <= SHORT:
        return repr(array.tolist())
    data = np.ascontiguousarray(array).tobytes()
    return f"{array.dtype} {array.shape} {hashlib.sha256(data).hexdigest()[:16]}"


def _function_parts(function: types.FunctionType) -> dict[str, Any]:
    code = function.__code__
    around: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):  # not set yet
            around[name] = cell.cell_contents
    used = {name: function.__globals__[name] for name in _names(code) if name in function.__globals__}
    return {"code": code, "defaults": function.__defaults__, "named": function.__kwdefaults__, **around, **used}


def _names(code: types.CodeType) -> list[str]:
    inner = [name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names(constant)]
    return [*code.co_names, *inner]


def _code_parts(code: types.CodeType) -> dict[str, Any]:
    """Line numbers and file names do not act; the constants' types do (1 or 1.0)."""
    python = ".".join(map(str, sys.version_info[:2]))
    return {"python": python, "code": code.co_code, "names": code.co_names, "constants": code.co_consts}
