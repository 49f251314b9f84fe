"""At every moment there is a readable file with all frames that were ever reported.

A run is killed at each system call that changes a file, in turn, and resumed; and the disk is full from each write on.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tumble as tb
from tumble.cli import main
from tumble.observe.checkpoint import read_checkpoint

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


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """The scene has been run once, so that nothing is said about compiling."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "scene.toml").write_text(driver_scene())
    command = [sys.executable, "-m", "tumble", "run", "scene.toml", "--quiet", "--threads", "1"]
    assert subprocess.run(command, cwd=folder, capture_output=True).returncode == 0


def inject(shim, folder, scenario, stride, options=""):
    """What the driver found; options: more of `tumble run`."""
    environment = os.environ | {
        "LD_PRELOAD": str(shim),
        "FAULT_FOLDER": str(folder.resolve() / "work"),
        "FAULT_OPTIONS": options,
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
    assert found["bad"] == [] and found["points"] >= 25
    assert all(found["calls"][name] for name in ("open", "pwrite", "ftruncate", "fsync", "rename", "unlink"))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["start", "overwrite", "resume", "go_on", "twice"])
def test_killed_at_every_system_call(shim, tmp_path, scenario):
    found = inject(shim, tmp_path, scenario, EVERY)
    assert found["bad"] == [] and found["points"] == sum(found["calls"].values())


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["start", "resume", "full"])
def test_other_ways_to_write(shim, tmp_path, scenario):
    """Packed, in single precision, and by a thread of its own."""
    found = inject(shim, tmp_path, scenario, 4, "--compress --single --background")
    assert found["bad"] == [] and found["points"] >= 60


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 37])
def test_the_disk_is_full_from_some_write_on(shim, tmp_path, stride):
    found = inject(shim, tmp_path, "full", stride)
    assert found["bad"] == [] and found["points"] >= 10


PROGRAM = """
import ctypes, sys
from tumble.cli import main
ctypes.CDLL(None).fault_set(ctypes.c_long(0), ctypes.c_long(int(sys.argv[1])))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("write, more", [(1, ()), (4, ()), (5, ()), (6, ()), (60, ()), (60, ("--background",))])
def test_a_full_disk_is_one_line_to_the_very_end_of_the_process(shim, compiled, tmp_path, write, more):
    """HDF5 wrote tracebacks, and ended the process with a segmentation fault, when it could not close its files. With a
    thread that writes, the file that it had closed was told instead."""
    (tmp_path / "scene.toml").write_text(driver_scene())
    environment = os.environ | {"LD_PRELOAD": str(shim), "FAULT_FOLDER": str(tmp_path), "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(write), "run", "scene.toml", "--quiet", "--threads", "1"]
    done = subprocess.run([*command, *more], text=True, capture_output=True, env=environment, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("tumble: error: ") and done.stderr.count("\n") == 1 and "No space" in done.stderr
    assert not list(tmp_path.glob(".*")), "a lock or half a file was left"


def driver_scene():
    """The scene of the driver, which cannot be imported without the preloaded library."""
    return (HERE / "driver.py").read_text().split('SCENE = """')[1].split('"""')[0]


def test_the_checkpoint_lies_on_another_disk(shim, tmp_path):
    """The trajectory's disk is full: the last step is kept elsewhere, and the run goes on from it."""
    (tmp_path / "scene.toml").write_text(driver_scene())
    (tmp_path / "full").mkdir()
    where = ["--out", str(tmp_path / "full" / "run.h5"), "--checkpoint", str(tmp_path / "elsewhere.h5")]
    environment = os.environ | {
        "LD_PRELOAD": str(shim),
        "FAULT_FOLDER": str(tmp_path / "full"),
        "NUMBA_NUM_THREADS": "1",
    }
    scene = ["run", str(tmp_path / "scene.toml"), "--quiet", "--threads", "1"]
    command = [sys.executable, "-c", PROGRAM, "150", *scene, *where]
    assert subprocess.run(command, text=True, capture_output=True, env=environment).returncode == 2
    kept = read_checkpoint(tmp_path / "elsewhere.h5")
    with tb.Trajectory(tmp_path / "full" / "run.h5") as run:
        assert run.steps[-1] < kept.state.step == run.steps[-1] + len(kept.pending)
    assert main([*scene, *where, "--resume"]) == 0
    assert main([*scene, "--out", str(tmp_path / "whole.h5")]) == 0
    with tb.Trajectory(tmp_path / "full" / "run.h5") as run, tb.Trajectory(tmp_path / "whole.h5") as whole:
        assert run.final_state_sha256 == whole.final_state_sha256 and run.steps.tolist() == whole.steps.tolist()
        assert np.array_equal(run.reports["natural_map"], whole.reports["natural_map"])


@pytest.mark.slow
def test_a_hundred_random_kills(tmp_path):
    """Of the command itself, at random moments, resumed until it has come to its end."""
    (tmp_path / "scene.toml").write_text(driver_scene().replace("until = 0.04", "until = 4000.0"))
    command = [sys.executable, "-m", "tumble", "run", "scene.toml", "--threads", "1", "--quiet", "--out"]
    environment = os.environ | {"NUMBA_NUM_THREADS": "1"}
    rng, frames, path, grown = np.random.default_rng(1), 0, tmp_path / "run.h5", 0
    for _ in range(100):
        resume = ["--resume"] if path.exists() else []
        child = subprocess.Popen([*command, "run.h5", *resume], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
        while not (tmp_path / ".run.h5.lock").exists() and child.poll() is None:
            time.sleep(0.002)  # importing takes longest, and writes nothing
        time.sleep(rng.choice((0.1, 0.5, 2.0)) * rng.random())
        child.send_signal(signal.SIGKILL)
        assert child.communicate()[1] == b"" and child.returncode == -9
        (tmp_path / ".run.h5.lock").unlink(missing_ok=True)
        if path.exists():
            with tb.Trajectory(path) as run:
                assert run.frames >= frames
                grown += run.frames > frames
                frames, last = run.frames, 2e-3 * float(run.steps[-1])
    print(f"100 kills, {frames} frames, {grown} of them with new frames")
    assert grown >= 10
    until = ["--until", str(last + 0.1)]
    assert subprocess.run([*command, "run.h5", "--resume", *until], cwd=tmp_path, env=environment).returncode == 0
    assert subprocess.run([*command, "whole.h5", *until], cwd=tmp_path, env=environment).returncode == 0
    with tb.Trajectory(path) as run, tb.Trajectory(tmp_path / "whole.h5") as whole:
        assert run.final_state_sha256 == whole.final_state_sha256
        assert np.array_equal(run.reports["natural_map"], whole.reports["natural_map"])
