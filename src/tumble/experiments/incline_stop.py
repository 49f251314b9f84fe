"""A cube that moves down or up a plane stops and stays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import LAWS, Job, by_step_size, setting
from .cube import CubeSettings, Slide, draw_slides, measure_stop, slide_cube, stopping_time

WAYS = {"down": 1.0, "up": -1.0}


@dataclass(frozen=True, kw_only=True)
class Settings(CubeSettings):
    """Of `incline-stop`."""

    friction: float = setting(0.6, "coefficient of friction; above 1 a cube tips over", at_least=0.0, at_most=1.0)
    angle: float = setting(25.0, "slope of the plane", unit="deg", at_least=0.0, at_most=45.0)
    speed: float = setting(2.0, "speed at the start, down and up", unit="m/s", above=0.0)
    duration: float = setting(2.5, "simulated time", unit="s", above=0.0)

    def check(self, where: str) -> None:
        """The cube must have time to stop; going down it takes longer."""
        stopping_time(self, where, angle=self.angle, speed=self.speed, duration=self.duration)


def run(s: Settings, job: Job) -> dict[str, float]:
    """Both ways, both laws, every step size."""
    metrics: dict[str, float] = {}
    slides: dict[tuple[str, str, float], Slide] = {
        (way, law, dt): slide_cube(s, job, angle=s.angle, speed=sign * s.speed, duration=s.duration, dt=dt, law=law)
        for way, sign in WAYS.items()
        for law in LAWS
        for dt in s.dt
    }
    for law in LAWS:
        metrics |= by_step_size({dt: _measure({way: slides[way, law, dt] for way in WAYS}, law) for dt in s.dt})
    t = np.linspace(0.0, s.duration, 401)
    for way, sign in WAYS.items():
        time = stopping_time(s, "experiment incline-stop", angle=s.angle, speed=sign * s.speed, duration=s.duration)
        metrics[f"{way}_stop_time_exact"], metrics[f"{way}_stop_distance_exact"] = time, 0.5 * s.speed * time
        part = np.minimum(t / time, 1.0)
        draw_slides(
            job,
            f"incline_stop_{way}",
            f"Cube moving {way} a plane of {s.angle:g} deg",
            {(law, dt): slides[way, law, dt] for law in LAWS for dt in s.dt},
            (t, sign * s.speed * time * part * (1.0 - 0.5 * part), sign * s.speed * (1.0 - part)),
        )
    return metrics


def _measure(slides: dict[str, Slide], law: str) -> dict[str, float]:
    """Metrics of one law and step size; creep and lift-off are the worse of both ways."""
    found = {way: measure_stop(slide) for way, slide in slides.items()}
    metrics = {
        f"{way}_{key}_{law}": value
        for way, stop in found.items()
        for key, value in stop.items()
        if key != "creep_speed"
    }
    if all(found.values()):
        metrics[f"creep_speed_{law}"] = max(stop["creep_speed"] for stop in found.values())
    metrics[f"max_vertical_speed_{law}"] = max(np.abs(slide.lift_speed).max() for slide in slides.values())
    metrics[f"unconverged_steps_{law}"] = sum(slide.track.unconverged for slide in slides.values())
    return metrics
