"""Twenty dominoes; a ball topples the first."""

import tumble as tb

UNTIL, STEP = 2.0, {"dt": 1e-3}


def build() -> tb.Model:
    """The same scene as dominoes.toml, to the last bit."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), name="table")
    # A TOML file adds single bodies first, then boxes.
    ball = dict(density=7800, position=(-0.1, 0, 0.085), velocity=(1.0, 0, 0.3))
    scene.add_body(tb.Sphere(0.02), **ball, name="ball")
    places = tb.grid_points((20, 1, 1), (0.04, 1, 1), origin=(0.4, 0, 0.05))
    scene.add_boxes((0.01, 0.05, 0.1), density=600, position=places, name="domino")
    return scene.build()
