"""What the colours of bodies mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import nearest
from ..enums import BodyKind
from ..errors import FileError, OptionsError, message
from .paint import PALETTE, STATIC_COLOR, body_colors, on_ramp
from .snapshot import Snapshot

__all__ = ["COLORINGS", "Coloring", "coloring", "range_of"]

COLORINGS = ("body", "speed", "force", "material")
LABELS = {"speed": "speed [m/s]", "force": "contact force [N]"}


@dataclass(frozen=True)
class Coloring:
    """Colours of bodies and what a legend says of them."""

    color: np.ndarray
    """(n, 3) 0..1"""
    label: str = ""
    limits: tuple[float, float] | None = None
    """Of the numbers that the ramp stands for"""
    entries: tuple[tuple[str, tuple[float, float, float]], ...] = ()
    """Names and their colours"""


def coloring(shot: Snapshot, by: str | None, limits: tuple[float, float] | None = None) -> Coloring:
    """Colours by body (each its own), speed, force or material. limits: what the ramp spans; None: from 0 to the
    largest."""
    by = "body" if by is None else by
    if by not in COLORINGS:
        raise OptionsError(message("color", "unknown quantity", repr(by), nearest(str(by), COLORINGS)))
    if by == "body":
        return Coloring(body_colors(shot.model, None))
    if by == "material":
        return _by_material(shot)
    limits = limits or range_of(shot, by) or (0.0, 1.0)
    color = on_ramp(_numbers(shot, by), *limits)
    fixed = np.asarray(shot.model.body_kind) != BodyKind.DYNAMIC
    return Coloring(np.where(fixed[:, None], STATIC_COLOR, color), LABELS[by], limits)


def range_of(shot: Snapshot, by: str) -> tuple[float, float] | None:
    """From 0 to the largest number of a dynamic body; None where colours are no numbers."""
    if by not in LABELS:
        return None
    values = _numbers(shot, by)[(np.asarray(shot.model.body_kind) == BodyKind.DYNAMIC) & shot.present]
    return 0.0, float(values.max(initial=0.0)) or 1.0


def _numbers(shot: Snapshot, by: str) -> np.ndarray:
    return np.linalg.norm(shot.velocity, axis=1) if by == "speed" else shot.load


def _by_material(shot: Snapshot) -> Coloring:
    model = shot.model
    if model.shape_material is None:
        remedy = "Run the scene again, or colour by body."
        raise FileError(message(str(shot.source.path), "must hold materials", "a file of an older version", remedy))
    names = [getattr(m, "name", m) or f"material{i}" for i, m in enumerate(model.materials)]
    number = np.zeros(len(model.body_kind), int)
    number[model.shape_body[::-1]] = model.shape_material[::-1]  # that of its first shape
    entries = tuple((name, tuple(PALETTE[(3 * i + 4) % len(PALETTE)])) for i, name in enumerate(names))
    return Coloring(np.array([color for _, color in entries])[number], "material", None, entries)
