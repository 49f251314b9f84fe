"""The scene of the page: what is drawn in the browser, brought up to date from snapshots."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ...enums import BodyKind, ShapeKind, ShapeTrait
from ...errors import TumbleError
from ...scene import rotation
from ..coloring import coloring
from ..framing import fit_camera, focus_ball
from ..geometry import world_shapes
from ..snapshot import Snapshot
from .instances import groups_of, placed

__all__ = ["Stage", "Wanted"]

ARROWS = 4000
"""Contact forces that are drawn: the largest ones"""
PICKED = (255, 221, 51)
FLOOR, LINE, EARTH, ARROW, JOINT = (222, 224, 228), (190, 194, 202), (205, 197, 180), (178, 34, 60), (30, 30, 40)
HIDDEN = np.float32(1e-6)
"""Scale of what is not to be seen"""


class Wanted:
    """What the controls are set to."""

    color = "body"
    walls = "glass"
    ground = True
    forces = False
    joints = True
    clip = "off"
    """off, or the axis along which it cuts"""
    cut = 1.0
    """Where, as a part of the scene's extent"""
    picked: int | None = None
    """A body"""

    def key(self) -> tuple[Any, ...]:
        """What decides on colours and sizes, not on places."""
        return self.color, self.clip, self.cut, self.picked


