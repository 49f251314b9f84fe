"""The command line: what it prints, what it writes, and its exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tumble as tb
from tests.children import answer_signals
from tumble.cli import main

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

SCENE = """
[[body]]
kind = "static"
shape = {type = "half_space"}
[[body]]
name = "brick"
shape = {type = "box", size = [0.2, 0.1, 0.1]}
density = 1000
position = [0, 0, 0.2]
velocity = [1, 0, 0]
angular_velocity = [0, 3, 1]
[[spheres]]
name = "balls"
radius = 0.05
mass = 0.1
packing = {kind = "grid", shape = [2, 2, 2], spacing = 0.12, origin = [0, 0.4, 0.1], jitter = 0.01}
[step]
dt = 2e-3
[solver]
tolerance = 1e-7
[run]
until = 0.3
save_every = 7
"""


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "scene.toml"
    path.write_text(SCENE)
    return path


def tumble(capsys, *arguments):
    """Exit code, stdout and stderr."""
    code = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def facts(capsys, path):
    code, out, _ = tumble(capsys, "info", path, "--json")
    assert code == 0
    return json.loads(out)


def process(*arguments, folder, **options):
    return subprocess.run(
        [sys.executable, "-m", "tumble.cli", *map(str, arguments)],
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=300,
        **options,
    )


# ---------------------------------------------------------------------- end to end


def test_demo_twice(tmp_path):
    for attempt in (1, 2):
        done = process("demo", "--spheres", 30, "--threads", 1, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "750 steps" in done.stdout and "next: try tumble experiment ball-roll" in done.stdout
        if attempt == 2:
            assert "kernels: nothing compiled" in done.stdout and "compiling" not in done.stderr
    folder = tmp_path / "tumble-demo"
    for name in ("demo.png", "picture.png"):
        assert (folder / name).read_bytes()[:4] == b"\x89PNG"
    with tb.Trajectory(folder / "demo.h5") as run:
        assert run.finished and run.frames == 76
        z = run.read("position", -1)[run.model.body_kind == tb.BodyKind.DYNAMIC, 2]
        assert len(z) == 30 and z.min() > 0.035 and z.max() < 0.36


def test_interrupted_run_keeps_its_data_and_resumes_exactly(scene, capsys):
    long = ("run", scene, "--threads", "1", "--quiet")
    command = [sys.executable, "-m", "tumble.cli", *map(str, long), "--until", "1000", "--out", "long.h5"]
    child = subprocess.Popen(command, cwd=scene.parent, text=True, stderr=subprocess.PIPE, preexec_fn=answer_signals)
    limit = time.monotonic() + 200
    while not (scene.parent / "long.h5").exists() and child.poll() is None and time.monotonic() < limit:
        time.sleep(0.05)
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    last = errors.strip().split("\n")[-1]
    assert last.startswith("tumble: interrupted") and "--resume" in last and "Traceback" not in errors
    stopped = facts(capsys, "long.h5")
    assert not stopped["finished"] and stopped["steps"] > 0
    until = 2e-3 * (stopped["steps"] + 20)
    assert tumble(capsys, *long, "--out", "long.h5", "--resume", "--until", until)[0] == 0
    assert tumble(capsys, *long, "--out", "whole.h5", "--until", until)[0] == 0
    resumed, whole = facts(capsys, "long.h5"), facts(capsys, "whole.h5")
    assert resumed["finished"] and resumed["steps"] == whole["steps"] == stopped["steps"] + 20
    assert resumed["final_state_sha256"] == whole["final_state_sha256"]


def test_resume_in_another_process_is_bitwise_the_same(scene, capsys):
    assert process("run", scene, "--out", "a.h5", "--until", "0.1", "--threads", 1, folder=scene.parent).returncode == 0
    done = process("run", scene, "--out", "a.h5", "--resume", "--threads", 1, folder=scene.parent)
    assert done.returncode == 0 and "100 steps to t = 0.3 s" in done.stdout
    code, out, _ = tumble(capsys, "run", scene, "--out", "b.h5")
    assert code == 0 and "150 steps to t = 0.3 s" in out and "frames in b.h5" in out
    a, b = facts(capsys, "a.h5"), facts(capsys, "b.h5")
    assert a["final_state_sha256"] == b["final_state_sha256"]
    assert (a["steps"], a["finished"], a["law"], a["solver"]) == (150, True, "coulomb", "auto")
    assert a["options"]["save"]["every"] == 7 and a["bodies"] == {"static": 1, "kinematic": 0, "dynamic": 9}


def test_help_and_version():
    done = subprocess.run([sys.executable, "-m", "tumble.cli", "--help"], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0
    for command in ("demo", "run", "info", "experiment", "bench"):
        assert command in done.stdout
    program = (
        "import sys, tumble.cli; tumble.cli.main(['--help']); "
        "print([m for m in ('matplotlib', 'h5py', 'pydantic', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, timeout=60)
    assert done.stdout.strip().endswith("[]")


def test_version_and_no_arguments(capsys):
    assert tumble(capsys, "--version") == (0, f"tumble {tb.__version__}\n", "")
    code, out, _ = tumble(capsys)
    assert code == 0 and "Commands" in out


# ---------------------------------------------------------------------- run and info


def test_the_command_line_wins_over_the_file(scene, capsys):
    code, out, _ = tumble(
        capsys,
        "run",
        scene,
        "--until",
        "0.02",
        "--dt",
        "1e-3",
        "--law",
        "relaxed",
        "--solver",
        "gauss_seidel",
        "--tolerance",
        "1e-5",
        "--max-iterations",
        "77",
        "--save-every",
        "5",
        "--contacts",
        "--threads",
        "1",
    )
    assert code == 0 and "20 steps" in out
    said = facts(capsys, "scene.h5")  # named after the scene, in the current folder
    assert (said["law"], said["solver"], said["dt"], said["frames"]) == ("relaxed", "gauss_seidel", 1e-3, 5)
    assert said["options"]["solver"]["tolerance"] == 1e-5 and said["options"]["solver"]["max_iterations"] == 77
    assert "contacts" in said["fields"]


def test_quiet_prints_nothing(scene, capsys):
    assert tumble(capsys, "run", scene, "--until", "0.004", "--quiet") == (0, "", "")


def test_strict_gives_3_and_a_readable_file(scene, capsys):
    code, _, err = tumble(capsys, "run", scene, "--strict", "--max-iterations", "1", "--save-every", "1")
    assert code == 3
    assert err.startswith("tumble: error: step ") and err.count("\n") == 1 and "natural map" in err
    said = facts(capsys, "scene.h5")
    assert not said["finished"] and said["unconverged_steps"] == 1


def test_info_of_a_run_for_people(scene, capsys):
    assert tumble(capsys, "run", scene, "--quiet", "--until", "0.1")[0] == 0
    code, out, _ = tumble(capsys, "info", "scene.h5")
    assert code == 0
    for word in (
        "finished",
        "frames",
        "final_state_sha256",
        "unconverged_steps",
        "worst.natural_map",
        "worst.certificate_energy",
        "worst.largest_overlap",
        "seconds.solve",
        "coulomb",
        "tumble_version",
    ):
        assert word in out


def test_info_of_a_scene(scene, capsys):
    said = facts(capsys, scene)
    assert said["kind"] == "scene" and said["bodies"]["dynamic"] == 9
    assert said["shapes"] == {"sphere": 8, "box": 1, "half_space": 1}
    assert said["total_mass"] == pytest.approx(2.0 + 0.8) and said["until"] == 0.3
    code, out, _ = tumble(capsys, "info", scene)
    assert code == 0 and "total_mass" in out and "materials.default" in out


def test_warnings_are_one_line(scene, capsys):
    scene.write_text(SCENE.replace("position = [0, 0, 0.2]", "position = [0, 0, 0.01]"))
    done = process("run", scene, "--until", "0.01", "--quiet", "--threads", 1, folder=scene.parent)
    assert done.returncode == 0
    lines = [line for line in done.stderr.split("\n") if "compil" not in line and line]
    assert len(lines) == 1 and lines[0].startswith("tumble: warning: Simulation: ") and "overlapping" in lines[0]


@pytest.mark.parametrize(
    "name", ["bouncing_boxes.toml", "rolling_ball.py", "gravel_on_terrain.py", "pour.py", "field_of_arms.py"]
)
def test_examples_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, err = tumble(capsys, "run", EXAMPLES / name, "--until", "0.05", "--threads", "1")
    assert code == 0 and "steps to t = 0.05 s" in out, err
    assert facts(capsys, (EXAMPLES / name).stem + ".h5")["finished"]


def test_first_program(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / "first_program.py"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=300,
        env=os.environ | {"NUMBA_NUM_THREADS": "1"},
    )
    assert done.returncode == 0 and "250 steps" in done.stdout and "frames in first_program.h5" in done.stdout


def test_rolling_ball_ends_with_five_sevenths_of_its_speed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert tumble(capsys, "run", EXAMPLES / "rolling_ball.py", "--quiet")[0] == 0
    with tb.Trajectory("rolling_ball.h5") as run:
        assert run.read("velocity", -1)[1, 0] == pytest.approx(2.0 * 5 / 7, rel=1e-5)


# ---------------------------------------------------------------------- experiment and bench


def test_experiment(monkeypatch, tmp_path, capsys):
    from tumble import experiments

    asked = {}

    def run_experiment(name, **options):
        asked.update(options, name=name)
        if options["strict"]:
            from tumble.sim.run import NotConvergedError

            raise NotConvergedError("step 3: must converge (got 1). Loosen.")
        (options["out"]).mkdir(parents=True)
        (options["out"] / "plot.png").write_text("")
        return {"speed": 1.25, "time": 0.5}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiments, "run_experiment", run_experiment)
    code, out, _ = tumble(
        capsys, "experiment", "ball-roll", "--quick", "--set", "friction=0.2", "--set", "n=3", "--threads", "1"
    )
    assert code == 0 and "1.25" in out and "time" in out and "plot.png" in out
    assert asked["settings"] == {"friction": "0.2", "n": "3"} and asked["quick"] and asked["threads"] == 1
    assert Path(asked["out"]) == Path("tumble-experiments/ball-roll")
    code, out, _ = tumble(capsys, "experiment", "--list")
    assert code == 0 and "ball-roll" in out and "box-slide" in out
    code, out, _ = tumble(capsys, "experiment", "ball-roll", "--list")
    assert code == 0 and "friction" in out and "0.0025, 0.01" in out
    assert tumble(capsys, "experiment", "ball-roll", "--strict")[0] == 3
    for arguments, word in (
        (["experiment"], "--list"),
        (["experiment", "ball-rol", "--list"], "'ball-roll'"),
        (["experiment", "ball-roll", "--set", "x"], "KEY=VALUE"),
    ):
        code, _, err = tumble(capsys, *arguments)
        assert code == 2 and word in err and err.count("\n") == 1


def test_bench(monkeypatch, capsys):
    def product(setting):
        """Products with N."""
        yield {"bench": "product", "case": "1000", "metric": "ns", "value": 12.5}
        yield {"bench": "product", "case": "2000", "metric": "ns", "value": float("inf")}

    monkeypatch.setattr("tumble.bench.BENCHES", {"product": product})
    code, out, _ = tumble(capsys, "bench", "--json")
    rows = [json.loads(line) for line in out.strip().split("\n")]
    assert code == 0 and rows[0]["value"] == 12.5 and rows[1]["value"] is None
    code, out, _ = tumble(capsys, "bench", "product")
    assert code == 0 and "12.5" in out
    assert "Products with N." in tumble(capsys, "bench", "--list")[1]
    code, _, err = tumble(capsys, "bench", "prodct")
    assert code == 2 and "Did you mean 'product'?" in err


# ---------------------------------------------------------------------- bad input

RUN = ("run", "scene.toml")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("rn",), ["'rn'", "Did you mean 'run'?"]),
        (("run",), ["scene"]),
        (("run", "none.toml"), ["none.toml", "No such file"]),
        (("run", "scene.yaml"), [".toml or .py"]),
        (("info", "none.h5"), ["none.h5", "no such file"]),
        (("info", "cut.h5"), ["cut.h5", "whole HDF5"]),
        (("info", "none.toml"), ["none.toml", "No such file"]),
        ((*RUN, "--untl", "1"), ["--untl", "--until"]),
        ((*RUN, "--dt", "fast"), ["--dt", "'fast'", "number"]),
        ((*RUN, "--dt", "nan"), ["dt", "nan", "finite"]),
        ((*RUN, "--dt", "0"), ["dt", "must be > 0", "(got 0.0)"]),
        ((*RUN, "--dt", "-1"), ["dt", "must be > 0", "(got -1.0)"]),
        ((*RUN, "--until", "inf"), ["until", "inf", "finite"]),
        ((*RUN, "--until", "-1"), ["until", "-1"]),
        ((*RUN, "--law", "columb"), ["law", "'columb'", "Did you mean 'coulomb'?"]),
        ((*RUN, "--solver", "apdg"), ["'apdg'", "Did you mean 'apgd'?"]),
        ((*RUN, "--tolerance", "-1"), ["tolerance", ">= 0"]),
        ((*RUN, "--max-iterations", "0"), ["max_iterations", ">= 1"]),
        ((*RUN, "--max-iterations", "1.5"), ["--max-iterations", "'1.5'", "whole number"]),
        ((*RUN, "--save-every", "0"), ["every", ">= 1"]),
        ((*RUN, "--threads", "100000"), ["--threads", "100000", "TUMBLE_THREADS"]),
        ((*RUN, "--threads", "0"), ["--threads", ">= 1"]),
        ((*RUN, "--out", "no/folder.h5"), ["no/folder.h5", "folder"]),
        ((*RUN, "--out", "."), [".h5"]),
        ((*RUN, "--out", "out.csv"), ["must end in .h5", "out.csv", "'out.h5'"]),
        ((*RUN, "--out", "scene.toml"), ["scene.toml", "another file"]),
        ((*RUN, "--out", "x" * 250 + ".h5"), ["bytes", "shorter"]),
        ((*RUN, "--out", "x" * 300 + ".h5"), ["xxx.h5", "name"]),
        *(
            ((*RUN, "--wall-time", time), ["2h", f"'{time}'"])
            for time in ("soon", "", "0", "-1h", "nan", "inf", "2ms", "2hh", "1:2:3:4", ":")
        ),
        ((*RUN, "--accept-changes"), ["--accept-changes", "--resume"]),
        ((*RUN, "--overwrite", "--resume"), ["--overwrite", "--resume"]),
        ((*RUN, "--resume", "--out", "none.h5"), ["none", "no such file"]),
        (("run", "bare.toml", "--until", "1"), ["bare.toml", "needs dt", "--dt"]),
        (("run", "bare.toml", "--dt", "1e-3"), ["bare.toml", "needs until", "--until"]),
        (("run", "wrong.toml"), ["wrong.toml: body[0].mas", "Did you mean 'mass'?"]),
        (("run", "wrong.py"), ["wrong.py: line 1", "ZeroDivisionError"]),
        (("demo", "--spheres", "0"), ["spheres", ">= 1", "0"]),
        (("demo", "--spheres", "many"), ["--spheres", "'many'"]),
        (("demo", "--threads", "100000"), ["--threads"]),
        (("demo", "--out", "scene.toml"), ["scene.toml", "folder"]),
        (("experiment", "x", "--threads", "100000"), ["--threads"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(scene, capsys, arguments, words):
    (scene.parent / "scene.yaml").write_text("")
    (scene.parent / "cut.h5").write_bytes(b"\x89HDF\r\n\x1a\n cut")
    bare = 'shape = {type = "sphere", radius = 1}\n'
    (scene.parent / "bare.toml").write_text(f"[[body]]\nmass = 1\n{bare}")
    (scene.parent / "wrong.toml").write_text(f"[[body]]\nmas = 1\n{bare}")
    (scene.parent / "wrong.py").write_text("1 / 0\nbuild = None\n")
    code, out, err = tumble(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("tumble: error: ") and err.count("\n") == 1 and "Traceback" not in err
    for word in words:
        assert word in err


def test_resume_refuses_other_options_and_other_scenes(scene, capsys):
    assert tumble(capsys, *RUN, "--quiet", "--until", "0.02")[0] == 0
    for arguments, words in (
        ((*RUN, "--resume", "--law", "relaxed"), ["scene.h5: step.law", "must be 'coulomb'", "(got 'relaxed')"]),
        ((*RUN, "--resume", "--dt", "1e-3"), ["step.dt", "0.002"]),
        ((*RUN, "--resume", "--tolerance", "1e-3"), ["solver.tolerance"]),
        ((*RUN, "--resume", "--solver", "jacobi"), ["solver", "SolverAuto", "SolverJacobi"]),
    ):
        code, _, err = tumble(capsys, *arguments)
        assert code == 2 and err.count("\n") == 1
        for word in words:
            assert word in err
    scene.write_text(SCENE.replace("radius = 0.05", "radius = 0.04"))
    code, _, err = tumble(capsys, *RUN, "--resume")
    assert code == 2 and "model.shape_parameters" in err and "cannot change within a file" in err


def test_a_truncated_trajectory_and_checkpoint(scene, capsys):
    assert tumble(capsys, *RUN, "--quiet", "--until", "0.02")[0] == 0
    for name in ("scene.checkpoint.h5", "scene.h5"):
        path = scene.parent / name
        path.write_bytes(path.read_bytes()[:500])
        code, _, err = tumble(capsys, *RUN, "--resume")
        assert code == 2 and name in err and err.count("\n") == 1


@pytest.mark.parametrize("module", ["tumble", "tumble.cli"])
@pytest.mark.parametrize("arguments, code", [(["--version"], 0), (["run", "no such scene.toml"], 2)])
def test_the_module_exits_like_the_command(module, arguments, code):
    done = subprocess.run([sys.executable, "-m", module, *arguments], text=True, capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_one_line(scene, unbuffered):
    command, environment = (
        [sys.executable, "-m", "tumble", "info", scene],
        os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, text=True, stdout=full, stderr=subprocess.PIPE, env=environment)
    assert done.returncode == 2 and done.stderr.startswith("tumble: error: output: must be writable (got No space")
    assert done.stderr.count("\n") == 1
