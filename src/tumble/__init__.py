"""tumble: nonsmooth rigid multibody dynamics with exact Coulomb friction and a certificate for every step.

import tumble as tb
scene = tb.SceneBuilder()
scene.add_static(tb.HalfSpace())
scene.add_body(tb.Sphere(0.1), density=1000.0, position=(0, 0, 0.5), velocity=(1, 0, 0))
sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
print(sim.run(until=1.0).summary())
"""

from . import errors, solvers
from .enums import BodyKind, Law, Status
from .errors import TumbleError, TumbleWarning
from .observe.trajectory import Trajectory
from .options import Save, StepOptions
from .problem.cone_problem import ConeProblem
from .scene.builder import SceneBuilder
from .scene.files import load_scene
from .scene.fill import grid_points, lattice_points, random_points
from .scene.materials import Material
from .scene.model import Model, State
from .scene.motion import Oscillation
from .scene.shapes import Box, HalfSpace, Placed, Sphere, open_box
from .sim.report import StepReport
from .sim.run import RunResult
from .sim.simulation import Simulation
from .solve.apgd import SolverAPGD
from .version import __version__

__all__ = [
    "Box",
    "BodyKind",
    "ConeProblem",
    "HalfSpace",
    "Law",
    "Material",
    "Model",
    "Oscillation",
    "Placed",
    "RunResult",
    "Save",
    "SceneBuilder",
    "Simulation",
    "SolverAPGD",
    "Sphere",
    "State",
    "Status",
    "StepOptions",
    "StepReport",
    "Trajectory",
    "TumbleError",
    "TumbleWarning",
    "__version__",
    "errors",
    "grid_points",
    "lattice_points",
    "load_scene",
    "open_box",
    "random_points",
    "solvers",
]
