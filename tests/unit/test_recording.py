"""Runs and their files: nothing is replaced, mixed up or changed in silence."""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial

import h5py
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import tumble as tb
from tests.children import answer_signals, without_privileges
from tumble.cli import main
from tumble.errors import FileError, OptionsError, TumbleError
from tumble.observe.checkpoint import read_checkpoint
from tumble.observe.description import changes, describe
from tumble.observe.live import LiveFile
from tumble.observe.writer import TrajectoryWriter
from tumble.sim import reports, run
from tumble.sim.laws import ContactLaws

SCENE = """
gravity = [0, 0, -9.81]
[[material]]
name = "steel"
friction = 0.3
[[body]]
kind = "static"
material = "steel"
shape = {type = "half_space"}
[[body]]
kind = "kinematic"
name = "shaker"
material = "steel"
shape = {type = "sphere", radius = 0.1}
position = [1, 0, 0.5]
motion = {amplitude = [0, 0, 0.1], period = 0.5}
[[spheres]]
name = "balls"
radius = 0.05
mass = 0.1
material = "steel"
packing = {kind = "grid", shape = [2, 2, 1], spacing = 0.12, origin = [0, 0, 0.06], jitter = 0.01}
[step]
dt = 2e-3
[run]
until = 0.04
save_every = 4
"""
RUN = ("run", "scene.toml", "--threads", "1", "--quiet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.toml").write_text(SCENE)
    return tmp_path


def tumble(capsys, *arguments):
    """Exit code and the one line of the error output."""
    code = main([*map(str, arguments)])
    lines = capsys.readouterr().err.splitlines(keepends=True)
    error = "".join(line for line in lines if not line.startswith("tumble: compil"))  # said where the cache is cold
    assert error.count("\n") == (code != 0), error
    return code, error


def balls(**options):
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_spheres(0.05, mass=0.1, position=tb.grid_points((2, 2, 1), 0.12, origin=(0, 0, 0.06)), name="balls")
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3, **options), threads=1)


# ---------------------------------------------------------------------- what is replaced


def test_a_run_that_is_there_is_not_replaced_in_silence(folder, capsys):
    assert tumble(capsys, *RUN)[0] == 0
    before = (folder / "scene.h5").read_bytes()
    code, error = tumble(capsys, *RUN)
    assert code == 2 and all(word in error for word in ("scene.h5", "--overwrite", "--resume", "overwrite=True"))
    assert (folder / "scene.h5").read_bytes() == before
    assert tumble(capsys, *RUN, "--overwrite", "--until", "0.02")[0] == 0
    with tb.Trajectory("scene.h5") as run:
        assert run.steps[-1] == 10
    (folder / "scene.h5").unlink()
    code, error = tumble(capsys, *RUN)  # its checkpoint alone is nothing to go on with
    assert code == 2 and "scene.checkpoint.h5: must be a new file" in error and "--resume" not in error


@pytest.mark.parametrize("name", ["scene.toml", "notes.h5", "other.h5", "/dev/null"])
def test_other_files_are_never_replaced(folder, capsys, name):
    (folder / "notes.h5").write_text("my notes")
    with h5py.File("other.h5", "w") as file:
        file["x"] = 1.0
    kept = {p.name: p.read_bytes() for p in folder.iterdir()}
    for more in ((), ("--overwrite",)):
        assert tumble(capsys, *RUN, "--out", name, *more)[0] == 2
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == kept
    for target in (tb.Save(path="run.h5", checkpoint="notes.h5"), tb.Save(path="notes.h5", overwrite=True)):
        with pytest.raises(FileError, match=r"notes\.h5: must be a new file or a tumble"):
            balls().run(until=0.01, save=target, progress=False)
    os.mkfifo("pipe.h5")
    with pytest.raises(FileError, match=r"^pipe\.h5: must be a regular file \(got another kind of file\)"):
        balls().run(until=0.01, save=tb.Save(path="pipe.h5", overwrite=True), progress=False)


def test_names_that_no_file_can_have_are_one_line(folder, capsys):
    """Links in a circle and zero bytes came through to the writer."""
    (folder / "circle.h5").symlink_to("circle.h5")
    for name in ("circle.h5", "a\0b.h5", "n" * 300 + ".h5", "scene.toml/run.h5"):
        for more in ((), ("--overwrite",), ("--resume",)):
            assert tumble(capsys, *RUN, "--out", name, *more)[0] == 2
            assert tumble(capsys, *RUN, "--checkpoint", name)[0] == 2
    assert sorted(p.name for p in folder.iterdir()) == ["circle.h5", "scene.toml"]


@pytest.mark.parametrize("other", ["run.h5", "./run.h5", "link.h5"])
def test_the_checkpoint_is_not_the_trajectory(folder, other):
    """It took its place after the first frame."""
    (folder / "link.h5").symlink_to("run.h5")
    with pytest.raises(FileError, match=r"Save\.checkpoint: must be another file than the trajectory"):
        balls().run(until=0.02, save=tb.Save(path="run.h5", checkpoint=other), progress=False)
    balls().run(until=0.02, save=tb.Save(path="run.h5"), progress=False)
    for options in (dict(save=tb.Save(path="run.h5", checkpoint=other, overwrite=True)), dict(resume=True)):
        save = options.pop("save", tb.Save(path="run.h5", checkpoint=other))
        with pytest.raises(FileError, match="must be another file"):
            balls().run(until=0.04, save=save, progress=False, **options)
    with tb.Trajectory("run.h5") as run:
        assert run.finished and run.steps[-1] == 10


