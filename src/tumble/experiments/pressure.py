"""A slab presses on spheres in a container: residual and objective of Jacobi, Gauss-Seidel and APGD over iterations.

One step of the relaxed law from zero impulses, for slabs of several masses in the same settled state.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

import tumble as tb

from ..backends.base import STALL_CHECKS
from ..errors import ExperimentError, message
from ..solve.gauss_seidel import SolverGaussSeidel
from ..solve.jacobi import SolverJacobi
from ..solvers import IterativeSolver, Solution
from ..view.picture import render
from . import fill
from .base import Job, overlap_metrics, setting
from .figures import PALETTE, Curve, Panel, draw_panels, draw_pictures
from .settled import SettledSettings, check_interval, counts, next_problem, settle

TOLERANCES = (7e-6, 1e-6)
"""Of the residual of 003 Eq. 25 [m/s]: the paper's and a tighter one. In a well settled state the first says little."""


@dataclass(frozen=True, kw_only=True)
class Settings(SettledSettings):
    """Of `pressure`.

    `jacobi`, `gauss_seidel` and `apgd` are the methods of the paper as published (`variant="paper"`; it does not give
    omega and lambda), `default` is this package's APGD, with scaled contacts. The slab lies on the grid of spheres when
    the settling begins.
    """

    spheres: int = setting(4000, "number of spheres", quick=500, at_least=1)
    radius: float = setting(0.15, "radius of the spheres", unit="m", above=0.0)
    friction: float = setting(0.1, "coefficient of friction", above=0.0)
    side: float = setting(3.0, "inner width and depth of the container", unit="m", quick=1.5, above=0.0)
    dt: float = setting(0.01, "time step", unit="s", above=0.0)
    settling: float = setting(3.0, "simulated time of the settling", unit="s", above=0.0)
    settling_tolerance: float = setting(1e-6, "natural map of the settling's steps", at_least=0.0)
    settling_iterations: int = setting(2000, "most iterations a step of the settling", at_least=1)
    masses: tuple[float, ...] = setting(
        (1e3, 1e4, 1e5, 1e6), "masses of the slab, separated by commas; the first settles", unit="kg", above=0.0
    )
    slab_play: float = setting(0.025, "gap between slab and walls on each side", unit="m", above=0.0)
    slab_height: float = setting(0.3, "thickness of the slab", unit="m", above=0.0)
    tolerance: float = setting(min(TOLERANCES), "residual that ends the count", unit="m/s", above=0.0)
    loose_tolerance: float = setting(max(TOLERANCES), "residual of the paper's count", unit="m/s", above=0.0)
    iterations: int = setting(1000, "iterations after which residual and objective are compared", at_least=1)
    max_iterations: int = setting(20000, "cap of the counts", at_least=1)
    omega_jacobi: float = setting(0.3, "relaxation of Jacobi", above=0.0)
    omega_gauss_seidel: float = setting(1.0, "relaxation of Gauss-Seidel", above=0.0)
    mixing: float = setting(1.0, "lambda of both: part of the new impulse in every update", above=0.0, at_most=1.0)

    def check(self, where: str) -> None:
        """Container and slab must fit."""
        least = max(2.1 * self.radius, 2.0 * self.slab_play)
        if self.side <= least:
            raise ExperimentError(
                message(f"{where}: side", f"must be > {least:g} m", self.side, "Enlarge side, or lower radius or play.")
            )
        if self.loose_tolerance < self.tolerance:
            raise ExperimentError(
                message(f"{where}: loose_tolerance", "must be >= tolerance", self.loose_tolerance, "Raise it.")
            )


class History(NamedTuple):
    """One solver on one problem."""

    residual: np.ndarray
    """(iterations + 1,) after each iteration, NaN beyond the end [m/s]"""
    counts: np.ndarray
    """(k,) iterations at which the objective was computed"""
    objective: np.ndarray
    """(k,) [J]"""
    metrics: dict[str, float]


