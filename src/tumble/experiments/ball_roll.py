"""A ball that slides on a floor begins to roll; under the relaxed law it jumps first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tumble as tb

from ..errors import ExperimentError, message
from .base import LAWS, Job, Track, by_step_size, lasting, setting, track_body
from .base import Settings as BaseSettings
from .figures import COLORS, LINES, Curve, Panel, draw_panels

SLIP = 1e-6
"""Slower than this at the contact is rolling [m/s]."""


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `ball-roll`."""

    friction: float = setting(0.2, "coefficient of friction", above=0.0)
    mass: float = setting(1.0, "mass of the ball", unit="kg", above=0.0)
    radius: float = setting(1.0, "radius of the ball", unit="m", above=0.0)
    speed: float = setting(2.0, "sliding speed at the start, without spin", unit="m/s", above=0.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)
    dt: tuple[float, ...] = setting((0.0025, 0.01), "time steps, separated by commas", unit="s", above=0.0)
    duration: float = setting(1.0, "simulated time", unit="s", above=0.0)
    tolerance: float = setting(1e-11, "of the solver: natural map", at_least=0.0)
    max_iterations: int = setting(1000, "of the solver", at_least=1)

    @property
    def transition_time(self) -> float:
        """Closed form: when rolling begins [s]."""
        return 2.0 * self.speed / (7.0 * self.friction * self.gravity)

    def check(self, where: str) -> None:
        """The ball must have time to roll."""
        if self.duration < self.transition_time + 2.0 * max(self.dt):
            raise ExperimentError(
                message(
                    f"{where}: duration",
                    f"must exceed the start of rolling at {self.transition_time:g} s by two steps",
                    self.duration,
                    "Simulate longer, or raise friction or lower speed.",
                )
            )


def options(dt: float, law: str) -> tb.StepOptions:
    """The published scheme closes every gap; one that is left keeps a relaxed ball slipping for ever."""
    return tb.StepOptions(dt=dt, law=law, leave_gaps=False)


def build(s: Settings) -> tuple[tb.Model, int]:
    """A ball that touches the floor."""
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -s.gravity))
    material = scene.add_material(tb.Material(friction=s.friction))
    scene.add_static(tb.HalfSpace(), material=material, name="floor")
    ball = scene.add_body(
        tb.Sphere(s.radius),
        mass=s.mass,
        material=material,
        position=(0.0, 0.0, s.radius),
        velocity=(s.speed, 0.0, 0.0),
        name="ball",
    )
    return scene.build(), ball


def measure(s: Settings, track: Track, law: str) -> dict[str, float]:
    """Metrics of one run."""
    metrics = {
        f"final_speed_{law}": track.velocity[-1, 0],
        f"max_vertical_speed_{law}": np.abs(track.velocity[:, 2]).max(),
        f"first_step_vertical_speed_{law}": track.velocity[1, 2],
        f"unconverged_steps_{law}": track.unconverged,
    }
    rolls = lasting(np.abs(track.velocity[:, 0] - s.radius * track.spin[:, 1]) < SLIP)
    if rolls is not None:
        metrics[f"transition_time_{law}"] = track.time[rolls]
    return metrics


def run(s: Settings, job: Job) -> dict[str, float]:
    """Both laws, every step size."""
    model, ball = build(s)
    solver = tb.SolverAPGD(tolerance=s.tolerance, max_iterations=s.max_iterations)
    tracks = {
        (law, dt): track_body(job, model, ball, until=s.duration, solver=solver, options=options(dt, law))
        for law in LAWS
        for dt in s.dt
    }
    metrics = {"transition_time_exact": s.transition_time, "final_speed_exact": 5.0 * s.speed / 7.0}
    for law in LAWS:
        metrics |= by_step_size({dt: measure(s, tracks[law, dt], law) for dt in s.dt})
    for dt in s.dt:  # the closed form of one relaxed step, see ball-2d
        lift = (s.friction * s.speed - 3.5 * s.friction**2 * s.gravity * dt) / (1.0 + 3.5 * s.friction**2)
        metrics[f"first_step_vertical_speed_relaxed_exact_h{dt:g}"] = max(0.0, lift)
    draw(s, tracks, job)
    return metrics


def draw(s: Settings, tracks: dict[tuple[str, float], Track], job: Job) -> None:
    """Speeds over time, a column for each law (Fig. 2 of the paper)."""
    time = np.linspace(0.0, s.duration, 401)
    part = np.minimum(time / s.transition_time, 1.0)
    exact = {"speed": s.speed * (1.0 - 2.0 / 7.0 * part), "rim": 5.0 / 7.0 * s.speed * part, "up": 0.0 * time}
    exact["x"] = s.speed * time * (1.0 - part / 7.0) - s.speed / 7.0 * (time - part * s.transition_time)
    rows = (
        ("forward speed $v_x$ [m/s]", "speed", lambda t: t.velocity[:, 0]),
        (r"rim speed $\omega r$ [m/s]", "rim", lambda t: s.radius * t.spin[:, 1]),
        ("vertical speed $v_z$ [m/s]", "up", lambda t: t.velocity[:, 2]),
        ("distance $x$ [m]", "x", lambda t: t.position[:, 0]),
    )
    panels = []
    for label, key, values in rows:
        panels.append(
            [
                Panel(
                    label,
                    title=law if key == "speed" else "",
                    curves=[
                        *(
                            Curve(f"h = {dt:g} s", tracks[law, dt].time, values(tracks[law, dt]), COLORS[law], line)
                            for dt, line in zip(s.dt, LINES)
                        ),
                        Curve("exact", time, exact[key], COLORS["exact"], ":"),
                    ],
                )
                for law in ("relaxed", "coulomb")
            ]
        )
    draw_panels(job.out / "ball_roll.png", panels, title="Ball: from sliding to rolling")
