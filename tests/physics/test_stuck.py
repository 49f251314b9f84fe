"""Overlaps that nothing can take back: the step says so soon, stays sane, and gives no energy."""

import warnings

import numpy as np
import pytest

import tumble as tb
from tumble.enums import Law
from tumble.solve.interior_point import SolverInteriorPoint
from tumble.solve.reach import least_motion, out_of_reach


def beams(depth, ends):
    """Two beams on a line, hinged to each other, and to the ground at their ends, `depth` deep in the floor."""
    scene, z = tb.SceneBuilder(), 0.05 - depth
    scene.add_static(tb.HalfSpace())
    a, b = (scene.add_body(tb.Box((0.4, 0.1, 0.1)), mass=1.0, position=(0.4 * k, 0, z)) for k in range(2))
    for x, one, other in ((-0.2, None, a), (0.2, a, b), (0.6, b, None))[0 if ends else 1 : 3 if ends else 2]:
        scene.add_joint("revolute", one, other, anchor=(x, 0, z), axis=(0, 1, 0))
    return scene


def vice(depth, _):
    """A box between two static ones that leave it too little room."""
    scene = tb.SceneBuilder(gravity=(0, 0, -9.81))
    for side in (-1, 1):
        scene.add_static(tb.Box((1, 1, 4)), position=(side * (0.55 - depth), 0, 0))
    scene.add_body(tb.Box((0.1, 0.1, 0.1)), mass=1.0, position=(0, 0, 0))
    return scene


def crusher(depth, _):
    """A plate comes down on a box on the floor and does not stop."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_kinematic(tb.Box((1, 1, 0.1)), position=(0, 0, 0.151), velocity=(0, 0, -depth))
    scene.add_body(tb.Box((0.1, 0.1, 0.1)), mass=1.0, position=(0, 0, 0.05))
    return scene


@pytest.mark.parametrize("integrator", ["euler", "moreau"])
@pytest.mark.parametrize("depth", [1e-4, 3e-2])
@pytest.mark.parametrize("make", [beams, vice, crusher], ids=lambda f: f.__name__)
def test_what_is_stuck_stays_sane(make, depth, integrator):
    sim = tb.Simulation(make(depth, True).build(), options=tb.StepOptions(dt=2e-3, integrator=integrator))
    start, most, iterations, hopeless = None, 0.0, 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TumbleWarning)
        for _ in range(25):
            report = sim.step()
            energy = report.kinetic_energy + report.potential_energy
            start = energy if start is None else start
            most, iterations = max(most, energy - start), iterations + report.iterations
            hopeless += report.status == "out_of_reach"
            assert report.largest_speed < 2.0
            assert np.abs(sim.last.impulse).max(initial=0.0) < 1e7
    driven = 2.0 * depth**2 if make is crusher else 0.0  # the box at twice the speed of the plate
    lifted = 1e-4 if make is beams else 1e-9  # the beams by 5 um: as far as the hinges let them
    assert most < driven + lifted
    assert iterations < 25 * 12_000
    if make is vice and integrator == "euler":
        assert hopeless > 0


def test_a_vice_is_named_once():
    sim = tb.Simulation(vice(1e-4, None).build(), options=tb.StepOptions(dt=2e-3))
    with pytest.warns(tb.TumbleWarning, match="no impulses take all overlaps back") as said:
        for _ in range(5):
            report = sim.step()
    assert len(said) == 1
    assert report.certificate_shift >= 0.9e-4  # the overlap that is left is booked


@pytest.mark.parametrize("depth", [1e-4, 3e-3, 3e-2])
def test_a_mechanism_with_no_way_out_recovers_no_more_than_it_moves(depth):
    """Its joints and friction take what the contacts push, up to 4 kJ a step: nothing of that was recovered."""
    sim = tb.Simulation(beams(depth, True).build(), options=tb.StepOptions(dt=2e-3))
    fastest = 0.1  # [m/s], of recovery for these beams; their ends move 2.5 times as fast as their middles
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TumbleWarning)
        reports = [sim.step() for _ in range(25)]
    assert max(r.largest_speed for r in reports) < fastest
    for r in reports:
        assert -1e-12 <= r.work_recovery < 0.5 * 2.0 * fastest**2


def test_a_free_mechanism_is_pushed_out_of_the_floor():
    """The same beams without the hinges at their ends: nothing holds them, and nothing is given up."""
    sim = tb.Simulation(beams(4e-4, False).build(), options=tb.StepOptions(dt=2e-3))
    reports = [sim.step() for _ in range(150)]
    assert all(r.status == "converged" for r in reports)
    assert reports[-1].largest_overlap < 1e-5


def pile(count, seed):
    """Boxes and balls that have just met, as a problem."""
    rng, scene = np.random.default_rng(seed), tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    for k in range(count):
        shape = tb.Sphere(0.05) if k % 2 else tb.Box((0.1, 0.1, 0.1))
        place = (*(0.02 * rng.normal(size=2)), 0.0499 + 0.0998 * k)
        scene.add_body(shape, mass=float(10.0 ** rng.uniform(-1, 1)), position=place, velocity=rng.normal(size=3))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3, law="relaxed"))
    sim.step()
    return sim.last.problem


@pytest.mark.parametrize("seed", range(4))
def test_the_least_motion_is_below_that_of_the_solution_for_any_impulses(seed):
    """And reached by the solution's own; no problem that has a solution is out of reach for any of them."""
    problem, rng = pile(6, seed), np.random.default_rng(seed)
    found = SolverInteriorPoint(tolerance=1e-10).solve(problem, law=Law.RELAXED)
    product = np.zeros_like(problem.bias)
    problem.operator.product(found.impulse, product)
    n = problem.count
    moved = np.sqrt(np.sum(found.impulse[:, :n] * product[:, :n]))
    assert least_motion(problem, found.impulse) == pytest.approx(moved, rel=1e-5)
    for _ in range(100):
        p = rng.normal(size=problem.bias.shape)
        p[0] = np.hypot(p[1], p[2]) / np.maximum(problem.friction, 1e-9) + np.abs(p[0])
        p[:, n:] = 0.0
        p = found.impulse + 10.0 ** rng.uniform(-6, 2) * np.abs(found.impulse).max() * p
        assert least_motion(problem, p) <= moved * (1.0 + 1e-6)
        assert not out_of_reach(problem, p)
