"""The table of docs/solvers.md: every solver on the public two- and three-dimensional problems.

    python benchmarks/solvers_table.py FOLDER [solver ...]

FOLDER holds FCLIB files with an `fclib_local` group; those with rolling friction are left out, and the names after
--without. Matrices are used as stored, symmetrised. Each solve is run twice and the shorter time counts.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import h5py
import numpy as np
import scipy.sparse as sp

import tumble as tb
from tumble.problem.fclib_layout import read_matrix
from tumble.solvers import SOLVERS, make_solver

LAWS = {"relaxed": 1e-8, "coulomb": 1e-6}
SKIP = {"lemke", "polyhedral_qp"}  # other problems: flat-sided cones


def problems(folder: Path, without: list[str]) -> list[tuple[str, tb.ConeProblem]]:
    """Names and problems."""
    out = []
    for path in sorted(folder.glob("*.hdf5")):
        with h5py.File(path) as file:
            group = file["fclib_local"]
            dim = int(group["spacedim"][0])
            if dim == 5 or path.stem in without:
                continue
            matrix = read_matrix(path, group, "W")
            vectors = group["vectors"]
            matrix = sp.csr_matrix((matrix + matrix.T) * 0.5)
            out.append((path.stem, tb.ConeProblem.from_matrix(matrix, vectors["q"][()], vectors["mu"][()], dim=dim)))
    return out


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("solvers", nargs="*")
    parser.add_argument("--without", nargs="*", default=["extra_pyramid8"])
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    loaded = problems(given.folder, given.without)
    print(f"{len(loaded)} problems; relaxed to {LAWS['relaxed']:g}, Coulomb to {LAWS['coulomb']:g} (natural map)\n")
    print("| solver | relaxed: solved | seconds | median iterations | Coulomb: solved | seconds | median iterations |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in given.solvers or [n for n in SOLVERS if n not in SKIP]:
        cells = []
        for law, tolerance in LAWS.items():
            solved, seconds, iterations, failed = 0, 0.0, [], []
            for title, problem in loaded:
                best = np.inf
                for _ in range(given.repeats):
                    begin = time.perf_counter()
                    found = make_solver(name, tolerance=tolerance).solve(problem, law=law)
                    best = min(best, time.perf_counter() - begin)
                solved += found.converged
                failed += [] if found.converged else [f"{title} {found.residuals.natural_map:.0e}"]
                seconds += best
                iterations.append(found.iterations)
            cells += [f"{solved}", f"{seconds:.2f}", f"{np.median(iterations):.0f}"]
            if failed:
                print(f"<!-- {name} {law} not solved: {', '.join(failed)} -->")
        print("| " + " | ".join([name, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
