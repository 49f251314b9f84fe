"""Works of contacts in a step."""

from __future__ import annotations

from ...kernels.contact_rows import recovered_work, work_of_driven
from ...kernels.jit import block_length, blockwise, item_index, loop
from ..base import BLOCK


@blockwise(BLOCK)
def _work_blocks(block, count, x, after, before, gap, compliance, h, partial):
    """Per block: works of the normal and of all other impulses, what was recovered, and the most that could have."""
    normal, friction, recovery, most = 0.0, 0.0, 0.0, 0.0
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        own, eaten = 0.5 * x[0, c] * (after[0, c] + before[0, c]), 0.0
        normal += own
        for k in range(1, x.shape[0]):
            along = 0.5 * x[k, c] * (after[k, c] + before[k, c])
            friction, eaten = friction + along, eaten + along
        recovered, pushed = recovered_work(c, own + min(eaten, 0.0), x, after, gap, compliance, h)
        recovery, most = recovery + recovered, most + pushed
    partial[block, 0], partial[block, 1], partial[block, 2], partial[block, 3] = normal, friction, recovery, most


@loop
def contact_work(count, x, after, before, gap, compliance, h, partial):
    """Works of the normal and of all other impulses over a step, with relative velocities before and after, and what of
    the normal work pushed overlaps of rigid contacts apart, at up to -gap / h [J]. partial (blocks, 4): scratch.

    Contacts that take more than they give, by friction too, recover nothing, unless others in the same step give what
    they take.
    """
    _work_blocks(count, x, after, before, gap, compliance, h, partial)
    normal, friction, recovery, most = 0.0, 0.0, 0.0, 0.0
    for block in range((count + BLOCK - 1) // BLOCK):
        normal += partial[block, 0]
        friction += partial[block, 1]
        recovery += partial[block, 2]
        most += partial[block, 3]
    recovery = min(most, max(recovery, normal + friction))
    return normal - recovery, friction, recovery


@loop
def driven_work(count, kind, body_a, body_b, frame, arms, x, velocity):
    """Work that bodies of prescribed motion put in: minus the power of the impulses on them [J]."""
    work = 0.0
    for c in range(count):
        work = work_of_driven(c, body_a[c], -1.0, 0, work, kind, frame, arms, x, velocity)
        work = work_of_driven(c, body_b[c], 1.0, 3, work, kind, frame, arms, x, velocity)
    return work
