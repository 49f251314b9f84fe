"""Servos: an implicit PD law on a joint, with the torque it has, and targets in the joint's own coordinate."""

from __future__ import annotations

import numpy as np
import pytest

import tumble as tb
from tumble.errors import SceneError

INERTIA = (1.0**2 + 0.1**2) / 12.0
"""Of a bar of 1 x 0.1 x 0.1 m and 1 kg about its middle [kg m^2]."""


def arm(dt: float, *, value: float | None = None, **motor) -> tb.Simulation:
    """A bar on a hinge through its middle, no gravity, turned by a servo: the angle alone moves."""
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, 0.0))
    bar = scene.add_body(tb.Box((1.0, 0.1, 0.1)), density=100.0)
    scene.add_joint("revolute", None, bar, anchor=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), value=value, name="hinge")
    scene.add_motor("hinge", "position", name="servo", **motor)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt))


@pytest.mark.parametrize("most", [None, 1e4, 30.0])
@pytest.mark.parametrize("k, d", [(100.0, 2.0), (1e4, 100.0), (50.0, 40.0)])
def test_a_servo_obeys_the_implicit_law(k, d, most):
    """Torque k (target - q) - d w of the end of the step, cut to the maximum: against the recursion for one joint."""
    dt, target = 1e-3, 0.8
    sim = arm(dt, target=target, stiffness=k, damping=d, **({} if most is None else {"maximum": most}))
    q = w = 0.0
    for _ in range(600):
        sim.step()
        torque = (k * (target - q - dt * w) - d * w) / (1.0 + dt * (dt * k + d) / INERTIA)
        torque = float(np.clip(torque, -(most or np.inf), most or np.inf))
        w += dt * torque / INERTIA
        q += dt * w
        assert sim.joint_values()["hinge"] == pytest.approx(q, abs=1e-9)
        assert sim.joint_reactions()["servo"].effort == pytest.approx(torque, abs=1e-5 * k)


def test_a_servo_converges_to_the_spring_with_a_dashpot():
    """Against exp(-z w t) (cos + ..) with first order in h."""
    k, d, target = 200.0, 4.0, 0.5
    rate, beat = d / (2.0 * INERTIA), np.sqrt(k / INERTIA - (d / (2.0 * INERTIA)) ** 2)
    t = 0.3
    exact = target * (1.0 - np.exp(-rate * t) * (np.cos(beat * t) + rate / beat * np.sin(beat * t)))
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        sim = arm(dt, target=target, stiffness=k, damping=d, maximum=1e4)
        sim.run(until=t, progress=False)
        errors.append(abs(sim.joint_values()["hinge"] - exact))
    assert errors[2] < target * np.exp(-rate * t) * 0.5 * 5e-4 * (k / INERTIA) * t  # Euler damps by h w^2 / 2 more
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.2) and errors[1] / errors[2] == pytest.approx(2.0, abs=0.2)


def test_a_step_beyond_the_torque_limit_settles():
    """60 N m, a jump that asks for thousands: full torque, then the law, then rest; no swinging at the limit."""
    sim = arm(1e-3, target=0.0, stiffness=6e4, damping=3e3, maximum=60.0)
    sim.step()
    sim.set_target("servo", 1.0)
    efforts = []
    for _ in range(1500):
        sim.step()
        efforts.append(sim.joint_reactions()["servo"].effort)
    assert max(np.abs(efforts)) == pytest.approx(60.0)
    assert sim.joint_values()["hinge"] == pytest.approx(1.0, abs=1e-6)
    assert np.abs(efforts[-200:]).max() < 1e-3


@pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 5.0, 20.0])
def test_a_hinge_reads_the_value_it_is_given(value):
    """Targets and values count from the joint's own zero, whole turns included."""
    sim = arm(1e-3, value=value, target=value, stiffness=1e3, damping=40.0)
    assert sim.joint_values()["hinge"] == pytest.approx(value, abs=1e-12)
    sim.run(until=0.05, progress=False)
    assert sim.joint_values()["hinge"] == pytest.approx(value, abs=1e-12)
    sim.set_target("servo", value + 0.3)
    sim.run(until=1.5, progress=False)
    assert sim.joint_values()["hinge"] == pytest.approx(value + 0.3, abs=1e-6)
    turn = sim.orientations()[0]
    assert 2.0 * np.arctan2(turn[3], turn[0]) == pytest.approx(0.3, abs=1e-6)


