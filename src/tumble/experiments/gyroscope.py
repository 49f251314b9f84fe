"""Spinning bodies that something holds: pinned, as a heavy top, on a hinge off its axis, and a ball with side spin.

None of them is driven and nothing brakes them. A scheme that turns the spin before the joints act heats or brakes them
at a rate of h omega^2 while every step converges and every joint is closed; the figure shows it beside the engine's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..enums import Integrator
from ..options import StepOptions
from ..scene import rotation
from ..scene.builder import SceneBuilder
from ..scene.materials import Material
from ..scene.model import Model
from ..scene.shapes import HalfSpace, Sphere
from ..sim.report import StepReport
from ..sim.simulation import Simulation
from . import base
from .base import Job, expect, setting
from .figures import PALETTE, Curve, Panel, draw_panels

INTEGRATORS = (str(Integrator.EULER), str(Integrator.MOREAU))
SHAPES = {"prolate": (0.01, 0.002), "oblate": (0.01, 0.02), "sphere": (0.01, 0.01)}
"""Moments across and along the axis [kg m^2], mass 1 kg"""
BLOWN_UP = 100.0
"""Times its energy at which the earlier scheme is stopped"""
ARM = 0.1
"""Distance of the pin from the centre of mass [m]"""


@dataclass(frozen=True, kw_only=True)
class Settings(base.Settings):
    """Of `gyroscope`."""

    dt: float = setting(1e-3, "time step", unit="s", above=0.0)
    spin: float = setting(200.0, "angular velocity", unit="rad/s", above=0.0)
    duration: float = setting(5.0, "simulated time of the pinned body", unit="s", above=0.0, quick=1.0)
    tilt: float = setting(30.0, "angle of the heavy top from upright", unit="deg", above=0.0, at_most=80.0)
    off_axis: float = setting(5.0, "angle of the hinge from the disc's axis", unit="deg", above=0.0, at_most=45.0)


def pinned(s: Settings) -> Model:
    """A prolate body in a spherical joint, no gravity."""
    across, along = SHAPES["prolate"]
    scene = SceneBuilder(gravity=(0.0, 0.0, 0.0))
    w = s.spin * np.array([0.6, 0.0, 0.8])
    arm = np.array([0.02, 0.0, ARM])
    scene.add_body(None, mass=1.0, inertia=(across, across, along), angular_velocity=w, velocity=np.cross(w, arm))
    scene.add_joint("spherical", None, 0, anchor=-arm)
    return scene.build()


def heavy_top(s: Settings, shape: str) -> Model:
    """A symmetric top in regular (slow) precession about the vertical."""
    across, along = SHAPES[shape]
    tilt, weight = np.radians(s.tilt), 9.81 * ARM
    a, b = (across + ARM**2) * np.cos(tilt), along * s.spin
    precession = 2.0 * weight / (b + np.sqrt(max(0.0, b * b - 4.0 * a * weight)))
    axis = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    w = np.array([0.0, 0.0, precession]) + (s.spin - precession * np.cos(tilt)) * axis
    scene = SceneBuilder()
    scene.add_body(
        None,
        mass=1.0,
        inertia=(across, across, along),
        position=ARM * axis,
        orientation=rotation.from_normal(axis),
        velocity=np.cross(w, ARM * axis),
        angular_velocity=w,
    )
    scene.add_joint("spherical", None, 0, anchor=(0.0, 0.0, 0.0))
    return scene.build()


def hinged_disc(s: Settings) -> Model:
    """A disc on a hinge that misses its axis by some degrees."""
    scene = SceneBuilder(gravity=(0.0, 0.0, 0.0))
    turn = rotation.from_axis_angle((0.0, 1.0, 0.0), np.radians(s.off_axis))
    scene.add_body(None, mass=1.0, inertia=(0.01, 0.01, 0.02), orientation=turn, angular_velocity=(0.0, 0.0, s.spin))
    scene.add_joint("revolute", None, 0, anchor=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), name="hinge")
    return scene.build()


def side_spin() -> Model:
    """A rolling ball that also spins about the vertical."""
    scene = SceneBuilder()
    felt = scene.add_material(Material(friction=0.4))
    scene.add_static(HalfSpace(), material=felt)
    scene.add_body(
        Sphere(0.1),
        mass=1.0,
        material=felt,
        position=(0.0, 0.0, 0.1),
        velocity=(1.0, 0.0, 0.0),
        angular_velocity=(0.0, 10.0, 30.0),
    )
    return scene.build()


def run(s: Settings, job: Job) -> dict[str, float]:
    """All four under both integrators."""
    steps = max(2, round(s.duration / s.dt))
    metrics: dict[str, float] = {}
    energy, tilts, speeds = {}, {}, {}
    for integrator in INTEGRATORS:
        options = StepOptions(dt=s.dt, integrator=integrator)
        key = f"_{integrator}"
        rows = _watch(job, pinned(s), options, s.duration, lambda _, r: (r.kinetic_energy, r.work_joints))
        energy[integrator] = rows[:, 0]
        half = len(rows) // 2
        start, end = rows[:half, 0].mean(), rows[half:, 0].mean()
        metrics["pinned_energy_drift" + key] = end / start - 1.0
        metrics["pinned_energy_ripple" + key] = float(np.ptp(rows[:, 0])) / start
        for shape in SHAPES:
            rows = _watch(job, heavy_top(s, shape), options, 1.0, lambda sim, _: (_tilt(sim),))
            tilts[shape, integrator] = rows[:, 0]
            metrics[f"top_tilt_change_{shape}{key}"] = rows[-1, 0] - s.tilt
        rows = _watch(job, hinged_disc(s), options, s.duration, lambda sim, _: (_hinge_speed(sim),))
        speeds[integrator] = rows[:, 0]
        metrics["hinge_speed_change" + key] = rows[-1, 0] - s.spin
        rows = _watch(job, side_spin(), options, 1.0, lambda sim, _: (sim.positions()[1][1],))
        metrics["ball_sideways" + key] = float(np.abs(rows[:, 0]).max())
    before = earlier_scheme(pinned(s), s.dt, steps)
    metrics["pinned_energy_drift_earlier"] = before[-1] / before[0] - 1.0
    metrics |= expect(
        pinned_energy=max(abs(metrics[f"pinned_energy_drift_{i}"]) for i in INTEGRATORS) < 1e-3,
        top_tilt=max(abs(v) for k, v in metrics.items() if k.startswith("top_tilt_change")) < 0.1,
        hinge_speed=max(abs(metrics[f"hinge_speed_change_{i}"]) for i in INTEGRATORS) < 1e-3 * s.spin,
        ball_straight=max(metrics[f"ball_sideways_{i}"] for i in INTEGRATORS) < 1e-9,
    )
    _draw(s, job, before, energy, tilts, speeds)
    return metrics


def _watch(job: Job, model: Model, options: StepOptions, until: float, look) -> np.ndarray:
    rows = []

    def observe(sim: Simulation, report: StepReport) -> None:
        rows.append(look(sim, report))

    job.simulate(model, until=until, observe=observe, options=options)
    return np.array(rows)


def _tilt(sim: Simulation) -> float:
    """Of the body's third axis from the vertical [deg]."""
    upright = rotation.matrix(sim.orientations()[0])[2, 2]
    return float(np.degrees(np.arccos(np.clip(upright, -1.0, 1.0))))