def test_a_label_keeps_to_its_own(folder):
    own = tb.Save(path="run.h5", label="demo", overwrite=True)
    for _ in range(2):
        balls().run(until=0.01, save=own, progress=False)
    with tb.Trajectory("run.h5") as run:
        assert run.run_id.startswith("demo-")
    balls().run(until=0.01, save=tb.Save(path="run.h5", overwrite=True), progress=False)
    with pytest.raises(FileError, match="must be new or a run of 'demo'"):
        balls().run(until=0.01, save=own, progress=False)


def test_the_same_simulation_goes_on_in_its_file(folder):
    sim, save = balls(), tb.Save(path="run.h5", every=5)
    first = sim.run(until=0.02, save=save, progress=False)
    second = sim.run(until=0.04, save=save, progress=False)
    assert (first.steps, second.steps) == (10, 10)
    whole = balls()
    whole.run(until=0.04, save=tb.Save(path="whole.h5", every=5), progress=False)
    with tb.Trajectory("run.h5") as run, tb.Trajectory("whole.h5") as other:
        assert run.steps.tolist() == other.steps.tolist() == [0, 5, 10, 15, 20]
        assert run.finished and run.final_state_sha256 == other.final_state_sha256
        assert np.array_equal(run.reports["step"], np.arange(1, 21))
    assert second.reports["step"].tolist() == list(range(11, 21)) and len(first.reports["time"]) == 10
    with pytest.raises(FileError, match="must be a new file"):  # another simulation, or one that was set back
        balls().run(until=0.02, save=save, progress=False)
    sim.set_state(sim.model.initial)
    with pytest.raises(FileError, match="must be a new file"):
        sim.run(until=0.02, save=save, progress=False)


def test_a_file_taken_away_in_mid_run_is_noticed(folder):
    def remove(sim):
        if sim.state.step == 7:
            (folder / "run.h5").unlink()
        return False

    save = tb.Save(path="run.h5", every=1, frames_per_checkpoint=2)
    with pytest.raises(FileError, match="must stay where it is"):
        balls().run(until=0.04, save=save, progress=False, stop=remove)


def cut(path):
    os.truncate(path, 5000)


def write_over(path):
    other = path.with_name("other.h5")
    balls().run(until=0.01, save=tb.Save(path=other, overwrite=True), progress=False)
    path.write_bytes(other.read_bytes())  # as `cp` does: the file keeps its number


def write_into(path):
    program = f"import h5py; h5py.File({str(path)!r}, 'r+').attrs['note'] = 'mine'"
    environment = os.environ | {"HDF5_USE_FILE_LOCKING": "FALSE"}  # as where the file system has no locks
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


@pytest.mark.parametrize("spoil", [cut, write_over, write_into])
@pytest.mark.parametrize("every", [2, 1000])
def test_a_file_that_is_written_by_others_in_mid_run_is_noticed(folder, spoil, every):
    """It ended with success, and left a file that nobody could read."""

    def spoiled(sim):
        if sim.state.step == 7:
            spoil(folder / "run.h5")
        return False

    sim, save = balls(), tb.Save(path="run.h5", every=every)
    with pytest.raises(
        FileError, match=r"run\.h5: must stay as it is while a run writes it \(got one that was cut or w"
    ):
        sim.run(until=0.04, save=save, progress=False, stop=spoiled)
    assert not (folder / ".run.h5.lock").exists()
    sim, save = balls(), tb.Save(path="twice.h5", every=every)
    sim.run(until=0.02, save=save, progress=False)
    spoil(folder / "twice.h5")
    with pytest.raises(FileError, match="must stay as it is"):
        sim.run(until=0.04, save=save, progress=False)


def test_two_runs_cannot_write_one_file(folder):
    def second(sim):
        with pytest.raises(FileError, match="one run at a time"):
            balls().run(until=0.01, save=tb.Save(path="run.h5", overwrite=True), progress=False)
        return False

    balls().run(until=0.004, save=tb.Save(path="run.h5"), progress=False, stop=second)

    def behind(sim):  # its checkpoint is ahead of what a reader finds, for a moment
        sim.recording.rescue(sim)
        with pytest.raises(FileError, match="one run at a time"):
            balls().run(until=0.01, save=tb.Save(path="other.h5", every=1), progress=False, resume=True)
        return False

    balls().run(until=0.004, save=tb.Save(path="other.h5", every=1), progress=False, stop=behind)
    with tb.Trajectory("run.h5") as run:
        assert run.finished and run.steps[-1] == 2


PROTECTED = """
from pathlib import Path
from tumble.cli import main
Path("closed").mkdir(mode=0o500)
Path("away").mkdir(mode=0)
Path("scene.h5").chmod(0o440)
run = ["run", "scene.toml", "--threads", "1", "--quiet"]
codes = [main([*run, "--out", "closed/run.h5"]), main([*run, "--resume"]), main([*run, "--overwrite"])]
codes += [main([*run, "--out", "away/run.h5"]), main(["info", "away/scene.toml"]), main(["solve", "away/x.hdf5"])]
assert codes == 6 * [2], codes
"""


