"""Pictures, videos and plots of runs: from commands and from Python."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

import tumble as tb
from tests.children import answer_signals
from tumble.cli import main
from tumble.errors import FileError, OptionsError
from tumble.view.coloring import coloring
from tumble.view.snapshot import snapshot

SMALL = {"size": (160, 120)}


def build():
    scene = tb.SceneBuilder()
    wood, steel = (scene.add_material(tb.Material(friction=f, name=n)) for f, n in ((0.5, "wood"), (0.2, "steel")))
    scene.add_static(tb.HalfSpace(), material=wood, name="floor")
    scene.add_static(tb.Box((4.0, 0.05, 2.0)), position=(0.5, -0.5, 1.0), material=wood, name="wall")
    scene.add_body(tb.Box((0.2, 0.2, 0.2)), mass=2.0, position=(0, 0, 0.1), material=wood, name="brick")
    scene.add_spheres(0.1, mass=1.0, position=[(0.5, 0, 0.1), (1, 0, 0.6)], material=steel, name="balls")
    return scene.build()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.h5"
    sim = tb.Simulation(build(), options=tb.StepOptions(dt=2e-3), threads=1)
    fields = ("position", "orientation", "velocity", "angular_velocity", "contacts")
    sim.run(until=0.3, save=tb.Save(path=path, every=10, fields=fields))
    return path


@pytest.fixture
def trajectory(run):
    with tb.Trajectory(run) as opened:
        yield opened


def tumble(capsys, *arguments):
    """Exit code, stdout and stderr."""
    code = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_frame_by_number_and_by_time_is_the_same_picture(trajectory, tmp_path, capsys):
    times = trajectory.times
    for frame in (0, 5, trajectory.frames - 1):
        one = trajectory.render(frame, **SMALL)
        assert np.array_equal(one, trajectory.render(time=float(times[frame]) + 1e-4 * (frame == 0), **SMALL))
        assert np.array_equal(one, trajectory.render(frame - trajectory.frames, **SMALL))
    out = tmp_path / "a.png"
    code, said, _ = tumble(capsys, "render", trajectory.path, "--frame", 5, "--size", "160x120", "--out", out)
    assert code == 0 and str(out) in said
    assert np.array_equal(np.asarray(Image.open(out)), trajectory.render(5, **SMALL).pixels)


def test_a_simulation_and_the_last_frame_of_its_run_look_alike(tmp_path):
    sim = tb.Simulation(build(), options=tb.StepOptions(dt=2e-3), threads=1)
    sim.run(until=0.02, save=tb.Save(path=tmp_path / "a.h5", every=5))
    with tb.Trajectory(tmp_path / "a.h5") as trajectory:
        for color in ("body", "speed", "material"):
            assert np.array_equal(sim.render(color=color, **SMALL), trajectory.render(color=color, **SMALL))
    assert sim.render(**SMALL)._repr_png_()[:4] == b"\x89PNG"


def test_pictures_do_not_depend_on_the_number_of_threads(run):
    """In a process of its own: those of a parallel test run have one thread each."""
    code = (
        "import sys, numpy as np, tumble as tb\n"
        "with tb.Trajectory(sys.argv[1]) as t:\n"
        "    a, b = (np.asarray(t.render(threads=k, size=(160, 120))) for k in (1, 2))\n"
        "assert a.std() > 1.0 and np.array_equal(a, b)\n"
    )
    env = {**os.environ, "NUMBA_NUM_THREADS": "2", "TUMBLE_THREADS": "2"}
    subprocess.run([sys.executable, "-c", code, str(run)], check=True, env=env, timeout=300)


def test_a_large_picture_of_a_body_is_quick(tmp_path):
    """0.4 s of a processor where this was written, the file included; it was 5."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 0.1))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    spent = []
    for k in range(3):
        began = time.process_time()
        sim.render(size=(1920, 1080), path=tmp_path / f"{k}.png")
        spent.append(time.process_time() - began)
    assert min(spent) < 1.2


def test_colours_stand_for_what_they_say(trajectory):
    shot = snapshot(trajectory, 5)
    speed = coloring(shot, "speed")
    fastest = np.linalg.norm(shot.velocity, axis=1).max()
    assert speed.limits == (0.0, fastest)
    force = coloring(shot, "force")
    c = trajectory.contacts(5)
    on_brick = np.linalg.norm(c["force"][(c["body_a"] == 2) | (c["body_b"] == 2)], axis=1).sum()
    assert shot.load[2] == pytest.approx(on_brick) and on_brick > 10
    assert force.limits[1] == pytest.approx(shot.load[2:].max())
    material = coloring(shot, "material")
    assert [name for name, _ in material.entries] == ["wood", "steel"]
    assert np.array_equal(material.color[2], material.color[0]) and not np.array_equal(*material.color[2:4])


