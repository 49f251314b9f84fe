"""Pouring, draining and counting: rates, balances, and the same bits again."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tumble as tb
from tumble.errors import SceneError, TumbleWarning

POUR = """
import tumble as tb

def pour():
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(0.45, 0.45, 0.3)))
    region = tb.BoxRegion(low=(-0.3, -0.3, 0.6), high=(0.3, 0.3, 0.9))
    scene.add_emitter(tb.Sphere(0.04), density=1000.0, count=1500, rate=2500.0, region=region, size_range=(0.6, 1.0),
                      velocity=(0, 0, -4), seed=5, name="balls")
    side = tb.DiscRegion(center=(-0.7, 0, 0.5), radius=0.15, normal=(1, 0, 0))
    scene.add_emitter(tb.Box((0.06, 0.05, 0.04)), density=2000.0, count=100, mass_rate=20.0, region=side,
                      velocity=(2, 0, 1), orientation="random", seed=6, name="boxes")
    scene.add_sink(point=(0, 0, -0.3), name="drain")
    scene.add_measuring_plane(point=(0, 0, -0.1), normal=(0, 0, -1), name="over")
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=4e-3), solver=tb.SolverAPGD(max_iterations=60))
"""


def pour():
    names = {}
    exec(POUR, names)
    return names["pour"]()


def drop(rate, dt=2.5e-3, **changed):
    """Balls that fall past a plane into a sink without touching each other."""
    scene = tb.SceneBuilder()
    settings = dict(count=400, density=1000.0, size_range=(0.5, 1.0), velocity=(0, 0, -3), name="rain") | rate | changed
    scene.add_emitter(tb.Sphere(0.02), region=tb.BoxRegion(low=(-1, -1, 0), high=(1, 1, 0)), **settings)
    scene.add_measuring_plane(point=(0, 0, -0.5), normal=(0, 0, -1), name="gate")
    scene.add_sink(point=(0, 0, -1), name="drain")
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt), threads=1)


@pytest.mark.parametrize("rate", [{"rate": 150.0}, {"mass_rate": 2.0}])
def test_poured_mass_is_rate_times_time(rate):
    sim = drop(rate)
    result = sim.run(until=2.0, progress=False)
    totals, mass, r = result.flow_totals, sim.model.body_mass, result.reports
    if "rate" in rate:
        assert totals["rain.placed"] == 301.0  # the first at t = 0
        assert np.array_equal(r["rain.placed"], 1.0 + np.floor(150.0 * r["time"] + 1e-6))
    else:
        assert 0.0 < totals["rain.placed_mass"] - 2.0 * 2.0 <= mass.max()  # the last one is due when it begins
        assert np.all(2.0 * r["time"] - r["rain.placed_mass"] < mass.max())
    # What goes in comes past the plane after the time of fall, then leaves.
    fall = (-3.0 + np.sqrt(9.0 + 2 * 9.81 * 0.5)) / 9.81
    steady = result.flow("gate").mean_rate(0.5, 2.0)
    wanted = np.interp([0.5 - fall, 2.0 - fall], r["time"], r["rain.placed_mass"])
    assert steady == pytest.approx(np.diff(wanted)[0] / 1.5, abs=2.5 * mass.max() / 1.5)
    assert totals["gate.mass_backward"] == 0.0
    here = sim.present()
    assert totals["drain.removed"] > 100
    assert here.sum() == totals["rain.placed"] - totals["drain.removed"]
    assert mass[here].sum() == pytest.approx(totals["rain.placed_mass"] - totals["drain.removed_mass"])
    assert np.all(sim.positions()[here, 2] >= -1.0)
    below = here & (sim.positions()[:, 2] <= -0.5)
    assert below.sum() + totals["drain.removed"] == totals["gate.bodies_forward"]


def test_energy_of_what_comes_and_goes_is_accounted_for():
    """K + P grows by works and by `energy_flow`; what is left is the O(h) of falling, m g^2 h^2 / 2 a body and step."""
    sim = drop({"rate": 100.0}, angular_velocity=(0, 5, 0), dt=2e-3)
    totals = [0.0]
    for _ in range(600):
        before = sim.model.body_mass[sim.present()].sum()
        report = sim.step()
        works = report.work_normal + report.work_friction + report.work_external + report.work_driven
        totals.append(report.total_energy)
        assert totals[-1] - totals[-2] == pytest.approx(works + report.energy_flow + report.energy_defect, abs=1e-10)
        assert report.energy_defect == pytest.approx(-0.5 * before * (9.81 * 2e-3) ** 2, abs=1e-10)
        here = sim.present()
        kinetic = 0.5 * sim.model.body_mass[here] @ (sim.velocities()[here] ** 2).sum(axis=1)
        turning = 0.5 * (sim.model.body_inertia[here] * sim.state.spin[here] ** 2).sum()
        assert report.kinetic_energy == pytest.approx(kinetic + turning, rel=1e-12)
    assert sim.flow_totals()["drain.removed"] > 40


def test_new_bodies_overlap_nothing():
    """Into a pile that fills the region: bodies appear only where nothing is, and the rest waits."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(0.5, 0.5, 0.6)))
    region = tb.BoxRegion(low=(-0.25, -0.25, 0.0), high=(0.25, 0.25, 0.6))
    scene.add_emitter(tb.Sphere(0.04), density=1000.0, count=600, rate=1e5, region=region, name="balls")
    hull = tb.ConvexHull(np.random.default_rng(0).normal(size=(12, 3)) * 0.03)
    scene.add_emitter(hull, density=1000.0, count=200, rate=1e4, region=region, orientation="random", name="stones")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=4e-3), threads=1)
    words = r"emitter '{}' at t = 0\.2 s: bodies that are due must find room"
    with (
        pytest.warns(TumbleWarning, match=words.format("balls")),
        pytest.warns(TumbleWarning, match=words.format("stones")),
    ):
        result = sim.run(until=0.2, progress=False)
    placed, waiting = result.flow_totals["balls.placed"], result.flow_totals["balls.waiting"]
    assert 100 < placed < 600 and placed + waiting == 600
    assert result.flow_totals["stones.placed"] > 10
    twin = tb.Simulation(sim.model, options=tb.StepOptions(dt=4e-3), threads=1)
    for _ in range(10):
        before = twin.present()
        twin.step()
        new = twin.present() & ~before
        found = twin.contacts()
        assert not np.any(new[found.body_a] | new[found.body_b])  # no gap of zero or less at a new body


