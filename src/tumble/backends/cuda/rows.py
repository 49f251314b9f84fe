"""Rows of contacts, products with the operator, scaling: the passes of the processors with a thread for each item."""

from __future__ import annotations

from typing import Any

from ...kernels.contact_rows import recalled_vector
from ..cpu import operators, rows
from ..cpu import rest as resting
from . import provider
from .launch import item_pass, pass_over
from .sums import chunk_pass

xp = provider.xp

build_rows = item_pass(rows.build_rows)
contact_diagonal = item_pass(rows.contact_diagonal)
weigh = item_pass(rows.weigh)
scale_rows = item_pass(rows.scale_rows)
unscale_impulses = item_pass(rows.unscale_impulses)
scale_frame = item_pass(operators.scale_frame)
lay_down = item_pass(operators.lay_down)
gather = item_pass(operators.gather)
read_rows = item_pass(operators.read_rows)
_add_compliance = item_pass(operators._add_compliance)
recall = pass_over(recalled_vector)
close_gaps = chunk_pass(resting.rest_gaps, 1, (0,), stays=True)
"""`rest_gaps` that leaves the largest shift on the device, as (1,)"""


def contact_product(op: Any, x: Any, out: Any) -> None:
    """out = N x."""
    force, v = op.entry_force, op.body_velocity
    lay_down(op.count, op.frame, op.slot_a, op.slot_b, x, force)
    gather(op.entry_start, op.entry_arm, force, op.inverse_mass, op.inverse_inertia, v)
    read_rows(op.count, op.body_a, op.body_b, op.frame, op.arms, v, out)
    if op.compliance.shape[1] > 0:
        _add_compliance(op.count, op.compliance, x, out)


def rest_gaps(count: int, gaps: Any, found: Any, impulse: Any, rule: Any, partial: Any, out: Any) -> float:
    """See `backends.cpu.rest.rest_gaps`; returns the largest shift of a gap within the band, which `partial` holds."""
    shift = float(close_gaps(count, gaps, found, impulse, rule, partial, out)[0]) if count else 0.0
    partial[:] = shift
    return shift


def frozen(c, diagonal, bias):
    """A contact that its impulse cannot open must not ask for an opening."""
    if diagonal[0, c] <= FROZEN * (diagonal[0, c] + diagonal[1, c] + diagonal[2, c]):
        bias[0, c] = max(bias[0, c], 0.0)


FROZEN = rows.FROZEN
free_frozen_rows = pass_over(frozen)
