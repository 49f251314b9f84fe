"""Solvers with matrices: against each other, by hand, in other units, with bounded rows, on public problems."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import tumble as tb
from tests.naive.mechanisms import simulate
from tests.naive.problems import natural_map, random_problem
from tests.unit.test_joints import jointed_contacts
from tumble import (
    SolverAPGD,
    SolverAuto,
    SolverFixedPoint,
    SolverInteriorPoint,
    SolverLemke,
    SolverNSGS,
    SolverPolyhedralQP,
)
from tumble.enums import Law, Status
from tumble.errors import OptionsError, ProblemError
from tumble.problem.cone_problem import contact_first
from tumble.solve.rolling import project_rolling
from tumble.solvers import SOLVERS, RollingProblem, facets, make_solver, measure_rolling

BOTH = ["admm", "auto", "fixed_point", "interior_point", "ncp_interior_point", "nsgs", "semismooth_newton"]
"""Solvers of both laws with round cones."""


def problem_of(seed, dim=3, **options):
    matrix, bias, mu, *_ = random_problem(seed, dim=dim, **options)
    return tb.ConeProblem.from_matrix(matrix, bias, mu, dim=dim), matrix, bias, mu


def variants(name):
    return [{"form": "dual"}, {"form": "primal"}] if name == "interior_point" else [{}]


# ---------------------------------------------------------------------- against each other


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("name", BOTH)
def test_relaxed_law_has_one_optimum(name, dim):
    for seed in range(5):
        problem, matrix, *_ = problem_of(seed, dim)
        reference = SolverAPGD(tolerance=1e-11, max_iterations=50_000).solve(problem, law="relaxed")
        for options in variants(name):
            found = make_solver(name, tolerance=1e-9, **options).solve(problem, law="relaxed")
            assert found.converged and found.law == Law.RELAXED and found.solver == name, (seed, found)
            assert found.residuals.objective == pytest.approx(reference.residuals.objective, rel=1e-8, abs=1e-12)
            d = contact_first(found.impulse - reference.impulse, dim, problem.count)
            assert np.sqrt(max(0.0, d @ matrix @ d)) <= 1e-6 * np.sqrt(abs(reference.residuals.objective))


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("name", BOTH)
def test_coulomb_law_by_an_independent_measure(name, dim):
    for seed in range(5):
        problem, matrix, bias, mu = problem_of(seed, dim, contacts=6, bodies=6, friction=0.3)
        for options in variants(name):
            found = make_solver(name, tolerance=1e-8, **options).solve(problem, law="coulomb")
            assert found.converged and found.law == Law.COULOMB, (seed, found.residuals.natural_map)
            g = contact_first(found.impulse, dim, problem.count)
            assert natural_map(matrix, bias, g, mu, "coulomb", dim) <= 1.01e-8


def test_by_hand():
    """One step of a ball in the plane (see test_solvers); flat sides change nothing in the plane."""
    problem = tb.ConeProblem.from_matrix(np.diag([1.0, 3.5]), [-0.0981, 2.0], [0.2], dim=2)
    for name in SOLVERS:
        more = {"omega": 0.9} if name == "jacobi" else {}
        solver = make_solver(name, tolerance=1e-9, **more)
        if name != "polyhedral_qp":
            found = solver.solve(problem, law="coulomb")
            assert found.converged, name
            np.testing.assert_allclose(found.impulse[:2, 0], [0.0981, -0.01962], atol=1e-8)
        found = solver.solve(problem, law="relaxed")
        assert found.converged, name
        np.testing.assert_allclose(found.impulse[:2, 0], [0.436930, -0.087386], atol=1e-6)


@given(seed=st.integers(0, 2**31), law=st.sampled_from(list(Law)))
@settings(max_examples=150)
def test_one_contact_is_solved_by_one_sweep(seed, law):
    """The local solver of nonsmooth Gauss-Seidel is exact, for any block, friction and direction."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-1.5, 1.5, (3, 1))
    problem = tb.ConeProblem.from_matrix(a @ a.T, rng.normal(size=3), [10.0 ** rng.uniform(-3, 1)])
    found = SolverNSGS(tolerance=1e-11, check_every=1).solve(problem, law=law)
    assert found.converged and found.iterations <= 1


# ---------------------------------------------------------------------- units, bounded rows, joints, contacts


