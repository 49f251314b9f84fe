"""This library."""

from __future__ import annotations

from collections.abc import Iterator

from ...options import StepOptions
from ...scene.builder import SceneBuilder
from ...scene.materials import Material
from ...scene.shapes import Box
from ...sim.simulation import Simulation
from ...solve.apgd import SolverAPGD
from .base import Candidate, Pile

__all__ = ["candidates"]


def candidates(pile: Pile, threads: int) -> Iterator[Candidate]:
    """From 4 iterations a step to the default rule."""
    for iterations in (4, 10, 20, 50, 200, None):
        scene = SceneBuilder(gravity=(0.0, 0.0, -pile.gravity))
        grain = scene.add_material(Material(friction=pile.friction))
        for half, centre in pile.walls():
            scene.add_static(Box((2.0 * half[0], 2.0 * half[1], 2.0 * half[2])), position=centre, material=grain)
        scene.add_spheres(pile.radius, mass=1.0, material=grain, position=pile.points, name="grains")
        solver = None if iterations is None else SolverAPGD(tolerance=0.0, max_iterations=iterations)
        options = StepOptions(dt=pile.dt)
        sim = Simulation(scene.build(), options=options, solver=solver, threads=threads)
        first = sim.model.body_count - len(pile.points)
        yield Candidate(
            "tumble",
            "default" if iterations is None else f"{iterations} iterations",
            sim.step,
            lambda sim=sim, first=first: sim.positions()[first:],
            lambda sim=sim, first=first: sim.velocities()[first:],
        )
