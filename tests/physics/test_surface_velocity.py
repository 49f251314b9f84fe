"""Belts, rollers and turntables: surfaces that run along bodies that stay."""

import copy
import pickle

import numpy as np
import pytest

import tumble as tb
from tumble.errors import SceneError

G, MU, V, DT = 9.81, 0.4, 1.5, 1e-3


def belt(surface, *, integrator="euler"):
    scene = tb.SceneBuilder()
    rubber = scene.add_material(tb.Material(friction=MU))
    scene.add_static(
        tb.Box((20, 1, 0.2)), position=(0, 0, -0.1), material=rubber, surface_velocity=surface, name="belt"
    )
    box = scene.add_body(tb.Box((0.3, 0.2, 0.1)), mass=3.0, position=(0, 0, 0.05), material=rubber)
    options = tb.StepOptions(dt=DT, integrator=integrator)
    return tb.Simulation(scene.build(), options=options, solver=tb.SolverAPGD(tolerance=1e-12)), box


@pytest.mark.parametrize("integrator", ["euler", "moreau"])
def test_a_box_on_a_belt_is_carried_up_to_speed(integrator):
    """Uniform acceleration mu g until v / (mu g), then at rest on the belt; the belt lags by v^2 / (2 mu g)."""
    sim, box = belt((V, 0, 0), integrator=integrator)
    until, speeds = 0.6, []
    works = {"work_friction": 0.0, "work_driven": 0.0, "energy_defect": 0.0}
    while sim.time < until - DT / 2:
        report = sim.step()
        speeds.append(sim.velocities()[box, 0])
        for name in works:
            works[name] += getattr(report, name)
    times = DT * np.arange(1, len(speeds) + 1)
    np.testing.assert_allclose(speeds, np.minimum(MU * G * times, V), atol=2 * MU * G * DT)
    reached = times[np.argmax(np.array(speeds) > V - 1e-9)]
    assert reached == pytest.approx(V / (MU * G), abs=2 * DT)
    lag = V * until - sim.positions()[box, 0]
    assert lag == pytest.approx(V**2 / (2 * MU * G), abs=V * DT)
    # The belt gives m v^2: half of it is the box's, half heat.
    assert works["work_driven"] == pytest.approx(3.0 * V**2, rel=5e-3)
    assert works["work_friction"] == pytest.approx(-0.5 * 3.0 * V**2, rel=5e-3)
    assert abs(works["energy_defect"]) < 1e-9
    assert np.array_equal(sim.positions()[0], (0, 0, -0.1))


def test_a_belt_that_stops_lets_the_box_come_to_rest():
    sim, box = belt(tb.SurfaceVelocity(velocity=(V, 0, 0), factor=lambda t: 1.0 if t < 0.5 else 0.0))
    sim.run(until=0.5, progress=False)
    assert sim.velocities()[box, 0] == pytest.approx(V, abs=1e-9)
    sim.run(until=1.0, progress=False)
    assert abs(sim.velocities()[box, 0]) < 1e-9


def test_the_end_of_a_belt_does_not_push():
    """The surface runs out through the face at the end: what stands before it stays where it is."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_static(tb.Box((2, 1, 1)), position=(0, 0, 0.5), surface_velocity=(V, 0, 0))
    box = scene.add_body(tb.Box((0.2, 0.2, 0.2)), mass=1.0, position=(1.1, 0, 0.1))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=DT))
    for _ in range(100):
        sim.step()
        assert np.abs(sim.velocities()[box]).max() < 1e-6
    assert abs(sim.positions()[box, 0] - 1.1) < 1e-6


def test_a_turntable_carries_as_a_disc_that_turns():
    """The same path on a disc whose surface runs as on one that really turns, resting and sliding."""

    def paths(turning):
        scene = tb.SceneBuilder()
        rough = scene.add_material(tb.Material(friction=0.3))
        disc, place, spin = tb.Cylinder(1.0, 0.2), (0.5, -0.2, -0.1), (0, 0, 2.0)
        if turning:
            scene.add_kinematic(disc, position=place, angular_velocity=spin, material=rough)
        else:
            surface = tb.SurfaceVelocity(angular_velocity=spin, point=(0.5, -0.2, 3.0))
            scene.add_static(disc, position=place, surface_velocity=surface, material=rough)
        position = [(0.7, -0.2, 0.02), (0.5, 0.5, 0.02)]
        scene.add_copies(tb.Cylinder(0.05, 0.04), position=position, density=1000, material=rough)
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=DT), solver=tb.SolverAPGD(tolerance=1e-11))
        rows = []
        for _ in range(400):
            sim.step()
            rows.append(sim.positions()[1:])
        return np.array(rows)

    np.testing.assert_allclose(paths(True), paths(False), atol=2e-5)


def test_the_surface_goes_with_a_body_that_moves():
    """A belt that is turned by its motion by 90 degrees before a box lands carries it along y."""
    scene = tb.SceneBuilder()
    half = np.sqrt(0.5)

    def motion(t):
        return np.array([0, 0, -0.1]), np.array([1.0, 0, 0, 0]) if t <= 0 else np.array([half, 0, 0, half])

    scene.add_kinematic(tb.Box((4, 4, 0.2)), motion=motion, surface_velocity=(V, 0, 0))
    ball = scene.add_body(tb.Box((0.2, 0.2, 0.2)), mass=1.0, position=(0, 0, 0.12))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=DT))
    sim.run(until=0.8, progress=False)
    np.testing.assert_allclose(sim.velocities()[ball], (0, V, 0), atol=1e-6)


def test_state_copies_and_files_keep_it(tmp_path):
    sim, _ = belt((V, 0, 0))
    sim.run(until=0.05, progress=False)
    twins = [copy.deepcopy(sim), pickle.loads(pickle.dumps(sim)), sim.copy()]
    sim.run(until=0.1, progress=False)
    for twin in twins:
        twin.run(until=0.1, progress=False)
        assert twin.state.sha256() == sim.state.sha256()
    text = """
[[material]]
name = "rubber"
friction = 0.4
[[body]]
kind = "static"
name = "belt"
shape = {type = "box", size = [20, 1, 0.2]}
position = [0, 0, -0.1]
material = "rubber"
surface_velocity = [1.5, 0, 0]
[[body]]
shape = {type = "box", size = [0.3, 0.2, 0.1]}
mass = 3
position = [0, 0, 0.05]
material = "rubber"
"""
    (tmp_path / "belt.toml").write_text(text)
    model = tb.load_scene(tmp_path / "belt.toml").model
    read = tb.Simulation(model, options=sim.options, solver=sim.solver)
    read.run(until=0.1, progress=False)
    assert read.state.sha256() == sim.state.sha256()


def test_what_does_not_go_together_is_refused():
    scene = tb.SceneBuilder()
    for wrong, said in (
        (dict(surface_velocity=(1, 0)), "shape"),
        (dict(surface_velocity={"speed": 1}), "unknown key"),
        (dict(surface_velocity=(1, 0, 0), velocity=(1, 0, 0)), "not velocities"),
    ):
        with pytest.raises(SceneError, match=said):
            scene.add_kinematic(tb.Sphere(1.0), **wrong)
    roller = scene.add_static(tb.Sphere(1.0), surface_velocity=(1, 0, 0))
    ball = scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 2))
    scene.add_joint("spherical", roller, ball, anchor=(0, 0, 1.5))
    with pytest.raises(SceneError, match="a surface velocity or joints"):
        scene.build()