@pytest.mark.parametrize("law", list(Law))
@pytest.mark.parametrize("name", [*BOTH, "lemke"])
def test_units_do_not_matter(name, law):
    matrix, bias, mu, *_ = random_problem(9, contacts=6, bodies=6, friction=0.4)
    counts = []
    for mass in (1e-6, 1.0, 1e6):
        for speed in (1e-6, 1e6):
            problem = tb.ConeProblem.from_matrix(matrix / mass, bias * speed, mu)
            counts.append(make_solver(name, tolerance=1e-7).solve(problem, law=law).iterations)
    assert max(counts) <= 1.1 * min(counts), counts


def bounded_problem(seed, scale=1.0):
    """Cones, a frictionless contact and intervals, tied together."""
    matrix, bias, mu, *_ = random_problem(seed, contacts=8, bodies=5, friction=0.4)
    for block in (1, 6):  # a bounded row has no tangents
        rows = [3 * block + 1, 3 * block + 2]
        matrix[rows], matrix[:, rows], bias[rows] = 0.0, 0.0, 0.0
    problem = tb.ConeProblem.from_matrix(matrix, scale * bias, mu)
    problem.group.friction[[1, 6]] = -0.3 * scale * np.abs(bias).max()
    problem.group.friction[4] = 0.0
    return problem


@pytest.mark.parametrize("law", list(Law))
@pytest.mark.parametrize("name", BOTH)
def test_bounded_rows(name, law):
    for seed in range(4):
        problem = bounded_problem(seed)
        reference = SolverAPGD(tolerance=1e-10, max_iterations=50_000).solve(problem, law=law)
        for options in variants(name):
            found = make_solver(name, tolerance=1e-8, **options).solve(problem, law=law)
            assert found.converged, (seed, found.residuals.natural_map)
            mu = problem.friction
            assert np.all(np.abs(found.impulse[0, mu < 0]) <= -mu[mu < 0])
            assert np.all(found.impulse[1:, mu <= 0] == 0.0)
            if law == Law.RELAXED:
                assert found.residuals.objective == pytest.approx(reference.residuals.objective, rel=1e-8)


def test_bounds_scale_with_the_units():
    counts = [make_solver("ncp_interior_point").solve(bounded_problem(1, s)).iterations for s in (1e-6, 1.0, 1e6)]
    assert max(counts) <= 1.1 * min(counts)


def test_jointed_bodies():
    sim = simulate(jointed_contacts(), 1e-3)
    for _ in range(20):
        sim.step()
    problem = sim.last.problem
    assert problem.friction[: problem.count].min() < 0.0
    reference = SolverAPGD(tolerance=1e-10).solve(problem, law="relaxed")
    for name in BOTH:
        if name == "nsgs":
            with pytest.raises(ProblemError, match=r"cannot take jointed bodies.*SolverAPGD"):
                make_solver(name).solve(problem)
            continue
        for options in variants(name):
            found = make_solver(name, tolerance=1e-8, **options).solve(problem, law="relaxed")
            assert found.converged, (name, found.residuals.natural_map)
            assert found.residuals.objective == pytest.approx(reference.residuals.objective, rel=1e-7)
        assert make_solver(name, tolerance=1e-6).solve(problem, law="coulomb").converged, name
    with pytest.raises(ProblemError, match=r"bounded rows.*SolverAPGD"):
        facets(problem, 8)


def test_contacts_of_a_scene_and_a_simulation():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    for k in range(3):
        scene.add_body(
            tb.Box((0.2, 0.2, 0.1)), density=500.0, position=(0.01 * k, 0, 0.05 + 0.1 * k), velocity=(1, 0, 0)
        )
    model = scene.build()
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3), solver=SolverAuto())
    for _ in range(3):
        report = sim.step()
    assert report.solver == "auto"
    problem = sim.last.problem
    reference = SolverAPGD(tolerance=1e-10).solve(problem, law="relaxed")
    for name in BOTH:
        tolerance = 1e-6 if name == "nsgs" else 1e-8  # sweeps are slow where four points carry a box
        for options in variants(name):
            found = make_solver(name, tolerance=tolerance, **options).solve(problem, law="relaxed")
            assert found.converged, name
            assert found.residuals.objective == pytest.approx(reference.residuals.objective, rel=tolerance)
        assert make_solver(name, tolerance=1e-6).solve(problem, law="coulomb").converged


