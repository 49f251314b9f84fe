"""Rest and the onset of motion: stacks, mass ratios, slopes. Nothing puts a body to sleep."""

import numpy as np
import pytest

import tumble as tb
from tumble.scene import rotation


def stack(masses, dt):
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    for level, mass in enumerate(masses):
        scene.add_body(tb.Box((1, 1, 1)), mass=mass, position=(0, 0, 0.5 + level))
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt))


@pytest.mark.parametrize("dt", [0.0025, 0.01])
@pytest.mark.parametrize("ratio, allowed", [(1e3, 1e-5), (1e5, 1e-4)])
def test_heavy_on_light(dt, ratio, allowed):
    """A heavy cube on a light one, with the default solver: no sinking after 5 s."""
    sim = stack([1.0, ratio], dt)
    result = sim.run(until=5.0)
    assert result.reports["largest_overlap"].max() < allowed
    z = sim.positions()[1:, 2]
    np.testing.assert_allclose(z, [0.5, 1.5], atol=allowed)
    assert result.unconverged == 0


def test_a_stack_of_twenty_cubes_stands():
    sim = stack([1.0] * 20, 0.01)
    sim.run(until=10.0)
    p = sim.positions()[1:]
    np.testing.assert_allclose(p[:, 2], 0.5 + np.arange(20), atol=1e-5)
    np.testing.assert_allclose(p[:, :2], 0.0, atol=1e-5)


def on_slope(degrees, friction, dt=0.01, shape=None):
    """A cube at rest on a slope that falls towards +x."""
    angle = np.deg2rad(degrees)
    q = rotation.from_axis_angle((0, 1, 0), angle)
    up = rotation.rotate(q, np.array([0.0, 0.0, 1.0]))
    scene = tb.SceneBuilder()
    wood = scene.add_material(tb.Material(friction=friction))
    scene.add_static(tb.HalfSpace(tuple(up)), material=wood)
    scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=0.5 * up, orientation=q, material=wood)
    down = rotation.rotate(q, np.array([1.0, 0.0, 0.0]))
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt), solver=tb.SolverAPGD(tolerance=1e-11)), down


@pytest.mark.parametrize("friction", [0.2, 0.6])
def test_a_cube_slides_just_past_the_friction_angle_and_sticks_just_before(friction):
    critical = np.rad2deg(np.arctan(friction))
    sim, down = on_slope(critical + 0.1, friction)
    sim.run(until=2.0)
    angle = np.deg2rad(critical + 0.1)
    acceleration = 9.81 * (np.sin(angle) - friction * np.cos(angle))
    # The velocity of the scheme is exact for constant forces.
    assert down @ sim.velocities()[1] == pytest.approx(2.0 * acceleration, rel=1e-5)
    sim, down = on_slope(critical - 0.1, friction)
    sim.run(until=2.0)
    assert abs(down @ sim.velocities()[1]) < 1e-9
    assert np.linalg.norm(sim.velocities()[1]) < 1e-9


def test_deep_overlap_is_warned_about_and_recovers_gently():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Sphere(0.5), mass=1.0, position=(0, 0, 0.2), name="sunk")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    with pytest.warns(tb.TumbleWarning, match=r"1 contacts start overlapping .*deepest 0.3 m between .*'sunk'"):
        sim.step()
    result = sim.run(until=3.0)
    # Lifted by at most a hundredth of its size beyond the surface, then at rest on it.
    speed = np.sqrt(0.02 * 9.81 * 0.5)
    assert result.reports["largest_speed"].max() <= speed * 1.01
    assert sim.positions()[1, 2] == pytest.approx(0.5, abs=1e-4)


