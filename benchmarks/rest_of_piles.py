"""Piles with the default solver, a silo of spheres and mixed shapes among them (docs/rest.md).

    python benchmarks/rest_of_piles.py {silo|mixed|bed|stack} COUNT SECONDS [COMPLIANCE]

Every half second: steps that missed and by how much, the bodies that are held, the fastest of them in g h, and how far
they went since the last line in sizes. At the end the force on walls and floor over the last 100 steps.

A body is held if no motion of its centre is compatible with the contacts that load it, as they are: one that sticks
resists in all directions, one that slides along its normal alone. What rolls away together with others counts as held.
COMPLIANCE [m/N] is that of the material, a contact of two bodies has twice as much; without it contacts are rigid.
"""

from __future__ import annotations

import sys

import numpy as np

import tumble as tb
from tumble.enums import BodyKind
from tumble.experiments.rest import Settings, _bed, _stack

G, DT, R = 9.81, 2e-3, 0.02
NEARLY = 0.05
"""Motions that contacts resist by less than this part of what they resist most count as free."""
SHAPES = (
    tb.Box((1.6 * R, 1.3 * R, 1.1 * R)),
    tb.Sphere(0.8 * R),
    tb.Capsule(0.5 * R, 0.9 * R),
    tb.Cylinder(0.7 * R, 1.2 * R),
    tb.Ellipsoid((0.9 * R, 0.7 * R, 0.6 * R)),
    tb.Box((1.3 * R,) * 3),
    tb.Cone(0.9 * R, 1.4 * R),
)


def pile(kind: str, count: int, compliance: float = 0.0) -> tb.Model:
    """The scene."""
    if kind in ("bed", "stack"):
        return (_bed if kind == "bed" else _stack)(Settings(compliance=compliance), count)
    scene, rng = tb.SceneBuilder(), np.random.default_rng(1)
    material = scene.add_material(tb.Material(compliance=compliance))
    n = 4 if kind == "silo" else max(3, round((count / 1.5) ** (1 / 3)))
    layers = -(-count // n**2)
    wide, apart, high = (2.3, 2.15, 2.5) if kind == "silo" else (2.6, 2.5, 6.0)
    scene.add_static(tb.open_box(inner=(wide * R * n, wide * R * n, high * R * layers)), material=material)
    lowest = (0, 0, (1.1 if kind == "silo" else 1.5) * R)
    places = tb.grid_points((n, n, layers), apart * R, origin=lowest, jitter=0.05 * R, seed=1)[:count]
    if kind == "silo":
        scene.add_spheres(R, density=2500.0, position=places, material=material)
    else:
        for k, place in enumerate(places):
            q = rng.normal(size=4)
            scene.add_body(
                SHAPES[k % 7], density=2500.0, position=place, orientation=q / np.linalg.norm(q), material=material
            )
    return scene.build()


def held(sim: tb.Simulation, moves: np.ndarray, light: float) -> np.ndarray:
    """(n,) Which bodies their own contacts hold; light: a force that is none [N]."""
    c, problem, n = sim.last.contacts, sim.last.problem, sim.last.contacts.count
    arrays, g = problem.operator.contacts, sim.last.impulse[:3, :n]
    bears = np.linalg.norm(g, axis=0) > light * sim.last.dt
    slides = np.hypot(g[1], g[2]) >= (1.0 - 1e-3) * problem.sliding_friction[:n] * g[0]
    rows: dict[int, list[np.ndarray]] = {}
    for k in np.flatnonzero(bears):
        for side, body in enumerate((c.body_a[k], c.body_b[k])):
            for d in range(1 if slides[k] else 3):
                e, arm = arrays.frame[3 * d : 3 * d + 3, k], arrays.arms[3 * side : 3 * side + 3, k]
                rows.setdefault(int(body), []).append(np.r_[e, np.cross(arm, e) / R])
    out = np.zeros(len(moves), bool)
    for body, resisted in rows.items():
        _, size, motions = np.linalg.svd(np.array(resisted))
        free = motions[int(np.sum(size > NEARLY * size[0])) :]
        out[body] = moves[body] and (len(free) == 0 or np.abs(free[:, :3]).max() < NEARLY)
    return out


def main() -> None:
    """Run and print."""
    kind, count, steps = sys.argv[1], int(sys.argv[2]), round(float(sys.argv[3]) / DT)
    model = pile(kind, count, float(sys.argv[4]) if len(sys.argv) > 4 else 0.0)
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
            found, stays = sim.contact_forces(), held(sim, moves, 1e-3 * light)
            speeds.append(np.linalg.norm(sim.velocities()[stays], axis=1) / (G * DT))
            lift = found.force[~moves[found.body_a]].sum(axis=0) - found.force[~moves[found.body_b]].sum(axis=0)
            forces.append(abs(lift[2]) / weight)
        if k % 250 == 0 or k == steps:
            gone = np.linalg.norm(sim.positions() - before, axis=1)[stays].max(initial=0.0) / size
            fast, before = np.concatenate(speeds), sim.positions()
            print(
                f"t = {k * DT:.2f} s: {np.mean(iterations):.0f} iterations, {len(missed)} of {len(iterations)} steps "
                f"missed by {np.median(missed or [0]):.1e} (at most {max(missed, default=0):.1e}) m; {stays.sum()} of "
                f"{moves.sum()} held, {np.median(fast):.1e} and at most {fast.max():.1e} g h, gone {gone:.1e}",
                flush=True,
            )
            missed, iterations, speeds = [], [], []
    print(f"force on the ground less the weight, mean of the last 100 steps: {np.mean(forces[-100:]) - 1:.1e}")


if __name__ == "__main__":
    main()
