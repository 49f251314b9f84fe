"""Copies of a part: an assembly of bodies with joints and motors, put at many poses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..errors import SceneError, message
from . import rotation
from .batch import Batch, places, rows
from .joint_frames import WORLD
from .joint_model import Controller, Element, Motor

if TYPE_CHECKING:
    from .builder import SceneBuilder

__all__ = ["replicate"]

LOCK_TOLERANCE = 1e-9
"""By how much a turn may carry a locked axis off itself."""


def replicate(scene: SceneBuilder, part: Any, position: Any, orientation: Any, name: str) -> np.ndarray:
    """See `SceneBuilder.replicate`. Everything is checked before a body is added."""
    where = "replicate" if not isinstance(name, str) else f"replicate({checks.short(name)})"
    _check_part(where, scene, part)
    points = places(where, position)
    turns = rows(where + ".orientation", checks.as_quaternions(orientation), len(points), 4)
    turns = checks.quaternions(where + ".orientation", turns, len(points))
    scene._check_room(where, len(points) * part._count)
    prefixes = _prefixes(where, scene, part, name, len(points))
    _check_locked(where, np.concatenate([b.locked for b in part._batches]), turns)
    _check_locked(where, np.concatenate([b.locked for b in part._batches]), turns)
    materials = scene._materials.joined(where, part._materials)
    batch = _unit(where, part, materials, points, turns)
    first = scene._count
    for i, prefix in enumerate(prefixes):
        start = first + i * part._count
        scene._names.update((prefix + own, (start + k, count)) for own, (k, count) in part._names.items())
    scene._take(batch)
    _copy_joints(scene, part, first, points, turns, prefixes)
    return np.arange(first, first + batch.count).reshape(len(points), part._count)


def _check_part(where: str, scene: SceneBuilder, part: Any) -> None:
    if not isinstance(part, type(scene)) or part is scene:
        got = "the scene itself" if part is scene else checks.short(part)
        raise SceneError(
            message(where + ".part", "must be another SceneBuilder", got, "Build the part in one of its own.")
        )
    if not part._count:
        raise SceneError(message(where + ".part", "needs at least one body", 0, "Add bodies to it first."))
    moved = any(b.motion is not None for b in part._batches)
    for what, has in (
        ("emitters", part._emitters),
        ("sinks", part._sinks),
        ("measuring planes", part._planes),
        ("force callbacks", part._forces),
        ("prescribed motions", moved),
    ):
        if has:
            got = "a motion" if has is True else f"{len(has)}"
            remedy = "Leave them out of the part and add them to the scene."
            raise SceneError(message(where + ".part", f"{what} cannot be replicated", got, remedy))


def _prefixes(where: str, scene: SceneBuilder, part: SceneBuilder, name: Any, count: int) -> list[str]:
    """What the names of each copy begin with."""
    if not isinstance(name, str) or not name or "[" in name:
        raise SceneError(
            message(where + ".name", "must be a text without brackets", checks.short(name), "Say 'robot'.")
        )
    prefixes = [f"{name}{i}/" for i in range(count)]
    for known, own in ((scene._names, part._names), (scene._numbers, part._numbers)):
        taken = next((p + n for p in prefixes for n in own if p + n in known), None)
        if taken is not None:
            raise SceneError(message(where + ".name", "names are unique", checks.short(taken), "Choose another name."))
    return prefixes


def _unit(where: str, part: SceneBuilder, materials: np.ndarray, points: np.ndarray, turns: np.ndarray) -> Batch:
    """All bodies of the part as one unit, and a copy of it at each pose."""
    batches, count = part._batches, len(points) * part._count

    def each(column: str) -> np.ndarray:
        """What copies within the part share, for each of its bodies."""
        values = [getattr(b, column) for b in batches]
        return np.concatenate([np.tile(v, (b.copies,) + (1,) * (v.ndim - 1)) for v, b in zip(values, batches)])

    def sizes(column: str) -> np.ndarray:
        """What may differ between copies within the part, for each of its shapes."""
        values = [getattr(b, column) for b in batches]
        flat = [np.broadcast_to(v, (b.copies, *v.shape[1:])).reshape(-1, *v.shape[2:]) for v, b in zip(values, batches)]
        return np.concatenate(flat)[None]

    def turned(column: str) -> np.ndarray:
        """Vectors in world axes, for each body of each copy."""
        vectors = np.concatenate([getattr(b, column) for b in batches])
        return rotation.rotate(turns[:, None], vectors).reshape(-1, 3)

    locked = each("locked")
    placed = np.concatenate([b.orientation for b in batches])
    owner = [
        start + (np.arange(b.copies)[:, None] * len(b.kind) + b.owner).ravel()
        for start, b in zip(part._starts, batches)
    ]
    batch = Batch(
        name="",
        kind=each("kind"),
        count=count,
        mass=np.tile(np.concatenate([b.mass for b in batches]), len(points)),
        inertia=np.tile(np.concatenate([b.inertia for b in batches]), (len(points), 1)),
        center=each("center"),
        axes=each("axes"),
        position=(points[:, None] + turned("position").reshape(len(points), -1, 3)).reshape(-1, 3),
        orientation=checks.quaternions(where, rotation.multiply(turns[:, None], placed).reshape(-1, 4), count),
        velocity=turned("velocity"),
        angular_velocity=turned("angular_velocity"),
        force=turned("force"),
        torque=turned("torque"),
        locked=locked,
        group=each("group"),
        mask=each("mask"),
        shapes=tuple(p for b in batches for p in b.shapes * b.copies),
        owner=np.concatenate(owner),
        parameters=sizes("parameters"),
        bound=sizes("bound"),
        smallest=sizes("smallest"),
        material=materials[np.concatenate([np.tile(np.array(b.material, np.int64), b.copies) for b in batches])],
        motion=None,
    )
    still = np.tile(locked, (len(points), 1))
    batch.velocity[still[:, :3]] = 0.0
    batch.angular_velocity[still[:, 3:]] = 0.0
    return batch


def _check_locked(where: str, locked: np.ndarray, turns: np.ndarray) -> None:
    """Locked axes are those of the world: a copy may be turned only so that they stay what they are."""
    axes = rotation.matrix(turns)
    for own in np.unique(np.concatenate([locked[:, :3], locked[:, 3:]]), axis=0):
        carried = np.einsum("nij,j,nkj->nik", axes, own.astype(float), axes)
        off = np.abs(carried - np.diag(own)).max(axis=(1, 2)) > LOCK_TOLERANCE
        if np.any(off):
            got = f"orientation {turns[off][0].tolist()} at index {int(np.flatnonzero(off)[0])}"
            remedy = "Turn it about that axis, or hold the body by a joint."
            raise SceneError(message(where, "a part with locked axes must not be turned off them", got, remedy))


def _copy_joints(
    scene: SceneBuilder, part: SceneBuilder, first: int, points: np.ndarray, turns: np.ndarray, prefixes: list[str]
) -> None:
    """Frames, coordinates, rows, elements, motors, controllers and excluded pairs of each copy."""
    n = len(points)
    sizes, start = (
        {
            "body": bodies,
            "frame": len(builder._frames),
            "coord": len(builder._coords),
            "row": len(builder._rows),
            "element": len(builder._elements),
            "motor": len(builder._motors),
        }
        for builder, bodies in ((part, part._count), (scene, first))
    )

    def moved(numbers: np.ndarray, kind: str) -> np.ndarray:
        """Numbers of a kind of thing in each copy, one copy after another; below zero is none."""
        copy = np.repeat(np.arange(n), len(numbers) // n).reshape(-1, *(1,) * (numbers.ndim - 1))
        return np.where(numbers < 0, numbers, numbers + start[kind] + copy * sizes[kind])

    frames, coords, own_rows = (np.tile(t.rows, n) for t in (part._frames, part._coords, part._rows))
    pairs = np.tile(part._excluded.rows, n)
    _place_world_frames(frames, points, turns)
    frames["body"], pairs["pair"] = moved(frames["body"], "body"), moved(pairs["pair"], "body")
    coords["frame"] = moved(coords["frame"], "frame")
    for column, kind in (("element", "element"), ("coord", "coord"), ("motor", "motor")):
        own_rows[column] = moved(own_rows[column], kind)
    scene._frames.extend(frames)
    scene._coords.extend(coords)
    scene._rows.extend(own_rows)
    scene._excluded.extend(pairs)
    for i, prefix in enumerate(prefixes):
        body, frame, coord, row, element, motor = (start[k] + i * sizes[k] for k in start)
        for number, e in enumerate(part._elements, start=element):
            a, b = e.bodies
            scene._numbers[prefix + e.name] = number
            scene._elements.append(
                Element(
                    prefix + e.name,
                    e.kind,
                    e.frame + frame,
                    (a if a == WORLD else a + body, b if b == WORLD else b + body),
                    e.turn if e.turn < 0 else e.turn + coord,
                    e.slide if e.slide < 0 else e.slide + coord,
                )
            )
        for m in part._motors:
            at = m.row if m.row < 0 else m.row + row
            scene._motors.append(
                Motor(prefix + m.name, m.element + element, m.coordinate + coord, m.mode, at, m.target)
            )
        scene._controllers += [Controller(c.callback, c.motors + motor) for c in part._controllers]
    scene._ground = scene._ground or part._ground


def _place_world_frames(frames: np.ndarray, points: np.ndarray, turns: np.ndarray) -> None:
    """Frames of joints to the world go with their copy; those on bodies do so by themselves."""
    copy = np.repeat(np.arange(len(points)), len(frames) // len(points))
    for side in (0, 1):
        world = frames["body"][:, side] == WORLD
        turn, at = turns[copy[world]], points[copy[world]]
        frames["position"][world, side] = at + rotation.rotate(turn, frames["position"][world, side])
        frames["orientation"][world, side] = rotation.multiply(turn, frames["orientation"][world, side])
