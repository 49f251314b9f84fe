"""Solvers by name, what a solver of your own needs, the problems only some take, and the measures of a solution.

The solvers themselves are `tumble.SolverAPGD` and so on.
"""

from .problem.polyhedral import PolyhedralProblem, facets
from .problem.rolling import RollingProblem
from .solve.base import IterativeSolver, Solution, Solver
from .solve.registry import SOLVERS, make_solver
from .solve.residuals import Residuals, measure
from .solve.rolling import RollingResiduals, measure_rolling

__all__ = [
    "SOLVERS",
    "IterativeSolver",
    "PolyhedralProblem",
    "Residuals",
    "RollingProblem",
    "RollingResiduals",
    "Solution",
    "Solver",
    "facets",
    "make_solver",
    "measure",
    "measure_rolling",
]
