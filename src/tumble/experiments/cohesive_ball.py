"""A ball of cohesive spheres, packed by a central pull and thrown at walls: shared by `snow` and `brittle`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

import tumble as tb

from ..errors import ExperimentError, message
from ..view.picture import Camera, render
from .base import Job, Settings, overlap_metrics, setting
from .figures import PALETTE, Curve, Panel, draw_panels, draw_pictures
from .settled import nothing

PITCH = 2.25
"""Distance of the grid points from which the packing starts [radii]."""
JITTER = 0.05
"""Each sphere starts at most this far from its grid point [radii]."""
SPHERES = "spheres"
COLUMNS = ("contacts", "iterations", "natural_map", "largest_overlap")

Walls = Callable[[tb.SceneBuilder], None]
"""Adds what the ball hits to a scene."""


@dataclass(frozen=True, kw_only=True)
class BallSettings(Settings):
    """Of a ball of cohesive spheres.

    Cohesion acts between spheres only. Its range is part of the material: the work that parts two spheres is cohesion
    times range, whatever the step. It must be wider than what a step opens without any force: two spheres that roll on
    each other move along the tangent, which opens (h v)^2 / (4 r), 2.5e-3 radii at 10 m/s and 1e-3 s; and a solve that
    is cut short leaves about as much (`largest_overlap` says how much). It must be narrower than the gap up to which
    spheres count as touching. A tenth of the default makes more pieces, in the same order.
    """

    spheres: int = setting(75000, "number of spheres", quick=600, at_least=2)
    radius: float = setting(0.1, "mean radius of the spheres", unit="m", above=0.0)
    radius_spread: float = setting(0.05, "radii vary by this part of the mean", at_least=0.0, at_most=0.5)
    density: float = setting(1000.0, "of the spheres", unit="kg/m^3", above=0.0)
    friction: float = setting(1.0, "between spheres", at_least=0.0)
    cohesion_range: float = setting(0.01, "gap up to which cohesion acts", unit="radii", above=0.0)
    compliance: float = setting(0.0, "of the spheres (a contact of two: twice)", unit="m/N", at_least=0.0)
    touch: float = setting(0.02, "gap up to which two spheres belong to one cluster", unit="radii", above=0.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", at_least=0.0)
    packing_rate: float = setting(10.0, "the pull is rate^2 times the distance from the centre", unit="1/s", above=0.0)
    packing_time: float = setting(0.4, "simulated time of the packing", unit="s", above=0.0)
    packing_friction: float = setting(0.0, "between spheres during the packing", at_least=0.0)
    packing_dt: float = setting(2e-3, "time step of the packing", unit="s", above=0.0)
    packing_tolerance: float = setting(1e-5, "natural map of the packing's steps", at_least=0.0)
    packing_iterations: int = setting(300, "most iterations a step of the packing", at_least=1)
    tolerance: float = setting(1e-4, "natural map of a step", at_least=0.0)
    max_iterations: int = setting(200, "most iterations a step", quick=100, at_least=1)
    seeds: int = setting(3, "balls that are thrown, each packed from another start", at_least=1)

    @property
    def ball_radius(self) -> float:
        """Of a ball packed to 60 % [m]."""
        return self.radius * (self.spheres / 0.6) ** (1.0 / 3.0)

    def at_scale(self, scale: float, where: str) -> Self:
        """Fewer or more spheres of the same size."""
        return replace(self, spheres=max(2, round(scale * self.spheres)))

    def check(self, where: str) -> None:
        """Bonds must lie within clusters."""
        if self.cohesion_range > self.touch:
            raise ExperimentError(
                message(f"{where}: cohesion_range", "must be <= touch", self.cohesion_range, "Lower it or raise touch.")
            )


@dataclass(frozen=True)
class Ball:
    """Spheres packed about the origin."""

    position: np.ndarray
    """(n, 3) [m]"""
    radius: np.ndarray
    """(n,) [m]"""
    metrics: dict[str, float]
    """About the packing"""


class Throw(NamedTuple):
    """What became of a ball."""

    metrics: dict[str, float]
    sizes: np.ndarray
    """(c,) spheres in each cluster, falling"""
    picture: np.ndarray
    """(height, width, 3)"""


Throws = dict[tuple[float, int], Throw]
"""By cohesion [N] and seed."""


def grid_ball(spheres: int, radius: float, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres (n, 3) on jittered grid points about the origin, the nearest ones, and radii (n,) [m]."""
    rng = np.random.default_rng(seed)
    side = 2 * math.ceil((3.0 * spheres / (4.0 * math.pi)) ** (1.0 / 3.0)) + 2
    points = tb.grid_points((side,) * 3, PITCH * radius)
    points[:, 2] -= points[:, 2].mean()
    nearest = np.argsort(np.einsum("ij,ij->i", points, points), kind="stable")[:spheres]
    jitter = rng.uniform(-JITTER * radius, JITTER * radius, (spheres, 3))
    return points[nearest] + jitter, radius * rng.uniform(1.0 - spread, 1.0 + spread, spheres)


