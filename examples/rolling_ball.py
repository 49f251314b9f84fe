"""A ball thrown along the floor: it slides first, and then rolls with 5/7 of its speed.

    tumble run examples/rolling_ball.py       or       python examples/rolling_ball.py

A Python scene defines build(), which returns a model. STEP, SOLVER, UNTIL and SAVE_EVERY are optional; what the command
line says wins.
"""

import tumble as tb

STEP = {"dt": 1e-3}
SOLVER = {"name": "apgd", "tolerance": 1e-8}
UNTIL = 1.0  # [s]
SAVE_EVERY = 20


def build() -> tb.Model:
    """The scene: a floor and a ball."""
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(friction=0.2, name="cloth"))
    scene.add_static(tb.HalfSpace(), material="cloth", name="floor")
    scene.add_body(tb.Sphere(0.1), mass=1.0, material="cloth", position=(0, 0, 0.1), velocity=(2, 0, 0), name="ball")
    return scene.build()


if __name__ == "__main__":
    sim = tb.Simulation(build(), options=tb.StepOptions(**STEP), solver=tb.SolverAPGD(tolerance=SOLVER["tolerance"]))
    print(sim.run(until=UNTIL, progress=False).summary())
    print(f"the ball rolls with {sim.velocities()[1, 0] / 2.0:.4f} of its first speed; 5/7 is {5 / 7:.4f}")