def test_walls_and_ground_can_be_left_out(trajectory):
    shown = {w: trajectory.render(0, walls=w, camera="front", **SMALL).pixels.astype(int) for w in ("off", "solid")}
    middle = {w: picture[50:90, 60:100] for w, picture in shown.items()}
    assert np.ptp(middle["off"], axis=2).max() > 40  # coloured bodies
    assert np.ptp(middle["solid"], axis=2).max() < 20  # hidden by a grey wall
    bare = trajectory.render(0, walls="off", ground=False, camera="top", **SMALL).pixels.astype(int)
    assert np.abs(bare[:, 0] - bare[:, -1]).max() <= 2  # sky, no checkers


def test_bad_input_names_the_nearest_known_one(trajectory, run, tmp_path, capsys):
    last = trajectory.frames - 1
    for wrong, said in (
        (dict(frame=last + 7), rf"nearest is {last}\."),
        (dict(time=99.0), r"nearest is 0\.3 s"),
        (dict(color="sped"), "Did you mean 'speed'"),
        (dict(walls="of"), "Did you mean 'off'"),
        (dict(camera="fron"), "Did you mean 'front'"),
        (dict(camera=(1, 2, 3)), "azimuth"),
        (dict(sise=(3, 4)), "Did you mean 'size'"),
        (dict(size=7), "width and height"),
    ):
        with pytest.raises((OptionsError, FileError), match=said):
            trajectory.render(**wrong)
    with pytest.raises(OptionsError, match="Did you mean 'energy'"):
        trajectory.plot("enrgy")
    with pytest.raises(tb.TumbleError, match="Did you mean 'brick'"):
        trajectory.plot("force", on="brik")
    with pytest.raises(OptionsError, match="--on"):
        trajectory.plot("force")
    with pytest.raises(FileError, match="no joints"):
        trajectory.plot("joints")
    there = tmp_path / "there.png"
    there.write_text("mine")
    for command in ("render", "plot"):
        code, _, said = tumble(capsys, command, run, "--out", there)
        assert code == 2 and "--overwrite" in said and said.count("\n") == 1
        assert there.read_text() == "mine"
    for words in (
        ["energy", "--on", "brick"],
        ["force", "--on", "brick", "--joint", "hook"],
        ["joints", "--by", "brick"],
    ):
        code, _, said = tumble(capsys, "plot", run, *words, "--out", tmp_path / "a.png")
        assert code == 2 and "goes with" in said and said.count("\n") == 1
    for command in ("render", "plot"):
        code, _, said = tumble(capsys, command, run, "--out", tmp_path / "a.xyz")
        assert code == 2 and "must end in .png" in said
        assert "must be a trajectory" in tumble(capsys, command, tmp_path / "no.h5", "--out", there)[2]
    assert not list(tmp_path.glob("a.*"))
    code, _, said = tumble(capsys, "video", run, "--out", tmp_path / "a.avi")
    assert code == 2 and ".gif" in said
    code, _, said = tumble(capsys, "render", run, "--size", "12", "--out", tmp_path / "b.png")
    assert code == 2 and "1920x1080" in said


def test_forces_need_recorded_contacts(tmp_path):
    sim = tb.Simulation(build(), options=tb.StepOptions(dt=2e-3), threads=1)
    with pytest.raises(OptionsError, match="Take a step"):
        sim.render(color="force", **SMALL)
    sim.run(until=0.02, save=tb.Save(path=tmp_path / "a.h5", every=5))
    sim.render(color="force", **SMALL)
    with tb.Trajectory(tmp_path / "a.h5") as trajectory:
        for call in (lambda: trajectory.render(color="force"), lambda: trajectory.plot("force", on="brick")):
            with pytest.raises(FileError, match="--contacts"):
                call()


def test_the_force_that_is_plotted_is_the_weight_of_what_rests(trajectory):
    plot = trajectory.plot("force", on="floor", by="brick")
    lines = {line.get_label(): line.get_ydata() for line in plot.figure.axes[0].get_lines()}
    assert lines["z"][5:] == pytest.approx(-2.0 * 9.81, rel=0.02)
    assert np.array_equal(plot.figure.axes[0].get_lines()[0].get_xdata(), trajectory.times)


def test_every_quantity_is_plotted_in_a_panel_of_its_own(trajectory, tmp_path, capsys):
    names = ["energy", "contacts", "iterations", "residuals", "overlap", "speed", "works", "time", "largest_speed"]
    plot = trajectory.plot(*names, "force", on="balls")
    assert len(plot.figure.axes) == len(names) + 1
    reports = trajectory.reports
    kinetic = plot.figure.axes[0].get_lines()[0].get_ydata()
    assert np.array_equal(kinetic, reports["kinetic_energy"])
    out = tmp_path / "a.png"
    code, said, _ = tumble(capsys, "plot", trajectory.path, "energy", "force", "--on", "brick", "--out", out)
    assert code == 0 and str(out) in said and out.read_bytes()[:4] == b"\x89PNG"


def test_plots_are_files_of_the_kind_that_their_name_says(trajectory, tmp_path, capsys):
    for ending, head in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        trajectory.plot("energy", path=tmp_path / f"a{ending}")
        assert (tmp_path / f"a{ending}").read_bytes().startswith(head)


