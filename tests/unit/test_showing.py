"""What is printed of scenes and results is short, and what a notebook shows of them is a table."""

import numpy as np
import pytest

import tumble as tb
from tumble.observe.trajectory import Trajectory


def everything(tmp_path):
    """One of each, of a scene large enough that its arrays must not be written out."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(2, 2, 2)), name="box")
    scene.add_spheres(0.05, mass=0.1, position=tb.grid_points((8, 8, 4), 0.12, origin=(0, 0, 0.06)), name="<balls>")
    arm = scene.add_body(tb.Box((0.3, 0.1, 0.1)), mass=1.0, position=(0, 0, 1.5), name="arm")
    scene.add_joint("revolute", None, arm, anchor=(0, 0, 1.5), axis=(0, 1, 0), name="hinge")
    model = scene.build()
    sim = tb.Simulation(model, options=tb.StepOptions(dt=2e-3), threads=1)
    bare = sim.run(until=0.02)
    saved = sim.run(until=0.04, save=tb.Save(path=tmp_path / "a.h5", every=2))
    trajectory = Trajectory(tmp_path / "a.h5")
    named = {"scene": scene, "model": model, "state": sim.state, "simulation": sim, "run": bare, "saved": saved}
    named |= {"reports": bare.reports, "stored": saved.reports, "report": sim.last.report}
    named |= {"forces": sim.contact_forces(), "joints": sim.joint_reactions(), "points": sim.contacts()}
    named |= {"clusters": sim.clusters(force=1.0), "trajectory": trajectory, "stored model": trajectory.model}
    return named | {"solution": sim.last.solution}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    return everything(tmp_path_factory.mktemp("shown"))


def test_what_is_printed_is_one_short_line(shown):
    for name, value in shown.items():
        text = repr(value)
        assert len(text) <= 300 and "\n" not in text, f"{name}: {text}"
        assert type(value).__name__ in text


def test_a_notebook_shows_a_small_table(shown):
    for name, value in shown.items():
        if name in ("state", "solution", "clusters"):
            continue
        text = value._repr_html_()
        assert text.startswith("<table>") and text.count("<tr>") <= 80, name
        assert len(text) < 12_000 and "<balls>" not in text, f"{name}: {len(text)}"


def test_numbers_are_those_of_the_object(shown):
    model, forces, run = shown["model"], shown["forces"], shown["run"]
    assert "257 dynamic" not in repr(model) and "dynamic 257" in repr(model)
    assert f"contacts={len(forces)}" in repr(forces)
    largest = np.linalg.norm(forces.force, axis=1).max()
    assert f"largest={largest:.4g} N" in repr(forces)
    assert f"steps={run.steps}" in repr(run) and "saved" not in repr(run)
    assert f"frames={shown['trajectory'].frames}" in repr(shown["trajectory"])
    last = run.reports["contacts"][-1]
    assert f"<td>{last:.4g}</td></tr>" in run.reports._repr_html_()


def test_reports_are_still_a_table_of_arrays(shown):
    reports = shown["run"].reports
    assert isinstance(reports, dict) and len(reports["time"]) == shown["run"].steps
    assert dict(reports).keys() == reports.keys()
