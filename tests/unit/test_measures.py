"""Residuals and certificates against their definitions, and the certificate's promise against exact solutions."""

import numpy as np
import pytest

import tumble as tb
from tests.naive.problems import certificate, natural_map, project, random_problem, slack, solve_ccp
from tumble.problem.cone_problem import component_first, contact_first
from tumble.solvers import measure


@pytest.mark.parametrize("law", ["relaxed", "coulomb"])
@pytest.mark.parametrize("dim", [2, 3])
def test_measures_match_their_definitions(law, dim):
    for seed in range(20):
        matrix, bias, mu, *_ = random_problem(seed, dim=dim)
        rng = np.random.default_rng(100 + seed)
        gamma = project(rng.normal(size=(len(mu), dim)), mu).ravel()
        problem = tb.ConeProblem.from_matrix(matrix, bias, mu, dim=dim)
        found = measure(problem, component_first(gamma, dim), law)
        assert found.natural_map == pytest.approx(natural_map(matrix, bias, gamma, mu, law, dim), rel=1e-12)
        assert found.natural_map_classic == pytest.approx(
            natural_map(matrix, bias, gamma, mu, law, dim, weighted=False), rel=1e-12
        )
        a, u = slack(matrix, bias, gamma, mu, law, dim)
        g = gamma.reshape(-1, dim)
        eq25 = np.linalg.norm((g - project(g - 1e-6 * a, mu)) / 1e-6)
        # The difference of nearby impulses is divided by 1e-6: ten digits are left.
        assert found.residual_eq25_sum == pytest.approx(eq25, rel=1e-8)
        assert found.residual_eq25 == pytest.approx(eq25 / (dim * len(mu)), rel=1e-8)
        assert found.complementarity_error == pytest.approx(np.abs(g[:, 0] * u[:, 0]).max(), rel=1e-12)
        assert found.penetration_speed == pytest.approx(max(0.0, -u[:, 0].min()), rel=1e-12)
        assert found.objective == pytest.approx(gamma @ (0.5 * matrix @ gamma + bias), rel=1e-11)
        gap = certificate(matrix, bias, gamma, mu, law, dim)[0]
        assert found.certificate_energy == pytest.approx(gap, rel=1e-11)
        # The shift has the root of the gap, a sum of such terms: where they cancel, eight digits are left.
        rounding = 1e-15 * np.abs(g * u).sum()
        low, high = (certificate(matrix, bias, gamma, mu, law, dim, e)[2].max() for e in (-rounding, rounding))
        assert low * (1 - 1e-11) <= found.certificate_shift_velocity <= high * (1 + 1e-11)


def unconverged_iterates(matrix, bias, mu, law, steps):
    """Iterates of plain projected gradient descent from a random point of the cone."""
    rng = np.random.default_rng(len(bias) + steps)
    gamma = project(0.3 * rng.normal(size=(len(mu), 3)), mu)
    t = 1.0 / np.linalg.eigvalsh(matrix)[-1]
    for _ in range(steps):
        a, _ = slack(matrix, bias, gamma.ravel(), mu, law)
        gamma = project(gamma - t * a, mu)
    return gamma.ravel()


def worst_ratio_of_error_to_bound(bound_factor=1.0):
    """Largest |v - v*|_M / sqrt(gap) over unconverged iterates of the relaxed law."""
    worst = 0.0
    for seed in range(25):
        matrix, bias, mu, _jacobian, _inverse_mass, _ = random_problem(seed, contacts=5, bodies=3)
        for steps in (0, 1, 3, 10, 30):
            gamma = unconverged_iterates(matrix, bias, mu, "relaxed", steps)
            _, delta, _ = certificate(matrix, bias, gamma, mu, "relaxed")
            problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
            gap = measure(problem, component_first(gamma, 3), "relaxed").certificate_energy
            if gap < 1e-9:
                continue
            shifted = bias.copy()
            shifted[::3] += delta
            exact = solve_ccp(matrix, shifted, mu)
            # |M^-1 D (g - g*)|_M^2 = (g - g*)^T N (g - g*)
            difference = gamma - exact
            error = np.sqrt(max(0.0, difference @ matrix @ difference))
            worst = max(worst, error / (bound_factor * np.sqrt(gap)))
    return worst


def test_relaxed_certificate_bounds_the_error_and_is_sharp():
    worst = worst_ratio_of_error_to_bound()
    assert 0.6 <= worst <= 1.0 + 1e-6
    # Half the bound would be a lie: the same measurement must catch it.
    assert worst_ratio_of_error_to_bound(0.5) > 1.0


def test_coulomb_certificate_names_a_problem_that_is_solved_exactly():
    """v* solves the true Coulomb problem whose gaps are moved by at most the reported shift.

    With s = mu |u_T(v)| frozen, v* is the solution of a convex problem; there u*_n + s + delta >= mu |u*_T|, so v*
    solves Coulomb's law with gap shifts s_i + delta_i - mu_i |u*_T,i|, which the certificate bounds.
    """
    worst_error, worst_shift = 0.0, 0.0
    for seed in range(25):
        matrix, bias, mu, *_ = random_problem(seed, contacts=5, bodies=3)
        for steps in (1, 5, 20):
            gamma = unconverged_iterates(matrix, bias, mu, "coulomb", steps)
            gap, delta, bound = certificate(matrix, bias, gamma, mu, "coulomb")
            if gap < 1e-9:
                continue
            u = (matrix @ gamma + bias).reshape(-1, 3)
            s = mu * np.linalg.norm(u[:, 1:], axis=1)
            shifted = bias.copy()
            shifted[::3] += s + delta
            exact = solve_ccp(matrix, shifted, mu)
            difference = gamma - exact
            worst_error = max(worst_error, np.sqrt(max(0.0, difference @ matrix @ difference)) / np.sqrt(gap))
            true_tangential = np.linalg.norm((matrix @ exact + bias).reshape(-1, 3)[:, 1:], axis=1)
            shift = s + delta - mu * true_tangential
            moved = bias.copy()
            moved[::3] += shift
            # exact solves Coulomb's law with the moved gaps, to the accuracy of the interior point (a duality gap of
            # 1e-12 leaves errors of its square root) ...
            assert natural_map(matrix, moved, exact, mu, "coulomb") < 1e-5
            worst_shift = max(worst_shift, (np.abs(shift) / bound).max())
    assert 0.6 <= worst_error <= 1.0 + 1e-6
    assert worst_shift <= 1.0 + 1e-6  # ... and they moved no farther than promised


def test_a_diverged_vector_never_looks_good():
    matrix, bias, mu, *_ = random_problem(3)
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu)
    huge = component_first(np.full(len(bias), 1e200), 3)
    found = measure(problem, huge, "coulomb")
    assert found.natural_map == np.inf and found.residual_eq25 == np.inf and found.certificate_energy == np.inf


def test_orders_are_inverse():
    rows = np.arange(12.0)
    for dim in (2, 3):
        assert np.array_equal(contact_first(component_first(rows, dim), dim, len(rows) // dim), rows)
