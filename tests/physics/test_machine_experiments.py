"""The experiments `snow`, `brittle`, `mixer` and `bulldozer`: their geometry and measures, and small versions."""

import math

import numpy as np
import pytest

import tumble as tb
from tumble.errors import ExperimentError
from tumble.experiments import bulldozer, cohesive_ball, crawler, mixer, run_experiment
from tumble.experiments.base import slope

quiet = pytest.mark.filterwarnings("ignore::tumble.errors.TumbleWarning")
"""Tiny versions need not meet the expectations."""


def run(name, folder, *, quick=False, **settings):
    found = run_experiment(name, out=folder, quick=quick, settings=settings, progress=False)
    for figure in (f"{name}.png", f"{name}_scene.png"):
        assert (folder / figure).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    return found


# ---------------------------------------------------------------------- balls


def test_ball_starts_round_and_without_overlap():
    points, radius = cohesive_ball.grid_ball(300, 0.1, 0.05, seed=4)
    gap = np.linalg.norm(points[:, None] - points[None], axis=2) - radius[:, None] - radius[None]
    np.fill_diagonal(gap, 1.0)
    assert points.shape == (300, 3) and gap.min() > 0.0
    assert np.all(np.abs(radius / 0.1 - 1.0) <= 0.05) and np.ptp(radius) > 0.008
    # As many grid points fill a ball of this radius.
    reach = cohesive_ball.PITCH * 0.1 * (3 * 300 / (4 * math.pi)) ** (1 / 3)
    assert np.linalg.norm(points, axis=1).max() == pytest.approx(reach, rel=0.1)
    assert not np.array_equal(points, cohesive_ball.grid_ball(300, 0.1, 0.05, seed=5)[0])


def test_summary_and_order():
    def throw(clusters):
        return cohesive_ball.Throw({"clusters": clusters, "largest_part": 0.5, "spread": 1.0}, np.ones(1), None)

    found = cohesive_ball.summary(
        {(500.0, 0): throw(20), (500.0, 1): throw(30), (1e5, 0): throw(1), (1e5, 1): throw(2)}
    )
    assert found["clusters_c500"] == 25.0 and found["clusters_c100000"] == 1.5
    assert found["clusters_c500_seed1"] == 30 and found["spread_c100000_seed0"] == 1.0
    assert cohesive_ball.falls([5, 2, 2, 1])
    assert not cohesive_ball.falls([5, 2, 3, 1]) and not cohesive_ball.falls([1, 1])


@quiet
def test_tiny_snow(tmp_path):
    """Two clumps that are thrown apart by the edge only where nothing holds them."""
    found = run("snow", tmp_path, spheres=40, seeds=1, cohesions="0,50000", duration=0.2, dt=1e-3, packing_dt=4e-3)
    assert found["clusters_c50000"] == 1 and found["largest_part_c50000"] == 1.0
    assert found["clusters_c0"] > 5 and found["spread_c0"] > found["spread_c50000"]
    assert found["clusters_fall_ok"] == found["spread_fall_ok"] == 1.0
    assert 0.4 < found["packing_density"] < 0.74


@quiet
def test_tiny_brittle(tmp_path):
    found = run("brittle", tmp_path, spheres=40, seeds=1, duration=0.1, packing_dt=4e-3)
    assert found["clusters_c100000"] <= found["clusters_c10000"]
    assert found["spread_c100000"] < found["spread_c10000"]
    assert found["overlap_ok"] == 1.0 and 0.0 < found["largest_overlap_ratio"] < 0.05


def test_scale_and_bad_settings(tmp_path):
    with pytest.raises(ExperimentError, match=r"cohesion_range: must be <= touch"):
        run("snow", tmp_path / "snow", cohesion_range=0.1)
    with pytest.raises(ExperimentError, match=r"sizes: too few bodies for a drum"):
        run("mixer", tmp_path / "mixer", sizes="20")
    with pytest.raises(ExperimentError, match=r"duration: must be >= 0.52"):
        run("bulldozer", tmp_path / "bulldozer", quick=True, duration=0.5)
    small = bulldozer.Settings().at_scale(1 / 8, "here")
    assert small.grains == 20000 and small.grain_scale == pytest.approx(2.0)
    assert mixer.Settings().at_scale(0.1, "here").sizes == (1250, 2500, 5000, 10000)


# ---------------------------------------------------------------------- mixer


def test_time_slope_of_a_power_law():
    contacts = np.array([1e3, 3e3, 2e4])
    assert slope(contacts, 7.0 * contacts**1.05) == pytest.approx(1.05)


def test_mixer_starts_without_overlap():
    s = mixer.Settings()
    model = mixer.build(s, 400, cohesion=200.0, turning=1.0)
    assert model.body_count == 402
    assert [len(model.bodies(name)) for name in mixer.SHAPES] == [100] * 4
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3))
    assert np.all(sim.contacts(margin=1e-3).gap > 0.0)
    # The blades keep their distance from wall and floor, and lean forwards.
    radius = mixer.drum_radius(400)
    for blade in mixer.blades(radius):
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.5 * blade.shape.size
        corners = np.array(blade.position) + tb.scene.rotation.rotate(np.array(blade.orientation), corners)
        assert corners[:, 2].min() == pytest.approx(mixer.CLEARANCE)
        assert np.ptp(corners[:, 2]) == pytest.approx(mixer.BLADE * radius)
        assert np.hypot(*corners[:, :2].T).max() == pytest.approx(radius - mixer.CLEARANCE, abs=0.05)
        forwards = np.cross((0.0, 0.0, 1.0), blade.position)
        top = corners[:, 2] > np.median(corners[:, 2])
        assert corners[top].mean(axis=0) @ forwards > corners[~top].mean(axis=0) @ forwards


