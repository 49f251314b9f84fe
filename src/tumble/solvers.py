"""All solvers and the measures of a solution."""

from .solve.apgd import SolverAPGD
from .solve.barzilai_borwein import SolverBarzilaiBorwein
from .solve.base import IterativeSolver, Solution, Solver
from .solve.gauss_seidel import SolverGaussSeidel
from .solve.jacobi import SolverJacobi
from .solve.registry import SOLVERS, make_solver
from .solve.residuals import Residuals, measure

__all__ = [
    "SOLVERS",
    "IterativeSolver",
    "Residuals",
    "Solution",
    "Solver",
    "SolverAPGD",
    "SolverBarzilaiBorwein",
    "SolverGaussSeidel",
    "SolverJacobi",
    "make_solver",
    "measure",
]
