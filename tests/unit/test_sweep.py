"""Sweeps: every combination once, what failed kept apart, what was finished not run again."""

import csv
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tumble.cli import main
from tumble.errors import TumbleError
from tumble.sweep import combinations, sweep, values_of
from tumble.sweep.grid import folder_name

from ..children import answer_signals

RAMP = """
[parameters]
mu = 0.3
angle = {value = 20, low = 0, high = 60}
[[material]]
name = "wood"
friction = "=mu"
[[body]]
kind = "static"
shape = {type = "half_space"}
rotation = {axis = [0, 1, 0], angle_degrees = "=angle"}
material = "wood"
[[body]]
name = "box"
shape = {type = "box", size = [0.2, 0.2, 0.1]}
density = 500
position = ["=0.05 * sin(radians(angle))", 0, "=0.05 * cos(radians(angle))"]
rotation = {axis = [0, 1, 0], angle_degrees = "=angle"}
material = "wood"
[step]
dt = 0.01
[run]
until = 0.2
"""
MEASURE = """
import numpy as np
def measure(run):
    return {"slid": float(np.linalg.norm(run.read("position", -1)[1] - run.read("position", 0)[1]))}
"""


def test_values():
    assert values_of("mu", "0.1:0.9:9") == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert values_of("n", "1:1000:4:log") == [1, 10, 100, 1000] and values_of("n", "0:3:4") == [0, 1, 2, 3]
    assert all(type(v) is int for v in values_of("n", "0:3:4")) and values_of("x", "0.0:1.0:2") == [0.0, 1.0]
    assert values_of("v", "[1,2],[3,4]") == [[1, 2], [3, 4]] and values_of("name", "apgd,nsgs") == ["apgd", "nsgs"]
    assert values_of("s", "true") == [True]
    for text in ("0:1:2.5", "0:1:0", "0:1:3:lin", "0:1:3:log", "0:1:1e9"):
        with pytest.raises(TumbleError, match="--set mu: "):
            values_of("mu", text)


def test_combinations():
    found = combinations({"mu": [0.1, 0.2], "seed": [0, 1, 2]})
    assert len(found) == 6 and found[1] == {"mu": 0.1, "seed": 1}
    names = {folder_name(point) for point in found}
    assert "mu=0.1,seed=1" in names and len(names) == 6
    strange = [folder_name({"file": a}) for a in ("a/b", "a_b", "x" * 300, "x" * 299)]
    assert len(set(strange)) == 4 and all("/" not in s and len(s) < 120 for s in strange)
    for wrong in ({"mu": []}, {"mu": "0.1"}, {"mu": [1, 1]}, {"a": range(1000), "b": range(1000)}):
        with pytest.raises(TumbleError):
            combinations(wrong)


@pytest.fixture
def scene(tmp_path):
    (tmp_path / "ramp.toml").write_text(RAMP)
    (tmp_path / "measure.py").write_text(MEASURE)
    return tmp_path / "ramp.toml"


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_broken_point_leaves_the_others(scene, tmp_path, capsys):
    """A box on a slope slides with a = g (sin - mu cos) or rests; the point out of range is told and kept apart."""
    out = tmp_path / "out"
    words = ["sweep", str(scene), "--set", "mu=0.1,0.9", "--set", "angle=20,70", "--jobs", "2", "--out", str(out)]
    words += ["--measure", str(tmp_path / "measure.py"), "--plot", "slid"]
    assert main(words) == 1
    said = capsys.readouterr()
    assert said.err.count("tumble: failed: ") == 2 and "must be <= 60" in said.err and "2 points done" in said.out
    table = {float(row["mu"]): row for row in rows(out / "table.csv")}
    assert {*table} == {0.1, 0.9} and len(rows(out / "failed.csv")) == 2
    t, dt, slope = 0.2, 0.01, np.deg2rad(20)
    a = 9.81 * (np.sin(slope) - 0.1 * np.cos(slope))
    assert float(table[0.1]["slid"]) == pytest.approx(0.5 * a * t * (t + dt), rel=1e-3)
    assert float(table[0.9]["slid"]) < 1e-6
    point = json.loads((out / "mu=0.1,angle=20" / "point.json").read_text())
    assert point["settings"] == {"mu": 0.1, "angle": 20} and point["status"] == "done"
    # Again, with one more value: what was finished stays, what failed is tried again.
    times = {p: p.stat().st_mtime_ns for p in out.glob("*/run.h5")}
    words[3] = "mu=0.1,0.9,0.5"
    assert main([*words, "--quiet"]) == 1
    assert {p: p.stat().st_mtime_ns for p in times} == times and len(rows(out / "table.csv")) == 3
    assert (out / "plot.png").stat().st_size > 1000
    # Another scene is another sweep.
    scene.write_text(RAMP.replace("0.01", "0.02"))
    assert main(words) == 2
    assert "Choose another folder" in capsys.readouterr().err


