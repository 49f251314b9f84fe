"""Quantities over arrays, against closed forms and conservation."""

import numpy as np
import pytest

import tumble as tb
from tumble import analysis
from tumble.errors import OptionsError

RNG = np.random.default_rng(0)


def flying():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_static(tb.Box((1, 1, 1)), position=(50, 0, 0))
    pair = [tb.Placed(tb.Sphere(0.1), (0.3, 0, 0)), tb.Placed(tb.Box((0.1, 0.2, 0.3)))]
    for _ in range(5):
        q = RNG.normal(size=4)
        p, v, w = RNG.normal(size=(3, 3))
        scene.add_body(
            pair, density=900, position=5 * p, orientation=q / np.linalg.norm(q), velocity=v, angular_velocity=w
        )
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2))


def arrays(sim):
    return sim.positions(), sim.orientations(), sim.velocities(), sim.angular_velocities()


def test_momenta_are_conserved_and_those_of_a_sum_over_points():
    """Against masses spread over the bodies' volumes, which know nothing of inertia tensors."""
    sim = flying()
    model = sim.model
    before = analysis.angular_momentum(model, *arrays(sim)), analysis.momentum(model, sim.velocities())
    place = analysis.center_of_mass(model, *arrays(sim)[:2])
    for _ in range(100):
        sim.step()
    after = analysis.angular_momentum(model, *arrays(sim)), analysis.momentum(model, sim.velocities())
    np.testing.assert_allclose(after[0], before[0], rtol=1e-12)
    np.testing.assert_allclose(after[1], before[1], rtol=1e-12)
    mass = model.body_mass.sum()
    moved = analysis.center_of_mass(model, *arrays(sim)[:2]) - place
    np.testing.assert_allclose(moved, before[1] / mass * sim.time, atol=1e-12)
    # About another point: L' = L - d x P
    shifted = analysis.angular_momentum(model, *arrays(sim), about=(1, 2, 3))
    np.testing.assert_allclose(shifted, after[0] - np.cross((1, 2, 3), after[1]), rtol=1e-12)
    one = analysis.angular_momentum(model, *arrays(sim), bodies=[2])
    mask = np.arange(6) != 2
    np.testing.assert_allclose(one + analysis.angular_momentum(model, *arrays(sim), bodies=mask), after[0], rtol=1e-12)


def test_angular_momentum_of_a_box_from_its_points():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    size, q = np.array([0.1, 0.4, 0.9]), np.array([0.5, 0.5, -0.5, 0.5])
    scene.add_body(
        tb.Box(size), mass=2.0, position=(1, 2, 3), orientation=q, velocity=(1, 0, 2), angular_velocity=(3, -1, 2)
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    n = 40
    grid = (np.stack(np.meshgrid(*[np.arange(n)] * 3), -1).reshape(-1, 3) + 0.5) / n - 0.5
    from tumble.scene import rotation

    arm = rotation.rotate(q, grid * size)
    speed = np.array((1, 0, 2)) + np.cross((3, -1, 2), arm)
    wanted = (2.0 / n**3) * np.cross(np.add(arm, (1, 2, 3)), speed).sum(axis=0)
    np.testing.assert_allclose(analysis.angular_momentum(sim.model, *arrays(sim)), wanted, rtol=1e-3)


@pytest.fixture(scope="module")
def pressed():
    """A column of four cubes without weight, pressed from above and from both sides."""
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    slick = scene.add_material(tb.Material(friction=0.0))
    scene.add_static(tb.Box((9, 9, 1)), position=(0, 0, -0.5), material=slick)
    scene.add_static(tb.Box((1, 9, 9)), position=(-1, 0, 4), material=slick)
    for k in range(4):
        force = (-20.0, 0, -300.0 if k == 3 else 0.0)
        scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=(0, 0, 0.5 + k), material=slick, force=force)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2), solver=tb.SolverAPGD(tolerance=1e-12))
    for _ in range(3):
        sim.step()
    return sim


