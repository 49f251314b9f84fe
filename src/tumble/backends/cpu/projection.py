"""Joints closed at the end of a step (SHAKE), mechanism by mechanism."""

from __future__ import annotations

from ...kernels.jit import blockwise
from ...kernels.joint_closing import close_mechanism


@blockwise(1, "rows.mechanism_body_start.size - 1")
def close_joints(mechanism, rule, rows, frames, bodies, kick, trial, work, found):
    """Change velocities (n, 6) of the kick so that the rigid rows hold after a drift (`ClosingRule`).

    kick: the coordinates at its pose. found (mechanisms, 4): violation after and before, its row, rounds. work.y are
    the impulses, work.g the violations.
    """
    close_mechanism(mechanism, rule, rows, frames, bodies, kick, trial, work, found)
