"""Piles with the default solver, a silo of spheres and mixed shapes among them (docs/rest.md).

    python benchmarks/rest_of_piles.py {silo|mixed|bed|stack} COUNT SECONDS

Every half second: steps that missed and by how much, the bodies with three loaded contacts, the fastest of them in g h,
and how far they went since the last line in sizes. At the end the force on walls and floor over the last 100 steps.
"""

from __future__ import annotations

import sys

import numpy as np

import tumble as tb
from tumble.enums import BodyKind
from tumble.experiments.rest import Settings, _bed, _stack

G, DT, R = 9.81, 2e-3, 0.02
SHAPES = (
    tb.Box((1.6 * R, 1.3 * R, 1.1 * R)),
    tb.Sphere(0.8 * R),
    tb.Capsule(0.5 * R, 0.9 * R),
    tb.Cylinder(0.7 * R, 1.2 * R),
    tb.Ellipsoid((0.9 * R, 0.7 * R, 0.6 * R)),
    tb.Box((1.3 * R,) * 3),
    tb.Cone(0.9 * R, 1.4 * R),
)


def pile(kind: str, count: int) -> tb.Model:
    """The scene."""
    if kind in ("bed", "stack"):
        return (_bed if kind == "bed" else _stack)(Settings(), count)
    scene, rng = tb.SceneBuilder(), np.random.default_rng(1)
    n = 4 if kind == "silo" else max(3, round((count / 1.5) ** (1 / 3)))
    layers = -(-count // n**2)
    wide, apart, high = (2.3, 2.15, 2.5) if kind == "silo" else (2.6, 2.5, 6.0)
    scene.add_static(tb.open_box(inner=(wide * R * n, wide * R * n, high * R * layers)))
    lowest = (0, 0, (1.1 if kind == "silo" else 1.5) * R)
    places = tb.grid_points((n, n, layers), apart * R, origin=lowest, jitter=0.05 * R, seed=1)[:count]
    if kind == "silo":
        scene.add_spheres(R, density=2500.0, position=places)
    else:
        for k, place in enumerate(places):
            q = rng.normal(size=4)
            scene.add_body(SHAPES[k % 7], density=2500.0, position=place, orientation=q / np.linalg.norm(q))
    return scene.build()


def main() -> None:
    """Run and print."""
    kind, count, steps = sys.argv[1], int(sys.argv[2]), round(float(sys.argv[3]) / DT)
    model = pile(kind, count)
    moves, size = model.body_kind == BodyKind.DYNAMIC, 0.05 if kind == "stack" else R
    weight, light = G * model.body_mass[moves].sum(), G * model.body_mass[moves].min()
    sim = tb.Simulation(model, options=tb.StepOptions(dt=DT))
    before, missed, iterations, speeds, forces = sim.positions(), [], [], [], []
    for k in range(1, steps + 1):
        report = sim.step()
        iterations.append(report.iterations)
        if not report.converged:
            missed.append(report.missed)
        if k % 250 > 240 or k % 250 == 0 or k > steps - 100:
            found = sim.contact_forces()
            loaded = np.linalg.norm(found.force, axis=1) > 1e-3 * light
            bodies = np.concatenate([found.body_a[loaded], found.body_b[loaded]])
            held = moves & (np.bincount(bodies, minlength=model.body_count) >= 3)
            speeds.append(np.linalg.norm(sim.velocities()[held], axis=1) / (G * DT))
            lift = found.force[~moves[found.body_a]].sum(axis=0) - found.force[~moves[found.body_b]].sum(axis=0)
            forces.append(abs(lift[2]) / weight)
        if k % 250 == 0 or k == steps:
            gone = np.linalg.norm(sim.positions() - before, axis=1)[held].max() / size
            fast, before = np.concatenate(speeds), sim.positions()
            print(
                f"t = {k * DT:.2f} s: {np.mean(iterations):.0f} iterations, {len(missed)} of {len(iterations)} steps "
                f"missed by {np.median(missed or [0]):.1e} (at most {max(missed, default=0):.1e}) m; {held.sum()} of "
                f"{moves.sum()} held, {np.median(fast):.1e} and at most {fast.max():.1e} g h, gone {gone:.1e}",
                flush=True,
            )
            missed, iterations, speeds = [], [], []
    print(f"force on the ground less the weight, mean of the last 100 steps: {np.mean(forces[-100:]) - 1:.1e}")


if __name__ == "__main__":
    main()
