"""`variant="paper"`: the methods of the papers line by line, against plain NumPy versions of their algorithms."""

import numpy as np
import pytest

import tumble as tb
from tests.naive.problems import random_problem
from tumble import SolverGaussSeidel, SolverJacobi
from tumble.errors import OptionsError
from tumble.problem.cone_problem import contact_first
from tumble.solvers import make_solver


def onto_cones(x, mu):
    """Projection of (3 n,) on the friction cones, contact by contact."""
    out = x.reshape(-1, 3).copy()
    for row, m in zip(out, mu):
        t = np.hypot(row[1], row[2])
        if t <= m * row[0]:
            continue
        if m * t <= -row[0]:
            row[:] = 0.0
            continue
        n = (row[0] + m * t) / (1.0 + m * m)
        row[1:] *= m * n / t
        row[0] = n
    return out.ravel()


def algorithm_1(matrix, r, mu, iterations):
    """Mazhar et al. 2015, Algorithm 1, without its test of the residual: the last iterate."""
    gamma = y = np.zeros(len(r))
    theta, ones = 1.0, np.ones(len(r))
    big = np.linalg.norm(matrix @ ones) / np.linalg.norm(ones)

    def f(x):
        return 0.5 * x @ matrix @ x + x @ r

    for _ in range(iterations):
        g = matrix @ y + r
        new = onto_cones(y - g / big, mu)
        while f(new) >= f(y) + g @ (new - y) + 0.5 * big * (new - y) @ (new - y) + 1e-14:
            big *= 2.0
            new = onto_cones(y - g / big, mu)
        theta_new = 0.5 * (-(theta**2) + theta * np.sqrt(theta**2 + 4.0))
        beta = theta * (1.0 - theta) / (theta**2 + theta_new)
        y = new + beta * (new - gamma)
        if g @ (new - gamma) > 0.0:
            y, theta_new = new, 1.0
        gamma, theta, big = new, theta_new, 0.9 * big
    return gamma


def algorithm_2(matrix, r, mu, iterations, *, omega, weight, sequential):
    """Mazhar et al. 2015, Algorithm 2 with B_i = 3 / trace(N_ii); without its line 6 it is Jacobi's method."""
    gamma = np.zeros(len(r))
    for _ in range(iterations):
        old = gamma.copy()
        seen = gamma if sequential else old
        for i in range(len(mu)):
            rows = slice(3 * i, 3 * i + 3)
            step = 3.0 * omega / np.trace(matrix[rows, rows])
            hat = onto_cones(old[rows] - step * (matrix[rows] @ seen + r[rows]), mu[i : i + 1])
            gamma[rows] = weight * hat + (1.0 - weight) * old[rows]
    return gamma


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind, sequential", [(SolverGaussSeidel, True), (SolverJacobi, False)])
@pytest.mark.parametrize("omega, weight", [(1.0, 1.0), (0.7, 0.6)])
def test_sweeps_are_those_of_algorithm_2(kind, sequential, omega, weight, seed):
    matrix, bias, mu, *_ = random_problem(seed)
    omega = omega if sequential else 0.15 * omega
    for iterations in (1, 2, 7):
        expected = algorithm_2(matrix, bias, mu, iterations, omega=omega, weight=weight, sequential=sequential)
        problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
        solver = kind(variant="paper", omega=omega, mixing=weight, tolerance=0.0, max_iterations=iterations,
                      check_every=iterations)  # fmt: skip
        found = solver.solve(problem, law="relaxed")
        assert contact_first(found.impulse, 3, len(mu)) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_iterations_are_those_of_algorithm_1(seed):
    matrix, bias, mu, *_ = random_problem(seed)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    for iterations in (1, 5, 30):
        solver = tb.SolverAPGD(variant="paper", tolerance=0.0, max_iterations=iterations, check_every=iterations)
        found = contact_first(solver.solve(problem, law="relaxed").impulse, 3, len(mu))
        expected = algorithm_1(matrix, bias, mu, iterations)
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["apgd", "gauss_seidel", "jacobi"])
def test_both_laws_are_solved(name):
    matrix, bias, mu, *_ = random_problem(1)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    more = {"omega": 0.1} if name == "jacobi" else {}
    for law in ("relaxed", "coulomb"):
        solver = make_solver(name, variant="paper", tolerance=1e-6, max_iterations=300_000, **more)
        assert solver.solve(problem, law=law).converged


@pytest.mark.parametrize("name", ["apgd", "gauss_seidel", "jacobi"])
def test_bad_variants_are_named(name):
    with pytest.raises(OptionsError, match=r"variant: must be one of default, paper \(got 'papre'\)"):
        make_solver(name, variant="papre")
    with pytest.raises(OptionsError, match=r"scaling: is none in variant 'paper' \(got scalar\)"):
        make_solver(name, variant="paper", scaling="scalar")
    with pytest.raises(OptionsError, match="unknown option 'variant'"):
        make_solver("admm", variant="paper")


def test_what_the_paper_fixes_is_not_an_option_beside_it():
    with pytest.raises(OptionsError, match=r"growth: is 0.9 in variant 'paper' \(got 0.95\)"):
        tb.SolverAPGD(variant="paper", growth=0.95)
    with pytest.raises(OptionsError, match="mixing: must be <= 1"):
        SolverGaussSeidel(mixing=1.2)
    with pytest.raises(OptionsError, match="mixing: must be > 0"):
        SolverJacobi(mixing=0.0)
    solver = tb.SolverAPGD(variant="paper")
    assert (solver.growth, solver.momentum_limit, solver.scaling) == (0.9, 1.0, "none")
