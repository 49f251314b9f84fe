"""Passes that follow each other in every step, in one call: in a small scene a step costs what its calls cost.

Here is no work, only its order; a backend without a compiler takes the same functions over its own passes
(`backends.base.over_passes`).
"""

from __future__ import annotations

import math

from ...kernels.jit import loop
from ..base import BLOCK, BODY_BLOCK, Measure, RestRule
from ..shape_arrays import BoxedArrays, FoundRows, PlaneArrays
from .arrange import arrange_contacts, sort_contacts
from .broad import (
    find_pairs,
    in_grid,
    kept_pairs_hold,
    most_and_total,
    pairs_of_kept,
    spread_speed,
    widen,
)
from .items import PARTS, most_in_parts, partial_most
from .measure import measure, shift_bound_in_blocks
from .motion import add_velocities, speed_blocks
from .operators import contact_product, gather, lay_down, read_rows, scale_compliance, scale_frame
from .place import place_shapes
from .rest import rest_gaps
from .rows import (
    build_rows,
    contact_diagonal,
    fill_entries,
    fill_entries_in_parts,
    match_contacts,
    scale_rows,
    soften_diagonal,
    survey_contacts,
    weigh,
)
from .works import contact_work


@loop
def place_step(shapes, local, bodies, pools, h, margin, scratch, partial, box):
    """World poses and bounding boxes of all shapes over the step; returns the largest and the mean travel of a body
    [m]. partial (blocks of bodies, 2): scratch."""
    speed_blocks(bodies.free, partial)
    top, total, count = 0.0, 0.0, bodies.free.shape[0]
    for block in range((count + BODY_BLOCK - 1) // BODY_BLOCK):
        top, total = max(top, partial[block, 0]), total + partial[block, 1]
    stir = h * top
    place_shapes(shapes, local, bodies, pools, h, margin, stir, scratch, box)
    return stir, h * total / max(1, count)


@loop
def search_pairs(boxed, filters, planes, grid, rule, kept, pairs, spread):
    """Fill `pairs`; returns the most that a block has found of them and of the pairs to keep, beyond the capacity where
    there was no room, and their number.

    Pairs of wider boxes are kept: as long as all shapes stay within theirs, all pairs that meet are among them.
    """
    few, capacity = rule.few, kept.pairs.capacity
    holds = not few and kept_pairs_hold(boxed, filters, kept)
    keep = holds
    if not (few or holds):
        keep = rule.room > 0.0 and kept.state[2] == 0
        kept.state[2] = max(0, kept.state[2] - 1)
    if keep and not holds:
        widen(boxed, filters, planes.free, rule.room, rule.far, kept)
        wide = BoxedArrays(boxed.kind, boxed.body, kept.box)
        used = in_grid(wide, grid, spread)
        find_pairs(
            wide, filters, PlaneArrays(kept.no_plane, planes.position, planes.matrix, planes.free), grid, used, rule.h,
            rule.slack, kept.pairs,
        )  # fmt: skip
        most, total = most_and_total(kept.pairs.count)
        if most > capacity:
            return 0, most, total
        kept.state[0], kept.state[1] = 1, 0
    if keep:
        pairs_of_kept(boxed, filters, planes, rule.h, rule.slack, kept, pairs)
    else:
        used = (0, boxed.kind.size, 0)
        if not few:
            used = in_grid(boxed, grid, spread)
        find_pairs(boxed, filters, planes, grid, used, rule.h, rule.slack, pairs)
    most, total = most_and_total(pairs.count)
    if most <= pairs.capacity:
        if rule.quiet:
            spread.reach[:] = 0.0
        else:
            spread_speed(pairs, boxed.body, filters.kind, planes.free, spread.reach, spread.scratch)
    return most, 0, total


@loop
def order_contacts(count, raw, located, sides, scratch, ordered, arranged):
    """The contacts that were found, sorted by key, as component-first arrays."""
    sort_contacts(raw, located, scratch, ordered)
    arrange_contacts(count, ordered.order, FoundRows(raw.row, raw.shapes), sides, arranged)


@loop
def assemble_rows(op, touch, rows, table, memory, kick, rule):
    """Frames, arms, entries and bias of the contacts, whom they were a step ago, and their velocities before the step.

    Returns how many were there a step ago, the largest shift of a gap that is left [m], the mean speed of neighbours
    [m/s] and the largest overlap [m]."""
    count, shift = op.count, 0.0
    if table.sides.shape[0] > 1:
        fill_entries_in_parts(
            count, op.body_a, op.body_b, table.movable, op.entry_start, table.sides, op.slot_a, op.slot_b
        )
    else:
        fill_entries(count, op.body_a, op.body_b, table.movable, op.entry_start, table.cursor, op.slot_a, op.slot_b)
    hits = match_contacts(
        count, table.uid, op.body_a, op.body_b, table.feature, memory.uid_a, memory.uid_b, memory.feature, table.found
    )
    if count == 0 or rule.rest.band == 0.0:
        for c in range(count):
            touch.gap[c] = table.gaps.gap[c]
    else:
        # Interior points leave every contact a force: so little of a weight, or of the largest, is noise and no rest.
        most_in_parts(memory.impulse, table.parts)
        least = max(rule.rest.least, rule.noise * partial_most(PARTS, 1, table.parts))
        rest = RestRule(least, rule.rest.band, rule.rest.share, rule.rest.part)
        rest_gaps(count, table.gaps, table.found, memory.impulse, rest, table.partial, touch.gap)
        shift = partial_most(count, BLOCK, table.partial)
    build_rows(count, touch, kick.center, kick.free, rule.h, rule.recovery, rule.gravity, rows)
    read_rows(count, op.body_a, op.body_b, op.frame, op.arms, kick.before, table.relative)
    motion, overlap = survey_contacts(count, table.relative, table.gaps.gap, table.surveyed)
    return hits, shift, motion, overlap


@loop
def scale_contacts(op, dim, mode, bias, friction, guess, weights, scaled):
    """Diagonal blocks, scales and weights of the contacts, and the problem in scaled impulses with its guess."""
    count, soft = op.count, op.compliance.shape[1] > 0
    contact_diagonal(
        count, op.body_a, op.body_b, op.frame, op.arms, op.inverse_mass, op.inverse_inertia, weights.diagonal
    )
    if soft:
        soften_diagonal(count, op.compliance, weights.diagonal)
    weigh(count, dim, weights.diagonal, mode, weights.scale, weights.weight, weights.tangential)
    scale_frame(count, op.frame, weights.scale, scaled.frame)
    if soft:
        scale_compliance(count, op.compliance, weights.scale, scaled.compliance)
    scale_rows(count, bias, friction, weights.scale, guess, scaled.bias, scaled.friction, scaled.x)


@loop
def judge_contacts(op, gauge, tangential, impulse, product, partial, values):
    """Measures of the impulses into `values`; returns how far the certificate's problem lies [m/s]."""
    contact_product(op, impulse, product)
    measure(gauge, impulse, product, partial, values)
    gap = values[Measure.GAP]
    if gauge.coulomb and math.isfinite(gap):
        root = math.sqrt(gap)
        return shift_bound_in_blocks(gauge.count, product, gauge.bias, gauge.friction, tangential, root, partial)
    return values[Measure.SHIFT]


@loop
def act_impulses(op, impulse, free, before, gap, h, velocity, after, partial):
    """Velocities of all bodies after the impulses (their change into the operator's own array), those of the contacts,
    and the works of `contact_work`."""
    lay_down(op.count, op.frame, op.slot_a, op.slot_b, impulse, op.entry_force)
    gather(op.entry_start, op.entry_arm, op.entry_force, op.inverse_mass, op.inverse_inertia, op.body_velocity)
    add_velocities(free, op.body_velocity, velocity)
    read_rows(op.count, op.body_a, op.body_b, op.frame, op.arms, velocity, after)
    return contact_work(op.count, impulse, after, before, gap, op.compliance, h, partial)
