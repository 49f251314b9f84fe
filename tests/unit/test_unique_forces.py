"""Unique forces against their definition, given to another solver, and bad input."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import tumble as tb
from tests.naive.problems import random_problem, slack
from tumble.cli import main
from tumble.enums import Law, Status
from tumble.errors import OptionsError, ProblemError
from tumble.problem.rolling import RollingProblem
from tumble.solve import unique_forces
from tumble.solve.base import Solution
from tumble.solve.minimum_norm import minimum_norm
from tumble.solve.motion_rows import motion_rows
from tumble.solve.residuals import measure


def clarabel_minimum(jacobian, target, a, mu, dim=3):
    """min |g|^2, D g = target, g in K, g_i . a_i = 0 (a = 0 where the contact sticks), by an interior-point method."""
    import clarabel

    n = len(mu)
    keep = np.abs(a).sum(axis=1) > 0.0
    along = sp.block_diag([row[None, :] for row in a]).tocsr()[keep]
    cone = sp.block_diag([np.diag([m] + [1.0] * (dim - 1)) for m in mu])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    equal = sp.vstack([sp.csr_matrix(jacobian.T), along])
    rows = sp.vstack([equal, -cone]).tocsc()
    b = np.concatenate([target, np.zeros(along.shape[0]), np.zeros(dim * n)])
    cones = [clarabel.ZeroConeT(equal.shape[0])] + [clarabel.SecondOrderConeT(dim)] * n
    p = sp.identity(dim * n, format="csc")
    return np.array(clarabel.DefaultSolver(p, np.zeros(dim * n), rows, b, cones, settings).solve().x)


def sticking(seed, contacts=10, bodies=2, dim=3):
    """A problem at rest with known impulses inside the cones: u = 0, so the whole cones are open to choice."""
    matrix, _, mu, jacobian, inverse_mass, _ = random_problem(seed, contacts, bodies, dim)
    rng = np.random.default_rng(seed + 100)
    g = np.zeros((contacts, dim))
    g[:, 0] = rng.uniform(0.0, 2.0, contacts)
    g[:, 1:] = rng.normal(size=(contacts, dim - 1))
    g[:, 1:] *= (rng.uniform(0, 1, contacts) * mu * g[:, 0] / np.linalg.norm(g[:, 1:], axis=1))[:, None]
    return matrix, -matrix @ g.ravel(), mu, jacobian, inverse_mass, g


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_at_rest_against_the_definition(seed, dim):
    matrix, bias, mu, jacobian, _, g = sticking(seed, dim=dim)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu, dim=dim)
    for law in ("coulomb", "relaxed"):
        solution = tb.SolverAPGD(tolerance=1e-9).solve(problem, law=law)
        found = tb.unique_impulses(problem, solution)
        assert found.converged and found.error < 1e-11 and found.sticking == len(mu)
        x = found.impulse[:dim, : len(mu)].T
        wanted = clarabel_minimum(jacobian, jacobian.T @ g.ravel(), np.zeros_like(g), mu, dim).reshape(g.shape)
        assert np.linalg.norm(x) <= np.linalg.norm(wanted) * (1 + 1e-9)
        np.testing.assert_allclose(x, wanted, atol=1e-6 * np.abs(wanted).max())
        assert np.all(np.linalg.norm(x[:, 1:], axis=1) <= mu * x[:, 0] * (1 + 1e-12) + 1e-15)


def in_motion(seed, law, contacts=12, bodies=2):
    """A problem made such that contacts 0-3 stick, 4-7 slide and the others open, with many impulses for one motion."""
    matrix, _, mu, jacobian, *_ = random_problem(seed, contacts, bodies)
    rng = np.random.default_rng(seed + 50)
    g, u = np.zeros((contacts, 3)), np.zeros((contacts, 3))
    g[:8, 0] = rng.uniform(0.5, 2.0, 8)
    g[:4, 1:] = 0.3 * mu[:4, None] * g[:4, :1]
    u[4:, 1:] = rng.normal(size=(contacts - 4, 2))
    slip = np.linalg.norm(u[:, 1:], axis=1)
    g[4:8, 1:] = -(mu * g[:, 0] / np.maximum(slip, 1e-300))[4:8, None] * u[4:8, 1:]
    u[:, 0] = (mu * slip if law == "relaxed" else 0.0) + 0.5 * (np.arange(contacts) >= 8)
    bias = u.ravel() - matrix @ g.ravel()
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    impulse = g.T.copy()
    residuals = measure(problem, impulse, law)
    assert residuals.natural_map < 1e-14
    solution = Solution(impulse, Law(law), "made", Status.CONVERGED, 0, 0, residuals, np.zeros(1))
    return problem, solution, jacobian, slack(matrix, bias, g.ravel(), mu, law)[0], mu


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
@pytest.mark.parametrize("seed", range(3))
def test_in_motion_against_the_definition(seed, law):
    problem, solution, jacobian, a, mu = in_motion(seed, law)
    found = tb.unique_impulses(problem, solution)
    assert found.converged and found.natural_map < 1e-11 and found.error < 1e-12
    assert (found.sticking, found.sliding, found.open) == (4, 4, 4)
    a[:4] = 0.0
    target = jacobian.T @ solution.impulse.T.ravel()
    wanted = clarabel_minimum(jacobian, target, a, mu).reshape(-1, 3)
    np.testing.assert_allclose(found.impulse.T, wanted, atol=1e-6 * np.abs(wanted).max())
    assert np.linalg.norm(found.impulse) < np.linalg.norm(solution.impulse)


def test_the_order_of_contacts_does_not_matter():
    matrix, bias, mu, *_ = sticking(7)
    order = np.random.default_rng(1).permutation(len(mu))
    rows = (3 * order[:, None] + np.arange(3)).ravel()
    one = tb.ConeProblem.from_matrix(matrix, bias, mu)
    other = tb.ConeProblem.from_matrix(matrix[np.ix_(rows, rows)], bias[rows], mu[order])
    found = [tb.unique_impulses(p, tb.SolverAPGD().solve(p)).impulse[:, : len(mu)] for p in (one, other)]
    np.testing.assert_allclose(found[1], found[0][:, order], atol=1e-9 * np.abs(found[0]).max())


def test_any_solution_gives_the_same():
    """The answer does not depend on which of the many impulses one starts from."""
    matrix, bias, mu, *_ = sticking(3)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(3):
        guess = np.abs(rng.normal(size=(3, len(mu))))
        found.append(tb.unique_impulses(problem, tb.SolverAPGD(tolerance=1e-10).solve(problem, guess=guess)))
    for other in found[1:]:
        np.testing.assert_allclose(other.impulse, found[0].impulse, atol=1e-9 * np.abs(found[0].impulse).max())


def test_minimum_norm_of_cones_and_intervals():
    """One equation: y along A, cut by the interval; the cone takes the rest."""
    columns = sp.csr_matrix(np.array([[1.0], [0.0], [1.0], [0.0]]))
    found = minimum_norm(columns, np.array([0.5, -0.1]), np.array([1.0]), 1e-13, 100)
    np.testing.assert_allclose(found.y, [[0.9, 0.0], [0.1, 0.0]], atol=1e-12)
    assert found.error < 1e-12
    impossible = minimum_norm(columns, np.array([0.5, -0.1]), np.array([-1.0]), 1e-13, 100)
    assert impossible.error > 0.5  # the cone cannot pull, the interval gives a tenth: said, not hidden


@pytest.mark.parametrize("kind", ["contacts", "matrix"])
def test_motion_rows_are_a_root_of_the_operator(kind):
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Box((1, 1, 1)), mass=2.0, position=(0, 0, 0.5))
    scene.add_body(tb.Sphere(0.2), mass=1.0, position=(0, 0, 1.2))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    sim.step()
    problem = sim.last.problem
    matrix = problem.operator.to_sparse().toarray()
    if kind == "matrix":
        problem = tb.ConeProblem.from_matrix(matrix, np.zeros(len(matrix)), np.ones(problem.count))
    rows = motion_rows(problem)
    np.testing.assert_allclose((rows @ rows.T).toarray(), matrix, atol=1e-12 * np.abs(matrix).max())
    rank = np.linalg.matrix_rank(matrix, 1e-10)
    assert rows.shape[1] == rank if kind == "matrix" else rank <= rows.shape[1] <= 12


def test_jointed_bodies():
    """A plank hinged to a post stands on two feet; a motor at its bound keeps its torque."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    body = [tb.Placed(tb.Box((1.0, 0.4, 0.05)), position=(0, 0, 0.3))]
    body += [tb.Placed(tb.Sphere(0.05), position=(x, y, 0.05)) for x in (-0.4, 0.4) for y in (-0.15, 0.15)]
    cart = scene.add_body(body, mass=4.0, name="cart")
    arm = scene.add_body(tb.Capsule(0.03, 0.3), mass=1.0, position=(0, 0, 0.6), name="arm")
    scene.add_joint("revolute", cart, arm, anchor=(0, 0, 0.4), axis=(0, 1, 0), name="hinge")
    scene.add_motor("hinge", mode="speed", target=5.0, maximum=0.2)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3, unique_forces=True))
    for _ in range(3):
        report = sim.step()
    assert report.unique_forces and report.unique_error < 1e-10
    force = sim.contact_forces()
    left = force.force[force.point[:, 1] < 0, 2]
    right = force.force[force.point[:, 1] > 0, 2]
    np.testing.assert_allclose(left, right, rtol=1e-8)


