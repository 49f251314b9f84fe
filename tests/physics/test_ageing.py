"""Friction that grows with the age of contacts, against the closed forms of its law."""

import numpy as np
import pytest

import tumble as tb

B, TIME, MU, G = 0.05, 0.02, 0.3, 9.81


def block(*, length, speed=0.0, locked=(), forces=(), h=1e-3):
    """A cube on a belt that runs along x."""
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(name="m", friction=MU, ageing=B, ageing_time=TIME, ageing_length=length))
    scene.add_kinematic(tb.Box((4.0, 4.0, 0.2)), material="m", position=(0, 0, -0.1), velocity=(speed, 0, 0))
    scene.add_body(tb.Box((0.2, 0.2, 0.02)), mass=2.0, material="m", position=(0, 0, 0.01), locked=locked, name="block")
    for force in forces:
        scene.add_force(force)
    solver = tb.SolverAPGD(tolerance=1e-11, stop="natural_map")
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=h), solver=solver)


def ratio(sim):
    """Friction over normal force of the block."""
    force = sim.contact_forces().force.sum(axis=0)
    return abs(force[0]) / abs(force[2])


@pytest.mark.parametrize("wait", [0.05, 0.4])
def test_a_block_breaks_away_at_the_friction_of_its_age(wait):
    """It is pulled harder and harder after a rest; the age is the time since it was put down."""
    rate = 0.2  # of the weight a second
    body, mass = 1, 2.0

    def pull(time, position, orientation, velocity, spin):
        force = np.zeros_like(position)
        force[body, 0] = mass * G * max(0.25, 0.25 + rate * (time - wait)) if time >= wait else 0.0
        return force, np.zeros_like(force)

    sim = block(length=1e-6, forces=[pull])
    while sim.velocities()[body, 0] < 1e-3:
        sim.step()
        assert sim.time < 2.0
    held = MU + B * np.log(1.0 + sim.time / TIME)
    pulled = 0.25 + rate * (sim.time - wait)
    assert pulled == pytest.approx(held, abs=0.01 * held)
    assert held > MU + B * np.log(1.0 + wait / TIME) > MU + 0.05


def test_steady_sliding_has_the_age_of_its_speed():
    """age = D / v + (age_0 - D / v) exp(-v t / D): mu follows, to rounding of the solver and exactly in the step."""
    speed, length, h = 0.05, 2e-3, 1e-3
    sim = block(length=length, speed=speed, locked=("x", "y", "rx", "ry", "rz"), h=h)
    for k in range(1, 200):
        sim.step()
        age = length / speed * -np.expm1(-speed * (k - 1) * h / length)  # before the step; the first begins with none
        assert ratio(sim) == pytest.approx(MU + B * np.log(1.0 + age / TIME), rel=1e-6)
    assert ratio(sim) == pytest.approx(MU + B * np.log(1.0 + length / speed / TIME), rel=5e-3)


def test_a_contact_that_lets_go_is_young_again():
    sim = block(length=1e-3)
    for _ in range(100):
        sim.step()
    assert sim.state.memory.laws["age"].max() == pytest.approx(0.1, rel=1e-9)
    sim.state.position[1, 2] += 1e-3
    sim.step()
    assert sim.state.memory.laws["age"].max(initial=0.0) == 0.0


def test_ages_survive_a_checkpoint_bit_for_bit(tmp_path):
    sims = [block(length=1e-3, speed=0.01) for _ in range(2)]
    for _ in range(30):
        sims[0].step()
    sims[0].save_checkpoint(tmp_path / "a.h5")
    sims[1].load_checkpoint(tmp_path / "a.h5")
    for sim in sims:
        for _ in range(30):
            sim.step()
    assert sims[0].state.sha256() == sims[1].state.sha256()
    one, two = (sim.state.memory.laws["age"] for sim in sims)
    assert one.shape == (1, 4) and one.tobytes() == two.tobytes()


def test_the_solver_sees_no_other_friction_without_ageing():
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(name="m", friction=MU, ageing_time=3.0))
    scene.add_body(tb.Sphere(0.1), mass=1.0, material="m")
    assert not scene.build().pair_laws.active
