"""The library in ten lines: a hundred balls fall on a floor."""

import tumble as tb

scene = tb.SceneBuilder()
scene.add_static(tb.HalfSpace())
scene.add_spheres(0.05, position=tb.grid_points((5, 5, 4), 0.11, origin=(0, 0, 0.1), jitter=0.004), density=1000.0)
sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3), solver=tb.SolverAPGD(tolerance=1e-6))
result = sim.run(until=0.5, save=tb.Save(path="first_program.h5", overwrite=True))
print(result.summary())
print(f"highest ball now at {sim.positions()[:, 2].max():.3f} m")
