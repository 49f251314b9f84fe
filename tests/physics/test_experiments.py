"""The single-body experiments reach the papers' numbers; the fillings balance; wrong settings are refused."""

import json
from math import cos, radians, sin

import numpy as np
import pytest

import tumble as tb
from tumble.errors import ExperimentError, NotConvergedError
from tumble.experiments import EXPERIMENTS, describe, run_experiment
from tumble.experiments.base import (
    MARK,
    ObservedSimulation,
    by_step_size,
    claim,
    lasting,
    overlap_metrics,
    overlap_ratio,
)

STEPS = (0.0025, 0.01)
GRAVITY = 9.81


def run(name, folder, **settings):
    return run_experiment(name, out=folder, settings=settings, progress=False)


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Metrics of each single-body experiment with its defaults, run once."""
    names = ("ball-2d", "ball-roll", "box-slide", "incline-slide", "incline-stop")
    folder = tmp_path_factory.mktemp("experiments")
    return folder, {name: run(name, folder / name) for name in names}


# ---------------------------------------------------------------------- numbers of the papers


def test_every_experiment_writes_its_metrics_and_figures(full):
    folder, metrics = full
    for name, found in metrics.items():
        assert json.loads((folder / name / "metrics.json").read_text()) == found
        assert all(np.isfinite(v) for v in found.values())
        assert sum(v for k, v in found.items() if k.startswith("unconverged")) == 0
        for figure in (figures := sorted((folder / name).glob("*.png"))):
            assert figure.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert figures


def test_ball_2d(full):
    m = full[1]["ball-2d"]
    assert (m["coulomb_normal"], m["coulomb_tangential"]) == pytest.approx((0.0981, -0.01962), abs=1e-9)
    assert (m["relaxed_normal"], m["relaxed_tangential"]) == pytest.approx((0.436930, -0.087386), abs=1e-6)
    assert m["vertical_velocity_coulomb"] == pytest.approx(0.0, abs=1e-9)
    assert m["vertical_velocity_relaxed"] == pytest.approx(0.338830, abs=1e-6)


@pytest.mark.parametrize("h", STEPS)
def test_ball_roll(full, h):
    m = full[1]["ball-roll"]
    # The step in which rolling begins is known to within one step.
    assert 0.0 <= m[f"transition_time_coulomb_h{h:g}"] - 0.29125 < h
    # Euler steps a constant friction force exactly, and the last sliding step ends in rolling: no error in h.
    assert m[f"final_speed_coulomb_h{h:g}"] == pytest.approx(10.0 / 7.0, abs=1e-8)
    assert m[f"max_vertical_speed_coulomb_h{h:g}"] < 1e-8
    jump = {0.01: 0.338830, 0.0025: 0.347865}[h]
    assert m[f"first_step_vertical_speed_relaxed_h{h:g}"] == pytest.approx(jump, abs=1e-6)


def assert_stop(m, prefix, suffix, *, time, h, speed):
    """Euler takes the speed at the end of a step for all of it: late by up to h, short by up to h speed / 2."""
    assert 0.0 <= m[f"{prefix}stop_time_coulomb{suffix}"] - time < h
    short = 0.5 * speed * time - m[f"{prefix}stop_distance_coulomb{suffix}"]
    assert 0.0 <= short <= 0.5 * h * speed


@pytest.mark.parametrize("h", STEPS)
def test_box_slide(full, h):
    m, suffix = full[1]["box-slide"], f"_h{h:g}"
    assert_stop(m, "", suffix, time=2.0 / (0.3 * GRAVITY), h=h, speed=2.0)
    assert m["creep_speed_coulomb" + suffix] < 1e-9
    assert m["max_vertical_speed_coulomb" + suffix] < 1e-8
    # Relaxed, one step of the cube as a whole: lift = mu (v0 - mu g h) / (1 + mu^2).
    lift = 0.3 * (2.0 - 0.3 * GRAVITY * h) / 1.09
    assert m["first_step_vertical_speed_relaxed" + suffix] == pytest.approx(lift, rel=1e-8)


@pytest.mark.parametrize("h", STEPS)
def test_incline_slide(full, h):
    found = full[1]["incline-slide"][f"acceleration_coulomb_h{h:g}"]
    assert found == pytest.approx(8.061702, abs=1e-6 * GRAVITY)


@pytest.mark.parametrize("h", STEPS)
def test_incline_stop(full, h):
    m, suffix = full[1]["incline-stop"], f"_h{h:g}"
    assert_stop(m, "down_", suffix, time=1.68259171, h=h, speed=2.0)
    assert_stop(m, "up_", suffix, time=0.21096128, h=h, speed=2.0)
    assert m["creep_speed_coulomb" + suffix] < 1e-9


# ---------------------------------------------------------------------- settings move the numbers


@pytest.mark.parametrize("seed", range(5))
def test_ball_2d_follows_its_settings(tmp_path, seed):
    """Some of the draws roll, some slide."""
    rng = np.random.default_rng(seed)
    mu, m, v, h = rng.uniform(0.05, 1.0), 10 ** rng.uniform(-3, 3), rng.uniform(0.0, 0.5), rng.uniform(0.01, 0.1)
    found = run("ball-2d", tmp_path, friction=mu, mass=m, speed=v, dt=h)
    normal, lifted = m * GRAVITY * h, m * (GRAVITY * h + mu * v) / (1 + 3.5 * mu**2)
    if v * m / 3.5 <= mu * normal:
        expected = {"coulomb": (normal, -v * m / 3.5), "relaxed": (normal, -v * m / 3.5)}
    else:
        expected = {"coulomb": (normal, -mu * normal), "relaxed": (lifted, -mu * lifted)}
    for law, values in expected.items():
        assert (found[f"{law}_normal"], found[f"{law}_tangential"]) == pytest.approx(
            values, rel=1e-8, abs=1e-8 * normal
        )


@pytest.mark.parametrize("seed", range(2))
def test_ball_roll_follows_its_settings(tmp_path, seed):
    rng = np.random.default_rng(seed)
    mu, v, h = rng.uniform(0.15, 0.5), rng.uniform(0.5, 2.0), 0.01
    found = run(
        "ball-roll",
        tmp_path,
        friction=mu,
        speed=v,
        dt=str(h),
        mass=10 ** rng.uniform(-2, 2),
        radius=10 ** rng.uniform(-1, 1),
    )
    assert 0.0 <= found["transition_time_coulomb"] - 2 * v / (7 * mu * GRAVITY) <= h
    assert found["final_speed_coulomb"] == pytest.approx(5 * v / 7, abs=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_cubes_follow_their_settings(tmp_path, seed):
    rng = np.random.default_rng(seed)
    mu, angle, v, h = rng.uniform(0.5, 0.9), rng.uniform(5.0, 15.0), rng.uniform(0.5, 2.0), 0.01
    body = dict(friction=mu, mass=10 ** rng.uniform(-2, 2), side=10 ** rng.uniform(-1, 1), dt=h)
    slope = radians(angle)
    found = run("incline-stop", tmp_path / "incline-stop", angle=angle, speed=v, duration=1.0, **body)
    for way, sign in (("down_", 1.0), ("up_", -1.0)):
        time = v / (GRAVITY * (mu * cos(slope) - sign * sin(slope)))
        assert_stop(found, way, "", time=time, h=h, speed=v)
    assert found["creep_speed_coulomb"] < 1e-9
    found = run("box-slide", tmp_path / "box-slide", speed=v, duration=0.7, **body)
    assert_stop(found, "", "", time=v / (mu * GRAVITY), h=h, speed=v)
    found = run("incline-slide", tmp_path / "incline-slide", angle=45.0 + angle, duration=0.3, **body)
    exact = GRAVITY * (sin(radians(45.0 + angle)) - mu * cos(radians(45.0 + angle)))
    assert found["acceleration_coulomb"] == pytest.approx(exact, abs=1e-6 * GRAVITY)


# ---------------------------------------------------------------------- containers


def assert_container(m, weight, rel=0.01):
    # An identity of the scheme, up to rounding.
    assert m["impulse_balance_error"] < 1e-9
    assert m["container_force_exact"] == pytest.approx(weight)
    assert m["complementarity_error_ratio"] > 100.0
    for law in ("coulomb", "relaxed"):
        assert m[f"container_force_{law}"] == pytest.approx(weight, rel=rel)


def test_fill_with_few_spheres(tmp_path):
    m = run("fill", tmp_path, spheres=48, side=7.0, duration=6.0, mass=2.0, seeds=3)
    # Few spheres roll on for long: the mean force misses the weight by the change of momentum, a few per cent.
    assert_container(m, 48 * 2.0 * GRAVITY, rel=0.03)
    assert m["kinetic_energy_end_coulomb"] < 10.0
    assert m["overlap_ok"] == 1.0 and m["largest_overlap_ratio"] == pytest.approx(
        max(m["largest_overlap_coulomb"], m["largest_overlap_relaxed"]), rel=1e-12
    )  # spheres of radius 1 m
    assert m["settle_seeds"] + m["unsettled_runs"] >= 3
    assert m["settle_time_difference_low"] < m["settle_time_difference"] < m["settle_time_difference_high"]
    assert m["settle_time_difference"] == pytest.approx(m["settle_time_mean_coulomb"] - m["settle_time_mean_relaxed"])
    assert {p.name for p in tmp_path.glob("*.png")} == {"fill.png", "fill_scene.png"}


def test_overlap_is_measured_over_the_smaller_half_size():
    """A sphere of radius 0.1 that begins 0.02 deep in one of radius 0.4: a fifth of the smaller radius. A thin plate
    that does not obey forces has no part in it."""
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, 0.0))
    scene.add_body(tb.Sphere(0.4), density=1000.0)
    scene.add_body(tb.Sphere(0.1), density=1000.0, position=(0.48, 0.0, 0.0))
    scene.add_static(tb.Box((0.01, 1.0, 1.0)), position=(-0.404, 0.0, 0.0))  # 1 mm deep: 0.2 of its own half-thickness
    sim = ObservedSimulation(scene.build(), observe=lambda *_: None, options=tb.StepOptions(dt=1e-3))
    with pytest.warns(tb.TumbleWarning, match="overlap"):
        sim.step()
    assert overlap_ratio(sim) == pytest.approx(0.2) == sim.largest_overlap_ratio
    for _ in range(200):
        sim.step()
    assert overlap_ratio(sim) < 0.02 and sim.largest_overlap_ratio == pytest.approx(0.2)
    assert overlap_metrics([0.01, 0.049])["overlap_ok"] == 1.0 and overlap_metrics([0.01, 0.051])["overlap_ok"] == 0.0


def test_compact_with_few_spheres(tmp_path):
    m = run("compact", tmp_path, spheres=27, side=7.0, slab_mass=100.0, duration=1.0, dt=0.005, settling=3.0)
    assert_container(m, 127 * GRAVITY, rel=0.05)  # the slab still sinks a little


@pytest.mark.slow
@pytest.mark.parametrize("name, weight", [("fill", 200 * GRAVITY), ("compact", 1000 * GRAVITY)])
def test_quick_containers(tmp_path, name, weight):
    assert_container(run_experiment(name, out=tmp_path, quick=True, progress=False), weight)


@pytest.mark.slow
def test_fill_in_full(tmp_path):
    """Not which law settles first: a single run decides that by chance, see `fill.Settings`."""
    m = run("fill", tmp_path, seeds=1)
    assert_container(m, 1000 * GRAVITY)
    assert m["kinetic_energy_end_coulomb"] < 10.0


# ---------------------------------------------------------------------- registry, settings, errors


def test_describe_names_every_experiment():
    found = describe()
    assert [name for name, _, _ in found] == list(EXPERIMENTS)
    for name, line, settings in found:
        assert line.endswith(".") and "\n" not in line
        names = {s.name for s in settings}
        # Those without contacts, and the one about the default rule, have no tolerance to set.
        assert "dt" in names and ("tolerance" in names or name in ("gyroscope", "mechanisms", "rest"))


@pytest.mark.parametrize(
    "name, settings, text",
    [
        ("ball-rol", {}, "Did you mean 'ball-roll'?"),
        ("ball-roll", {"frictoin": 0.1}, "unknown setting (got 'frictoin'). Did you mean 'friction'?"),
        ("ball-roll", {"friction": -0.1}, "experiment ball-roll: friction: must be > 0 (got -0.1)"),
        ("ball-roll", {"mass": "heavy"}, "mass: must be a number kg (got 'heavy')"),
        ("ball-roll", {"dt": "0.01,x"}, "dt: must be a number s (got 'x')"),
        ("ball-roll", {"dt": ""}, "dt: must be a number s (got '')"),
        ("ball-roll", {"duration": 0.2}, "duration: must exceed the start of rolling at 0.291"),
        ("box-slide", {"friction": 1.5}, "friction: must be <= 1 (got 1.5)"),
        ("box-slide", {"friction": 0.0}, "friction: must exceed tan(angle) = 0 for a stop"),
        ("incline-stop", {"angle": 40}, "friction: must exceed tan(angle) = 0.8391"),
        ("fill", {"spheres": 2.5}, "spheres: must be a whole number (got 2.5)"),
        ("fill", {"spheres": 0}, "spheres: must be >= 1"),
        ("fill", {"side": 1.0}, "side: must be >= 2.1 m"),
        ("fill", {"stop": "natural"}, "Did you mean 'natural_map'?"),
        ("compact", {"slab_play": 10.0}, "slab_play: must be < 10 m"),
    ],
)
def test_wrong_input_is_refused(tmp_path, name, settings, text):
    with pytest.raises(ExperimentError) as caught:
        run_experiment(name, out=tmp_path / "out", settings=settings)
    assert text in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_strict_refuses_a_step_that_does_not_converge(tmp_path):
    for name in ("ball-2d", "ball-roll"):
        with pytest.raises(NotConvergedError):
            run_experiment(name, out=tmp_path / name, settings={"tolerance": 0.0, "max_iterations": 1}, strict=True)


def test_by_step_size_and_lasting():
    assert by_step_size({0.01: {"a": 1.0}, 0.0025: {"a": 2.0}}) == {"a": 2.0, "a_h0.01": 1.0, "a_h0.0025": 2.0}
    assert lasting(np.array([True, False, True, True])) == 2
    assert lasting(np.array([True, False])) is None
    assert lasting(np.array([True])) == 0


def test_results_replace_results_and_nothing_else(tmp_path):
    (tmp_path / "plot.png").write_text("mine")
    with pytest.raises(ExperimentError, match="must be empty or hold results"):
        run_experiment("ball-2d", out=tmp_path, quick=True, progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["plot.png"]
    for _ in range(2):
        run_experiment("ball-2d", out=tmp_path / "own", quick=True, progress=False)
    kept = (tmp_path / "own" / "metrics.json").read_bytes()
    with pytest.raises(ExperimentError, match=r"results of ball-roll \(got those of ball-2d"):
        run_experiment("ball-roll", out=tmp_path / "own", quick=True, progress=False)
    assert (tmp_path / "own" / "metrics.json").read_bytes() == kept
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / MARK).touch()  # what a full disk leaves of a first try
    claim(tmp_path / "cut", "ball-2d")
