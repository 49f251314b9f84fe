"""Parcels fall on a belt, ride along and drop off its end; a plane counts them.

tumble run conveyor.py --set speed=2
"""

import tumble as tb

UNTIL, STEP = 5.0, {"dt": 5e-3}


def build(speed: float = 1.0) -> tb.Model:
    """The same scene as conveyor.toml, to the last bit."""
    scene = tb.SceneBuilder()
    rubber = scene.add_material(tb.Material(name="rubber", friction=0.6))
    belt = tb.Box((4, 0.8, 0.1))
    scene.add_static(belt, position=(0, 0, -0.05), material=rubber, surface_velocity=(speed, 0, 0), name="belt")
    scene.add_emitter(
        tb.Box((0.3, 0.2, 0.15)),
        density=200,
        count=12,
        rate=4.0,
        region=tb.BoxRegion(low=(-1.7, -0.2, 0.3), high=(-1.5, 0.2, 0.3)),
        material=rubber,
        name="parcels",
    )
    scene.add_measuring_plane(point=(2, 0, 0), normal=(1, 0, 0), name="end")
    scene.add_sink(point=(0, 0, -2))
    return scene.build()


def measure(run: tb.Trajectory) -> dict[str, float]:
    """For `tumble sweep conveyor.py --set speed=0.5:2:4`: how many arrived."""
    return {"arrived": float(run.reports["end.bodies_forward"][-1])}
