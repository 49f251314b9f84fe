"""Time and iterations of every solver against the number of contacts, for one step of settled spheres.

The relaxed problem, from zero impulses, to the same natural map.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import tumble as tb

from ..errors import ExperimentError, message
from ..solve.lemke import SolverLemke
from ..solvers import Solution, facets, make_solver
from .base import Job, overlap_metrics, setting, slope
from .figures import PALETTE, Curve, Panel, draw_panels
from .reference import interior_point
from .settled import SettledSettings, next_problem, pile, settle

FIRST_ORDER = ("apgd", "barzilai_borwein", "gauss_seidel", "jacobi")
PUBLISHED = ("apgd", "gauss_seidel", "jacobi")
"""Methods of the papers; as published they are `apgd_paper` and so on here."""
SAMPLE = 320
"""Spheres that `side` belongs to."""


@dataclass(frozen=True, kw_only=True)
class Settings(SettledSettings):
    """Of `solver-scaling`.

    The container grows with the cube root of the number of spheres: in one of fixed width 2560 spheres would stand so
    high that 4 s do not let them fall.
    """

    spheres: tuple[float, ...] = setting(
        tuple(64.0 * k for k in (1, 2, 4, 8, 16, 24, 32, 40)),
        "numbers of spheres, separated by commas",
        quick=tuple(64.0 * k for k in (1, 2, 4, 8)),
        at_least=1.0,
    )
    side: float = setting(12.0, f"inner width and depth of the container of {SAMPLE} spheres", unit="m", above=0.0)
    settling: float = setting(4.0, "simulated time of the settling", unit="s", quick=2.0, above=0.0)
    dt: float = setting(0.0005, "time step", unit="s", quick=0.001, above=0.0)
    tolerance: float = setting(1e-6, "natural map that the solvers must reach", above=0.0)
    max_iterations: int = setting(20000, "of the first-order solvers", at_least=1)
    interior_tolerance: float = setting(
        1e-8, "aim of the interior point method, which judges itself by its gap, not by the natural map", above=0.0
    )
    pivoting_limit: int = setting(400, "contacts from which the pivoting solver is left out", at_least=0)
    facets: int = setting(4, "sides of the friction cones of the pivoting solver", at_least=3)
    repeats: int = setting(3, "the best time of so many solves counts", at_least=1)

    def check(self, where: str) -> None:
        """Whole spheres that fit."""
        for count in self.spheres:
            if count != int(count):
                raise ExperimentError(message(f"{where}: spheres", "must be whole numbers", count, "Round it."))
            least = 2.1 * self.radius
            if self.side_of(int(count)) < least:
                raise ExperimentError(
                    message(
                        f"{where}: side",
                        f"must be >= {least / (count / SAMPLE) ** (1 / 3):.4g} m, for one of {count:g} spheres to fit",
                        self.side,
                        "Enlarge side or lower radius.",
                    )
                )

    def side_of(self, spheres: int) -> float:
        """Width of the container of a number of spheres [m]."""
        return self.side * (spheres / SAMPLE) ** (1.0 / 3.0)


class Timing(NamedTuple):
    """One solver on one problem."""

    contacts: int
    seconds: float
    iterations: int
    natural_map: float
    solved: bool


def methods(s: Settings, contacts: int) -> dict[str, Callable[[tb.ConeProblem], Solution]]:
    """What solves a problem, by the solver's name. Pivoting solves Coulomb's law with cones of few sides."""
    found: dict[str, Callable[[tb.ConeProblem], Solution]] = {}
    own = {name: {} for name in FIRST_ORDER} | {name + "_paper": {"variant": "paper"} for name in PUBLISHED}
    for name, options in own.items():
        options |= {"tolerance": s.tolerance, "max_iterations": s.max_iterations}
        solver = make_solver(name.removesuffix("_paper"), **options)
        found[name] = lambda problem, solver=solver: solver.solve(problem, law="relaxed")
    found["interior_point"] = lambda problem: interior_point(s.interior_tolerance).solve(problem, law="relaxed")
    if contacts < s.pivoting_limit:
        found["lemke"] = lambda problem: SolverLemke(tolerance=s.tolerance).solve(facets(problem, s.facets))
    return found


def measure(s: Settings, problem: tb.ConeProblem, solve: Callable[[tb.ConeProblem], Solution]) -> Timing:
    """The best time of some solves; one that fails or takes longer than a second is not repeated."""
    best = np.inf
    for _ in range(s.repeats):
        start = time.perf_counter()
        solution = solve(problem)
        best = min(best, time.perf_counter() - start)
        solved = bool(solution.residuals.natural_map <= s.tolerance)
        if not solved or best > 1.0:
            break
    return Timing(problem.count, best, solution.iterations, solution.residuals.natural_map, solved)


def run(s: Settings, job: Job) -> dict[str, float]:
    """Settle every number of spheres and solve the next step by every solver."""
    timings: dict[str, list[Timing]] = {}
    metrics: dict[str, float] = {}
    overlaps = []
    for count in map(int, s.spheres):
        sim, settling = settle(s, job, pile(s, spheres=count, side=s.side_of(count)))
        overlaps.append(settling["largest_overlap_ratio"])
        problem = next_problem(sim)
        metrics[f"contacts_n{count}"] = problem.count
        if problem.count == 0:
            continue
        with job.threaded():
            for name, solve in methods(s, problem.count).items():
                if name in FIRST_ORDER and name not in timings:
                    solve(problem)  # compiles, or loads
                found = measure(s, problem, solve)
                timings.setdefault(name, []).append(found)
                metrics[f"seconds_{name}_n{count}"] = found.seconds
                metrics[f"iterations_{name}_n{count}"] = found.iterations
                metrics[f"natural_map_{name}_n{count}"] = found.natural_map
    for name, rows in timings.items():
        solved = [t for t in rows if t.solved]
        metrics[f"unsolved_{name}"] = len(rows) - len(solved)
        contacts = np.array([t.contacts for t in solved])
        for what, values in (("time", [t.seconds for t in solved]), ("iterations", [t.iterations for t in solved])):
            found = slope(contacts, np.maximum(values, 1e-9))
            if found is not None:
                metrics[f"{what}_contacts_slope_{name}"] = found
    if "time_contacts_slope_apgd" in metrics:
        metrics["time_contacts_slope"] = metrics["time_contacts_slope_apgd"]
    draw(s, timings, job)
    return metrics | overlap_metrics(overlaps)


def draw(s: Settings, timings: dict[str, list[Timing]], job: Job) -> None:
    """Time and iterations over contacts (Fig. 5); crosses are solves that missed the tolerance."""
    panels = [
        Panel("time of a solve [s]", xlabel="contacts", log=True, log_x=True),
        Panel("iterations", xlabel="contacts", log=True, log_x=True),
    ]
    methods = dict.fromkeys(name.removesuffix("_paper") for name in timings)
    colors = dict(zip(methods, PALETTE))
    for name, rows in timings.items():
        color, line = colors[name.removesuffix("_paper")], "--" if name.endswith("_paper") else "-"
        x = np.array([t.contacts for t in rows], float)
        missed = np.array([not t.solved for t in rows])
        values = (np.array([t.seconds for t in rows]), np.array([t.iterations for t in rows], float))
        for panel, y in zip(panels, values):
            panel.curves.append(Curve(name.replace("_", " "), x, y, color, line, marker="o"))
            if missed.any():
                panel.curves.append(Curve("_missed", x[missed], y[missed], "black", "", "x"))
    title = f"Settled spheres, relaxed law, natural map {s.tolerance:g} (cross: not reached)"
    draw_panels(job.out / "solver_scaling.png", [panels], title=title)
