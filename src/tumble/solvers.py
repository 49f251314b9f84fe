"""All solvers, the problems only they take, and the measures of a solution."""

from .problem.polyhedral import PolyhedralProblem, facets
from .problem.rolling import RollingProblem
from .solve.admm import SolverADMM
from .solve.apgd import SolverAPGD
from .solve.auto import SolverAuto
from .solve.barzilai_borwein import SolverBarzilaiBorwein
from .solve.base import IterativeSolver, Solution, Solver
from .solve.fixed_point import SolverFixedPoint
from .solve.gauss_seidel import SolverGaussSeidel
from .solve.interior_point import SolverInteriorPoint
from .solve.jacobi import SolverJacobi
from .solve.lemke import SolverLemke
from .solve.ncp_interior_point import SolverNCPInteriorPoint
from .solve.nsgs import SolverNSGS
from .solve.polyhedral_qp import SolverPolyhedralQP
from .solve.registry import SOLVERS, make_solver
from .solve.residuals import Residuals, measure
from .solve.rolling import RollingResiduals, measure_rolling
from .solve.semismooth_newton import SolverSemismoothNewton

__all__ = [
    "SOLVERS",
    "IterativeSolver",
    "PolyhedralProblem",
    "Residuals",
    "RollingProblem",
    "RollingResiduals",
    "Solution",
    "Solver",
    "SolverADMM",
    "SolverAPGD",
    "SolverAuto",
    "SolverBarzilaiBorwein",
    "SolverFixedPoint",
    "SolverGaussSeidel",
    "SolverInteriorPoint",
    "SolverJacobi",
    "SolverLemke",
    "SolverNCPInteriorPoint",
    "SolverNSGS",
    "SolverPolyhedralQP",
    "SolverSemismoothNewton",
    "facets",
    "make_solver",
    "measure",
    "measure_rolling",
]