def test_nothing_in_contact():
    scene = tb.SceneBuilder()
    scene.add_body(tb.Sphere(0.1), mass=1.0)
    report = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3, unique_forces=True)).step()
    assert report.unique_forces and report.unique_iterations == 0


def test_a_bad_solution_has_no_unique_forces():
    """Impulses that solve nothing: no others within the law carry their motion, and this is said."""
    problem, solution, *_ = in_motion(0, "coulomb")
    bad = 0.5 * solution.impulse
    bad[0] += 1.0
    residuals = measure(problem, bad, "coulomb")
    bad = replace(solution, impulse=bad, residuals=replace(residuals, natural_map=1e-9))
    found = tb.unique_impulses(problem, bad, sharpen=False)
    assert found.status == Status.STALLED and (found.error > 1e-8 or found.natural_map > 1e-7)
    np.testing.assert_array_equal(found.impulse, bad.impulse)


def test_a_failure_in_a_run_is_seen(monkeypatch):
    monkeypatch.setattr(unique_forces, "MOVED", -1.0)
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 0.1))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3, unique_forces=True))
    with pytest.warns(tb.TumbleWarning, match="step 1: the unique forces were not found"):
        result = sim.run(until=0.003)
    assert result.not_unique == 3 and "unique forces were not found in 3 of 3 steps" in result.summary()
    assert not result.reports["unique_forces"].any()
    assert sim.contact_forces().force[0, 2] == pytest.approx(9.81)  # the solver's own


