"""Restitution keeps what it says: single impacts to rounding, many in one step, and clouds that do not lose energy."""

from __future__ import annotations

import numpy as np
import pytest

import tumble as tb
from tumble.scene.builder import SceneBuilder

DT = 1e-3


def elastic_scene(e: float = 1.0, threshold: float = 0.01) -> tuple[SceneBuilder, object]:
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, 0.0))
    steel = tb.Material(name="steel", friction=0.0, restitution=e, restitution_threshold=threshold)
    return scene, scene.add_material(steel)


def row_of_balls(gaps: list[float], *, e: float = 1.0, speed: float = 1.0, solver=None) -> tb.Simulation:
    """Balls of radius 0.1 in a row, the first of them moving towards the others, which rest at these gaps [m]."""
    scene, steel = elastic_scene(e)
    x = np.concatenate([[0.0], np.cumsum(0.2 + np.asarray(gaps))])
    velocity = np.zeros((len(x), 3))
    velocity[0, 0] = speed
    scene.add_spheres(np.full(len(x), 0.1), density=1.0, material=steel, velocity=velocity,
                      position=np.column_stack([x, 0.0 * x, 0.0 * x]))  # fmt: skip
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=DT), solver=solver)


@pytest.mark.parametrize("e", [1.0, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_a_binary_collision_is_exact(seed, e):
    """Normal speed times -e along the line of centres, the rest untouched, momentum kept: all to rounding."""
    rng = np.random.default_rng(seed)
    r, density = rng.uniform(0.05, 0.2, 2), rng.uniform(100.0, 5000.0, 2)
    n = rng.normal(size=3)
    n /= np.linalg.norm(n)
    v = rng.normal(size=(2, 3))
    v[0] += (2.0 + (v[1] - v[0]) @ n) * n  # closes at 2 m/s
    scene, steel = elastic_scene(e)
    x = np.array([[0.0, 0.0, 0.0], (r.sum() + 1e-3) * n])
    for k in range(2):
        scene.add_body(tb.Sphere(r[k]), density=density[k], material=steel, position=x[k], velocity=v[k])
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=DT))
    sim.step()
    m, after = sim.model.body_mass, sim.velocities()
    g = (1.0 + e) * 2.0 / (1.0 / m[0] + 1.0 / m[1])
    expected = v + np.array([[-g / m[0]], [g / m[1]]]) * n
    assert np.abs(after - expected).max() < 1e-12 * np.abs(v).max()


def test_a_hundred_binary_collisions_in_one_step_are_exact():
    """Above 64 contacts the tolerance of a step is 1e-5, and pairs that meet nobody else are exact all the same."""
    rng = np.random.default_rng(0)
    scene, steel = elastic_scene()
    place = tb.grid_points((5, 5, 4), 1.0)
    radius = rng.uniform(0.05, 0.2, (100, 2))
    speed = rng.uniform(0.2, 3.0, 100)
    for k in range(100):
        for side, x in ((0, 0.0), (1, radius[k].sum() + 1e-4)):
            v = (speed[k] if side == 0 else 0.0, 0.0, 0.0)
            scene.add_body(tb.Sphere(radius[k, side]), density=1000.0, material=steel,
                           position=place[k] + [x, 0.0, 0.0], velocity=v)  # fmt: skip
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=DT))
    report = sim.step()
    m, v = sim.model.body_mass.reshape(100, 2), sim.velocities()[:, 0].reshape(100, 2)
    energy = 0.5 * (m * v**2).sum(axis=1)
    assert report.contacts == 100
    assert np.abs(energy / (0.5 * m[:, 0] * speed**2) - 1.0).max() < 1e-10
    assert np.abs(v[:, 1] - v[:, 0] - speed).max() < 1e-10


@pytest.mark.parametrize("balls", [3, 6])
def test_impacts_that_follow_each_other_within_a_step_are_resolved_in_turn(balls):
    """Gaps of a tenth of what the first ball moves in a step: the last one leaves with all of its speed."""
    sim = row_of_balls([1e-4] * (balls - 1))
    report = sim.step()
    expected = np.zeros(balls)
    expected[-1] = 1.0
    assert np.abs(sim.velocities()[:, 0] - expected).max() < 1e-10
    assert report.converged


def test_followed_impacts_with_less_restitution():
    """e = 0.5 twice in one step: v -> 3/4 v for the ball that is hit, each time; a quarter stays behind."""
    sim = row_of_balls([1e-4, 1e-4], e=0.5)
    sim.step()
    v = sim.velocities()[:, 0]
    assert v == pytest.approx([0.25, 0.1875, 0.5625], abs=1e-9)


