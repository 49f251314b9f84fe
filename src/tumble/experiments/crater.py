"""A ball falls on a bed of grains: depth of the crater against height of fall and density of the ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import radians, sqrt, tan
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

import tumble as tb

from ..errors import ExperimentError, message
from ..sim.report import StepReport
from ..view.picture import render
from . import grains
from .base import Job, expect, overlap_metrics, setting
from .base import Settings as BaseSettings
from .figures import PALETTE, Curve, Panel, draw_panels, draw_pictures
from .grains import Bed
from .settled import nothing

MM = 1e-3
COLUMN, NARROW = 2.0, 1.0
"""Widths of the columns for the level of the surface [diameters of a grain]."""
FALLING = 10.0
"""Grains faster than this are falling [speeds of rest]: steps may be less accurate."""
CONSTANT = 0.14
"""Of Uehara and others, d = C/mu (rho_b/rho_g)^1/2 D^2/3 H^1/3, H the height of fall and the depth together."""


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `crater`.

    The grains fall into a box from a grid, until the root mean square of their speeds has been below `still` for
    `still_time`. (The fastest is not asked: without rolling friction a grain on top rocks for seconds at 10 mm/s.) Each
    drop begins from that bed and its forces, with the ball on the surface and the speed of its fall, and ends when the
    ball's mean speed over `still_time` has been below `still` for that time. A tolerance of 1e-3 is enough for the fall
    only: with it a bed never rests, it shakes at about 1.5 mm/s and packs itself ever denser.

    Depths are measured from the mean over columns of the highest grain. Columns two grains wide hold a grain of the
    topmost layer each; with those of one grain the level lies a third of a grain lower. `crater_constant_narrow` tells
    what that makes; it vanishes with the size of the grains.
    """

    grains: int = setting(500400, "number of grains", quick=4200, at_least=10)
    diameter: float = setting(1.0 * MM, "mean diameter of the grains", unit="m", quick=4.0 * MM, above=0.0)
    spread: float = setting(0.05, "radii differ by at most this part", quick=0.1, at_least=0.0, at_most=0.3)
    density: float = setting(2500.0, "of the grains", unit="kg/m^3", above=0.0)
    friction: float = setting(0.3, "coefficient of friction", above=0.0)
    side: float = setting(100.0 * MM, "inner width and depth of the box", unit="m", quick=80.0 * MM, above=0.0)
    ball_diameter: float = setting(25.4 * MM, "of the ball", unit="m", above=0.0)
    ball_densities: tuple[float, ...] = setting(
        (700.0, 900.0, 2200.0), "of the ball, separated by commas", unit="kg/m^3", quick=(700.0, 2200.0), above=0.0
    )
    heights: tuple[float, ...] = setting(
        (0.05, 0.1, 0.2), "of fall, separated by commas", unit="m", quick=(0.05, 0.2), above=0.0
    )
    repose: float = setting(18.0, "angle of repose of the grains", unit="degrees", above=0.0, at_most=80.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)
    dt: float = setting(1e-4, "time step of the drops", unit="s", quick=2e-4, above=0.0)
    duration: float = setting(0.6, "most simulated time of a drop", unit="s", above=0.0)
    settling_dt: float = setting(2e-4, "time step of the settling", unit="s", quick=5e-4, above=0.0)
    settling: float = setting(1.5, "most simulated time of the settling", unit="s", above=0.0)
    still: float = setting(1e-3, "slower than this is at rest", unit="m/s", above=0.0)
    still_time: float = setting(0.005, "for this time", unit="s", above=0.0)
    seed: int = setting(0, "of jitter and radii", at_least=0)
    tolerance: float = setting(1e-4, "of the solver: natural map", quick=2e-4, at_least=0.0)
    settling_tolerance: float = setting(1e-3, "of the solver while the grains fall", at_least=0.0)
    max_iterations: int = setting(1000, "of the solver", at_least=1)

    def at_scale(self, scale: float, where: str) -> Settings:
        """Fewer and larger grains in the same box: 0.125 has 62550 of 2 mm."""
        return replace(self, grains=max(10, round(scale * self.grains)), diameter=self.diameter * scale ** (-1.0 / 3.0))

    def check(self, where: str) -> None:
        """The box must hold the ball and a column of grains."""
        least = max(self.ball_diameter, 2.0 * grains.reach(self.radius, self.spread))
        if self.side <= least:
            raise ExperimentError(
                message(f"{where}: side", f"must be > {least:g} m", self.side, "Enlarge side or lower the diameters.")
            )

    @property
    def radius(self) -> float:
        """Mean radius of the grains [m]."""
        return 0.5 * self.diameter