@quiet
def test_tiny_mixer(tmp_path):
    found = run(
        "mixer",
        tmp_path,
        sizes="280,560",
        filling_dt=0.02,
        filling_iterations=50,
        calming=3,
        turn=0.02,
        steps=2,
        repeats=1,
        iterations=10,
    )
    assert found["contacts_n560"] > 1.5 * found["contacts_n280"] > 150
    assert math.isfinite(found["time_contacts_slope"])
    assert 0.5 < found["fill_height_n560"] < 2.5
    worst = max(found["largest_overlap_n280"], found["largest_overlap_n560"])
    assert found["largest_overlap_ratio"] == pytest.approx(worst / 0.042) and "overlap_ok" in found


# ---------------------------------------------------------------------- bulldozer


def test_track_closes():
    pins = crawler.track_pins()
    ahead = np.roll(pins, -1, axis=0) - pins
    assert np.linalg.norm(ahead, axis=1) == pytest.approx(crawler.PITCH, abs=1e-12)
    angle = np.unwrap(np.arctan2(ahead[:, 1], ahead[:, 0]))
    assert angle[-1] - angle[0] == pytest.approx(
        2 * math.pi - math.pi / crawler.TEETH
    )  # the last corner is half a tooth's
    seats = np.concatenate([pins[-5:], pins[:1]])
    axle = np.array([0.0, crawler.AXLE_HEIGHT])
    assert np.linalg.norm(seats - axle, axis=1) == pytest.approx(crawler.PITCH_RADIUS)
    assert pytest.approx(0.3236, abs=1e-4) == crawler.PITCH_RADIUS
    # The chain is longer than a belt about both axles by the play at the front, on both runs.
    assert pins[:, 0].max() - crawler.AXLES > crawler.PITCH_RADIUS * math.cos(math.pi / 10)


def test_tooth_lets_shoes_swing_out():
    """A bushing turns about the pin behind it with the pitch as radius: the tooth between must stay clear of it."""
    middle = crawler.PITCH_RADIUS * math.cos(math.pi / crawler.TEETH)
    hub = crawler.PITCH_RADIUS - crawler.BUSHING
    for width, height in crawler.TOOTH:
        if height > hub:
            assert math.hypot(width + 0.5 * crawler.PITCH, height - middle) < crawler.PITCH - crawler.BUSHING
            assert math.hypot(0.5 * crawler.PITCH - width, height - middle) > crawler.BUSHING
    assert crawler.TOOTH[-1][1] < middle + crawler.PLATE_INSIDE


def test_machine_stands_on_its_shoes():
    model, machine = bulldozer.build(bulldozer.Settings(), None)
    assert model.body_mass.sum() == pytest.approx(10000.0)
    assert len(model.bodies("shoes_left")) == len(model.bodies("shoes_right")) == 50
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3))
    assert sim.assembly.moved < 1e-9
    touching = sim.contacts(margin=1e-6)
    assert touching.gap.min() > -1e-9
    ground = int(model.bodies("plain")[0])
    shoes = {int(b) for a, b in zip(touching.body_a, touching.body_b) if a == ground}
    assert len(shoes) == 40
    for _ in range(3):
        before = model.body_mass @ sim.velocities()
        assert sim.step().joint_drift < 1e-9
        push = -sim.contact_forces().on(ground) - np.array([0.0, 0.0, 98100.0])
        assert 1e-3 * push == pytest.approx(model.body_mass @ sim.velocities() - before, abs=1e-6)
    assert machine.motors == ("motor_left", "motor_right")


def test_distance_ratio():
    time = np.linspace(0.0, 1.0, 101)
    turn = 4.0 * time
    place = np.where(time < 0.5, 0.0, 0.9 * (turn - 2.0) / (2 * math.pi) * 2.0)
    assert bulldozer.ratio(np.stack([time, place, turn], axis=1), 0.5) == pytest.approx(0.9)


@quiet
def test_tiny_bulldozer(tmp_path):
    """The pile is not reached: the same motion to the solver's tolerance, and joints closed to rounding."""
    found = run(
        "bulldozer", tmp_path, quick=True, grains=12, duration=0.03, after=0.01, ahead=0.2, settling=0.05, speed=1.0
    )
    assert found["max_joint_drift"] < 1e-9 and found["joints_closed_ok"] == 1.0
    assert abs(found["distance_lost_in_pile"]) < 1e-5 and found["largest_force_of_pile"] == 0.0
    assert found["pile_mass"] == pytest.approx(12 * 27 * 0.0672, rel=0.01)
    assert found["largest_overlap_ratio"] == max(found[f"largest_overlap_ratio_{run}"] for run in ("bare", "pile"))


# ---------------------------------------------------------------------- the quick versions


@pytest.mark.slow
@pytest.mark.parametrize("name", ["snow", "brittle", "mixer", "bulldozer"])
def test_quick_version_shows_the_effect(name, tmp_path):
    found = run(name, tmp_path, quick=True)
    assert all(value == 1.0 for key, value in found.items() if key.endswith("_ok"))