def test_refused():
    rolling = RollingProblem(sp.identity(5, format="csr"), np.zeros(5), np.array([0.5]), np.array([0.5]))
    with pytest.raises(ProblemError, match=r"unique forces: are for contacts with dry friction.*Leave out rolling"):
        tb.unique_impulses(rolling, None)
    with pytest.raises(OptionsError, match=r"StepOptions\.unique_forces"):
        tb.StepOptions(dt=1e-3, unique_forces="yes")


def test_command_line(tmp_path, capsys):
    scene = tmp_path / "cube.toml"
    scene.write_text(
        "[step]\ndt = 1e-3\nunique_forces = true\n[run]\nuntil = 0.01\n[[container]]\ninner = [3.0, 3.0, 3.0]\n"
        '[[body]]\nshape = { type = "box", size = [1, 1, 1] }\nmass = 1.0\nposition = [0, 0, 0.5]\n'
    )
    out = tmp_path / "cube.h5"
    assert main(["run", str(scene), "--out", str(out), "--dump-problem", "5", "--contacts", "--quiet"]) == 0
    with tb.Trajectory(out) as run:
        assert run.reports["unique_forces"].all()
    capsys.readouterr()
    impulses = tmp_path / "g.npy"
    problem = tmp_path / "cube.step000005.hdf5"
    assert main(["solve", str(problem), "--unique-forces", "--json", "--out", str(impulses)]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["unique_forces"]["status"] == "converged" and row["unique_forces"]["sticking"] == 4
    normal = np.load(impulses)[::3]
    np.testing.assert_allclose(normal, 9.81e-3 / 4, rtol=1e-8)
    assert main(["solve", str(tmp_path), "--unique-forces"]) == 2
