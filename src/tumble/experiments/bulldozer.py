"""A bulldozer on tracks of jointed shoes drives over bare ground, then pushes a pile of cohesive grains."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

import tumble as tb

from ..errors import ExperimentError, message
from ..scene import rotation
from ..sim.report import StepReport
from ..view.picture import Camera, render
from . import crawler
from .base import Job, ObservedSimulation, expect, overlap_metrics, setting
from .base import Settings as BaseSettings
from .figures import PALETTE, Curve, Panel, draw_panels, draw_pictures
from .settled import nothing

AXES = (0.024, 0.020, 0.0167)
"""Half-axes of a grain [m]."""
SPACE = 1.08
"""Distance of the grid points from which the pile settles [diameters of the grains]."""
WIDTH = 2.6
"""Of the pile before it settles [m]: the blade's."""
FLATNESS = 2.0
"""Length of the pile before it settles over its height."""
NEAR = 0.05
"""The pile is there from the step on in which the blade is this near [m]; until then both runs are the same."""
LAST = 10
"""Steps at the end that have the pile in any case."""
DISTANCE_BAND, DRIFT = 0.02, 1e-6
"""Distances may differ from the sprockets' by this part, and joints may open by so much [m]."""


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `bulldozer`.

    The sprockets reach their speed within `ramp`: at once, the shoes would slip. Cohesion acts between grains only. The
    machine that meets the pile is the one of the bare run, taken over with all its impulses just before it gets there.
    """

    grains: int = setting(160000, "number of ellipsoids", quick=400, at_least=1)
    grain_scale: float = setting(1.0, "size of the ellipsoids over 24, 20 and 16.7 mm", quick=3.0, above=0.0)
    grain_density: float = setting(2000.0, "of the ellipsoids", unit="kg/m^3", above=0.0)
    grain_friction: float = setting(0.2, "of the ellipsoids", at_least=0.0)
    cohesion: float = setting(500.0, "between ellipsoids", unit="N", at_least=0.0)
    cohesion_range: float = setting(0.01, "gap up to which cohesion acts", unit="smallest half-axes", above=0.0)
    compliance: float = setting(0.0, "of all materials (a contact of two: twice)", unit="m/N", at_least=0.0)
    shoe_friction: float = setting(1.0, "of shoes and ground", at_least=0.0)
    gear_friction: float = setting(0.1, "of sprockets and rollers", at_least=0.0)
    speed: float = setting(4.0, "of the sprockets", unit="rad/s", above=0.0)
    ramp: float = setting(0.25, "time in which they reach it", unit="s", above=0.0)
    ahead: float = setting(3.0, "distance of the pile at the start", unit="m", quick=1.0, at_least=2.0 * NEAR)
    duration: float = setting(4.0, "simulated time", unit="s", quick=1.0, above=0.0)
    after: float = setting(0.5, "distances count from here on", unit="s", at_least=0.0)
    dt: float = setting(1e-4, "time step", unit="s", quick=1e-3, above=0.0)
    tolerance: float = setting(1e-5, "natural map of a step", at_least=0.0)
    max_iterations: int = setting(500, "most iterations a step", at_least=1)
    settling: float = setting(0.5, "simulated time in which the pile settles", unit="s", above=0.0)
    settling_dt: float = setting(1e-3, "time step of the settling", unit="s", above=0.0)
    settling_tolerance: float = setting(1e-4, "natural map of the settling's steps", at_least=0.0)
    settling_iterations: int = setting(200, "most iterations a step of the settling", at_least=1)
    seed: int = setting(0, "of the grains' orientations and places", at_least=0)

    def at_scale(self, scale: float, where: str) -> Self:
        """Fewer and larger grains, the same pile."""
        return replace(self, grains=max(1, round(scale * self.grains)), grain_scale=scale ** (-1.0 / 3.0))

    def check(self, where: str) -> None:
        """There must be something to measure."""
        least = self.after + 2 * LAST * self.dt
        if self.duration < least:
            raise ExperimentError(
                message(f"{where}: duration", f"must be >= {least:g} s, beyond after", self.duration, "Run longer.")
            )

    @property
    def grain(self) -> tb.Ellipsoid:
        """Shape of a grain."""
        x, y, z = (self.grain_scale * a for a in AXES)
        return tb.Ellipsoid((x, y, z))


class Pile(NamedTuple):
    """Grains at rest."""

    position: np.ndarray
    """(n, 3) [m]"""
    orientation: np.ndarray
    """(n, 4)"""
    start: float
    """x of its edge towards the machine [m]"""


class Drive(NamedTuple):
    """A run of the machine, over its steps."""

    table: np.ndarray
    """(k, 6) time [s], place of the chassis [m], turn of a sprocket [rad], force on the chassis along x [N], joint
    drift after and before the projection [m]"""
    unconverged: int
    overlap: float
    """Largest overlap over half-sizes"""
    seconds: float
    picture: np.ndarray
    """(height, width, 3)"""


def ratio(table: np.ndarray, after: float) -> float:
    """Distance since a time [s] over ten pitches for each turn of the sprockets, from rows (time, place, turn, ..)."""
    late = table[table[:, 0] >= after - 1e-9]
    turns = (late[-1, 2] - late[0, 2]) / (2.0 * math.pi)
    return float((late[-1, 1] - late[0, 1]) / (turns * crawler.TEETH * crawler.PITCH))


def add_grains(scene: tb.SceneBuilder, s: Settings, position: np.ndarray, orientation: np.ndarray) -> None:
    """Cohesive ellipsoids."""
    reach = s.cohesion_range * s.grain_scale * min(AXES)
    material = scene.add_material(
        tb.Material(
            name="grains",
            friction=s.grain_friction,
            cohesion=s.cohesion,
            cohesion_range=reach,
            compliance=s.compliance,
        )
    )
    scene.add_copies(
        s.grain,
        density=s.grain_density,
        material=material,
        position=position,
        orientation=orientation,
        name="grains",
    )


def add_ground(scene: tb.SceneBuilder, s: Settings) -> None:
    """Ground that is as rough as the shoes."""
    ground = scene.add_material(tb.Material(name="ground", friction=s.shoe_friction, compliance=s.compliance))
    scene.add_static(tb.HalfSpace(), material=ground, name="plain")


def settle_pile(s: Settings, job: Job) -> Pile:
    """A block of grains as wide as the blade settles on the ground; its edge lies `ahead` of the blade."""
    space = 2.0 * SPACE * s.grain_scale * max(AXES)
    across = max(1, int(WIDTH / space))
    high = max(1, round(math.sqrt(s.grains / across / FLATNESS)))
    along = -(-s.grains // (across * high))
    jitter = 0.5 * (SPACE - 1.0) * space
    points = tb.grid_points((along, across, high), space, origin=(0.0, 0.0, 0.5 * space), jitter=jitter, seed=s.seed)
    points = points[: s.grains]
    turn = np.random.default_rng(s.seed + 1).normal(size=(len(points), 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    scene = tb.SceneBuilder()
    add_ground(scene, s)
    add_grains(scene, s, points, turn)
    sim, _ = job.simulate(
        scene.build(),
        until=s.settling,
        observe=nothing,
        options=tb.StepOptions(dt=s.settling_dt),
        solver=tb.SolverAPGD(tolerance=s.settling_tolerance, max_iterations=s.settling_iterations),
    )
    position, orientation = sim.positions()[1:], sim.orientations()[1:]
    # How far an ellipsoid reaches along x: the length of its half-axes, turned, in that direction.
    half = rotation.matrix(orientation)[:, 0, :] * (s.grain_scale * np.array(AXES))
    edge = float((position[:, 0] - np.linalg.norm(half, axis=1)).min())
    start = crawler.BLADE_FRONT + s.ahead
    position[:, 0] += start - edge
    return Pile(position, orientation, start)


def build(s: Settings, pile: Pile | None) -> tuple[tb.Model, crawler.Crawler]:
    """Ground and machine, and the pile behind them in the order of bodies."""
    scene = tb.SceneBuilder()
    add_ground(scene, s)
    machine = crawler.add_crawler(
        scene,
        shoe_friction=s.shoe_friction,
        gear_friction=s.gear_friction,
        compliance=s.compliance,
        speed=lambda time: s.speed * min(1.0, time / s.ramp),
    )
    if pile is not None:
        add_grains(scene, s, pile.position, pile.orientation)
    return scene.build(), machine


def drive(
    s: Settings,
    job: Job,
    pile: Pile | None,
    *,
    start: tb.State | None = None,
    watch: Callable[[tb.Simulation, float], None] | None = None,
) -> Drive:
    """Run the machine to the end. start: take over its motion from a run without a pile.

    watch: called after every step with the simulation and the place of the blade along x [m].
    """
    model, machine = build(s, pile)
    rows: list[list[float]] = []
    force = 0.0
    first = float(model.initial.position[machine.chassis, 0])

    def observe(sim: tb.Simulation, report: StepReport) -> None:
        nonlocal force
        place = float(sim.state.position[machine.chassis, 0]) - first
        if pile is not None and report.step % 10 == 0:
            force = float(sim.contact_forces().on(machine.chassis)[0])
        turn = sim.joint_values()[machine.motors[0]]
        rows.append([report.time, place, turn, force, report.joint_drift, report.joint_drift_before])
        if watch is not None:
            watch(sim, crawler.BLADE_FRONT + place)

    sim = ObservedSimulation(
        model,
        observe=observe,
        **job.runs_on(
            options=tb.StepOptions(dt=s.dt),
            solver=tb.SolverAPGD(tolerance=s.tolerance, max_iterations=s.max_iterations),
        ),
    )
    if start is not None:
        sim.set_state(taken_over(model, start))
    result = sim.run(until=s.duration, progress=job.progress, strict=job.strict)
    x = rows[-1][1]
    camera = Camera(eye=(x + 9.5, -6.5, 4.2), target=(x + 3.4, 0.0, 0.3))
    picture = render(model, sim.positions(), sim.orientations(), size=(720, 480), camera=camera)
    return Drive(np.array(rows), result.unconverged, sim.largest_overlap_ratio, result.seconds, picture)


def taken_over(model: tb.Model, machine: tb.State) -> tb.State:
    """The state of a model whose first bodies are those of another state; the others are as they begin."""
    state = model.initial.copy()
    count = len(machine.position)
    for name in ("position", "orientation", "velocity", "spin"):
        getattr(state, name)[:count] = getattr(machine, name)
    copy = machine.copy()
    return replace(
        state,
        time=copy.time,
        step=copy.step,
        memory=copy.memory,
        coordinate=copy.coordinate,
        row_impulse=copy.row_impulse,
        target=copy.target,
        energy_owed=copy.energy_owed,
    )


def run(s: Settings, job: Job) -> dict[str, float]:
    """Drive over bare ground, and from where the pile is near once more with the pile."""
    job = job.lenient()
    pile = settle_pile(s, job)
    near: list[tb.State] = []

    def watch(sim: tb.Simulation, blade: float) -> None:
        if blade < pile.start - NEAR and sim.time < s.duration - LAST * s.dt:
            near[:] = [sim.get_state()]

    runs = {"bare": drive(s, job, None, watch=watch)}
    runs["pile"] = drive(s, job, pile, start=near[0])
    before = runs["bare"].table
    shared = before[before[:, 0] <= near[0].time + 0.5 * s.dt]
    tables = {"bare": before, "pile": np.concatenate([shared, runs["pile"].table])}
    lost = float(tables["bare"][-1, 1] - tables["pile"][-1, 1])
    metrics = {
        "distance_ratio": ratio(tables["bare"], s.after),
        "distance_ratio_pile": ratio(tables["pile"], s.after),
        "distance_lost_in_pile": lost,
        "max_joint_drift": max(float(t[:, 4].max()) for t in tables.values()),
        "max_joint_drift_before_projection": max(float(t[:, 5].max()) for t in tables.values()),
        "largest_force_of_pile": float(-tables["pile"][:, 3].min()),
        "pile_mass": float(s.grains * s.grain.volume * s.grain_density),
        "pile_height": float(np.percentile(pile.position[:, 2], 99)),
    }
    for name, found in runs.items():
        metrics[f"unconverged_steps_{name}"] = found.unconverged
        metrics[f"largest_overlap_ratio_{name}"] = found.overlap
        metrics[f"seconds_{name}"] = found.seconds
    draw(s, job, tables, runs)
    metrics |= overlap_metrics(found.overlap for found in runs.values())
    return metrics | expect(
        distance=abs(metrics["distance_ratio"] - 1.0) <= DISTANCE_BAND,
        pile_slows=metrics["distance_ratio_pile"] < metrics["distance_ratio"],
        joints_closed=metrics["max_joint_drift"] < DRIFT,
    )


def draw(s: Settings, job: Job, tables: dict[str, np.ndarray], runs: dict[str, Drive]) -> None:
    """Distance, speed, force of the pile and joint drift over time, and the machine at the end of both runs."""
    distance, speed = Panel("distance [m]"), Panel("speed of the chassis [m/s]")
    force, drift = Panel("force of the pile [N]"), Panel("joint drift [m]", log=True)
    for (name, t), color in zip(tables.items(), PALETTE):
        distance.curves.append(Curve(name, t[:, 0], t[:, 1], color))
        speed.curves.append(Curve(name, t[1:, 0], np.diff(t[:, 1]) / np.diff(t[:, 0]), color))
        drift.curves.append(Curve(f"{name}, before the projection", t[:, 0], t[:, 5], color, ":"))
        drift.curves.append(Curve(name, t[:, 0], t[:, 4], color))
    t = tables["pile"]
    distance.curves.append(
        Curve("sprockets", t[:, 0], t[:, 2] / (2.0 * math.pi) * crawler.TEETH * crawler.PITCH, "0.35", ":")
    )
    force.curves.append(Curve("", t[:, 0], -t[:, 3], PALETTE[1]))
    draw_panels(job.out / "bulldozer.png", [[distance, speed], [force, drift]], title="Bulldozer")
    draw_pictures(
        job.out / "bulldozer_scene.png",
        [("bare ground", runs["bare"].picture), (f"{s.grains} grains", runs["pile"].picture)],
        title=f"after {s.duration:g} s",
    )
