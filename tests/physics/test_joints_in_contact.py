"""Joints, motors and contact in one problem."""

from __future__ import annotations

import numpy as np
import pytest

import tumble as tb
from tests.naive.mechanisms import G, simulate
from tumble.scene import rotation


@pytest.mark.parametrize("slope", [0.0, 0.2])
@pytest.mark.parametrize("mu", [0.3, 0.6])
def test_a_driven_cylinder_slips_beyond_the_critical_torque(slope, mu):
    """Rolling up a slope: it slips just when T > m g r (3/2 mu cos - 1/2 sin)."""
    mass, radius = 2.0, 0.1
    critical = mass * G * radius * (1.5 * mu * np.cos(slope) - 0.5 * np.sin(slope))

    def slip(torque):
        scene = tb.SceneBuilder(gravity=(-G * np.sin(slope), 0.0, -G * np.cos(slope)))
        scene.add_material(tb.Material(name="steel", friction=mu))
        scene.add_static(tb.HalfSpace(), material="steel")
        wheel = scene.add_body(
            tb.Cylinder(radius, 0.3),
            mass=mass,
            material="steel",
            position=(0, 0, radius),
            orientation=rotation.from_axis_angle(np.array([1.0, 0, 0]), np.pi / 2),
            torque=(0, torque, 0),
        )
        sim = simulate(scene, 1e-3)
        sim.run(until=0.5, progress=False)
        return sim.angular_velocities()[wheel][1] * radius - sim.velocities()[wheel][0]

    low, high = 0.5 * critical, 1.5 * critical
    for _ in range(8):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if abs(slip(middle)) > 1e-6 else (middle, high)
    assert 0.5 * (low + high) == pytest.approx(critical, rel=0.01)


def gripper(force_ratio, mu=0.5, h=2e-3):
    """Two fingers on slides press a box from both sides with force_ratio m g / (2 mu) each."""
    mass = 1.0
    force = force_ratio * mass * G / (2.0 * mu)
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(name="rubber", friction=mu))
    scene.add_body(tb.Box((0.1, 0.1, 0.1)), mass=mass, material="rubber", position=(0, 0, 1), name="box")
    for side, name in ((-1, "left"), (1, "right")):
        at = (0.06 * side, 0, 1)
        scene.add_body(tb.Box((0.02, 0.06, 0.06)), mass=0.2, material="rubber", position=at, name=name)
        scene.add_joint("prismatic", None, name, anchor=at, axis=(-side, 0, 0), name=f"slide {name}")
        scene.add_motor(f"slide {name}", "torque", target=force, name=f"press {name}")
    return simulate(scene, h)


def test_a_gripper_holds_just_above_the_closed_form_force():
    sim = gripper(1.01, h=5e-3)
    sim.step()
    height = sim.positions()[0][2]
    result = sim.run(until=10.0, progress=False)
    assert abs(sim.positions()[0][2] - height) < 1e-7
    assert result.unconverged == 0
    forces = sim.contact_forces()
    assert forces.on("box")[2] == pytest.approx(G, rel=1e-5)


def test_a_gripper_drops_just_below_it():
    sim = gripper(0.99)
    sim.run(until=0.5, progress=False)
    # The fingers carry 0.99 m g: the box falls with g / 100, to O(h).
    assert sim.velocities()[0][2] == pytest.approx(-0.01 * G * 0.5, rel=0.02)


def test_a_limit_stops_a_door_and_carries_it():
    scene = tb.SceneBuilder()
    scene.add_body(None, mass=2.0, inertia=(0.1, 0.1, 0.1), position=(1, 0, 0), name="arm")
    scene.add_joint("revolute", None, "arm", anchor=(0, 0, 0), axis=(0, 1, 0), limits=(-0.1, 0.5), name="hinge")
    sim = simulate(scene, 1e-3)
    sim.run(until=3.0, progress=False)
    r = sim.joint_reactions()["hinge"]
    assert r.value == pytest.approx(0.5, abs=1e-6)
    assert abs(r.speed) < 1e-6
    # The stop carries the moment of the weight about the hinge.
    assert r.effort == pytest.approx(-2.0 * G * np.cos(0.5), rel=1e-5)
    assert sim.unconverged == 0


