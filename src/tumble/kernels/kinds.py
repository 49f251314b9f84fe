"""Kinds of bodies and shapes as the numbers that compiled code compares, and sets of kinds as bits."""

from __future__ import annotations

import numpy as np

from ..enums import BodyKind, ShapeKind, ShapeTrait
from .jit import merged_formula

STATIC, KINEMATIC, DYNAMIC = (int(kind) for kind in BodyKind)
globals().update((kind.name, int(kind)) for kind in ShapeKind)  # SPHERE, BOX and so on


def _bits(trait: ShapeTrait) -> int:
    return sum(1 << int(kind) for kind in ShapeKind.having(trait))


CONVEX, CLOSED, CURVED, REVOLVED = (
    _bits(trait) for trait in (ShapeTrait.CONVEX, ShapeTrait.CLOSED, ShapeTrait.CURVED, ShapeTrait.REVOLVED)
)


@merged_formula
def among(kinds, kind):
    """Whether a kind is in a set."""
    return (kinds >> np.int64(kind)) & 1 == 1


@merged_formula
def turn_of(kind):
    """`ShapeKind.rank`"""
    return np.int64(kind) if among(CONVEX, kind) else np.int64(kind) + 64
