"""Overhead: scenes of a few bodies."""

from __future__ import annotations

from collections.abc import Iterator

from ..options import StepOptions
from ..scene.builder import SceneBuilder
from ..scene.shapes import Box
from ..sim.simulation import Simulation
from .base import Row, Setting, row, seconds_of

__all__ = ["free_box"]


def free_box(setting: Setting) -> Iterator[Row]:
    """Overhead of a step: one box that touches nothing."""
    scene = SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(Box((0.3, 0.2, 0.1)), mass=1.0, angular_velocity=(1, 2, 3))
    sim = Simulation(scene.build(), options=StepOptions(dt=1e-3), threads=setting.threads)
    sim.step()
    yield row("free-box", "one box", "ms_per_step", 1e3 * min(seconds_of(sim.step, 500) for _ in range(5)))
