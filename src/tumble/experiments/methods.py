"""Four single-body tests by every formulation and solver: all unrelaxed ones agree, and all relaxed ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, radians, sin

import numpy as np

import tumble as tb

from ..solve.base import Solver
from ..solve.registry import make_solver
from .base import Job, Track, setting, track_body
from .base import Settings as BaseSettings
from .figures import LINES, PALETTE, Curve, Panel, draw_panels

FORMULATIONS: dict[str, dict[str, tuple[str, dict[str, object]]]] = {
    "coulomb": {
        "anti-relaxed, apgd": ("apgd", {}),
        "anti-relaxed, barzilai_borwein": ("barzilai_borwein", {}),
        "anti-relaxed, gauss_seidel": ("gauss_seidel", {}),
        "anti-relaxed, admm": ("admm", {}),
        "contact by contact, nsgs": ("nsgs", {}),
        "fixed point, dual, apgd": ("fixed_point", {}),
        "fixed point, dual, interior point": ("interior_point", {"form": "dual"}),
        "fixed point, primal, interior point": ("interior_point", {"form": "primal"}),
        "direct, interior point": ("ncp_interior_point", {}),
        "direct, semismooth Newton": ("semismooth_newton", {}),
        "polyhedral LCP, lemke": ("lemke", {"offset": 0.0}),
    },
    "relaxed": {
        "dual, apgd": ("apgd", {}),
        "dual, barzilai_borwein": ("barzilai_borwein", {}),
        "dual, gauss_seidel": ("gauss_seidel", {}),
        "dual, admm": ("admm", {}),
        "dual, interior point": ("interior_point", {"form": "dual"}),
        "primal, interior point": ("interior_point", {"form": "primal"}),
        "direct, interior point": ("ncp_interior_point", {}),
        "direct, semismooth Newton": ("semismooth_newton", {}),
        "polyhedral LCP, lemke": ("lemke", {"offset": 0.0}),
        "polyhedral QP, interior point": ("polyhedral_qp", {"offset": 0.0}),
    },
}
"""Law -> formulation and solver -> registered solver and options. The first of a law is the reference."""
FLAT = ("lemke", "polyhedral_qp")


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `methods`."""

    dt: float = setting(0.01, "time step", unit="s", above=0.0)
    tolerance: float = setting(1e-11, "of all solvers: natural map", at_least=0.0)
    facets: int = setting(8, "sides of the polyhedral cones; one corner lies along the slide", at_least=4)
    part: float = setting(1.0, "part of the tests' durations", quick=0.3, above=0.0, at_most=1.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)


@dataclass(frozen=True)
class Test:
    """One body on a plane whose gravity is tilted by an angle [deg]; it starts with a speed along x [m/s]."""

    shape: object
    height: float
    friction: float
    angle: float
    speed: float
    duration: float


TESTS = {
    "ball_roll": Test(tb.Sphere(1.0), 1.0, 0.2, 0.0, 2.0, 1.0),
    "box_slide": Test(tb.Box((1.0, 1.0, 1.0)), 0.5, 0.3, 0.0, 2.0, 1.5),
    "incline_slide": Test(tb.Box((1.0, 1.0, 1.0)), 0.5, 0.2, 65.0, 0.0, 1.0),
    "incline_stop": Test(tb.Box((1.0, 1.0, 1.0)), 0.5, 0.6, 25.0, 2.0, 2.5),
}


def run(s: Settings, job: Job) -> dict[str, float]:
    """Every test by every method of both laws."""
    metrics: dict[str, float] = {}
    worst = {"coulomb": 0.0, "relaxed": 0.0}
    for name, test in TESTS.items():
        panels = []
        for law, methods in FORMULATIONS.items():
            tracks = {label: _track(s, job, test, law, _solver(s, *method)) for label, method in methods.items()}
            reference = next(iter(tracks.values()))
            for label, track in tracks.items():
                miss = _disagreement(track, reference)
                worst[law] = max(worst[law], float(miss.max()))
                metrics[f"disagreement_{name}_{law}_{_plain(label)}"] = float(miss.max())
            panels.append(_panels(law, tracks, reference))
        draw_panels(
            job.out / f"methods_{name}.png", list(zip(*panels)), title=f"{name.replace('_', ' ')}: every method"
        )
    return {
        "max_disagreement_unrelaxed": worst["coulomb"],
        "max_disagreement_relaxed": worst["relaxed"],
        "methods_unrelaxed": float(len(FORMULATIONS["coulomb"])),
        "methods_relaxed": float(len(FORMULATIONS["relaxed"])),
        **metrics,
    }


def _solver(s: Settings, name: str, options: dict[str, object]) -> Solver:
    flat = {"facets": s.facets} if name in FLAT else {}
    return make_solver(name, tolerance=s.tolerance, **options, **flat)


def _track(s: Settings, job: Job, test: Test, law: str, solver: Solver) -> Track:
    tilt = radians(test.angle)
    scene = tb.SceneBuilder(gravity=(s.gravity * sin(tilt), 0.0, -s.gravity * cos(tilt)))
    material = scene.add_material(tb.Material(friction=test.friction))
    scene.add_static(tb.HalfSpace(), material=material)
    body = scene.add_body(
        test.shape, mass=1.0, material=material, position=(0.0, 0.0, test.height), velocity=(test.speed, 0.0, 0.0)
    )
    options = tb.StepOptions(dt=s.dt, law=law)
    return track_body(job, scene.build(), body, until=s.part * test.duration, options=options, solver=solver)


def _disagreement(track: Track, reference: Track) -> np.ndarray:
    """Largest difference of a velocity (m/s, or rad/s times 1 m) in every step (k,)."""
    both = np.abs(np.concatenate([track.velocity - reference.velocity, track.spin - reference.spin], axis=1))
    return both.max(axis=1)


def _panels(law: str, tracks: dict[str, Track], reference: Track) -> list[Panel]:
    """Velocities of all methods over each other, and how far they are from the first."""
    styles: Callable[[int], tuple[str, str]] = lambda k: (PALETTE[k % len(PALETTE)], LINES[k // len(PALETTE)])  # noqa: E731
    along = [Curve("", t.time, t.velocity[:, 0], *styles(k)) for k, t in enumerate(tracks.values())]
    away = [Curve("", t.time, t.velocity[:, 2], *styles(k)) for k, t in enumerate(tracks.values())]
    apart = [
        Curve(label, t.time, _disagreement(t, reference) + 1e-17, *styles(k))
        for k, (label, t) in enumerate(tracks.items())
    ]
    return [
        Panel("speed along the plane [m/s]", along, title=law),
        Panel("speed away from the plane [m/s]", away),
        Panel("difference from the first [m/s]", apart, log=True),
    ]


def _plain(label: str) -> str:
    return label.replace(", ", "_").replace(" ", "_").lower()
