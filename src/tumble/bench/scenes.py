"""Scenes that several benches use."""

from __future__ import annotations

import numpy as np

from ..options import StepOptions
from ..scene.builder import SceneBuilder
from ..scene.fill import grid_points
from ..scene.hulls import ConvexHull
from ..scene.materials import Material
from ..scene.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, open_box
from ..sim.simulation import Simulation
from ..solve.apgd import SolverAPGD
from .base import Setting

__all__ = ["MIXED", "fill_scene", "settled", "settled_mixed"]

MIXED = (
    Cylinder(0.8, 1.6),
    ConvexHull(np.random.default_rng(0).normal(size=(16, 3)) * 0.6),
    Box((1.5, 1.2, 1.4)),
    Ellipsoid((1.0, 0.8, 0.7)),
    Capsule(0.6, 0.9),
    Cone(0.9, 1.8),
)


def settled_mixed(count: int, setting: Setting) -> Simulation:
    """Bodies of six shapes, in turn, dropped from a loose grid in random orientations and let settle."""
    scene = SceneBuilder()
    columns = int(np.ceil(np.sqrt(count / 20)))
    side = 2.6 * columns + 1.0
    scene.add_static(open_box(inner=(side, side, 80.0), thickness=2.0))
    points = grid_points((columns, columns, -(-count // columns**2)), 2.6, origin=(0, 0, 2.0), jitter=0.02)[:count]
    rng = np.random.default_rng(1)
    turn = rng.normal(size=(count, 4))
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    for k in range(count):
        scene.add_body(MIXED[k % len(MIXED)], density=1.0, position=points[k], orientation=turn[k])
    sim = Simulation(
        scene.build(),
        options=StepOptions(dt=0.01),
        solver=SolverAPGD(tolerance=1e-4, max_iterations=40, precision=setting.precision),
        threads=setting.threads,
        backend=setting.backend,
    )
    sim.run(until=4.0, progress=False)
    return sim


def fill_scene(count: int, method: SolverAPGD, threads: int | None) -> Simulation:
    scene = SceneBuilder()
    grain = scene.add_material(Material(friction=0.25))
    scene.add_static(open_box(inner=(20.0, 20.0, 60.0), thickness=2.0), material=grain)
    points = grid_points((9, 9, -(-count // 81)), 2.2, origin=(0, 0, 1.1), jitter=0.05)[:count]
    scene.add_spheres(1.0, mass=1.0, material=grain, position=points)
    return Simulation(scene.build(), options=StepOptions(dt=0.01), solver=method, threads=threads)


def settled(count: int, setting: Setting) -> Simulation:
    """Spheres dropped from a loose grid and let settle with few iterations a step."""
    scene = SceneBuilder()
    columns = int(np.ceil(np.sqrt(count / 20)))
    side = 2.05 * columns
    scene.add_static(open_box(inner=(side, side, 60.0), thickness=2.0))
    points = grid_points((columns, columns, -(-count // columns**2)), 2.05, origin=(0, 0, 1.05), jitter=0.02)[:count]
    radius = np.random.default_rng(1).uniform(0.9, 1.0, count)
    scene.add_spheres(radius, mass=1.0, position=points)
    sim = Simulation(
        scene.build(),
        options=StepOptions(dt=0.01),
        solver=SolverAPGD(tolerance=1e-4, max_iterations=40, precision=setting.precision),
        threads=setting.threads,
        backend=setting.backend,
    )
    sim.run(until=2.5, progress=False)
    return sim
