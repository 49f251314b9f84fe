"""What people build again and again: funnels, hoppers, drums, screws and walls, as meshes and boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .. import checks
from ..errors import SceneError, message
from . import rotation
from .meshes import Mesh
from .shape import Placed, positive_length
from .shapes import Box

__all__ = ["drum", "funnel", "hopper", "screw", "wall"]


def funnel(
    *, top: float, bottom: float, height: float, spout: float = 0.0, wall: float = 0.0, thickness: float | None = None,
    segments: int = 48,
) -> Mesh:  # fmt: skip
    """A round funnel about the z axis with its outlet at z = 0.

    top, bottom: inner radii of the cone [m]; height: of the cone; spout: of the tube below it, wall: of the tube above
    it [m]. thickness [m]: a fiftieth of the larger radius if left out.
    """
    radii = [positive_length(f"funnel.{n}", v) for n, v in (("top", top), ("bottom", bottom))]
    sides = checks.integer("funnel.segments", segments, at_least=3, error=SceneError)
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    sizes = np.array(radii)[:, None] * np.ones(2)
    return _shell("funnel", unit, sizes, height, spout, wall, thickness)


def hopper(
    *, top: ArrayLike, bottom: ArrayLike, height: float, spout: float = 0.0, wall: float = 0.0,
    thickness: float | None = None,
) -> Mesh:  # fmt: skip
    """A hopper with four sloping walls and its outlet at z = 0.

    top, bottom: inner width and depth (x, y) [m]; height: of the slopes; spout: of the straight walls below them, wall:
    of those above them [m]. thickness [m]: a fiftieth of the larger width if left out.
    """
    ends = [checks.positive_array(f"hopper.{n}", v, 2, unit="m") for n, v in (("top", top), ("bottom", bottom))]
    corners = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)], float)
    return _shell("hopper", corners, 0.5 * np.array(ends), height, spout, wall, thickness)


def _shell(
    where: str,
    outline: np.ndarray,
    sizes: np.ndarray,
    height: float,
    spout: float,
    wall: float,
    thickness: float | None,
) -> Mesh:
    """Walls about the z axis: an outline (k, 2) scaled by half-sizes (2, 2) of the top and of the bottom."""
    top, bottom = sizes
    if not np.all(top > bottom):
        rule, got = "top must be larger than bottom", f"{top.tolist()} and {bottom.tolist()}"
        raise SceneError(message(where, rule, got, "Turn it round by its orientation."))
    cone = positive_length(f"{where}.height", height)
    below, above = (checks.number(f"{where}.{n}", v, at_least=0.0, unit="m", error=SceneError)
                    for n, v in (("spout", spout), ("wall", wall)))  # fmt: skip
    t = 0.02 * 2.0 * float(top.max()) if thickness is None else positive_length(f"{where}.thickness", thickness)
    levels = [(bottom, 0.0), *([(bottom, below)] if below else []), (top, below + cone)]
    levels += [(top, below + cone + above)] if above else []
    inner = [np.column_stack([outline * size, np.full(len(outline), z)]) for size, z in levels]
    outer = [np.column_stack([outline * (size + t), np.full(len(outline), z)]) for size, z in levels]
    return _rings([*inner, *outer[::-1]], closed=True)


def drum(*, radius: float, length: float, segments: int = 64) -> Mesh:
    """A closed drum about the z axis, seen from inside: free within, solid all round. Turn it as a kinematic body."""
    r, half = positive_length("drum.radius", radius), 0.5 * positive_length("drum.length", length)
    sides = checks.integer("drum.segments", segments, at_least=3, error=SceneError)
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    ring = np.stack([r * np.cos(angle), r * np.sin(angle), np.zeros(sides)], axis=1)
    ends = half * np.array([(0, 0, -1), (0, 0, 1)])
    made = _rings([ring + place for place in ends], closed=False)
    return Mesh(made.vertices, made.triangles[:, ::-1], cavity=True)


def screw(
    *, radius: float, pitch: float, turns: float, shaft: float, thickness: float, segments: int = 32
) -> Mesh:  # fmt: skip
    """A right-handed screw conveyor about the z axis, centred: a blade round a shaft.

    radius: of the blade, shaft: of the shaft, pitch: of one turn, thickness: of the blade [m]; segments: of one turn.
    """
    outer, rod, step, t = (
        positive_length(f"screw.{n}", v)
        for n, v in (("radius", radius), ("shaft", shaft), ("pitch", pitch), ("thickness", thickness))
    )
    count = checks.number("screw.turns", turns, above=0.0, error=SceneError)
    sides = checks.integer("screw.segments", segments, at_least=8, error=SceneError)
    if not rod < outer or not t < step:
        rule, got = "needs shaft < radius and thickness < pitch", f"{rod}, {outer} and {t}, {step}"
        raise SceneError(message("screw", rule, got, "Correct them."))
    angle = np.linspace(0.0, 2.0 * np.pi * count, max(2, round(sides * count) + 1))
    middle = step * angle / (2.0 * np.pi) - 0.5 * step * count
    # The inner edge lies within the shaft, so that no gap is left between the two.
    section = np.array([(0.5 * rod, -0.5), (outer, -0.5), (outer, 0.5), (0.5 * rod, 0.5)])
    blade = _rings(
        [np.column_stack([section[:, 0] * np.cos(a), section[:, 0] * np.sin(a), z + t * section[:, 1]])
         for a, z in zip(angle, middle)],
        closed=False,
    )  # fmt: skip
    around = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    ring = np.stack([rod * np.cos(around), rod * np.sin(around), np.zeros(sides)], axis=1)
    half = 0.5 * (step * count + t) + t
    ends = half * np.array([(0, 0, -1), (0, 0, 1)])
    axle = _rings([ring + place for place in ends], closed=False)
    triangles = np.concatenate([blade.triangles, axle.triangles + len(blade.vertices)])
    return Mesh(np.concatenate([blade.vertices, axle.vertices]), triangles)


def wall(start: ArrayLike, end: ArrayLike, *, height: float, thickness: float) -> Placed:
    """A straight wall that stands on the line from start to end (x, y, z of its foot) [m]."""
    a, b = checks.vector("wall.start", start), checks.vector("wall.end", end)
    along = b - a
    if abs(along[2]) > 1e-12 * np.linalg.norm(along) or not np.linalg.norm(along) > 0.0:
        got = f"{a.tolist()} to {b.tolist()}"
        raise SceneError(message("wall", "must run level from one point to another", got, "Correct the points."))
    tall, wide = positive_length("wall.height", height), positive_length("wall.thickness", thickness)
    turn = rotation.from_axis_angle(np.array([0, 0, 1]), float(np.arctan2(along[1], along[0])))
    return Placed(
        Box((float(np.linalg.norm(along)), wide, tall)), tuple(0.5 * (a + b) + (0, 0, 0.5 * tall)), tuple(turn)
    )


def _rings(rings: Sequence[np.ndarray], *, closed: bool) -> Mesh:
    """A closed surface through rings of as many points each: the last joined to the first, or both ends with lids."""
    count, k = len(rings), len(rings[0])
    points = np.concatenate(rings)
    i = np.arange(k)
    j = (i + 1) % k
    triangles = []
    for ring in range(count if closed else count - 1):
        a, b = ring * k, ((ring + 1) % count) * k
        triangles += [np.stack([a + i, a + j, b + j], axis=1), np.stack([a + i, b + j, b + i], axis=1)]
    if not closed:
        points = np.concatenate([points, [rings[0].mean(axis=0), rings[-1].mean(axis=0)]])
        last = (count - 1) * k
        triangles.append(np.stack([j, i, np.full(k, count * k)], axis=1))
        triangles.append(np.stack([last + i, last + j, np.full(k, count * k + 1)], axis=1))
    corners = np.concatenate(triangles)
    if np.linalg.det(points[corners]).sum() < 0.0:
        corners = corners[:, ::-1]
    return Mesh(points, corners)
