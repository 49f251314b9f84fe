"""Shared fixtures."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a test may compile kernels: no deadline.
settings.register_profile("tumble", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("tumble")

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_configure(config):
    """Workers of a parallel run inherit it: one thread each, for idle threads of several processes would fight."""
    if getattr(config.option, "numprocesses", None):
        os.environ.setdefault("NUMBA_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def shared_data():
    """Folder with public test data beside the project; tests that need it are skipped where it is absent."""
    if not (SHARED / "fclib").is_dir():
        pytest.skip("the folder ../shared with public frictional-contact problems is absent: data tests are skipped")
    return SHARED