def test_a_slide_reads_the_value_it_is_given():
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, 0.0))
    box = scene.add_body(tb.Box((0.1, 0.1, 0.1)), density=1000.0, position=(0.2, 0.3, 0.0))
    scene.add_joint("prismatic", None, box, anchor=(0.2, 0.3, 0.0), axis=(1.0, 0.0, 0.0), value=-0.4,
                    limits=(-0.5, 0.1), name="rail")  # fmt: skip
    scene.add_motor("rail", "position", target=0.5, stiffness=500.0, damping=50.0, name="servo")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    assert sim.joint_values()["rail"] == pytest.approx(-0.4, abs=1e-12)
    sim.run(until=2.0, progress=False)
    assert sim.joint_values()["rail"] == pytest.approx(0.1, abs=1e-6)  # the limit
    assert sim.positions()[box][0] == pytest.approx(0.7, abs=1e-6)


def test_a_value_is_for_joints_with_one_coordinate():
    scene = tb.SceneBuilder()
    box = scene.add_body(tb.Box((0.1, 0.1, 0.1)), density=1000.0)
    for kind in ("spherical", "cylindrical"):
        with pytest.raises(SceneError, match="value"):
            scene.add_joint(kind, None, box, anchor=(0, 0, 0), axis=(0, 0, 1), value=0.1)


# ---------------------------------------------------------------------- robots


ROBOT = """<?xml version="1.0"?><robot name="r">
<link name="base"/>
<link name="arm"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>
<inertia ixx="0.04" iyy="0.05" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 -1 0"/>
<limit lower="-1" upper="2" effort="60" velocity="3"/></joint></robot>"""


def robot(tmp_path, *, gravity: float = 9.81, **options) -> tuple[tb.Simulation, str]:
    pytest.importorskip("yourdfpy", reason="robots need the extra tumble[urdf]")
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOT)
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -gravity))
    made = scene.add_urdf(path, fixed=True, motors="hold", **options)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3)), made.motors["elbow"]


def test_hold_settles_after_a_step_and_its_target_is_the_files_value(tmp_path):
    """Default gains: from 0.4 to 1.5 rad against gravity; then the torque of the weight and an error of its share."""
    sim, motor = robot(tmp_path, values={"elbow": 0.4})
    sim.run(until=0.2, progress=False)
    weight = 2.0 * 9.81 * 0.5
    stiffness = 60.0 / (1e-3 * 3.0)
    assert sim.joint_values()["elbow"] == pytest.approx(0.4 - weight * np.cos(0.4) / stiffness, abs=1e-5)
    sim.set_target(motor, 1.5)
    sim.run(until=2.0, progress=False)
    efforts = []
    for _ in range(200):
        sim.step()
        efforts.append(sim.joint_reactions()[motor].effort)
    sag = weight * np.cos(1.5) / stiffness
    assert sim.joint_values()["elbow"] == pytest.approx(1.5 - sag, abs=1e-6)
    assert np.array(efforts) == pytest.approx(weight * np.cos(1.5), abs=1e-3)


def test_gains_of_a_robot(tmp_path):
    """One number for all or one for each; the settled error is load over stiffness."""
    for gain in (400.0, {"elbow": 400.0}):
        sim, motor = robot(tmp_path, stiffness=gain, damping=30.0)
        sim.run(until=3.0, progress=False)
        q = sim.joint_values()["elbow"]
        assert 400.0 * -q == pytest.approx(2.0 * 9.81 * 0.5 * np.cos(q), abs=1e-3)
        row = sim.model.joints.motors[sim.model.joints.motor(motor)].row
        assert sim.model.joints.row_stiffness[row] == 400.0 and sim.model.joints.row_damping[row] == 30.0


@pytest.mark.parametrize(
    "options, rule",
    [
        ({"stiffness": {"elbw": 10.0}}, "stiffness: has no motor that holds it .*Did you mean 'elbow'"),
        ({"stiffness": -1.0}, "stiffness.elbow: must be > 0"),
        ({"damping": -1.0}, "damping.elbow: must be >= 0"),
        ({"stiffness": 10.0, "motors": "speed"}, "stiffness: is for motors that hold"),
    ],
)
def test_bad_gains_are_named(tmp_path, options, rule):
    pytest.importorskip("yourdfpy", reason="robots need the extra tumble[urdf]")
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOT)
    with pytest.raises(SceneError, match=rule):
        tb.SceneBuilder().add_urdf(path, **({"motors": "hold", "fixed": True} | options))
