"""Values that a setting takes in a sweep, and all combinations of them."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import checks
from ..errors import OptionsError, message
from ..scene.settings import label, parsed

__all__ = ["combinations", "folder_name", "values_of"]

LONGEST = 100
"""Characters of a folder's name"""
MOST = 100_000
"""Points of a sweep"""


def values_of(key: str, text: str) -> list[Any]:
    """Values of "0.1:0.9:9" (start:stop:count, ends included), "1:1000:4:log", "0,1,2" or of a single one."""
    parts = text.split(":")
    numbers = [_number(part) for part in parts[:3]]
    if len(parts) in (3, 4) and None not in numbers:
        return _range(key, text, numbers, parts[3:])
    return [parsed(part.strip()) for part in _split(text)]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _range(key: str, text: str, numbers: Sequence[Any], kind: Sequence[str]) -> list[Any]:
    start, stop, count = numbers
    rule, remedy = "must be start:stop:count, both ends included", "For example 0.1:0.9:9, or 1:1000:4:log."
    if not count.is_integer() or not 1 <= count <= MOST or list(kind) not in ([], ["log"]):
        raise OptionsError(message(label(key), rule, repr(text), remedy))
    if kind and not (start > 0.0 and stop > 0.0):
        raise OptionsError(message(label(key), "a logarithmic range needs ends above 0", repr(text), remedy))
    made = (np.geomspace if kind else np.linspace)(start, stop, int(count))
    values = [float(f"{value:.12g}") for value in made]  # 0.3, not 0.30000000000000004
    whole = all(value.is_integer() for value in values) and not any(c in text for c in ".e")
    return [int(value) for value in values] if whole else values


def _split(text: str) -> list[str]:
    """At commas that are not in brackets or quotes."""
    parts, depth, quoted = [""], 0, False
    for c in text:
        quoted ^= c == '"'
        depth += 0 if quoted else (c in "[{") - (c in "]}")
        if c == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def combinations(settings: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations; the last setting changes fastest."""
    for key, values in settings.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            got = checks.short(values)
            raise OptionsError(message(label(key), "needs a list of values", got, "For example [0.1, 0.2]."))
        if len({repr(value) for value in values}) < len(values):
            raise OptionsError(message(label(key), "takes each value once", checks.short(values), "Leave one out."))
    count = int(np.prod([len(values) for values in settings.values()], dtype=float))
    if count > MOST:
        raise OptionsError(message("sweep", f"must have at most {MOST} points", count, "Give fewer values."))
    return [dict(zip(settings, values)) for values in itertools.product(*settings.values())]


def folder_name(point: Mapping[str, Any]) -> str:
    """A name for a point's folder that says its settings, the same one whatever else is in the sweep."""
    words = ",".join(f"{key}={value}" for key, value in point.items()) or "all"
    plain = re.sub(r"[^A-Za-z0-9_.,=+-]", "_", words)
    if plain == words and len(plain) <= LONGEST:
        return plain
    return f"{plain[:LONGEST]}_{hashlib.sha256(words.encode()).hexdigest()[:8]}"