def pack(s: BallSettings, job: Job, seed: int) -> Ball:
    """Pull spheres to the centre, all by the same law and with critical drag, until they have jammed."""
    position, radius = grid_ball(s.spheres, s.radius, s.radius_spread, seed)
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, 0.0))
    material = scene.add_material(tb.Material(friction=s.packing_friction))
    scene.add_spheres(radius, density=s.density, material=material, position=position, name=SPHERES)
    mass = s.density * 4.0 / 3.0 * np.pi * radius[:, None] ** 3

    def pull(_: float, x: np.ndarray, __: np.ndarray, v: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -mass * (s.packing_rate**2 * x + 2.0 * s.packing_rate * v), np.zeros_like(w)

    scene.add_force(pull)
    sim, result = job.simulate(
        scene.build(),
        until=s.packing_time,
        observe=nothing,
        options=tb.StepOptions(dt=s.packing_dt),
        solver=tb.SolverAPGD(tolerance=s.packing_tolerance, max_iterations=s.packing_iterations),
    )
    x = sim.positions()
    x -= (mass * x).sum(axis=0) / mass.sum()
    distance = np.linalg.norm(x, axis=1)
    core, bond = 0.8 * float(np.percentile(distance, 95)), s.cohesion_range * s.radius
    return Ball(
        x,
        radius,
        {
            "packing_density": float((radius[distance < core] ** 3).sum() / core**3),
            "packing_bonds": np.count_nonzero(sim.contacts(margin=bond).gap <= bond) / s.spheres,
            "packing_overlap": result.reports["largest_overlap"][-1] / s.radius,
            "packing_unconverged_steps": result.unconverged,
            "packing_seconds": result.seconds,
        },
    )


def throw(
    s: BallSettings,
    job: Job,
    ball: Ball,
    cohesion: float,
    walls: Walls,
    *,
    center: np.ndarray,
    velocity: np.ndarray,
    duration: float,
    dt: float,
    camera: Camera,
    impact: tuple[float, float] = (0.0, 0.0),
) -> Throw:
    """Throw a ball from a place (3,) [m] with a velocity (3,) [m/s] at walls, and count its clusters at the end.

    impact: time of the impact at the beginning and its time step [s], if shorter than the others.
    """
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -s.gravity))
    walls(scene)
    material = scene.add_material(
        tb.Material(
            friction=s.friction,
            cohesion=cohesion,
            cohesion_range=s.cohesion_range * s.radius,
            compliance=s.compliance,
        )
    )
    scene.add_spheres(
        ball.radius,
        density=s.density,
        material=material,
        position=ball.position + center,
        velocity=velocity,
        name=SPHERES,
    )
    lasts, first_dt = impact if impact[0] > 0.0 else (duration, dt)
    sim, result = job.simulate(
        scene.build(),
        until=min(lasts, duration),
        observe=nothing,
        options=tb.StepOptions(dt=first_dt),
        solver=tb.SolverAPGD(tolerance=s.tolerance, max_iterations=s.max_iterations),
    )
    results = [result]
    if lasts < duration:
        sim.options = tb.StepOptions(dt=dt)
        results.append(sim.run(until=duration, progress=job.progress, strict=job.strict))
    clusters = sim.clusters(gap=s.touch * s.radius)
    spheres = sim.model.bodies(SPHERES)
    mass, place = sim.model.body_mass[spheres], sim.positions()[spheres]
    away = place - np.average(place, axis=0, weights=mass)
    part = np.zeros(sim.model.body_count)
    part[spheres] = np.log(clusters.size[clusters.label[spheres]])
    r = {key: np.concatenate([x.reports[key] for x in results]) for key in COLUMNS}
    return Throw(
        {
            "clusters": len(clusters),
            "largest_part": clusters.size[0] / s.spheres,
            "spread": math.sqrt(np.average(np.sum(away**2, axis=1), weights=mass)),
            "mean_contacts": r["contacts"].mean(),
            "mean_iterations": r["iterations"].mean(),
            "median_natural_map": float(np.median(r["natural_map"])),
            "unconverged_steps": sum(x.unconverged for x in results),
            "largest_overlap": r["largest_overlap"].max(),
            "largest_overlap_ratio": sim.largest_overlap_ratio,
            "seconds": sum(x.seconds for x in results),
        },
        clusters.size,
        render(sim.model, sim.positions(), sim.orientations(), size=(480, 400), camera=camera, color_by=part),
    )