class Drop(NamedTuple):
    """One drop of a ball."""

    density: float
    """Of the ball [kg/m^3]"""
    height: float
    """Of fall [m]"""
    time: np.ndarray
    """(k,) [s]"""
    depth: np.ndarray
    """(k,) of the ball's lowest point under the bed's first level [m]"""
    rest: bool
    """Whether the ball came to rest"""
    result: tb.RunResult
    overlap: float
    """Largest overlap over half-sizes"""
    picture: np.ndarray | None


# ---------------------------------------------------------------------- the scene


def start(s: Settings) -> Bed:
    """Grains on a jittered grid in the box."""
    n = grains.columns(s.side, s.radius, s.spread)
    points = grains.grid((n, n, -(-s.grains // n**2)), s.radius, s.spread, s.seed)[: s.grains]
    radius = grains.radii_of(len(points), s.radius, s.spread, s.seed)
    return grains.loose_bed(radius, points)


def build(s: Settings, bed: Bed, ball: tuple[float, float, float] | None = None) -> tb.Model:
    """The box (body 0), the grains and, if given, the ball (last): its density, height of its centre and speed."""
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -s.gravity))
    material = scene.add_material(tb.Material(friction=s.friction))
    height = bed.position[:, 2].max() + 2.0 * s.ball_diameter
    scene.add_static(tb.open_box(inner=(s.side, s.side, height)), material=material, name="box")
    scene.add_spheres(
        bed.radius,
        density=s.density,
        material=material,
        position=bed.position,
        velocity=bed.velocity,
        angular_velocity=bed.spin,
        name="grains",
    )
    if ball is not None:
        density, z, speed = ball
        scene.add_body(
            tb.Sphere(0.5 * s.ball_diameter),
            density=density,
            material=material,
            position=(0.0, 0.0, z),
            velocity=(0.0, 0.0, -speed),
            name="ball",
        )
    return scene.build()


# ---------------------------------------------------------------------- measuring


def level(position: np.ndarray, radius: np.ndarray, side: float, width: float) -> float:
    """Mean over columns of this width, at least, of the top of the highest grain in each [m].

    position (n, 3), radius (n,) of the grains in a square box around the origin. Columns without a grain do not count.
    """
    n = max(1, int(side / width))
    cell = np.clip(((position[:, :2] / side + 0.5) * n).astype(int), 0, n - 1)
    top = np.full(n * n, -np.inf)
    np.maximum.at(top, cell[:, 0] * n + cell[:, 1], position[:, 2] + radius)
    return float(top[np.isfinite(top)].mean())


def mean_speed(velocity: np.ndarray) -> float:
    """Root mean square of the speeds of velocities (n, 3) [m/s]."""
    return float(np.sqrt((velocity**2).sum(axis=1).mean()))


def packing_of(bed: Bed, samples: int = 50000) -> float:
    """Part of the volume that grains fill, in the middle of the bed: away from surface, floor and walls.

    Counted at random points, the same in every call.
    """
    low, high = bed.position.min(axis=0), bed.position.max(axis=0)
    low, high = low + 0.2 * (high - low), high - np.array([0.2, 0.2, 0.3]) * (high - low)
    points = np.random.default_rng(0).uniform(low, high, (samples, 3))
    distance, nearest = cKDTree(bed.position).query(points, k=min(4, len(bed.radius)))
    return float((distance < bed.radius[nearest]).any(axis=1).mean())


def touch_height(bed: Bed, ball_radius: float) -> float:
    """Height of the centre of a ball on the axis of the box that touches the highest grains [m]."""
    across = np.hypot(bed.position[:, 0], bed.position[:, 1])
    reach = ball_radius + bed.radius
    near = across < reach
    return float((bed.position[near, 2] + np.sqrt(reach[near] ** 2 - across[near] ** 2)).max(initial=ball_radius))


def law_length(depth: float, height: float, diameter: float, friction: float, ratio: float) -> float:
    """(rho_b/rho_g)^1/2 D^2/3 H^1/3 / mu [m], H = height + depth, ratio = rho_b/rho_g: depth is C times as much."""
    return sqrt(ratio) * diameter ** (2.0 / 3.0) * (height + depth) ** (1.0 / 3.0) / friction


# ---------------------------------------------------------------------- running


class Stillness:
    """Asked after every step: has a speed been below a limit for a time?"""

    def __init__(self, limit: float, duration: float, speed_of: Callable[[tb.Simulation], float]) -> None:
        """limit [m/s], duration [s]"""
        self._limit, self._time, self._speed_of, self._since = limit, duration, speed_of, None

    def __call__(self, sim: tb.Simulation) -> bool:
        if self._speed_of(sim) > self._limit:
            self._since = None
        elif self._since is None:
            self._since = sim.time
        return self._since is not None and sim.time - self._since >= self._time

    @property
    def reached(self) -> bool:
        """Whether it is still now."""
        return self._since is not None


def _solver(s: Settings, tolerance: float) -> tb.SolverAPGD:
    return tb.SolverAPGD(tolerance=tolerance, max_iterations=s.max_iterations)


def settle(s: Settings, job: Job) -> tuple[Bed, dict[str, float]]:
    """Let the grains fall and come to rest, which takes more accurate steps than the fall."""
    bed = start(s)
    job, options = job.lenient(), tb.StepOptions(dt=s.settling_dt)

    def speed(sim: tb.Simulation) -> float:
        touching = sim.state.memory.uid_a.size > 0  # grains in the air do not rest, however slow
        return mean_speed(sim.state.velocity[1:]) if touching else np.inf

    falling, fall = job.simulate(
        build(s, bed),
        until=s.settling,
        observe=nothing,
        stop=Stillness(FALLING * s.still, s.still_time, speed),
        options=options,
        solver=_solver(s, s.settling_tolerance),
    )
    bed = grains.bed_of(falling, bed.radius)
    sim, rest = job.simulate(
        build(s, bed),
        until=max(0.0, s.settling - fall.time),
        observe=nothing,
        stop=Stillness(s.still, s.still_time, speed),
        memory=grains.memory_of(bed, s.settling_dt),
        options=options,
        solver=_solver(s, s.tolerance),
    )
    found = {
        "settled_speed": mean_speed(sim.state.velocity[1:]),
        "settled_largest_speed": float(np.linalg.norm(sim.state.velocity, axis=1).max()),
        "settling_time": fall.time + rest.time,
    }
    return grains.bed_of(sim, bed.radius), found | grains.accuracy([fall, rest], "settling_")


def drop(s: Settings, job: Job, bed: Bed, density: float, height: float, *, pictured: bool = False) -> Drop:
    """A ball falls on the bed; it starts where it touches the first grain."""
    zero = level(bed.position, bed.radius, s.side, COLUMN * s.diameter)
    r = 0.5 * s.ball_diameter
    z = touch_height(bed, r)
    fall = max(0.0, height - (z - r - zero))
    model = build(s, bed, (density, z, sqrt(2.0 * s.gravity * fall)))
    time, centre = [0.0], [np.array([0.0, 0.0, z])]

    def observe(sim: tb.Simulation, _: StepReport) -> None:
        time.append(sim.time)
        centre.append(sim.state.position[-1].copy())

    def speed(_: tb.Simulation) -> float:
        before = max(0, len(time) - 1 - max(1, round(s.still_time / s.dt)))
        return float(np.linalg.norm(centre[-1] - centre[before])) / (time[-1] - time[before])

    still = Stillness(s.still, s.still_time, speed)
    sim, result = job.lenient().simulate(
        model,
        until=s.duration,
        observe=observe,
        stop=still,
        memory=grains.memory_of(bed, s.dt),
        options=tb.StepOptions(dt=s.dt),
        solver=_solver(s, s.tolerance),
    )
    picture = None
    if pictured:
        z = sim.positions()[:, 2]
        picture = render(model, sim.positions(), sim.orientations(), size=(480, 400), color_by=z)
    depth = zero - (np.array(centre)[:, 2] - r)
    return Drop(density, height, np.array(time), depth, still.reached, result, sim.largest_overlap_ratio, picture)


def run(s: Settings, job: Job) -> dict[str, float]:
    """Settle one bed, then drop every ball from every height on it."""
    unsettled = dict(ball_densities=(), heights=(), ball_diameter=1.0, repose=1.0, dt=1.0, duration=1.0)
    bed, metrics = grains.keep_bed(job.out / "settled.npz", str(replace(s, **unsettled)), lambda: settle(s, job))
    zero, lower = (level(bed.position, bed.radius, s.side, width * s.diameter) for width in (COLUMN, NARROW))
    packing = packing_of(bed)
    metrics |= {"bed_height": zero, "packing": packing, "ball_per_grain": s.ball_diameter / s.diameter}
    drops = []
    for density in s.ball_densities:
        for height in s.heights:
            pictured = density == s.ball_densities[-1]
            drops.append(drop(s, job, bed, density, height, pictured=pictured))
            metrics |= measure(s, drops[-1], packing, lower - zero)
    metrics |= grains.accuracy([d.result for d in drops])
    for key in ("crater_constant", "crater_constant_repose", "crater_constant_narrow"):
        values = [value for name, value in metrics.items() if name.startswith(f"{key}_rho")]
        metrics |= {key: float(np.mean(values)), f"{key}_spread": float(np.std(values))}
    deepest = [[d.depth[-1] for d in drops if d.density == rho] for rho in s.ball_densities]
    metrics |= fit(s, drops)
    metrics["bed_per_depth"] = zero / max(map(max, deepest))
    metrics["drops_creeping"] = sum(not d.rest for d in drops)
    metrics |= expect(
        settled=metrics["settled_speed"] <= s.still,
        at_rest=metrics["drops_creeping"] == 0,
        depth_grows_with_height=all(a < b for row in deepest for a, b in pairwise(row)),
        depth_grows_with_density=all(a < b for column in zip(*deepest) for a, b in pairwise(column)),
        crater_constant=abs(metrics["crater_constant"] / CONSTANT - 1.0) <= (0.15 if len(drops) >= 6 else 0.25),
    )
    draw(s, drops, zero, job)
    return metrics | overlap_metrics(d.overlap for d in drops)


def measure(s: Settings, d: Drop, packing: float, shift: float) -> dict[str, float]:
    """Metrics of one drop: C with the grains' friction and density, with tan(repose) and the bulk density, and with the
    level moved by a shift [m]."""
    suffix = f"_rho{d.density:g}_h{1e3 * d.height:g}mm"
    depth, ratio = float(d.depth[-1]), d.density / s.density
    own = law_length(depth, d.height, s.ball_diameter, s.friction, ratio)
    bulk = law_length(depth, d.height, s.ball_diameter, tan(radians(s.repose)), ratio / packing)
    moved = law_length(depth + shift, d.height - shift, s.ball_diameter, s.friction, ratio)
    return {
        f"depth{suffix}": depth,
        f"stop_time{suffix}": float(d.time[-1]),
        f"crater_constant{suffix}": depth / own,
        f"crater_constant_repose{suffix}": depth / bulk,
        f"crater_constant_narrow{suffix}": (depth + shift) / moved,
    }


def fit(s: Settings, drops: list[Drop]) -> dict[str, float]:
    """Metrics of the straight line through all drops, depth = slope x length of the law + offset.

    An offset that is not small tells that C depends on the depth, as where the bed did not rest.
    """
    if len(drops) < 2:
        return {}
    length = [law_length(d.depth[-1], d.height, s.ball_diameter, s.friction, d.density / s.density) for d in drops]
    slope, offset = np.polyfit(length, [d.depth[-1] for d in drops], 1)
    return {"crater_slope": float(slope), "crater_offset_diameters": float(offset) / s.diameter}


def draw(s: Settings, drops: list[Drop], zero: float, job: Job) -> None:
    """Depths over time, and against the law (Fig. 13 of the paper); pictures of the heaviest ball's craters."""
    path = Panel("depth of the ball [mm]")
    law = Panel("depth [mm]", xlabel=r"$(\rho_b/\rho_g)^{1/2} D^{2/3} H^{1/3} / \mu$ [mm]")
    reach: list[float] = []
    found: list[float] = []
    for rho, color in zip(s.ball_densities, PALETTE):
        own = [d for d in drops if d.density == rho]
        for d, line in zip(own, ("-", "--", ":", "-.")):
            label = f"{rho:g} kg/m$^3$, {1e3 * d.height:g} mm"
            path.curves.append(Curve(label, d.time, d.depth / MM, color, line))
        x = np.array([law_length(d.depth[-1], d.height, s.ball_diameter, s.friction, rho / s.density) for d in own])
        law.curves.append(Curve(f"{rho:g} kg/m$^3$", x / MM, np.array([d.depth[-1] for d in own]) / MM, color, "", "o"))
        reach.append(x.max())
        found.extend(d.depth[-1] / length for d, length in zip(own, x))
    ends, mean = np.array([0.0, max(reach)]), float(np.mean(found))
    law.curves.append(Curve(f"C = {CONSTANT:g} (Uehara and others)", ends / MM, CONSTANT * ends / MM, "0.35", ":"))
    law.curves.append(Curve(f"C = {mean:.3g} (mean)", ends / MM, mean * ends / MM, "0.35", "-"))
    draw_panels(job.out / "crater.png", [[path, law]], title=f"A ball falls on {s.grains} grains")
    pictures = [
        (f"{d.density:g} kg/m$^3$ from {1e3 * d.height:g} mm: {d.depth[-1] / MM:.1f} mm deep", d.picture)
        for d in drops
        if d.picture is not None
    ]
    draw_pictures(job.out / "crater_scene.png", pictures, title="coloured by height")
