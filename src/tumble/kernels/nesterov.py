"""The scalars of an accelerated projected gradient iteration: step length, momentum, restart.

They lag: what one pass over the contacts sums is used by the next. So an iteration is a fixed list of passes and this
formula, which one thread of any device can run; nothing waits for a sum, and nothing is done twice.
"""

from __future__ import annotations

import functools
import math
from enum import IntEnum

import numpy as np

from .jit import formula

__all__ = ["Scalar", "first_scalars", "next_scalars", "theta_step"]


class Scalar(IntEnum):
    """Places in the array of scalars that the passes read."""

    CURVATURE = 0
    """L: a step is 1 / L"""
    BETA = 1
    """Weight of the momentum"""
    BLEND = 2
    """Part of its change that the Coulomb correction takes"""
    THETA = 3
    RESTED = 4
    """1 right after a restart: the sums that follow still belong to the momentum that was given up"""
    LIMIT = 5
    """Largest weight of the momentum"""
    DECAY = 6
    """L is multiplied by this in each iteration"""
    DAMPING = 7
    """Coulomb's law: iteration from which the correction is refreshed in part only; 0 for the relaxed law"""
    COUNT = 8
    """Iterations so far"""
    LIFTED = 9
    """The limit where progress ends: 1, or the limit itself, which is then never lifted"""


CURVATURE, BETA, BLEND, THETA, RESTED, LIMIT, DECAY, DAMPING, COUNT, LIFTED = (int(place) for place in Scalar)


def first_scalars(decay: float, limit: float, damping: float, lifted: float = 1.0) -> np.ndarray:
    """Scalars of a run that has not begun; its first curvature is put in by the run itself."""
    return _first_scalars(decay, limit, damping, lifted).copy()


@functools.lru_cache(16)
def _first_scalars(decay: float, limit: float, damping: float, lifted: float) -> np.ndarray:
    out = np.zeros(len(Scalar))
    out[CURVATURE], out[THETA] = 1.0, 1.0
    out[BLEND] = 1.0 if damping > 0.0 else 0.0
    out[LIMIT], out[DECAY], out[DAMPING], out[LIFTED] = limit, decay, damping, lifted
    return out


@formula
def theta_step(theta):
    """Nesterov's sequence: the next theta and the weight of the momentum."""
    following = 0.5 * (theta * math.sqrt(theta * theta + 4.0) - theta * theta)
    return following, theta * (1.0 - theta) / (theta * theta + following)


@formula
def next_scalars(dd, dh, gd, s):
    """From the sums d.d, d.Nd and g.d of the last step d, in place.

    L becomes the curvature just seen where that is larger (at most twice of what it was), else it decays. The momentum
    is given up where the last step went uphill, unless it has just been.
    """
    if dh > s[CURVATURE] * dd:
        s[CURVATURE] = min(dh / dd, 2.0 * s[CURVATURE])
    else:
        s[CURVATURE] *= s[DECAY]
    if gd > 0.0 and s[RESTED] == 0.0:
        s[THETA], s[BETA], s[RESTED] = 1.0, 0.0, 1.0
    else:
        theta, beta = theta_step(s[THETA])
        s[THETA], s[BETA], s[RESTED] = theta, min(beta, s[LIMIT]), 0.0
    s[COUNT] += 1.0
    if s[DAMPING] > 0.0:
        s[BLEND] = min(1.0, s[DAMPING] / s[COUNT])
