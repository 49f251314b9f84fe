"""Solvers by the names used on the command line and in scene files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from .. import checks
from ..errors import OptionsError, message
from .admm import SolverADMM
from .apgd import SolverAPGD
from .auto import SolverAuto
from .barzilai_borwein import SolverBarzilaiBorwein
from .base import Solver
from .fixed_point import SolverFixedPoint
from .gauss_seidel import SolverGaussSeidel
from .interior_point import SolverInteriorPoint
from .jacobi import SolverJacobi
from .lemke import SolverLemke
from .ncp_interior_point import SolverNCPInteriorPoint
from .nsgs import SolverNSGS
from .polyhedral_qp import SolverPolyhedralQP
from .semismooth_newton import SolverSemismoothNewton

__all__ = ["SOLVERS", "make_solver", "solver_of_steps"]

SOLVERS: dict[str, type[Solver]] = {
    s.name: s
    for s in (
        SolverAPGD,
        SolverBarzilaiBorwein,
        SolverGaussSeidel,
        SolverJacobi,
        SolverNSGS,
        SolverADMM,
        SolverInteriorPoint,
        SolverNCPInteriorPoint,
        SolverSemismoothNewton,
        SolverFixedPoint,
        SolverLemke,
        SolverPolyhedralQP,
        SolverAuto,
    )
}


def options_of(kind: type[Solver]) -> set[str]:
    """Names of the options of a solver."""
    return {field.name for field in fields(kind)}  # type: ignore[arg-type]


def make_solver(name: str = "apgd", **options: object) -> Solver:
    """A solver by name with its options; unknown ones raise."""
    kind = SOLVERS[checks.choice("solver.name", name, SOLVERS)]
    known = options_of(kind)
    for key, value in options.items():
        if key not in known:
            raise OptionsError(
                message(f"solver '{name}'", f"unknown option '{key}'", checks.short(value), checks.nearest(key, known))
            )
    return kind(**options)  # type: ignore[arg-type]


def solver_of_steps(options: Mapping[str, Any]) -> Solver:
    """The solver of a simulation by what a scene file or the command line says: name and options, both may be left out.

    Without a name: auto, unless an option is given that only the first-order solvers know."""
    name = options.get("name", "auto" if set(options) <= {"tolerance", "max_iterations"} else "apgd")
    steps = {"steps": True} if name == "auto" else {}
    return make_solver(**{**steps, **options, "name": name})
