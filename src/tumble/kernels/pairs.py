"""When and where two convex shapes meet within a step: any two, or a ball and a closed form (which compiles faster)."""

from __future__ import annotations

import math

from .distance import ball_gap, convex_gap
from .jit import formula
from .kinds import HALF_SPACE
from .linalg import axpy, dot, norm

SWEEP_LIMIT = 60
FAST_TRAVEL = 0.25
"""A pair that moves more than this part of its smaller size in a step is swept."""


def _sweeps(gap_of):
    """`first_touch` and `meeting` with the gap found in this way."""

    @formula
    def first_touch(ka, sa, ha, kb, sb, hb, turn, shift, points, face_start, face_plane, scratch, velocity, h):
        """Time in [0, h] at which the pair first touches when B moves with `velocity` relative to A and nothing turns;
        if it does not touch, the time at which it is nearest. Returns (time, gap then).

        The gap of two convex bodies is a convex function of the time, so Newton's method from the left never jumps over
        the first touch, and where the slope turns positive the minimum is bracketed.
        """
        gap, n, _ = gap_of(ka, sa, ha, kb, sb, hb, turn, shift, points, face_start, face_plane, scratch, math.inf)
        slope = dot(velocity, n)
        if gap <= 0.0 or slope >= 0.0:
            return 0.0, gap
        low = 0.0
        size = max(abs(gap), 1e-300)
        for _ in range(SWEEP_LIMIT):
            t = min(h, low - gap / slope)
            new_gap, n, _ = gap_of(
                ka,
                sa,
                ha,
                kb,
                sb,
                hb,
                turn,
                axpy(t, velocity, shift),
                points,
                face_start,
                face_plane,
                scratch,
                math.inf,
            )
            new_slope = dot(velocity, n)
            if new_slope >= 0.0 and new_gap > 0.0:
                return _nearest(
                    ka, sa, ha, kb, sb, hb, turn, shift, points, face_start, face_plane, scratch, velocity, low, t
                )
            low, gap, slope = t, new_gap, new_slope
            if t >= h or gap <= 1e-9 * size:
                return t, gap
        return low, gap

    @formula
    def _nearest(ka, sa, ha, kb, sb, hb, turn, shift, points, face_start, face_plane, scratch, velocity, low, high):
        """Bisection on the slope of the gap between low (falling) and high (rising)."""
        gap = 0.0
        t = low
        for _ in range(40):
            t = 0.5 * (low + high)
            gap, n, _ = gap_of(
                ka,
                sa,
                ha,
                kb,
                sb,
                hb,
                turn,
                axpy(t, velocity, shift),
                points,
                face_start,
                face_plane,
                scratch,
                math.inf,
            )
            if gap <= 0.0:
                return t, gap
            if dot(velocity, n) < 0.0:
                low = t
            else:
                high = t
        return t, gap

    @formula
    def meeting(
        ka,
        sa,
        ha,
        kb,
        sb,
        hb,
        turn,
        shift,
        points,
        face_start,
        face_plane,
        scratch,
        velocity,
        h,
        size,
        near,
        handed_on,
        swept_normal,
    ):
        """Whether a pair gets a contact in this step: (yes or no, time, gap, normal, point of A's core, reach).

        A slow pair is taken as it stands: within `near` plus h times the approach speed, or the speed `handed_on` that
        a neighbour could give one of the two within the step. A fast one is swept: it has a contact only if the paths
        meet within the step, so that a near miss is not deflected. swept_normal: the contact is then that of the first
        touch, or of the nearest approach within half the smaller size (one of the two has a prescribed motion);
        otherwise the present normal is kept: with one application point on the line of centres no angular momentum is
        made.
        velocity: of B relative to A, in A's frame.
        """
        travel = h * norm(velocity)
        t = 0.0
        if travel <= FAST_TRAVEL * size or kb == HALF_SPACE:
            limit = near + max(travel, h * handed_on)
            gap, n, a = gap_of(ka, sa, ha, kb, sb, hb, turn, shift, points, face_start, face_plane, scratch, limit)
            reach = near + h * max(-dot(velocity, n), handed_on)
            return gap <= reach, t, gap, n, a, reach
        t, gap = first_touch(ka, sa, ha, kb, sb, hb, turn, shift, points, face_start, face_plane, scratch, velocity, h)
        reach = max(near, 0.5 * size) if swept_normal else near
        if gap > reach:
            return False, t, gap, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0), reach
        if not swept_normal:
            t = 0.0
            reach += travel
        gap, n, a = gap_of(
            ka,
            sa,
            ha,
            kb,
            sb,
            hb,
            turn,
            axpy(t, velocity, shift),
            points,
            face_start,
            face_plane,
            scratch,
            math.inf,
        )
        return gap <= reach, t, gap, n, a, reach

    return first_touch, meeting


first_touch, meeting = _sweeps(convex_gap)
_, ball_meeting = _sweeps(ball_gap)
