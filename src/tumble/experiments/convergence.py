"""One step of settled spheres: iterations that APGD needs to the objective of an interior point method.

Two states: settled thoroughly (many iterations a step) and poorly (ten). The objective is g'Ng/2 + r'g, that of the
relaxed problem in impulses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

import tumble as tb

from ..solvers import Solution
from .base import Job, overlap_metrics, overlap_ratio, setting
from .figures import COLORS, PALETTE, Curve, Panel, draw_panels
from .reference import interior_point, rank_and_spread
from .settled import SettledSettings, check_interval, counts, kinetic_energy, next_problem, pile, quench, settle

STATES = ("thorough", "poor")


@dataclass(frozen=True, kw_only=True)
class Settings(SettledSettings):
    """Of `convergence`.

    `apgd` is the method as published (`variant="paper"`), `default` this package's, with scaled contacts. The poor
    settling starts every step from zero impulses: with a warm start even ten iterations a step settle well. Four
    seconds are too short for spheres that fall from 28 m, and some roll on for ever: the thorough state is stopped, and
    settles again, until it has the paper's kinetic energy.
    """

    spheres: int = setting(320, "number of spheres", quick=80, at_least=1)
    side: float = setting(12.0, "inner width and depth of the container", unit="m", quick=8.0, above=0.0)
    poor_iterations: int = setting(10, "most iterations a step of the poor settling", at_least=1)
    poor_warm_start: int = setting(0, "1: the poor settling starts from the previous impulses", at_most=1)
    rest_energy: float = setting(
        0.0215, "kinetic energy of the thorough state, as in the paper", unit="J", at_least=0.0
    )
    quench_every: float = setting(0.5, "it is stopped and settles on for so long", unit="s", above=0.0)
    quenches: int = setting(20, "so often at most", at_least=0)
    agreement: float = setting(1e-5, "relative difference of the objectives that ends the count", above=0.0)
    tolerance: float = setting(1e-9, "natural map to which APGD goes on after the count", at_least=0.0)
    max_iterations: int = setting(20000, "of APGD", at_least=1)
    interior_tolerance: float = setting(1e-11, "aim of the interior point method, a natural map", above=0.0)


class Study(NamedTuple):
    """One state."""

    metrics: dict[str, float]
    iterations: np.ndarray
    """(k,) counts"""
    objective: np.ndarray
    """(k,) of plain APGD after those [J]"""
    force: dict[str, np.ndarray]
    """Normal forces (contacts,) [N] of the interior point method and after some counts"""


def objective(problem: tb.ConeProblem, solver: tb.SolverAPGD, iterations: int) -> float:
    """After a number of iterations from zero [J]."""
    return after(problem, solver, iterations).residuals.objective


def after(problem: tb.ConeProblem, solver: tb.SolverAPGD, iterations: int) -> Solution:
    """What a number of iterations from zero gives."""
    k = int(iterations)
    limited = replace(solver, tolerance=0.0, max_iterations=k, check_every=check_interval(k))
    return limited.solve(problem, law="relaxed")


def count_iterations(problem: tb.ConeProblem, solver: tb.SolverAPGD, goal: float, agreement: float) -> int | None:
    """Iterations until the objective is within a relative difference of a goal: the first of counts 3 % apart at which
    it is, refined back to the count before. None if the solver's limit is too low."""
    before = 0
    assert solver.max_iterations is not None
    for count in counts(solver.max_iterations, ratio=1.03):
        if abs(objective(problem, solver, count) - goal) <= agreement * abs(goal):
            inside = (k for k in range(before + 1, count) if _near(problem, solver, k, goal, agreement))
            return next(inside, int(count))
        before = int(count)
    return None


def _near(problem: tb.ConeProblem, solver: tb.SolverAPGD, count: int, goal: float, agreement: float) -> bool:
    return abs(objective(problem, solver, count) - goal) <= agreement * abs(goal)