def test_what_is_protected_is_one_line(folder):
    """A folder that is read-only or closed, and a run that somebody protected: it could be replaced, but must not."""
    assert main([*RUN]) == 0
    command = [sys.executable, "-c", PROTECTED]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True, preexec_fn=without_privileges)
    lines = done.stderr.splitlines()
    assert done.returncode == 0 and len(lines) == 6, done.stderr
    assert all(line.startswith("tumble: error: ") and "Permission denied" in line for line in lines), done.stderr
    assert "scene.h5: must be writable" in lines[1] and "scene.h5: must be writable" in lines[2]
    (folder / "scene.h5").chmod(0o640)
    (folder / "scene.checkpoint.h5").chmod(0o600)
    assert main([*RUN, "--resume", "--until", "0.06"]) == 0
    assert [(folder / n).stat().st_mode & 0o777 for n in ("scene.h5", "scene.checkpoint.h5")] == [0o640, 0o600]


def test_files_that_may_not_be_read_are_not_called_damaged(folder, monkeypatch):
    """Also for root, who may read all: the system is asked whether we may."""
    sim = balls()
    sim.run(until=0.02, save=tb.Save(path="run.h5"), progress=False)
    sim.dump_problem("step.hdf5")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK)
    for read, name in (
        (tb.Trajectory, "run.h5"),
        (read_checkpoint, "run.checkpoint.h5"),
        (tb.read_problem, "step.hdf5"),
    ):
        with pytest.raises(FileError, match=rf"{name}: must be readable \(got Permission denied\)\. Check its perm"):
            read(name)
    with pytest.raises(FileError, match=r"run\.h5: must be readable"):
        balls().run(until=0.02, save=tb.Save(path="run.h5", overwrite=True), progress=False)


# ---------------------------------------------------------------------- resuming what it is


def test_a_checkpoint_of_another_run_is_refused(folder, capsys):
    assert tumble(capsys, *RUN)[0] == 0
    old = (folder / "scene.checkpoint.h5").read_bytes()
    assert tumble(capsys, *RUN, "--overwrite", "--until", "0.02")[0] == 0
    (folder / "scene.checkpoint.h5").write_bytes(old)
    code, error = tumble(capsys, *RUN, "--resume")
    assert code == 2 and "must be the checkpoint of scene.h5" in error and "--overwrite" in error
    (folder / "scene.checkpoint.h5").unlink()
    code, error = tumble(capsys, *RUN, "--resume")
    assert code == 2 and "must exist to resume" in error


def test_a_checkpoint_ahead_of_its_trajectory_is_refused(folder, capsys):
    assert tumble(capsys, *RUN, "--until", "0.02")[0] == 0
    short = (folder / "scene.h5").read_bytes()
    assert tumble(capsys, *RUN, "--resume")[0] == 0
    (folder / "scene.h5").write_bytes(short)
    code, error = tumble(capsys, *RUN, "--resume", "--until", "0.06")
    assert code == 2 and "would be missing" in error


@pytest.mark.parametrize(
    "before, after, name",
    [
        ("friction = 0.3", "friction = 0.4", "model.materials[0].friction"),
        ("-9.81]", "-9.0]", "model.gravity"),
        ("period = 0.5", "period = 0.6", "model.motions[1].period"),
        ("dt = 2e-3", "dt = 1e-3", "step.dt"),
    ],
)
def test_an_edited_scene_is_refused_or_recorded(folder, capsys, before, after, name):
    assert tumble(capsys, *RUN, "--until", "0.02")[0] == 0
    (folder / "scene.toml").write_text(SCENE.replace(before, after))
    code, error = tumble(capsys, *RUN, "--resume")
    assert code == 2 and f"scene.h5: {name}" in error and "--accept-changes" in error
    with tb.Trajectory("scene.h5") as run:
        assert run.steps[-1] == 10
    assert tumble(capsys, *RUN, "--resume", "--accept-changes")[0] == 0
    with tb.Trajectory("scene.h5") as run:
        begun, changed = run.history
        assert begun["event"] == "begun" and changed["event"] == "changed" and changed["step"] == 10
        assert changed["changes"][0]["name"] == name
    assert tumble(capsys, *RUN, "--resume", "--until", "0.05")[0] == 0  # now it is the scene of the file


def test_from_python_options_and_solver_are_compared_too(folder):
    save = tb.Save(path="run.h5")
    balls().run(until=0.02, save=save, progress=False)
    other = balls()
    other.solver = replace(other.solver, tolerance=1e-3)
    with pytest.raises(OptionsError, match=r"run\.h5: solver\.tolerance: must be None .* \(got 0\.001\)"):
        other.run(until=0.04, save=save, resume=True, progress=False)
    with pytest.raises(OptionsError, match=r"step\.recovery_speed"):
        balls(recovery_speed=1.0).run(until=0.04, save=save, resume=True, progress=False)
    with pytest.raises(OptionsError, match=r"Save\.precision"):
        balls().run(until=0.04, save=replace(save, precision="single"), resume=True, progress=False)


