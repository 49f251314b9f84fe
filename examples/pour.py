"""Bricks are poured onto a round table; when the heap is full, as many fall off the edge as come in.

Run it with `python examples/pour.py` (picture, plot and rates) or `tumble run examples/pour.py`.
"""

import tumble as tb

UNTIL = 4.0  # [s]
STEP = {"dt": 5e-3}
SOLVER = {"name": "apgd", "tolerance": 1e-3}
RATE = 250.0  # [bricks/s]


def build() -> tb.Model:
    """A table, an emitter above it, a sink below it, and two planes that count."""
    scene = tb.SceneBuilder()
    rough = scene.add_material(tb.Material(friction=0.7))
    scene.add_static(tb.Cylinder(0.25, 0.04), position=(0, 0, -0.02), material=rough, name="table")
    scene.add_emitter(
        tb.Box((0.05, 0.035, 0.025)),
        density=2000.0,
        material=rough,
        count=round(RATE * UNTIL),
        rate=RATE,
        region=tb.DiscRegion(center=(0, 0, 0.6), radius=0.1),
        size_range=(0.8, 1.2),
        orientation="random",
        velocity=(0, 0, -2),
        name="pour",
    )
    scene.add_sink(point=(0, 0, -0.4), name="drain")
    scene.add_measuring_plane(point=(0, 0, 0.4), normal=(0, 0, -1), name="in")
    scene.add_measuring_plane(point=(0, 0, -0.1), normal=(0, 0, -1), name="off")
    return scene.build()


def main() -> None:
    from tumble.view.picture import render
    from tumble.view.plot import plot_reports

    sim = tb.Simulation(build(), options=tb.StepOptions(**STEP), solver=tb.SolverAPGD(tolerance=1e-3))
    run = sim.run(until=UNTIL)
    print(run.summary())
    for name in ("in", "off"):
        print(f"{name}: {run.flow(name).mean_rate(0.75 * UNTIL):.3g} kg/s over the last quarter")
    clusters = sim.clusters(gap=1e-3)
    print(f"heap: {clusters.size[0]} of {clusters.size.sum()} bricks hang together")
    render(sim.model, sim.positions(), sim.orientations(), present=sim.present(), path="pour.png")
    plot_reports(run.reports, "pour-plot.png", title="bricks poured onto a table")


if __name__ == "__main__":
    main()
