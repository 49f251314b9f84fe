"""A particle falls on a floor and slides: with smaller steps both laws agree, unless it starts in contact.

Planar cone problems without collision code: the floor is a contact of the particle at every distance. The published
method that solves a linear complementarity problem is Coulomb's law, the one that solves a quadratic program the
relaxed law. Their difference is the 2-norm over all steps and coordinates divided by 2^k, for steps dt / 2^k.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from . import planar, planar_engine
from .base import LAWS, Job, setting
from .base import Settings as BaseSettings
from .figures import COLORS, PALETTE, Curve, Panel, draw_panels

PRINTED = (
    5.6314800e-2,
    1.7416200e-2,
    6.7389900e-3,
    2.1011170e-3,
    7.6112319e-4,
    2.6647317e-4,
    9.2498029e-5,
    3.2649217e-5,
)
"""Differences in the paper's Table 10.1, k = 0..7."""
ROWS = np.array([[0.0, 1.0], [1.0, 0.0]])


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `particle`.

    The paper's text says friction 0.3, but its table belongs to friction 0.2 and gravity 9.8. Those are the defaults of
    the fall; with the text's values, which the start in contact uses, the fall is run a second time.
    """

    friction: float = setting(0.2, "coefficient of friction in the fall", at_least=0.0)
    gravity: float = setting(9.8, "gravity in the fall", unit="m/s^2", above=0.0)
    duration: float = setting(1.6, "simulated time of the fall", unit="s", above=0.0)
    height: float = setting(3.0, "height of the fall", unit="m", at_least=0.0)
    speed: float = setting(3.0, "speed along the floor at the start", unit="m/s")
    mass: float = setting(1.0, "mass of the particle", unit="kg", above=0.0)
    text_friction: float = setting(0.3, "coefficient of friction as in the text, and in contact", at_least=0.0)
    text_gravity: float = setting(9.81, "gravity as in the text, and in contact", unit="m/s^2", above=0.0)
    contact_duration: float = setting(3.0, "simulated time from contact", unit="s", above=0.0)
    dt: float = setting(0.1, "largest time step, k = 0", unit="s", above=0.0)
    halvings: int = setting(7, "largest k; the smallest step is dt / 2^k", at_least=0, at_most=14)
    tolerance: float = setting(1e-12, "natural map that the exactly solved steps must have", at_least=0.0)
    engine_tolerance: float = setting(1e-12, "natural map of the engine's steps", at_least=0.0)


def engine(s: Settings, k: int) -> tuple[float, int]:
    """The difference of the fall through the engine with steps dt / 2^k, and steps that did not converge."""
    dt = s.dt / 2**k
    runs = [
        planar_engine.simulate(
            (0.0,),
            law,
            mass=s.mass,
            inertia=None,
            friction=s.friction,
            gravity=s.gravity,
            q=np.array([0.0, s.height]),
            v=np.array([s.speed, 0.0]),
            dt=dt,
            steps=max(1, round(s.duration / dt)),
            tolerance=s.engine_tolerance,
        )
        for law in LAWS
    ]
    return float(np.linalg.norm(runs[0][0] - runs[1][0])) / 2**k, runs[0][1] + runs[1][1]


def simulate(
    s: Settings, law: str, k: int, *, friction: float, gravity: float, height: float, duration: float
) -> planar.Motion:
    """The particle by a law with steps dt / 2^k."""
    body = planar.Body(np.full(2, s.mass), lambda q: (q[1:2], ROWS), friction, gravity)
    dt = s.dt / 2**k
    return planar.simulate(
        body, law, q=np.array([0.0, height]), v=np.array([s.speed, 0.0]), dt=dt, steps=max(1, round(duration / dt))
    )


def run(s: Settings, job: Job) -> dict[str, float]:
    """Both laws for every step size: the fall, the fall with the text's values, and the start in contact."""
    table = dict(friction=s.friction, gravity=s.gravity, height=s.height, duration=s.duration)
    text = dict(friction=s.text_friction, gravity=s.text_gravity)
    cases = {
        "": table,
        "_text": table | text,
        "_contact": text | dict(height=0.0, duration=s.contact_duration),
    }
    motions = {
        (name, law, k): simulate(s, law, k, **values)
        for name, values in cases.items()
        for law in LAWS
        for k in range(s.halvings + 1)
    }
    metrics: dict[str, float] = {}
    for name in cases:
        found = [
            planar.difference(motions[name, "relaxed", k], motions[name, "coulomb", k], k)
            for k in range(s.halvings + 1)
        ]
        metrics |= {f"difference{name}_k{k}": d for k, d in enumerate(found)}
        metrics |= {f"ratio{name}_k{k + 1}": a / b for k, (a, b) in enumerate(pairwise(found)) if b > 0.0}
    found = [engine(s, k) for k in range(s.halvings + 1)]
    metrics |= {f"difference_engine_k{k}": value for k, (value, _) in enumerate(found)}
    metrics["engine_error"] = max(abs(d / metrics[f"difference_k{k}"] - 1.0) for k, (d, _) in enumerate(found))
    metrics["engine_unconverged_steps"] = sum(missed for _, missed in found)
    for k in range(s.halvings + 1):
        metrics[f"lift_height_k{k}"] = motions["_contact", "relaxed", k].q[:, 1].max()
        metrics[f"lift_height_coulomb_k{k}"] = motions["_contact", "coulomb", k].q[:, 1].max()
    mu = s.text_friction
    metrics["lift_height_exact"] = (mu * s.speed / (1.0 + mu**2)) ** 2 / (2.0 * s.text_gravity)
    metrics["natural_map"] = max(planar.check_solved("particle", job, m, s.tolerance) for m in motions.values())
    metrics["ambiguous_steps"] = sum(m.ambiguous for m in motions.values())
    draw(s, motions, metrics, job)
    return metrics