def solvers(s: Settings) -> dict[str, IterativeSolver]:
    """The methods that are compared."""
    return {
        "jacobi": SolverJacobi(variant="paper", omega=s.omega_jacobi, mixing=s.mixing),
        "gauss_seidel": SolverGaussSeidel(variant="paper", omega=s.omega_gauss_seidel, mixing=s.mixing),
        "apgd": tb.SolverAPGD(variant="paper"),
        "default": tb.SolverAPGD(),
    }


def build(s: Settings, slab_mass: float) -> tb.Model:
    """Container, spheres on a grid and the slab on them (the last body)."""
    filling = fill.Settings(
        spheres=s.spheres,
        radius=s.radius,
        mass=s.mass,
        friction=s.friction,
        side=s.side,
        gravity=s.gravity,
        seed=s.seed,
    )
    scene, material = fill.container(filling)
    points = tb.grid_points(
        (filling.columns, filling.columns, filling.layers),
        fill.PITCH * s.radius,
        jitter=fill.JITTER * s.radius,
        seed=s.seed,
        origin=(0.0, 0.0, (1.0 + fill.JITTER) * s.radius),
    )[: s.spheres]
    scene.add_spheres(s.radius, mass=s.mass, material=material, position=points, name="spheres")
    width = s.side - 2.0 * s.slab_play
    scene.add_body(
        tb.Box((width, width, s.slab_height)),
        mass=slab_mass,
        material=material,
        position=(0.0, 0.0, points[:, 2].max() + (1.0 + fill.JITTER) * s.radius + 0.5 * s.slab_height),
        name="slab",
    )
    return scene.build()


def problem_with(s: Settings, job: Job, settled: tb.Simulation, slab_mass: float) -> tb.ConeProblem:
    """The next step of the settled state under another slab."""
    sim = tb.Simulation(build(s, slab_mass), options=settled.options, threads=job.threads, backend=job.backend)
    sim.set_state(
        position=settled.positions(),
        orientation=settled.orientations(),
        velocity=settled.velocities(),
        angular_velocity=settled.angular_velocities(),
    )
    return next_problem(sim)


def first_below(histories: list[np.ndarray], tolerance: float) -> int | None:
    """First iteration measured with a residual at or below a tolerance."""
    found = [np.flatnonzero(h <= tolerance) for h in histories]
    return min((int(f[0]) for f in found if f.size), default=None)


def study(s: Settings, problem: tb.ConeProblem, solver: IterativeSolver, *, detailed: bool) -> History:
    """Histories over s.iterations, and the counts to both tolerances. detailed: objectives on the way too.

    Counts are exact up to 400 iterations and rounded up to multiples of check_interval(...) beyond.
    """

    def after(iterations: int, tolerance: float = 0.0) -> Solution:
        return replace(
            solver,
            stop="residual_eq25",
            tolerance=tolerance,
            max_iterations=iterations,
            check_every=check_interval(iterations),
            record=True,
        ).solve(problem, law="relaxed")

    solution = after(s.iterations)
    residual = solution.history
    # Every iteration measured while that is possible, some beyond, few in the long runs.
    full = [after(min(STALL_CHECKS, s.max_iterations)).history, residual]
    metrics = {
        f"residual_{s.iterations}": solution.residuals.residual_eq25,
        f"objective_{s.iterations}": solution.residuals.objective,
    }
    if s.max_iterations > s.iterations and first_below(full, s.tolerance) is None:
        full.append(after(s.max_iterations, s.tolerance).history)
    for suffix, tolerance in (("", s.loose_tolerance), (f"_{_short(s.tolerance)}", s.tolerance)):
        found = first_below(full, tolerance)
        metrics[f"iterations{suffix}"] = count = s.max_iterations if found is None else found
        metrics[f"seconds{suffix}"] = seconds_of(solver, problem, count)
    steps, values = np.array([s.iterations]), [solution.residuals.objective]
    if detailed:
        steps = counts(s.iterations, ratio=1.5)
        values = [after(int(k)).residuals.objective for k in steps]
    return History(residual, steps, np.array(values), metrics)