# ---------------------------------------------------------------------- honesty and bad input


@pytest.mark.parametrize("law", list(Law))
@pytest.mark.parametrize("name", BOTH)
def test_an_unfinished_run_says_so(name, law):
    problem, matrix, bias, mu = problem_of(3)
    options = {"seconds": 1e-9} if name == "auto" else {}
    found = make_solver(name, tolerance=0.0, max_iterations=1, **options).solve(problem, law=law)
    assert not found.converged and found.status.advice
    g = contact_first(found.impulse, 3, problem.count)
    assert natural_map(matrix, bias, g, mu, law) == pytest.approx(found.residuals.natural_map, rel=1e-6)
    assert np.all(np.hypot(found.impulse[1], found.impulse[2]) <= mu * found.impulse[0] * (1 + 1e-14))


@pytest.mark.parametrize("name", [n for n in SOLVERS if n not in ("jacobi", "gauss_seidel")])
def test_a_problem_without_a_solution_is_not_called_solved(name):
    """A contact that no impulse can open, pressed together: infeasible."""
    problem = tb.ConeProblem.from_matrix(np.diag([0.0, 1.0, 1.0]), [-1.0, 0.1, 0.0], [0.3])
    law = "relaxed" if name == "polyhedral_qp" else "coulomb"
    found = make_solver(name, max_iterations=50).solve(problem, law=law)
    assert np.all(np.isfinite(found.impulse))
    assert not found.converged or found.residuals.natural_map <= 1e-5


@pytest.mark.parametrize("name", BOTH)
def test_empty_problems_and_bad_input(name):
    empty = tb.ConeProblem.from_matrix(np.zeros((0, 0)), [], [])
    assert make_solver(name).solve(empty).converged
    problem, *_ = problem_of(1)
    with pytest.raises(OptionsError, match="law"):
        make_solver(name).solve(problem, law="columb")
    with pytest.raises(ProblemError, match="guess"):
        make_solver(name).solve(problem, guess=np.full((3, 8), np.nan))
    with pytest.raises(ProblemError, match="must be a ConeProblem"):
        make_solver(name).solve("problem")


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: SolverInteriorPoint(form="dal"), "Did you mean 'dual'"),
        (lambda: SolverInteriorPoint(step=0.0), "step: must be > 0"),
        (lambda: SolverFixedPoint(inner=3), "must be a solver"),
        (lambda: SolverLemke(facets=2), "facets: must be >= 3"),
        (lambda: make_solver("admm", relaxation=2.0), "must be < 2"),
        (lambda: SolverAuto(seconds=0), "seconds: must be > 0"),
        (lambda: make_solver("semismooth_newton", warm_up=-1), "warm_up"),
        (lambda: make_solver("nsgs", omega=1.5), "omega"),
    ],
)
def test_options_are_checked(make, text):
    with pytest.raises(OptionsError, match=text):
        make()


def test_laws_that_a_solver_cannot_take():
    problem, *_ = problem_of(1)
    with pytest.raises(ProblemError, match=r"cannot take the coulomb law.*SolverLemke"):
        SolverPolyhedralQP().solve(problem, law="coulomb")
    rolling = RollingProblem(sp.identity(5, format="csr"), np.array([-1.0, 1, 0, 0, 1]), np.ones(1), np.ones(1))
    with pytest.raises(ProblemError, match="form='dual'"):
        SolverInteriorPoint(form="primal").solve(rolling)


def test_guesses_and_an_inner_solver():
    problem, *_ = problem_of(2, contacts=6, bodies=6, friction=0.3)
    first = SolverAuto(tolerance=1e-9).solve(problem)
    again = make_solver("semismooth_newton", tolerance=1e-8, warm_up=0).solve(problem, guess=first.impulse)
    assert again.converged and again.iterations == 0
    inner = SolverFixedPoint(tolerance=1e-8, inner=SolverInteriorPoint()).solve(problem)
    assert inner.converged and inner.iterations > 1
    assert first.tried[0][0] == "apgd" and first.iterations == sum(t[1] for t in first.tried)


# ---------------------------------------------------------------------- flat-sided cones