def test_a_scene_that_no_file_can_hold_is_told_by_its_first_difference(folder, capsys):
    tap = """[[emitter]]
name = "tap"
shape = {type = "sphere", radius = 0.05}
mass = 0.1
count = 2
rate = 100.0
region = {type = "disc", center = [0, 0, 2], radius = 0.2}
"""
    (folder / "scene.toml").write_text(SCENE + tap)
    assert tumble(capsys, *RUN, "--until", "0.02")[0] == 0
    for text, name in (
        (SCENE + tap.replace("rate = 100.0", "rate = 50.0"), "model.flow.emitters[0].rate: must be 100.0"),
        (SCENE.replace("mass = 0.1", "mass = 0.2") + tap, "model.body_mass: must be [0.0, 0.0, 0.1"),
        (SCENE.replace("radius = 0.1", "radius = 0.2") + tap, "model.shape_parameters"),
    ):
        (folder / "scene.toml").write_text(text)
        code, error = tumble(capsys, *RUN, "--resume", "--accept-changes")
        assert code == 2 and f"scene.h5: {name}" in error and "cannot change within a file" in error


def test_what_changes_between_two_runs_of_one_simulation_is_recorded(folder):
    """A simulation goes on in its file; another solver or option was not told to whoever reads it."""
    sim, save = balls(), tb.Save(path="run.h5", every=5)
    sim.run(until=0.02, save=save, progress=False)
    sim.options = replace(sim.options, recovery_speed=0.5)
    sim.run(until=0.04, save=save, progress=False)
    sim.run(until=0.05, save=save, progress=False)
    with tb.Trajectory("run.h5") as run:
        assert run.steps.tolist() == [0, 5, 10, 15, 20, 25] and run.finished
        assert [event["event"] for event in run.history] == ["begun", "changed"]
        assert run.history[1]["step"] == 10
        assert run.history[1]["changes"] == [{"name": "step.recovery_speed", "before": "None", "now": "0.5"}]
    with pytest.raises(OptionsError, match=r"step\.recovery_speed: must be 0\.5"):
        balls().run(until=0.06, save=save, progress=False, resume=True)
    balls(recovery_speed=0.5).run(until=0.06, save=save, progress=False, resume=True)


def paddle(target):
    scene = tb.SceneBuilder()
    scene.add_body(tb.Box((0.6, 0.1, 0.04)), mass=1.0, name="paddle")
    scene.add_joint("revolute", None, "paddle", anchor=(0, 0, 0), axis=(0, 1, 0), name="hinge")
    scene.add_motor("hinge", "speed", target=1.0, maximum=5.0, name="motor")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3), threads=1)
    if target is not None:
        sim.set_target("motor", target)
    return sim


def test_targets_that_are_functions_are_compared(folder):
    """They do not belong to the model: a resumed run turned another way without a word."""
    save = tb.Save(path="run.h5", every=5)
    paddle(lambda t: 2.0 * t).run(until=0.02, save=save, progress=False)
    for other in (None, lambda t: 3.0 * t):
        with pytest.raises(OptionsError, match=r"run\.h5: target of motor: must be function .*lambda"):
            paddle(other).run(until=0.04, save=save, progress=False, resume=True)
    paddle(lambda t: 2.0 * t).run(until=0.04, save=save, progress=False, resume=True)
    whole = paddle(lambda t: 2.0 * t)
    whole.run(until=0.04, progress=False)
    with tb.Trajectory("run.h5") as run:
        assert run.final_state_sha256 == whole.state.sha256()


def test_objects_are_told_apart_by_what_they_hold_and_do():
    """Private values, slots, partial functions and the methods of a user's class were passed over."""
    text = """
class Base:
    def gain(self): return 2.0
class f(Base):
    __slots__ = ("held",)
    def __init__(self, k): self.held, self._k = 1.0, k
    def __call__(self, t): return self._k * t * self.gain() * self.held
    @property
    def again(self): return 3.0
"""

    def made(text, k=1.0):
        around = {"__name__": "controller"}
        exec(text, around)
        return around["f"](k)

    one = describe(f=made(text))
    assert one == describe(f=made(text))
    for old, new in (("* t", "- t"), ("2.0", "2.5"), ("= 1.0, k", "= 4.0, k"), ("3.0", "3.5")):
        assert text.count(old) == 1 and describe(f=made(text.replace(old, new))) != one, new
    assert describe(f=made(text, 2.0)) != one

    def plus(t, k):
        return t + k

    assert describe(f=partial(plus, k=1.0)) == describe(f=partial(plus, k=1.0)) != describe(f=partial(plus, k=2.0))
    tables = [CubicSpline([0.0, 1.0, 2.0], [0.0, y, 0.0]) for y in (1.0, 1.0, 1.5)]
    assert describe(f=tables[0]) == describe(f=tables[1]) != describe(f=tables[2])
    noise = [np.random.default_rng(seed) for seed in (1, 1, 2)]
    assert describe(f=noise[0]) == describe(f=noise[1]) != describe(f=noise[2])
    things = [np.array([made(text, k), None]) for k in (1.0, 1.0, 2.0)]
    assert describe(f=things[0]) == describe(f=things[1]) != describe(f=things[2])


