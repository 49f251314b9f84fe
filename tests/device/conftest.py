"""Scenes small enough for Numba's CUDA simulator, in which a thread of the device is a thread of Python."""

import os

import pytest

from tumble import backends
from tumble.errors import OptionsError


def pytest_ignore_collect(collection_path, config):
    """Without a device these tests run in the simulator, in a process of its own (`test_simulated.py` of this folder
    starts it): Numba reads the switch when it is imported."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") in ("", "0") and collection_path.name.startswith("test_on_device"):
        try:
            backends.choose("cuda")
        except OptionsError:
            return True
    return None


@pytest.fixture(scope="session")
def device():
    """The backend under test."""
    return backends.choose("cuda")
