"""The friction cone: projection against its case-by-case twin and its defining properties."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.problems import project as naive_project
from tumble.kernels import cones

number = st.floats(-1e6, 1e6)
friction = st.floats(0.0, 10.0)


@given(number, number, number, friction)
def test_projection_is_the_nearest_point(n, u, w, mu):
    p = np.array(cones.project(n, u, w, mu))
    expected = naive_project(np.array([[n, u, w]]), np.array([mu]))[0]
    size = max(1.0, abs(n), abs(u), abs(w))
    np.testing.assert_allclose(p, expected, atol=1e-12 * size * (1 + mu))


@given(number, number, number, friction)
def test_projection_is_in_the_cone_and_the_rest_in_the_polar_cone(n, u, w, mu):
    p = np.array(cones.project(n, u, w, mu))
    rest = np.array([n, u, w]) - p
    size = max(1.0, abs(n), abs(u), abs(w)) * (1 + mu)
    assert p[0] >= 0.0
    assert np.hypot(p[1], p[2]) <= mu * p[0] + 1e-13 * size
    # Moreau: p is orthogonal to the rest, and the rest lies in the polar cone {n <= -mu |t|}.
    assert abs(p @ rest) <= 1e-12 * size * size
    assert rest[0] + mu * np.hypot(rest[1], rest[2]) <= 1e-12 * size


@given(number, number, number, friction)
def test_projecting_twice_changes_nothing(n, u, w, mu):
    p = cones.project(n, u, w, mu)
    np.testing.assert_allclose(cones.project(*p, mu), p, rtol=1e-14, atol=1e-300)


def test_frictionless_cone_is_a_half_line():
    assert cones.project(2.0, 3.0, -1.0, 0.0) == (2.0, 0.0, 0.0)
    assert cones.project(-2.0, 3.0, -1.0, 0.0) == (0.0, 0.0, 0.0)