def seconds_of(solver: IterativeSolver, problem: tb.ConeProblem, iterations: int) -> float:
    """Time of so many iterations with ten measurements of the residual on the way, the shortest of up to three [s]."""
    fixed = replace(
        solver,
        stop="residual_eq25",
        tolerance=0.0,
        max_iterations=max(1, iterations),
        check_every=max(1, iterations // 10),
    )
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        fixed.solve(problem, law="relaxed")
        best = min(best, time.perf_counter() - start)
        if best > 1.0:
            break
    return best


def _short(value: float) -> str:
    """1e-6 rather than 1e-06."""
    return f"{value:g}".replace("e-0", "e-").replace("e+0", "e+")


def run(s: Settings, job: Job) -> dict[str, float]:
    """Settle under the lightest slab, then study every solver under every slab."""
    sim, settling = settle(s, job, build(s, s.masses[0]))
    speed = np.linalg.norm(sim.velocities(), axis=1)
    picture = render(sim.model, sim.positions(), sim.orientations(), size=(480, 400), color_by=speed)
    metrics: dict[str, float] = dict(settling)
    histories: dict[tuple[str, float], History] = {}
    with job.threaded():
        for mass in s.masses:
            problem = problem_with(s, job, sim, mass)
            suffix = "" if mass == s.masses[0] else f"_{_short(mass)}kg"
            metrics["contacts"] = problem.count
            if problem.count == 0:
                raise ExperimentError(
                    message("experiment pressure", "needs contacts after the settling", 0, "Settle longer.")
                )
            for name, solver in solvers(s).items():
                found = histories[name, mass] = study(s, problem, solver, detailed=mass == s.masses[0])
                for key, value in found.metrics.items():
                    what, _, rest = key.partition("_")
                    metrics[f"{what}_{name}{'_' + rest if rest else ''}{suffix}"] = value
    draw(s, histories, job)
    draw_pictures(
        job.out / "pressure_scene.png",
        [(f"{s.spheres} spheres, slab {s.masses[0]:g} kg, fastest {speed.max():.2g} m/s", picture)],
        title="settled",
    )
    return metrics | overlap_metrics([settling["largest_overlap_ratio"]])


def draw(s: Settings, histories: dict[tuple[str, float], History], job: Job) -> None:
    """Residual and objective over iterations for the lightest slab, and after them for every slab (Fig. 5, Table I)."""
    lightest = s.masses[0]
    title = f"slab {lightest:g} kg"
    residual = Panel("residual, Eq. 25 [m/s]", title=title, xlabel="iterations", log=True, log_x=True)
    objective = Panel("objective [J]", title=title, xlabel="iterations", log_x=True)
    by_mass = Panel(f"residual after {s.iterations} [m/s]", xlabel="mass of the slab [kg]", log=True, log_x=True)
    value = Panel(f"-objective after {s.iterations} [J]", xlabel="mass of the slab [kg]", log=True, log_x=True)
    masses = np.array(s.masses)
    for name, color in zip(solvers(s), PALETTE):
        found, label = histories[name, lightest], name.replace("_", " ")
        known = np.flatnonzero(np.isfinite(found.residual))[1:]
        residual.curves.append(Curve(label, known, found.residual[known], color))
        objective.curves.append(Curve(label, found.counts, found.objective, color, marker="o"))
        ends = [histories[name, m].metrics for m in s.masses]
        by_mass.curves.append(
            Curve(label, masses, np.array([e[f"residual_{s.iterations}"] for e in ends]), color, marker="o")
        )
        value.curves.append(
            Curve(label, masses, -np.array([e[f"objective_{s.iterations}"] for e in ends]), color, marker="o")
        )
    ends = np.array([1, s.iterations])
    for tolerance in (s.loose_tolerance, s.tolerance):
        residual.curves.append(Curve(f"_{tolerance:g}", ends, np.full(2, tolerance), "0.6", ":"))
    draw_panels(job.out / "pressure.png", [[residual, objective], [by_mass, value]], title="Spheres under a slab")
