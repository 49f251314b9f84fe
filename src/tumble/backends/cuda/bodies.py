"""Bodies and their shapes: the kick of the forces, poses and boxes, the drift; see `backends.cpu.motion`."""

from __future__ import annotations

from typing import Any

from ..cpu import motion, place
from . import provider
from .broad import _speed
from .launch import item_pass
from .sums import chunk_pass

predict = item_pass(motion.predict)
drift_bodies = item_pass(motion.drift_bodies)
place_shapes = item_pass(place.place_shapes)
_advance = chunk_pass(motion._advance_blocks, 8, (5, 7))


def advance(
    weights: Any, kick: Any, loads: Any, free: Any, change: Any, h: float, rest: float, motion: Any, partial: Any
) -> tuple[float, ...]:
    """See `backends.cpu.motion.advance`."""
    return tuple(_advance(weights, kick, loads, free, change, h, rest, motion, partial).tolist())


def largest_speed(kind: Any, free: Any) -> float:
    """Largest speed of a body in the step [m/s]."""
    if not kind.size:
        return 0.0
    out = provider.zeros(kind.size)
    _speed(kind.size, free, out)
    return float(out.max())
