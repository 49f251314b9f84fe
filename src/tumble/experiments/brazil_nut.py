"""A large sphere rises to the top of a shaken box of small ones; a small one or one shaken gently does not."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import NamedTuple

import numpy as np

import tumble as tb

from ..errors import ExperimentError, message
from ..sim.report import StepReport
from ..view.picture import render
from . import grains
from .base import Job, by_step_size, expect, overlap_metrics, setting
from .base import Settings as BaseSettings
from .figures import LINES, PALETTE, Curve, Panel, draw_panels, draw_pictures

HIGHEST = 20
"""The surface is the mean height of the centres of so many of the highest small spheres."""


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `brazil-nut`. The controls are shaken gently, or have a nut as small as the others, of the same density.

    Contacts are sought to h times twice the largest speed of the box, with which a falling sphere may meet it: at
    h 0.1 s the ordinary margin leaves overlaps of 1.4 m, this one 0.1 m. What a solve misses in velocity is an overlap
    of h times as much, so longer steps have a tolerance that is smaller in proportion.
    """

    spheres: int = setting(200, "number of small spheres", at_least=HIGHEST)
    radius: float = setting(1.0, "mean radius of the small spheres", unit="m", above=0.0)
    spread: float = setting(0.05, "radii differ by at most this part", at_least=0.0, at_most=0.5)
    mass: float = setting(1.0, "mass of a small sphere", unit="kg", above=0.0)
    nut_radius: float = setting(3.0, "radius of the nut", unit="m", above=0.0)
    nut_mass: float = setting(27.0, "mass of the nut", unit="kg", above=0.0)
    friction: float = setting(0.5, "coefficient of friction", at_least=0.0)
    side: float = setting(12.0, "inner width and depth of the box", unit="m", above=0.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)
    amplitude: float = setting(3.0, "of the box, up and down", unit="m", above=0.0)
    gentle_amplitude: float = setting(0.8, "of the control that must not lift the nut", unit="m", above=0.0)
    period: float = setting(1.875, "of a shake", unit="s", above=0.0)
    shakes: int = setting(40, "number of shakes", at_least=1)
    rest: float = setting(6.0, "time of rest before the shaking", unit="s", at_least=0.0)
    above: float = setting(1.0, "the nut has risen when its top stays this far above the surface for a shake", unit="m")
    after: float = setting(3.0, "shakes that are still simulated after the nut came up to stay", at_least=1.0)
    seeds: int = setting(3, "number of starts that differ in jitter and radii", quick=2, at_least=1)
    control_seeds: int = setting(3, "number of starts of each control", quick=1, at_least=1)
    seed: int = setting(0, "of the first start", at_least=0)
    dt: tuple[float, ...] = setting((0.02, 0.1), "time steps, separated by commas", unit="s", above=0.0)
    tolerance: float = setting(5e-4, "of the solver at the shortest step: natural map", at_least=0.0)
    max_iterations: int = setting(5000, "of the solver", at_least=1)

    @property
    def end(self) -> float:
        """Simulated time [s]."""
        return self.rest + self.shakes * self.period

    def box_speed(self, amplitude: float) -> float:
        """Largest speed of the box [m/s]."""
        return 2.0 * pi / self.period * amplitude

    def check(self, where: str) -> None:
        """The box must hold the nut and columns of small spheres."""
        least = 2.0 * max(self.nut_radius, grains.reach(self.radius, self.spread))
        if self.side < least:
            raise ExperimentError(
                message(f"{where}: side", f"must be >= {least:g} m", self.side, "Enlarge side or lower the radii.")
            )


class Case(NamedTuple):
    """What is shaken and how."""

    amplitude: float
    """[m]"""
    nut_radius: float
    """[m]"""
    nut_mass: float
    """[kg]"""


class Shaking(NamedTuple):
    """One run, over its steps."""

    time: np.ndarray
    """(k,) [s]"""
    lead: np.ndarray
    """(k,) height of the nut's top above the surface [m]"""
    rise: float | None
    """Shakes until the nut had risen; None: it did not"""
    result: tb.RunResult
    overlap: float
    """Largest overlap over half-sizes"""
    pictures: list[tuple[str, np.ndarray]]


