"""Settings from outside a scene file: `key=value`, where the key is a parameter of the scene or the path of any key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from .. import checks
from ..errors import OptionsError, message

__all__ = ["Location", "apply", "label", "parsed", "steps_of"]

Location = tuple[str | int, ...]
"""Place of a value in nested tables and lists."""
PART = re.compile(r'"([^"]+)"|([^.\[\]"]+)')
STEP = r'(?:"[^"]+"|[^.\[\]"{}]+)'
PATH = re.compile(rf"{STEP}(?:\.{STEP}|\[[^.\[\]\"]+\])*")


def parsed(text: str) -> Any:
    """The value of a text: a number, true, false, a list, a table or a quoted text of TOML, else the text itself."""
    try:
        found = tomllib.loads(f"value = {text}")
        if set(found) == {"value"} and isinstance(found["value"], (bool, int, float, str, list, dict)):
            return found["value"]
    except (ValueError, RecursionError):
        pass
    try:
        return float(text)
    except ValueError:
        return text


def label(key: str) -> str:
    """How an error names a setting."""
    return f"--set {key}"


def steps_of(key: str) -> Location:
    """The steps of a path: gravity.2, material.wood.friction, body[0].shape.radius, body."my ball".mass."""
    parts = [(quoted or plain).strip() for quoted, plain in PART.findall(key)]
    if not PATH.fullmatch(key) or not all(parts):
        raise OptionsError(
            message(label(key), "must name a key", repr(key), "For example gravity.2 or material.wood.friction.")
        )
    return tuple(parts)


def apply(data: dict[str, Any], key: str, value: Any, known: Iterable[str], parameters: Iterable[str]) -> Location:
    """Put a value at a path of nested tables and lists; returns where that is. Entries of lists go by number or name.

    known: tables and keys of a scene; parameters: of this one, to hint at."""
    where, steps = label(key), steps_of(key)
    known, place = set(known), []
    node: Any = data
    if steps[0] not in known:
        hint = _hint(str(steps[0]), known, sorted(parameters))
        raise OptionsError(message(where, "unknown key or parameter", checks.short(steps[0]), hint))
    for k, step in enumerate(steps):
        last = k == len(steps) - 1
        if isinstance(node, dict):
            at: Any = str(step)
            if not last and at not in node:
                node[at] = {}
                if k > 0 or str(steps[k + 1]).isdigit():
                    raise OptionsError(_absent(where, place, at))
        elif isinstance(node, list):
            at = _entry(where, place, node, str(step))
        else:
            got = f"{_shown(place)} = {checks.short(node)}"
            raise OptionsError(message(where, "goes through a single value", got, f"Say --set {_shown(place)}=..."))
        place.append(at)
        if last:
            node[at] = value
        else:
            node = node[at]
    return tuple(place)


def _hint(word: str, known: set[str], parameters: list[str]) -> str:
    near = checks.nearest(word, known | set(parameters))
    if near.startswith("Did"):
        return near
    if parameters:
        return f"Parameters of this scene: {', '.join(parameters)}."
    return "The scene declares no parameters; other keys go by their path, like gravity.2."


def _entry(where: str, place: list[str | int], rows: list[Any], step: str) -> int:
    """Index of an entry of a list, by number (negative: from the end) or by the entry's name."""
    names = [row["name"] for row in rows if isinstance(row, Mapping) and isinstance(row.get("name"), str)]
    if step in names:
        return next(i for i, row in enumerate(rows) if isinstance(row, Mapping) and row.get("name") == step)
    try:
        index = int(step)
    except ValueError:
        rule = f"{_shown(place)} has no entry of that name" if names else f"{_shown(place)} is a list of {len(rows)}"
        hint = checks.nearest(step, names) if names else f"Say a number from 0 to {len(rows) - 1}."
        raise OptionsError(message(where, rule, checks.short(step), hint)) from None
    if not -len(rows) <= index < len(rows):
        rule = f"{_shown(place)} has {len(rows)} entries"
        raise OptionsError(message(where, rule, index, "Count from 0." if rows else "Write the whole list."))
    return index % len(rows)


def _absent(where: str, place: list[str | int], step: str) -> str:
    whole = _shown([*place, step])
    return message(where, f"the scene does not give {whole}", "nothing there", f"Set the whole of {whole} instead.")


def _shown(place: Iterable[str | int]) -> str:
    return ".".join(map(str, place)) or "the scene"
