"""What happens when things go wrong in the middle of a run."""

import numpy as np
import pytest

import tumble as tb
from tumble.errors import BlowUpError
from tumble.observe.checkpoint import read_checkpoint
from tumble.sim.run import NotConvergedError


def falling(force=None, **options):
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), name="floor")
    scene.add_spheres(0.1, mass=1.0, position=[(0, 0, 0.1), (0.5, 0, 0.1)], name="balls")
    if force is not None:
        scene.add_force(force)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2, **options))


def nan_after(moment):
    def force(time, position, orientation, velocity, angular_velocity):
        out = np.zeros_like(position)
        if time > moment:
            out[2, 0] = np.nan
        return out, np.zeros_like(position)

    return force


def test_nan_stops_the_run_names_the_body_and_keeps_every_frame(tmp_path):
    sim = falling(nan_after(0.095))
    path = tmp_path / "run.h5"
    with pytest.raises(BlowUpError, match=r"'force' at t = 0.1 s.*finite.*'balls\[1\]'.*run.failure.h5"):
        sim.run(until=1.0, save=tb.Save(path=path, every=2))
    assert np.isfinite(sim.positions()).all() and sim.state.step == 10  # back to the state before the bad step
    with tb.Trajectory(path) as run:
        assert not run.finished
        assert run.steps.tolist() == [0, 2, 4, 6, 8, 10]
        assert len(run.reports["time"]) == 10
        assert np.isfinite(run.array("position")).all()
    state, *_ = read_checkpoint(tmp_path / "run.failure.h5")
    assert state.sha256() == sim.state.sha256()
    stored = tb.read_problem(tmp_path / "run.failure.h5")
    assert stored.step["step"] == 10 and stored.problem.count == sim.last.problem.count


def test_a_speed_beyond_the_limit_is_a_blow_up():
    def push(time, position, *_):
        return np.full_like(position, 1e9), np.zeros_like(position)

    with pytest.raises(BlowUpError, match=r"slower than 100 m/s"):
        falling(push, speed_limit=100.0).run(until=1.0)


def test_a_force_of_the_wrong_shape_is_named():
    def wrong(time, position, *_):
        return np.zeros(3), np.zeros(3)

    with pytest.raises(tb.TumbleError, match=r"force callback 'wrong': must return .*shape \(3, 3\)"):
        falling(wrong).step()


def test_a_run_goes_on_without_convergence_and_counts(tmp_path):
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(0.5, 0.5, 2.0)))
    scene.add_spheres(0.1, mass=1.0, position=tb.grid_points((2, 2, 4), 0.22, origin=(0, 0, 0.11), jitter=0.005))
    solver = tb.SolverAPGD(tolerance=1e-12, max_iterations=3)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=5e-3), solver=solver)
    result = sim.run(until=0.5)
    assert result.steps == 100
    assert result.unconverged == sim.unconverged > 50
    assert f"{result.unconverged} of 100 steps did not reach the tolerance" in result.summary()
    report = sim.step()
    assert not report.converged and report.law == "coulomb" and report.status.advice
    with pytest.raises(NotConvergedError, match=r"must reach its tolerance .*max_iterations"):
        sim.run(until=1.0, strict=True)


def test_a_checkpoint_of_another_scene_is_refused(tmp_path):
    falling().save_checkpoint(tmp_path / "two.h5")
    scene = tb.SceneBuilder()
    scene.add_body(tb.Sphere(0.1), mass=1.0)
    other = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2))
    with pytest.raises(tb.TumbleError, match=r"must be a checkpoint of 1 bodies \(got 3 bodies\)"):
        other.load_checkpoint(tmp_path / "two.h5")
    with pytest.raises(tb.TumbleError, match=r"was written with step.dt 0.01"):
        sim = falling()
        object.__setattr__(sim, "options", tb.StepOptions(dt=5e-3))
        sim.load_checkpoint(tmp_path / "two.h5")


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
def test_the_report_names_the_law_that_was_solved(law):
    sim = falling(law=law)
    report = sim.step()
    assert report.law == law and report.solver == "auto"
    assert set(report.seconds) == {"predict", "place", "broad", "narrow", "assemble", "solve", "advance"}