def test_an_emitter_without_room_says_how_many_it_placed():
    scene = tb.SceneBuilder()
    scene.add_static(tb.Box((1, 1, 1)))
    region = tb.BoxRegion(low=(-0.3, -0.3, -0.3), high=(0.3, 0.3, 0.3))
    scene.add_emitter(tb.Sphere(0.1), density=1000.0, count=7, rate=100.0, region=region, name="buried")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2), threads=1)
    with pytest.raises(SceneError, match=r"emitter 'buried'.*room.*placed 0 of 7 bodies"):
        sim.run(until=1.0, progress=False)
    assert sim.time == 0.0  # the step that failed left nothing behind
    # A point has room for one body until it falls away: no error, and a warning that counts.
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    point = tb.BoxRegion(low=(0, 0, 1), high=(0, 0, 1))
    scene.add_emitter(tb.Sphere(0.1), density=1000.0, count=7, rate=100.0, region=point, name="stuck")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2), threads=1)
    with pytest.warns(TumbleWarning, match="placed 1 of 7 due, 6 wait"):
        sim.run(until=0.2, progress=False)


def test_a_blocked_emitter_says_so_in_a_long_run(monkeypatch):
    monkeypatch.setattr("tumble.sim.flow_step.PATIENCE", 20)
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    point = tb.BoxRegion(low=(0, 0, 1), high=(0, 0, 1))
    scene.add_emitter(tb.Sphere(0.1), density=1000.0, count=3, rate=100.0, region=point, name="stuck")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2), threads=1)
    with pytest.warns(TumbleWarning, match="placed 1 of 3 due, 2 wait"):
        for _ in range(30):
            sim.step()


def test_sinks_take_what_they_say_and_keep_jointed_bodies():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    inside = scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 0))
    outside = scene.add_body(tb.Sphere(0.1), mass=2.0, position=(3, 0, 0))
    free = scene.add_body(tb.Sphere(0.1), mass=4.0, position=(1, 0, 0), velocity=(0, 0, -1))
    held = scene.add_body(tb.Sphere(0.1), mass=8.0, position=(1, 1, -3))
    scene.add_joint("spherical", None, held, anchor=(1, 1, -3))
    scene.add_kinematic(tb.Sphere(0.1), position=(5, 5, -5), velocity=(0, 0, -1))
    scene.add_sink(inside=tb.BoxRegion(low=(-0.1, -0.1, -0.1), high=(0.1, 0.1, 0.1)), name="hole")
    scene.add_sink(outside=tb.BoxRegion(low=(-2, -2, -9), high=(2, 2, 9)), name="away")
    scene.add_sink(point=(0, 0, -0.5), name="floor")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2), threads=1)
    sim.step()
    assert np.flatnonzero(~sim.present()).tolist() == [inside, outside]
    sim.run(until=1.0, progress=False)
    assert np.flatnonzero(~sim.present()).tolist() == [inside, outside, free]
    masses = [sim.flow_totals()[f"{name}.removed_mass"] for name in ("hole", "away", "floor")]
    assert masses == [1.0, 2.0, 4.0]
    assert sim.positions()[free, 2] == pytest.approx(-0.5, abs=0.011) and not sim.velocities()[free].any()


