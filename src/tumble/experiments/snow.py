"""A snowball falls on the edge of a cube: the more cohesion, the fewer pieces and the less they spread."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import tumble as tb

from ..view.picture import Camera
from .base import Job, expect, setting
from .cohesive_ball import Ball, BallSettings, Throw, draw, falls, study, throw

EDGE_UP = (math.cos(math.pi / 8.0), math.sin(math.pi / 8.0), 0.0, 0.0)
"""A cube turned by 45 degrees about x: the edge along x is its highest part."""


@dataclass(frozen=True, kw_only=True)
class Settings(BallSettings):
    """Of `snow`. The ball starts just above the edge, so that time counts from the impact."""

    cohesions: tuple[float, ...] = setting((0.0, 500.0, 4000.0, 20000.0), "between spheres", unit="N", at_least=0.0)
    wall_friction: float = setting(0.1, "of cube and floor", at_least=0.0)
    speed: float = setting(10.0, "of the ball, downwards", unit="m/s", above=0.0)
    cube: float = setting(4.0, "edge of the cube, which is sunk to its middle in a floor", unit="ball radii", above=0.0)
    duration: float = setting(0.5, "simulated time after the impact", unit="s", above=0.0)
    dt: float = setting(5e-4, "time step", unit="s", above=0.0)


def fall(s: Settings, job: Job, ball: Ball, cohesion: float) -> Throw:
    """One ball with one cohesion. The edge lies along x through the origin."""
    edge = s.cube * s.ball_radius
    depth = edge / math.sqrt(2.0)

    def walls(scene: tb.SceneBuilder) -> None:
        material = scene.add_material(tb.Material(friction=s.wall_friction))
        cube = tb.Box((edge, edge, edge))
        scene.add_static(cube, material=material, position=(0.0, 0.0, -depth), orientation=EDGE_UP, name="cube")
        scene.add_static(tb.HalfSpace((0.0, 0.0, 1.0), -depth), material=material, name="floor")

    lowest = float((ball.position[:, 2] - ball.radius).min())
    far = 4.5 * depth
    return throw(
        s,
        job,
        ball,
        cohesion,
        walls,
        center=np.array([0.0, 0.0, s.speed * s.dt - lowest]),
        velocity=np.array([0.0, 0.0, -s.speed]),
        duration=s.duration,
        dt=s.dt,
        camera=Camera(eye=(0.75 * far, -0.35 * far, 0.35 * far - depth), target=(0.0, 0.0, -0.6 * depth)),
    )


def run(s: Settings, job: Job) -> dict[str, float]:
    """Every cohesion with every ball."""
    job = job.lenient()
    throws, metrics = study(s, job, s.cohesions, lambda ball, cohesion: fall(s, job, ball, cohesion))
    metrics["impact_force"] = s.density * 4.0 / 3.0 * math.pi * s.radius**2 * s.speed**2 / 2.0
    draw("snow", f"{s.spheres} spheres fall on an edge, {s.duration:g} s after the impact", throws, job)
    if len(s.cohesions) > 1:
        metrics |= expect(
            **{
                f"{key}_fall": all(
                    falls([throws[c, seed].metrics[key] for c in s.cohesions]) for seed in range(s.seeds)
                )
                for key in ("clusters", "spread")
            }
        )
    return metrics
