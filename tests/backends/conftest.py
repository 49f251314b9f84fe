"""The backends under test."""

import os

import pytest

from tumble import backends
from tumble.errors import OptionsError

from .cover import TwiceRun

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


def usable():
    """Backends that this machine has; in Numba's CUDA simulator the device alone, the rest is tested without it."""
    if SIMULATED:
        return ["cuda"]
    found = []
    for name in backends.BACKENDS:
        try:
            backends.choose(name)
        except OptionsError:
            continue
        found.append(name)
    return found


@pytest.fixture(scope="session", params=usable())
def backend(request):
    """Each backend by its name; every call of a pass is made with one thread and with two, see `TwiceRun`."""
    return TwiceRun(backends.choose(request.param))