def test_flat_sides_converge_with_their_square():
    """Relaxed: the optimum is missed by O(1/m^2), for every offset; Lemke and the interior point find the same one."""
    problem, *_ = problem_of(2, contacts=5, bodies=5)
    exact = SolverInteriorPoint(tolerance=1e-10).solve(problem, law="relaxed").residuals.objective
    worst = []
    for m in (6, 12, 24, 48):
        errors = []
        for offset in (0.0, 0.3, 0.6):
            flat = facets(problem, m, offset=offset * 2 * np.pi / m)
            found = SolverPolyhedralQP().solve(flat, law="relaxed")
            assert found.converged and found.residuals.objective >= exact * (1 + 1e-9) - 1e-12
            errors.append(found.residuals.objective - exact)
        worst.append(max(errors) * m**2)
    assert max(worst) <= 4 * min(worst), worst
    flat = facets(problem, 12, offset=0.1)
    pivoted, central = SolverLemke().solve(flat, law="relaxed"), SolverPolyhedralQP().solve(flat, law="relaxed")
    assert pivoted.converged
    assert pivoted.residuals.objective == pytest.approx(central.residuals.objective, rel=1e-8)


def test_friction_of_a_sliding_block_with_flat_sides():
    """Coulomb's friction against the motion is mu cos(angle to the nearest corner), at most pi/m: O(1/m^2)."""
    problem = tb.ConeProblem.from_matrix(np.eye(3), [-1.0, 5.0, 0.0], [0.5])
    for m in (4, 8, 16, 64):
        for part in (0.0, 0.25, 0.45):
            found = SolverLemke().solve(facets(problem, m, offset=part * 2 * np.pi / m))
            assert found.converged
            assert found.impulse[0, 0] == pytest.approx(1.0)
            assert found.impulse[1, 0] == pytest.approx(-0.5 * np.cos(part * 2 * np.pi / m), rel=1e-9)


def test_lemke_on_piles_of_contacts():
    for seed in range(6):
        problem, *_ = problem_of(seed, contacts=8, bodies=4)
        for law in Law:
            found = SolverLemke(facets=8).solve(facets(problem, 8), law=law)
            assert found.converged, (seed, law, found.residuals)
        rough = SolverLemke(facets=4).solve(problem)  # the round cone is not met: not called solved
        assert rough.status == Status.STALLED and 1e-4 < rough.residuals.natural_map < 1.0


# ---------------------------------------------------------------------- rolling friction


@given(seed=st.integers(0, 2**31))
@settings(max_examples=60)
def test_projection_with_a_shared_normal(seed):
    """x - Pi(x) is normal to the set: no point of the set is nearer (obtuse angle with each)."""
    rng = np.random.default_rng(seed)
    n = 20
    x, mu, rho = rng.normal(size=(n, 5)), 10.0 ** rng.uniform(-2, 1, n), 10.0 ** rng.uniform(-2, 1, n)
    p = project_rolling(x, mu, rho)
    assert np.all(np.linalg.norm(p[:, 1:3], axis=1) <= mu * p[:, 0] * (1 + 1e-12))
    assert np.all(np.linalg.norm(p[:, 3:], axis=1) <= rho * p[:, 0] * (1 + 1e-12))
    normal = np.abs(rng.normal(size=n))
    other = rng.normal(size=(n, 5))
    other[:, 0] = normal
    other[:, 1:3] *= (mu * normal * rng.uniform(0, 1, n) / np.linalg.norm(other[:, 1:3], axis=1))[:, None]
    other[:, 3:] *= (rho * normal * rng.uniform(0, 1, n) / np.linalg.norm(other[:, 3:], axis=1))[:, None]
    assert np.all(np.einsum("ij,ij->i", x - p, other - p) <= 1e-12)
    np.testing.assert_allclose(project_rolling(p, mu, rho), p, atol=1e-12)


def test_rolling_does_not_depend_on_the_units():
    rng = np.random.default_rng(4)
    a = rng.normal(size=(15, 12))
    matrix, bias = a @ a.T, rng.normal(size=15) - 0.3
    counts = []
    for mass, speed, length in ((1, 1, 1), (1e-6, 1e6, 1e3), (1e6, 1e-6, 1e-3)):
        s = np.tile([1, 1, 1, 1 / length, 1 / length], 3)  # rolling rows are angular velocities
        problem = RollingProblem(
            sp.csr_matrix(matrix * np.outer(s, s) / mass), bias * s * speed, np.full(3, 0.5), np.full(3, 0.1) * length
        )
        for law in Law:
            found = SolverInteriorPoint(tolerance=1e-7).solve(problem, law=law)
            assert found.converged, (law, found.residuals)
            if law == Law.RELAXED:
                counts.append(found.iterations)
    assert max(counts) <= 1.1 * min(counts) + 1