def test_functions_that_call_each_other_are_looked_into_once():
    """Each of 40 functions calls the next two: there are 10^8 ways from the first to the last."""
    text = "\n".join(f"def f{k}(t): return f{k + 1}(t) + f{k + 2}(t)" for k in range(40))

    def made(last):
        around = {"__name__": "controller"}
        exec(f"{text}\ndef f40(t): return {last}\ndef f41(t): return f0", around)
        return around["f0"]

    began = time.perf_counter()
    assert describe(f=made(1.0)) == describe(f=made(1.0)) != describe(f=made(2.0))
    assert time.perf_counter() - began < 5.0
    assert describe(f=json.dumps) == {"f": "function dumps"}  # not the whole library


def test_functions_are_told_apart_by_what_they_do():
    def made(text, **around):
        exec(text, around)
        return around["f"]

    same = [made("def f(t): return A * t + 1", A=2.0), made("\n\n# moved\ndef f(t): return A * t + 1", A=2.0)]
    assert describe(f=same[0]) == describe(f=same[1])
    for other in (
        made("def f(t): return A * t + 2", A=2.0),
        made("def f(t): return A * t + 1", A=3.0),
        made("def f(t): return A * t - 1", A=2.0),
        made("def f(t, b=1): return A * t + 1", A=2.0),
    ):
        assert [c.name for c in changes(describe(f=same[0]), describe(f=other))] == ["f"]
    data = np.arange(100.0)
    assert describe(x=data) == describe(x=data.copy()) != describe(x=data + 1e-9)


# ---------------------------------------------------------------------- signals and wall time


def started(folder, *arguments):
    """A long run that has written its first checkpoint."""
    command = [sys.executable, "-m", "tumble", *RUN, "--until", "1000", *arguments]
    environment = os.environ | {"NUMBA_NUM_THREADS": "1"}
    child = subprocess.Popen(
        command, cwd=folder, text=True, stderr=subprocess.PIPE, env=environment, preexec_fn=answer_signals
    )
    limit = time.monotonic() + 200
    while not (folder / "scene.checkpoint.h5").exists() and child.poll() is None and time.monotonic() < limit:
        time.sleep(0.05)
    return child


@pytest.mark.parametrize("name, code, times", [("SIGTERM", 143, 1), ("SIGHUP", 129, 1), ("SIGTERM", 143, 4)])
def test_signals_end_a_run_with_its_last_frame_and_checkpoint(folder, name, code, times):
    """Also where one comes several times: from a batch system, or for each thread of a parent that is killed."""
    child = started(folder)
    time.sleep(0.5)
    for _ in range(times):
        child.send_signal(getattr(signal, name))
        time.sleep(0.01)
    assert child.communicate(timeout=60)[1] == "tumble: interrupted; the data are in scene.h5, go on with --resume\n"
    assert child.returncode == code
    with tb.Trajectory(folder / "scene.h5") as run:
        assert not run.finished and run.steps[-1] == read_checkpoint(folder / "scene.checkpoint.h5").state.step > 0


def test_a_run_that_is_asked_writes_a_checkpoint_and_goes_on(folder):
    child = started(folder, "--save-every", "1000000")
    child.send_signal(signal.SIGUSR1)
    limit = time.monotonic() + 60
    while read_checkpoint(folder / "scene.checkpoint.h5").state.step == 0 and time.monotonic() < limit:
        time.sleep(0.05)
    found = read_checkpoint(folder / "scene.checkpoint.h5")
    assert child.poll() is None and found.state.step == len(found.pending) > 0
    child.kill()
    child.communicate()
    until = found.state.time + 0.02
    assert main([*RUN, "--resume", "--until", str(until)]) == 0
    assert main([*RUN, "--out", "whole.h5", "--until", str(until), "--save-every", "1000000"]) == 0
    with tb.Trajectory("scene.h5") as run, tb.Trajectory("whole.h5") as whole:
        assert run.final_state_sha256 == whole.final_state_sha256 and run.steps.tolist() == whole.steps.tolist()
        assert np.array_equal(run.reports["natural_map"], whole.reports["natural_map"])


