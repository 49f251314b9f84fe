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
    "protocol": 1, "bodies": 4, "broad": 4, "items": 40, "joints": 4, "joint_steps": 8, "narrow": 8, "operator": 5,
    "rows": 10, "scaling": 4, "shapes": 2, "stages": 2, "cone": 1,
}  # fmt: skip
"""Files of tests of passes, and how many tests of each there are at least"""
SOLIDS, JOINTS = "every_pair or mixed or mesh or few_threads", "mechanism or robot"
OFTEN = "220.0 or mixed_shapes_fall_onto_a_ground[mesh]"
REST = f"not ({SOLIDS} or {JOINTS} or restitution_threshold)"
LAWS = "laws_of_materials or pile_moves or moreau"
SCENES = {f"({LAWS}) and {REST}": 8, f"({JOINTS}) and not stop": 4, f"not ({LAWS}) and {REST}": 8, OFTEN: 2}
"""Parts of the tests of scenes, and how many tests each has at least; what is left out runs behind the slow marker"""
LARGE = "not 512 and not 700 and not 2048 and not 2500 and not 3000 and not every_pass and not are_kept"
LARGE += " and not cuda-many and not cuda-soft"
LONG = " and not 1024 and not 1500 and not known_axis"
"""Sizes that take a minute in the simulator; one test that counts the tests of all passes; pairs that are kept, which
the device does not. `LONG` ones run behind the slow marker: blocks have four threads here, seven items fill two"""


def simulated(*arguments):
    """Run pytest with the simulator and without Numba's compiler; returns how many tests passed and its words."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1", "NUMBA_NUM_THREADS": "2"}
    options = ["-n", "0", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    words = [sys.executable, "-m", "pytest", *options, *map(str, arguments)]
    done = subprocess.run(words, env=environment, cwd=FOLDER.parents[1], capture_output=True, text=True, timeout=1800)
    found = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return int(found.group(1)), done.stdout


@pytest.mark.parametrize("part", SCENES)
def test_scenes_in_the_simulator(part):
    passed, words = simulated(FOLDER / "test_on_device.py", "-k", part)
    assert passed >= SCENES[part] and "skipped" not in words


@pytest.mark.slow
def test_all_scenes_in_the_simulator():
    passed, words = simulated(FOLDER / "test_on_device.py")
    assert passed >= 45 and "skipped" not in words


def passes(name, chosen):
    only = "::test_measures_are_those_of_the_document" if name == "cone" else ""
    passed, words = simulated(f"{FOLDER.parent / 'backends' / f'test_{name}.py'}{only}", "-k", chosen)
    assert passed >= PASSES[name], words[-2000:]


@pytest.mark.parametrize("name", PASSES)
def test_passes_in_the_simulator(name):
    passes(name, LARGE + LONG)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["narrow", "operator", "joints"])
def test_passes_of_many_items_in_the_simulator(name):
    passes(name, LARGE)


def test_without_device_or_packages_the_error_says_what_to_do():
    try:
        backends.choose("cuda")
    except OptionsError as refused:
        assert re.search(r"pip install 'tumble\[gpu\]'|Install NVIDIA's driver|nvidia-smi", str(refused))
        assert str(refused).startswith("backend: 'cuda' needs")
    else:
        pytest.skip("there is a device")
