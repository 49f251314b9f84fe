"""Boxes and the cells of a hierarchical hashed grid, and which bodies may collide at all."""

from __future__ import annotations

import math

import numpy as np

from .jit import formula, merged_formula
from .kinds import DYNAMIC

LEVELS = 256
LEVEL_ZERO = 128


@formula
def cell_key(level, x, y, z):
    """Level and cell in one integer; 18 bits a coordinate, wrapped (a wrapped cell is only a wasted comparison)."""
    return (level << 54) | ((x & 0x3FFFF) << 36) | ((y & 0x3FFFF) << 18) | (z & 0x3FFFF)


@formula
def bucket(key, mask):
    """Hash of a cell key."""
    key = (key ^ (key >> 31)) * 0x1B873593A5F3B20D
    key = (key ^ (key >> 29)) * 0x2545F4914F6CDD1D
    return (key ^ (key >> 32)) & mask


@formula
def cell_size(level, phase):
    """Edge of the cells of a level: its boxes are smaller, by less than a factor of two."""
    return math.ldexp(1.0 + 0.125 * phase, int(level - LEVEL_ZERO))


@formula
def size_bin(box, i):
    """The bin of a box by its size, eight to the octave."""
    extent = max(box[i, 3] - box[i, 0], max(box[i, 4] - box[i, 1], box[i, 5] - box[i, 2]))
    mantissa, e = math.frexp(extent)
    e = min(LEVELS - 4, max(2, e + LEVEL_ZERO))
    return 8 * e + min(7, max(0, int((mantissa - 0.5) * 16.0)))


@formula
def may_collide(i, j, body, filters):
    """Different bodies, one of them dynamic, groups and masks agree, not excluded."""
    a, b = body[i], body[j]
    kind, group, mask, excluded = filters.kind, filters.group, filters.mask, filters.excluded
    if a == b or (kind[a] != DYNAMIC and kind[b] != DYNAMIC):
        return False
    if (group[a] & mask[b]) == 0 or (group[b] & mask[a]) == 0:
        return False
    if excluded.size > 0:
        wanted = (np.int64(min(a, b)) << 32) + max(a, b)
        low, high = 0, excluded.size
        while low < high:
            middle = (low + high) // 2
            if excluded[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        if low < excluded.size and excluded[low] == wanted:
            return False
    return True


@formula
def boxes_meet(box, i, j):
    return (
        box[i, 0] <= box[j, 3]
        and box[j, 0] <= box[i, 3]
        and box[i, 1] <= box[j, 4]
        and box[j, 1] <= box[i, 4]
        and box[i, 2] <= box[j, 5]
        and box[j, 2] <= box[i, 5]
    )


@formula
def above_plane(i, p, box, position, matrix):
    """Height of the lowest corner of a box over plane p."""
    height = 0.0
    for k in range(3):
        n = matrix[p, 3 * k + 2]
        height += n * ((box[i, k] if n > 0.0 else box[i, 3 + k]) - position[p, k])
    return height


@merged_formula
def first_cell(box, i, size):
    """The cell of a box's centre."""
    return (
        int(math.floor(0.5 * (box[i, 0] + box[i, 3]) / size)),
        int(math.floor(0.5 * (box[i, 1] + box[i, 4]) / size)),
        int(math.floor(0.5 * (box[i, 2] + box[i, 5]) / size)),
    )