def test_joint_friction_holds_up_to_its_torque_and_then_slides():
    weight = 2.0 * G  # torque about the hinge while the arm is level

    def arm(friction):
        scene = tb.SceneBuilder()
        scene.add_body(None, mass=2.0, inertia=(0.1, 0.1, 0.1), position=(1, 0, 0), name="arm")
        scene.add_joint("revolute", None, "arm", anchor=(0, 0, 0), axis=(0, 1, 0), friction=friction, name="hinge")
        return simulate(scene, 1e-3)

    held = arm(1.01 * weight)
    held.run(until=1.0, progress=False)
    assert abs(held.joint_values()["hinge"]) < 1e-9
    assert held.joint_reactions()["hinge"].effort == pytest.approx(-weight, rel=1e-6)
    sliding = arm(0.5 * weight)
    sliding.step()
    # (m l^2 + I) w' = m g l - friction
    assert sliding.joint_reactions()["hinge"].speed == pytest.approx(1e-3 * 0.5 * weight / 2.1, rel=1e-6)


def test_a_motor_reaches_its_speed_with_its_largest_torque():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(None, mass=1.0, inertia=(0.1, 0.1, 0.1), name="wheel")
    scene.add_joint("revolute", None, "wheel", anchor=(0, 0, 0), axis=(0, 0, 1), name="axle")
    scene.add_motor("axle", "speed", target=3.0, maximum=0.2, name="motor")
    sim = simulate(scene, 1e-3)
    sim.run(until=1.0, progress=False)
    assert sim.joint_reactions()["axle"].speed == pytest.approx(0.2 / 0.1 * 1.0, rel=1e-9)
    assert sim.joint_reactions()["motor"].effort == pytest.approx(0.2, rel=1e-9)
    sim.run(until=2.0, progress=False)
    r = sim.joint_reactions()["motor"]
    assert r.speed == pytest.approx(3.0, rel=1e-9)
    assert abs(r.effort) < 1e-6


def test_a_position_motor_with_a_stiffness_sags_by_the_torque_over_it():
    stiffness = 500.0
    scene = tb.SceneBuilder()
    scene.add_body(None, mass=2.0, inertia=(0.1, 0.1, 0.1), position=(1, 0, 0), name="arm")
    scene.add_joint("revolute", None, "arm", anchor=(0, 0, 0), axis=(0, 1, 0), name="hinge")
    scene.add_motor("hinge", "position", target=0.2, stiffness=stiffness, damping=40.0, maximum=100.0, name="servo")
    sim = simulate(scene, 1e-3)
    sim.run(until=4.0, progress=False)
    r = sim.joint_reactions()["servo"]
    assert r.effort == pytest.approx(-stiffness * (r.value - 0.2), rel=1e-5)
    assert r.effort == pytest.approx(-2.0 * G * np.cos(r.value), rel=1e-5)


def test_a_controller_drives_its_motors_once_a_step():
    calls = []

    def controller(time, value, speed):
        calls.append((time, value.copy(), speed.copy()))
        return 8.0 * (np.array([0.5, -0.3]) - value)

    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    for k in range(2):
        scene.add_body(None, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(k, 0, 0), name=f"wheel{k}")
        scene.add_joint("revolute", None, f"wheel{k}", anchor=(k, 0, 0), axis=(0, 0, 1), name=f"axle{k}")
        scene.add_motor(f"axle{k}", "speed", name=f"motor{k}")
    scene.add_controller(controller, ["motor0", "motor1"])
    sim = simulate(scene, 1e-3)
    calls.clear()
    sim.run(until=2.0, progress=False)
    assert len(calls) == 2000
    assert [sim.joint_values()[f"axle{k}"] for k in range(2)] == pytest.approx([0.5, -0.3], abs=1e-5)


