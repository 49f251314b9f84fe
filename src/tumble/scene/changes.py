"""Settings from outside that reach into what a Python scene builds: gravity and properties of materials."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from .. import checks
from ..errors import OptionsError, TumbleError, message
from .materials import PROPERTIES, MaterialTable
from .settings import label, steps_of

__all__ = ["changed", "changing"]

KEYS = ("gravity", "material")
_CHANGES: ContextVar[Mapping[str, Any] | None] = ContextVar("changes of a scene", default=None)


@contextmanager
def changing(settings: Mapping[str, Any]) -> Iterator[None]:
    """Scenes that are built in the block get these settings: gravity, gravity.2, material.NAME.PROPERTY."""
    token = _CHANGES.set(settings)
    try:
        yield
    finally:
        _CHANGES.reset(token)


def changed(gravity: np.ndarray, materials: MaterialTable) -> tuple[np.ndarray, MaterialTable]:
    """Gravity (3,) [m/s^2] and the materials of a scene that is being built, with the settings that hold now."""
    for key, value in (_CHANGES.get() or {}).items():
        steps = steps_of(key)
        if steps[0] == "gravity":
            gravity = _gravity(label(key), gravity, [str(s) for s in steps[1:]], value)
        elif steps[0] == "material":
            materials = _material(label(key), materials, [str(s) for s in steps[1:]], value)
    return gravity, materials


def _gravity(where: str, gravity: np.ndarray, steps: list[str], value: Any) -> np.ndarray:
    if not steps:
        return checks.vector(where, value, error=OptionsError)
    if len(steps) > 1 or steps[0] not in ("0", "1", "2"):
        raise OptionsError(message(where, "gravity has entries 0, 1 and 2", ".".join(steps), "gravity.2 is along z."))
    out = gravity.copy()
    out[int(steps[0])] = checks.number(where, value)
    return out


def _material(where: str, materials: MaterialTable, steps: list[str], value: Any) -> MaterialTable:
    if len(steps) != 2:
        raise OptionsError(
            message(where, "must be material.NAME.PROPERTY", ".".join(steps) or "nothing", "material.wood.friction.")
        )
    names = [m.name for m in materials.known]
    if steps[0] not in names:
        hint = checks.nearest(steps[0], [n for n in names if n is not None])
        raise OptionsError(message(where, "unknown material", checks.short(steps[0]), hint))
    checks.choice(where, steps[1], PROPERTIES)
    out = copy.copy(materials)
    try:
        out.known = [dataclasses.replace(m, **{steps[1]: value}) if m.name == steps[0] else m for m in materials.known]
    except TumbleError as cause:
        raise OptionsError(f"{where}: {cause}") from cause
    return out
