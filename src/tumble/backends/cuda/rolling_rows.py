"""Products with six rows a contact and scales of such rows, without joints; see `backends.cpu.rolling_rows`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..base import ArticulatedArrays
from ..cpu.rolling_rows import _gather_torques as gather_torques
from ..cpu.rolling_rows import _lay_torques as lay_torques
from ..cpu.rolling_rows import _read_turns as read_turns
from ..cpu.rolling_rows import scale_rolling as down
from ..cpu.rolling_rows import scale_turns as turn_scales
from ..cpu.rolling_rows import turn_diagonal as turns_of
from ..cpu.rolling_rows import unscale_rolling as back
from ..cpu.rolling_rows import weigh_turns
from . import provider
from .joints import articulated_product
from .launch import item_pass
from .rows import _add_compliance, contact_product, gather, lay_down, read_rows, weigh

xp = provider.xp

scale_rolling = item_pass(down)
unscale_rolling = item_pass(back)
scale_turns = item_pass(turn_scales)
_weigh_turns = item_pass(weigh_turns)
_lay_torques = item_pass(lay_torques)
_gather_torques = item_pass(gather_torques)
_read_turns = item_pass(read_turns)
_turn_diagonal = item_pass(turns_of)


class Bare(NamedTuple):
    """Of `ArticulatedArrays` what contacts alone need."""

    contacts: Any
    bounded_body: Any


class Turned(NamedTuple):
    """Of `RollingArrays` the same."""

    joints: Bare
    turn_frame: Any


def is_rolling(op: Any) -> bool:
    """Whether contacts have six rows."""
    return hasattr(op, "turn_frame")


def contacts_of(op: Any) -> Any:
    """`ContactArrays` of an operator."""
    return op.joints.contacts if is_rolling(op) else op.contacts if isinstance(op, ArticulatedArrays) else op


def product(op: Any, x: Any, out: Any) -> None:
    """out = N x."""
    if is_rolling(op):
        rolling_product(op, x, out)
    elif isinstance(op, ArticulatedArrays):
        articulated_product(op, x, out)
    else:
        contact_product(op, x, out)


def rolling_velocity(op: Any, x: Any) -> None:
    """body_velocity = M^-1 P x"""
    a = op.joints.contacts
    lay_down(a.count, a.frame, a.slot_a, a.slot_b, x, a.entry_force)
    _lay_torques(a.count, a.slot_a, a.slot_b, op.turn_frame, x, op.entry_torque)
    gather(a.entry_start, a.entry_arm, a.entry_force, a.inverse_mass, a.inverse_inertia, a.body_velocity)
    _gather_torques(a.entry_start, op.entry_torque, a.inverse_inertia, a.body_velocity)


def rolling_rows(op: Any, v: Any, out: Any) -> None:
    """out = P^T v (6, cap)"""
    a = op.joints.contacts
    read_rows(a.count, a.body_a, a.body_b, a.frame, a.arms, v, out)
    _read_turns(a.count, a.body_a, a.body_b, op.turn_frame, v, out)


def rolling_product(op: Any, x: Any, out: Any) -> None:
    """out = N x (6, cap)"""
    rolling_velocity(op, x)
    a = op.joints.contacts
    rolling_rows(op, a.body_velocity, out)
    if a.compliance.shape[1] > 0:
        _add_compliance(a.count, a.compliance, x, out)


def turn_diagonal(op: Any, out: Any) -> None:
    """See `backends.cpu.rolling_rows.turn_diagonal`."""
    _turn_diagonal(Turned(Bare(op.joints.contacts, op.joints.bounded_body), op.turn_frame), out)


def weigh_rolling(count: int, diagonal: Any, turns: Any, mode: int, scale: Any, weight: Any, tangential: Any) -> None:
    """See `backends.cpu.rolling_rows.weigh_rolling`."""
    weigh(count, 3, diagonal, mode, scale, weight[0], tangential[0])
    _weigh_turns(count, turns, mode, scale, weight, tangential)


def rolling_shift_bound(count: int, nx: Any, bias: Any, mu: Any, tangential: Any, root_gap: float) -> float:
    """See `backends.cpu.rolling.rolling_shift_bound`."""
    if not math.isfinite(root_gap):
        return math.inf
    reach = (mu[:, :count] * tangential[:, :count]).sum(axis=0) * root_gap
    part = xp.maximum(0.0, -(nx[0, :count] + bias[0, :count])) + reach
    return max(0.0, float(xp.where(mu[0, :count] < 0.0, 0.0, part).max())) if count else 0.0