@pytest.fixture
def ctrl_c():
    """Python's own handler, also where the tests run in the background."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread is sent signals")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def is_whole(name="run.h5"):
    """The final hash of a run in which no step lacks its report."""
    balls().run(until=0.04, save=tb.Save(path="whole.h5", every=3, overwrite=True), progress=False)
    with tb.Trajectory(name) as run, tb.Trajectory("whole.h5") as whole:
        assert run.finished and run.final_state_sha256 == whole.final_state_sha256
        assert run.reports["step"].tolist() == whole.reports["step"].tolist() == list(range(1, 21))


@pytest.mark.parametrize("module, called", [(ContactLaws, "change"), (TrajectoryWriter, "_size"), (run, "report_row")])
@pytest.mark.parametrize("when", [5, 7])
def test_ctrl_c_in_a_program_ends_a_run_between_steps(folder, monkeypatch, ctrl_c, module, called, when):
    """In a step, within a frame and before a report; the same simulation goes on as if nothing had happened."""
    real, calls = getattr(module, called), []

    def interrupted(*given, **named):
        calls.append(1)
        if len(calls) == when:
            ctrl_c()
        return real(*given, **named)

    monkeypatch.setattr(module, called, interrupted)
    sim, save = balls(), tb.Save(path="run.h5", every=3)
    with pytest.raises(KeyboardInterrupt):
        sim.run(until=0.04, save=save, progress=False)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with tb.Trajectory("run.h5") as part:
        assert part.steps[-1] == sim.state.step == read_checkpoint("run.checkpoint.h5").state.step < 20
    sim.run(until=0.04, save=save, progress=False)
    is_whole()


def test_ctrl_c_in_the_last_step_is_not_lost(folder, ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        balls().run(
            until=0.04, save=tb.Save(path="run.h5", every=3), progress=False, stop=lambda s: s.time > 0.039 and ctrl_c()
        )
    is_whole()


@pytest.mark.parametrize("place, called", [(LiveFile, "make_room"), (run, "report_row")])
def test_what_breaks_off_in_a_frame_or_before_a_report_is_not_gone_on_with(folder, monkeypatch, place, called):
    """A second Ctrl-C, or an exception out of nowhere: frames would lack the reports of some steps."""
    real, calls = getattr(place, called), []

    def broken(*given):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(place, called, broken)
    sim, save = balls(), tb.Save(path="run.h5", every=3, overwrite=True, frames_per_checkpoint=2)
    with pytest.raises(KeyboardInterrupt):
        sim.run(until=0.04, save=save, progress=False)
    with pytest.raises(FileError, match=r"must be whole to go on with .* resume=True"):
        sim.run(until=0.04, save=save, progress=False)
    sim.run(until=0.04, save=save, progress=False, resume=True)
    is_whole()


@pytest.mark.parametrize("delay", [0.1, 0.5])
def test_an_interrupt_while_loading_is_one_line(folder, delay):
    command = [sys.executable, "-m", "tumble", *RUN, "--until", "1000"]
    child = subprocess.Popen(command, cwd=folder, text=True, stderr=subprocess.PIPE, preexec_fn=answer_signals)
    time.sleep(delay)
    child.send_signal(signal.SIGINT)
    errors = child.communicate(timeout=60)[1]
    if child.returncode == -signal.SIGINT or "init_import_site" in errors:
        pytest.skip("the interpreter itself was still starting")
    assert child.returncode == 130 and errors.startswith("tumble: interrupted") and errors.count("\n") == 1


def test_the_wall_time_ends_a_run_that_goes_on_later(folder):
    sim, save = balls(), tb.Save(path="run.h5", every=3)
    sim.prepare()
    result = sim.run(until=1000.0, save=save, wall_time=0.3, progress=False)
    assert result.out_of_time and result.seconds < 0.6 and "--resume" in result.summary()
    with tb.Trajectory("run.h5") as run:
        assert not run.finished and run.steps[-1] == sim.state.step == result.steps
    done = balls().run(until=sim.time + 0.02, save=save, resume=True, progress=False)
    assert done.steps == 10 and not done.out_of_time
    with pytest.raises(OptionsError, match="wall_time"):
        balls().run(until=1.0, wall_time=0.0)


# ---------------------------------------------------------------------- reports, copies, old and odd files


def test_reports_are_read_from_the_file_and_bounded_without_one(folder, monkeypatch):
    monkeypatch.setattr(reports, "KEPT", 100)
    kept = balls().run(until=0.4, progress=False).reports
    assert kept["step"].tolist() == list(range(101, 201))
    stored = balls().run(until=0.4, save=tb.Save(path="run.h5"), progress=False).reports
    assert stored["step"].tolist() == list(range(1, 201)) and set(stored) == set(kept)
    assert np.array_equal(stored["kinetic_energy"][100:], kept["kinetic_energy"])
    balls().run(until=0.01, save=tb.Save(path="run.h5", overwrite=True), progress=False)
    with pytest.raises(FileError, match="must be the file of the run"):
        stored["time"]


def test_models_and_simulations_are_copied_and_pickled(folder):
    sim = balls()
    sim.run(until=0.02, save=tb.Save(path="run.h5"), progress=False)
    others = [copy.deepcopy(sim), pickle.loads(pickle.dumps(sim)), sim.copy()]
    model = pickle.loads(pickle.dumps(sim.model))
    assert not model.gravity.flags.writeable and describe(model=model) == describe(model=sim.model)
    sim.run(until=0.04, progress=False)
    for other in others:
        assert other.recording is None
        other.run(until=0.04, progress=False)
        assert other.state.sha256() == sim.state.sha256()


def test_files_of_version_2_are_read(folder):
    import gzip
    from pathlib import Path

    packed = Path(__file__).parents[1] / "data" / "version2.h5.gz"
    (folder / "old.h5").write_bytes(gzip.decompress(packed.read_bytes()))
    with tb.Trajectory("old.h5") as run:
        assert run.version == 2 and run.frames == 3 and run.run_id == "" and run.history == []
        assert run.read("position", -1).shape == (5, 3) and len(run.contacts(1)["gap"]) == 2
        assert run.reports["kinetic_energy"].tolist() == [0.0, 0.0, 50.0, 50.0, 100.0, 100.0]
        with pytest.raises(FileError, match=r"whole run of version 3 \(got version 2\)"):
            run.check_appendable()
    assert main(["info", "old.h5"]) == 0


def damage(path, change):
    with h5py.File(path, "r+") as file:
        change(file)


def replaced(file, name, value):
    attributes = dict(file[name].attrs)
    del file[name]
    file[name] = value
    file[name].attrs.update(attributes)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f["committed"].write_direct(np.array([-1])),
        lambda f: f["committed"].write_direct(np.array([10**12])),
        lambda f: replaced(f, "frames/time", np.full(6, np.nan)),
        lambda f: replaced(f, "frames/step", np.arange(6)[::-1]),
        lambda f: replaced(f, "frames/position", np.zeros((6, 5, 2))),
        lambda f: replaced(f, "frames/position", np.zeros((6, 5, 3), np.int64)),
        lambda f: replaced(f, "frames/report_end", np.full(6, -3)),
        lambda f: replaced(f, "frames/report_end", np.full(6, 10**9)),
        lambda f: replaced(f, "model/recorded", np.array([0, 99])),
        lambda f: replaced(f, "frames", np.zeros(3)),
        lambda f: replaced(f, "model", np.zeros(3)),
        lambda f: f.attrs.update(fields="[1, 2]"),
        lambda f: f.attrs.update(fields="{"),
        lambda f: f.attrs.update(format_version="three"),
        lambda f: f["model"].attrs.update(names="7"),
    ],
)
def test_trajectories_that_make_no_sense_are_named(folder, change):
    balls().run(until=0.04, save=tb.Save(path="run.h5", every=4), progress=False)
    damage("run.h5", change)
    with pytest.raises(FileError, match=r"run\.h5"), tb.Trajectory("run.h5") as run:
        run.read("position", 0)


def test_a_position_that_is_no_number_is_named(folder):
    balls().run(until=0.04, save=tb.Save(path="run.h5"), progress=False)
    damage("run.h5", lambda f: f["frames/position"].write_direct(np.full(f["frames/position"].shape, np.nan)))
    with tb.Trajectory("run.h5") as run, pytest.raises(FileError, match="position without NaN"):
        run.read("position", 0)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: replaced(f, "position", np.zeros((5, 3), np.float32)),
        lambda f: replaced(f, "position", np.full((5, 3), np.nan)),
        lambda f: replaced(f, "velocity", np.zeros((4, 3))),
        lambda f: replaced(f, "orientation", np.zeros((5, 3))),
        lambda f: replaced(f, "memory/uid_a", np.zeros(3)),
        lambda f: replaced(f, "memory/impulse", np.zeros((2, 7))),
        lambda f: replaced(f, "memory", np.zeros(3)),
        lambda f: f.attrs.update(step=-4),
        lambda f: f.attrs.update(time=np.nan),
        lambda f: replaced(f, "description", "[]"),
        lambda f: f["attributes"].attrs.update(frames="many"),
        lambda f: f["attributes"].attrs.update(frames=-2),
        lambda f: f["attributes"].attrs.update(unconverged=np.nan),
        lambda f: f["attributes"].attrs.update(run_id=np.zeros(3)),
        lambda f: (f.__delitem__("position"), f.create_dataset("position", (10**12, 3), float, chunks=(1024, 3))),
    ],
)
def test_checkpoints_that_make_no_sense_are_named(folder, change):
    sim = balls()
    sim.step()
    sim.save_checkpoint("a.h5")
    damage("a.h5", change)
    with pytest.raises(FileError, match=r"a\.h5: must be a whole checkpoint"):
        read_checkpoint("a.h5")


def test_a_hash_that_is_an_array_is_another_one(folder):
    sim = balls()
    sim.save_checkpoint("a.h5")
    damage("a.h5", lambda f: f.attrs.update(sha256=np.zeros(3)))
    with pytest.raises(FileError, match=r"a\.h5: the content must match its hash"):
        sim.load_checkpoint("a.h5")


@pytest.mark.parametrize(
    "change",
    [
        lambda f: replaced(f, "frames/position", np.zeros((6, 5, 3))),
        lambda f: replaced(f, "steps", f["steps"][...]),
        lambda f: f.__delitem__("finished"),
        lambda f: f.attrs.update(options="3"),
        lambda f: f.attrs.update(options='{"save": 3}'),
        lambda f: f.attrs.update(options=np.zeros(2)),
        lambda f: replaced(f, "history", "{"),
    ],
)
def test_trajectories_that_cannot_grow_are_named(folder, capsys, change):
    """Some of them could be read; resuming them, or info, ended in a traceback."""
    assert tumble(capsys, *RUN)[0] == 0
    damage("scene.h5", change)
    code, error = tumble(capsys, *RUN, "--resume", "--until", "0.06")
    assert code == 2 and "scene.h5: must be a whole trajectory" in error
    assert sorted(p.name for p in folder.iterdir()) == ["scene.checkpoint.h5", "scene.h5", "scene.toml"]
    assert main(["info", "scene.h5"]) in (0, 2)


def test_chosen_bodies_by_name_and_number_also_when_resumed(folder, capsys):
    """Numbers, which --resume takes from the file, were a TypeError."""
    assert tumble(capsys, *RUN, "--bodies", "balls[1]", "--bodies", "shaker", "--until", "0.02")[0] == 0
    assert tumble(capsys, *RUN, "--resume")[0] == 0
    with tb.Trajectory("scene.h5") as run:
        assert run.bodies.tolist() == [1, 3] and run.steps[-1] == 20 and run.read("position", -1).shape == (2, 3)
    balls().run(until=0.02, save=tb.Save(path="run.h5", bodies=(4, "balls[0]")), progress=False)
    with tb.Trajectory("run.h5") as run:
        assert run.bodies.tolist() == [1, 4]
    for wrong, words in (((5,), "must be <= 4"), ((-1,), "must be >= 0"), ((True,), "whole number"), (("x",), "x")):
        with pytest.raises(TumbleError, match=words):
            balls().run(until=0.02, save=tb.Save(path="other.h5", bodies=wrong), progress=False)
    for wrong in ((), "balls", 3, [None], b"ab"):
        with pytest.raises(OptionsError, match=r"Save\.bodies: must be names or indices"):
            tb.Save(path="other.h5", bodies=wrong)


def test_readers_say_what_is_wrong_with_a_question(folder):
    balls().run(until=0.02, save=tb.Save(path="run.h5", every=5), progress=False)
    run = tb.Trajectory("run.h5")
    for frame, words in ((1.5, "whole number"), (3, "has 3 frames"), (-4, "has 3 frames"), (10**30, "2\\^63")):
        with pytest.raises(FileError, match=words):
            run.read("position", frame)
    run.close()
    for ask in (
        lambda: run.read("position", 0),
        lambda: run.array("velocity"),
        lambda: run.reports,
        lambda: run.history,
    ):
        with pytest.raises(FileError, match="must be open"):
            ask()


def test_what_a_run_did_not_record_is_not_asked_for_later(folder, capsys):
    """--contacts was taken without a word, and no contact was recorded."""
    assert tumble(capsys, *RUN, "--until", "0.02")[0] == 0
    for option in (("--contacts",), ("--single",), ("--compress",), ("--bodies", "balls")):
        code, error = tumble(capsys, *RUN, "--resume", *option)
        assert code == 2 and "as when the run began" in error
    assert tumble(capsys, *RUN, "--overwrite", "--contacts", "--until", "0.02")[0] == 0
    assert tumble(capsys, *RUN, "--resume", "--contacts")[0] == 0


def test_a_script_that_leaves_is_no_scene(folder, capsys):
    """Its exit code was that of the command, and nothing was said."""
    (folder / "scene.py").write_text("import sys\n\ndef build():\n    sys.path.clear()\n    sys.exit(5)\n")
    path = list(sys.path)
    code, error = tumble(capsys, "run", "scene.py", "--dt", "1e-3", "--until", "0.01")
    sys.path[:] = path
    assert code == 2 and "scene.py: line 5: the scene file must run (got SystemExit: 5)" in error


def test_a_script_without_build_is_told_before_it_runs(folder, capsys):
    (folder / "script.py").write_text("from pathlib import Path\nPath('side effect').touch()\n")
    code, error = tumble(capsys, "run", "script.py")
    assert code == 2 and "build()" in error and "python script.py" in error
    assert not (folder / "side effect").exists()


def test_info_tells_run_id_and_history(folder, capsys):
    assert tumble(capsys, *RUN)[0] == 0
    assert main(["info", "scene.h5", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["run_id"]) == 32 and facts["history"][0]["event"] == "begun"


@pytest.mark.parametrize("every", [1, 7, 64, 150])
def test_reports_fill_chunks_of_the_file_in_any_portions(folder, every):
    """They are written chunk by chunk, as bytes; a run that goes on begins in the middle of one."""
    plain = balls().run(until=0.8, progress=False).reports  # without a file
    sim, save = balls(), tb.Save(path="run.h5", every=every)
    for until in (0.1, 0.3, 0.8):
        sim.run(until=until, save=save, progress=False)
    again = balls()
    again.run(until=0.3, save=replace(save, path="cut.h5"), progress=False)
    resumed = balls()
    resumed.run(until=0.8, save=replace(save, path="cut.h5"), resume=True, progress=False)
    for name in ("run.h5", "cut.h5"):
        with tb.Trajectory(name) as found, h5py.File(name) as file:
            assert len(file["steps"]) == 400
            for column in plain:
                if not column.startswith("seconds"):
                    assert np.array_equal(found.reports[column], plain[column]), column


def test_a_checkpoint_comes_after_ten_frames_and_two_seconds(folder, monkeypatch):
    """Not more often, where `Save` does not say: it costs as much as several frames."""
    now = [100.0]
    monkeypatch.setattr("tumble.sim.recording.time.monotonic", lambda: now[0])
    seen = []

    def watch(sim):
        now[0] += 0.06  # s a step, in which it saves a frame
        seen.append(read_checkpoint("run.checkpoint.h5").state.step)
        return False

    balls().run(until=0.2, save=tb.Save(path="run.h5", every=1), progress=False, stop=watch)
    assert sorted(set(seen)) == [0, 34, 68] and seen[34] == 34
    slow = replace(tb.Save(path="slow.h5", every=1), checkpoint="run.checkpoint.h5", overwrite=True)
    seen.clear()
    monkeypatch.setattr("tumble.sim.recording.SECONDS", 0.1)
    balls().run(until=0.2, save=slow, progress=False, stop=watch)
    assert sorted(set(seen)) == [0, *range(10, 91, 10)]
    seen.clear()
    own = tb.Save(path="own.h5", checkpoint="run.checkpoint.h5", every=1, frames_per_checkpoint=3, overwrite=True)
    balls().run(until=0.02, save=own, progress=False, stop=watch)
    assert sorted(set(seen)) == [0, 3, 6, 9]
