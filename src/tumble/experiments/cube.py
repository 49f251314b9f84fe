"""A cube that slides on a plane: the part that the three cube experiments share."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, radians, sin, tan
from typing import NamedTuple

import numpy as np

import tumble as tb

from ..errors import ExperimentError, message
from ..scene import rotation
from .base import Job, Settings, Track, lasting, setting, track_body
from .figures import COLORS, LINES, Curve, Panel, draw_panels

REST = 1e-6
"""A cube that stays slower than this has stopped [m/s]."""


@dataclass(frozen=True, kw_only=True)
class CubeSettings(Settings):
    """Of the cube experiments. Above friction 1 a cube tips over."""

    friction: float = setting(0.3, "coefficient of friction; above 1 a cube tips over", at_least=0.0, at_most=1.0)
    mass: float = setting(1.0, "mass of the cube", unit="kg", above=0.0)
    side: float = setting(1.0, "edge of the cube", unit="m", above=0.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)
    dt: tuple[float, ...] = setting((0.0025, 0.01), "time steps, separated by commas", unit="s", above=0.0)
    integrator: str = setting("euler", "euler, or moreau (midpoint)", choices=("euler", "moreau"))
    tolerance: float = setting(1e-11, "of the solver: natural map", at_least=0.0)
    max_iterations: int = setting(1000, "of the solver", at_least=1)


class Slide(NamedTuple):
    """Motion along the slope (down is positive) and away from it."""

    time: np.ndarray
    """(k,) [s]"""
    travel: np.ndarray
    """(k,) [m]"""
    speed: np.ndarray
    """(k,) [m/s]"""
    lift_speed: np.ndarray
    """(k,) [m/s]"""
    track: Track


def slide_cube(s: CubeSettings, job: Job, *, angle: float, speed: float, duration: float, dt: float, law: str) -> Slide:
    """Run a cube that lies on a plane tilted by an angle [deg] and starts with a speed down the slope [m/s]."""
    tilt = radians(angle)
    normal, down = np.array([sin(tilt), 0.0, cos(tilt)]), np.array([cos(tilt), 0.0, -sin(tilt)])
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -s.gravity))
    material = scene.add_material(tb.Material(friction=s.friction))
    scene.add_static(tb.HalfSpace(tuple(normal)), material=material, name="slope")
    cube = scene.add_body(
        tb.Box((s.side, s.side, s.side)),
        mass=s.mass,
        material=material,
        position=0.5 * s.side * normal,
        orientation=rotation.from_axis_angle((0.0, 1.0, 0.0), tilt),
        velocity=speed * down,
        name="cube",
    )
    published = tb.StepOptions(dt=dt, law=law, integrator=s.integrator, leave_gaps=s.integrator == "moreau")
    track = track_body(
        job,
        scene.build(),
        cube,
        until=duration,
        options=published,
        solver=tb.SolverAPGD(tolerance=s.tolerance, max_iterations=s.max_iterations),
    )
    return Slide(
        track.time, (track.position - track.position[0]) @ down, track.velocity @ down, track.velocity @ normal, track
    )


def stopping_time(s: CubeSettings, where: str, *, angle: float, speed: float, duration: float) -> float:
    """Closed form [s] for a speed down the slope [m/s] (negative: up); raises if it does not stop in time."""
    tilt = radians(angle)
    if s.friction <= tan(tilt):
        raise ExperimentError(
            message(
                f"{where}: friction",
                f"must exceed tan(angle) = {tan(tilt):.4g} for a stop",
                s.friction,
                "Raise friction or lower the angle.",
            )
        )
    uphill = -1.0 if speed < 0.0 else 1.0
    time = abs(speed) / (s.gravity * (s.friction * cos(tilt) - uphill * sin(tilt)))
    if duration < time + 2.0 * max(s.dt):
        raise ExperimentError(
            message(
                f"{where}: duration",
                f"must exceed the stop at {time:g} s by two steps",
                duration,
                "Simulate longer, raise friction or lower speed.",
            )
        )
    return time


def measure_stop(slide: Slide) -> dict[str, float]:
    """When and where the cube stopped and how fast it creeps afterwards; empty if it did not stop."""
    speed = np.linalg.norm(slide.track.velocity, axis=1)
    stop = lasting(speed < REST)
    if stop is None:
        return {}
    return {"stop_time": slide.time[stop], "stop_distance": abs(slide.travel[stop]), "creep_speed": speed[stop:].max()}


def draw_slides(
    job: Job,
    name: str,
    title: str,
    slides: dict[tuple[str, float], Slide],
    exact: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Travel, speed and lift-off speed over time, a column for each law. exact: time, travel, speed."""
    time, travel, speed = exact
    rows = (
        ("distance along the plane [m]", travel, "travel"),
        ("speed along the plane [m/s]", speed, "speed"),
        ("speed away from the plane [m/s]", 0.0 * time, "lift_speed"),
    )
    steps = sorted({dt for _, dt in slides})
    panels = [
        [
            Panel(
                label,
                title=law if field == "travel" else "",
                curves=[
                    *(
                        Curve(f"h = {dt:g} s", slides[law, dt].time, getattr(slides[law, dt], field), COLORS[law], line)
                        for dt, line in zip(steps, LINES)
                    ),
                    Curve("exact", time, values, COLORS["exact"], ":"),
                ],
            )
            for law in ("relaxed", "coulomb")
        ]
        for label, values, field in rows
    ]
    draw_panels(job.out / f"{name}.png", panels, title=title)
