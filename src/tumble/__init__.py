"""tumble: nonsmooth rigid multibody dynamics with exact Coulomb friction and a certificate for every step.

import tumble as tb
scene = tb.SceneBuilder()
scene.add_static(tb.HalfSpace())
scene.add_body(tb.Sphere(0.1), density=1000.0, position=(0, 0, 0.5), velocity=(1, 0, 0))
sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
print(sim.run(until=1.0).summary())
"""

import warnings

from .errors import warning_line
from .interrupts import listen, started_as_command

if started_as_command():
    listen()  # before anything that takes time is imported
    warnings.formatwarning = warning_line  # the kernel cache may have something to say

from . import errors, solvers
from .described import describe_fields
from .enums import BodyKind, Integrator, JointKind, Law, MotorMode, Scaling, Status, Stop
from .errors import TumbleError, TumbleWarning
from .observe.trajectory import Trajectory
from .options import Save, StepOptions
from .problem.cone_problem import ConeProblem
from .problem.fclib import read_problem
from .problem.fclib_write import write_problem
from .scene.builder import SceneBuilder
from .scene.files import load_scene
from .scene.fill import grid_points, lattice_points, random_points
from .scene.height_fields import HeightField
from .scene.hulls import ConvexHull
from .scene.materials import Material
from .scene.meshes import Mesh
from .scene.mixture import Mixture
from .scene.model import Model, State
from .scene.motion import Oscillation, SurfaceVelocity
from .scene.primitives import drum, funnel, hopper, screw, wall
from .scene.regions import BoxRegion, DiscRegion
from .scene.rotations import axis_angle, euler, look_at
from .scene.rounded import Rounded
from .scene.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, Frustum, HalfSpace, Placed, Sphere, open_box
from .sim.query import distance
from .sim.report import StepReport
from .sim.run import RunResult
from .sim.simulation import Simulation
from .solve.admm import SolverADMM
from .solve.apgd import SolverAPGD
from .solve.auto import SolverAuto
from .solve.barzilai_borwein import SolverBarzilaiBorwein
from .solve.fixed_point import SolverFixedPoint
from .solve.gauss_seidel import SolverGaussSeidel
from .solve.interior_point import SolverInteriorPoint
from .solve.jacobi import SolverJacobi
from .solve.lemke import SolverLemke
from .solve.ncp_interior_point import SolverNCPInteriorPoint
from .solve.nsgs import SolverNSGS
from .solve.polyhedral_qp import SolverPolyhedralQP
from .solve.semismooth_newton import SolverSemismoothNewton
from .solve.unique_forces import UniqueForces, unique_impulses
from .version import __version__

for _kind in (
    BoxRegion, DiscRegion, Material, Mixture, Oscillation, RunResult, Save, StepOptions, StepReport, SurfaceVelocity,
    UniqueForces, *solvers.SOLVERS.values(),
):  # fmt: skip
    describe_fields(_kind)

__all__ = [
    "Box",
    "BodyKind",
    "BoxRegion",
    "Capsule",
    "Cone",
    "ConeProblem",
    "ConvexHull",
    "Cylinder",
    "DiscRegion",
    "Ellipsoid",
    "Frustum",
    "HalfSpace",
    "HeightField",
    "Integrator",
    "JointKind",
    "Law",
    "Material",
    "Mesh",
    "Mixture",
    "Model",
    "MotorMode",
    "Oscillation",
    "Placed",
    "Rounded",
    "RunResult",
    "Save",
    "Scaling",
    "SceneBuilder",
    "Simulation",
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
    "Sphere",
    "State",
    "Status",
    "StepOptions",
    "StepReport",
    "Stop",
    "SurfaceVelocity",
    "Trajectory",
    "TumbleError",
    "TumbleWarning",
    "UniqueForces",
    "__version__",
    "axis_angle",
    "distance",
    "drum",
    "errors",
    "euler",
    "funnel",
    "grid_points",
    "hopper",
    "lattice_points",
    "load_scene",
    "look_at",
    "open_box",
    "random_points",
    "read_problem",
    "screw",
    "solvers",
    "unique_impulses",
    "wall",
    "write_problem",
]
