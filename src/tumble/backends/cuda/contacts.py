"""Contacts: points of the pairs, their order, their entries on bodies, and where they stood a step ago."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...kernels.contact_rows import match_pair, recovered_work, work_of_driven, world_vector
from ..cpu import arrange, narrow
from ..cpu.narrow import SCRATCH as SCRATCH
from . import provider
from .launch import item_pass, pass_over
from .sums import CHUNK, Folded

xp = provider.xp

MOST = 1
"""Contact points that a pair may have: those of a ball have one, and each block needs room for so many."""
find_ball_contacts = item_pass(narrow.find_ball_contacts, MOST=MOST)
arrange_contacts = item_pass(arrange.arrange_contacts)


def flatten(block, raw, start, place):
    """Places of the contacts of a block, one after the other."""
    for k in range(raw.count[block]):
        place[start[block] + k] = block * raw.capacity + k


def name(k, place, raw, shapes, pair, feature):
    """The key of contact k: its bodies in one number, and its feature."""
    c = place[k]
    i, j = raw.shapes[c, 0], raw.shapes[c, 1]
    if shapes.body[i] > shapes.body[j]:
        i, j = j, i
    pair[k] = (np.int64(shapes.body[i]) << 32) + np.int64(shapes.body[j])
    feature[k] = (np.int64(shapes.local[i]) << 36) | (np.int64(shapes.local[j]) << 16) | int(raw.row[c, 7])


_flatten, _name = pass_over(flatten), pass_over(name)


SORT_BODIES, SORT_PARTS = 1 << 30, 1
"""One bin for all: the device sorts in its own way."""


def sort_contacts(raw: Any, shapes: Any, scratch: Any, out: Any) -> int:
    """See `backends.cpu.arrange.sort_contacts`."""
    total = int(raw.count.sum())
    sort_known(total, raw, shapes, scratch, out)
    return total


def sort_known(total: int, raw: Any, shapes: Any, scratch: Any, out: Any) -> None:
    """The same for so many contacts: two stable sorts, by feature and by pair of bodies."""
    first = scratch.place
    starts = provider.zeros(raw.count.size + 1, np.int64)
    provider.cumulate(raw.count, starts)
    _flatten(raw.count.size, raw, starts, first)
    pair, feature = provider.zeros(total, np.int64), provider.zeros(total, np.int64)
    _name(total, first, raw, shapes, pair, feature)
    order = provider.argsort(feature)
    order = order[provider.argsort(pair[order])]
    out.order[:total] = first[order]
    out.body_b[:total] = pair[order] & 0xFFFFFFFF
    out.feature[:total] = feature[order]


def sides(c, body_a, body_b, movable, last, body):
    """The body of either side of contact c, or `last` for one that cannot move."""
    a, b = body_a[c], body_b[c]
    body[2 * c] = a if movable[a] else last
    body[2 * c + 1] = b if movable[b] else last


def number(e, order, body, last, entry_start, slot_a, slot_b):
    """Entry e belongs to the side that stands there; behind the last one in use is the dump."""
    side = order[e]
    slot = e if body[side] < last else entry_start[last]
    if side % 2 == 0:
        slot_a[side // 2] = slot
    else:
        slot_b[side // 2] = slot


_sides, _number = pass_over(sides), pass_over(number)


def fill_entries(
    count: int, body_a: Any, body_b: Any, movable: Any, entry_start: Any, cursor: Any, slot_a: Any, slot_b: Any
) -> int:
    """See `backends.cpu.rows.fill_entries`."""
    lay_entries(count, body_a, body_b, movable, entry_start, slot_a, slot_b)
    return int(entry_start[-1])


def lay_entries(count: int, body_a: Any, body_b: Any, movable: Any, entry_start: Any, slot_a: Any, slot_b: Any) -> None:
    """The same without asking how many there are."""
    last = movable.size
    body = provider.zeros(2 * count, np.int32)
    _sides(count, body_a, body_b, movable, last, body)
    order = provider.argsort(body)
    bodies = xp.arange(last + 1, dtype=np.int32)
    entry_start[:] = provider.below(body[order], bodies)
    _number(2 * count, order, body, last, entry_start, slot_a, slot_b)


def match(c, count, uid, body_a, body_b, feature, old_a, old_b, old_feature, found):
    """`match_pair` for the pair that begins with contact c; nothing for others."""
    a, b = uid[body_a[c]], uid[body_b[c]]
    if c > 0 and uid[body_a[c - 1]] == a and uid[body_b[c - 1]] == b:
        return
    low, high = 0, old_a.size
    while low < high:
        middle = (low + high) // 2
        if old_a[middle] < a or (old_a[middle] == a and old_b[middle] < b):
            low = middle + 1
        else:
            high = middle
    k = low
    while k < old_a.size and old_a[k] == a and old_b[k] == b:
        k += 1
    end = c + 1
    while end < count and uid[body_a[end]] == a and uid[body_b[end]] == b:
        end += 1
    match_pair(c, end, low, k, feature, old_feature, found)


seek_contacts = pass_over(match)
"""`match_contacts` without counting them"""


def match_contacts(
    count: int, uid: Any, body_a: Any, body_b: Any, feature: Any, old_a: Any, old_b: Any, old_feature: Any, found: Any
) -> int:
    """See `backends.cpu.rows.match_contacts`."""
    seek_contacts(count, count, uid, body_a, body_b, feature, old_a, old_b, old_feature, found)
    return int(xp.count_nonzero(found[:count] >= 0)) if count else 0


def keep(c, uid, body_a, body_b, frame, x, uid_a, uid_b, impulse):
    """What contact c remembers."""
    uid_a[c], uid_b[c] = uid[body_a[c]], uid[body_b[c]]
    world_vector(c, frame, x, impulse)


remember = pass_over(keep)


def survey(chunk, count, before, gap, partial):
    """The sum and the largest of `survey_contacts` over a chunk of contacts."""
    speed, deepest = 0.0, 0.0
    for c in range(chunk * CHUNK, min(count, (chunk + 1) * CHUNK)):
        n, u, w = before[0, c], before[1, c], before[2, c]
        speed += math.sqrt(n * n + u * u + w * w)
        deepest = max(deepest, -gap[c])
    partial[chunk, 0], partial[chunk, 1] = speed, deepest


_survey, _survey_sums = pass_over(survey), Folded(2, largest=1 << 1)


def surveyed(count: int, before: Any, gap: Any) -> Any:
    """The sum of the speeds and the largest overlap (2,), on the device."""
    _survey(-(-count // CHUNK), count, before, gap, _survey_sums.partial(count))
    return _survey_sums.folded(count)[0]


def survey_contacts(count: int, before: Any, gap: Any, partial: Any) -> tuple[float, float]:
    """See `backends.cpu.rows.survey_contacts`; `partial` is not needed."""
    if not count:
        return 0.0, 0.0
    speed, deepest = provider.fetch(surveyed(count, before, gap)).tolist()
    return speed / count, deepest


def works(chunk, count, x, after, before, gap, compliance, h, partial):
    """The sums of `contact_work` over a chunk of contacts."""
    normal, friction, recovery, most = 0.0, 0.0, 0.0, 0.0
    for c in range(chunk * CHUNK, min(count, (chunk + 1) * CHUNK)):
        own, eaten = 0.5 * x[0, c] * (after[0, c] + before[0, c]), 0.0
        normal += own
        for k in range(1, x.shape[0]):
            along = 0.5 * x[k, c] * (after[k, c] + before[k, c])
            friction, eaten = friction + along, eaten + along
        recovered, pushed = recovered_work(c, own + min(eaten, 0.0), x, after, gap, compliance, h)
        recovery, most = recovery + recovered, most + pushed
    partial[chunk, 0], partial[chunk, 1], partial[chunk, 2], partial[chunk, 3] = normal, friction, recovery, most


def driven(chunk, count, kind, body_a, body_b, frame, arms, x, velocity, partial):
    """The sum of `driven_work` over a chunk of contacts."""
    work = 0.0
    for c in range(chunk * CHUNK, min(count, (chunk + 1) * CHUNK)):
        work = work_of_driven(c, body_a[c], -1.0, 0, work, kind, frame, arms, x, velocity)
        work = work_of_driven(c, body_b[c], 1.0, 3, work, kind, frame, arms, x, velocity)
    partial[chunk, 0] = work


_works, _driven = pass_over(works), pass_over(driven)
_work_sums, _driven_sum = Folded(4), Folded(1)


def contact_work(
    count: int, x: Any, after: Any, before: Any, gap: Any, compliance: Any, h: float, partial: Any
) -> tuple[float, float, float]:
    """See `backends.cpu.works.contact_work`."""
    _works(-(-count // CHUNK), count, x, after, before, gap, compliance, h, _work_sums.partial(count))
    normal, friction, recovery, most = _work_sums.row(count).tolist()
    recovery = min(most, max(recovery, normal + friction))
    return normal - recovery, friction, recovery


def driven_work(count: int, kind: Any, body_a: Any, body_b: Any, frame: Any, arms: Any, x: Any, velocity: Any) -> float:
    """See `backends.cpu.works.driven_work`."""
    partial = _driven_sum.partial(count)
    _driven(-(-count // CHUNK), count, kind, body_a, body_b, frame, arms, x, velocity, partial)
    return float(_driven_sum.row(count)[0])
