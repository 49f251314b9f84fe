"""What all formats promise: sizes, places, and one line for mistakes."""

import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

import tumble as tb
from tumble.cli import main
from tumble.errors import FileError, OptionsError
from tumble.export import FORMATS, export
from tumble.observe.layout import Plan
from tumble.observe.writer import TrajectoryWriter
from tumble.scene.model import State

EXTRAS = {"parquet": "pyarrow", "gsd": "gsd", "usd": "pxr"}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """1000 bodies that move at random, 500 frames, recorded in single precision."""
    scene = tb.SceneBuilder()
    scene.add_spheres(0.01, position=tb.grid_points((10, 10, 10), 0.1), density=1.0)
    model, rng = scene.build(), np.random.default_rng(0)
    path = tmp_path_factory.mktemp("large") / "run.h5"
    fields = ("position", "orientation", "velocity", "angular_velocity")
    columns = dict.fromkeys(map(str, range(50)), "1") | {"time": "s"}
    writer = TrajectoryWriter(path, model=model, plan=Plan(fields=fields, columns=columns, single=True), attributes={})
    for step in range(500):
        q = rng.normal(size=(1000, 4))
        q /= np.linalg.norm(q, axis=1, keepdims=True)
        writer.append_report(rng.normal(size=51))
        place, speed, spin = rng.normal(size=(3, 1000, 3))
        writer.append_frame(State(0.01 * step, step, place, q, speed, spin))
    writer.close(finished=True)
    return path


def size(done):
    return sum(p.stat().st_size for p in done.paths)


def test_a_thousand_bodies_and_five_hundred_frames_take_less_than_30_mb(large):
    assert large.stat().st_size < 30e6


@pytest.mark.parametrize(
    ("to", "options"), [("vtkhdf", {"shapes": "points"}), ("parquet", {"precision": "single"}), ("gsd", {})]
)
def test_so_do_its_exports(large, tmp_path, to, options):
    if to in EXTRAS:
        pytest.importorskip(EXTRAS[to], reason=f"{EXTRAS[to]} is not installed: {to} is not written")
    assert size(export(large, to, tmp_path / f"a.{to}", **options)) < 30e6


