"""Growth of collision with sizes that differ and with triangles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..options import StepOptions
from ..scene.builder import SceneBuilder
from ..scene.fill import grid_points
from ..scene.meshes import Mesh
from ..sim.simulation import Simulation
from ..solve.apgd import SolverAPGD
from .base import Row, Setting, row

__all__ = ["sizes"]


def sizes(setting: Setting) -> Iterator[Row]:
    """Growth of the broad phase with the number of bodies when sizes differ 1:100 and 1:1000 in one scene, and of the
    narrow phase with the number of triangles of a static mesh."""
    for ratio in (100, 1000):
        figures = []
        for count in (4000, 16000):
            rng = np.random.default_rng(0)
            radius = 0.01 * ratio ** rng.uniform(0, 1, count) ** 4
            side = 1.6 * np.cbrt(np.sum(radius**3) * 4.19)
            scene = SceneBuilder(gravity=(0, 0, 0))
            scene.add_spheres(radius, mass=1.0, position=rng.uniform(0, side, (count, 3)))
            sim = Simulation(
                scene.build(),
                options=StepOptions(dt=1e-4),
                solver=SolverAPGD(max_iterations=1),
                threads=setting.threads,
            )
            sim._watch.said.add("overlap")
            seconds = min(sim.step().seconds["broad"] for _ in range(6))
            figures.append(seconds)
            yield row("sizes", f"{count} spheres, radii 1:{ratio}", "broad_ms", 1e3 * seconds)
        yield row("sizes", f"16000 against 4000, radii 1:{ratio}", "time_ratio", figures[1] / figures[0])
    figures = []
    for cells in (70, 700):
        x = np.linspace(-35.0, 35.0, cells + 1)
        points = np.stack([*np.meshgrid(x, x, indexing="ij"), np.zeros((cells + 1, cells + 1))], axis=-1).reshape(-1, 3)
        first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
        corner = np.array([(0, cells + 1, cells + 2), (0, cells + 2, 1)])
        mesh = Mesh(points, (first[:, None, None] + corner).reshape(-1, 3))
        scene = SceneBuilder()
        scene.add_static(mesh)
        scene.add_spheres(0.04, mass=1.0, position=grid_points((50, 50, 1), 1.3, origin=(0, 0, 0.04)))
        sim = Simulation(scene.build(), options=StepOptions(dt=1e-3), threads=setting.threads)
        reports = [sim.step() for _ in range(6)]
        figures.append(min(r.seconds["broad"] + r.seconds["narrow"] for r in reports))
        yield row("sizes", f"2500 spheres on {2 * cells**2} triangles", "collision_ms", 1e3 * figures[-1])
    yield row("sizes", "980000 against 9800 triangles", "time_ratio", figures[1] / figures[0])
