"""Public names are typed: pyright finds nothing in what pyproject.toml covers."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_pyright_finds_nothing():
    if not (ROOT / "pyproject.toml").exists() or shutil.which("pyright") is None:
        pytest.skip("pyright is not installed: types are not checked (pip install pyright)")
    command = ["pyright", "--pythonpath", sys.executable, "--outputjson"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout)
    assert found["summary"]["filesAnalyzed"] > 280
    assert not [f"{d['file']}:{d['range']['start']['line'] + 1}: {d['message']}" for d in found["generalDiagnostics"]]


@pytest.mark.slow
def test_a_users_program_is_typed(tmp_path):
    """Lists, tuples and arrays are taken where a vector is, and results have types; a mistake is found."""
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed: types are not checked (pip install pyright)")
    (tmp_path / "use.py").write_text(
        "import numpy as np\nimport tumble as tb\n"
        "scene = tb.SceneBuilder(gravity=np.array([0, 0, -9.81]))\n"
        "ball = scene.add_body(tb.Sphere(0.1), mass=1.0, position=np.zeros(3))\n"
        "scene.add_static(tb.HalfSpace(), position=[0, 0, -1])\n"
        "sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))\n"
        "sim.apply_force(ball, np.ones(3))\n"
        "sim.set_state(position=np.zeros((2, 3)), velocity=[[0, 0, 0]] * 2)\n"
        "many = tb.Box([1.0, 2.0, 3.0]), tb.open_box(inner=np.ones(3)), tb.grid_points([2, 2, 2], np.full(3, 0.1))\n"
        "tb.random_points(3, np.ones(3), low=np.zeros(3), high=[9, 9, 9])\n"
        "run = sim.run(until=1.0, save=tb.Save(path='run.h5'))\n"
        "reveal_type(run.summary())\n"
        "tb.Sphere('large')\n"
    )
    (tmp_path / "pyrightconfig.json").write_text('{"include": ["use.py"]}')
    command = ["pyright", "--pythonpath", sys.executable, "--outputjson"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout)
    said = [(d["severity"], d["message"].partition("\n")[0]) for d in found["generalDiagnostics"]]
    assert said[0] == ("information", 'Type of "run.summary()" is "str"'), said
    assert len(said) == 2 and said[1][0] == "error" and 'parameter "radius" of type "float"' in said[1][1], said
