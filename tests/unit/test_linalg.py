"""Scalar formulas against NumPy and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tumble.kernels import linalg

component = st.floats(-200.0, 200.0)


@given(component, component, component)
def test_quaternion_exponential(x, y, z):
    v = np.array([x, y, z])
    found = np.array(linalg.quat_exp((x, y, z)))
    expected = Rotation.from_rotvec(v).as_matrix()
    # Doubling multiplies rounding errors by the number of turns.
    np.testing.assert_allclose(
        np.array(linalg.quat_matrix(tuple(found))).reshape(3, 3), expected, atol=1e-14 * (10 + np.linalg.norm(v))
    )
    assert np.linalg.norm(found) == pytest.approx(1.0, abs=1e-14 * (10 + np.linalg.norm(v)))


@given(st.integers(0, 10**6), st.sampled_from([1e-8, 1.0, 1e8]))
def test_largest_eigenvalue(seed, scale):
    a = np.random.default_rng(seed).normal(size=(3, 3))
    m = scale * a @ a.T
    found = linalg.largest_eigenvalue(m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2])
    exact = np.linalg.eigvalsh(m)[-1]
    assert exact * (1 - 1e-10) <= found <= exact * (1 + 1e-4)
    assert linalg.largest_eigenvalue(2.0, 2.0, 2.0, 0.0, 0.0, 0.0) == pytest.approx(2.0, rel=1e-6)


@given(st.floats(0, np.pi), st.floats(-np.pi, np.pi))
def test_contact_frames_are_right_handed(theta, phi):
    n = (np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta))
    u, w = linalg.tangents(n)
    frame = np.array([n, u, w])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-13)
    assert np.linalg.det(frame) == pytest.approx(1.0)


@pytest.mark.parametrize("spread", [0.0, 1e-16, 2e-16, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_largest_eigenvalue_is_never_too_small_where_eigenvalues_meet(spread, size):
    """A block scaled to the unit matrix, up to rounding, gave half of it: Gauss-Seidel then took twice its step."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        d = size * (1.0 + spread * rng.uniform(-1, 1, 3))
        o = size * spread * rng.uniform(-1, 1, 3) * 0.1
        matrix = np.array([[d[0], o[0], o[1]], [o[0], d[1], o[2]], [o[1], o[2], d[2]]])
        found = linalg.largest_eigenvalue(*d, *o)
        exact = np.linalg.eigvalsh(matrix)[-1]
        assert exact * (1 - 1e-14) <= found <= exact * (1 + 1e-3)
