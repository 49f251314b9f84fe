"""Broad phase: the hierarchical hashed grid of `backends.cpu.broad`, sorted by the device."""

from __future__ import annotations

import math
from typing import Any

import numba.cuda as cuda
import numpy as np

from ...kernels.grid import bucket as _bucket
from ...kernels.kinds import DYNAMIC
from ..cpu import broad as host
from ..cpu.broad import FEW, LEVELS, NO_LEVEL
from . import provider
from .launch import Kernel, item_pass, pass_over

PAIR_BLOCK = 1
"""Shapes in a block of the pair search."""
xp = provider.xp

cell_keys = item_pass(host.cell_keys)
find_pairs = item_pass(host.find_pairs)
_bins = item_pass(host.size_bins)


def choose_phase(kind: Any, box: Any, level: Any, histogram: Any) -> int:
    """See `backends.cpu.broad.choose_phase`."""
    _bins(kind, box, level)
    histogram[:] = xp.bincount(xp.where(level < 0, histogram.size, level), minlength=histogram.size + 1)[:-1]
    return int(host.best_phase(provider.fetch(histogram)))


def buckets(i, level, key, level_count, mask, bucket):
    """The bucket of each shape's cell; one more than the last for shapes that are in none."""
    bucket[i] = mask + 1
    if level[i] != NO_LEVEL and level_count[level[i]] > FEW:
        bucket[i] = _bucket(key[i], mask)


_buckets = pass_over(buckets)


def build_grid(grid: Any) -> tuple[int, int]:
    """See `backends.cpu.broad.build_grid`."""
    level, mask = grid.level, grid.bucket_start.size - 3
    grid.level_count[:] = xp.bincount(xp.where(level < 0, LEVELS, level), minlength=LEVELS + 1)[:-1]
    count = provider.fetch(grid.level_count)
    used = np.flatnonzero(count > FEW)
    grid.levels[: used.size] = provider.send(used)
    singles = int(count[count <= FEW].sum())
    if singles:
        few = provider.send(np.append(count <= FEW, False))
        grid.single[:singles] = xp.flatnonzero(few[level])
    bucket = provider.zeros(level.size, np.int64)
    _buckets(level.size, level, grid.key, grid.level_count, mask, bucket)
    order = provider.argsort(bucket)
    grid.item[:] = order
    places = xp.arange(grid.bucket_start.size, dtype=np.int64) - 1
    grid.bucket_start[:] = provider.below(bucket[order], places)
    return singles, used.size


def speed(i, free, out):
    """How fast body i is."""
    out[i] = math.sqrt(free[i, 0] * free[i, 0] + free[i, 1] * free[i, 1] + free[i, 2] * free[i, 2])


def hand_on(pairs, body, body_kind, scratch, reach_speed):
    """What the pairs of each block hand on."""
    block = cuda.grid(1)
    if block < pairs.count.size:
        for k in range(block * pairs.capacity, block * pairs.capacity + pairs.count[block]):
            a, b = body[pairs.pair[k, 0]], body[pairs.pair[k, 1]]
            if body_kind[a] == DYNAMIC:
                cuda.atomic.max(reach_speed, a, scratch[b])
            if body_kind[b] == DYNAMIC:
                cuda.atomic.max(reach_speed, b, scratch[a])


_speed, _hand_on = pass_over(speed), Kernel(hand_on)


def spread_speed(pairs: Any, body: Any, body_kind: Any, free: Any, reach_speed: Any, scratch: Any) -> None:
    """See `backends.cpu.broad.spread_speed`. The largest of several is the same in any order."""
    reach_speed[:] = 0.0
    _speed(body_kind.size, free, scratch)
    for _ in range(2):
        _hand_on.launch(-(-pairs.count.size // _hand_on.threads), pairs, body, body_kind, scratch, reach_speed)
        xp.maximum(scratch, reach_speed, out=scratch)


def most_and_total(count: Any) -> tuple[int, int]:
    """Largest entry and sum of the counts of all blocks."""
    most, total = provider.fetch(xp.stack([count.max(), count.sum()]))
    return int(most), int(total)
