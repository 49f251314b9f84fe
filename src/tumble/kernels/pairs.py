"""When and where two convex shapes meet within a step: any two, or a ball and a closed form (which compiles faster)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .convex import shifted
from .distance import ball_gap, convex_gap, shallow_gap
from .jit import formula
from .kinds import HALF_SPACE
from .linalg import axpy, dot, norm

SWEEP_LIMIT = 60
FAST_TRAVEL = 0.25
"""A pair that moves more than this part of its smaller size in a step is swept."""


class Limits(NamedTuple):
    """What decides whether a pair has a contact in this step."""

    h: float
    size: float  # of the smaller shape
    near: float  # gap up to which two shapes at rest have a contact
    handed_on: float  # speed that a neighbour could give one of the two within the step
    swept: bool  # a fast pair gets the contact of its first touch, not the present one


class Touch(NamedTuple):
    """Where a pair meets: what its contact points are made from."""

    gap: float
    normal: tuple[float, float, float]  # from A to B, in A's frame
    point: tuple[float, float, float]  # of A's core
    reach: float  # gap up to which there is a contact


def _first_touch(gap_of: Callable) -> Callable:
    """`first_touch` with the gap found in this way."""

    @formula
    def _nearest(pair, pools, velocity, low, high):
        """Bisection on the slope of the gap between low (falling) and high (rising)."""
        gap = 0.0
        t = low
        for _ in range(40):
            t = 0.5 * (low + high)
            gap, n, _ = gap_of(shifted(pair, axpy(t, velocity, pair.shift)), pools, math.inf)
            if gap <= 0.0:
                return t, gap
            if dot(velocity, n) < 0.0:
                low = t
            else:
                high = t
        return t, gap

    @formula
    def first_touch(pair, pools, velocity, h):
        """Time in [0, h] at which the pair first touches when B moves with `velocity` relative to A and nothing turns;
        if it does not touch, the time at which it is nearest. Returns (time, gap then).

        The gap of two convex bodies is a convex function of the time, so Newton's method from the left never jumps over
        the first touch, and where the slope turns positive the minimum is bracketed.
        """
        gap, n, _ = gap_of(pair, pools, math.inf)
        slope = dot(velocity, n)
        if gap <= 0.0 or slope >= 0.0:
            return 0.0, gap
        low = 0.0
        size = max(abs(gap), 1e-300)
        for _ in range(SWEEP_LIMIT):
            t = min(h, low - gap / slope)
            new_gap, n, _ = gap_of(shifted(pair, axpy(t, velocity, pair.shift)), pools, math.inf)
            new_slope = dot(velocity, n)
            if new_slope >= 0.0 and new_gap > 0.0:
                return _nearest(pair, pools, velocity, low, t)
            low, gap, slope = t, new_gap, new_slope
            if t >= h or gap <= 1e-9 * size:
                return t, gap
        return low, gap

    return first_touch


def _meeting(gap_of: Callable, first_touch: Callable) -> Callable:
    """`meeting` with the gap found in this way."""

    @formula
    def meeting(pair, pools, velocity, limits):
        """Whether a pair gets a contact in this step: (yes or no, time, where).

        A slow pair is taken as it stands: within `near` plus h times the approach speed, or `handed_on`. A fast one is
        swept: it has a contact only if the paths meet within the step, so that a near miss is not deflected.
        limits.swept: the contact is then that of the first touch, or of the nearest approach within half the smaller
        size (one of the two has a prescribed motion); otherwise the present normal is kept: with one application point
        on the line of centres no angular momentum is made.
        velocity: of B relative to A, in A's frame.
        """
        h, size, near, handed_on, swept = limits
        travel = h * norm(velocity)
        t = 0.0
        if travel <= FAST_TRAVEL * size or pair.b.kind == HALF_SPACE:
            limit = near + max(travel, h * handed_on)
            gap, n, a = gap_of(pair, pools, limit)
            reach = near + h * max(-dot(velocity, n), handed_on)
            return gap <= reach, t, Touch(gap, n, a, reach)
        t, gap = first_touch(pair, pools, velocity, h)
        reach = max(near, 0.5 * size) if swept else near
        if gap > reach:
            return False, t, Touch(gap, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0), reach)
        if not swept:
            t = 0.0
            reach += travel
        gap, n, a = gap_of(shifted(pair, axpy(t, velocity, pair.shift)), pools, math.inf)
        return gap <= reach, t, Touch(gap, n, a, reach)

    return meeting


first_touch = _first_touch(convex_gap)
meeting = _meeting(convex_gap, first_touch)
shallow_meeting = _meeting(shallow_gap, _first_touch(shallow_gap))
ball_meeting = _meeting(ball_gap, _first_touch(ball_gap))
