"""Forces from the loop, and bodies added between runs."""

import numpy as np
import pytest

import tumble as tb
from tumble.errors import OptionsError, SceneError


def test_a_push_acts_in_one_step_and_its_work_is_booked():
    """v = F h k / m after k steps; the torque turns; then nothing more; the energy balance knows of it."""
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(tb.Sphere(0.5), mass=2.0, name="ball", force=(0, 0, 1))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=0.01))
    for _ in range(10):
        sim.apply_force("ball", (1, 0, 0))
        sim.apply_force(0, (2, 0, 0), torque=(0, 0, 0.4))
        report = sim.step()
        assert abs(report.energy_defect) < 1e-15
    np.testing.assert_allclose(sim.velocities()[0], (0.15, 0, 0.05), rtol=1e-12)
    np.testing.assert_allclose(sim.angular_velocities()[0], (0, 0, 0.04 / (0.4 * 2 * 0.25)), rtol=1e-12)
    for _ in range(10):
        sim.step()
    np.testing.assert_allclose(sim.velocities()[0], (0.15, 0, 0.10), rtol=1e-12)


def test_a_push_at_a_point_turns_about_the_centre():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    box = scene.add_body(tb.Box((1, 1, 1)), mass=6.0, position=(3, 0, 0))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=0.01))
    sim.apply_force(box, (0, 5, 0), point=(3.5, 0, 0))
    sim.step()
    np.testing.assert_allclose(sim.angular_velocities()[box], (0, 0, 0.5 * 5 * 0.01 / 1.0), rtol=1e-12)


def test_pushes_are_those_of_a_force_callback():
    def scene():
        made = tb.SceneBuilder()
        made.add_static(tb.HalfSpace())
        made.add_boxes((0.2, 0.2, 0.2), position=[(0, 0, 0.1), (1, 0, 0.1)], density=500, name="box")
        return made

    def wind(time, position, orientation, velocity, spin):
        force = np.zeros((3, 3))
        force[1:, 0] = 30 * np.sin(20 * time)
        return force, np.zeros((3, 3))

    blown = scene()
    blown.add_force(wind)
    one = tb.Simulation(blown.build(), options=tb.StepOptions(dt=2e-3))
    two = tb.Simulation(scene().build(), options=tb.StepOptions(dt=2e-3))
    for _ in range(100):
        two.apply_force("box", (30 * np.sin(20 * two.time), 0, 0))
        one.step()
        two.step()
    assert one.state.sha256() == two.state.sha256()


def test_bodies_added_between_runs():
    """What was there goes on as if nothing had happened, until they touch; contacts stay warm."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_boxes((0.2, 0.2, 0.2), position=[(0, 0, 0.1), (0, 0, 0.3)], density=500, name="stack")
    hinge = scene.add_body(tb.Box((0.5, 0.1, 0.1)), density=500, position=(3, 0, 1), name="bar")
    scene.add_joint("revolute", None, "bar", anchor=(3.25, 0, 1), axis=(0, 1, 0), name="hinge")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))
    sim.run(until=0.1, progress=False)
    twin = sim.copy()
    scene.add_body(tb.Sphere(0.1), density=500, position=(0, 0, 2.0), name="late")
    more = sim.extended(scene.build())
    assert more.time == sim.time and len(more.positions()) == len(sim.positions()) + 1
    more.run(until=0.2, progress=False)
    twin.run(until=0.2, progress=False)
    old = [0, 1, 2, hinge, 5]
    np.testing.assert_allclose(more.positions()[old], twin.positions(), atol=1e-12)
    assert more.joint_values()["hinge"] == pytest.approx(twin.joint_values()["hinge"], abs=1e-12)
    assert more.positions()[more.model.bodies("late")[0], 2] == pytest.approx(2.0 - 0.5 * 9.81 * 0.1 * 0.102, abs=1e-9)
    more.run(until=1.2, progress=False)
    assert 0.45 < more.positions()[more.model.bodies("late")[0], 2] < 0.52


def test_mistakes():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), name="floor")
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 1), name="ball")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    for wrong, said in (
        (lambda: sim.apply_force("bal", (1, 0, 0)), "Did you mean 'ball'"),
        (lambda: sim.apply_force("floor", (1, 0, 0)), "must be a dynamic body"),
        (lambda: sim.apply_force(7, (1, 0, 0)), "must be <= 1"),
        (lambda: sim.apply_force("ball", (1, 0)), "shape"),
        (lambda: sim.extended(scene), "takes a model"),
    ):
        with pytest.raises((OptionsError, SceneError), match=said):
            wrong()
    other = tb.SceneBuilder()
    other.add_static(tb.HalfSpace())
    other.add_body(tb.Sphere(0.1), mass=2.0, position=(0, 0, 1))
    with pytest.raises(OptionsError, match="body_mass of 'ball' must stay"):
        sim.extended(other.build())
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 2), name="second")
    scene.add_joint("spherical", "ball", "second", anchor=(0, 0, 1.5))
    with pytest.raises(OptionsError, match="same joints"):
        sim.extended(scene.build())
