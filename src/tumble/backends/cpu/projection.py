"""Joints closed at the end of a step (SHAKE), mechanism by mechanism."""

from __future__ import annotations

from ...kernels.jit import blockwise, loop
from ...kernels.joint_closing import close_mechanism


@blockwise(1, "rows.mechanism_body_start.size - 1")
def close_joints(mechanism, rule, rows, frames, bodies, kick, trial, work, found):
    """Change velocities (n, 6) of the kick so that the rigid rows hold after a drift (`ClosingRule`).

    kick: the coordinates at its pose. found (mechanisms, 4): violation after and before, its row, rounds. work.y are
    the impulses, work.g the violations.
    """
    close_mechanism(mechanism, rule, rows, frames, bodies, kick, trial, work, found)


@loop
def worst_of(found):
    """The largest violation after closing and before it, over all mechanisms, and the row of the first (0 if none)."""
    worst, before, row = 0.0, 0.0, 0
    for c in range(found.shape[0]):
        if c == 0 or (worst == worst and not found[c, 0] <= worst):  # one that is not a number is the worst
            worst, row = found[c, 0], int(found[c, 2])
        before = max(before, found[c, 1])
    return worst, before, row