def cases(s: Settings) -> dict[str, Case]:
    """The experiment and its two controls."""
    small = s.nut_mass * (s.radius / s.nut_radius) ** 3
    return {
        "nut": Case(s.amplitude, s.nut_radius, s.nut_mass),
        "gentle": Case(s.gentle_amplitude, s.nut_radius, s.nut_mass),
        "small": Case(s.amplitude, s.radius, small),
    }


def build(s: Settings, case: Case, seed: int) -> tb.Model:
    """The box (body 0), the nut on its floor (1) and small spheres on a grid around and above it."""
    columns = grains.columns(s.side, s.radius, s.spread)
    layers = 2 + -(-s.spheres // columns**2) + int(2.0 * case.nut_radius / s.radius)
    points = grains.grid((columns, columns, layers), s.radius, s.spread, seed)
    nut = np.array([0.0, 0.0, case.nut_radius])
    free = np.linalg.norm(points - nut, axis=1) > case.nut_radius + (1.0 + s.spread) * s.radius
    points = points[free][: s.spheres]
    radii = grains.radii_of(len(points), s.radius, s.spread, seed)

    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -s.gravity))
    material = scene.add_material(tb.Material(friction=s.friction))
    thrown = s.box_speed(s.amplitude) ** 2 / (2.0 * s.gravity)
    height = points[:, 2].max() + 2.0 * s.amplitude + thrown + 2.0 * case.nut_radius
    scene.add_kinematic(
        tb.open_box(inner=(s.side, s.side, height)),
        material=material,
        motion=tb.Oscillation(amplitude=(0.0, 0.0, case.amplitude), period=s.period, start=s.rest),
        name="box",
    )
    scene.add_body(tb.Sphere(case.nut_radius), mass=case.nut_mass, material=material, position=nut, name="nut")
    scene.add_spheres(radii, mass=s.mass, material=material, position=points, name="small")
    return scene.build()


def lead(position: np.ndarray, nut_radius: float) -> float:
    """How far the top of the nut (body 1) is above the surface of the small spheres (from body 2 on) [m]."""
    surface = np.partition(position[2:, 2], -HIGHEST)[-HIGHEST:].mean()
    return float(position[1, 2] + nut_radius - surface)


def shakes_until(s: Settings, time: np.ndarray, leads: np.ndarray) -> float | None:
    """Shakes after which the nut's lead [m] reached the wanted one to stay, for a whole shake without a break; None if
    it never did. A sphere that is thrown past the others and falls back has not risen. time, leads: (k,)."""
    up = np.concatenate([[False], (leads >= s.above) & (time > s.rest), [False]])
    begin, end = np.flatnonzero(up[1:] & ~up[:-1]), np.flatnonzero(up[:-1] & ~up[1:])  # of each stretch, and after it
    for first, last in zip(time[begin], time[end - 1]):
        if last - first >= s.period:
            return float((first - s.rest) / s.period)
    return None


def shake(s: Settings, job: Job, case: Case, seed: int, dt: float, *, pictured: bool = False) -> Shaking:
    """One run, until some shakes after the nut has risen or to the end; pictured: some moments of it."""
    model = build(s, case, seed)
    leads: list[float] = []
    up_since = [s.end]
    moments = [s.rest, s.rest + 0.25 * s.shakes * s.period] if pictured else []
    pictures: list[tuple[str, np.ndarray]] = []
    color = np.zeros(model.body_count)
    color[1] = 1.0

    def picture(sim: tb.Simulation) -> None:
        image = render(model, sim.positions(), sim.orientations(), size=(400, 480), color_by=color)
        pictures.append((f"after {max(0.0, sim.time - s.rest) / s.period:.1f} shakes", image))

    def observe(sim: tb.Simulation, _: StepReport) -> None:
        leads.append(lead(sim.positions(), case.nut_radius))
        up = leads[-1] >= s.above and sim.time > s.rest
        up_since[0] = min(up_since[0], sim.time) if up else s.end
        if moments and sim.time > moments[0] - 0.5 * dt:
            moments.pop(0)
            picture(sim)

    sim, result = job.lenient().simulate(
        model,
        until=s.end,
        observe=observe,
        stop=lambda sim: sim.time > up_since[0] + s.after * s.period - 0.5 * dt,
        options=tb.StepOptions(dt=dt, margin=2.0 * dt * s.box_speed(case.amplitude)),
        solver=tb.SolverAPGD(tolerance=s.tolerance * s.dt[0] / dt, max_iterations=s.max_iterations),
    )
    if pictured:
        picture(sim)
    time, array = result.reports["time"], np.array(leads)
    return Shaking(time, array, shakes_until(s, time, array), result, sim.largest_overlap_ratio, pictures)


