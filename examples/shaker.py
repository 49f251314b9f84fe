"""Beads in a box that is shaken up and down: `tumble run shaker.py --set amplitude=0.02`."""

import tumble as tb

UNTIL, STEP = 1.0, {"dt": 1e-3}


def build(amplitude: float = 0.01, period: float = 0.08) -> tb.Model:
    """The same scene as shaker.toml, to the last bit."""
    scene = tb.SceneBuilder()
    glass = scene.add_material(tb.Material(name="glass", friction=0.2, restitution=0.8))
    shaking = tb.Oscillation(amplitude=(0, 0, amplitude), period=period)
    scene.add_kinematic(tb.open_box(inner=(0.3, 0.3, 0.3)), motion=shaking, material=glass, name="box")
    places = tb.grid_points((6, 6, 3), 0.04, origin=(0, 0, 0.03))
    scene.add_spheres(0.015, density=2500, position=places, material=glass, name="beads")
    return scene.build()
