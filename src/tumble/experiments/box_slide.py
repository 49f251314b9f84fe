"""A cube slides on a floor and stops; under the relaxed law it lifts off first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import LAWS, Job, by_step_size, setting
from .cube import CubeSettings, draw_slides, measure_stop, slide_cube, stopping_time


@dataclass(frozen=True, kw_only=True)
class Settings(CubeSettings):
    """Of `box-slide`."""

    speed: float = setting(2.0, "speed at the start", unit="m/s", above=0.0)
    duration: float = setting(1.5, "simulated time", unit="s", above=0.0)

    def check(self, where: str) -> None:
        """The cube must have time to stop."""
        stopping_time(self, where, angle=0.0, speed=self.speed, duration=self.duration)


def run(s: Settings, job: Job) -> dict[str, float]:
    """Both laws, every step size."""
    time = stopping_time(s, "experiment box-slide", angle=0.0, speed=s.speed, duration=s.duration)
    slides = {
        (law, dt): slide_cube(s, job, angle=0.0, speed=s.speed, duration=s.duration, dt=dt, law=law)
        for law in LAWS
        for dt in s.dt
    }
    metrics = {"stop_time_exact": time, "stop_distance_exact": 0.5 * s.speed * time}
    for law in LAWS:
        found = {}
        for dt in s.dt:
            slide = slides[law, dt]
            values = measure_stop(slide) | {
                "max_vertical_speed": np.abs(slide.lift_speed).max(),
                "first_step_vertical_speed": slide.lift_speed[1],
                "unconverged_steps": slide.track.unconverged,
            }
            found[dt] = {f"{key}_{law}": value for key, value in values.items()}
        metrics |= by_step_size(found)
    t = np.linspace(0.0, s.duration, 401)
    part = np.minimum(t / time, 1.0)
    draw_slides(
        job,
        "box_slide",
        "Cube on a floor",
        slides,
        (t, s.speed * time * part * (1.0 - 0.5 * part), s.speed * (1.0 - part)),
    )
    return metrics
