"""Spheres settled in a container, and the cone problem of the step that follows: shared by the solver studies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tumble as tb

from ..backends.base import STALL_CHECKS
from ..sim.report import StepReport
from ..solvers import make_solver
from . import fill
from .base import LAWS, Job, Settings, overlap_ratio, setting

SETTLERS = ("apgd", "gauss_seidel")


@dataclass(frozen=True, kw_only=True)
class SettledSettings(Settings):
    """Of the settling before a solver study. The papers' studies are about the relaxed law, so it settles by it too."""

    radius: float = setting(1.0, "radius of the spheres", unit="m", above=0.0)
    mass: float = setting(1.0, "mass of a sphere", unit="kg", above=0.0)
    friction: float = setting(0.25, "coefficient of friction", above=0.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)
    dt: float = setting(0.0005, "time step", unit="s", above=0.0)
    settling: float = setting(4.0, "simulated time of the settling", unit="s", above=0.0)
    settling_law: str = setting("relaxed", "contact law of the settling", choices=LAWS)
    settling_tolerance: float = setting(1e-6, "natural map of the settling's steps", at_least=0.0)
    settling_iterations: int = setting(10000, "most iterations a step of the settling", at_least=1)
    settling_solver: str = setting("apgd", "solver of the settling; Gauss-Seidel as published", choices=SETTLERS)
    recovery_speed: float = setting(
        0.0,
        "overlaps are removed at this speed at most; 0: the engine's own limit",
        unit="m/s",
        at_least=0.0,
    )
    seed: int = setting(0, "of the jitter", at_least=0)

    def step_options(self, **rest: Any) -> tb.StepOptions:
        """Options of all steps."""
        return tb.StepOptions(dt=self.dt, recovery_speed=self.recovery_speed or None, **rest)


def nothing(_: tb.Simulation, __: StepReport) -> None:
    """Observe nothing."""


def pile(s: SettledSettings, *, spheres: int, side: float) -> tb.Model:
    """Spheres on a jittered grid in an open container, as in `fill`."""
    return fill.build(
        fill.Settings(
            spheres=spheres,
            radius=s.radius,
            mass=s.mass,
            friction=s.friction,
            side=side,
            gravity=s.gravity,
            seed=s.seed,
        )
    )


def settle(
    s: SettledSettings, job: Job, model: tb.Model, *, iterations: int | None = None, warm_start: bool = True
) -> tuple[tb.Simulation, dict[str, float]]:
    """Let a scene settle; the simulation, and figures about its rest.

    iterations: the most a step, if fewer than the settings say; a strict job does not mind steps cut short by it.
    """
    sim, result = (job if iterations is None else replace(job, strict=False)).simulate(
        model,
        until=s.settling,
        observe=nothing,
        options=s.step_options(law=s.settling_law, warm_start=warm_start),
        solver=make_solver(
            s.settling_solver,
            tolerance=s.settling_tolerance,
            max_iterations=s.settling_iterations if iterations is None else iterations,
            **({"variant": "paper"} if s.settling_solver == "gauss_seidel" else {}),
        ),
    )
    r = result.reports
    return sim, {
        "kinetic_energy": r["kinetic_energy"][-1],
        "largest_overlap": r["largest_overlap"][-1],
        "largest_overlap_ratio": overlap_ratio(sim),
        "settling_mean_iterations": r["iterations"].mean(),
        "settling_unconverged_steps": result.unconverged,
        "settling_seconds": result.seconds,
    }


def kinetic_energy(sim: tb.Simulation) -> float:
    """Of all bodies after the last step [J]."""
    return sim.last.report.kinetic_energy if sim.last is not None else math.inf


def quench(job: Job, sim: tb.Simulation, energy: float, *, every: float, most: int) -> int:
    """Stop all bodies and let them settle for `every` seconds, again and again, until the kinetic energy [J] stays
    below a bound; returns how often. Spheres that roll on others without rolling friction never rest by themselves."""
    for k in range(most):
        if kinetic_energy(sim) < energy:
            return k
        state = sim.get_state()
        state.velocity[:] = 0.0
        state.spin[:] = 0.0
        sim.set_state(state)
        sim.run(until=sim.time + every, progress=job.progress, strict=job.strict)
    return most


def next_problem(sim: tb.Simulation) -> tb.ConeProblem:
    """The problem of the next step, which is taken (with few iterations: the state is not used any more)."""
    sim.solver = tb.SolverAPGD(max_iterations=1)
    sim.step()
    assert sim.last is not None
    return sim.last.problem


def check_interval(iterations: int) -> int:
    """Iterations between two measurements, so many that a solver cannot give up before it has done them all."""
    return max(1, -(-iterations // STALL_CHECKS))


def counts(limit: int, *, ratio: float = 1.25) -> np.ndarray:
    """Iteration counts from 1 to a limit, spaced by a ratio."""
    steps = ratio ** np.arange(int(np.log(limit) / np.log(ratio)) + 2)
    return np.unique(np.minimum(np.ceil(steps), limit).astype(int))
