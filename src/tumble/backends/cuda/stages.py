"""Passes that follow each other in every step; see `backends.cpu.stages`. What they say to the host crosses once."""

from __future__ import annotations

import math
from typing import Any

from ..base import Measure, RestRule
from . import provider
from .bodies import largest_speed, place_shapes
from .broad import build_grid, cell_keys, choose_phase, find_pairs, most_and_total, spread_speed
from .contacts import arrange_contacts, contact_work, fill_entries, match_contacts, sort_contacts, survey_contacts
from .items import largest_entry
from .measure import coulomb_shift_bound, measure
from .rows import (
    build_rows,
    contact_diagonal,
    contact_product,
    gather,
    lay_down,
    read_rows,
    rest_gaps,
    scale_frame,
    scale_rows,
    weigh,
)

xp = provider.xp


def place_step(
    shapes: Any, local: Any, bodies: Any, pools: Any, h: float, margin: float, scratch: Any, partial: Any, box: Any
) -> tuple[float, float]:
    """World poses and bounding boxes of all shapes over the step; returns the largest travel of a body [m], and nothing
    for the mean one, since pairs are sought anew in every step."""
    stir = h * largest_speed(bodies.free[:, 0], bodies.free)
    place_shapes(shapes, local, bodies, pools, h, margin, stir, scratch, box)
    return stir, 0.0


def search_pairs(
    boxed: Any, filters: Any, planes: Any, grid: Any, rule: Any, kept: Any, pairs: Any, spread: Any
) -> tuple[int, int, int]:
    """Fill `pairs`; returns the most that a block has found, of those to keep none, and their number."""
    phase, singles, levels = 0, boxed.kind.size, 0
    if not rule.few:
        phase = choose_phase(boxed.kind, boxed.box, grid.level, spread.histogram)
        cell_keys(boxed.kind, boxed.box, phase, grid.level, grid.key)
        singles, levels = build_grid(grid)
    find_pairs(boxed, filters, planes, grid, (phase, singles, levels), rule.h, rule.slack, pairs)
    most, total = most_and_total(pairs.count)
    if most <= pairs.capacity:
        if rule.quiet:
            spread.reach[:] = 0.0
        else:
            spread_speed(pairs, boxed.body, filters.kind, planes.free, spread.reach, spread.scratch)
    return most, 0, total


def order_contacts(count: int, raw: Any, located: Any, sides: Any, scratch: Any, ordered: Any, arranged: Any) -> None:
    """The contacts that were found, sorted by key, as component-first arrays."""
    sort_contacts(raw, located, scratch, ordered)
    arrange_contacts(count, ordered.order, raw, sides, arranged)


def assemble_rows(
    op: Any, touch: Any, rows: Any, table: Any, memory: Any, kick: Any, rule: Any
) -> tuple[int, float, float, float]:
    """Frames, arms, entries and bias of the contacts, whom they were a step ago, and their velocities before it."""
    count, shift = op.count, 0.0
    fill_entries(count, op.body_a, op.body_b, table.movable, op.entry_start, table.cursor, op.slot_a, op.slot_b)
    hits = match_contacts(
        count, table.uid, op.body_a, op.body_b, table.feature, memory.uid_a, memory.uid_b, memory.feature, table.found
    )
    if count == 0 or rule.rest.band == 0.0:
        touch.gap[:count] = table.gaps.gap[:count]
    else:
        least = max(rule.rest.least, rule.noise * largest_entry(memory.impulse))
        rest = RestRule(least, rule.rest.band, rule.rest.share, rule.rest.part)
        shift = rest_gaps(count, table.gaps, table.found, memory.impulse, rest, table.partial, touch.gap)
    build_rows(count, touch, kick.center, kick.free, rule.h, rule.recovery, rule.gravity, rows)
    read_rows(count, op.body_a, op.body_b, op.frame, op.arms, kick.before, table.relative)
    motion, overlap = survey_contacts(count, table.relative, table.gaps.gap, table.surveyed)
    return hits, shift, motion, overlap


def scale_contacts(
    op: Any, dim: int, mode: int, bias: Any, friction: Any, guess: Any, weights: Any, scaled: Any
) -> None:
    """Diagonal blocks, scales and weights of the contacts, and the problem in scaled impulses with its guess."""
    count, n = op.count, op.count
    contact_diagonal(
        count, op.body_a, op.body_b, op.frame, op.arms, op.inverse_mass, op.inverse_inertia, weights.diagonal
    )
    soft = op.compliance.shape[1] > 0
    if soft:
        weights.diagonal[0, :n] += op.compliance[0, :n]
        weights.diagonal[1:3, :n] += op.compliance[1, :n]
    weigh(count, dim, weights.diagonal, mode, weights.scale, weights.weight, weights.tangential)
    scale_frame(count, op.frame, weights.scale, scaled.frame)
    if soft:
        scaled.compliance[:, :n] = op.compliance[:, :n] * weights.scale[:, :n] ** 2
    scale_rows(count, bias, friction, weights.scale, guess, scaled.bias, scaled.friction, scaled.x)


def judge_contacts(
    op: Any, gauge: Any, tangential: Any, impulse: Any, product: Any, partial: Any, values: Any
) -> float:
    """Measures of the impulses into `values`; returns how far the certificate's problem lies [m/s]."""
    contact_product(op, impulse, product)
    measure(gauge, impulse, product, partial, values)
    found = provider.fetch(values)
    gap = float(found[Measure.GAP])
    if gauge.coulomb and math.isfinite(gap):
        return coulomb_shift_bound(gauge.count, product, gauge.bias, gauge.friction, tangential, math.sqrt(gap))
    return float(found[Measure.SHIFT])


def act_impulses(
    op: Any, impulse: Any, free: Any, before: Any, gap: Any, h: float, velocity: Any, after: Any, partial: Any
) -> tuple[float, float, float]:
    """Velocities of all bodies after the impulses, those of the contacts, and the works of `contact_work`."""
    lay_down(op.count, op.frame, op.slot_a, op.slot_b, impulse, op.entry_force)
    gather(op.entry_start, op.entry_arm, op.entry_force, op.inverse_mass, op.inverse_inertia, op.body_velocity)
    xp.add(free, op.body_velocity, out=velocity)
    read_rows(op.count, op.body_a, op.body_b, op.frame, op.arms, velocity, after)
    return contact_work(op.count, impulse, after, before, gap, op.compliance, h, partial)
