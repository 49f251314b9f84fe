"""Bias of contacts, contact by contact. Velocities and bias have rows n, u, w; gaps in metres."""

from __future__ import annotations

import math

from .jit import formula


@formula
def recovery_speed(recovery, gravity, size):
    """Fastest recovery of an overlap; recovery < 0: the speed that lifts a hundredth of the size under gravity."""
    return recovery if recovery >= 0.0 else math.sqrt(0.02 * gravity * size)


@formula
def held_bias(c, gap, free, h, bias):
    """Contacts that hold in velocity: an open gap may close, an overlap asks for nothing."""
    bias[0, c] = max(gap[c], 0.0) / h + free[0, c]


@formula
def gap_at_end(c, gap, size, velocity, lead, least, end, deep):
    """Gap after the time `lead`, and whether it is an overlap by more than `least` of the smaller shape."""
    end[c] = gap[c] + lead * velocity[0, c]
    deep[c] = end[c] < -least * size[c]


@formula
def recovery_bias(c, gap, size, h, recovery, gravity, bias):
    """What closes a gap and opens an overlap in a step."""
    bias[0, c] = max(gap[c] / h, -recovery_speed(recovery, gravity, size[c]))


@formula
def taken_turns(c, rows, out):
    """The turns, rows 3 to 5."""
    for row in range(3, 6):
        out[row, c] = rows[row, c]


@formula
def turning_friction(c, pair, spinning, rolling, friction):
    """sigma and rho [m] of a contact that resists turning, into friction (3, cap)."""
    friction[1, c] = spinning[pair[c]]
    friction[2, c] = rolling[pair[c]]


@formula
def recalled_numbers(c, found, column, out):
    """Numbers (rows, k) that contacts remembered, zero for new contacts (found: see `match_contacts`)."""
    k = found[c]
    for row in range(out.shape[0]):
        out[row, c] = column[row, k] if k >= 0 else 0.0
