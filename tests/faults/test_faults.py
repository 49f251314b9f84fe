"""At every moment there is a readable file with all frames that were ever reported.

A run is killed at each system call that changes a file, in turn, and resumed; and the disk is full from each write on.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EVERY = 1
THINNED = 60


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler on Linux for the preloaded library: faults cannot be injected")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "shim.c"), "-ldl"]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode:
        pytest.skip(f"the preloaded library cannot be compiled: {done.stderr[:200]}")
    return library


def inject(shim, folder, scenario, stride):
    """What the driver found."""
    environment = os.environ | {
        "LD_PRELOAD": str(shim),
        "FAULT_FOLDER": str(folder.resolve() / "work"),
        "NUMBA_NUM_THREADS": "1",
        "NUMBA_THREADING_LAYER": "workqueue",  # the one that takes forks
    }
    command = [sys.executable, str(HERE / "driver.py"), str(folder), scenario, str(stride)]
    done = subprocess.run(command, text=True, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.strip().split("\n")[-1])
    print(f"{scenario}: {found['points']} points of {found.get('calls')}")
    return found


@pytest.mark.parametrize("scenario", ["start", "resume"])
def test_killed_at_system_calls(shim, tmp_path, scenario):
    found = inject(shim, tmp_path, scenario, THINNED)
    assert found["bad"] == [] and found["points"] >= 30
    assert all(found["calls"][name] for name in ("open", "pwrite", "ftruncate", "fsync", "rename", "unlink"))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["start", "overwrite", "resume", "go_on"])
def test_killed_at_every_system_call(shim, tmp_path, scenario):
    found = inject(shim, tmp_path, scenario, EVERY)
    assert found["bad"] == [] and found["points"] == sum(found["calls"].values())


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 37])
def test_full_disk(shim, tmp_path, stride):
    found = inject(shim, tmp_path, "full", stride)
    assert found["bad"] == [] and found["points"] >= 10
