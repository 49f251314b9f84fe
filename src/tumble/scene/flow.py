"""The part of the scene builder that lets bodies in, takes them out and counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import checks, memory
from ..enums import BodyKind, Presence
from ..errors import SceneError, message
from .batch import Batch
from .flow_model import Emitter, FlowModel, MeasuringPlane, Sink
from .joint_model import JointModel
from .mass import mass_properties
from .materials import Material
from .mixture import Mixture, mixed, scaled_shape, scales
from .model import State
from .regions import BoxRegion, DiscRegion, Region, unit_vector
from .shapes import as_placed

__all__ = ["Flow"]


class Flow:
    """Emitters, sinks and measuring planes. `SceneBuilder` has them: use its methods."""

    _batches: list[Batch]
    _names: dict[str, tuple[int, int]]
    _label: Callable[[str, str | None], str]
    _add: Callable[..., range]

    def __init__(self) -> None:
        super().__init__()
        self._emitters: list[Emitter] = []
        self._sinks: list[Sink] = []
        self._planes: list[MeasuringPlane] = []

    def add_emitter(
        self,
        shapes: Any,
        *,
        count: int,
        region: Region,
        rate: float | None = None,
        mass_rate: float | None = None,
        mass: float | None = None,
        density: float | None = None,
        size_range: ArrayLike = (1.0, 1.0),
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        angular_velocity: ArrayLike = (0.0, 0.0, 0.0),
        orientation: ArrayLike | str = (1.0, 0.0, 0.0, 0.0),
        material: Material | str | Sequence[Material | str] | None = None,
        locked: Iterable[str] = (),
        group: int = 1,
        mask: int = 0xFFFFFFFF,
        start: float = 0.0,
        seed: int = 0,
        name: str | None = None,
    ) -> range:
        """Bodies that appear at a rate, `count` in all; returns their indices.

        shapes (or a `Mixture` of several kinds), mass [kg] or density [kg/m^3], material, locked, group, mask as in
        `add_body`. Centres lie anywhere in the region (`BoxRegion` or `DiscRegion`). rate [bodies/s] or mass_rate
        [kg/s], counted from the time `start`
        [s]. size_range: each body is scaled by a factor from this range (a single shape other than a hull; the mass
        is then that of factor 1). velocity [m/s] and angular_velocity [rad/s] at the start; orientation: a quaternion,
        or "random". A body that would touch another waits until there is room. seed: of sizes, places and
        orientations. Absent bodies touch nothing and weigh nothing.
        """
        where = self._label("add_emitter", name)
        n = checks.integer(where + ".count", count, at_least=1, error=SceneError)
        memory.check_bodies(where + ".count", n)
        if not isinstance(region, (BoxRegion, DiscRegion)):
            raise SceneError(
                message(
                    where + ".region", "must be a BoxRegion or DiscRegion", checks.short(region), "See docs/flow.md."
                )
            )
        amount, by_mass = _rate(where, rate, mass_rate)
        rng = np.random.default_rng([checks.seed(where + ".seed", seed), 0])
        own = _bodies_of(where, shapes, n, mass, density, size_range, rng)
        masses = own["mass"]
        turn = None
        if not isinstance(orientation, str):
            turn = checks.quaternion(where + ".orientation", orientation)
        elif orientation != "random":
            raise SceneError(
                message(
                    where + ".orientation", "must be a quaternion or 'random'", checks.short(orientation), "Correct it."
                )
            )
        speed = checks.vector(where + ".velocity", velocity)
        spin = checks.vector(where + ".angular_velocity", angular_velocity)
        begin = checks.number(where + ".start", start, at_least=0.0, unit="s", error=SceneError)
        self._free_flow_name(where, name)
        low, high = region.box
        bodies = self._add(
            where,
            own.pop("shapes"),
            BodyKind.DYNAMIC,
            n,
            name=name,
            material=material,
            position=0.5 * (low + high),
            orientation=(1.0, 0.0, 0.0, 0.0) if turn is None else turn,
            locked=locked,
            group=group,
            mask=mask,
            **own,
        )
        free = self._batches[-1].locked[0] == 0
        self._emitters.append(
            Emitter(
                self._batches[-1].name,
                bodies.start,
                n,
                region,
                amount,
                np.concatenate([[0.0], np.cumsum(masses)[:-1]]) if by_mass else np.arange(float(n)),
                np.where(free[:3], speed, 0.0),
                np.where(free[3:], spin, 0.0),
                turn,
                begin,
                seed,
            )
        )
        return bodies

    def add_sink(
        self,
        *,
        point: ArrayLike | None = None,
        normal: ArrayLike = (0.0, 0.0, 1.0),
        inside: BoxRegion | None = None,
        outside: BoxRegion | None = None,
        name: str | None = None,
    ) -> str:
        """Take dynamic bodies out of the scene when their centres are behind a plane, or in or out of a box.

        point [m], normal: the plane; bodies on the side away from the normal go ("below" for the default). Bodies of
        joints, motors and springs stay. Returns the sink's name.
        """
        where = self._label("add_sink", name)
        if sum(x is not None for x in (point, inside, outside)) != 1:
            raise SceneError(
                message(
                    where,
                    "needs one of point, inside and outside",
                    f"point={point}, inside={inside}, outside={outside}",
                    "For example point=(0, 0, -1): bodies below -1 m are taken.",
                )
            )
        name = self._free_flow_name(where, name) or f"sink{len(self._sinks)}"
        if point is not None:
            sink = Sink(name, checks.vector(where + ".point", point), unit_vector(where + ".normal", normal))
        else:
            box = outside if inside is None else inside
            if not isinstance(box, BoxRegion):
                raise SceneError(
                    message(where, "inside and outside must be a BoxRegion", checks.short(box), "Give one.")
                )
            sink = Sink(name, box=box, outside=inside is None)
        self._sinks.append(sink)
        return name

    def add_measuring_plane(
        self,
        *,
        point: ArrayLike,
        normal: ArrayLike = (0.0, 0.0, 1.0),
        radius: float | None = None,
        size: ArrayLike | None = None,
        axis: ArrayLike = (1.0, 0.0, 0.0),
        name: str | None = None,
    ) -> str:
        """Count the bodies and the mass whose centres cross a plane, forward (along the normal) and backward.

        point [m], normal: the plane; radius [m]: only a disc about the point; size: only a rectangle with these two
        sides [m], the first along `axis`. Returns the plane's name; totals of every step are columns of the reports.
        """
        where = self._label("add_measuring_plane", name)
        if radius is not None and size is not None:
            raise SceneError(message(where, "takes radius or size, not both", f"{radius}, {size}", "Leave one out."))
        place, up = checks.vector(where + ".point", point), unit_vector(where + ".normal", normal)
        if radius is not None:
            radius = checks.number(where + ".radius", radius, above=0.0, unit="m", error=SceneError)
        along = unit_vector(where + ".axis", axis)
        if size is not None:
            size = tuple(checks.positive_array(where + ".size", checks.array(where + ".size", size, (2,)), 2, unit="m"))
            if np.linalg.norm(np.cross(up, along)) < 1e-6:
                raise SceneError(message(where + ".axis", "must not be the normal", axis, "Give a side's direction."))
        name = self._free_flow_name(where, name) or f"plane{len(self._planes)}"
        self._planes.append(MeasuringPlane(name, place, up, radius, size, along))
        return name

    def _free_flow_name(self, where: str, name: str | None) -> str | None:
        """Totals are columns under the name, so it is unique here and no path."""
        if name is None:
            return None
        if not isinstance(name, str) or not name or any(c in name for c in "[]/."):
            raise SceneError(
                message(
                    where + ".name",
                    "must be a text without brackets, dots and slashes",
                    checks.short(name),
                    "Change it.",
                )
            )
        if name in {x.name for x in (*self._emitters, *self._sinks, *self._planes)}:
            raise SceneError(message(where + ".name", "names are unique", checks.short(name), "Choose another name."))
        return name

    def _flow_model(self, joints: JointModel, initial: State) -> FlowModel:
        """Freeze, and mark in the initial state who is there."""
        jointed = np.unique(joints.frame_body).astype(np.int64)
        flow = FlowModel(tuple(self._emitters), tuple(self._sinks), tuple(self._planes), jointed)
        if flow.changes:
            initial.presence = np.full(len(initial.position), Presence.PRESENT, np.int8)
            for e in self._emitters:
                initial.presence[e.first : e.first + e.count] = Presence.WAITING
                held = jointed[(jointed >= e.first) & (jointed < e.first + e.count)]
                if held.size:
                    raise SceneError(
                        message(
                            f"emitter '{e.name}'", "its bodies take no joints", f"body {held[0]}", "Use add_copies."
                        )
                    )
        initial.flow = np.zeros(len(flow.columns))
        return flow


def _rate(where: str, rate: float | None, mass_rate: float | None) -> tuple[float, bool]:
    """The rate, and whether it is one of mass."""
    if (rate is None) == (mass_rate is None):
        raise SceneError(
            message(
                where,
                "needs either rate [bodies/s] or mass_rate [kg/s]",
                f"rate={rate}, mass_rate={mass_rate}",
                "Give exactly one of them.",
            )
        )
    if rate is not None:
        return checks.number(where + ".rate", rate, above=0.0, unit="bodies/s", error=SceneError), False
    return checks.number(where + ".mass_rate", mass_rate, above=0.0, unit="kg/s", error=SceneError), True


def _bodies_of(
    where: str,
    shapes: Any,
    count: int,
    mass: float | None,
    density: float | None,
    size_range: ArrayLike,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """What the bodies of an emitter are made of."""
    if isinstance(shapes, Mixture):
        if not np.array_equal(np.asarray(size_range), (1.0, 1.0)):
            remedy = "Give Mixture.size_ranges."
            raise SceneError(message(where + ".size_range", "is told kind by kind", size_range, remedy))
        return mixed(where, shapes, count, mass, density, rng)
    placed = as_placed(where, shapes)
    unit = mass_properties(where, placed, mass=mass, density=density)
    scale = scales(where, placed, unit.center, size_range, count, rng)
    return {
        "shapes": placed,
        "mass": unit.mass * scale**3,
        "inertia": unit.moments * (scale**5)[:, None],
        "center": unit.center,
        "axes": unit.axes,
        **scaled_shape(placed, scale),
    }
