"""Packings: points to put bodies at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import checks, memory
from ..errors import SceneError, message

__all__ = ["grid_points", "lattice_points", "random_points"]


def grid_points(
    shape: ArrayLike,
    spacing: ArrayLike,
    *,
    origin: ArrayLike = (0.0, 0.0, 0.0),
    jitter: float = 0.0,
    seed: int = 0,
) -> np.ndarray:
    """Points (n, 3) of a rectangular grid, layer by layer from below.

    shape: columns along x and y, layers along z. spacing [m]: one number or (3,). The grid is centred on `origin` in
    x and y and starts at its z. jitter [m]: each coordinate is moved at random by at most this much.
    """
    counts = [
        checks.integer(f"grid_points.shape ({a})", s, at_least=1, error=SceneError)
        for a, s in zip("xyz", _three("grid_points.shape", shape))
    ]
    memory.check_packing("grid_points", math.prod(counts))
    step = checks.positive_array("grid_points.spacing", spacing, 3, unit="m")
    start = checks.vector("grid_points.origin", origin)
    x, y, z = (np.arange(c) for c in counts)
    grid = np.stack(np.meshgrid(z, y, x, indexing="ij"), axis=-1).reshape(-1, 3)[:, ::-1].astype(float)
    grid -= np.array([(counts[0] - 1) / 2, (counts[1] - 1) / 2, 0.0])
    return start + grid * step + _jitter("grid_points", jitter, seed, len(grid))


def lattice_points(
    shape: ArrayLike,
    diameter: float,
    *,
    origin: ArrayLike = (0.0, 0.0, 0.0),
    jitter: float = 0.0,
    seed: int = 0,
) -> np.ndarray:
    """Centres (n, 3) of touching equal spheres in a face-centred cubic lattice of square layers.

    Each sphere rests on four of the layer below; odd layers have one column less along x and y.
    """
    counts = [
        checks.integer(f"lattice_points.shape ({a})", s, at_least=1, error=SceneError)
        for a, s in zip("xyz", _three("lattice_points.shape", shape))
    ]
    memory.check_packing("lattice_points", math.prod(counts))
    d = checks.number("lattice_points.diameter", diameter, above=0.0, unit="m", error=SceneError)
    start = checks.vector("lattice_points.origin", origin)
    layers = []
    for k in range(counts[2]):
        odd = k % 2
        nx, ny = counts[0] - odd, counts[1] - odd
        if nx < 1 or ny < 1:
            continue
        x, y = np.meshgrid(np.arange(nx) - (nx - 1) / 2, np.arange(ny) - (ny - 1) / 2, indexing="xy")
        layers.append(np.stack([d * x.ravel(), d * y.ravel(), np.full(nx * ny, k * d / np.sqrt(2.0))], axis=1))
    points = start + np.concatenate(layers)
    return points + _jitter("lattice_points", jitter, seed, len(points))


def random_points(
    count: int,
    radius: ArrayLike,
    *,
    low: ArrayLike,
    high: ArrayLike,
    seed: int = 0,
    tries: int = 200,
) -> np.ndarray:
    """Centres (count, 3) of spheres thrown into a box one after the other, none overlapping another or the box.

    radius [m]: one or (count,). low, high: corners of the box [m]. Raises, saying how many fitted, when a sphere
    finds no place in `tries` throws (random packing gets hard beyond a third of the volume).
    """
    n = checks.integer("random_points.count", count, at_least=1, error=SceneError)
    memory.check_packing("random_points", n)
    r = checks.positive_array("random_points.radius", radius, n, unit="m")
    lo, hi = checks.vector("random_points.low", low), checks.vector("random_points.high", high)
    if np.any(hi - lo < 2 * r.max()):
        raise SceneError(
            message(
                "random_points",
                "the box must hold the largest sphere",
                f"box {(hi - lo).tolist()}, diameter {2 * r.max():g}",
                "Enlarge the box.",
            )
        )
    checks.integer("random_points.tries", tries, at_least=1, error=SceneError)
    rng = np.random.default_rng(checks.seed("random_points.seed", seed))
    cell = 2.0 * r.max()
    points = np.zeros((n, 3))
    cells: dict[tuple[int, int, int], list[int]] = {}
    neighbours = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]
    for i in range(n):
        for _ in range(tries):
            p = rng.uniform(lo + r[i], hi - r[i])
            x, y, z = (int(c) for c in np.floor((p - lo) / cell))
            home = x, y, z
            near = [j for d in neighbours for j in cells.get((home[0] + d[0], home[1] + d[1], home[2] + d[2]), ())]
            if not near or np.all(np.sum((points[near] - p) ** 2, axis=1) >= (r[near] + r[i]) ** 2):
                points[i] = p
                cells.setdefault(home, []).append(i)
                break
        else:
            raise SceneError(
                message(
                    "random_points",
                    f"found room for {i} of {n} spheres",
                    f"{tries} tries for the next",
                    "Enlarge the box or use fewer or smaller spheres.",
                )
            )
    return points


def _three(where: str, value: Any) -> Sequence[int]:
    if checks.dimensions(value) != 1 or np.shape(value) != (3,):
        raise SceneError(
            message(where, "must have 3 entries", checks.short(value), "Give columns in x, y and layers in z.")
        )
    return value


def _jitter(where: str, jitter: float, seed: int, count: int) -> np.ndarray:
    amount = checks.number(where + ".jitter", jitter, at_least=0.0, unit="m", error=SceneError)
    checks.seed(where + ".seed", seed)
    if amount == 0.0:
        return np.zeros((count, 3))
    return np.random.default_rng(seed).uniform(-amount, amount, (count, 3))