def measure(s: Settings, runs: dict[str, list[Shaking]]) -> dict[str, float]:
    """Metrics of one step size: one list of runs, a run a seed, for each case.

    `rise_shakes` is the slowest seed's and is left out if a nut did not rise.
    """
    rises = [run.rise for run in runs["nut"]]
    metrics = {f"rise_shakes_seed{k}": rise for k, rise in enumerate(rises) if rise is not None}
    risen = [rise for rise in rises if rise is not None]
    if len(risen) == len(rises):
        metrics |= {"rise_shakes": max(risen), "rise_shakes_mean": float(np.mean(risen))}
    for name in sorted(runs.keys() - {"nut"}):
        metrics[f"largest_lead_{name}"] = max(run.lead[run.time > s.rest].max() for run in runs[name])
    every = [run for group in runs.values() for run in group]
    return metrics | grains.accuracy(run.result for run in every)


def run(s: Settings, job: Job) -> dict[str, float]:
    """The nut for every seed and step size, the controls for the finest step."""
    runs: dict[float, dict[str, list[Shaking]]] = {}
    for dt in s.dt:
        finest = dt == s.dt[0]
        runs[dt] = {
            name: [
                shake(s, job, case, s.seed + k, dt, pictured=finest and name == "nut" and k == 0)
                for k in range(s.seeds if name == "nut" else s.control_seeds)
            ]
            for name, case in cases(s).items()
            if finest or name == "nut"
        }
    draw(s, runs, job)
    every = [run for found in runs.values() for group in found.values() for run in group]
    risen = [run.rise is not None for found in runs.values() for run in found["nut"]]
    return (
        by_step_size({dt: measure(s, found) for dt, found in runs.items()})
        | expect(
            rises=all(risen),
            gentle_stays=all(run.rise is None for run in runs[s.dt[0]]["gentle"]),
            small_stays=all(run.rise is None for run in runs[s.dt[0]]["small"]),
        )
        | overlap_metrics(run.overlap for run in every)
    )


def draw(s: Settings, runs: dict[float, dict[str, list[Shaking]]], job: Job) -> None:
    """The nut's lead over the shakes, a panel for each case; pictures of the first run."""
    titles = {
        "nut": f"nut r {s.nut_radius:g} m, {s.amplitude:g} m",
        "gentle": f"nut r {s.nut_radius:g} m, {s.gentle_amplitude:g} m",
        "small": f"nut r {s.radius:g} m, {s.amplitude:g} m",
    }
    panels = []
    for name, title in titles.items():
        panel = Panel("top of the nut above the surface [m]", title=title, xlabel="shakes")
        for dt, line in zip(s.dt, LINES):
            for k, (found, color) in enumerate(zip(runs[dt].get(name, ()), PALETTE)):
                label = f"h = {dt:g} s, seed {s.seed + k}" if name == "nut" else ""
                panel.curves.append(Curve(label, (found.time - s.rest) / s.period, found.lead, color, line))
        ends = np.array([0.0, float(s.shakes)])
        panel.curves.append(Curve("", ends, np.full(2, s.above), "0.35", ":"))
        panels.append(panel)
    draw_panels(job.out / "brazil_nut.png", [panels], title=f"A nut among {s.spheres} spheres in a shaken box")
    draw_pictures(
        job.out / "brazil_nut_scene.png", runs[s.dt[0]]["nut"][0].pictures, title=f"seed {s.seed}, h = {s.dt[0]:g} s"
    )
