"""What is booked as recovery is what pushing overlaps apart has given, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import tumble as tb

pytestmark = pytest.mark.filterwarnings("ignore:.*overlap")


def meeting(integrator, overlap):
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    smooth = scene.add_material(tb.Material(friction=0.0))
    for x, v in ((0.0, 1.0), (0.2 - overlap, 0.0)):
        scene.add_body(tb.Sphere(0.1), mass=1.0, position=(x, 0, 0), velocity=(v, 0, 0), material=smooth)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3, integrator=integrator))


@pytest.mark.parametrize("integrator", ["euler", "moreau"])
def test_an_impact_of_overlapping_spheres_recovers_nothing(integrator):
    """The contact takes half the energy: pushing apart made it a little less."""
    sim = meeting(integrator, 0.01)
    reports = [sim.step() for _ in range(20)]
    assert 0.25 - 1e-12 <= reports[-1].kinetic_energy < 0.256
    assert sum(r.work_recovery for r in reports) < 1e-12
    assert sum(r.work_normal for r in reports) == pytest.approx(reports[-1].kinetic_energy - 0.5, abs=1e-12)


def test_overlapping_spheres_at_rest_are_pushed_apart_by_recovery_alone():
    sim = meeting("euler", 0.01)
    state = sim.get_state()
    state.velocity[:] = 0.0
    sim.set_state(state)
    reports = [sim.step() for _ in range(20)]
    assert reports[-1].kinetic_energy > 1e-4
    assert sum(r.work_recovery for r in reports) == pytest.approx(reports[-1].kinetic_energy, rel=1e-9)
    assert abs(sum(r.work_normal for r in reports)) < 1e-12


@pytest.mark.parametrize("integrator", ["euler", "moreau"])
def test_a_colliding_cloud_books_little(integrator):
    rng = np.random.default_rng(3)
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    smooth = scene.add_material(tb.Material(friction=0.0))
    places = tb.grid_points((3, 3, 3), 0.21, origin=(-0.2, -0.2, -0.2))
    for p in places:
        scene.add_body(tb.Sphere(0.1), mass=1.0, position=p, velocity=-8.0 * p + rng.normal(size=3), material=smooth)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3, integrator=integrator))
    reports = [sim.step() for _ in range(150)]
    start, energy = reports[0].kinetic_energy, np.array([r.kinetic_energy for r in reports])
    booked = sum(r.work_recovery for r in reports)
    assert energy[-1] < 0.9 * start
    assert booked < (2e-3 if integrator == "euler" else 1e-9) * start
    rest = energy - np.cumsum([r.work_recovery for r in reports])
    assert np.max(np.diff(rest)) < 1e-9 * start
