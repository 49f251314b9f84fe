"""A robot arm sweeps balls off a table: three joints, limits, and motors with a largest torque."""

import tumble as tb

UNTIL, STEP = 2.0, {"dt": 2e-3}


def build() -> tb.Model:
    """The same scene as arm.toml, to the last bit."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.Box((2, 2, 0.1)), position=(0, 0, -0.05), name="table")
    scene.add_body(tb.Cylinder(0.06, 0.4), density=2000, position=(0, 0, 0.25), name="mast")
    scene.add_body(tb.Box((0.5, 0.08, 0.08)), density=1000, position=(0.25, 0, 0.5), name="upper")
    scene.add_body(tb.Box((0.04, 0.3, 0.45)), density=500, position=(0.5, 0, 0.27), name="hand")
    balls = tb.grid_points((4, 4, 1), 0.12, origin=(0, 0.6, 0.05))
    scene.add_spheres(0.05, density=300, position=balls, name="balls")
    scene.add_joint("revolute", None, "mast", anchor=(0, 0, 0), axis=(0, 0, 1), limits=(-2.5, 2.5), name="waist")
    scene.add_joint("fixed", "mast", "upper", anchor=(0, 0, 0.5), name="shoulder")
    scene.add_joint("revolute", "upper", "hand", anchor=(0.5, 0, 0.5), axis=(0, 1, 0), name="wrist")
    scene.add_motor("waist", "speed", target=1.5, maximum=60)
    scene.add_motor("wrist", "position", target=0.0, stiffness=50, damping=5)
    return scene.build()
