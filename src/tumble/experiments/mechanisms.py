"""Ideal joints do no work: energy and closure of mechanisms of every kind, and the order of both integrators."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..enums import Integrator, JointKind
from ..options import StepOptions
from ..scene import rotation
from ..scene.builder import SceneBuilder
from ..scene.model import Model
from ..sim.report import StepReport
from . import base
from .base import Job, expect, setting, slope
from .figures import LINES, PALETTE, Curve, Panel, draw_panels

INTEGRATORS = (str(Integrator.EULER), str(Integrator.MOREAU))
PROPORTIONS = ((1, 1, 1), (1, 1, 2), (1, 50, 50.5), (100, 100, 1), (1, 1.5, 2))
"""Of principal moments"""


@dataclass(frozen=True, kw_only=True)
class Settings(base.Settings):
    """Of `mechanisms`."""

    dt: float = setting(5e-4, "time step", unit="s", above=0.0)
    steps: int = setting(20000, "steps of every mechanism", quick=1000)
    spin: float = setting(20.0, "angular velocities at the start, about", unit="rad/s", above=0.0)
    seed: int = setting(0, "of the random bodies")
    halvings: int = setting(4, "step sizes of the double pendulum", quick=3)

    def check(self, where: str) -> None:
        """At least two step sizes and some steps."""
        base.checks.integer(where + ": halvings", self.halvings, at_least=2, error=base.ExperimentError)
        base.checks.integer(where + ": steps", self.steps, at_least=100, error=base.ExperimentError)


def mechanism(kind: str, s: Settings) -> Model:
    """Two random bodies joined by the kind, the first also to the ground (unless fixed); no gravity."""
    rng = np.random.default_rng([s.seed, list(JointKind).index(JointKind(kind))])
    scene = SceneBuilder(gravity=(0.0, 0.0, 0.0))
    for k in range(2):
        q, shape = rng.normal(size=4), np.array(PROPORTIONS[rng.integers(len(PROPORTIONS))], float)
        mass = float(rng.uniform(0.5, 2.0))
        scene.add_body(
            None,
            mass=mass,
            inertia=0.01 * mass * shape / shape.max(),
            position=0.3 * k + 0.05 * rng.normal(size=3),
            orientation=q / np.linalg.norm(q),
            velocity=rng.normal(size=3),
            angular_velocity=s.spin * rng.normal(size=3),
        )
    for a, b in ((None, 0), (0, 1)) if kind != JointKind.FIXED else ((0, 1),):
        place, x = 0.3 * b + 0.1 * rng.normal(size=3), rng.normal(size=3)
        if kind == JointKind.DISTANCE:
            scene.add_joint(kind, a, b, anchor_a=0.2 * rng.normal(size=3), anchor_b=0.1 * rng.normal(size=3))
        elif kind == JointKind.UNIVERSAL:
            scene.add_joint(kind, a, b, anchor=place, axis=x, second_axis=np.cross(x, rng.normal(size=3)))
        else:
            scene.add_joint(kind, a, b, anchor=place, axis=x)
    return scene.build()


def double_pendulum() -> Model:
    """Two rods of 1 m from 1 and 2 rad."""
    scene = SceneBuilder()
    above, place = None, np.zeros(3)
    for angle in (1.0, 2.0):
        end = place + np.array([np.sin(angle), 0.0, -np.cos(angle)])
        rod = scene.add_body(None, mass=1.0, inertia=(0.09, 0.08, 0.02), position=0.5 * (place + end))
        scene.add_joint("revolute", above, rod, anchor=place, axis=(0.0, 1.0, 0.0))
        above, place = rod, end
    return scene.build()


def run(s: Settings, job: Job) -> dict[str, float]:
    """Every kind of joint, then the order."""
    metrics: dict[str, float] = {}
    panels = [Panel("energy / energy at the start - 1", title=i) for i in INTEGRATORS]
    trends, drift, parts = [], 0.0, 0
    kinds = [str(k) for k in JointKind]
    for panel, integrator in zip(panels, INTEGRATORS):
        for number, kind in enumerate(kinds):
            reports = _reports(job, mechanism(kind, s), StepOptions(dt=s.dt, integrator=integrator), s.steps)
            energy = np.array([r.kinetic_energy for r in reports])
            first = energy[: s.steps // 2].mean()
            trend = (energy[s.steps // 2 :].mean() / first - 1.0) * 2000.0 / s.steps
            metrics[f"energy_trend_{kind}_{integrator}"] = trend
            trends.append(abs(trend))
            drift = max(drift, max(r.joint_drift for r in reports))
            parts += sum(r.parts > 1 for r in reports)
            every = max(1, s.steps // 400)
            x = s.dt * np.arange(1, len(energy) + 1)[::every]
            color, line = PALETTE[number % len(PALETTE)], LINES[number // len(PALETTE)]
            panel.curves.append(Curve(kind, x, (energy / energy[0] - 1.0)[::every], color, line))
    metrics |= {"largest_drift": drift, "divided_steps": float(parts), "largest_trend": max(trends)}
    order = Panel(
        "change with half the step [m]", xlabel="time step [s]", title="double pendulum", log=True, log_x=True
    )
    for color, integrator in zip(PALETTE, INTEGRATORS):
        steps = 4e-3 / 2.0 ** np.arange(s.halvings + 1)
        ends = [_end(job, StepOptions(dt=h, integrator=integrator)) for h in steps]
        change = np.array([np.abs(a - b).max() for a, b in pairwise(ends)])
        metrics[f"order_{integrator}"] = slope(steps[:-1], change) or 0.0
        order.curves.append(Curve(integrator, steps[:-1], change, color, marker="o"))
    metrics |= expect(
        closed=drift < 1e-10,
        no_trend=max(trends) < (1e-5 if s.steps >= 10000 else 1e-3),
        second_order=abs(metrics["order_moreau"] - 2.0) < 0.2,
    )
    draw_panels(job.out / "mechanisms.png", [[*panels, order]], title="Ideal joints do no work")
    return metrics


def _reports(job: Job, model: Model, options: StepOptions, steps: int) -> list[StepReport]:
    reports: list[StepReport] = []
    job.simulate(model, until=steps * options.dt, observe=lambda _, report: reports.append(report), options=options)
    return reports


def _end(job: Job, options: StepOptions) -> np.ndarray:
    sim, _ = job.simulate(double_pendulum(), until=1.0, observe=lambda _sim, _report: None, options=options)
    return rotation.rotate(sim.orientations(), np.array([0.0, 0.0, 0.5])) + sim.positions()
