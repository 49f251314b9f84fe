"""Mixed scenes whose final states are known bit for bit. `python -m tests.golden.scenes` prints their hashes as JSON.

Do that after a change that is meant to change results, and put the answer into `hashes.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

import tumble as tb


def machine() -> tb.Simulation:
    """An emitter pours balls that bounce on a paddle, which a motor drives about a hinge."""
    scene = tb.SceneBuilder()
    rubber = scene.add_material(tb.Material(friction=0.5, restitution=0.6))
    scene.add_static(tb.open_box(inner=(1.0, 1.0, 0.5)), material=rubber)
    scene.add_body(tb.Box((0.6, 0.1, 0.04)), density=500.0, material=rubber, position=(0, 0, 0.3), name="paddle")
    scene.add_joint("revolute", None, "paddle", anchor=(0, 0, 0.3), axis=(0, 1, 0), friction=0.05, name="hinge")
    scene.add_motor("hinge", "speed", target=3.0, maximum=2.0)
    region = tb.DiscRegion(center=(0, 0, 0.6), radius=0.2)
    scene.add_emitter(
        tb.Sphere(0.03), count=40, rate=200.0, region=region, density=800.0, size_range=(0.7, 1.0), material=rubber
    )
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))


def shapes() -> tb.Simulation:
    """One of every shape falls on uneven ground that resists rolling."""
    scene = tb.SceneBuilder()
    rough = scene.add_material(tb.Material(friction=0.4, rolling_friction=0.001, spinning_friction=0.0005))
    ground = 0.03 * np.array([[(3 * i + 5 * j) % 7 for j in range(9)] for i in range(9)]) / 7.0
    scene.add_static(tb.HeightField(ground, (2.0, 2.0)), material=rough)
    cube = 0.06 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    for k, shape in enumerate(
        (
            tb.Sphere(0.08),
            tb.Capsule(0.05, 0.1),
            tb.Box((0.1, 0.15, 0.08)),
            tb.Cylinder(0.06, 0.12),
            tb.Cone(0.08, 0.12),
            tb.Ellipsoid((0.05, 0.07, 0.09)),
            tb.ConvexHull(cube),
            tb.Rounded(tb.Box((0.08, 0.08, 0.08)), 0.01),
        )
    ):
        at = (0.3 * (k % 3) - 0.3, 0.3 * (k // 3) - 0.3, 0.15)
        scene.add_body(shape, mass=0.5 + 0.1 * k, material=rough, position=at, angular_velocity=(1.0, 2.0, 0.5))
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))


def pile() -> tb.Simulation:
    """Enough balls for parallel loops, settling in a box."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(0.75, 0.75, 2.0)))
    points = tb.grid_points((10, 10, 9), 0.07, origin=(0, 0, 0.036), jitter=0.004)
    scene.add_spheres(0.03, density=2500.0, position=points)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(max_iterations=60))


SCENES: dict[str, tuple[Callable[[], tb.Simulation], int]] = {
    "machine": (machine, 150),
    "shapes": (shapes, 150),
    "pile": (pile, 80),
}
"""Each with its number of steps."""


def golden(name: str) -> str:
    """Hash of the state at the end of a scene."""
    make, steps = SCENES[name]
    sim = make()
    for _ in range(steps):
        sim.step()
    return sim.state.sha256()


if __name__ == "__main__":
    print(json.dumps({name: golden(name) for name in SCENES}, indent=2))
