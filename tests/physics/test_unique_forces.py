"""Unique forces: symmetric scenes get symmetric forces, whatever the order of bodies, the history and the solver."""

import numpy as np
import pytest

import tumble as tb
from tumble import SolverGaussSeidel, SolverInteriorPoint

SYMMETRIC = 1e-8


def simulation(scene, law="coulomb", **more):
    solver = more.pop("solver", None)
    return tb.Simulation(
        scene.build(), options=tb.StepOptions(dt=1e-3, law=law, unique_forces=True, **more), solver=solver
    )


def forces(sim, steps=3):
    """Points and forces after some steps, sorted by place, so that scenes built in another order can be compared."""
    for _ in range(steps):
        report = sim.step()
    assert report.unique_forces and report.unique_error < 1e-11
    found = sim.contact_forces()
    sign = np.where(found.model.body_kind[found.body_b] == tb.BodyKind.DYNAMIC, 1.0, -1.0)
    place = np.round(found.point, 5) + 0.0
    order = np.lexsort(place.T)
    return place[order], (sign[:, None] * found.force)[order]


def same(one, other):
    np.testing.assert_allclose(other[0], one[0], atol=1e-5)
    np.testing.assert_allclose(other[1], one[1], rtol=0.0, atol=SYMMETRIC * np.abs(one[1]).max())


def table(order=(0, 1, 2, 3), shape=None):
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    corner = [(-0.5, -0.3), (0.5, -0.3), (0.5, 0.3), (-0.5, 0.3)]
    leg = tb.Box((0.05, 0.05, 0.7)) if shape is None else shape
    height = 0.35 if shape is None else 0.02
    parts = [tb.Placed(leg, position=(*corner[k], height)) for k in order]
    scene.add_body([tb.Placed(tb.Box((1.2, 0.8, 0.05)), position=(0, 0, 0.75)), *parts], density=600.0)
    return scene


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
def test_a_table_stands_evenly_on_four_legs(law):
    model = table().build()
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3, law=law, unique_forces=True))
    place, force = forces(sim)
    weight = 9.81 * model.body_mass.sum()
    np.testing.assert_allclose(force[:, 2], weight / 16, rtol=SYMMETRIC)  # four corners a leg
    assert np.abs(force[:, :2]).max() < SYMMETRIC * weight
    same((place, force), forces(simulation(table((2, 0, 3, 1)), law)))


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
@pytest.mark.parametrize("warm_start", [True, False])
def test_a_cube_stands_evenly_on_its_four_corners(law, warm_start):
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Box((1, 1, 1)), mass=2.0, position=(0.3, -0.2, 0.5), orientation=(np.cos(0.3), 0, 0, np.sin(0.3)))
    _, force = forces(simulation(scene, law, warm_start=warm_start))
    np.testing.assert_allclose(force[:, 2], 2.0 * 9.81 / 4, rtol=SYMMETRIC)
    assert np.abs(force[:, :2]).max() < SYMMETRIC * 9.81


def test_a_beam_on_three_supports_loads_them_as_equal_springs_would():
    """w = 1: W/3 each, where a solver may leave any of (t, W - 2t, t)."""
    scene = tb.SceneBuilder()
    smooth = scene.add_material(tb.Material(friction=0.0))
    scene.add_static(tb.HalfSpace(), material=smooth)
    feet = [tb.Placed(tb.Sphere(0.02), position=(x, 0, 0.02)) for x in (-0.5, 0.0, 0.5)]
    scene.add_body([tb.Placed(tb.Box((1.1, 0.1, 0.04)), position=(0, 0, 0.06)), *feet], mass=3.0, material=smooth)
    _, force = forces(simulation(scene))
    np.testing.assert_allclose(force[:, 2], 9.81, rtol=SYMMETRIC)


def spheres(points, fixed, order=None, radius=0.1, friction=0.6, floor=False):
    """Equal spheres in the plane y = 0; those in `fixed` are static."""
    scene = tb.SceneBuilder()
    stone = scene.add_material(tb.Material(friction=friction))
    if floor:
        scene.add_static(tb.HalfSpace(), material=stone)
    for k in range(len(points)) if order is None else order:
        if k in fixed:
            scene.add_static(tb.Sphere(radius), position=tuple(points[k]), material=stone)
        else:
            scene.add_body(tb.Sphere(radius), density=2500.0, position=tuple(points[k]), material=stone)
    return scene


def arch_points(count, radius=0.1):
    angle = np.linspace(0.0, np.pi, count)
    reach = radius / np.sin(0.5 * (angle[1] - angle[0]))
    return reach * np.stack([np.cos(angle), 0.0 * angle, np.sin(angle)], axis=1)


def pyramid_points(rows, radius=0.1):
    """Rows of touching spheres, as many below as there are rows: more contacts than the motion needs."""
    return np.array(
        [
            (2 * radius * (k - 0.5 * (rows - level - 1)), 0.0, radius * (1 + np.sqrt(3.0) * level))
            for level in range(rows)
            for k in range(rows - level)
        ]
    )


