"""Values that are wrong more often than not."""

from __future__ import annotations

from typing import Any

import numpy as np

EXTREMES = (
    *(0.0, -0.0, 1e-320, 1e-300, 1e-155, 1e-110, 1e-30, 1e-15, 1e-6, 1e6, 1e15, 1e30, 1e110, 1e155, 1e300, 1.8e308),
    *(float("nan"), float("inf"), -float("inf"), -1.0, -1e-9, -1e30, -1e308),
    *(0, 1, -1, 2, 3, 255, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**18, 10**400, -(10**400)),
)
ODD = ("", "x", "ground", "1.0", "nan", "\0", "ä" * 70, "../..", True, False, [], [[]], [1.0], [[1.0, 2.0], [3.0]], {})
STRANGE: tuple[Any, ...] = (
    None,
    1j,
    b"bytes",
    object(),
    lambda *_: None,
    {1: 2},
    {"x"},
    range(3),
    10**5000,
    np.float32(1.5),
    np.int8(-3),
    np.bool_(True),
    np.array(1.0),
    np.array([1.0, np.nan, 2.0]),
    np.ones((2, 6), bool),
    np.ones((3, 3, 3)),
    np.array(["a", "b", "c"]),
    np.array([object()] * 3),
    np.zeros((0, 3)),
    np.zeros(3, [("x", float)]),
    "x" * 10_000,
    [[[[[[1.0]]]]]],
    (1.0, 2.0),
    [1.0, "2", None],
    float,
)
"""What only a call can be given."""


def choose(rng: np.random.Generator, values: Any) -> Any:
    """One of a sequence, as it is (NumPy's choice would make an array of it)."""
    return values[int(rng.integers(len(values)))]


def wrong(rng: np.random.Generator, *, strange: bool = False) -> Any:
    """A value that few places take."""
    pools = (EXTREMES, EXTREMES, ODD, *((STRANGE,) if strange else ()))
    return choose(rng, choose(rng, pools))
