"""A cube at rest on a steep plane starts to slide."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, radians, sin

import numpy as np

from .base import LAWS, Job, by_step_size, setting
from .cube import CubeSettings, draw_slides, slide_cube


@dataclass(frozen=True, kw_only=True)
class Settings(CubeSettings):
    """Of `incline-slide`."""

    friction: float = setting(0.2, "coefficient of friction; above 1 a cube may tip over", at_least=0.0, at_most=1.0)
    angle: float = setting(65.0, "slope of the plane", unit="deg", at_least=0.0, at_most=89.0)
    duration: float = setting(1.0, "simulated time", unit="s", above=0.0)


def run(s: Settings, job: Job) -> dict[str, float]:
    """Both laws, every step size."""
    tilt = radians(s.angle)
    exact = s.gravity * max(0.0, sin(tilt) - s.friction * cos(tilt))
    metrics = {"acceleration_exact": exact}
    slides = {
        (law, dt): slide_cube(s, job, angle=s.angle, speed=0.0, duration=s.duration, dt=dt, law=law)
        for law in LAWS
        for dt in s.dt
    }
    for law in LAWS:
        metrics |= by_step_size(
            {
                dt: {
                    f"acceleration_{law}": slides[law, dt].speed[-1] / slides[law, dt].time[-1],
                    f"max_vertical_speed_{law}": np.abs(slides[law, dt].lift_speed).max(),
                    f"unconverged_steps_{law}": slides[law, dt].track.unconverged,
                }
                for dt in s.dt
            }
        )
    t = np.linspace(0.0, s.duration, 201)
    draw_slides(
        job,
        "incline_slide",
        f"Cube from rest on a plane of {s.angle:g} deg",
        slides,
        (t, 0.5 * exact * t**2, exact * t),
    )
    return metrics