def test_nothing_is_replaced_unless_it_is_asked_for(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = export(run, "csv")
    assert first.paths[0].name == "run.csv"
    with pytest.raises(FileError, match="--overwrite"):
        export(run, "csv")
    (tmp_path / "run.csv").unlink()
    with pytest.raises(FileError, match=r"run\.contacts\.csv: .*--overwrite"):
        export(run, "csv")
    assert not (tmp_path / "run.csv").exists()
    assert export(run, "csv", overwrite=True).paths == first.paths
    with pytest.raises(FileError, match="another file than the run"):
        export(run, "vtkhdf", run.path, overwrite=True)
    assert len(run) == 5 and run.read("position", 0).shape


def test_mistakes_are_one_line(run, tmp_path, capsys):
    for words, said in (
        (["--to", "vtk"], "Did you mean 'vtkhdf'?"),
        (["--to", "csv", "--every", "0"], "must be >= 1"),
        (["--to", "vtkhdf", "--shapes", "surface"], "Did you mean 'surfaces'?"),
        (["--to", "csv", "--precision", "half"], "must be one of single, double"),
        (["--to", "csv", "--out", str(tmp_path / "no" / "a.csv")], "folder that exists"),
        (["--to", "csv", "--shapes", "points"], "is for ParaView"),
        (["--to", "usd", "--shapes", "points"], "is for ParaView"),
        (["--to", "parquet", "--segments", "8"], "formats with triangles"),
        (["--to", "gsd", "--precision", "double"], "gsd knows single only"),
    ):
        assert main(["export", str(run.path), *words]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1
    assert main(["export", str(tmp_path / "no.h5"), "--to", "csv"]) == 2


def test_a_missing_library_names_its_extra(run, tmp_path, monkeypatch):
    for to, module, extra in (
        ("parquet", "pyarrow", "parquet"),
        ("gsd", "gsd.hoomd", "gsd"),
        ("usd", "pxr.Usd", "usd"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(OptionsError, match=rf"pip install 'tumble\[{extra}\]'"):
            export(run, to, tmp_path / f"a{FORMATS[to][0]}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("to", FORMATS)
def test_a_floor_alone_can_be_exported(tmp_path, to):
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    path = tmp_path / "floor.h5"
    tb.Simulation(scene.build(), options=tb.StepOptions(dt=0.1), threads=1).run(until=0.2, save=tb.Save(path=path))
    done = export(path, to, tmp_path / f"a{FORMATS[to][0]}")
    with tb.Trajectory(path) as trajectory:
        assert done.frames == len(trajectory) > 0
    assert all(p.stat().st_size for p in done.paths)


def test_a_list_of_files_goes_before_the_first_of_them_is_replaced(run, tmp_path, monkeypatch):
    """Killed in between, an old list would show new files at the times of old ones."""
    out = tmp_path / "a.vtp.series"
    export(run, "vtp-series", out)
    files = json.loads(out.read_text())["files"]
    monkeypatch.setattr("tumble.export.vtk.write_vtp", lambda *_: os._exit(9))
    child = os.fork()
    if not child:
        export(run, "vtp-series", out, overwrite=True, every=2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert len(files) == 5 and not list(tmp_path.glob("*.series"))


def test_what_was_not_recorded_is_left_out(tmp_path):
    scene = tb.SceneBuilder()
    scene.add_body(tb.Sphere(0.1), mass=1.0)
    model = scene.build()
    for fields, said in ((("position", "orientation"), None), (("velocity",), "Save.fields")):
        writer = TrajectoryWriter(
            tmp_path / "r.h5", model=model, plan=Plan(fields=fields, columns={"time": "s"}), attributes={}
        )
        writer.append_frame(model.initial)
        writer.close(finished=True)
        for to, (ending, _) in FORMATS.items():
            if to in EXTRAS:
                pytest.importorskip(EXTRAS[to])
            if said is None:
                assert export(tmp_path / "r.h5", to, tmp_path / f"a{ending}", overwrite=True).frames == 1
            else:
                with pytest.raises(OptionsError, match=said):
                    export(tmp_path / "r.h5", to, tmp_path / f"b{ending}")
    export(run_of_chosen(tmp_path), "vtkhdf", tmp_path / "c.vtkhdf", shapes="points")
    with h5py.File(tmp_path / "c.vtkhdf") as file:
        assert file["VTKHDF/PointData/body"][...].tolist() == [2, 0]


def run_of_chosen(folder):
    """Two of three bodies, the last first."""
    scene = tb.SceneBuilder()
    scene.add_spheres(0.1, position=[(0, 0, 0), (1, 0, 0), (2, 0, 0)], mass=1.0)
    model = scene.build()
    plan = Plan(fields=("position", "orientation"), columns={"time": "s"}, bodies=np.array([2, 0]))
    writer = TrajectoryWriter(folder / "chosen.h5", model=model, plan=plan, attributes={})
    writer.append_frame(model.initial)
    writer.close(finished=True)
    return folder / "chosen.h5"


def test_ctrl_c_leaves_a_whole_file(large, tmp_path):
    """The frames until then, readable; exit code 130."""
    code = f"""
import os, signal, sys
sys.argv[0] = "tumble"
import tumble
from tumble.export import source
from tumble.interrupts import listen
listen()
frame = source.Source.frame
def slow(self, index):
    if index == 7:
        os.kill(os.getpid(), signal.SIGINT)
    return frame(self, index)
source.Source.frame = slow
from tumble.cli import main
out = {str(tmp_path / "a.vtkhdf")!r}
out = {str(tmp_path / "a.vtkhdf")!r}
sys.exit(main(["export", {str(large)!r}, "--to", "vtkhdf", "--shapes", "points", "--out", out]))
"""
    from ..children import answer_signals

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=answer_signals)
    assert done.returncode == 130 and "frames until then" in done.stderr
    with h5py.File(tmp_path / "a.vtkhdf") as file:
        assert file["VTKHDF/Steps"].attrs["NSteps"] == 8


FULL = """
import resource, signal, sys
from tumble.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("to", FORMATS)
def test_a_disk_that_is_full_is_one_line(run, tmp_path, to):
    """HDF5 ended the process with a segmentation fault, USD with a traceback. Here no file may grow beyond 3 kB."""
    if to in EXTRAS:
        pytest.importorskip(EXTRAS[to], reason=f"{EXTRAS[to]} is not installed: {to} is not written")
    command = [sys.executable, "-c", FULL, "3000", "export", str(run.path), "--to", to, "--out", f"a{FORMATS[to][0]}"]
    done = subprocess.run(command, text=True, capture_output=True, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("tumble: error: ") and done.stderr.count("\n") == 1 and "writable" in done.stderr
    assert list(tmp_path.iterdir()) == []
