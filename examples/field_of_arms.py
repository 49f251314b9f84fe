"""Sixty-four robot arms among stones, no two alike. Run it with `tumble run examples/field_of_arms.py`."""

import numpy as np

import tumble as tb

UNTIL = 2.0  # [s]
STEP = {"dt": 2.5e-3}


def arm() -> tb.SceneBuilder:
    """A part: a mast on the ground, two links, and a motor at each joint."""
    part = tb.SceneBuilder()
    part.add_body(tb.Capsule(0.04, 0.5), density=1000.0, position=(0, 0, 0.35), name="mast")
    part.add_body(tb.Box((0.4, 0.06, 0.06)), density=1000.0, position=(0.2, 0, 0.6), name="beam")
    part.add_body(tb.Capsule(0.03, 0.25), density=1000.0, position=(0.4, 0, 0.42), name="whisk")
    part.add_joint("revolute", None, "mast", anchor=(0, 0, 0.1), axis=(0, 0, 1), name="waist")
    part.add_joint("fixed", "mast", "beam", anchor=(0, 0, 0.6))
    part.add_joint("revolute", "beam", "whisk", anchor=(0.4, 0, 0.6), axis=(1, 0, 0), name="wrist")
    part.add_motor("waist", "speed", target=2.0, maximum=20.0)
    part.add_motor("wrist", "position", target=lambda t: 0.8 * np.sin(6 * t), stiffness=50.0, damping=2.0)
    return part


def build() -> tb.Model:
    """The arms stand on a grid, each turned another way; the stones lie between them."""
    rng = np.random.default_rng(0)
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    angle = rng.uniform(0, 2 * np.pi, 64)
    turns = np.stack([np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)], axis=1)
    scene.replicate(arm(), position=tb.grid_points((8, 8, 1), 1.2), orientation=turns, name="arm")
    places = tb.grid_points((15, 15, 1), 0.6, origin=(0.3, 0.3, 0.14))
    stones = tb.ConvexHull.many(0.03 * rng.normal(size=(len(places), 14, 3)))
    scene.add_bodies(stones, density=2600.0, position=places)
    return scene.build()