def test_joints_are_plotted(tmp_path):
    scene = tb.SceneBuilder()
    arm = scene.add_body(tb.Box((0.5, 0.05, 0.05)), mass=1.0, position=(0.25, 0, 1.0), name="arm")
    scene.add_joint("revolute", None, arm, anchor=(0, 0, 1.0), axis=(0, 1, 0), name="hinge")
    scene.add_body(tb.Sphere(0.02), mass=0.1, position=(0.5, 0, 1.0), name="tip", mask=0)
    scene.add_joint("fixed", "arm", "tip", anchor=(0.5, 0, 1.0), name="weld")  # has no coordinate
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3), threads=1)
    sim.run(until=0.1, save=tb.Save(path=tmp_path / "a.h5", every=5))
    with tb.Trajectory(tmp_path / "a.h5") as trajectory:
        lines = trajectory.plot("joints").figure.axes[0].get_lines()
        assert [line.get_label() for line in lines] == ["hinge"]
        assert np.array_equal(lines[0].get_ydata(), trajectory.joints("joint_value")[:, 0])
        assert np.isnan(trajectory.joints("joint_value")[:, 1]).all()
        ends = snapshot(trajectory, -1).joints
        assert ends[0] == pytest.approx(np.tile([0, 0, 1.0], (2, 1)), abs=1e-9)
        assert ends[1, 0] == pytest.approx(ends[1, 1], abs=1e-9)
        with pytest.raises(OptionsError, match="Did you mean 'hinge'"):
            trajectory.plot("torques", joint="hing")


def frames_of(path):
    import imageio_ffmpeg

    reader = imageio_ffmpeg.read_frames(str(path))
    facts = next(reader)
    width, height = facts["size"]
    return facts, [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


def test_a_video_shows_the_frames_of_the_run(trajectory, tmp_path, capsys):
    out = tmp_path / "a.mp4"
    made = trajectory.video(out, every=3, fps=10, size=(161, 120), legend=False)
    facts, frames = frames_of(out)
    assert len(frames) == made.frames == len(range(0, trajectory.frames, 3))
    assert facts["fps"] == 10 and facts["size"] == (160, 120)
    stop = tmp_path / "a.gif"
    code, said, _ = tumble(capsys, "video", trajectory.path, "--out", stop, "--size", "160x120", "--every", 3)
    assert code == 0 and f"{made.frames} frames" in said
    gif = Image.open(stop)
    assert gif.n_frames == made.frames
    for k in (0, made.frames - 1):
        gif.seek(k)
        assert np.abs(np.asarray(gif.convert("RGB")).astype(int) - frames[k]).mean() < 8
    assert np.abs(frames[0].astype(int) - frames[-1]).mean() > 1  # something moved
    assert "<video" in made._repr_html_()
    with pytest.raises(OptionsError, match="Leave one out"):
        trajectory.video(tmp_path / "b.mp4", every=1, fps=10, speed=1)


def test_a_run_plays_in_real_time_if_nothing_is_said(trajectory, tmp_path):
    assert trajectory.video(tmp_path / "a.gif", **SMALL).speed == pytest.approx(1.0, rel=0.01)
    slow = trajectory.video(tmp_path / "b.gif", speed=0.1, **SMALL)
    assert slow.speed == pytest.approx(0.1, rel=0.01)


def test_an_interrupt_leaves_a_video_of_what_was_drawn(run, tmp_path):
    out = tmp_path / "a.mp4"
    command = [sys.executable, "-m", "tumble", "video", str(run), "--out", str(out), "--size", "640x480"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=answer_signals)
    deadline = time.monotonic() + 60
    while not (tmp_path / ".a.mp4.tmp").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGINT)
    said = child.communicate(timeout=60)[1]
    assert child.returncode == 130 and str(out) in said, said
    assert 1 <= len(frames_of(out)[1]) <= 16
    assert os.listdir(tmp_path) == ["a.mp4"]


def test_a_file_whose_materials_or_joints_point_nowhere_is_damaged(run, tmp_path):
    import h5py

    for name, wrong in (
        ("shape_material", 9),
        ("joint_body", np.zeros((3, 2), np.int32)),
        ("joint_place", np.zeros((1, 2, 3))),
    ):
        broken = tmp_path / f"{name}.h5"
        broken.write_bytes(run.read_bytes())
        with h5py.File(broken, "r+") as file:
            if np.ndim(wrong):
                del file[f"model/{name}"]
                file[f"model/{name}"] = wrong
            else:
                file[f"model/{name}"][0] = wrong
        with pytest.raises(FileError, match=name):
            tb.Trajectory(broken)
    old = tmp_path / "old.h5"
    old.write_bytes(run.read_bytes())
    with h5py.File(old, "r+") as file:
        for name in ("shape_material", "joint_body", "joint_place"):
            del file[f"model/{name}"]
    with tb.Trajectory(old) as trajectory:
        trajectory.render(**SMALL)
        with pytest.raises(FileError, match="older version"):
            trajectory.render(color="material", **SMALL)