def test_stiff_springs_do_not_blow_up_and_soft_ones_swing_with_their_period():
    def mass_on_spring(stiffness, damping, h):
        scene = tb.SceneBuilder(gravity=(0, 0, 0))
        scene.add_body(None, mass=2.0, inertia=(1, 1, 1), position=(1.1, 0, 0), name="mass")
        scene.add_spring(None, "mass", stiffness=stiffness, damping=damping, rest_length=1.0, name="spring")
        return simulate(scene, h)

    stiff = mass_on_spring(1e12, 0.0, 1e-2)
    stiff.run(until=1.0, progress=False)
    assert stiff.positions()[0][0] == pytest.approx(1.0, abs=1e-6)
    # x = 0.1 cos(w t): implicit Euler loses amplitude at first order in h; the error halves with h.
    errors = []
    for h in (1e-3, 5e-4):
        sim = mass_on_spring(50.0, 0.0, h)
        sim.run(until=1.0, progress=False)
        errors.append(sim.positions()[0][0] - 1.0 - 0.1 * np.cos(np.sqrt(50.0 / 2.0) * 1.0))
    assert 1.7 < errors[0] / errors[1] < 2.4


def test_a_bushing_gives_way_by_force_over_stiffness():
    scene = tb.SceneBuilder()
    scene.add_body(None, mass=2.0, inertia=(0.1, 0.1, 0.1), position=(0.2, 0, 0), name="arm")
    scene.add_bushing(
        None, "arm", anchor=(0, 0, 0), stiffness=(1e5, 1e5, 2e5, 4e3, 4e3, 4e3), damping=(200,) * 3 + (20,) * 3
    )
    sim = simulate(scene, 1e-3)
    sim.run(until=3.0, progress=False)
    turn = 2.0 * G * 0.2 / 4e3
    assert sim.positions()[0][2] == pytest.approx(-2.0 * G / 2e5 - 0.2 * turn, rel=1e-2)
    z = rotation.rotate(sim.orientations()[0], np.array([1.0, 0, 0]))
    assert np.arcsin(-z[2]) == pytest.approx(turn, rel=1e-2)


