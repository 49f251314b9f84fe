"""The kernels' own exponential and logarithm against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tumble.kernels.elementary import exponential, logarithm
from tumble.kernels.jit import interpreted

EPS = np.finfo(float).eps


def test_exponential_and_logarithm_are_those_of_the_library_to_three_roundings():
    rng = np.random.default_rng(1)
    for x in [*rng.uniform(-700.0, 700.0, 2000), *rng.normal(size=2000), *10.0 ** rng.uniform(-20, -3, 200), 0.0]:
        wanted = math.exp(x)
        assert abs(interpreted(exponential)(x) - wanted) <= 3.0 * EPS * wanted
    for x in [*10.0 ** rng.uniform(-300.0, 300.0, 2000), *1.0 + 10.0 ** rng.uniform(-15, 0, 500), 1.0]:
        wanted = math.log(x)
        assert abs(interpreted(logarithm)(x) - wanted) <= 4.0 * EPS * abs(wanted)


@pytest.mark.parametrize("x", [-746.0, -1e9, -math.inf])
def test_the_exponential_vanishes_far_below(x):
    assert interpreted(exponential)(x) == 0.0


def test_compiled_and_interpreted_forms_agree_to_the_bit():
    for x in np.random.default_rng(2).uniform(-50.0, 5.0, 50):
        assert exponential(x) == interpreted(exponential)(x)
        assert logarithm(-x + 6.0) == interpreted(logarithm)(-x + 6.0)


def test_the_parts_of_ln_2_add_up():
    from tumble.kernels.elementary import LN2_HIGH, LN2_LOW

    ln2 = Fraction(6931471805599453094172321214581765680755, 10**40)
    assert abs(Fraction(LN2_HIGH) + Fraction(LN2_LOW) - ln2) < Fraction(1, 2**85)
    assert math.frexp(LN2_HIGH)[0] * 2**33 % 1 == 0.0, "multiples by exponents must be exact"