def mirrored(place, force):
    """Whether place and force are those of the mirror image."""
    flip = np.array([-1.0, 1.0, 1.0])
    order = np.lexsort((np.round(flip * place, 5) + 0.0).T)
    return (place * flip)[order], (force * flip)[order]


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
@pytest.mark.parametrize("case", ["arch of 5", "arch of 9", "pyramid"])
def test_plane_structures_of_equal_spheres_are_symmetric(case, law):
    if case == "pyramid":
        points, fixed, floor = pyramid_points(4), (), True
    else:
        points, floor = arch_points(int(case[-1])), False
        fixed = (0, len(points) - 1)
    one = forces(simulation(spheres(points, fixed, floor=floor), law), 2)
    up = np.abs(one[1]).sum(axis=1)
    assert up.max() > 0.0
    magnitude = np.linalg.norm(one[1], axis=1)
    place, force = one
    # Contacts of two moving spheres have no side of their own: compare what a mirror leaves of them.
    other_place, other_force = mirrored(place, force)
    np.testing.assert_allclose(other_place, place, atol=2e-5)
    for part in (np.linalg.norm(other_force, axis=1) - magnitude, np.abs(other_force) - np.abs(force)):
        assert np.abs(part).max() < SYMMETRIC * magnitude.max()
    rng = np.random.default_rng(3)
    for _ in range(2):
        shuffled = spheres(points, fixed, order=rng.permutation(len(points)), floor=floor)
        again = forces(simulation(shuffled, law), 2)
        np.testing.assert_allclose(again[0], place, atol=2e-5)
        assert np.abs(np.abs(again[1]) - np.abs(force)).max() < SYMMETRIC * magnitude.max()


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
def test_solver_and_history_do_not_show_in_the_forces(law):
    """A pyramid leaves much open: the solvers' own forces differ, the unique ones do not.

    Under Coulomb's law its lower corners are held: a free one creeps, in more than one way that solves the step exactly
    (Gauss-Seidel finds another than APGD, both to 1e-12), and each motion has forces of its own.
    """
    scene = spheres(pyramid_points(4), (0, 3) if law == "coulomb" else (), floor=True)
    solvers = [tb.SolverAPGD(), tb.SolverAPGD(tolerance=1e-11), SolverGaussSeidel(tolerance=1e-7)]
    solvers += [SolverInteriorPoint()] if law == "relaxed" else []
    plain, unique = [], []
    for solver in solvers:
        for warm in (True, False):
            own = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3, law=law, warm_start=warm), solver=solver)
            for _ in range(3):
                own.step()
            plain.append(own.contact_forces().force)
            unique.append(forces(simulation(scene, law, solver=solver, warm_start=warm)))
    spread = max(np.abs(f - plain[0]).max() for f in plain) / np.abs(plain[0]).max()
    assert spread > 1e-3
    for other in unique[1:]:
        same(unique[0], other)


def test_the_motion_is_the_same_and_momentum_is_kept():
    """Two runs of a shaken table, with and without the option."""
    results = []
    for wanted in (False, True):
        scene = table()
        options = tb.StepOptions(dt=1e-3, unique_forces=wanted)
        sim = tb.Simulation(scene.build(), options=options, solver=tb.SolverAPGD(tolerance=1e-12))
        sim.set_state(velocity=[(0, 0, 0), (0.5, 0.2, 0.0)])
        sim.run(until=0.05)
        results.append((sim.velocities()[1], sim.positions()[1]))
    np.testing.assert_allclose(results[1][0], results[0][0], atol=1e-10)
    np.testing.assert_allclose(results[1][1], results[0][1], atol=1e-11)


def test_forces_explain_the_motion():
    """What the contacts give is the change of momentum, to rounding."""
    sim = simulation(table())
    sim.set_state(velocity=[(0, 0, 0), (0.5, 0.2, 0.0)])
    before = sim.velocities()[1]
    report = sim.step()
    assert report.unique_forces
    force, _ = sim.contact_forces().per_body()
    mass = sim.model.body_mass[1]
    push = mass * (sim.velocities()[1] - before) / 1e-3 + np.array([0, 0, 9.81 * mass])
    np.testing.assert_allclose(force[1], push, atol=1e-9 * 9.81 * mass)


def test_a_sliding_cube_is_unique_too():
    """Friction of every corner lies against the slip, mu times its load; the load tips towards the front."""
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(name="wood", friction=0.3))
    scene.add_static(tb.HalfSpace(), material="wood")
    scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=(0, 0, 0.5), velocity=(2.0, 0, 0), material="wood")
    place, force = forces(simulation(scene), 3)
    np.testing.assert_allclose(force[:, 0], -0.3 * force[:, 2], rtol=1e-8)
    front = place[:, 0] > 0.1 + place[:, 0].min()
    np.testing.assert_allclose(force[front, 2], 9.81 * (0.25 + 0.15 / 2), rtol=1e-6)
    np.testing.assert_allclose(force[~front, 2], 9.81 * (0.25 - 0.15 / 2), rtol=1e-6)


@pytest.mark.slow
def test_a_pile_of_two_hundred_spheres_under_the_relaxed_law():
    """Velocities of the relaxed law are unique, so its unique forces are the same from two solvers."""
    rng = np.random.default_rng(0)
    scene = tb.SceneBuilder()
    stone = scene.add_material(tb.Material(friction=0.4))
    scene.add_static(tb.open_box(inner=(0.62, 0.62, 3.0)), material=stone)
    points = tb.grid_points((5, 5, 8), 0.12, origin=(0, 0, 0.07), jitter=0.004)
    scene.add_spheres(rng.uniform(0.04, 0.055, 200), density=2500.0, material=stone, position=points)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3, law="relaxed"))
    sim.run(until=2.5)
    problem = sim.last.problem
    exact = tb.unique_impulses(problem, SolverInteriorPoint().solve(problem, law="relaxed"))
    slow = tb.SolverAPGD(tolerance=1e-12, max_iterations=300_000).solve(problem, law="relaxed")
    other = tb.unique_impulses(problem, slow, sharpen=False)
    assert exact.converged and other.converged
    assert exact.sliding > 50 and exact.sticking > 100 and max(exact.error, other.error) < 1e-9
    # The direction of a slow slip is known to the error of v over the slip, at worst 1e-12 over the threshold 1e-7.
    assert np.abs(other.impulse - exact.impulse).max() < 1e-4 * np.abs(exact.impulse).max()
