"""The Moreau-Jean integrator with theta = 1/2: sliding distances, impacts, piles, energy."""

from __future__ import annotations

import numpy as np
import pytest

import tumble as tb
from tumble.errors import OptionsError

G = 9.81


def slide(h, slope=0.0, mu=0.3, speed=2.0, until=1.5, **options):
    """A cube slides to rest on a slope (gravity is turned); returns the simulation, the run and the exact distance."""
    scene = tb.SceneBuilder(gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    scene.add_material(tb.Material(name="wood", friction=mu))
    scene.add_static(tb.HalfSpace(), material="wood")
    scene.add_body(tb.Box((1, 1, 1)), mass=1.0, material="wood", position=(0, 0, 0.5), velocity=(speed, 0, 0))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=h, integrator="moreau", **options))
    result = sim.run(until=until, progress=False)
    deceleration = G * (mu * np.cos(slope) - np.sin(slope) * np.sign(speed))
    return sim, result, deceleration


@pytest.mark.parametrize("h", [0.0025, 0.01])
@pytest.mark.parametrize(("slope", "mu", "speed", "until"), [(0, 0.3, 2, 1.5), (25, 0.6, 2, 2.5), (25, 0.6, -2, 2.5)])
def test_stopping_distances_err_by_the_last_step_only(h, slope, mu, speed, until):
    """Within the sliding phase the mean velocity is exact; the last step stops somewhere inside: a h^2 / 8."""
    sim, result, a = slide(h, np.radians(slope), mu, speed, until)
    exact = np.sign(speed) * speed**2 / (2.0 * a)
    assert abs(sim.positions()[1][0] - exact) <= a * h**2 / 8.0 + 1e-6
    assert np.abs(sim.velocities()[1]).max() < 1e-8
    # Constant forces and the mean velocity: the energy balance closes in every step.
    assert np.abs(result.reports["energy_defect"]).max() < 1e-10
    assert result.unconverged == 0


def test_theta_one_is_first_order():
    sim, _, a = slide(0.01, theta=1.0)
    assert abs(sim.positions()[1][0] - 2.0**2 / (2 * a)) == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize("h", [0.01, 0.001])
def test_impacts_are_inelastic(h):
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 0.6), name="ball")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=h, integrator="moreau"))
    speed, depth = [], []
    for _ in range(int(1.0 / h)):
        sim.step()
        speed.append(sim.velocities()[1][2])
        depth.append(0.1 - sim.positions()[1][2])
    assert max(speed) <= 1e-12  # it never goes up: the overlap leaves by positions alone
    assert max(depth) <= h * np.sqrt(2 * G * 0.5) / 2 * 1.1  # half a step of the impact speed
    assert abs(depth[-1]) < 1e-5 * 0.1  # what is not worth removing


def test_free_flight_is_a_parabola_to_rounding():
    scene = tb.SceneBuilder()
    scene.add_body(tb.Sphere(0.1), mass=1.0, velocity=(1, 0, 3), angular_velocity=(1, 2, 3))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=0.01, integrator="moreau"))
    sim.run(until=1.0, progress=False)
    assert sim.positions()[0] == pytest.approx([1.0, 0.0, 3.0 - 0.5 * G], abs=1e-12)


def test_a_pile_stays_quiet():
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(1.0, 1.0, 3.0), thickness=0.2))
    points = tb.grid_points((3, 3, 4), 0.28, origin=(0, 0, 0.2), jitter=0.02)
    turn = np.random.default_rng(0).normal(size=(len(points), 4))
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    scene.add_boxes((0.2, 0.15, 0.12), density=1000.0, position=points, orientation=turn)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=5e-3, integrator="moreau"))
    sim.run(until=4.0, progress=False)  # boxes still slip into place after three seconds
    reports = sim.run(until=5.0, progress=False).reports
    assert np.abs(sim.velocities()).max() < 1e-4
    assert reports["kinetic_energy"].max() < 1e-6
    assert reports["largest_overlap"].max() < 1e-4


def test_theta_needs_the_integrator():
    with pytest.raises(OptionsError, match="belongs to integrator"):
        tb.StepOptions(dt=1e-3, theta=0.7)


@pytest.mark.parametrize("name", ["box-slide", "incline-stop"])
def test_the_experiments_take_the_integrator(name, tmp_path):
    from tumble.experiments import run_experiment

    metrics = run_experiment(name, out=tmp_path, settings={"integrator": "moreau"})
    for way, bound in {"": 2.943, "down_": 1.18864, "up_": 9.48041}.items():
        if f"{way}stop_distance_exact" in metrics:
            for h in (0.0025, 0.01):
                error = metrics[f"{way}stop_distance_coulomb_h{h}"] - metrics[f"{way}stop_distance_exact"]
                assert abs(error) <= bound * h**2 / 8.0 + 1e-6
