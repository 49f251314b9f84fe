"""Solvers by the names used on the command line and in scene files."""

from __future__ import annotations

from .. import checks
from ..errors import OptionsError, message
from .apgd import SolverAPGD
from .barzilai_borwein import SolverBarzilaiBorwein
from .base import IterativeSolver
from .gauss_seidel import SolverGaussSeidel
from .jacobi import SolverJacobi

__all__ = ["SOLVERS", "make_solver"]

SOLVERS: dict[str, type[IterativeSolver]] = {
    s.name: s for s in (SolverAPGD, SolverBarzilaiBorwein, SolverGaussSeidel, SolverJacobi)
}


def make_solver(name: str = "apgd", **options: object) -> IterativeSolver:
    """A solver by name with its options; unknown ones raise."""
    kind = SOLVERS[checks.choice("solver.name", name, SOLVERS)]
    known = set(kind.__dataclass_fields__)
    for key, value in options.items():
        if key not in known:
            raise OptionsError(
                message(f"solver '{name}'", f"unknown option '{key}'", repr(value), checks.nearest(key, known))
            )
    return kind(**options)  # type: ignore[arg-type]
