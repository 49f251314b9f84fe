"""A mixer of cohesive bodies of four shapes: the time of a step grows in proportion to the number of contacts."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

import tumble as tb

from ..errors import ExperimentError, message
from ..kernels.pool import threads
from ..scene import rotation
from ..view.picture import Camera, render
from .base import LARGEST_OVERLAP, Job, expect, overlap_metrics, setting, slope
from .base import Settings as BaseSettings
from .figures import PALETTE, Curve, Panel, draw_panels, draw_pictures
from .settled import nothing

HALF = 0.05
"""Half-size of the bodies [m]."""
SHAPES = {
    "spheres": tb.Sphere(HALF),
    "ellipsoids": tb.Ellipsoid((0.06, 0.05, 0.042)),
    "cylinders": tb.Cylinder(HALF, 2.0 * HALF),
    "cubes": tb.Box((2.0 * HALF, 2.0 * HALF, 2.0 * HALF)),
}
THINNEST = 0.042
"""Smallest half-size of a body, an ellipsoid's [m]."""
ROOM = 1.2e-3
"""Volume of the drum up to a height of one radius, for each body [m^3]."""
PITCH = 0.13
"""Distance of the grid points from which the bodies fall [m]: an ellipsoid with its jitter and tilt fits between."""
JITTER, TILT = 0.05 * HALF, 0.05
"""Bodies start off their grid point [m] and off the axes [rad] by at most this much in each direction."""
SHAFT, BLADE, THICKNESS, CLEARANCE = 0.15, 0.3, 0.03, 0.3
"""Radius of the shaft and height of the blades [drum radii], thickness of the blades [m], their distance from wall and
floor [m]: three bodies. Two that just fit are caught between blade and wall, and nothing but an overlap frees them."""
CALM = 0.6 * LARGEST_OVERLAP
"""Before the clock starts overlaps must be below this part of a half-size."""
BLADES, PLATES = 4, 32
"""Number of blades, and of the flat plates that make the drum."""
REST = 0.3
"""Time in which bodies come to rest, after the fall of the highest ones to a height of one drum radius [s]."""
WARM_UP = 10
"""Steps of the measured length before the clock starts: impulses are remembered from longer steps."""
STAGES = ("broad", "narrow", "assemble", "solve")


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `mixer`.

    The bodies fall into the drum without cohesion, which would keep them as loose as they start, while the blades rest.
    The turn before the measurement takes longer steps than those measured. The measured steps make a fixed number of
    iterations, since the number that a tolerance needs grows with the size. Cohesion acts between the bodies only.
    """

    sizes: tuple[float, ...] = setting(
        (12500, 25000, 50000, 100000), "numbers of bodies", quick=(500, 1000, 2000), at_least=4
    )
    density: float = setting(1000.0, "of the bodies", unit="kg/m^3", above=0.0)
    friction: float = setting(0.5, "coefficient of friction", at_least=0.0)
    cohesion: float = setting(200.0, "between bodies", unit="N", at_least=0.0)
    cohesion_range: float = setting(0.01, "gap up to which cohesion acts", unit="half-sizes", above=0.0)
    turning: float = setting(math.pi / 2.0, "speed of the blades", unit="rad/s", above=0.0)
    turn: float = setting(0.25, "turns before the measurement", above=0.0)
    dt: float = setting(5e-4, "time step of the measurement", unit="s", above=0.0)
    filling_dt: float = setting(2e-3, "time step before it", unit="s", above=0.0)
    tolerance: float = setting(1e-3, "natural map of the steps before it", at_least=0.0)
    filling_iterations: int = setting(300, "most iterations of the steps before it", at_least=1)
    calming: int = setting(400, "most steps of the measured length until overlaps are small", at_least=0)
    calming_tolerance: float = setting(1e-4, "natural map of those steps", at_least=0.0)
    iterations: int = setting(50, "of every measured step", at_least=1)
    steps: int = setting(20, "steps that are measured", at_least=1)
    repeats: int = setting(3, "measurements from one state; the shortest counts", at_least=1)
    seed: int = setting(0, "of the jitter, the tilts and the order of the shapes", at_least=0)

    def at_scale(self, scale: float, where: str) -> Self:
        """All sizes scaled."""
        return replace(self, sizes=tuple(float(max(4, round(scale * n))) for n in self.sizes))

    def check(self, where: str) -> None:
        """The blades must reach beyond the shaft."""
        for n in self.sizes:
            if (1.0 - SHAFT) * drum_radius(int(n)) < CLEARANCE + 2.0 * HALF:
                raise ExperimentError(
                    message(f"{where}: sizes", "too few bodies for a drum with blades", f"{n:g}", "Take 280 or more.")
                )


class Measurement(NamedTuple):
    """One size."""

    metrics: dict[str, float]
    stages: dict[str, float]
    """Mean seconds of a step by stage"""
    picture: np.ndarray
    """(height, width, 3)"""


def drum_radius(bodies: int) -> float:
    """Of a drum that so many bodies fill to about its radius [m]."""
    return (bodies * ROOM / math.pi) ** (1.0 / 3.0)


def blades(radius: float) -> list[tb.Placed]:
    """Blades in the frame of the shaft, whose axis is z; 45 degrees pitched, the upper edge ahead."""
    inner, outer = 0.5 * SHAFT * radius, radius - CLEARANCE
    size = (outer - inner, THICKNESS, BLADE * radius * math.sqrt(2.0) - THICKNESS)
    out = []
    for k in range(BLADES):
        yaw = rotation.from_axis_angle((0.0, 0.0, 1.0), 2.0 * math.pi * k / BLADES)
        turn = rotation.multiply(yaw, rotation.from_axis_angle((1.0, 0.0, 0.0), -math.pi / 4.0))
        middle = np.array([0.5 * (inner + outer), 0.0, CLEARANCE + 0.5 * BLADE * radius])
        place = rotation.rotate(yaw, middle)
        out.append(tb.Placed(tb.Box(size), tuple(place), tuple(turn)))
    return out


def drum(radius: float, height: float) -> list[tb.Placed]:
    """Floor and flat plates about a circle of the given radius [m]."""
    width = 2.0 * radius * math.tan(math.pi / PLATES)
    thick = 0.2 * width  # thin enough to be drawn as glass
    floor = (2.0 * (radius + thick), 2.0 * (radius + thick), thick)
    out = [tb.Placed(tb.Box(floor), (0.0, 0.0, -0.5 * thick))]
    for k in range(PLATES):
        angle = 2.0 * math.pi * k / PLATES
        place = (radius + 0.5 * thick) * np.array([math.cos(angle), math.sin(angle), 0.0])
        place[2] = 0.5 * (height - thick)
        turn = rotation.from_axis_angle((0.0, 0.0, 1.0), angle)
        out.append(tb.Placed(tb.Box((thick, width, height + thick)), tuple(place), tuple(turn)))
    return out


def places(bodies: int, seed: int) -> np.ndarray:
    """Grid points (bodies, 3) in the drum, from below, that keep clear of shaft and blades [m]."""
    radius = drum_radius(bodies)
    reach = math.sqrt(3.0) * HALF + 2.0 * JITTER
    columns = 2 * math.ceil(radius / PITCH) + 1
    plates = blades(radius)
    found: list[np.ndarray] = []
    count, layer = 0, 0
    while count < bodies:
        points = tb.grid_points((columns, columns, 1), PITCH, origin=(0.0, 0.0, 0.06 + JITTER + layer * PITCH))
        away = np.hypot(points[:, 0], points[:, 1])
        free = (away < radius - reach) & (away > SHAFT * radius + reach)
        for plate in plates:
            back = rotation.conjugate(np.array(plate.orientation))
            local = rotation.rotate(back, points - np.array(plate.position))
            assert isinstance(plate.shape, tb.Box)
            outside = np.maximum(np.abs(local) - 0.5 * np.array(plate.shape.size), 0.0)
            free &= np.linalg.norm(outside, axis=1) > reach
        found.append(points[free])
        count, layer = count + int(free.sum()), layer + 1
    jitter = np.random.default_rng(seed).uniform(-JITTER, JITTER, (bodies, 3))
    return np.concatenate(found)[:bodies] + jitter


def build(s: Settings, bodies: int, *, cohesion: float, turning: float) -> tb.Model:
    """Drum (body 0), shaft with blades (body 1), and the bodies, a quarter of each shape."""
    radius, points = drum_radius(bodies), places(bodies, s.seed)
    height = float(points[:, 2].max()) + PITCH
    scene = tb.SceneBuilder()
    wall = scene.add_material(tb.Material(friction=s.friction))
    grain = scene.add_material(
        tb.Material(friction=s.friction, cohesion=cohesion, cohesion_range=s.cohesion_range * HALF)
    )
    scene.add_static(drum(radius, height), material=wall, name="drum")
    shaft = tb.Placed(tb.Cylinder(SHAFT * radius, height), (0.0, 0.0, 0.5 * height))
    scene.add_kinematic([shaft, *blades(radius)], material=wall, angular_velocity=(0.0, 0.0, turning), name="blades")
    rng = np.random.default_rng(s.seed + 1)
    kind = rng.permutation(np.arange(bodies) % len(SHAPES))
    tilt = np.concatenate([np.ones((bodies, 1)), 0.5 * rng.uniform(-TILT, TILT, (bodies, 3))], axis=1)
    tilt /= np.linalg.norm(tilt, axis=1, keepdims=True)
    for k, (name, shape) in enumerate(SHAPES.items()):
        mine = kind == k
        scene.add_copies(
            shape, density=s.density, material=grain, position=points[mine], orientation=tilt[mine], name=name
        )
    return scene.build()


def fill(s: Settings, job: Job, bodies: int) -> tuple[tb.Simulation, float]:
    """Let the bodies fall into the drum, then turn the blades; the simulation and the seconds it took."""
    loose = build(s, bodies, cohesion=0.0, turning=0.0)
    fall = max(0.0, float(loose.initial.position[:, 2].max()) - drum_radius(bodies))
    rest: dict[str, Any] = dict(
        options=tb.StepOptions(dt=s.filling_dt),
        solver=tb.SolverAPGD(tolerance=s.tolerance, max_iterations=s.filling_iterations),
    )
    settled, settling = job.simulate(loose, until=REST + math.sqrt(2.0 * fall / 9.81), observe=nothing, **rest)
    model = build(s, bodies, cohesion=s.cohesion, turning=s.turning)
    state = settled.get_state()
    state.time, state.step = 0.0, 0
    state.spin[1] = model.initial.spin[1]
    sim = tb.Simulation(model, **job.runs_on(**rest))
    sim.set_state(state)
    with warnings.catch_warnings():  # overlaps that the settling left are metrics, not a mistake in the scene
        warnings.simplefilter("ignore", tb.TumbleWarning)
        sim.step()
    turning = sim.run(until=2.0 * math.pi * s.turn / s.turning, progress=job.progress)
    return sim, settling.seconds + turning.seconds


def calm(s: Settings, sim: tb.Simulation) -> int:
    """Turn on with short, well solved steps until no two bodies overlap by much; returns how many it took."""
    sim.solver = tb.SolverAPGD(tolerance=s.calming_tolerance, max_iterations=10 * s.filling_iterations)
    for k in range(s.calming):
        if sim.step().largest_overlap < CALM * THINNEST:
            return k + 1
    return s.calming


def measure(s: Settings, job: Job, bodies: int) -> Measurement:
    """Turn to the place of the measurement, then take the time of some steps."""
    sim, run_up = fill(s, job, bodies)
    sim.options = tb.StepOptions(dt=s.dt)
    calmed = calm(s, sim)
    sim.solver = tb.SolverAPGD(tolerance=0.0, max_iterations=s.iterations)
    for _ in range(WARM_UP):
        sim.step()
    start, best, reports = sim.get_state(), math.inf, []
    clock = time.process_time if threads() == 1 else time.perf_counter  # of one thread other jobs take no time
    for _ in range(s.repeats):
        sim.set_state(start)
        begin = clock()
        taken = [sim.step() for _ in range(s.steps)]
        seconds = clock() - begin
        if seconds < best:
            best, reports = seconds, taken
    radius, z = drum_radius(bodies), sim.positions()[2:, 2]
    far = 6.0 * radius
    speed = np.linalg.norm(sim.velocities(), axis=1)
    return Measurement(
        {
            "contacts": float(np.mean([r.contacts for r in reports])),
            "seconds": best,
            "natural_map": float(np.median([r.natural_map for r in reports])),
            "largest_overlap": max(r.largest_overlap for r in reports),
            "largest_overlap_ratio": max(r.largest_overlap for r in reports) / THINNEST,
            "calming_steps": float(calmed),
            "fill_height": float(np.percentile(z, 98)) / radius,
            "run_up_seconds": run_up,
        },
        {stage: float(np.mean([r.seconds[stage] for r in reports])) for stage in STAGES},
        render(
            sim.model,
            sim.positions(),
            sim.orientations(),
            size=(600, 500),
            camera=Camera(eye=(0.5 * far, -0.7 * far, 0.7 * far), target=(0.0, 0.0, 0.8 * radius)),
            color_by=speed,
        ),
    )


def run(s: Settings, job: Job) -> dict[str, float]:
    """Measure every size and fit a power law."""
    job = job.lenient()
    found = {int(n): measure(s, job, int(n)) for n in s.sizes}
    metrics = {f"{key}_n{n}": value for n, m in found.items() for key, value in m.metrics.items()}
    contacts = np.array([m.metrics["contacts"] for m in found.values()])
    seconds = np.array([m.metrics["seconds"] for m in found.values()])
    growth = slope(contacts, seconds)
    if growth is not None:
        metrics["time_contacts_slope"] = growth
        metrics["time_bodies_slope"] = slope(np.array(list(found), float), seconds) or 0.0
        metrics |= expect(linear=growth <= 1.1)
    draw(s, job, contacts, seconds, found)
    return metrics | overlap_metrics(m.metrics["largest_overlap_ratio"] for m in found.values())


def draw(s: Settings, job: Job, contacts: np.ndarray, seconds: np.ndarray, found: dict[int, Measurement]) -> None:
    """Time of the steps over contacts, the stages of one step, and the smallest and largest mixer."""
    total = Panel(f"time of {s.steps} steps [s]", xlabel="contacts", log=True, log_x=True)
    total.curves = [
        Curve("measured", contacts, seconds, PALETTE[0], marker="o"),
        Curve("in proportion", contacts, seconds[0] * contacts / contacts[0], "0.35", ":"),
    ]
    stages = Panel("time of a step by stage [s]", xlabel="contacts", log=True, log_x=True)
    for stage, color in zip(STAGES, PALETTE):
        y = np.array([m.stages[stage] for m in found.values()])
        stages.curves.append(Curve(stage, contacts, y, color, marker="o"))
    draw_panels(job.out / "mixer.png", [[total, stages]], title=f"Mixer, {s.iterations} iterations a step")
    ends = [min(found), max(found)] if len(found) > 1 else list(found)
    draw_pictures(
        job.out / "mixer_scene.png",
        [(f"{n} bodies", found[n].picture) for n in ends],
        title=f"after {s.turn:g} turns (blue: slow, red: fast)",
    )