def test_a_jointed_pair_resting_on_the_ground_weighs_what_it_weighs():
    """Two boxes joined at the edge: contact forces carry both weights, and the hinge carries no torque."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    for k in range(2):
        scene.add_body(tb.Box((0.5, 0.4, 0.2)), mass=1.0 + k, position=(0.5 * k, 0, 0.1), name=f"box{k}")
    scene.add_joint("revolute", "box0", "box1", anchor=(0.25, 0, 0.1), axis=(0, 1, 0), name="hinge")
    sim = simulate(scene, 1e-3)
    result = sim.run(until=1.0, progress=False)
    assert result.unconverged == 0
    forces = sim.contact_forces()
    assert (forces.on("box0") + forces.on("box1"))[2] == pytest.approx(3.0 * G, rel=1e-6)
    assert np.abs(sim.positions()[:, 2][1:] - 0.1).max() < 1e-6
    assert len(set(zip(forces.body_a, forces.body_b)) & {(1, 2), (2, 1)}) == 0  # joined bodies do not collide


def test_energy_balance_closes_with_motors_friction_and_springs():
    """The sum of the defect is O(h): it halves with h."""

    def total(h):
        scene = tb.SceneBuilder()
        scene.add_body(None, mass=2.0, inertia=(0.1, 0.1, 0.1), position=(1, 0, 0), name="arm")
        scene.add_body(None, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(1.5, 0, 0), name="hand")
        scene.add_joint("revolute", None, "arm", anchor=(0, 0, 0), axis=(0, 1, 0), friction=0.5, name="hinge")
        scene.add_joint("revolute", "arm", "hand", anchor=(1.2, 0, 0), axis=(0, 1, 0), name="wrist")
        scene.add_joint_spring("wrist", stiffness=20.0, damping=0.3)
        scene.add_motor("wrist", "torque", target=lambda t: 2.0 * np.sin(5.0 * t))
        sim = simulate(scene, h)
        reports = sim.run(until=0.5, progress=False).reports
        return reports["energy_defect"].sum(), reports["kinetic_energy"].max()

    (coarse, scale), (fine, _) = total(1e-3), total(5e-4)
    assert abs(coarse) < 0.01 * scale
    assert 1.6 < coarse / fine < 2.5


def test_jointed_scenes_do_not_depend_on_threads_or_restarts(tmp_path):
    def scene():
        s = tb.SceneBuilder()
        s.add_static(tb.HalfSpace())
        for k in range(6):
            s.add_body(tb.Box((0.3, 0.2, 0.1)), density=500.0, position=(0.31 * k, 0, 0.3 + 0.02 * k), name=f"b{k}")
            if k:
                s.add_joint(
                    "revolute",
                    f"b{k - 1}",
                    f"b{k}",
                    anchor=(0.31 * k - 0.155, 0, 0.3 + 0.02 * k),
                    axis=(0, 1, 0),
                    limits=(-0.4, 0.4),
                    friction=0.05,
                    name=f"j{k}",
                )
        s.add_motor("j3", "speed", target=2.0, maximum=5.0, name="m")
        return s

    one = simulate(scene(), 1e-3)
    one.run(until=0.3, progress=False)
    half = simulate(scene(), 1e-3)
    half.run(until=0.15, progress=False)
    half.save_checkpoint(tmp_path / "half.h5")
    other = simulate(scene(), 1e-3)
    other.load_checkpoint(tmp_path / "half.h5")
    other.run(until=0.3, progress=False)
    assert one.state.sha256() == other.state.sha256()
    assert np.array_equal(one.state.coordinate, other.state.coordinate)


def test_reactions_are_in_the_trajectory(tmp_path):
    scene = tb.SceneBuilder()
    scene.add_body(None, mass=2.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, -1), name="bob")
    scene.add_joint("revolute", None, "bob", anchor=(0, 0, 0), axis=(0, 1, 0), name="hinge")
    sim = simulate(scene, 1e-3)
    sim.run(until=0.1, save=tb.Save(path=tmp_path / "run.h5", every=10), progress=False)
    with tb.Trajectory(tmp_path / "run.h5") as run:
        assert run.model.joint_names == ("hinge",)
        assert run.joints("joint_force")[-1, 0] == pytest.approx([0, 0, 2.0 * G], abs=1e-9)
        assert run.joints("joint_value").shape == (11, 1)


@pytest.mark.filterwarnings("ignore::tumble.TumbleWarning")  # of redundant rows and of the overlap
@pytest.mark.parametrize("integrator", ["euler", "moreau"])
@pytest.mark.parametrize("rise", [0.05, 0.005])
def test_a_frame_that_cannot_move_stays_where_it_reaches_into_the_floor(rise, integrator):
    """Three hinges and two boxes 40 mm deep: nothing may push what has no freedom. Moreau's correction of overlaps did,
    by the rounding of joints (speeds without bound within 20 steps)."""
    scene, z, place = tb.SceneBuilder(), 0.06, (0.0, 0.25)
    scene.add_static(tb.HalfSpace())
    a, b = (scene.add_body(tb.Box((0.2, 0.2, 0.2)), density=1000.0, position=(x, 0, z)) for x in place)
    for pair, at in (((None, a), (0.02, 0, z)), ((a, b), (0.12, 0, z + rise)), ((None, b), (0.27, 0, z))):
        scene.add_joint("revolute", *pair, anchor=at, axis=(0, 1, 0))
    sim = simulate(scene, 5e-3, integrator=integrator)
    start = sim.positions()
    for _ in range(40):
        report = sim.step()
        assert report.largest_speed < 1e-9
    np.testing.assert_allclose(sim.positions(), start, atol=1e-9)
    assert report.largest_overlap == pytest.approx(0.04, abs=1e-9)  # what is not removed is not hidden