def test_touching_balls_share_one_impact():
    """Newton's law for simultaneous impacts, not a wave; the energy is kept all the same."""
    sim = row_of_balls([1e-4, 0.0, 0.0, 0.0], solver=tb.SolverAPGD(tolerance=1e-12))
    sim.step()
    v = sim.velocities()[:, 0]
    assert v == pytest.approx([-0.6, 0.4, 0.4, 0.4, 0.4], abs=1e-10)
    assert (v**2).sum() == pytest.approx(1.0, abs=1e-10)


def test_what_a_step_cannot_resolve_is_stopped_and_does_not_overlap():
    """0.7 mm between two walls and 1 mm a step: no velocity of 1 m/s stays between them, however many hits follow."""
    scene, steel = elastic_scene()
    scene.add_static(tb.HalfSpace((1.0, 0.0, 0.0), -0.1004), material=steel)
    scene.add_static(tb.HalfSpace((-1.0, 0.0, 0.0), -0.1003), material=steel)
    scene.add_body(tb.Sphere(0.1), density=1.0, material=steel, velocity=(1.0, 0.3, 0.0))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=DT))
    energy = sim.step().kinetic_energy
    assert energy < 0.5 * sim.model.body_mass[-1] * 1.09
    for _ in range(50):
        report = sim.step()
        assert report.largest_overlap < 1e-9
        assert report.kinetic_energy <= energy * (1.0 + 1e-7)  # the tolerance of the steps
        energy = report.kinetic_energy
    assert sim.velocities()[-1, 1] == pytest.approx(0.3)


def cloud(dt: float, *, until: float, threshold: float, radii: tuple[float, float] = (0.05, 0.05)) -> np.ndarray:
    """216 spheres in a closed box, 11 % of its volume, speeds of about 1.7 m/s: kinetic energies of the steps."""
    rng = np.random.default_rng(0)
    scene, steel = elastic_scene(threshold=threshold)
    for normal in np.concatenate([np.eye(3), -np.eye(3)]):
        scene.add_static(tb.HalfSpace(tuple(normal), -0.5), material=steel)
    position = (np.indices((6, 6, 6)).reshape(3, -1).T + 0.5) / 6.0 - 0.5
    scene.add_spheres(
        rng.uniform(*radii, 216), density=1000.0, material=steel, position=position, velocity=rng.normal(size=(216, 3))
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt))
    return np.array([sim.step().kinetic_energy for _ in range(round(until / dt))])


def test_an_elastic_cloud_keeps_its_energy():
    """Without the rounds of hits this cloud lost 5 % in a second: rows of contacts that were not closing braked."""
    energy = cloud(1e-3, until=0.5, threshold=0.0)
    assert abs(energy[-1] / energy[0] - 1.0) < 1e-6
    assert np.abs(np.diff(energy)).max() < 1e-6 * energy[0]


def test_slow_impacts_take_only_their_own_energy():
    """Impacts below the threshold (0.01 m/s) do not bounce, and what is lost is of the order of their energy."""
    energy = cloud(1e-3, until=0.5, threshold=0.01)
    assert -1e-4 < energy[-1] / energy[0] - 1.0 < 1e-6


@pytest.mark.filterwarnings("ignore:.*overlap")
def test_a_touching_contact_that_was_parting_gives_no_energy():
    """Two spheres part, a touch deep still, when heavier ones hit both from outside: pressed, they bounce."""
    scene, steel = elastic_scene(threshold=0.0)
    for x, v, mass in ((-0.3002, 3.0, 2.0), (-0.1, -1.0, 1.0), (0.0995, 1.0, 1.0), (0.2997, -3.0, 2.0)):
        scene.add_body(tb.Sphere(0.1), mass=mass, material=steel, position=(x, 0, 0), velocity=(v, 0, 0))
    for integrator in ("euler", "moreau"):
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3, integrator=integrator))
        energy = np.array([sim.step().kinetic_energy for _ in range(60)])
        assert np.abs(energy / 19.0 - 1.0).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("radii", [(0.05, 0.05), (0.02, 0.06)])
@pytest.mark.parametrize("dt", [2e-3, 1e-3, 5e-4])
def test_an_elastic_cloud_keeps_its_energy_for_longer(dt, radii):
    """Simultaneous hits are solved to the tolerance of the step; the error does not add up to a trend."""
    energy = cloud(dt, until=3.0, threshold=0.0, radii=radii)
    assert abs(energy[-1] / energy[0] - 1.0) < 1e-5