def test_a_killed_pour_resumes_to_the_same_bits(tmp_path):
    save = dict(every=5, frames_per_checkpoint=2)
    whole = pour()
    result = whole.run(until=0.4, save=tb.Save(path=tmp_path / "whole.h5", **save), progress=False)
    assert result.flow_totals["balls.placed"] > 500 and result.flow_totals["drain.removed"] > 10
    assert result.flow_totals["over.mass_forward"] > 0.1
    pour().run(until=0.19, save=tb.Save(path=tmp_path / "cut.h5", **save), progress=False)
    resumed = pour()
    resumed.run(until=0.4, save=tb.Save(path=tmp_path / "cut.h5", **save), resume=True, progress=False)
    assert resumed.state.sha256() == whole.state.sha256()
    assert np.array_equal(resumed.state.presence, whole.state.presence)
    assert np.array_equal(resumed.state.flow, whole.state.flow)
    with tb.Trajectory(tmp_path / "whole.h5") as a, tb.Trajectory(tmp_path / "cut.h5") as b:
        assert a.final_state_sha256 == b.final_state_sha256
        assert np.array_equal(a.present(-1), whole.present()) and a.present(0).sum() == 1
        assert np.array_equal(a.flow("over").mass_forward, b.flow("over").mass_forward)
        assert np.array_equal(a.flow("over").mass, result.flow("over").mass)


def test_a_pour_has_the_same_bits_for_one_and_two_threads():
    script = POUR + "sim = pour()\nfor _ in range(70): r = sim.step()\nprint(sim.state.sha256(), r.contacts)"
    out = []
    for threads in ("1", "2"):
        env = dict(os.environ, NUMBA_NUM_THREADS=threads)
        done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        out.append(done.stdout.split())
    assert out[0] == out[1] and int(out[0][1]) > 1024  # more than one block


def test_problems_of_a_pour_can_be_dumped_and_read(tmp_path):
    """Absent bodies are no unknowns of a stored problem, also those that left at the end of the step it is from."""
    sim = pour()
    while sim.flow_totals()["drain.removed"] == 0.0:
        before = sim.present()
        report = sim.step()
    sim.dump_problem(tmp_path / "step.hdf5")
    stored = tb.read_problem(tmp_path / "step.hdf5")
    assert stored.problem.count == report.contacts > 50
    moving = before & (sim.model.body_kind == tb.BodyKind.DYNAMIC)
    assert stored.whole.mass.shape[0] == 6 * moving.sum()


def test_moreau_pours_as_well():
    sim = drop({"rate": 100.0})
    other = tb.Simulation(sim.model, options=tb.StepOptions(dt=2.5e-3, integrator="moreau"), threads=1)
    totals = other.run(until=1.0, progress=False).flow_totals
    assert totals["rain.placed"] == 101.0
    fall = (-3.0 + np.sqrt(9.0 + 2 * 9.81)) / 9.81
    assert totals["drain.removed"] == pytest.approx(100.0 * (1.0 - fall), abs=1.5)


@pytest.mark.parametrize("dt", [1e-3, 2.5e-4])
def test_a_floor_shaken_upward_throws_a_ball(dt):
    """z = A sin(w t) with A w^2 = 2 g: the ball leaves where the floor falls faster than g, at sin(w t) = 1/2 with
    w A cos(w t), and comes down again where the parabola meets the floor. First order in the step."""
    period = 0.2
    w = 2.0 * np.pi / period
    amplitude = 2.0 * 9.81 / w**2
    scene = tb.SceneBuilder()
    motion = tb.Oscillation(amplitude=(0, 0, amplitude), period=period, position=(0, 0, -0.05))
    scene.add_kinematic(tb.Box((1, 1, 0.1)), motion=motion, name="floor")
    scene.add_body(tb.Sphere(0.05), mass=1.0, position=(0, 0, 0.05), name="ball")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt), solver=tb.SolverAPGD(tolerance=1e-9), threads=1)
    start = np.arcsin(0.5) / w
    flying, land = [], None
    for _ in range(round(period / dt)):
        sim.step()
        if not sim.contact_forces().on("ball")[2] > 1e-9:
            flying.append(sim.time)
            t = sim.time - start
            height = amplitude * 0.5 + amplitude * w * np.cos(w * start) * t - 0.5 * 9.81 * t**2
            assert sim.positions()[1, 2] - 0.05 == pytest.approx(height, abs=2.0 * dt * amplitude * w)
        elif flying and land is None:
            land = sim.time
    assert flying[0] == pytest.approx(start, abs=2.0 * dt)
    from scipy.optimize import brentq

    def gap(time):
        t = time - start
        return amplitude * (0.5 + w * np.cos(w * start) * t - np.sin(w * time)) - 0.5 * 9.81 * t**2

    assert land == pytest.approx(brentq(gap, start + 0.3 * period, start + period), abs=6.0 * dt)