def _hinge_speed(sim: Simulation) -> float:
    return sim.joint_reactions()["hinge"].speed


def earlier_scheme(model: Model, h: float, steps: int) -> np.ndarray:
    """Kinetic energy [J] of the pinned body when its spin is advanced by Euler's equations (implicit midpoint) first
    and the joint then acts in the axes of the start: each part keeps the energy, the whole does not. It ends where the
    energy is a hundred times that of the start."""
    inertia, state = model.body_inertia[0], model.initial
    j = model.joints
    q, w, v, x = (a[0].copy() for a in (state.orientation, state.spin, state.velocity, state.position))
    place, pin = j.frame_position[1], x + rotation.rotate(q, j.frame_position[1])
    out = np.empty(steps)
    for k in range(steps):
        middle = w
        for _ in range(60):
            middle = w + 0.5 * h * np.cross(inertia * middle, middle) / inertia
        r = rotation.matrix(q)
        turned = r @ (2.0 * middle - w)
        arm = r @ place
        c = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
        inverse = r @ np.diag(1.0 / inertia) @ r.T
        system = np.eye(3) + c @ inverse @ c.T  # 1 kg
        impulse = np.zeros(3)
        for _ in range(8):
            v_new, w_new = v + impulse, turned + inverse @ np.cross(arm, impulse)
            q_new = rotation.turned(q[None], h * w_new[None])[0]
            miss = x + h * v_new + rotation.rotate(q_new, place) - pin
            impulse -= np.linalg.solve(system, miss) / h
        x, v, w, q = x + h * v_new, v_new, r.T @ w_new, q_new
        out[k] = 0.5 * (v @ v + w @ (inertia * w))
        if k and not out[k] < BLOWN_UP * out[0]:
            return out[:k]
    return out


def _draw(
    s: Settings, job: Job, before: np.ndarray, energy: dict, tilts: dict[tuple[str, str], np.ndarray], speeds: dict
) -> None:
    def time(values: np.ndarray) -> np.ndarray:
        return s.dt * (1.0 + np.arange(len(values)))

    heat = Panel("kinetic energy [J]", title="pinned prolate body", log=True)
    heat.curves.append(Curve("spin first, then the joint", time(before), before, "0.35", "--"))
    tilt = Panel("angle from upright [deg]", title="heavy top")
    speed = Panel("speed - speed at the start [rad/s]", title=f"hinge {s.off_axis:g} degrees off the axis")
    for integrator, line in zip(INTEGRATORS, ("-", ":")):
        heat.curves.append(Curve(f"{integrator}", time(energy[integrator]), energy[integrator], PALETTE[0], line))
        change = speeds[integrator] - s.spin
        speed.curves.append(Curve(integrator, time(change), change, PALETTE[0], line))
        for shape, color in zip(SHAPES, PALETTE):
            values = tilts[shape, integrator]
            tilt.curves.append(Curve(f"{shape}, {integrator}", time(values), values, color, line))
    draw_panels(job.out / "gyroscope.png", [[heat, tilt, speed]], title="Spinning bodies that something holds")
