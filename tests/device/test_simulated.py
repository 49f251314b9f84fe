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
PASSES = {
    "protocol": 1, "bodies": 10, "broad": 10, "items": 80, "joints": 5, "joint_steps": 20, "narrow": 8, "operator": 5,
    "rows": 20, "scaling": 10, "shapes": 3, "stages": 3, "cone": 1,
}  # fmt: skip
"""Files of tests of passes, and how many tests of each there are at least"""
SOLIDS, JOINTS = "every_pair or mixed or mesh or few_threads", "mechanism or robot"
SCENES = {SOLIDS: 8, JOINTS: 5, f"not ({SOLIDS} or {JOINTS})": 15}
"""Parts of the tests of scenes, all of them together, and how many tests each has at least"""
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


@pytest.mark.parametrize("part", SCENES)
def test_scenes_in_the_simulator(part):
    passed, words = simulated(FOLDER / "test_on_device.py", "-k", part)
    assert passed >= SCENES[part] and "skipped" not in words


@pytest.mark.parametrize("name", PASSES)
def test_passes_in_the_simulator(name):
    only = "::test_measures_are_those_of_the_document" if name == "cone" else ""
    passed, words = simulated(f"{FOLDER.parent / 'backends' / f'test_{name}.py'}{only}", "-k", LARGE)
    assert passed >= PASSES[name], words[-2000:]


def test_without_device_or_packages_the_error_says_what_to_do():
    try:
        backends.choose("cuda")
    except OptionsError as refused:
        assert re.search(r"pip install 'tumble\[gpu\]'|Install NVIDIA's driver|nvidia-smi", str(refused))
        assert str(refused).startswith("backend: 'cuda' needs")
    else:
        pytest.skip("there is a device")
