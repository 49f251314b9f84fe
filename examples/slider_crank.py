"""A driven crank moves a piston that pushes a heap of balls. Run it with `tumble run examples/slider_crank.py`."""

import numpy as np

import tumble as tb

UNTIL = 4.0  # [s]
STEP = {"dt": 1e-3}
SAVE_EVERY = 20
CRANK, ROD = 0.15, 0.5  # [m]


def build() -> tb.Model:
    """The motor has at most 12 N m: watch `joint_effort` of "motor" in the trajectory when the balls jam."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(0.9, 0.3, 0.3), thickness=0.05), position=(0.85, 0, -0.1), name="tray")
    along = (np.cos(np.pi / 4), 0.0, np.sin(np.pi / 4), 0.0)  # z of a capsule along x
    parts = {
        "crank": (tb.Capsule(0.02, CRANK), (0.5 * CRANK, 0, 0)),
        "rod": (tb.Capsule(0.015, ROD), (CRANK + 0.5 * ROD, 0.05, 0)),
    }
    for name, (shape, place) in parts.items():
        scene.add_body(shape, density=7800.0, position=place, orientation=along, name=name, group=2, mask=0)
    end = CRANK + ROD
    scene.add_body(tb.Box((0.05, 0.26, 0.15)), density=2000.0, position=(end, 0, 0), name="piston")
    scene.add_joint("revolute", None, "crank", anchor=(0, 0, 0), axis=(0, 1, 0), name="main")
    scene.add_joint("revolute", "crank", "rod", anchor=(CRANK, 0, 0), axis=(0, 1, 0), name="pin")
    scene.add_joint("spherical", "rod", "piston", anchor=(end, 0, 0), name="wrist")
    scene.add_joint("prismatic", None, "piston", anchor=(end, 0, 0), axis=(1, 0, 0), name="guide")
    scene.add_motor("main", "speed", target=3.0, maximum=12.0, name="motor")
    balls = tb.grid_points((4, 4, 6), 0.055, origin=(0.82, 0, 0.0), jitter=0.002)
    scene.add_spheres(0.025, density=2500.0, position=balls, name="balls")
    return scene.build()
