"""What a backend is: its passes, their sizes and its name, and a test for every pass."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

import tests.backends
from tumble.backends.base import ARRAYS, PASSES, SIZES
from tumble.errors import OptionsError
from tumble.kernels.jit import most_threads

from .cover import COVERED, same_bits
from .reads import unread

ROOT = Path(__file__).parents[2]
NAMES = [name for group in PASSES.values() for name in group]


def test_a_backend_offers_the_passes_their_sizes_and_its_name(backend):
    assert len(set(NAMES)) == len(NAMES)
    own = backend.backend
    if own.HOSTED:
        assert sorted(own.__all__) == sorted([*NAMES, *SIZES, *ARRAYS, "name"])
    else:  # a device says by name what it does not do yet
        missing = set(NAMES) - set(own.__all__)
        assert {"predict", "find_pairs", "apgd", "measure", "advance"}.isdisjoint(missing)
        for name in missing:
            with pytest.raises(OptionsError, match=f"does not offer all passes yet .got {name}"):
                getattr(own, name)
    assert all(callable(getattr(own, name)) for name in NAMES if name in own.__all__)
    assert all(isinstance(getattr(own, size), int) for size in SIZES)
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(own.fetch(own.send(x)), x)
    np.testing.assert_array_equal(own.fetch(own.zeros((2, 3), np.int32)), np.zeros((2, 3)))


def test_every_pass_is_compared_with_a_twin():
    for module in pkgutil.iter_modules(tests.backends.__path__):
        if module.name.startswith("test_"):
            importlib.import_module(f"tests.backends.{module.name}")
    assert sorted(COVERED) == sorted(NAMES)


def test_a_difference_in_one_bit_is_noticed():
    x = np.linspace(0.0, 1.0, 9)
    y = x.copy()
    same_bits("x", (x, 1), (y, 1))
    y[3] = np.nextafter(y[3], 2.0)
    with pytest.raises(AssertionError, match="threads"):
        same_bits("x", x, y)
    with pytest.raises(AssertionError, match="threads"):
        same_bits("x", 0.0, -0.0)


@pytest.mark.skipif(most_threads() > 1, reason="the tests of this folder have compared one thread with two already")
def test_one_thread_and_two_give_the_same_bits():
    """All tests of this folder, in a process with two threads: here there is one."""
    folder = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", str(folder)]
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(command, cwd=folder.parents[1], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


def sums(pair, out):
    """A pass that leaves the second array alone."""
    first = pair.first
    out[0] = first[0] + first[1]


def test_groups_carry_what_their_passes_read():
    array = np.zeros(2)
    assert list(unread(sums, tuple(map(numba.typeof, (Pair(array, array), array))))) == ["pair.second"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "tests.backends.reads"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    *left, calls = done.stdout.splitlines()
    assert left == [] and int(calls.split()[0]) > 200
