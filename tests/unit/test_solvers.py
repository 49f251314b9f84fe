"""Every solver against the exact optimum, both laws, and the promises all solvers share."""

import numpy as np
import pytest

import tumble as tb
from tests.naive.problems import natural_map, random_problem, solve_ccp
from tumble.enums import Law, Status, Stop
from tumble.problem.cone_problem import contact_first
from tumble.solvers import make_solver

BUDGET = {"apgd": 20_000, "barzilai_borwein": 20_000, "gauss_seidel": 100_000, "jacobi": 300_000, "nsgs": 20_000}
ALL = sorted(BUDGET)  # those with compiled iterations; test_more_solvers.py has the others


def solver(name, **options):
    # Jacobi converges for omega below one over the number of contacts that share a body, 8 here.
    more = {"omega": 0.2} if name == "jacobi" else {}
    return make_solver(name, max_iterations=BUDGET[name], **more, **options)


@pytest.mark.parametrize("name", ALL)
def test_relaxed_law_reaches_the_optimum(name):
    for seed in range(6):
        matrix, bias, mu, *_ = random_problem(seed)
        problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
        solution = solver(name, tolerance=1e-9).solve(problem, law="relaxed")
        assert solution.status == Status.CONVERGED, (seed, solution.residuals)
        exact = solve_ccp(matrix, bias, mu)
        best = exact @ (0.5 * matrix @ exact + bias)
        # The objective of a feasible point is above the optimum; at 1e-9 both agree to far better than 1e-7.
        assert solution.residuals.objective == pytest.approx(best, rel=1e-7, abs=1e-9)
        g = contact_first(solution.impulse, 3, len(mu))
        velocity_error = np.sqrt(max(0.0, (g - exact) @ matrix @ (g - exact)))
        assert velocity_error < 1e-5 * max(1.0, np.sqrt(exact @ matrix @ exact))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dim", [2, 3])
def test_coulomb_law_is_solved(name, dim):
    for seed in range(6):
        matrix, bias, mu, *_ = random_problem(seed, contacts=6, bodies=6, dim=dim, friction=0.3)
        problem = tb.ConeProblem.from_matrix(matrix, bias, mu, dim=dim)
        solution = solver(name, tolerance=1e-8).solve(problem, law="coulomb")
        assert solution.law == Law.COULOMB
        g = contact_first(solution.impulse, dim, len(mu))
        assert solution.status == Status.CONVERGED, (seed, solution.residuals.natural_map)
        assert natural_map(matrix, bias, g, mu, "coulomb", dim) <= 1.01e-8


@pytest.mark.parametrize("law", list(Law))
@pytest.mark.parametrize("name", ALL)
def test_impulses_lie_in_their_cones(name, law):
    matrix, bias, mu, *_ = random_problem(7)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    g = make_solver(name, max_iterations=7).solve(problem, law=law).impulse
    assert np.all(g[0] >= 0.0)
    assert np.all(np.hypot(g[1], g[2]) <= mu * g[0] * (1 + 1e-14))


@pytest.mark.parametrize("scaling", ["none", "scalar", "normal_tangential"])
@pytest.mark.parametrize("stop", list(Stop))
def test_stops_on_what_it_was_asked_for(scaling, stop):
    matrix, bias, mu, *_ = random_problem(2)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    for law in Law:
        solution = make_solver("apgd", tolerance=1e-7, stop=stop, scaling=scaling, max_iterations=50000).solve(
            problem, law=law
        )
        r = solution.residuals
        assert solution.converged
        if stop == Stop.NATURAL_MAP:
            assert r.natural_map <= 1.01e-7
        elif stop == Stop.RESIDUAL_EQ25:
            # Computed from scaled impulses in the loop and from the impulses here: equal to the digits that the
            # division by 1e-6 leaves.
            assert r.residual_eq25 <= 1.1e-7
        elif stop == Stop.LOCAL:
            assert r.local_error <= 1.01e-7
        else:
            # Both parts of the certificate are below the tolerance in units of the problem's size.
            size = np.sqrt(np.sum(np.diag(matrix).reshape(-1, 3).mean(axis=1)[:, None] * solution.impulse.T**2))
            assert np.sqrt(r.certificate_energy) <= 1.01e-7 * max(size, np.linalg.norm(bias))


def test_iteration_cap_returns_the_best_iterate_with_advice():
    matrix, bias, mu, *_ = random_problem(4)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    solution = make_solver("apgd", tolerance=1e-12, max_iterations=15, record=True).solve(problem, law="relaxed")
    assert solution.status == Status.MAX_ITERATIONS
    assert "max_iterations" in solution.status.advice
    assert solution.residuals.natural_map == pytest.approx(np.nanmin(solution.history), rel=1e-9)


def test_a_good_guess_needs_no_iteration():
    matrix, bias, mu, *_ = random_problem(5)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    first = make_solver("apgd", tolerance=1e-9).solve(problem, law="relaxed")
    guess = first.impulse.copy()
    assert make_solver("apgd", tolerance=1e-8).solve(problem, law="relaxed", guess=guess).iterations == 0


@pytest.mark.parametrize("name", ALL)
def test_units_do_not_matter(name):
    """Mass, length and time in other units: N scales like 1/mass, r like length/time."""
    matrix, bias, mu, *_ = random_problem(9)
    counts = []
    for mass in (1e-6, 1.0, 1e6):
        for speed in (1e-6, 1.0, 1e6):
            problem = tb.ConeProblem.from_matrix(matrix / mass, bias * speed, mu)
            solution = solver(name, tolerance=1e-7).solve(problem, law="relaxed")
            counts.append(solution.iterations)
    assert max(counts) <= 1.1 * min(counts) + 5


def test_hand_worked_rolling_ball():
    """One step of a ball in the plane: N = diag(1, 3.5), r = (-0.0981, 2), mu = 0.2, solved by hand."""
    problem = tb.ConeProblem.from_matrix(np.diag([1.0, 3.5]), [-0.0981, 2.0], [0.2], dim=2)
    for name in ALL:
        g = solver(name, tolerance=1e-12).solve(problem, law="coulomb").impulse
        np.testing.assert_allclose(g[:2, 0], [0.0981, -0.01962], atol=1e-9)
        g = solver(name, tolerance=1e-12).solve(problem, law="relaxed").impulse
        np.testing.assert_allclose(g[:2, 0], [0.436930, -0.087386], atol=1e-6)


def test_two_solutions_of_one_problem_keep_their_own_impulses():
    matrix, bias, mu, *_ = random_problem(1)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    relaxed = make_solver("apgd").solve(problem, law="relaxed")
    kept = relaxed.impulse.copy()
    coulomb = make_solver("apgd").solve(problem, law="coulomb")
    assert np.array_equal(relaxed.impulse, kept) and not np.allclose(coulomb.impulse, kept)


@pytest.mark.parametrize("guess", [np.full((3, 8), np.nan), np.zeros((2, 8)), [1.0, 2.0]])
def test_a_bad_guess_is_refused(guess):
    matrix, bias, mu, *_ = random_problem(1)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    with pytest.raises(tb.TumbleError, match="guess"):
        make_solver("apgd").solve(problem, guess=guess)
