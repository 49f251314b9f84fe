"""Solving stored problems: one with one solver, or a folder of them with several, with tables and profiles."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import checks
from .errors import FileError, OptionsError, TumbleError, message
from .kernels import jit
from .problem.cone_problem import ConeProblem
from .problem.fclib import FileProblem, read_problem
from .problem.profile import PerformanceProfile, performance_profile
from .problem.rolling import RollingProblem
from .solve.base import Solution, Solver
from .solve.registry import SOLVERS, make_solver, options_of
from .solve.unique_forces import UniqueForces, unique_impulses

__all__ = [
    "Solved",
    "default_solver",
    "find_unique_forces",
    "make_solvers",
    "solve_file",
    "solve_folder",
    "write_results",
]

MEASURES = ("natural_map", "residual_eq25", "objective", "certificate_energy", "certificate_shift_velocity")
COLUMNS = (
    "problem", "solver", "status", "iterations", "seconds", *MEASURES, "law", "tolerance", "contacts", "dim",
    "symmetrised", "clipped", "remark",
)  # fmt: skip
REFUSED, UNREADABLE = "refused", "unreadable"
"""Statuses of problems that a solver does not take, and of files that are none."""

Solved = tuple[dict[str, Any], Solution | None]
"""The numbers of a solve, and the solution where there is one."""


def default_solver() -> str:
    """`auto` where it exists."""
    return "auto" if "auto" in SOLVERS else "apgd"


def make_solvers(names: str, options: Mapping[str, Any]) -> list[Solver]:
    """Solvers from names with commas; an option goes to those that have it, and to one at least."""
    out, used = [], set()
    for name in dict.fromkeys(part.strip() for part in names.split(",")):
        kind = SOLVERS[checks.choice("--solver", name, SOLVERS)]
        known = {k: v for k, v in options.items() if k in options_of(kind)}
        used |= set(known)
        out.append(make_solver(name, **known))
    for key in options:
        if key not in used:
            have = {field for solver in out for field in options_of(type(solver))}
            where = "solver " + ", ".join(f"'{solver.name}'" for solver in out)
            raise OptionsError(message(where, f"unknown option '{key}'", repr(options[key]), checks.nearest(key, have)))
    return out


def solve_file(
    path: str | Path, solver: Solver, law: str, *, threads: int | None = None
) -> tuple[FileProblem, tuple[dict[str, Any], Solution]]:
    """Read and solve a problem."""
    stored = read_problem(path)
    return stored, solve_stored(stored, solver, law, threads=threads)


def solve_stored(
    stored: FileProblem, solver: Solver, law: str, *, threads: int | None = None
) -> tuple[dict[str, Any], Solution]:
    """Solve a problem that was read, kernels loaded before the clock starts."""
    with _threads(threads):
        problem: Any = stored.problem  # solvers say what they cannot take
        solver.solve(_tiny(problem), law=law)
        start = time.perf_counter()
        solution = solver.solve(problem, law=law)
        seconds = time.perf_counter() - start
    row = {
        "problem": stored.path.name,
        "solver": solver.name,
        "status": str(solution.status),
        "iterations": solution.iterations,
        "seconds": seconds,
        **{name: getattr(solution.residuals, name, None) for name in MEASURES},
        "law": str(solution.law),
        "tolerance": getattr(solver, "tolerance", None),
        **_facts(stored),
    }
    if getattr(solution, "tried", ()):
        row["tried"] = [list(entry) for entry in solution.tried]
    return row, solution


def find_unique_forces(stored: FileProblem, solution: Solution, row: dict[str, Any]) -> UniqueForces:
    """The unique forces of a solved problem; what is known about them goes into the row."""
    start = time.perf_counter()
    problem: Any = stored.problem
    found = unique_impulses(problem, solution)
    values = {f.name: getattr(found, f.name) for f in fields(found) if f.name not in ("impulse", "status")}
    row["unique_forces"] = {"status": str(found.status), "seconds": time.perf_counter() - start, **values}
    return found


def solve_folder(
    folder: Path,
    solvers: Sequence[Solver],
    law: str,
    *,
    threads: int | None = None,
    progress: bool | None = None,
    each: Callable[[dict[str, Any]], None] = lambda row: None,
) -> list[dict[str, Any]]:
    """Solve every *.hdf5 of a folder with every solver; `each` gets the rows as they come.

    A file that cannot be read and a problem that a solver refuses are rows, too (`status`, with a `remark`).
    """
    paths = sorted(folder.glob("*.hdf5"))
    if not paths:
        raise FileError(message(str(folder), "must have files *.hdf5", "none", "Give a folder of problems."))
    rows: list[dict[str, Any]] = []
    with _bar(progress, len(paths) * len(solvers)) as advance:
        for path in paths:
            try:
                stored: FileProblem | TumbleError = read_problem(path)
            except TumbleError as mistake:
                stored = mistake
            for solver in solvers:
                rows.append(_row(path, stored, solver, law, threads))
                each(rows[-1])
                advance(f"{path.stem} {solver.name}")
    return rows


def _row(
    path: Path, stored: FileProblem | TumbleError, solver: Solver, law: str, threads: int | None
) -> dict[str, Any]:
    empty = {"problem": path.name, "solver": solver.name, "law": law}
    if isinstance(stored, TumbleError):
        return empty | {"status": UNREADABLE, "remark": str(stored)}
    try:
        return solve_stored(stored, solver, law, threads=threads)[0]
    except TumbleError as mistake:
        return empty | _facts(stored) | {"status": REFUSED, "remark": str(mistake)}


def profile_of(rows: Sequence[Mapping[str, Any]], solvers: Sequence[str]) -> tuple[PerformanceProfile, int]:
    """The profile of seconds over the problems that could be read, and their number."""
    problems = list(dict.fromkeys(row["problem"] for row in rows if row["status"] != UNREADABLE))
    costs = np.full((len(problems), len(solvers)), np.inf)
    for row in rows:
        if row["status"] == "converged":
            costs[problems.index(row["problem"]), solvers.index(row["solver"])] = max(row["seconds"], 1e-9)
    return performance_profile(costs), len(problems)


def write_results(folder: Path, rows: Sequence[Mapping[str, Any]], solvers: Sequence[str], law: str) -> list[Path]:
    """results.csv, profile.csv and profile.png in a folder."""
    from .view.profile import plot_profile

    profile, count = profile_of(rows, solvers)
    paths = [folder / "results.csv", folder / "profile.csv", folder / "profile.png"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with paths[0].open("w", newline="") as file:
            writer: csv.DictWriter[str] = csv.DictWriter(file, COLUMNS, restval="", extrasaction="ignore")
            writer.writeheader()
            writer.writerows({k: "" if v is None else v for k, v in row.items()} for row in rows)
        with paths[1].open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["factor", *solvers])
            table.writerows(np.column_stack([profile.factor, profile.share.T]).tolist())
    except OSError as cause:
        raise FileError(message(str(folder), "must be a folder to write to", cause, "Check its name.")) from cause
    plot_profile(profile, solvers, paths[2], title=f"{count} problems, {law} law")
    return paths


def _facts(stored: FileProblem) -> dict[str, Any]:
    return {
        "contacts": stored.problem.count,
        "dim": stored.dim,
        "symmetrised": stored.symmetrised,
        "clipped": stored.clipped,
        "remark": "; ".join(stored.notes),
    }


def _tiny(problem: ConeProblem | RollingProblem) -> Any:
    """One contact of the same kind, to load the kernels."""
    dim = problem.dim
    bias = np.array([-1.0] + [0.1] * (dim - 1))
    if isinstance(problem, RollingProblem):
        return RollingProblem(sp.identity(dim, format="csr"), bias, np.array([0.5]), np.array([0.5]))
    return ConeProblem.from_matrix(np.eye(dim), bias, [0.5], dim=dim)


@contextmanager
def _threads(count: int | None) -> Any:
    before = None if count is None else jit.set_threads(count)
    try:
        yield
    finally:
        if before is not None:
            jit.set_threads(before)


@contextmanager
def _bar(wanted: bool | None, total: int) -> Any:
    """A progress bar on a terminal; gives a function that is told what was done."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (
        TextColumn("solve"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*parts, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda text: progress.update(task, advance=1, description=text)
