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


BINS = 8 * LEVELS
"""Entries of a histogram at most"""
MANY = 16
"""Shapes that a thread counts"""


def tally(count, place, out):
    """Shapes in each bin of `out`; those of a block first, so that few meet at one address. Negative: in none."""
    shared = cuda.shared.array(BINS, np.int32)
    t, threads = cuda.threadIdx.x, cuda.blockDim.x
    for b in range(t, out.size, threads):
        shared[b] = 0
    cuda.syncthreads()
    first = cuda.blockIdx.x * threads * MANY
    for i in range(first + t, min(count, first + threads * MANY), threads):
        if place[i] >= 0:
            cuda.atomic.add(shared, place[i], 1)
    cuda.syncthreads()
    for b in range(t, out.size, threads):
        if shared[b] > 0:
            cuda.atomic.add(out, b, shared[b])


_tally = Kernel(tally)


def counted(place: Any, out: Any) -> np.ndarray:
    """How many shapes are in each bin: into `out`, and on the host."""
    out[:] = 0
    if place.size:
        _tally.launch(-(-place.size // (_tally.threads * MANY)), place.size, place, out)
    return provider.fetch(out)


def choose_phase(kind: Any, box: Any, level: Any, histogram: Any) -> int:
    """See `backends.cpu.broad.choose_phase`."""
    return phase_of(sized(kind, box, level, histogram))


def sized(kind: Any, box: Any, level: Any, histogram: Any) -> np.ndarray:
    """The bins of all boxes (left in `level`), and on the host how many are in each."""
    _bins(kind, box, level)
    return counted(level, histogram)


def phase_of(histogram: np.ndarray) -> int:
    """The phase of the levels that fits boxes in these bins best."""
    return int(host.best_phase(histogram))


def levels_of(histogram: np.ndarray, phase: int) -> np.ndarray:
    """How many boxes of these bins come to lie in each level."""
    bins = np.flatnonzero(histogram)
    return np.bincount((bins - phase) // 8, weights=histogram[bins], minlength=LEVELS).astype(np.int64)


def buckets(i, level, key, level_count, mask, bucket):
    """The bucket of each shape's cell; one more than the last for shapes that are in none."""
    bucket[i] = mask + 1
    if level[i] != NO_LEVEL and level_count[level[i]] > FEW:
        bucket[i] = _bucket(key[i], mask)


_buckets = pass_over(buckets)


def build_grid(grid: Any) -> tuple[int, int]:
    """See `backends.cpu.broad.build_grid`."""
    return lay_grid(grid, counted(grid.level, grid.level_count))


def lay_grid(grid: Any, count: np.ndarray) -> tuple[int, int]:
    """The same where it is known how many shapes are in each level."""
    level, mask = grid.level, grid.bucket_start.size - 3
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
