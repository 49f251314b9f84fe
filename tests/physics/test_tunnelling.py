"""Fast bodies: nothing passes a thin wall, and a near miss is not deflected."""

import warnings

import numpy as np
import pytest

import tumble as tb

RADIUS = 0.01
WALL = tb.Box((0.002, 1.0, 1.0))


def shoot(height, speed=100.0, dt=1e-3, start=-0.55, steps=30, wall=WALL, mass=1.0, spin=(0, 0, 0)):
    """A small ball flies along x towards a thin wall that ends at z = 0.5."""
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_static(wall, name="wall")
    scene.add_body(
        tb.Sphere(RADIUS),
        mass=mass,
        position=(start, 0, height),
        velocity=(speed, 0, 0),
        angular_velocity=spin,
        name="ball",
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TumbleWarning)
        for _ in range(steps):
            sim.step()
    return sim


@pytest.mark.parametrize("start", np.linspace(-0.6, -0.5, 7))
@pytest.mark.parametrize("speed", [5.0, 100.0, 1000.0])
def test_a_fast_ball_stops_at_a_thin_wall(start, speed):
    sim = shoot(0.1, speed=speed, start=start, steps=max(30, int(700 / speed)))
    x = sim.positions()[1, 0]
    assert x <= -0.001 - RADIUS + 1e-9
    assert abs(sim.velocities()[1, 0]) < 1e-9 * speed  # inelastic


@pytest.mark.parametrize("start", np.linspace(-0.6, -0.5, 7))
def test_a_ball_that_misses_the_edge_by_a_radius_flies_on(start):
    # Its centre passes two radii above the edge: the surfaces miss by one radius.
    sim = shoot(0.5 + 2 * RADIUS, start=start)
    np.testing.assert_allclose(sim.velocities()[1], (100.0, 0, 0), atol=1e-9)
    assert sim.positions()[1, 2] == pytest.approx(0.5 + 2 * RADIUS, abs=1e-12)


@pytest.mark.parametrize("start", np.linspace(-0.6, -0.5, 5))
def test_a_ball_that_touches_the_edge_is_deflected(start):
    sim = shoot(0.5 + 0.5 * RADIUS, start=start)
    assert sim.velocities()[1, 0] < 99.0


def test_fast_balls_collide_with_each_other_and_keep_momentum():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_spheres(
        RADIUS, mass=[1.0, 2.0], position=[(-0.5, 0, 0), (0.5, 0.001, 0)], velocity=[(100, 0, 0), (-100, 0, 0)]
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TumbleWarning)
        for _ in range(12):
            sim.step()
    p, v = sim.positions(), sim.velocities()
    assert p[0, 0] < p[1, 0]  # they did not pass through each other
    np.testing.assert_allclose([1.0, 2.0] @ v, (-100.0, 0, 0), atol=1e-9)


@pytest.mark.parametrize("miss", [0.1, 0.3, 0.5, 1.0])
def test_fast_balls_that_miss_each_other_fly_on(miss):
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_spheres(
        RADIUS, mass=1.0, position=[(-0.5, 0, 0), (0.53, (2 + miss) * RADIUS, 0)], velocity=[(100, 0, 0), (-100, 0, 0)]
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TumbleWarning)
        for _ in range(12):
            sim.step()
    np.testing.assert_allclose(sim.velocities(), [(100, 0, 0), (-100, 0, 0)], atol=1e-9)


def test_a_fast_plate_does_not_pass_a_plate():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_static(tb.Box((1, 1, 0.002)))
    scene.add_body(tb.Box((0.2, 0.2, 0.002)), mass=1.0, position=(0, 0, 0.5), velocity=(3, 0, -120))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TumbleWarning)
        for _ in range(20):
            sim.step()
    assert sim.positions()[1, 2] >= 0.002 - 1e-9