def test_stress_of_a_column_is_force_over_area(pressed):
    """300 N on 1 m^2 along z through three and a half cubes; 20 N on each from its middle to the wall along x."""
    where = pressed.positions(), pressed.orientations()
    found = analysis.stress(pressed.model, *where, pressed.contact_forces(), volume=4.0)
    np.testing.assert_allclose(found, np.diag([20 * 0.5 * 4 / 4.0, 0.0, 300 * 3.5 / 4.0]), atol=1e-6)
    # Below the load, cut at the centres: exactly force over area
    some = analysis.stress(pressed.model, *where, pressed.contact_forces(), volume=3.0, bodies=[2, 3, 4])
    np.testing.assert_allclose(some[2, 2], 300.0, rtol=1e-9)


def test_coordination_and_chains(pressed):
    contacts = pressed.contact_forces()
    assert analysis.coordination(pressed.model, contacts).tolist() == [3, 3, 3, 2]
    assert analysis.coordination(pressed.model, contacts, force=100.0).tolist() == [2, 2, 2, 1]
    net = analysis.force_network(contacts)
    column = np.all(net.pair > 0, axis=1) & (net.pair[:, 0] != 1) | ((net.pair[:, 0] == 0) & (net.pair[:, 1] == 2))
    assert np.array_equal(net.strong, column) and net.length.tolist() == [4]
    np.testing.assert_allclose(net.force[net.strong], 300.0, rtol=1e-9)
    assert set(net.chain[net.strong]) == {0} and set(net.chain[~net.strong]) == {-1}
    weak = analysis.force_network(contacts, threshold=0.0)
    assert weak.strong.all() and weak.length.tolist() == [8]
    assert (
        len(
            analysis.force_network(
                {
                    k: np.zeros((0, 3)) if k in ("force", "normal") else np.zeros(0, int)
                    for k in ("body_a", "body_b", "force", "normal")
                }
            ).length
        )
        == 0
    )


@pytest.mark.parametrize("periodic", [True, False])
def test_pair_correlation_of_a_gas_is_one_and_of_a_lattice_its_shells(periodic):
    points = RNG.uniform(size=(6000, 3))
    r, g = analysis.pair_correlation(points, reach=0.2, bins=8, low=(0, 0, 0), high=(1, 1, 1), periodic=periodic)
    np.testing.assert_allclose(g[1:], 1.0, atol=0.05)
    n = 12
    lattice = (np.stack(np.meshgrid(*[np.arange(n)] * 3), -1).reshape(-1, 3) + 0.5) / n
    r, g = analysis.pair_correlation(lattice, reach=1.9 / n, bins=190, low=(0, 0, 0), high=(1, 1, 1), periodic=periodic)
    width = r[1] - r[0]
    shells = [np.abs(r - d / n) < 1.6 * width for d in (1, np.sqrt(2))]
    near = np.array([g[shell] @ r[shell] ** 2 for shell in shells])
    neighbours = near * 4 * np.pi * width * (n**3 - 1)
    np.testing.assert_allclose(neighbours, [6, 12], rtol=0.01)
    assert np.all(g[r < 0.9 / n] == 0)


def test_mistakes():
    sim = flying()
    for wrong, said in (
        (lambda: analysis.center_of_mass(sim.model, sim.positions()[:2], sim.orientations()), "shape"),
        (lambda: analysis.momentum(sim.model, sim.velocities(), bodies=[99]), "indices of bodies"),
        (lambda: analysis.center_of_mass(sim.model, *arrays(sim)[:2], bodies=[0]), "needs a mass"),
        (lambda: analysis.pair_correlation([(0, 0, 0)], reach=1, low=(0, 0, 0), high=(1, 1, 1)), "below half"),
        (lambda: analysis.pair_correlation([(2, 0, 0)], reach=0.1, low=(0, 0, 0), high=(1, 1, 1)), "in the box"),
    ):
        with pytest.raises(OptionsError, match=said):
            wrong()
