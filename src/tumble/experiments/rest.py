"""Stacks of boxes and beds of spheres come to rest: how fast they still move, by the default rules and the old ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import tumble as tb

from ..enums import BodyKind
from ..scene.model import Model
from ..sim.report import StepReport
from .base import Job, expect, setting
from .base import Settings as BaseSettings
from .figures import PALETTE, Curve, Panel, draw_panels

WINDOW = 100
"""Steps at the end over which speeds and forces are taken."""
OLD = {"solver": tb.SolverAPGD(tolerance=1e-5)}
"""The rules before: a natural map of the whole pile, and every gap closed in every step."""
HELD = 3
"""Contacts that bear force from which a body counts as held; others may roll or rattle."""


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `rest`."""

    boxes: tuple[float, ...] = setting(
        (5.0, 10.0, 20.0, 40.0, 60.0), "boxes in a stack", quick=(5.0, 20.0), at_least=1.0
    )
    spheres: tuple[float, ...] = setting((100.0, 300.0, 1000.0), "spheres in a bed", quick=(60.0,), at_least=1.0)
    size: float = setting(0.1, "edge of the boxes", unit="m", above=0.0)
    radius: float = setting(0.02, "of the spheres", unit="m", above=0.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)
    compliance: float = setting(0.0, "of the material (a contact of two such bodies: twice)", unit="m/N", at_least=0.0)
    dt: float = setting(2e-3, "time step", unit="s", above=0.0)
    duration: float = setting(12.0, "simulated time", unit="s", quick=3.0, above=0.0)
    drift: float = setting(10.0, "displacements are measured over this time at the end", unit="s", quick=1.0, above=0.0)
    seed: int = setting(1, "of the places at the start", at_least=0)


def run(s: Settings, job: Job) -> dict[str, float]:
    """Stacks by both rules, beds by the default."""
    metrics: dict[str, float] = {}
    curves: dict[str, list[float]] = {"default": [], "old": []}
    for count in map(int, s.boxes):
        for rule, options in (("default", {}), ("old", OLD)):
            found = _watch(s, job, _stack(s, count), 0.5 * s.size, rule, **options)
            metrics |= {f"{key}_boxes_{count}_{rule}": value for key, value in found.items()}
            curves[rule].append(found["speed"])
    beds = []
    for count in map(int, s.spheres):
        found = _watch(s, job, _bed(s, count), s.radius, "default")
        metrics |= {f"{key}_spheres_{count}": value for key, value in found.items()}
        beds.append(found["speed"])
    panels = [
        Panel(
            "largest speed at rest / (g h)",
            [
                Curve(rule, np.array(s.boxes), np.array(curves[rule]), PALETTE[k], marker="o")
                for k, rule in enumerate(curves)
            ],
            title="Stacks of boxes",
            xlabel="boxes",
            log=True,
        ),
        Panel(
            "largest speed at rest / (g h)",
            [Curve("default", np.array(s.spheres), np.array(beds), PALETTE[0], marker="o")],
            title="Beds of spheres, those that are held",
            xlabel="spheres",
            log=True,
            log_x=True,
        ),
    ]
    draw_panels(job.out / "rest.png", [panels], title="What still moves at rest")
    ours = [value for key, value in metrics.items() if key.startswith("speed_") and not key.endswith("_old")]
    forces = [value for key, value in metrics.items() if key.startswith("force_error") and not key.endswith("_old")]
    return metrics | expect(rests=max(ours) < 1e-2, bears_its_weight=max(forces) < 1e-3)


def _watch(s: Settings, job: Job, model: Model, size: float, rule: str, **rest: Any) -> dict[str, float]:
    """Run a pile and look at its last steps. Speeds in g h, displacements in `size`, forces in the weight."""
    steps = round(s.duration / s.dt)
    dynamic = model.body_kind == BodyKind.DYNAMIC
    weight = s.gravity * float(model.body_mass[dynamic].sum())
    speeds, forces, places, iterations = [], [], [], []

    def observe(sim: tb.Simulation, report: StepReport) -> None:
        iterations.append(report.iterations)
        if report.step == steps - round(s.drift / s.dt):
            places.append(sim.positions())
        if report.step <= steps - WINDOW:
            return
        found = sim.contact_forces()
        loaded = np.linalg.norm(found.force, axis=1) > 1e-3 * weight / dynamic.sum()
        bodies = np.concatenate([found.body_a[loaded], found.body_b[loaded]])
        held = dynamic & (np.bincount(bodies, minlength=model.body_count) >= HELD)
        speeds.append(np.linalg.norm(sim.velocities()[held], axis=1).max(initial=0.0))
        fixed = ~dynamic
        lift = found.force[fixed[found.body_a]].sum(axis=0) - found.force[fixed[found.body_b]].sum(axis=0)
        forces.append(abs(lift[2]))

    options = tb.StepOptions(dt=s.dt, leave_gaps=rule == "default")
    sim, result = job.lenient().simulate(model, until=s.duration, observe=observe, options=options, **rest)
    moved = np.linalg.norm(sim.positions() - places[0], axis=1)[dynamic]
    return {
        "speed": max(speeds) / (s.gravity * s.dt),
        "force_error": abs(float(np.mean(forces)) / weight - 1.0),
        "displacement": float(np.max(moved)) / size,
        "displacement_median": float(np.median(moved)) / size,
        "iterations": float(np.mean(iterations)),
        "iterations_at_rest": float(np.mean(iterations[-WINDOW:])),
        "unconverged_share": result.unconverged / steps,
        "largest_miss": float(np.max(result.reports["missed"])),
        "largest_overlap_ratio": float(np.max(result.reports["largest_overlap"][-WINDOW:])) / size,
    }


def _stack(s: Settings, count: int) -> Model:
    """Boxes a hundredth of their size askew, each dropped by a five-hundredth."""
    rng = np.random.default_rng(s.seed)
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -s.gravity))
    material = scene.add_material(tb.Material(compliance=s.compliance))
    scene.add_static(tb.HalfSpace(), material=material)
    for k in range(count):
        x, y = 0.01 * s.size * rng.uniform(-1.0, 1.0, 2)
        place = (x, y, s.size * (k + 0.5 + 0.002 * (k + 1)))
        scene.add_body(tb.Box((s.size, s.size, s.size)), density=1000.0, position=place, material=material)
    return scene.build()


def _bed(s: Settings, count: int) -> Model:
    """Spheres in an open box about as deep as it is wide."""
    columns = max(3, round((count / 1.5) ** (1 / 3)))
    layers = -(-count // columns**2)
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -s.gravity))
    material = scene.add_material(tb.Material(compliance=s.compliance))
    side = 2.2 * s.radius * columns
    scene.add_static(tb.open_box(inner=(side, side, 5.0 * s.radius * layers)), material=material)
    points = tb.grid_points(
        (columns, columns, layers), 2.15 * s.radius, origin=(0, 0, 1.1 * s.radius), jitter=0.05 * s.radius, seed=s.seed
    )
    scene.add_spheres(s.radius, density=2500.0, position=points[:count], material=material)
    return scene.build()
