"""Trees of boxes: a heap over items sorted along a Morton curve (see `backends.shape_arrays.Geometry`)."""

from __future__ import annotations

import numpy as np

from ..backends.base import TREE_LEAF

__all__ = ["box_tree", "morton"]

MORTON_BITS = 21


def morton(center: np.ndarray) -> np.ndarray:
    """Place (n,) uint64 of points (n, 3) along a Morton curve: near ones are mostly near in it."""
    low, extent = center.min(axis=0), np.ptp(center, axis=0).max()
    cell = ((center - low) * ((2**MORTON_BITS - 1) / extent if extent > 0 else 0.0)).astype(np.uint64)
    code = np.zeros(len(center), np.uint64)
    for axis in range(3):
        x = cell[:, axis]
        for shift, mask in (
            (32, 0x1F00000000FFFF),
            (16, 0x1F0000FF0000FF),
            (8, 0x100F00F00F00F00F),
            (4, 0x10C30C30C30C30C3),
            (2, 0x1249249249249249),
        ):
            x = (x | (x << np.uint64(shift))) & np.uint64(mask)
        code |= x << np.uint64(axis)
    return code


def box_tree(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Boxes (2 L - 1, 6) of a heap with L leaves of TREE_LEAF items, in the order of the items (n, 3), (n, 3)."""
    count = len(low)
    leaves = 1 << max(0, (-(-count // TREE_LEAF) - 1)).bit_length()
    lows, highs = np.full((leaves * TREE_LEAF, 3), np.inf), np.full((leaves * TREE_LEAF, 3), -np.inf)
    lows[:count], highs[:count] = low, high
    box = np.empty((2 * leaves - 1, 6))
    box[leaves - 1 :, :3] = lows.reshape(leaves, TREE_LEAF, 3).min(axis=1)
    box[leaves - 1 :, 3:] = highs.reshape(leaves, TREE_LEAF, 3).max(axis=1)
    while leaves > 1:
        child, leaves = box[leaves - 1 : 2 * leaves - 1].reshape(-1, 2, 6), leaves // 2
        box[leaves - 1 : 2 * leaves - 1, :3] = child[:, :, :3].min(axis=1)
        box[leaves - 1 : 2 * leaves - 1, 3:] = child[:, :, 3:].max(axis=1)
    return box