def draw(s: Settings, motions: dict[tuple[str, str, int], planar.Motion], m: dict[str, float], job: Job) -> None:
    """Paths, heights and differences (Figs 10.1 and 10.2, Table 10.1)."""
    path = Panel("height y [m]", xlabel="x [m]", title="fall")
    start = Panel("height [m]", title="from contact")
    for law in ("relaxed", "coulomb"):
        for k, line in ((s.halvings, "-"), (min(2, s.halvings), "--")):
            h = f"{law}, h = {s.dt / 2**k:.3g} s"
            fall, contact = motions["", law, k], motions["_contact", law, k]
            path.curves.append(Curve(h, fall.q[:, 0], fall.q[:, 1], COLORS[law], line))
            part = contact.time <= 0.6
            start.curves.append(Curve(h, contact.time[part], contact.q[part, 1], COLORS[law], line))
    ends = np.array([0.0, min(0.6, s.contact_duration)])
    start.curves.append(Curve("rise for h -> 0", ends, np.full(2, m["lift_height_exact"]), COLORS["exact"], ":"))
    dt = s.dt / 2.0 ** np.arange(s.halvings + 1)
    table = Panel(
        r"$|q_{QP} - q_{LCP}|_2\, /\, 2^k$", xlabel="time step [s]", log=True, log_x=True, title="differences"
    )
    labels = {
        "": f"fall, mu {s.friction:g}",
        "_text": f"fall, mu {s.text_friction:g}",
        "_contact": "from contact (does not converge)",
    }
    for (name, label), color in zip(labels.items(), PALETTE):
        values = np.array([m[f"difference{name}_k{k}"] for k in range(s.halvings + 1)])
        table.curves.append(Curve(label, dt, values, color, marker="o"))
    values = np.array([m[f"difference_engine_k{k}"] for k in range(s.halvings + 1)])
    table.curves.append(Curve("fall, engine", dt, values, PALETTE[3], "--", "+"))
    table.curves.append(
        Curve("Table 10.1", 0.1 / 2.0 ** np.arange(len(PRINTED)), np.array(PRINTED), COLORS["exact"], "", "x")
    )
    draw_panels(job.out / "particle.png", [[path, start, table]], title="Particle with friction: two laws")
