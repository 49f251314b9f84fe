"""The command `solve`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from .. import checks, interrupts
from ..errors import FileError, OptionsError, message
from .arguments import (
    NOT_CONVERGED,
    NUMBER,
    AsJson,
    Threads,
    check_threads,
    is_input,
    only_given,
    option,
    setting,
    value_of,
)
from .tables import flat, plain, short, table, text_of


def solve(
    path: Annotated[Path, typer.Argument(help="A problem (.hdf5), or a folder of problems.", show_default=False)],
    law: Annotated[str, typer.Option(help="coulomb or relaxed.")] = "coulomb",
    solver: Annotated[str | None, option("Name, or names with commas for a folder (default: auto, or apgd).")] = None,
    tolerance: Annotated[float | None, option("Of the solver.", **NUMBER)] = None,
    unique_forces: Annotated[
        bool, typer.Option("--unique-forces", help="Of all impulses with the same motion take the smallest.")
    ] = False,
    as_json: AsJson = False,
    out: Annotated[Path | None, option("Impulses of a problem (.npy), or folder for tables and profile.")] = None,
    threads: Threads = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="Option of the solver; may be given more than once."),
    ] = None,
) -> None:
    """Solve a stored problem, or compare solvers on a folder of them. Exit code 3: tolerance not reached.

    Example: tumble solve problem.hdf5 --solver nsgs
    """
    check_threads(threads)
    from ..enums import Law
    from ..laboratory import default_solver, make_solvers

    law = checks.choice("--law", law, list(Law))
    options = {key: value_of(text) for key, text in map(setting, settings or ())} | only_given(tolerance=tolerance)
    solvers = make_solvers(default_solver() if solver is None else solver, options)
    if out is not None and not path.is_dir() and is_input(out, path):
        raise FileError(message(f"--out {out}", "must be another file than the problem", out, "Say 'impulses.npy'."))
    if out is not None and not path.is_dir() and out.suffix != ".npy":
        remedy = f"They will be a NumPy array; write '{out.with_suffix('.npy').name}'." if out.name else "Name a file."
        raise OptionsError(message("--out", "must end in .npy", f"'{out}'", remedy))
    if unique_forces and path.is_dir():
        raise OptionsError(message("--unique-forces", "is for one problem", path, "Give a file."))
    with interrupts.saying(str):
        if path.is_dir():
            done = _solve_folder(path, solvers, law, out, threads, as_json)
        else:
            done = _solve_one(path, solvers, law, out, threads, as_json, unique_forces)
    if not done:
        raise typer.Exit(NOT_CONVERGED)


def _solve_one(
    path: Path, solvers: list, law: str, out: Path | None, threads: int | None, as_json: bool, unique: bool
) -> bool:
    """One problem, one solver; returns whether the tolerance was reached, and the unique forces where wanted."""
    import numpy as np

    from ..files import replacing
    from ..laboratory import find_unique_forces, solve_file

    if len(solvers) > 1:
        got = ", ".join(solver.name for solver in solvers)
        raise OptionsError(message("--solver", "must be one name for one problem", got, "Give a folder to compare."))
    stored, (row, solution) = solve_file(path, solvers[0], law, threads=threads)
    done, impulse = solution.converged, solution.impulse
    if unique:
        found = find_unique_forces(stored, solution, row)
        done, impulse = done and found.converged, found.impulse
    if out is not None:
        with replacing(out) as temporary, temporary.open("wb") as file:
            np.save(file, stored.impulses(impulse))
    if as_json:
        print(json.dumps(plain(row)))
    else:
        table(stored.title or path.stem, ("", ""), flat(row))
    return done


def _solve_folder(path: Path, solvers: list, law: str, out: Path | None, threads: int | None, as_json: bool) -> bool:
    """All problems of a folder with all solvers; returns whether every tolerance was reached."""
    from ..laboratory import UNREADABLE, solve_folder, write_results

    names = [solver.name for solver in solvers]
    each = (lambda row: print(json.dumps(plain(row)), flush=True)) if as_json else lambda row: None
    rows = solve_folder(path, solvers, law, threads=threads, each=each)
    if not as_json:
        columns = ("problem", "contacts", "solver", "status", "iterations", "seconds", "natural_map")
        cells = [
            [text_of(row.get(c, "")) for c in columns[:-2]] + [short(row.get(c)) for c in columns[-2:]] for row in rows
        ]
        table(str(path), columns, cells, wide=True)
        for name in names:
            own = [row for row in rows if row["solver"] == name]
            solved = [row for row in own if row["status"] == "converged"]
            print(f"{name}: {len(solved)} of {len(own)} solved in {sum(row['seconds'] for row in solved):.3g} s")
    if out is not None:
        for file in write_results(out, rows, names, law):
            print(file, file=sys.stderr if as_json else sys.stdout)
    bad = [row for row in rows if row["status"] == UNREADABLE]
    if bad:
        raise FileError(bad[0]["remark"])
    return all(row["status"] == "converged" for row in rows)
