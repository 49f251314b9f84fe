"""The scalars of a spectral gradient iteration (Barzilai and Borwein): step lengths and the line search's memory.

One formula for all devices: it turns the sums of a pass over the contacts into the numbers of the next.
"""

from __future__ import annotations

import math
from enum import IntEnum

from .jit import formula

__all__ = ["MEMORY", "Spectral", "begin_spectral", "blend_of", "next_spectral"]

MEMORY = 10
"""Objectives that the nonmonotone line search looks back on."""


class Spectral(IntEnum):
    """Places in the array of scalars."""

    STEP = 0
    """Length t of a gradient step"""
    SHARE = 1
    """Part s of the direction that the iterate moves"""
    COUNT = 2
    """Iterations so far"""
    SQUARES = 3
    """|d|^2 of the last direction; 0: nothing moves any more"""
    OBJECTIVES = 4
    """The first of the last objectives"""


STEP, SHARE, COUNT, SQUARES, OBJECTIVES = (int(place) for place in Spectral)


@formula
def begin_spectral(step, s):
    """Scalars of a run that has not begun."""
    s[STEP], s[SHARE], s[COUNT], s[SQUARES] = step, 0.0, 0.0, 1.0
    for k in range(MEMORY):
        s[OBJECTIVES + k] = -math.inf


@formula
def blend_of(count, damping):
    """Part of its change that the Coulomb correction takes in an iteration."""
    return min(1.0, damping / count)


@formula
def next_spectral(dd, dnd, nn, gd, f, coulomb, s):
    """From d.d, d.Nd, Nd.Nd, g.d and the objective of an iteration, in place: how far it goes, and the next step."""
    count = int(s[COUNT]) + 1
    s[COUNT], s[SQUARES] = count, dd
    s[OBJECTIVES + count % MEMORY] = f
    highest = f
    for j in range(MEMORY):
        highest = max(highest, s[OBJECTIVES + j])
    share = 1.0
    # With the correction moving, objectives of different iterations do not compare: use the last one alone.
    if f + gd + 0.5 * dnd > (f if coulomb else highest) + 1e-4 * gd and dnd > 0.0:
        share = min(1.0, max(0.01, -gd / dnd))
    s[SHARE] = share
    if dnd > 0.0 and nn > 0.0:
        s[STEP] = dd / dnd if count % 2 == 0 else dnd / nn