def falls(values: list[float]) -> bool:
    """Whether a sequence never rises and ends below its start."""
    return all(a >= b for a, b in itertools.pairwise(values)) and values[0] > values[-1]


def study(
    s: BallSettings, job: Job, cohesions: tuple[float, ...], one: Callable[[Ball, float], Throw]
) -> tuple[Throws, dict[str, float]]:
    """Every cohesion with every ball, and metrics: means over the seeds as `clusters_c500`, `clusters_c500_seed0` each.

    one: throws a ball with a cohesion [N].
    """
    throws, packings = {}, []
    for seed in range(s.seeds):
        ball = pack(s, job, seed)
        packings.append(ball.metrics)
        for cohesion in cohesions:
            throws[cohesion, seed] = one(ball, cohesion)
    overlaps = overlap_metrics(t.metrics["largest_overlap_ratio"] for t in throws.values())
    return throws, _means(packings) | summary(throws) | overlaps


def summary(throws: Throws) -> dict[str, float]:
    """Metrics of each cohesion."""
    metrics: dict[str, float] = {}
    for cohesion in sorted({c for c, _ in throws}):
        found = {seed: t.metrics for (c, seed), t in throws.items() if c == cohesion}
        metrics |= {f"{key}_c{cohesion:.0f}": value for key, value in _means(list(found.values())).items()}
        for seed, m in found.items():
            metrics |= {f"{key}_c{cohesion:.0f}_seed{seed}": m[key] for key in ("clusters", "largest_part", "spread")}
    return metrics


def _means(metrics: list[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([m[key] for m in metrics])) for key in metrics[0]}


def draw(name: str, title: str, throws: Throws, job: Job) -> None:
    """Clusters, spread and the largest cluster over cohesion for every seed, and the first ball after each throw."""
    cohesions = sorted({c for c, _ in throws})
    labels = {"clusters": "clusters", "spread": "radius of gyration [m]", "largest_part": "part in the largest cluster"}
    panels = [Panel(label, xlabel="cohesion [N]", log_x=True, log=key == "clusters") for key, label in labels.items()]
    positive = np.array([c for c in cohesions if c > 0.0])
    for seed in sorted({k for _, k in throws}):
        color = PALETTE[seed % len(PALETTE)]
        for key, panel in zip(labels, panels):
            y = np.array([throws[c, seed].metrics[key] for c in positive])
            panel.curves.append(Curve(f"seed {seed}", positive, y, color, marker="o"))
            if 0.0 in cohesions and len(positive):
                loose = np.full(2, throws[0.0, seed].metrics[key])
                panel.curves.append(Curve("_no cohesion", positive[[0, -1]], loose, color, ":"))
    draw_panels(
        job.out / f"{name}.png", [panels], title=f"{title} (dotted: no cohesion)" if 0.0 in cohesions else title
    )
    pictures = [(f"{c:g} N: {throws[c, 0].metrics['clusters']:.0f} clusters", throws[c, 0].picture) for c in cohesions]
    draw_pictures(job.out / f"{name}_scene.png", pictures, title=f"{title} (colour: size of the cluster)")
