"""Every worked scene builds and steps; those in TOML give the bits of their twins in Python."""

import pytest

import tumble as tb
from tumble.cli import main
from tumble.solve.registry import solver_of_steps
from tumble.worked import every_example

PROGRAMS = ("first_program.py", "own_solver.py", "unique_forces.py")
"""That are run with Python, no scenes."""
PART = "pendulum_part.toml"
SCENES = [e.path for e in every_example() if e.name not in PROGRAMS]
JOBS = ("conveyor.py", "conveyor.toml", "shaker.py", "shaker.toml", "arm.py", "terrain.toml", "ramp.toml")
"""A belt, a shaker, a robot, a terrain, and what a sweep is made of"""
TWINS = sorted({p.stem for p in SCENES if p.suffix == ".py"} & {p.stem for p in SCENES if p.suffix == ".toml"})
STEPS = 5


def stepped(path, steps=STEPS):
    scene = tb.load_scene(path)
    options = tb.StepOptions(**{"dt": 1e-3, **scene.step})
    sim = tb.Simulation(scene.model, options=options, solver=solver_of_steps(scene.solver))
    for _ in range(steps):
        report = sim.step()
    return scene, sim, report


def test_there_are_enough_of_them():
    assert len(SCENES) >= 25 and TWINS == ["arm", "conveyor", "dominoes", "shaker"]


@pytest.mark.parametrize("name", JOBS)
def test_common_jobs_take_less_than_forty_lines(name):
    (path,) = (p for p in SCENES if p.name == name)
    assert len(path.read_text(encoding="utf-8").splitlines()) < 40


@pytest.mark.parametrize("path", SCENES, ids=lambda p: p.name)
def test_every_scene_builds_and_steps(path):
    if path.stem == "humanoid":
        pytest.importorskip("jvrc_description", reason="jvrc_description is not installed: the humanoid is not built")
    scene, _, report = stepped(path)
    assert report.step == STEPS and report.converged
    assert path.name == PART or (scene.until is not None and scene.step["dt"] > 0)


@pytest.mark.parametrize("name", TWINS)
def test_twins_have_the_same_bits(name):
    a, b = (next(p for p in SCENES if p.stem == name and p.suffix == s) for s in (".toml", ".py"))
    (one, first, _), (two, second, _) = stepped(a, 50), stepped(b, 50)
    assert first.state.sha256() == second.state.sha256()
    assert one.parameters == two.parameters and one.until == two.until and one.step == two.step


def test_list_and_copy(tmp_path, capsys):
    assert main(["examples"]) == 0
    said = capsys.readouterr().out
    assert all(path.name in said for path in SCENES) and "ride along" in said
    assert main(["examples", "copy", "conveyor", str(tmp_path / "new")]) == 0
    assert {p.name for p in (tmp_path / "new").iterdir()} == {"conveyor.py", "conveyor.toml"}
    assert main(["examples", "copy", "conveyor.py", str(tmp_path / "new")]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main(["examples", "copy", "conveyor.py", str(tmp_path / "new"), "--overwrite"]) == 0
    for name in ("terrain", "pendulums"):
        assert main(["examples", "copy", name, str(tmp_path)]) == 0
        tb.load_scene(tmp_path / f"{name}.toml")  # with what it needs beside it
    assert main(["examples", "copy", "conveyer"]) == 2
    assert "Did you mean 'conveyor" in capsys.readouterr().err


def test_every_command_has_an_example(capsys):
    from tumble.cli import app

    names = [c.callback.__name__ for c in app.registered_commands] + ["examples"]
    assert len(names) >= 14
    for name in names:
        assert main([name, "--help"]) == 0
        assert f"tumble {name}" in capsys.readouterr().out.split("Example")[-1], name
