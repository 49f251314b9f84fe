"""A ball of cohesive spheres hits a wall: with little cohesion it shatters, with ten times as much it stays whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tumble as tb

from ..view.picture import Camera
from .base import Job, expect, setting
from .cohesive_ball import Ball, BallSettings, Throw, draw, study, throw

PIECES = 5
"""At least so many clusters are shattered."""
WHOLE = 0.98
"""A ball is whole while its largest cluster holds this part of the spheres."""


@dataclass(frozen=True, kw_only=True)
class Settings(BallSettings):
    """Of `brittle`. The ball starts just before the wall, so that time counts from the impact. The paper threw a
    teapot of 154000 spheres; this is a ball. In steps of 1e-3 s a sphere moves by 0.4 radii at the impact, and the ball
    is pushed into itself by up to a tenth of a radius, however well the steps are solved: hence the shorter ones."""

    spheres: int = setting(154000, "number of spheres", quick=600, at_least=2)
    cohesions: tuple[float, ...] = setting((1e4, 1e5), "between spheres", unit="N", at_least=0.0)
    wall_friction: float = setting(1.0, "of the wall", at_least=0.0)
    speed: float = setting(40.0, "of the ball, towards the wall", unit="m/s", above=0.0)
    duration: float = setting(0.3, "simulated time after the impact", unit="s", above=0.0)
    dt: float = setting(1e-3, "time step", unit="s", above=0.0)
    impact: float = setting(0.03, "time of the impact, with shorter steps", unit="s", at_least=0.0)
    impact_dt: float = setting(2.5e-4, "time step of the impact", unit="s", above=0.0)
    max_iterations: int = setting(1000, "most iterations a step", at_least=1)


def hit(s: Settings, job: Job, ball: Ball, cohesion: float) -> Throw:
    """One ball with one cohesion. The wall is the plane x = 0."""

    def walls(scene: tb.SceneBuilder) -> None:
        material = scene.add_material(tb.Material(friction=s.wall_friction))
        scene.add_static(tb.HalfSpace((-1.0, 0.0, 0.0), 0.0), material=material, name="wall")

    nearest = float((ball.position[:, 0] + ball.radius).max())
    far = 13.0 * s.ball_radius
    return throw(
        s,
        job,
        ball,
        cohesion,
        walls,
        center=np.array([-nearest - s.speed * s.dt, 0.0, 0.0]),
        velocity=np.array([s.speed, 0.0, 0.0]),
        duration=s.duration,
        dt=s.dt,
        impact=(s.impact, s.impact_dt),
        camera=Camera(eye=(-0.7 * far, -0.6 * far, 0.3 * far), target=(-s.ball_radius, 0.0, 0.0)),
    )


def run(s: Settings, job: Job) -> dict[str, float]:
    """Every cohesion with every ball."""
    job = job.lenient()
    throws, metrics = study(s, job, s.cohesions, lambda ball, cohesion: hit(s, job, ball, cohesion))
    draw("brittle", f"{s.spheres} spheres hit a wall at {s.speed:g} m/s, {s.duration:g} s later", throws, job)
    if len(s.cohesions) > 1:
        least, most = s.cohesions[0], s.cohesions[-1]
        metrics |= expect(
            shatters=all(throws[least, seed].metrics["clusters"] >= PIECES for seed in range(s.seeds)),
            holds=all(throws[most, seed].metrics["largest_part"] >= WHOLE for seed in range(s.seeds)),
        )
    return metrics