def study(s: Settings, job: Job, state: str) -> Study:
    """Settle, then solve the next step by both methods."""
    poor = state == "poor"
    sim, metrics = settle(
        s,
        job,
        pile(s, spheres=s.spheres, side=s.side),
        iterations=s.poor_iterations if poor else None,
        warm_start=bool(s.poor_warm_start) if poor else True,
    )
    if not poor:
        metrics["quenches"] = quench(job, sim, s.rest_energy, every=s.quench_every, most=s.quenches)
        metrics["kinetic_energy"] = kinetic_energy(sim)
        metrics["largest_overlap_ratio"] = overlap_ratio(sim)
    problem = next_problem(sim)
    reference: Solution = interior_point(s.interior_tolerance).solve(problem, law="relaxed")
    goal = reference.residuals.objective
    rank, spread = rank_and_spread(problem)
    metrics |= {
        "contacts": problem.count,
        "objective_interior_point": goal,
        "iterations_interior_point": reference.iterations,
        "natural_map_interior_point": reference.residuals.natural_map,
        "matrix_rows": 3 * problem.count,
        "matrix_rank": rank,
        "eigenvalue_ratio": spread,
    }
    solvers = {
        "apgd": tb.SolverAPGD(variant="paper", tolerance=s.tolerance, max_iterations=s.max_iterations),
        "default": tb.SolverAPGD(tolerance=s.tolerance, max_iterations=s.max_iterations),
    }
    with job.threaded():
        for name, solver in solvers.items():
            count = count_iterations(problem, solver, goal, s.agreement)
            metrics[f"iterations_{name}"] = s.max_iterations if count is None else count
            solution = solver.solve(problem, law="relaxed")
            metrics[f"iterations_to_tolerance_{name}"] = solution.iterations
            metrics[f"natural_map_{name}"] = solution.residuals.natural_map
            metrics[f"objective_relative_difference{'' if name == 'apgd' else '_' + name}"] = abs(
                solution.residuals.objective / goal - 1.0
            )
            if name == "apgd":
                metrics["objective_apgd"] = solution.residuals.objective
        plain = solvers["apgd"]
        last = int(metrics["iterations_apgd"])
        steps = counts(max(2 * last, 10), ratio=1.2)
        values = np.array([objective(problem, plain, k) for k in steps])
        force = {"interior point": reference.impulse[0, : problem.count] / s.dt}
        for k in sorted({max(1, last // 16), max(1, last // 4), last}):
            force[f"APGD, {k}"] = after(problem, plain, k).impulse[0, : problem.count] / s.dt
    return Study(metrics, steps, values, force)


def run(s: Settings, job: Job) -> dict[str, float]:
    """Both states."""
    studies = {state: study(s, job, state) for state in STATES}
    draw(studies, job)
    metrics = {f"{key}_{state}": value for state, found in studies.items() for key, value in found.metrics.items()}
    return metrics | overlap_metrics(found.metrics["largest_overlap_ratio"] for found in studies.values())


def draw(studies: dict[str, Study], job: Job) -> None:
    """Objectives over iterations, their differences, and forces (Figs 1 to 4)."""
    rows = []
    for state, found in studies.items():
        goal = found.metrics["objective_interior_point"]
        ends = found.iterations[[0, -1]]
        title = f"{state}: {found.metrics['contacts']:.0f} contacts"
        size = Panel("|objective| [J]", title=title, xlabel="iterations", log=True, log_x=True)
        size.curves += [
            Curve("APGD", found.iterations, np.abs(found.objective), COLORS["coulomb"], marker="o"),
            Curve("interior point", ends, np.full(2, abs(goal)), COLORS["exact"], ":"),
        ]
        gap = Panel("relative difference of the objectives", title=title, xlabel="iterations", log=True, log_x=True)
        gap.curves.append(
            Curve("APGD", found.iterations, np.abs(found.objective / goal - 1.0), COLORS["coulomb"], marker="o")
        )
        force = Panel("normal force [N], sorted", title=title, xlabel="contacts")
        for (label, values), color, line in zip(found.force.items(), PALETTE, ("-", ":", "-.", "--")):
            force.curves.append(Curve(label, np.arange(len(values)), np.sort(values)[::-1], color, line))
        rows.append([size, gap, force])
    draw_panels(job.out / "convergence.png", rows, title="One step of settled spheres: APGD and interior point")