class Stage:
    """Handles of everything that is drawn, and how far each is up to date. One thread at a time draws."""

    def __init__(self, server: Any, shot: Snapshot, limits: tuple[float, float] | None = None) -> None:
        self._server, self._limits = server, limits
        shapes = world_shapes(shot.model, shot.position, shot.orientation, shot.present)
        self.origin, self.radius = focus_ball(shapes)
        camera = fit_camera(shapes, (16, 9))
        eye, target = np.array(camera.eye) - self.origin, np.array(camera.target) - self.origin
        server.initial_camera.position = tuple(target + 0.45 * (eye - target))  # its lens is wider than ours
        server.initial_camera.look_at = tuple(target)
        server.scene.configure_environment_map(environment_intensity=0.5)
        self._groups = groups_of(shot)
        self._handles: list[Any] = []
        self._last: tuple[Any, ...] = ()
        self._present: np.ndarray | None = None
        self._lock = threading.Lock()
        self.wanted = Wanted()
        self.drawn = 0
        """Pictures handed out"""
        self._build(shot)
        self._floors(shot)

    def _build(self, shot: Snapshot) -> None:
        scene = self._server.scene
        for number, group in enumerate(self._groups):
            name = f"/{group.part}/{number}"
            position, turn = placed(group, shot, self.origin)
            count = len(group.shape)
            color = np.tile(np.array(EARTH, np.uint8), (count, 1))
            if group.as_points:
                size = 2.0 * float(np.median(group.scale))
                handle = scene.add_point_cloud(
                    name, position, color, point_size=size, point_shape="circle", precision="float32"
                )
            else:
                handle = scene.add_batched_meshes_simple(
                    name,
                    group.vertex.astype(np.float32),
                    group.triangle.astype(np.uint32),
                    np.tile(np.array([1.0, 0, 0, 0], np.float32), (count, 1)) if turn is None else turn,
                    position,
                    batched_scales=group.scale.astype(np.float32),
                    batched_colors=color,
                    opacity=0.25 if group.part == "walls" else None,
                    lod="off",
                    flat_shading=group.kind in (ShapeKind.BOX, ShapeKind.HULL),
                    side="double" if ShapeTrait.SURFACE in group.kind.traits else "front",
                    cast_shadow=group.part == "bodies" and count <= 5000,
                )
            self._handles.append(handle)
        none = np.zeros((1, 2, 3), np.float32)
        thick = 0.006 * self.radius
        self._arrows = scene.add_arrows(
            "/forces", none, ARROW, shaft_radius=thick, head_radius=2.5 * thick, head_length=5 * thick, visible=False
        )
        self._joints = scene.add_line_segments(
            "/joints", none, JOINT, thickness=4.0, thickness_units="screen", visible=False
        )
        spots = np.zeros((1, 3), np.float32)
        self._spots = scene.add_point_cloud(
            "/anchors", spots, JOINT, point_size=4 * thick, point_shape="circle", precision="float32", visible=False
        )

    def _floors(self, shot: Snapshot) -> None:
        model, self._grids = shot.model, []
        shapes = world_shapes(model, shot.position, shot.orientation)
        cell = float(10.0 ** np.round(np.log10(0.35 * self.radius)))
        for number, plane in enumerate(np.flatnonzero(shapes.kind == ShapeKind.HALF_SPACE)):
            body = int(shapes.body[plane])
            turn = rotation.multiply(
                rotation.multiply(shot.orientation[body : body + 1], model.body_axes[body : body + 1]),
                np.asarray(model.shape_orientation)[plane : plane + 1],
            )[0]
            normal = shapes.turn[plane, :, 2]
            foot = -normal * ((self.origin - shapes.origin[plane]) @ normal)
            self._grids.append(
                self._server.scene.add_grid(
                    f"/floor/{number}",
                    40 * self.radius,
                    40 * self.radius,
                    cell_size=cell,
                    section_size=5 * cell,
                    cell_color=LINE,
                    section_color=LINE,
                    plane_color=FLOOR,
                    plane_opacity=0.9,
                    wxyz=tuple(turn),
                    position=tuple(foot),
                    fade_distance=20 * self.radius,
                )
            )

    def set_limits(self, limits: tuple[float, float] | None) -> None:
        """What the colours span from now on."""
        self._limits = limits

    def show(self, shot: Snapshot) -> None:
        """Bring the page up to date."""
        with self._lock, self._server.atomic():
            self._visibility()
            seen = shot.present & ~self.clipped(shot)
            self._places(shot, seen)
            key = (*self.wanted.key(), shot.present.tobytes() if not shot.present.all() else b"")
            if key != self._last or self.wanted.color in ("speed", "force") or self.wanted.clip != "off":
                self._last = key
                self._looks(shot, seen)
            self._forces(shot)
            self._mechanism(shot)
            self.drawn += 1

    def _visibility(self) -> None:
        w = self.wanted
        for group, handle in zip(self._groups, self._handles):
            if group.part == "walls":
                handle.visible = w.walls != "off"
                handle.opacity = 0.25 if w.walls == "glass" else None
            elif group.part == "ground":
                handle.visible = w.ground
        for grid in self._grids:
            grid.visible = w.ground

    @staticmethod
    def _stand_ins(body: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """For each of some points itself, or one that is seen: a point alone cannot be hidden."""
        own = np.arange(len(body))
        shown = np.flatnonzero(seen[body])
        return np.where(seen[body], own, shown[0]) if len(shown) else own

    def _places(self, shot: Snapshot, seen: np.ndarray) -> None:
        fixed = np.asarray(shot.model.body_kind) == BodyKind.STATIC
        for group, handle in zip(self._groups, self._handles):
            if fixed[group.body].all() and self.drawn:
                continue
            position, turn = placed(group, shot, self.origin)
            if group.as_points:
                handle.visible = bool(seen[group.body].any())
                handle.points = position[self._stand_ins(group.body, seen)]
                continue
            handle.batched_positions = position
            if turn is not None:
                handle.batched_wxyzs = turn

    def _looks(self, shot: Snapshot, seen: np.ndarray) -> None:
        """Colours, and who is there at all."""
        color = _bytes(self._coloring(shot))
        if self.wanted.picked is not None:
            color[self.wanted.picked] = PICKED
        for group, handle in zip(self._groups, self._handles):
            if group.part == "ground":
                continue
            if group.as_points:
                handle.colors = color[group.body][self._stand_ins(group.body, seen)]
                continue
            handle.batched_colors = color[group.body]
            handle.batched_scales = np.where(seen[group.body, None], group.scale, HIDDEN).astype(np.float32)

    def _coloring(self, shot: Snapshot) -> np.ndarray:
        try:
            return coloring(shot, self.wanted.color, self._limits).color
        except TumbleError:  # what is not recorded is not offered; live, there may be no contacts yet
            return coloring(shot, "body").color

    def clipped(self, shot: Snapshot) -> np.ndarray:
        """(n,) bodies beyond the clipping plane."""
        if self.wanted.clip == "off":
            return np.zeros(len(shot.present), bool)
        axis = "xyz".index(self.wanted.clip)
        place = shot.position[:, axis] - self.origin[axis]
        moves = np.asarray(shot.model.body_kind) == BodyKind.DYNAMIC
        return moves & (place > (2.0 * self.wanted.cut - 1.0) * 1.05 * self.radius)

    def _forces(self, shot: Snapshot) -> None:
        if not self.wanted.forces:
            self._arrows.visible = False
            return
        try:
            c = shot.contacts
        except TumbleError:
            return
        size = np.linalg.norm(c["force"], axis=1)
        largest = np.argsort(size)[::-1][:ARROWS]
        largest = largest[size[largest] > 0.0]
        self._arrows.visible = bool(len(largest))
        if len(largest):
            scale = 0.5 * self.radius / float(size[largest[0]])
            start = c["point"][largest] - self.origin
            self._arrows.points = np.stack([start, start + scale * c["force"][largest]], axis=1).astype(np.float32)

    def _mechanism(self, shot: Snapshot) -> None:
        ends = shot.joints - self.origin if self.wanted.joints else np.zeros((0, 2, 3))
        self._joints.visible = self._spots.visible = bool(len(ends))
        if len(ends):
            self._joints.points = ends.astype(np.float32)
            self._spots.points = ends.reshape(-1, 3).astype(np.float32)

    def pick(self, shot: Snapshot, start: np.ndarray, direction: np.ndarray) -> int | None:
        """The nearest dynamic body on a ray, by the boxes around its shapes."""
        shapes = world_shapes(shot.model, shot.position, shot.orientation)
        local = np.einsum("kij,ki->kj", shapes.turn, start + self.origin - shapes.center)
        slope = np.einsum("kij,i->kj", shapes.turn, direction)
        with np.errstate(divide="ignore", invalid="ignore"):
            sides = np.stack([(-shapes.half - local) / slope, (shapes.half - local) / slope])
        enter, leave = np.nanmax(sides.min(axis=0), axis=1), np.nanmin(sides.max(axis=0), axis=1)
        middle = -np.einsum("kj,kj->k", local, slope)
        beside = np.linalg.norm(local + middle[:, None] * slope, axis=1) > shapes.bound
        seen = (shot.present & ~self.clipped(shot))[shapes.body] & shapes.moves
        hit = np.flatnonzero(seen & (enter < leave) & (leave > 0.0) & ~beside)
        return int(shapes.body[hit[np.argmin(enter[hit])]]) if len(hit) else None


def _bytes(color: np.ndarray) -> np.ndarray:
    """A little darker than in pictures: the page's lights are bright."""
    return (255.0 * np.clip(color, 0.0, 1.0) ** 1.6 + 0.5).astype(np.uint8)