def test_mistakes_are_one_line(scene, tmp_path, capsys):
    for words, said in (
        ([], "needs --set"),
        (["--set", "mus=1,2"], "Did you mean 'mu'?"),
        (["--set", "mu=1,2", "--set", "mu=3"], "is given twice"),
        (["--set", "mu=1,2", "--jobs", "0"], "must be >= 1"),
        (["--set", "mu=1,2", "--scheduler", "nowhere"], "must be an address with a port"),
        (["--set", "mu=1,2", "--scheduler", "tpc://here:8786"], "Did you mean 'tcp'?"),
        (["--set", "mu=1,2", "--scheduler", "tcp://here"], "like tcp://host:8786"),
        (["--set", "mu=1,2", "--plot", "contact"], "Did you mean 'contacts'?"),
        (["--set", "mu=1,2", "--measure", str(scene)], "Python file that runs"),
        (["--set", "mu=1,2", "--out", str(tmp_path)], "new or empty folder"),
    ):
        assert main(["sweep", str(scene), "--out", str(tmp_path / "o"), *words]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_a_sweep_that_was_ended_goes_on(tmp_path):
    """By SIGKILL, then Ctrl-C: points at work leave a checkpoint and go on from it, finished ones are not touched."""
    scene = tmp_path / "ramp.toml"
    scene.write_text(RAMP.replace("until = 0.2", 'until = "=until"').replace("mu = 0.3", "mu = 0.3\nuntil = 0.1"))
    out = tmp_path / "out"
    words = ["sweep", str(scene), "--set", "until=0.1,1000", "--jobs", "1", "--out", str(out)]
    command = [sys.executable, "-m", "tumble", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=answer_signals)
    first, second = out / "until=0.1" / "point.json", out / "until=1000" / "run.h5"
    _until(lambda: first.exists() and second.exists(), process)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    lock = second.with_name(".run.h5.lock")
    _until(lambda: not lock.exists())  # the point ends with the sweep, however that ends
    checkpoint = second.with_name("run.checkpoint.h5")
    assert checkpoint.exists() and not (out / "until=1000" / "point.json").exists()
    before = first.stat().st_mtime_ns
    # The rest of the long point is not waited for: that it goes on is seen by what it writes.
    from tumble.observe.trajectory import Trajectory

    with Trajectory(second) as run:
        reached = run.times[-1]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=answer_signals)

    def further():
        with Trajectory(second) as run:
            return run.times[-1] > reached and len(run.history) > 1

    _until(further, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130 and first.stat().st_mtime_ns == before
    assert len(rows(out / "table.csv")) == 1


def _until(done, process=None):
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end and (process is None or process.poll() is None)
        time.sleep(0.05)


@pytest.mark.parametrize("processes", [False, True])
def test_a_dask_cluster_does_the_same(scene, tmp_path, processes):
    """A cluster within this process (inproc://), and workers of their own, reached by tcp://."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: no cluster is tried")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=processes, dashboard_address=None
    ) as cluster:
        assert cluster.scheduler_address.startswith("tcp" if processes else "inproc")
        done = sweep(
            scene, {"mu": [0.1, 0.2], "angle": [10, 80]}, out=tmp_path / "o", scheduler=cluster.scheduler_address
        )
        assert done.done == 2 and len(done.failed) == 2
    assert [float(r["mu"]) for r in rows(tmp_path / "o" / "table.csv")] == [0.1, 0.2]


def test_a_scheduler_that_is_not_there(scene, tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed", reason="distributed is not installed: no cluster is tried")
    words = ["sweep", str(scene), "--set", "mu=1,2", "--out", str(tmp_path / "o"), "--scheduler"]
    assert main([*words, "tcp://127.0.0.1:1"]) == 2
    assert "must be a running Dask scheduler" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main([*words, "tcp://127.0.0.1:1"]) == 2
    assert "tumble[sweep]" in capsys.readouterr().err
