"""The tests of the device, and those of its passes, in Numba's CUDA simulator; they may not be left out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tumble import backends
from tumble.errors import OptionsError

FOLDER = Path(__file__).parent
PASSES = [FOLDER.parent / "backends" / f"test_{name}.py" for name in (
    "protocol", "bodies", "broad", "items", "joints", "joint_steps", "narrow", "operator", "rows", "scaling", "shapes",
    "stages",
)]  # fmt: skip
PASSES.append(f"{FOLDER.parent / 'backends' / 'test_cone.py'}::test_measures_are_those_of_the_document")
LARGE = "not 512 and not 700 and not 2048 and not 2500 and not 3000 and not every_pass and not are_kept"
LARGE += " and not cuda-many and not cuda-soft"
"""Sizes that take a minute in the simulator; one test that counts the tests of all passes; pairs that are kept, which
the device does not"""


def simulated(*arguments):
    """Run pytest with the simulator and without Numba's compiler; returns how many tests passed and its words."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1", "NUMBA_NUM_THREADS": "2"}
    options = ["-n", "0", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    words = [sys.executable, "-m", "pytest", *options, *map(str, arguments)]
    done = subprocess.run(words, env=environment, cwd=FOLDER.parents[1], capture_output=True, text=True, timeout=900)
    found = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return int(found.group(1)), done.stdout


def test_scenes_in_the_simulator():
    passed, words = simulated(FOLDER / "test_on_device.py")
    assert passed >= 8 and "skipped" not in words


def test_passes_in_the_simulator():
    passed, words = simulated(*PASSES, "-k", LARGE)
    assert passed >= 150, words[-2000:]


def test_without_device_or_packages_the_error_says_what_to_do():
    try:
        backends.choose("cuda")
    except OptionsError as refused:
        assert re.search(r"pip install 'tumble\[gpu\]'|Install NVIDIA's driver|nvidia-smi", str(refused))
        assert str(refused).startswith("backend: 'cuda' needs")
    else:
        pytest.skip("there is a device")
