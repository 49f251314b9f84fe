"""Rolling and spinning friction against closed forms, and against an interior point on the same problem."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tumble as tb
from tumble.errors import OptionsError, ProblemError, SceneError
from tumble.kernels.cones import project_rolling, rolling_shift
from tumble.problem.rolling import RollingProblem
from tumble.solve.gauss_seidel import SolverGaussSeidel
from tumble.solve.interior_point import SolverInteriorPoint

G, RADIUS = 9.81, 0.1


def ball(h: float, *, law: str = "coulomb", speed: float = 1.0, spin: float = 0.0, **laws: float) -> tb.Simulation:
    """A ball on a floor, rolling along x and spinning about z."""
    scene = tb.SceneBuilder()
    material = tb.Material(friction=0.5, **laws)
    scene.add_static(tb.HalfSpace(), material=material)
    scene.add_body(
        tb.Sphere(RADIUS),
        density=1000.0,
        position=(0.0, 0.0, RADIUS),
        velocity=(speed, 0.0, 0.0),
        angular_velocity=(0.0, speed / RADIUS, spin),
        material=material,
        name="ball",
    )
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=h, law=law), solver=tb.SolverAPGD(tolerance=1e-10))


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
def test_a_ball_stops_after_seven_tenths_of_v2_r_over_rho_g(law):
    rho = 0.02
    distance = 7.0 * RADIUS / (10.0 * rho * G)
    errors = []
    for h in (4e-3, 2e-3):
        sim = ball(h, law=law, rolling_friction=rho)
        for _ in range(round(0.8 / h)):  # it stops after 0.714 s
            sim.step()
        assert np.abs(sim.state.velocity[1]).max() < 1e-9
        errors.append(abs(sim.positions()[1, 0] - distance))
    # Euler's sum of a falling speed is short by h v0 / 2, no more; the relaxed law by something of the same order.
    assert errors[0] <= 4e-3 * 0.5 * 1.001 and errors[1] < 0.55 * errors[0]


def test_the_floor_turns_with_less_than_its_friction_can_hold():
    """At rest under a torque below rho N nothing rolls, above it the ball does."""
    for factor, moves in ((0.99, False), (1.01, True)):
        scene = tb.SceneBuilder()
        material = tb.Material(friction=0.5, rolling_friction=0.01)
        scene.add_static(tb.HalfSpace(), material=material)
        scene.add_body(tb.Sphere(RADIUS), mass=2.0, position=(0.0, 0.0, RADIUS), material=material)
        torque = np.zeros((2, 3))
        torque[1, 1] = factor * 0.01 * 2.0 * G
        scene.add_force(lambda t, x, q, v, w, torque=torque: (np.zeros((2, 3)), torque))
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(tolerance=1e-12))
        for _ in range(100):
            sim.step()
        assert (abs(sim.state.velocity[1, 0]) > 1e-6) == moves


def test_spin_decays_at_sigma_m_g_over_inertia():
    h, sigma, start = 2e-3, 0.01, 30.0
    sim = ball(h, speed=0.0, spin=start, spinning_friction=sigma)
    rate = sigma * G / (0.4 * RADIUS**2)
    for k in range(1, 101):
        sim.step()
        assert sim.state.spin[1, 2] == pytest.approx(start - rate * k * h, abs=1e-6)
    for _ in range(1200):
        sim.step()
    assert np.abs(sim.state.spin[1]).max() < 1e-9  # and stays at rest


def test_torques_are_reported_and_balance_the_change_of_spin():
    sim = ball(1e-3, speed=0.0, spin=30.0, spinning_friction=0.01)
    before = sim.state.spin[1].copy()
    sim.step()
    _, torque = sim.contact_forces().per_body()
    change = sim.model.body_inertia[1] * (sim.state.spin[1] - before) / 1e-3
    assert torque[1] == pytest.approx(change, abs=1e-9)
    assert torque[1, 2] == pytest.approx(-0.01 * sim.model.body_mass[1] * G, rel=1e-6)


def test_work_of_rolling_friction_is_the_energy_lost():
    sim = ball(1e-3, rolling_friction=0.02, spin=20.0, spinning_friction=0.005)
    start, lost, defect = None, 0.0, 0.0
    for _ in range(2000):
        report = sim.step()
        start = start if start is not None else report.kinetic_energy - report.work_friction
        lost += report.work_friction
        defect += abs(report.energy_defect)
    assert lost == pytest.approx(-start, rel=1e-6) and defect < 1e-9 * start


def pile(law: str, **laws: float) -> tb.Simulation:
    """Spheres settling in a box, with rolling friction."""
    scene = tb.SceneBuilder()
    material = tb.Material(friction=0.4, **laws)
    scene.add_static(tb.HalfSpace(), material=material)
    for normal in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)):
        scene.add_static(tb.HalfSpace(normal=normal, offset=-0.25), material=material)
    points = tb.grid_points((2, 2, 6), 0.24, origin=(0.0, 0.0, 0.12), jitter=0.018, seed=1)
    scene.add_spheres(RADIUS, position=points, density=1000.0, material=material)
    sim = tb.Simulation(
        scene.build(),
        options=tb.StepOptions(dt=2e-3, law=law),
        solver=tb.SolverAPGD(tolerance=1e-9, max_iterations=20000),
    )
    for _ in range(200):
        sim.step()
    return sim


def test_the_relaxed_problem_is_that_of_an_interior_point():
    pytest.importorskip("clarabel")
    sim = pile("relaxed", rolling_friction=0.01)
    problem = sim.last.problem
    assert problem.is_rolling and problem.count > 30
    five = RollingProblem.from_contacts(problem)
    other = SolverInteriorPoint(tolerance=1e-9).solve(five, law="relaxed")
    ours = sim.last.solution
    # Velocities are unique, so N g is; impulses need not be.
    mine = (five.matrix @ ours.impulse[[0, 1, 2, 4, 5], : problem.count].T.ravel()) + five.bias
    theirs = (five.matrix @ other.impulse.T.ravel()) + five.bias
    assert np.abs(mine - theirs).max() < 1e-6 * np.abs(five.bias).max()
    assert ours.residuals.objective == pytest.approx(other.residuals.objective, rel=1e-8)


def test_the_certificate_and_the_map_hold_for_coulombs_law():
    sim = pile("coulomb", rolling_friction=0.01, spinning_friction=0.005)
    r, g, n = sim.last.solution.residuals, sim.last.solution.impulse, sim.last.problem.count
    assert r.natural_map < 1e-8
    mu, sigma, rho = sim.last.problem.friction[:, :n]
    slack = 1.0 + 1e-12
    assert (np.hypot(g[1, :n], g[2, :n]) <= slack * mu * g[0, :n]).all()
    assert (np.abs(g[3, :n]) <= slack * sigma * g[0, :n]).all()
    assert (np.hypot(g[4, :n], g[5, :n]) <= slack * rho * g[0, :n]).all()
    # u_n >= 0 and g_n u_n = 0 to the tolerance: no lift-off as under the relaxed law
    assert r.penetration_speed < 1e-6 and r.complementarity_error < 1e-8


def test_product_and_matrix_agree_with_joints_and_without():
    for jointed in (False, True):
        scene = tb.SceneBuilder()
        material = tb.Material(friction=0.4, rolling_friction=0.01, spinning_friction=0.003, compliance=1e-6)
        scene.add_static(tb.HalfSpace(), material=material)
        for k in range(4):
            scene.add_body(
                tb.Sphere(RADIUS), density=1000.0, position=(0.1995 * k, 0.0, 0.0999), material=material, name=f"s{k}"
            )
        if jointed:
            scene.add_joint("revolute", "s0", "s1", anchor=(0.1, 0.0, 0.1), axis=(0.0, 1.0, 0.0), limits=(-1e-5, 0.01))
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
        sim.step()
        problem = sim.last.problem
        n = problem.count
        x, out = np.zeros_like(problem.bias), np.zeros_like(problem.bias)
        x[:, :n] = np.random.default_rng(0).normal(size=(6, n))
        x[1:, sim.last.contacts.count : n] = 0.0
        problem.operator.product(x, out)
        matrix = problem.operator.to_sparse()
        assert out[:, :n].T.ravel() == pytest.approx(matrix @ x[:, :n].T.ravel(), rel=1e-9, abs=1e-12)


def test_a_restart_keeps_the_torques(tmp_path):
    sim = ball(1e-3, rolling_friction=0.02, spin=20.0, spinning_friction=0.005)
    for _ in range(20):
        sim.step()
    sim.save_checkpoint(tmp_path / "a.h5")
    again = ball(1e-3, rolling_friction=0.02, spin=20.0, spinning_friction=0.005)
    again.load_checkpoint(tmp_path / "a.h5")
    for _ in range(20):
        sim.step()
        again.step()
    assert sim.state.sha256() == again.state.sha256()


numbers = st.floats(-10.0, 10.0)
parts = st.tuples(numbers, numbers, numbers, numbers, numbers, numbers)
rates = st.one_of(st.just(0.0), st.floats(1e-3, 3.0))


@given(parts, rates, rates, rates)
def test_the_projection_is_the_nearest_point(x, mu, sigma, rho):
    """p in K, p - x in the dual cone, and the two at right angles: the three conditions of the nearest point."""
    p = np.array(project_rolling(*x, mu, sigma, rho))
    size = 1.0 + np.abs(x).max() ** 2
    assert p[0] >= 0.0
    for part, bound in ((p[1:3], mu), (p[3:4], sigma), (p[4:6], rho)):
        assert np.linalg.norm(part) <= bound * p[0] * (1.0 + 1e-12) + 1e-15
    away = p - np.array(x)
    assert away[0] >= rolling_shift(*away[1:], mu, sigma, rho) - 1e-11 * size
    assert abs(p @ away) <= 1e-11 * size


def test_bad_input():
    with pytest.raises(SceneError, match="rolling_friction"):
        tb.Material(friction=0.0, rolling_friction=0.01)
    with pytest.raises(SceneError, match="spinning_friction"):
        tb.Material(spinning_friction=-1.0)
    with pytest.raises(SceneError, match="rolling_friction"):
        tb.Material(rolling_friction=np.inf)
    scene = tb.SceneBuilder()
    a, b = scene.add_material(tb.Material(name="a")), scene.add_material(tb.Material(name="b"))
    with pytest.raises(SceneError, match="needs friction"):
        scene.set_pair(a, b, friction=0.0, rolling_friction=0.01)
    sim = ball(1e-3, rolling_friction=0.01)
    with pytest.raises(OptionsError, match=r"rolling friction.*SolverAPGD"):
        tb.Simulation(sim.model, options=sim.options, solver=SolverGaussSeidel())
    sim.solver = SolverGaussSeidel()
    with pytest.raises(ProblemError, match=r"rolling friction.*SolverAPGD"):
        sim.step()


def test_a_problem_can_be_dumped_and_solved_unless_it_spins(tmp_path):
    sim = ball(1e-3, rolling_friction=0.01)
    sim.run(until=0.01, save=tb.Save(path=tmp_path / "a.h5"), dump_problems=[5], progress=False)
    stored = tb.read_problem(tmp_path / "a.step000005.hdf5").problem
    assert isinstance(stored, RollingProblem) and stored.count == 1
    with pytest.raises(ProblemError, match="SolverInteriorPoint"):
        tb.SolverAPGD().solve(stored)
    sim = ball(1e-3, rolling_friction=0.01, spinning_friction=0.01)
    with pytest.raises(OptionsError, match="spinning"):
        sim.run(until=0.01, save=tb.Save(path=tmp_path / "b.h5"), dump_problems=[5], progress=False)
