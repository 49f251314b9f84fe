"""Spheres fall into an open container and settle: force on the container and complementarity error of both laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import tumble as tb

from ..errors import ExperimentError, message
from ..sim.report import StepReport
from ..view.picture import render
from .base import LAWS, Job, lasting, overlap_metrics, setting
from .base import Settings as BaseSettings
from .figures import COLORS, Curve, Panel, draw_panels, draw_pictures

PITCH = 2.2
"""Distance of the columns and layers at the start [radii]."""
JITTER = 0.05
"""Each sphere starts at most this far from its place, so that no crystal forms [radii]."""
END = 0.5
"""The container force is the mean over this time at the end [s]."""


@dataclass(frozen=True, kw_only=True)
class FillSettings(BaseSettings):
    """Of spheres in a container.

    The paper stops at a residual of 1e-5 m/s, a sum over all contacts divided by their number: single contacts may be
    off by far more, and the largest complementarity error is then only 46 times below the relaxed one's. The natural
    map at 1e-5 gives a factor of several hundred.
    """

    spheres: int = setting(1000, "number of spheres", quick=200, at_least=1)
    radius: float = setting(1.0, "radius of the spheres", unit="m", above=0.0)
    mass: float = setting(1.0, "mass of a sphere", unit="kg", above=0.0)
    friction: float = setting(0.25, "coefficient of friction", at_least=0.0)
    side: float = setting(20.0, "inner width and depth of the container", unit="m", quick=9.0, above=0.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)
    dt: float = setting(0.01, "time step", unit="s", above=0.0)
    duration: float = setting(5.0, "simulated time", unit="s", above=0.0)
    rest_energy: float = setting(10.0, "settled when the kinetic energy stays below", unit="J", above=0.0)
    seed: int = setting(0, "of the jitter", at_least=0)
    tolerance: float = setting(1e-5, "of the solver", at_least=0.0)
    stop: str = setting("natural_map", "stopping quantity", choices=("natural_map", "residual_eq25", "certificate"))
    max_iterations: int = setting(1000, "of the solver", at_least=1)

    @property
    def columns(self) -> int:
        """Columns of spheres along each side."""
        return 1 + int((self.side / self.radius - 2.0 - 2.0 * JITTER) / PITCH)

    @property
    def layers(self) -> int:
        """Layers of spheres at the start."""
        return -(-self.spheres // self.columns**2)

    def check(self, where: str) -> None:
        """The container must hold a sphere."""
        least = (2.0 + 2.0 * JITTER) * self.radius
        if self.side < least:
            raise ExperimentError(
                message(
                    f"{where}: side",
                    f"must be >= {least:g} m, for one sphere with its jitter",
                    self.side,
                    "Enlarge side or lower radius.",
                )
            )


@dataclass(frozen=True, kw_only=True)
class Settings(FillSettings):
    """Of `fill`.

    The settling time is chaotic: it moves by half a second with seed and tolerance. So it is compared over several
    seeds: mean difference of the two laws with its 95 % confidence interval.
    """

    seeds: int = setting(10, "starts over which the settling times are compared", quick=2, at_least=1)


class Filling(NamedTuple):
    """A run with a container, over its steps."""

    time: np.ndarray
    """(k,) [s]"""
    force: np.ndarray
    """(k, 3) on the container [N]"""
    reports: Mapping[str, np.ndarray]
    metrics: dict[str, float]
    pictures: list[tuple[str, np.ndarray]]
    position: np.ndarray
    """(n, 3) of all bodies at the end [m]"""
    velocity: np.ndarray
    """(n, 3) [m/s]"""
    spin: np.ndarray
    """(n, 3) [rad/s]"""


def build(s: FillSettings) -> tb.Model:
    """Container (body 0) and spheres on a grid, the lowest layer just above the floor."""
    scene, material = container(s)
    points = tb.grid_points(
        (s.columns, s.columns, s.layers),
        PITCH * s.radius,
        jitter=JITTER * s.radius,
        seed=s.seed,
        origin=(0.0, 0.0, (1.0 + JITTER) * s.radius),
    )
    scene.add_spheres(s.radius, mass=s.mass, material=material, position=points[: s.spheres], name="spheres")
    return scene.build()


def container(s: FillSettings) -> tuple[tb.SceneBuilder, tb.Material]:
    """A scene with the container alone, high enough for the grid."""
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -s.gravity))
    material = scene.add_material(tb.Material(friction=s.friction))
    height = PITCH * s.radius * (s.layers + 1)
    scene.add_static(tb.open_box(inner=(s.side, s.side, height)), material=material, name="container")
    return scene, material


def simulate(s: FillSettings, job: Job, model: tb.Model, law: str, *, moments: tuple[float, ...] = ()) -> Filling:
    """Run a scene with a container under a law; pictures are taken at some moments (0: start, 1: end)."""
    force: list[np.ndarray] = []
    pictures: dict[int, tuple[str, np.ndarray] | None] = {round(m * s.duration / s.dt): None for m in moments}

    def picture(sim: tb.Simulation) -> None:
        speed = np.linalg.norm(sim.velocities(), axis=1)
        pictures[len(force)] = (
            f"t = {sim.time:.3g} s, fastest {speed.max():.2g} m/s",
            render(sim.model, sim.positions(), sim.orientations(), size=(480, 400), color_by=speed),
        )

    def observe(sim: tb.Simulation, _: StepReport) -> None:
        force.append(sim.contact_forces().on("container"))
        if len(force) in pictures:
            picture(sim)

    options: dict[str, Any] = dict(
        options=tb.StepOptions(dt=s.dt, law=law),
        solver=tb.SolverAPGD(tolerance=s.tolerance, stop=s.stop, max_iterations=s.max_iterations),
    )
    if 0 in pictures:
        picture(tb.Simulation(model, **options))
    sim, result = job.simulate(model, until=s.duration, observe=observe, **options)
    r, forces = result.reports, np.array(force)

    mass = model.body_mass[1:]
    weight = mass.sum() * s.gravity
    gained = mass @ (sim.velocities()[1:] - model.initial.velocity[1:])
    balance = forces.sum(axis=0) * s.dt + gained + np.array([0.0, 0.0, weight * result.time])
    rest = lasting(r["kinetic_energy"] < s.rest_energy)
    metrics = {
        "container_force": -forces[r["time"] > result.time - END, 2].mean(),
        "impulse_balance_error": np.linalg.norm(balance) / (weight * result.time),
        "max_complementarity_error": r["complementarity_error"].max(),
        "kinetic_energy_end": r["kinetic_energy"][-1],
        "mean_iterations": r["iterations"].mean(),
        "unconverged_steps": result.unconverged,
        "largest_overlap": r["largest_overlap"].max(),
        "largest_overlap_ratio": sim.largest_overlap_ratio,
        "seconds": result.seconds,
    }
    if rest is not None:
        metrics["settle_time"] = r["time"][rest]
    return Filling(
        r["time"],
        forces,
        r,
        metrics,
        [p for p in pictures.values() if p is not None],
        sim.positions(),
        sim.velocities(),
        sim.angular_velocities(),
    )


def compare(s: FillSettings, job: Job, model: tb.Model, *, name: str, title: str) -> dict[str, float]:
    """Both laws on one scene: metrics, the figure of forces and errors, and pictures of the Coulomb run."""
    runs = {law: simulate(s, job, model, law, moments=(0.0, 0.1, 0.3, 1.0) if law == "coulomb" else ()) for law in LAWS}
    weight = float(model.body_mass[1:].sum() * s.gravity)
    metrics: dict[str, float] = {"container_force_exact": weight}
    for law, found in runs.items():
        metrics |= {f"{key}_{law}": value for key, value in found.metrics.items()}
    metrics["impulse_balance_error"] = max(f.metrics["impulse_balance_error"] for f in runs.values())
    if metrics["max_complementarity_error_coulomb"] > 0.0:
        metrics["complementarity_error_ratio"] = (
            metrics["max_complementarity_error_relaxed"] / metrics["max_complementarity_error_coulomb"]
        )
    draw(job, runs, weight, name=name, title=title)
    return metrics | overlap_metrics(f.metrics["largest_overlap_ratio"] for f in runs.values())


def draw(job: Job, runs: dict[str, Filling], weight: float, *, name: str, title: str) -> None:
    """Force on the container, complementarity error and kinetic energy over time (Figs 8 and 10 of the paper)."""
    force = Panel("downward force on the container [N]")
    error = Panel("complementarity error [J]", log=True)
    energy = Panel("kinetic energy [J]", log=True)
    for law in ("relaxed", "coulomb"):
        run, color = runs[law], COLORS[law]
        force.curves.append(Curve(law, run.time, -run.force[:, 2], color))
        error.curves.append(Curve(law, run.time, run.reports["complementarity_error"], color))
        energy.curves.append(Curve(law, run.time, run.reports["kinetic_energy"], color))
    ends = runs["coulomb"].time[[0, -1]]
    force.curves.append(Curve("weight", ends, np.full(2, weight), COLORS["exact"], ":"))
    draw_panels(job.out / f"{name}.png", [[force, error, energy]], title=title)
    draw_pictures(
        job.out / f"{name}_scene.png", runs["coulomb"].pictures, title=f"{title}, coulomb (blue: slow, red: fast)"
    )


def settle_times(s: Settings, job: Job, first: dict[str, float]) -> dict[str, float]:
    """Settling times [s] of both laws over the seeds; `first`: metrics of the first seed.

    The difference, Coulomb less relaxed, with its 95 % interval of Student's t over the seeds in which both settle.
    """
    pairs, unsettled = [], 0
    for k in range(s.seeds):
        own = replace(s, seed=s.seed + k)
        pair = [
            first.get(f"settle_time_{law}")
            if k == 0
            else simulate(own, job, build(own), law).metrics.get("settle_time")
            for law in LAWS
        ]
        unsettled += pair.count(None)
        if None not in pair:
            pairs.append(pair)
    found: dict[str, float] = {"settle_seeds": len(pairs), "unsettled_runs": unsettled}
    if not pairs:
        return found
    times = np.array(pairs)
    found |= {f"settle_time_mean_{law}": times[:, k].mean() for k, law in enumerate(LAWS)}
    difference = times[:, LAWS.index("coulomb")] - times[:, LAWS.index("relaxed")]
    found["settle_time_difference"] = difference.mean()
    if len(pairs) > 1:
        half = stats.t.ppf(0.975, len(pairs) - 1) * difference.std(ddof=1) / np.sqrt(len(pairs))
        found |= {
            "settle_time_difference_low": difference.mean() - half,
            "settle_time_difference_high": difference.mean() + half,
        }
    return found


def run(s: Settings, job: Job) -> dict[str, float]:
    """Fill the container by both laws, and again from other starts for the settling times."""
    metrics = compare(s, job, build(s), name="fill", title=f"{s.spheres} spheres fall into a container")
    return metrics | settle_times(s, job, metrics)
