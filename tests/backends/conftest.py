"""The backends under test."""

import pytest

from tumble import backends

from .cover import TwiceRun


@pytest.fixture(scope="session", params=backends.BACKENDS)
def backend(request):
    """Each backend by its name; every call of a pass is made with one thread and with two, see `TwiceRun`."""
    return TwiceRun(backends.choose(request.param))
