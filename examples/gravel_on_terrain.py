"""Gravel of six kinds rolls down a dune into a bowl. Run it with `tumble run examples/gravel_on_terrain.py`."""

import numpy as np

import tumble as tb

UNTIL = 3.0  # [s]
STEP = {"dt": 2.5e-3}


def build() -> tb.Model:
    """A height field, and bodies of every convex shape above its slope."""
    rng = np.random.default_rng(0)
    x, y = np.meshgrid(np.linspace(-2, 2, 81), np.linspace(-2, 2, 81), indexing="ij")
    dune = 0.25 * (x**2 + y**2) / 4 + 0.4 * np.exp(-4 * ((x + 1.2) ** 2 + y**2))
    scene = tb.SceneBuilder()
    scene.add_static(tb.HeightField(dune, (4.0, 4.0)), name="dune")
    pebble = tb.ConvexHull(rng.normal(size=(18, 3)) * 0.04)
    kinds = [
        pebble,
        tb.Cylinder(0.05, 0.12),
        tb.Cone(0.06, 0.12),
        tb.Ellipsoid((0.08, 0.06, 0.04)),
        tb.Rounded(tb.Box((0.08, 0.06, 0.04)), 0.01),
        tb.Capsule(0.03, 0.08),
    ]
    points = tb.grid_points((6, 6, 4), 0.2, origin=(-0.9, 0, 0.9), jitter=0.01)
    for k, shape in enumerate(kinds):
        turn = rng.normal(size=(len(points[k :: len(kinds)]), 4))
        turn /= np.linalg.norm(turn, axis=1)[:, None]
        scene.add_copies(shape, density=2600.0, position=points[k :: len(kinds)], orientation=turn)
    return scene.build()
