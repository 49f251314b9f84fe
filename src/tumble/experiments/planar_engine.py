"""A planar body of `planar` through the engine itself: collision code, cone problem in space, solver and step.

Its points of contact are small spheres (radius 1e-6 m) on a body that moves in the plane x, z, over a half-space that
is a contact at every distance. Against the stand-alone stepper two things differ. The engine applies an impulse midway
between the two surfaces, not at the tip: while a gap is open, friction acts half the gap below the tip (this keeps the
angular momentum of two bodies). And a step is solved to a tolerance, not exactly.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

import tumble as tb

from ..errors import TumbleWarning

TIP = 1e-6
"""Radius of the spheres at the points of contact [m]."""
FAR = 100.0
"""Gap up to which the floor is a contact [m]."""


def simulate(
    points: Sequence[float],
    law: str,
    *,
    mass: float,
    inertia: float | None,
    friction: float,
    gravity: float,
    q: np.ndarray,
    v: np.ndarray,
    dt: float,
    steps: int,
    tolerance: float,
) -> tuple[np.ndarray, int]:
    """Coordinates (steps + 1, 2 or 3) x, y [m] and angle [rad] of every step, and how many steps did not converge.

    points: of contact, along the body's axis [m]; inertia [kg m^2], None: a particle that does not turn; q, v: x, y and
    angle at the start and their speeds.
    """
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -gravity))
    material = scene.add_material(tb.Material(friction=friction))
    scene.add_static(tb.HalfSpace((0.0, 0.0, 1.0), 0.0), material=material)
    turns = inertia is not None
    angle = float(q[2]) if turns else 0.0
    body = scene.add_body(
        [tb.Placed(tb.Sphere(TIP), position=(x, 0.0, 0.0)) for x in points],
        mass=mass,
        inertia=np.eye(3) * (inertia if turns else 1.0),
        center=(0.0, 0.0, 0.0),
        material=material,
        position=(q[0], 0.0, q[1] + TIP),
        orientation=(np.cos(0.5 * angle), 0.0, -np.sin(0.5 * angle), 0.0),
        velocity=(v[0], 0.0, v[1]),
        angular_velocity=(0.0, -v[2] if turns else 0.0, 0.0),
        locked=("y", "rx", "rz") if turns else ("y", "rx", "ry", "rz"),
    )
    sim = tb.Simulation(
        scene.build(),
        options=tb.StepOptions(dt=dt, law=law, leave_gaps=False, margin=FAR, recovery_speed=1e3),
        solver=tb.SolverAPGD(tolerance=tolerance, max_iterations=100_000),
    )
    out, missed = [np.array(q, float)], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TumbleWarning)  # points move by more than their size
        for _ in range(steps):
            missed += not sim.step().converged
            x, _, z = sim.positions()[body]
            angle -= dt * sim.angular_velocities()[body, 1]
            out.append(np.array([x, z - TIP, angle] if turns else [x, z - TIP]))
    return np.array(out), missed
