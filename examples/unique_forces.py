"""Forces in a pyramid of balls: what three solvers find, and the unique ones.

python examples/unique_forces.py
"""

import numpy as np

import tumble as tb
from tumble import SolverBarzilaiBorwein, SolverGaussSeidel

RADIUS, ROWS = 0.1, 4
scene = tb.SceneBuilder()
stone = scene.add_material(tb.Material(friction=0.6))
scene.add_static(tb.HalfSpace(), material=stone)
for level in range(ROWS):
    for k in range(ROWS - level):
        point = (2 * RADIUS * (k - 0.5 * (ROWS - level - 1)), 0.0, RADIUS * (1 + np.sqrt(3.0) * level))
        if level == 0 and k in (0, ROWS - 1):
            scene.add_static(tb.Sphere(RADIUS), position=point, material=stone)  # the corners are held
        else:
            scene.add_body(tb.Sphere(RADIUS), density=2500.0, position=point, material=stone)
model = scene.build()

for unique in (False, True):
    print("unique forces" if unique else "as the solvers find them", "[N], the contacts between balls")
    for solver in (tb.SolverAPGD(), SolverBarzilaiBorwein(), SolverGaussSeidel()):
        sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3, unique_forces=unique), solver=solver)
        for _ in range(3):
            sim.step()
        forces = sim.contact_forces()
        chains = forces.body_a > 0  # body 0 is the floor
        size = np.linalg.norm(forces.force[chains], axis=1)
        print(f"  {solver.name:18s}", " ".join(f"{f:7.3f}" for f in size[size > 1e-6]))
