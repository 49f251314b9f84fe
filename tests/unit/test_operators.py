"""The operator N without a matrix against the matrix D^T M^-1 D, and both against plain sums."""

import numpy as np
import pytest

import tumble as tb
from tumble.enums import Scaling
from tumble.solve.base import ScaledProblem


def pile(bodies=60, seed=1):
    """A step of spheres and boxes thrown together: its problem and model."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(1.2, 1.2, 3.0)))
    points = tb.random_points(bodies, 0.1, low=(-0.6, -0.6, 0), high=(0.6, 0.6, 1.6), seed=seed)
    rng = np.random.default_rng(seed)
    half = bodies // 2
    scene.add_spheres(
        rng.uniform(0.08, 0.1, half),
        mass=rng.uniform(1, 5, half),
        position=points[:half],
        velocity=rng.normal(size=(half, 3)),
    )
    q = rng.normal(size=(bodies - half, 4))
    scene.add_boxes(
        (0.11, 0.1, 0.09),
        mass=rng.uniform(1, 5, bodies - half),
        position=points[half:],
        orientation=q / np.linalg.norm(q, axis=1)[:, None],
        velocity=rng.normal(size=(bodies - half, 3)),
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=5e-3), solver=tb.SolverAPGD(max_iterations=50))
    for _ in range(120):
        sim.step()
    return sim


@pytest.fixture(scope="module")
def sim():
    return pile()


def rows(x, count):
    return x[:, :count].T.ravel()


def test_product_equals_the_matrix(sim):
    problem = sim.last.problem
    n = problem.count
    assert n > 50
    x = np.zeros_like(problem.bias)
    x[:, :n] = np.random.default_rng(0).normal(size=(3, n))
    out = np.zeros_like(x)
    problem.operator.product(x, out)
    matrix = problem.operator.to_sparse()
    np.testing.assert_allclose(rows(out, n), matrix @ rows(x, n), rtol=1e-10, atol=1e-10 * np.abs(out).max())


def test_jacobian_gives_relative_velocities(sim):
    """D^T v is the velocity of the contact point on B minus that on A, in the contact frame."""
    problem, c = sim.last.problem, sim.last.contacts
    rng = np.random.default_rng(2)
    v = rng.normal(size=(sim.model.body_count, 6))
    found = (problem.operator.jacobian() @ v.ravel()).reshape(-1, 3)
    arrays = problem.operator.arrays
    for k in range(c.count):
        a, b = c.body_a[k], c.body_b[k]
        relative = v[b, :3] + np.cross(v[b, 3:], arrays.arms[3:, k]) - v[a, :3] - np.cross(v[a, 3:], arrays.arms[:3, k])
        frame = arrays.frame[:, k].reshape(3, 3)
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-13)
        assert np.linalg.det(frame) == pytest.approx(1.0)
        np.testing.assert_allclose(found[k], frame @ relative, atol=1e-12)


def test_diagonal_blocks(sim):
    problem = sim.last.problem
    n = problem.count
    blocks = np.zeros((6, problem.bias.shape[1]))
    problem.operator.diagonal_blocks(blocks)
    matrix = problem.operator.to_sparse().toarray()
    for k in range(n):
        b = matrix[3 * k : 3 * k + 3, 3 * k : 3 * k + 3]
        np.testing.assert_allclose(
            blocks[:, k],
            [b[0, 0], b[1, 1], b[2, 2], b[0, 1], b[0, 2], b[1, 2]],
            rtol=1e-10,
            atol=1e-12 * np.abs(b).max(),
        )


@pytest.mark.parametrize("kind", ["contacts", "matrix"])
@pytest.mark.parametrize("scaling", list(Scaling))
def test_scaled_operator_is_s_n_s(sim, kind, scaling):
    problem = sim.last.problem
    n = problem.count
    matrix = problem.operator.to_sparse()
    if kind == "matrix":
        symmetric = 0.5 * (matrix + matrix.T)
        problem = tb.ConeProblem.from_matrix(symmetric, rows(problem.bias, n), problem.friction[:n])
    scaled = ScaledProblem(problem, scaling, False, None, np.zeros((1, 2)))
    s = np.repeat(scaled.gauge.scale[1, :n], 3)
    s[::3] = scaled.gauge.scale[0, :n]
    x = np.zeros_like(problem.bias)
    x[:, :n] = np.random.default_rng(0).normal(size=(3, n))
    out = np.zeros_like(x)
    scaled.operator.product(x, out)
    expected = s * (matrix @ (s * rows(x, n)))
    np.testing.assert_allclose(rows(out, n), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(scaled.cone.friction[:n], problem.friction[:n] * s[::3] / s[1::3], rtol=1e-13)
    if scaling == Scaling.NORMAL_TANGENTIAL:
        diagonal = (s * s * matrix.diagonal()).reshape(-1, 3)
        np.testing.assert_allclose(diagonal[:, 0], 1.0, rtol=1e-9)
        np.testing.assert_allclose(diagonal[:, 1:].mean(axis=1), 1.0, rtol=1e-9)


def test_velocity_change_is_m_inverse_d(sim):
    problem, solution = sim.last.problem, sim.last.solution
    n = problem.count
    change = problem.operator.velocity(solution.impulse).copy()
    expected = problem.operator.inverse_mass() @ (problem.operator.jacobian().T @ rows(solution.impulse, n))
    np.testing.assert_allclose(change.ravel(), expected, rtol=1e-9, atol=1e-12)


def test_matrix_must_be_symmetric_and_finite():
    for bad, words in (([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]], "symmetric"), (np.full((3, 3), np.nan), "finite")):
        with pytest.raises(tb.TumbleError, match=words):
            tb.ConeProblem.from_matrix(bad, np.zeros(3), [0.1])
