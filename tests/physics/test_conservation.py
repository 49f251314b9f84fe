"""What must be kept: momentum, energy of free and of resting bodies, the energy balance."""

import numpy as np
import pytest

import tumble as tb


def cloud(count=40, seed=0, dt=2e-3, friction=0.5):
    """Spheres of different size flying into each other, without gravity."""
    rng = np.random.default_rng(seed)
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    rubber = scene.add_material(tb.Material(friction=friction))
    points = tb.random_points(count, 0.2, low=(-1.5,) * 3, high=(1.5,) * 3, seed=seed)
    radius = rng.uniform(0.05, 0.2, count)
    scene.add_spheres(
        radius,
        density=100.0,
        material=rubber,
        position=points,
        velocity=-2.0 * points,
        angular_velocity=rng.normal(size=(count, 3)) * 5,
    )
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt), solver=tb.SolverAPGD(tolerance=1e-8))


def momenta(sim):
    m, s = sim.model, sim.state
    linear = m.body_mass @ s.velocity
    angular = np.sum(np.cross(s.position, m.body_mass[:, None] * s.velocity), axis=0)
    return linear, angular + np.sum(m.body_inertia * sim.angular_velocities(), axis=0)


@pytest.mark.parametrize("dt", [2e-3, 2e-2])
def test_momentum_of_an_isolated_cloud(dt):
    sim = cloud(dt=dt)
    linear, angular = momenta(sim)
    scale = np.sum(sim.model.body_mass * np.linalg.norm(sim.state.velocity, axis=1))
    hits = 0
    for _ in range(int(1.0 / dt)):
        hits += sim.step().contacts
    assert hits > 100
    now_linear, now_angular = momenta(sim)
    np.testing.assert_allclose(now_linear, linear, atol=1e-10 * scale)
    np.testing.assert_allclose(now_angular, angular, atol=1e-10 * scale)


def test_torque_free_tops_keep_their_energy():
    """Asymmetric tops at one turn a second near each of their axes: 100 turns at h = 1e-3."""
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    for axis in range(3):
        spin = np.full(3, 0.01)
        spin[axis] = 2 * np.pi
        scene.add_body(tb.Box((0.3, 0.2, 0.1)), mass=2.0, angular_velocity=spin, position=(axis, 0, 0))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    inertia = sim.model.body_inertia
    energy, momentum = np.sum(inertia * sim.state.spin**2, axis=1), np.linalg.norm(inertia * sim.state.spin, axis=1)
    worst, turned_over = 0.0, False
    for _ in range(100_000):
        sim.step()
        worst = max(worst, np.abs(np.sum(inertia * sim.state.spin**2, axis=1) / energy - 1.0).max())
        turned_over |= sim.state.spin[1, 1] < 0.0
    assert worst < 1e-9
    np.testing.assert_allclose(np.linalg.norm(inertia * sim.state.spin, axis=1), momentum, rtol=1e-9)
    assert turned_over  # the middle axis is unstable


def small_pile(count=40, dt=5e-3):
    scene = tb.SceneBuilder()
    stone = scene.add_material(tb.Material(friction=0.5))
    scene.add_static(tb.open_box(inner=(1.0, 1.0, 3.0)), material=stone)
    points = tb.grid_points((4, 4, 4), 0.24, origin=(0, 0, 0.11), jitter=0.01)[:count]
    scene.add_spheres(0.1, density=1000.0, material=stone, position=points)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt), solver=tb.SolverAPGD(tolerance=1e-8))


def test_a_settled_pile_gains_no_energy():
    """Over 10000 steps the energy never rises above its lowest value so far by more than 1e-6 sum(m g r)."""
    sim = small_pile()
    sim.run(until=4.0)
    allowed = 1e-6 * np.sum(sim.model.body_mass) * 9.81 * 0.1
    lowest, worst = np.inf, 0.0
    for _ in range(10_000):
        energy = sim.step().total_energy
        worst = max(worst, energy - lowest)
        lowest = min(lowest, energy)
    assert worst <= allowed, (worst, allowed)