# ---------------------------------------------------------------------- public problems


def load(path):
    """Matrix (symmetrised, as stored: the references belong to it), vectors, dimension and references."""
    h5py = pytest.importorskip("h5py")
    from tumble.problem.fclib_layout import read_matrix

    with h5py.File(path) as file:
        group = file["fclib_local"]
        matrix = read_matrix(path, group, "W")
        vectors = {k: group["vectors"][k][()] for k in group["vectors"]}
        reference = {}
        if "reference" in file:
            reference = {"u": file["reference/ccp_u"][()], "objective": file["reference"].attrs.get("ccp_objective")}
        return sp.csr_matrix((matrix + matrix.T) * 0.5), vectors, int(group["spacedim"][0]), reference


def test_auto_solves_every_public_problem(shared_data):
    """Without options. Velocities: largest error relative to the largest |q|."""
    solved = 0
    for path in sorted((shared_data / "fclib").glob("*.hdf5")):
        matrix, vectors, dim, reference = load(path)
        if dim == 5 or path.stem == "extra_pyramid8":
            continue
        q = vectors["q"]
        problem = tb.ConeProblem.from_matrix(matrix, q, vectors["mu"], dim=dim)
        relaxed = SolverAuto().solve(problem, law="relaxed")
        assert relaxed.converged and relaxed.residuals.natural_map <= 1e-8, (path.stem, relaxed.tried)
        u = matrix @ contact_first(relaxed.impulse, dim, problem.count) + q
        assert np.abs(u - reference["u"]).max() <= 1e-5 * np.abs(q).max(), path.stem
        # Confeti's references belong to a matrix without its negative eigenvalues (1e-7 of the largest).
        precise = 1e-6 if path.stem.startswith("Confeti") else 1e-8
        assert relaxed.residuals.objective == pytest.approx(reference["objective"], rel=precise), path.stem
        coulomb = SolverAuto().solve(problem)
        assert coulomb.converged and coulomb.law == Law.COULOMB and coulomb.residuals.natural_map <= 1e-6, path.stem
        solved += 1
    assert solved == 35


def test_auto_solves_rolling_friction(shared_data):
    solved = 0
    for path in sorted((shared_data / "fclib").glob("*.hdf5")):
        matrix, vectors, dim, _ = load(path)
        if dim == 5:
            problem = RollingProblem(matrix, vectors["q"], vectors["mu"], vectors["mu_r"])
            for law, tolerance in ((Law.RELAXED, 1e-8), (Law.COULOMB, 1e-6)):
                found = SolverAuto().solve(problem, law=law)
                assert found.converged and measure_rolling(problem, found.impulse, law).natural_map <= tolerance
            solved += 1
    assert solved == 4


def test_auto_is_honest_about_the_pyramid(shared_data):
    matrix, vectors, dim, _ = load(shared_data / "fclib" / "extra_pyramid8.hdf5")
    problem = tb.ConeProblem.from_matrix(matrix, vectors["q"], vectors["mu"], dim=dim)
    found = SolverAuto(seconds=5.0).solve(problem)
    error = natural_map(
        matrix.toarray(), vectors["q"], contact_first(found.impulse, dim, problem.count), vectors["mu"], "coulomb"
    )
    assert found.converged == (error <= 1e-6)
    assert found.residuals.natural_map == pytest.approx(error, rel=1e-6) and error < 2e-3
    assert found.residuals.natural_map == pytest.approx(min(t[3] for t in found.tried))
    assert SolverAuto().solve(problem, law="relaxed").converged


def test_own_solver_example():
    """The example of docs/solvers.md solves a problem, in at most fifty lines."""
    path = Path(__file__).resolve().parents[2] / "examples" / "own_solver.py"
    assert len(path.read_text().splitlines()) <= 50
    spec = importlib.util.spec_from_file_location("own_solver", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    found = example.main()
    assert found.converged and found.solver == "own"
