"""hopper, crater and brazil-nut: what they measure against closed forms, tiny runs, and the quick versions (slow)."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tumble.errors import ExpectationError, ExperimentError, TumbleWarning
from tumble.experiments import brazil_nut, crater, grains, hopper, run_experiment
from tumble.experiments.base import Job, make_settings
from tumble.sim.query import contacts


def settings(module, name, **given):
    return make_settings(name, module.Settings, quick=True, given=given)


# ---------------------------------------------------------------------- what is measured


def test_flow_rate_is_the_slope_between_the_two_parts():
    s, t = hopper.Settings(), np.linspace(0.0, 2.0, 401)
    passed = np.where(t < 0.2, 0.5 * t, 0.1 + 0.7 * (t - 0.2))  # another slope up to 10 %
    passed = np.where(t > 1.0, 0.66 + 0.1 * (t - 1.0), passed)  # and beyond 60 %
    assert hopper.flow_rate(s, t, passed, 1.0) == pytest.approx(0.7, rel=1e-12)
    assert hopper.flow_rate(s, t[t < 0.5], passed[t < 0.5], 1.0) is None


def test_a_jam_is_a_time_without_a_bead():
    s, t = hopper.Settings(), np.arange(0.0, 1.0, 1e-3)
    stops = np.minimum(t, 0.4)
    assert hopper.jam_time(s, t, stops) == pytest.approx(0.4, abs=1e-9)
    assert hopper.jam_time(s, t[t < 0.44], stops[t < 0.44]) is None
    assert hopper.jam_time(s, t, np.floor(t / 0.04)) is None  # a bead every 0.04 s
    assert hopper.jam_time(s, t, 0.0 * t) == 0.0


def test_flow_exponent_of_a_power_law():
    s = hopper.Settings()
    rates = {gap: 3.0 * (gap - s.diameter) ** 1.5 for gap in s.gaps}
    found = hopper.compare(s, rates)
    assert found["flow_exponent"] == pytest.approx(1.5, rel=1e-12)
    assert found["flow_ratio_3.0mm_2.0mm"] == pytest.approx((2.5 / 1.5) ** 1.5, rel=1e-12)
    assert found["flow_exponent_ok"] == found["flow_grows_ok"] == 1.0
    assert hopper.compare(s, dict.fromkeys(s.gaps, 1.0))["flow_exponent_ok"] == 0.0
    assert hopper.compare(s, rates | {2e-3: None})["flow_exponent"] == pytest.approx(1.5, rel=1e-12)


def test_level_of_known_surfaces():
    rng = np.random.default_rng(0)
    x, y = np.meshgrid(np.arange(-4.5, 5.0), np.arange(-4.5, 5.0))
    floor = np.stack([x.ravel(), y.ravel(), np.full(100, 0.5)], axis=1)
    hill = floor + [0.0, 0.0, 1.0] * rng.uniform(0.0, 2.0, (100, 1))
    position = np.concatenate([floor, hill])
    radius = np.repeat([0.5, 0.25], 100)
    assert crater.level(floor, radius[:100], 10.0, 1.0) == pytest.approx(1.0, rel=1e-12)
    tops = np.maximum(1.0, hill[:, 2] + 0.25)
    assert crater.level(position, radius, 10.0, 1.0) == pytest.approx(tops.mean(), rel=1e-12)


def test_ball_touches_the_highest_grain():
    position = np.array([[0.0, 0.0, 0.5], [1.5, 0.0, 2.0], [9.0, 0.0, 8.0]])
    bed = grains.loose_bed(np.array([0.5, 0.5, 0.5]), position)
    assert crater.touch_height(bed, 2.0) == pytest.approx(2.0 + np.sqrt(2.5**2 - 1.5**2), rel=1e-12)


def test_crater_constant_of_a_published_depth():
    """The depths that C = 0.14 gives for 20 cm: 12.7 mm (700 kg/m^3) and 22.9 mm (2200)."""
    s = crater.Settings()
    for density, depth in ((700.0, 12.7e-3), (2200.0, 22.9e-3)):
        length = crater.law_length(depth, 0.2, s.ball_diameter, s.friction, density / s.density)
        assert depth / length == pytest.approx(0.14, rel=5e-3)


def test_line_through_the_depths():
    """Depths that a constant of 0.13 gives, each short by 0.8 grains: the line finds both, the mean of C is lower."""
    s = crater.Settings()
    drops = []
    for density in s.ball_densities:
        for height in s.heights:
            depth = 0.01
            for _ in range(100):  # the law holds the depth on both sides
                depth = 0.13 * crater.law_length(depth, height, s.ball_diameter, s.friction, density / s.density)
                depth -= 0.8 * s.diameter
            drops.append(crater.Drop(density, height, np.zeros(1), np.array([depth]), True, None, 0.0, None))
    found = crater.fit(s, drops)
    assert found["crater_slope"] == pytest.approx(0.13, rel=1e-9)
    assert found["crater_offset_diameters"] == pytest.approx(-0.8, rel=1e-9)
    one = crater.measure(s, drops[0], 0.6, 0.0)
    assert one["crater_constant_rho700_h50mm"] < 0.13
    assert crater.fit(s, drops[:1]) == {}


def test_a_bed_goes_on_at_rest():
    """A column of grains carries its weight from the first step on, in steps of another length, beside a new body."""
    s = settings(crater, "crater")
    position = np.array([[0.0, 0.0, (2 * k + 1) * s.radius] for k in range(20)])
    bed = grains.loose_bed(np.full(20, s.radius), position)

    def go_on(bed, dt, iterations, ball=None):
        sim = crater.tb.Simulation(
            crater.build(s, bed, ball),
            options=crater.tb.StepOptions(dt=dt),
            solver=crater.tb.SolverAPGD(tolerance=1e-9, max_iterations=iterations),
            threads=1,
        )
        sim.state.memory = grains.memory_of(bed, dt)
        for _ in range(3):
            sim.step()
        return sim

    bed = grains.bed_of(go_on(bed, 1e-3, 100000), bed.radius)
    weight = s.density * 4.0 / 3.0 * np.pi * s.radius**3 * s.gravity
    assert np.sort(bed.force[2]) == pytest.approx(weight * np.arange(1, 21), rel=1e-6)
    ball = (s.density, 100.0 * s.diameter, 0.0)
    # The forces are exact to the solver's 1e-9 of the column's norm: over three steps a few 1e-6 of gravity x step.
    assert crater.mean_speed(go_on(bed, 2e-4, 1, ball).state.velocity[1:-1]) < 1e-5 * s.gravity * 2e-4
    forgetful = bed._replace(contact=bed.contact[:, :0], force=bed.force[:, :0])
    assert crater.mean_speed(go_on(forgetful, 2e-4, 1, ball).state.velocity[1:-1]) > 0.1 * s.gravity * 2e-4


def test_stillness_needs_its_time():
    still = crater.Stillness(1e-3, 5e-3, lambda sim: sim.speed)
    asked = [still(SimpleNamespace(time=t, speed=v)) for t, v in ((0.0, 5e-4), (4e-3, 5e-4), (4.5e-3, 2e-3), (5e-3, 0))]
    assert asked == [False] * 4
    assert still(SimpleNamespace(time=0.0101, speed=0.0)) and still.reached


def test_lead_and_shakes_of_a_nut():
    s = brazil_nut.Settings()
    heights = np.concatenate([[0.0, 10.0], np.zeros(100), np.arange(20.0)])
    position = np.stack([0 * heights, 0 * heights, heights], axis=1)
    assert brazil_nut.lead(position, 3.0) == pytest.approx(13.0 - 9.5)
    time = np.arange(0.0, s.end, 0.01)
    lead = np.where(time < 2.0, 5.0, (time - s.rest) / s.period - 19.0)  # high before the shaking, then after 20 shakes
    assert brazil_nut.shakes_until(s, time, lead) == pytest.approx(20.0, abs=0.01)
    assert brazil_nut.shakes_until(s, time, 0.0 * time) is None
    thrown = np.where(np.abs(time - 30.0) < 0.45 * s.period, 2.0, -1.0)  # past the others and back, within a shake
    assert brazil_nut.shakes_until(s, time, thrown) is None
    stays = np.where(np.abs(time - 30.0) < 0.55 * s.period, 2.0, thrown)
    assert brazil_nut.shakes_until(s, time, stays) == pytest.approx((30.0 - s.rest) / s.period - 0.55, abs=0.01)


# ---------------------------------------------------------------------- scenes


def touching(model):
    """Number of contacts at the start."""
    return len(contacts(model, margin=0.0).gap)


def test_no_scene_starts_with_overlaps():
    s = settings(hopper, "hopper", beads=700)
    for gap in s.gaps:
        bed = hopper.start(s, gap)
        assert len(bed.radius) == 700 and touching(hopper.build(s, gap, bed, closed=True)) == 0
    s = settings(crater, "crater", grains=700)
    assert touching(crater.build(s, crater.start(s))) == 0
    s = brazil_nut.Settings()
    for case in brazil_nut.cases(s).values():
        model = brazil_nut.build(s, case, 1)
        assert model.body_count == 202 and touching(model) == 1  # the nut on the floor
        assert np.ptp(model.shape_parameters[-200:, 3]) > 0.08


def test_the_slot_is_as_wide_as_it_says():
    """A bead a little smaller than the gap falls through, one a little larger stays."""
    s = replace(settings(hopper, "hopper"), friction=0.0)
    gap = 2.5e-3
    for size, through in ((0.99, True), (1.01, False)):
        radius = 0.5 * size * gap
        bed = grains.loose_bed(np.array([radius]), np.array([[1.001 * radius, 0.0, 3.0 * radius]]))
        model = hopper.build(s, gap, bed, closed=False)
        sim = hopper.tb.Simulation(model, options=hopper.tb.StepOptions(dt=1e-4), threads=1)
        sim.run(until=0.1, progress=False)
        assert (sim.positions()[1, 2] < -2.0 * radius) == through


def test_scales():
    full, quick = hopper.Settings(), settings(hopper, "hopper")
    s = make_settings("hopper", hopper.Settings, quick=False, given={"seed": 3}, scale=quick.beads / full.beads)
    assert s.beads == quick.beads and s.seed == 3 and s.dt == full.dt
    assert (s.width, s.depth) == pytest.approx((quick.width, quick.depth), rel=0.01)
    s = make_settings("crater", crater.Settings, quick=False, given={}, scale=0.125)
    assert s.grains == 62550 and s.diameter == pytest.approx(2e-3) and s.side == crater.Settings().side


@pytest.mark.parametrize(
    "name, more, text",
    [
        ("ball-roll", {"scale": 0.5}, "experiment ball-roll: scale: this experiment has one size only (got 0.5)"),
        ("brazil-nut", {"scale": 0.5}, "one size only"),
        ("hopper", {"scale": 0.0}, "experiment hopper: scale: must be > 0 (got 0.0)"),
        ("hopper", {"scale": 0.5, "quick": True}, "does not go with --quick"),
        ("hopper", {"settings": {"gaps": "0.0004"}}, "gaps: must be above the diameter"),
        ("hopper", {"settings": {"depth": 0.0005}}, "depth: must be >"),
        ("hopper", {"settings": {"first": 0.7}}, "last: must be > first"),
        ("crater", {"settings": {"side": 0.02}}, "side: must be > 0.0254 m"),
        ("brazil-nut", {"settings": {"side": 5.0}}, "side: must be >= 6 m"),
    ],
)
def test_wrong_input_is_refused(tmp_path, name, more, text):
    with pytest.raises(ExperimentError) as caught:
        run_experiment(name, out=tmp_path / "out", **more)
    assert text in str(caught.value)
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------------- runs


def test_a_settled_bed_is_kept(tmp_path):
    made = []

    def settle():
        made.append(1)
        points = np.random.default_rng(len(made)).normal(size=(4, 3))
        bed = grains.Bed(np.ones(4), points, 2 * points, 3 * points, np.arange(6).reshape(3, 2), np.ones((3, 2)))
        return bed, {"settled_speed": 0.5 * len(made)}

    first, again, other = (grains.keep_bed(tmp_path / "bed.npz", key, settle) for key in ("a", "a", "b"))
    assert len(made) == 2 and again[1] == first[1] == {"settled_speed": 0.5} and other[1] == {"settled_speed": 1.0}
    for one, two in zip(first[0], again[0]):
        assert np.array_equal(one, two)


def written(folder, metrics):
    """Metrics of a finished experiment, with a figure and a picture beside them."""
    assert json.loads((folder / "metrics.json").read_text()) == metrics
    assert len(list(folder.glob("*_scene.png"))) == 1 and len(list(folder.glob("*.png"))) == 2
    return metrics


@pytest.mark.filterwarnings("ignore:experiment hopper. must meet its expectations")  # too small for the exponent
def test_a_small_hopper(tmp_path):
    given = {"beads": 120, "width": 0.005, "depth": 0.0012, "gaps": "0.0018,0.0022", "settling": 0.04, "dt": 4e-4}
    given |= {"settling_dt": 4e-4, "half_step_gap": 0.0022}
    m = written(tmp_path, run_experiment("hopper", out=tmp_path, quick=True, settings=given, progress=False))
    assert m["jammed_1.8mm"] == m["jammed_2.2mm"] == 0.0
    assert 0.0 < m["flow_rate_1.8mm"] < m["flow_rate_2.2mm"]
    assert {"flow_rate_relaxed_2.2mm", "half_step_change", "flow_exponent"} <= set(m)
    assert m["largest_overlap_ratio"] < 0.05 and m["overlap_ok"] == 1.0


@pytest.mark.filterwarnings("ignore:experiment hopper. must meet its expectations")
def test_a_jam_is_reported(tmp_path):
    """Rough beads do not leave through a slot of 1.2 diameters; that is no flow of rate zero, but a jam."""
    given = {"beads": 60, "width": 0.004, "depth": 0.0012, "gaps": 0.0006, "settling": 0.04, "dt": 2e-4}
    given |= {"friction": 1.0, "relaxed_gaps": 0}
    m = written(tmp_path, run_experiment("hopper", out=tmp_path, quick=True, settings=given, progress=False))
    assert m["jammed_0.6mm"] == 1.0 and m["no_jam_ok"] == 0.0 and "flow_rate_0.6mm" not in m
    assert m["steps"] * 2e-4 == pytest.approx(m["jam_time_0.6mm"] + 0.05, abs=3e-4)


@pytest.mark.filterwarnings("ignore:experiment crater. must meet its expectations")  # six grains a diameter of the ball
def test_a_small_crater(tmp_path):
    given = {"grains": 150, "diameter": 0.008, "side": 0.05, "heights": "0.02,0.1", "duration": 0.1, "dt": 5e-4}
    m = written(tmp_path, run_experiment("crater", out=tmp_path, quick=True, settings=given, progress=False))
    assert m["depth_rho2200_h100mm"] > m["depth_rho2200_h20mm"] > m["depth_rho700_h20mm"]
    assert 0.4 < m["packing"] < 0.7 and m["settled_speed"] < 1e-3
    assert m["crater_constant"] == pytest.approx(
        np.mean([value for key, value in m.items() if key.startswith("crater_constant_rho")])
    )


@pytest.mark.parametrize("settling, settling_dt", [(0.02, 5e-4), (0.01, 3e-4)])
def test_a_settling_that_ends_in_the_fall(tmp_path, settling, settling_dt):
    """Its end is no multiple of the step, as rounding or the user has it: nothing is left for the rest."""
    given = {"grains": 100, "diameter": 0.008, "side": 0.05, "settling": settling, "settling_dt": settling_dt}
    s = settings(crater, "crater", **given)
    bed, metrics = crater.settle(s, Job(out=tmp_path, threads=1, progress=False, strict=False))
    assert settling - 1e-9 < metrics["settling_time"] < settling + settling_dt and metrics["settled_speed"] > 0.05
    assert len(bed.radius) == 100


def test_a_missed_expectation_is_seen(tmp_path):
    """One shake does not lift the nut: a warning, and an error where strict."""
    given = {"spheres": 40, "side": 8.0, "shakes": 1, "seeds": 1, "rest": 2.0, "dt": 0.1}
    with pytest.warns(TumbleWarning, match=r"must meet its expectations \(got missed: rises\)"):
        m = run_experiment("brazil-nut", out=tmp_path, quick=True, settings=given, progress=False)
    assert written(tmp_path, m)["rises_ok"] == 0.0 and m["gentle_stays_ok"] == 1.0 and "rise_shakes" not in m
    with pytest.raises(ExpectationError, match="missed: rises"):
        run_experiment("brazil-nut", out=tmp_path, quick=True, settings=given, progress=False, strict=True)


# ---------------------------------------------------------------------- the quick versions


@pytest.mark.slow
def test_quick_brazil_nut(tmp_path):
    m = written(tmp_path, run_experiment("brazil-nut", out=tmp_path, quick=True, progress=False, strict=True))
    assert 5.0 < m["rise_shakes_h0.02"] <= 40.0 and 5.0 < m["rise_shakes_h0.1"] <= 40.0
    assert m["largest_overlap_ratio"] < 0.05


@pytest.mark.slow
def test_quick_hopper(tmp_path):
    m = written(tmp_path, run_experiment("hopper", out=tmp_path, quick=True, progress=False, strict=True))
    assert 1.35 <= m["flow_exponent"] <= 1.70 and 1.95 <= m["flow_ratio_3.0mm_2.0mm"] <= 2.65


@pytest.mark.slow
def test_quick_crater(tmp_path):
    m = written(tmp_path, run_experiment("crater", out=tmp_path, quick=True, progress=False, strict=True))
    assert m["crater_constant"] == pytest.approx(0.14, rel=0.25)