def balance_error(dt, law):
    """Change of energy minus all works over a run, and what the scheme should leave.

    Positions move with the new velocity, gravity works with the mean one: a step leaves (h/2) m g (v_new - v_old),
    which telescopes to (h/2) m g times the change of vertical velocity over the run.
    """
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Sphere(0.2), mass=1.0, position=(0, 0, 1.0), velocity=(1, 0, 3.0), force=(0.5, 0, 0), name="ball")
    scene.add_body(
        tb.Box((0.3, 0.2, 0.1)),
        mass=2.0,
        position=(1.5, 0, 0.6),
        velocity=(0, 1, 0),
        angular_velocity=(1, 2, 3),
        name="box",
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt, law=law), solver=tb.SolverAPGD(tolerance=1e-10))
    start = 9.81 * (1.0 * 1.0 + 2.0 * 0.6) + 5.0 + 1.0 + 0.5 * np.sum(sim.model.body_inertia * sim.state.spin**2)
    upward = sim.model.body_mass @ sim.velocities()[:, 2]
    r = sim.run(until=1.0).reports
    works = sum(r[w].sum() for w in ("work_normal", "work_friction", "work_external", "work_driven"))
    change = r["kinetic_energy"][-1] + r["potential_energy"][-1] - start
    assert r["energy_defect"].sum() == pytest.approx(change - works, abs=1e-9)
    assert r["work_friction"].sum() < 0.0 and r["work_normal"].sum() < 0.0
    assert r["work_external"].sum() == pytest.approx(0.5 * (sim.positions()[1, 0]), rel=2e-3)
    expected = 0.5 * dt * 9.81 * (sim.model.body_mass @ sim.velocities()[:, 2] - upward)
    return change - works, expected


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
@pytest.mark.parametrize("dt", [4e-3, 1e-3])
def test_energy_balance_closes_to_first_order(law, dt):
    defect, expected = balance_error(dt, law)
    assert abs(expected) > 1.0 * dt
    assert defect == pytest.approx(expected, abs=1e-9)


def test_a_kinematic_pusher_does_the_work_that_friction_eats():
    """A wall pushes a cube over the floor at constant speed: the work put in is mu m g d."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), material=scene.add_material(tb.Material(friction=0.4, name="floor")))
    smooth = scene.add_material(tb.Material(friction=0.0))
    scene.add_body(tb.Box((0.2, 0.2, 0.2)), mass=3.0, position=(0.1, 0, 0.1), velocity=(0.5, 0, 0), material="floor")
    scene.add_kinematic(tb.Box((0.1, 1, 1)), position=(-0.05, 0, 0.6), velocity=(0.5, 0, 0), material=smooth)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(tolerance=1e-10))
    r = sim.run(until=1.0).reports
    expected = 0.4 * 3.0 * 9.81 * 0.5
    assert r["work_driven"].sum() == pytest.approx(expected, rel=1e-6)
    assert r["work_friction"].sum() == pytest.approx(-expected, rel=1e-6)
    assert sim.positions()[1, 0] == pytest.approx(0.6, abs=1e-9)


def locked_top(locked, dt):
    """Kinetic energies and angular velocities of a box in a general position that turns without torque."""
    q = np.array([0.8, 0.3, -0.4, 0.2])
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(
        tb.Box((0.6, 0.2, 0.1)), mass=1.0, orientation=q / np.linalg.norm(q), angular_velocity=(3, 5, 2), locked=locked
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt))
    start = 0.5 * np.sum(sim.model.body_inertia * sim.state.spin**2)
    result = sim.run(until=1.0)
    return start, result.reports, sim.angular_velocities()[0]


def test_a_body_on_one_free_axis_turns_evenly():
    start, reports, w = locked_top(("rx", "rz"), 1e-3)
    np.testing.assert_allclose(w, (0, 5, 0), atol=1e-11)
    np.testing.assert_allclose(reports["kinetic_energy"], start, rtol=1e-11)


def test_a_body_with_one_locked_axis_keeps_its_energy_to_first_order():
    errors = []
    for dt in (2e-3, 1e-3):
        start, reports, w = locked_top(("rx",), dt)
        assert w[0] == pytest.approx(0.0, abs=1e-12)
        errors.append(np.abs(reports["kinetic_energy"] / start - 1.0).max())
        assert reports["energy_defect"].sum() == pytest.approx(reports["kinetic_energy"][-1] - start, abs=1e-12)
    assert errors[0] < 0.05 and errors[1] < 0.7 * errors[0]


def test_a_step_of_many_turns_makes_no_energy():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(tb.Box((0.3, 0.2, 0.1)), mass=1.0, angular_velocity=(10.0, 5000.0, 20.0))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2))
    energy = 0.5 * np.sum(sim.model.body_inertia * sim.state.spin**2)
    for _ in range(20):
        assert sim.step().kinetic_energy == pytest.approx(energy, rel=1e-9)