def test_locked_directions_stay_locked():
    """A planar box thrown askew: y, rx and rz never move, and the spin about y uses the inertia about y alone."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(
        tb.Box((0.4, 0.1, 0.2)),
        mass=1.0,
        position=(0, 0, 1),
        velocity=(1, 5, 0),
        orientation=rotation.from_axis_angle((0, 1, 0), 0.4),
        angular_velocity=(1, 2, 3),
        locked=("y", "rx", "rz"),
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))
    sim.run(until=1.5)
    assert sim.positions()[1, 1] == 0.0 and sim.velocities()[1, 1] == 0.0
    np.testing.assert_allclose(sim.angular_velocities()[1, [0, 2]], 0.0, atol=1e-12)
    assert sim.positions()[1, 2] == pytest.approx(0.1, abs=1e-3)  # it came to lie on its flat side


def test_a_compound_body_falls_like_its_centre_and_shows_the_users_frame():
    """Two unequal balls on one body: the frame the user gave is not the centre of mass."""
    scene = tb.SceneBuilder()
    scene.add_body(
        [tb.Placed(tb.Sphere(0.1), (0, 0, 0)), tb.Placed(tb.Sphere(0.2), (0.5, 0.1, 0))],
        density=1000.0,
        position=(1, 2, 3),
        orientation=rotation.from_axis_angle((0, 0, 1), 0.5),
        angular_velocity=(0, 0, 2.0),
        velocity=(0.3, 0, 0),
    )
    model = scene.build()
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3))
    np.testing.assert_allclose(sim.positions()[0], (1, 2, 3), atol=1e-14)
    center = sim.state.position[0].copy()
    weights = np.array([0.1**3, 0.2**3])
    local = weights @ np.array([[0, 0, 0], [0.5, 0.1, 0]]) / weights.sum()
    turned = rotation.rotate(rotation.from_axis_angle((0, 0, 1), 0.5), local)
    np.testing.assert_allclose(center, np.array([1.0, 2.0, 3.0]) + turned)
    sim.run(until=1.0)
    # Symplectic Euler falls h g t / 2 too far.
    expected = center + np.array([0.3, 0, -0.5 * 9.81 * (1.0 + 1e-3)])
    np.testing.assert_allclose(sim.state.position[0], expected, atol=1e-9)
    np.testing.assert_allclose(sim.angular_velocities()[0], (0, 0, 2.0), atol=1e-9)  # z is a principal axis
    turned = rotation.rotate(rotation.from_axis_angle((0, 0, 1), 2.5), local)
    np.testing.assert_allclose(sim.positions()[0], expected - turned, atol=1e-9)


def test_contact_forces_carry_the_weight():
    sim = stack([2.0, 3.0], 0.01)
    sim.run(until=1.0)
    forces = sim.contact_forces()
    np.testing.assert_allclose(forces.on(1, by=0), (0, 0, 5 * 9.81), atol=1e-3)
    np.testing.assert_allclose(forces.on(1, by=2), (0, 0, -3 * 9.81), atol=1e-3)
    total, torque = forces.per_body()
    np.testing.assert_allclose(total[1:, 2], [2 * 9.81, 3 * 9.81], atol=1e-3)
    np.testing.assert_allclose(torque[1:], 0.0, atol=1e-2)
    pairs, pair_force = forces.per_pair()
    assert pairs.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_allclose(pair_force[:, 2], [5 * 9.81, 3 * 9.81], atol=1e-3)


def test_a_shaken_table_follows_its_motion_exactly():
    scene = tb.SceneBuilder()
    motion = tb.Oscillation(amplitude=(0.05, 0, 0.02), period=0.8, start=0.1)
    scene.add_kinematic(tb.Box((1, 1, 0.1)), motion=motion, name="table")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    for _ in range(1000):
        sim.step()
        np.testing.assert_allclose(sim.positions()[0], motion(sim.time)[0], atol=1e-12)


@pytest.mark.parametrize("amplitude, sticks", [(0.07, True), (0.09, False)])
def test_a_box_rides_on_a_shaken_table_up_to_mu_g(amplitude, sticks):
    """Largest acceleration A (2 pi / T)^2 with T = 0.8 s: 4.3 and 5.6 m/s^2, against mu g = 4.9 m/s^2."""

    def swing(time):
        return np.array([amplitude * (1.0 - np.cos(2 * np.pi * time / 0.8)), 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])

    scene = tb.SceneBuilder()
    scene.add_kinematic(tb.Box((2, 2, 0.1)), motion=swing, name="table")
    scene.add_body(tb.Box((0.1, 0.1, 0.1)), mass=1.0, position=(0, 0, 0.1), name="box")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(tolerance=1e-9))
    sim.run(until=1.0)
    slip = np.abs((sim.positions()[1] - sim.positions()[0])[0])
    assert (slip < 1e-7) if sticks else (slip > 1e-3)


def test_force_callback_gets_and_gives_whole_arrays():
    """A user's harmonic spring to the origin: the period of symplectic Euler is 2 pi sqrt(m/k) + O(h^2)."""

    def spring(time, position, orientation, velocity, angular_velocity):
        assert position.shape == (2, 3) and orientation.shape == (2, 4)
        return -100.0 * position, np.zeros_like(position)

    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_spheres(0.01, mass=[1.0, 4.0], position=[(1, 0, 0), (0, 1, 0)])
    scene.add_force(spring)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    sim.run(until=2 * np.pi / 10)
    np.testing.assert_allclose(sim.positions()[0], (1, 0, 0), atol=0.01)
    np.testing.assert_allclose(sim.positions()[1], (0, -1, 0), atol=0.01)
