"""Regions, emitters, sinks and measuring planes: what they mean, in Python and in scene files, and bad input."""

import math

import numpy as np
import pytest

import tumble as tb
from tumble.errors import FileError, OptionsError, SceneError
from tumble.observe.flow_series import FlowSeries
from tumble.view.picture import render

BOX = tb.BoxRegion(low=(-0.4, -0.4, 1.0), high=(0.4, 0.4, 1.4))


def emitter(scene=None, shape=None, **changed):
    """A scene with one emitter."""
    scene = scene or tb.SceneBuilder()
    settings = dict(count=20, rate=100.0, density=1000.0, region=BOX, name="pour") | changed
    scene.add_emitter(tb.Sphere(0.05) if shape is None else shape, **settings)
    return scene


def simulation(scene, dt=2e-3, **options):
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt, **options), threads=1)


def test_points_fill_their_regions():
    rng = np.random.default_rng(0)
    p = BOX.points(rng, 4000)
    assert BOX.contains(p).all() and not BOX.contains(p + np.array([1.0, 0, 0])).any()
    np.testing.assert_allclose(p.mean(axis=0), [0, 0, 1.2], atol=0.02)
    n = np.array([1.0, 2.0, -2.0]) / 3.0
    disc = tb.DiscRegion(center=(1, 2, 3), radius=0.5, normal=(2, 4, -4))
    p = disc.points(rng, 4000) - [1, 2, 3]
    assert np.abs(p @ n).max() < 1e-15 and np.linalg.norm(p, axis=1).max() <= 0.5
    assert (p**2).sum(axis=1).mean() == pytest.approx(0.125, rel=0.03)  # even over the disc: r^2 / 2
    low, high = disc.box
    assert np.all(p + np.array([1, 2, 3]) >= low - 1e-15) and np.all(p + np.array([1, 2, 3]) <= high + 1e-15)


def test_sizes_are_scaled_and_seeded():
    model = emitter(count=200, size_range=(0.5, 1.5)).build()
    r = model.shape_parameters[:, 3]
    assert 0.025 < r.min() < 0.03 and 0.07 < r.max() < 0.075
    np.testing.assert_allclose(model.body_mass, 1000.0 * 4.0 / 3.0 * np.pi * r**3)
    np.testing.assert_allclose(model.body_inertia, np.repeat((0.4 * model.body_mass * r**2)[:, None], 3, axis=1))
    np.testing.assert_allclose(model.shape_bound, r)
    again, other = (emitter(count=200, size_range=(0.5, 1.5), seed=s).build() for s in (0, 1))
    assert np.array_equal(again.body_mass, model.body_mass)
    assert not np.array_equal(other.body_mass, model.body_mass)


def test_absent_bodies_touch_nothing_and_are_seen_by_nobody():
    """All of them lie at one place, in the way of a ball, of rays and of questions."""
    scene = emitter(count=5000, rate=1e-6, region=tb.BoxRegion(low=(0, 0, 1), high=(0, 0, 1)))
    scene.add_static(tb.HalfSpace())
    ball = scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 1.05), name="ball")
    sim = simulation(scene)
    assert sim.present().sum() == 2
    assert len(sim.contacts(margin=0.2)) == 0
    assert sim.overlaps(tb.Sphere(0.02), (0, 0, 1.06)).tolist() == [ball]
    assert sim.ray_cast((0, 0, 1.0), (0, 0, 1)).body[0] == ball
    hit = sim.ray_cast((0.0, 0.0, 0.95 - 1e-9), (0, 0, -1))
    assert hit.body[0] == ball - 1 and hit.distance[0] == pytest.approx(0.95)
    reports = [sim.step() for _ in range(50)]
    assert max(r.contacts for r in reports) == 0
    assert reports[-1].kinetic_energy == pytest.approx(0.5 * (9.81 * 0.1) ** 2)
    assert sim.clusters(gap=0.0).size.tolist() == [1]
    force, _ = sim.contact_forces().per_body()
    assert not force.any()


def test_pictures_show_only_those_present():
    scene = emitter(count=30, rate=1e-6, region=tb.BoxRegion(low=(0, 0, 1), high=(0, 0, 1)))
    scene.add_static(tb.HalfSpace())
    ball = scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0.2, 1.05), name="ball")
    sim = simulation(scene)
    alone = tb.SceneBuilder()
    alone.add_static(tb.HalfSpace())
    alone.add_body(tb.Sphere(0.1), mass=1.0, position=sim.positions()[ball])
    twin = alone.build()
    wanted = render(twin, *twin.user_pose(twin.initial), size=(80, 60), color_by=np.zeros(2))
    grey = dict(size=(80, 60), color_by=np.zeros(sim.model.body_count))
    poses = sim.model, sim.positions(), sim.orientations()
    assert np.array_equal(render(*poses, **grey, present=sim.present()), wanted)
    assert not np.array_equal(render(*poses, **grey), wanted)


def test_due_counts_bodies_or_mass():
    by_number = emitter(rate=100.0, start=0.5).build().flow.emitters[0]
    assert [by_number.due(t) for t in (0.0, 0.499, 0.5, 0.509, 0.51, 0.6, 99.0)] == [0, 0, 1, 1, 2, 11, 20]
    time = 0.5
    for _ in range(10):
        time += 0.01  # not 0.6 to the last bit
    assert by_number.due(time) == 11  # the first at the start, then one every 0.01 s
    by_mass = emitter(rate=None, mass_rate=2.0, size_range=(0.5, 1.0)).build()
    total = np.cumsum(by_mass.body_mass)
    assert by_mass.flow.emitters[0].due(0.0) == 1
    assert by_mass.flow.emitters[0].due(total[7] / 2.0) == 9
    assert by_mass.flow.emitters[0].due(0.99 * total[7] / 2.0) == 8


def test_random_orientations_and_spin_in_world_axes():
    sim = simulation(
        emitter(shape=tb.Box((0.1, 0.06, 0.04)), orientation="random", velocity=(1, 0, -2), angular_velocity=(0, 0, 3))
    )
    while sim.flow_totals()["pour.placed"] < 20:
        before = sim.present()
        sim.step()
        new = sim.present() & ~before
        np.testing.assert_allclose(sim.velocities()[new], np.tile([1, 0, -2], (new.sum(), 1)))
        np.testing.assert_allclose(sim.angular_velocities()[new], np.tile([0, 0, 3], (new.sum(), 1)), atol=1e-14)
    assert len(np.unique(np.round(sim.orientations(), 3), axis=0)) == 20


def test_measuring_planes_count_both_ways_and_only_their_part():
    """Balls on given lines: through a disc, beside it, there and back; a plane without edge sees them all."""
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    for mass, x, velocity in ((1.0, 0.0, 1.0), (2.0, 0.5, 1.0), (4.0, 0.1, -1.0), (8.0, 0.9, 0.0)):
        scene.add_body(tb.Sphere(0.01), mass=mass, position=(x, 0, -0.5 * velocity), velocity=(0, 0, velocity))
    scene.add_kinematic(tb.Sphere(0.01), position=(2, 0, -0.5), velocity=(0, 0, 1))
    scene.add_measuring_plane(point=(0, 0, 0), name="all")
    scene.add_measuring_plane(point=(0, 0, 0), normal=(0, 0, -1), name="down")
    scene.add_measuring_plane(point=(0, 0, 0), radius=0.2, name="disc")
    scene.add_measuring_plane(point=(0.5, 0, 0), size=(0.2, 1.0), axis=(1, 0, 0), name="slot")
    scene.add_measuring_plane(point=(0.5, 0, 0), size=(0.2, 1.2), axis=(0, 1, 0), name="turned")
    result = simulation(scene, dt=1e-2).run(until=1.0, progress=False)
    totals = {
        name: tuple(result.flow_totals[f"{name}.{c}"] for c in ("mass_forward", "mass_backward"))
        for name in ("all", "down", "disc", "slot", "turned")
    }
    assert totals == {
        "all": (3.0, 4.0), "down": (4.0, 3.0), "disc": (1.0, 4.0), "slot": (2.0, 0.0), "turned": (3.0, 4.0)
    }  # fmt: skip
    assert result.flow_totals["all.bodies_forward"] == 2.0
    with pytest.raises(OptionsError, match=r"unknown measuring plane.*Did you mean 'disc'"):
        result.flow("disk")


def test_rates_of_a_series():
    t = np.linspace(0.1, 2.0, 20)
    zero = np.zeros(20)
    series = FlowSeries(t, zero, zero, 3.0 * t, 1.0 * t)
    np.testing.assert_allclose(series.rate(0.35), 2.0)
    assert series.mean_rate() == pytest.approx(2.0) and series.mean_rate(0.05, 0.1) == pytest.approx(2.0)
    with pytest.raises(OptionsError, match="start < end"):
        series.mean_rate(1.0, 1.0)


TOML = """
[[container]]
inner = [1, 1, 1]
[[emitter]]
name = "pour"
shape = {type = "sphere", radius = 0.05}
density = 1000.0
count = 30
mass_rate = 20.0
size_range = [0.8, 1.0]
region = {type = "disc", center = [0, 0, 1.3], radius = 0.3}
velocity = [0, 0, -1]
orientation = "random"
seed = 3
[[sink]]
name = "away"
outside = {low = [-2, -2, -1], high = [2, 2, 4]}
[[measuring_plane]]
name = "gate"
point = [0, 0, 1]
normal = [0, 0, -1]
size = [1, 1]
"""


def test_scene_files_and_what_info_says(tmp_path):
    path = tmp_path / "pour.toml"
    path.write_text(TOML)
    model = tb.load_scene(path).model
    twin = tb.SceneBuilder()
    twin.add_static(tb.open_box(inner=(1, 1, 1)))
    twin.add_emitter(
        tb.Sphere(0.05),
        density=1000.0,
        count=30,
        mass_rate=20.0,
        size_range=(0.8, 1.0),
        region=tb.DiscRegion(center=(0, 0, 1.3), radius=0.3),
        velocity=(0, 0, -1),
        orientation="random",
        seed=3,
        name="pour",
    )
    twin.add_sink(outside=tb.BoxRegion(low=(-2, -2, -1), high=(2, 2, 4)), name="away")
    twin.add_measuring_plane(point=(0, 0, 1), normal=(0, 0, -1), size=(1, 1), name="gate")
    assert model.flow.facts() == twin.build().flow.facts()
    assert np.array_equal(model.body_mass, twin.build().body_mass)
    from tumble.observe.facts import run_facts, scene_facts

    assert scene_facts(path)["flow"] == ["emitter pour", "sink away", "plane gate"]
    sim = tb.Simulation(model, options=tb.StepOptions(dt=4e-3), threads=1)
    sim.run(until=0.4, save=tb.Save(path=tmp_path / "run.h5"), progress=False)
    facts = run_facts(tmp_path / "run.h5")
    assert facts["pour.placed"] == sim.flow_totals()["pour.placed"] > 10
    assert facts["present"] == sim.present().sum()
    path.write_text(TOML.replace('type = "disc"', 'type = "ball"'))
    with pytest.raises(SceneError, match=r"emitter\[0\].region.type: must be one of 'box', 'disc'"):
        tb.load_scene(path)
    path.write_text(TOML.replace("count = 30", "count = 0"))
    with pytest.raises(SceneError, match=r"emitter\[0\].*count.*>= 1"):
        tb.load_scene(path)


NAN, INF = math.nan, math.inf
BAD = [
    (dict(count=0), "count must be|count: must be >= 1"),
    (dict(count=2.5), "count"),
    (dict(rate=0.0), "rate: must be > 0"),
    (dict(rate=-1.0), "rate"),
    (dict(rate=INF), "rate: must be finite"),
    (dict(rate=None), "either rate"),
    (dict(mass_rate=1.0), "either rate"),
    (dict(rate=None, mass_rate=NAN), "mass_rate"),
    (dict(density=None), "mass or density"),
    (dict(density=-1.0), "density"),
    (dict(region=(0, 0, 1)), "region: must be a BoxRegion or DiscRegion"),
    (dict(size_range=(0.0, 1.0)), "size_range"),
    (dict(size_range=(2.0, 1.0)), "size_range"),
    (dict(size_range=(1.0, NAN)), "size_range"),
    (dict(velocity=(0, 0)), "velocity"),
    (dict(velocity=(0, 0, INF)), "velocity"),
    (dict(orientation="any"), "orientation"),
    (dict(orientation=(0, 0, 0, 0)), "orientation"),
    (dict(start=-1.0), "start"),
    (dict(seed=-1), "seed"),
    (dict(name="a.b"), "name"),
    (dict(name="a/b"), "name"),
    (dict(shape=tb.ConvexHull(np.random.default_rng(0).normal(size=(8, 3))), size_range=(0.5, 1.0)), "size_range"),
    (dict(shape=tb.Cone(0.1, 0.2), size_range=(0.5, 1.0)), "size_range"),
    (dict(shape=tb.HalfSpace()), "add_emitter"),
]


@pytest.mark.parametrize("changed, words", BAD, ids=[str(sorted(c))[:60] + str(i) for i, (c, _) in enumerate(BAD)])
def test_bad_emitters(changed, words):
    with pytest.raises(SceneError, match=words):
        emitter(**changed)


def test_bad_regions_sinks_and_planes():
    scene = emitter()
    for make, words in (
        (lambda: tb.BoxRegion(low=(0, 0, 1), high=(1, 1, 0)), "low <= high"),
        (lambda: tb.BoxRegion(low=(0, 0, NAN), high=(1, 1, 0)), "finite"),
        (lambda: tb.DiscRegion(center=(0, 0, 0), radius=0.0), "radius"),
        (lambda: tb.DiscRegion(center=(0, 0, 0), radius=1.0, normal=(0, 0, 0)), "direction"),
        (lambda: scene.add_sink(), "one of point, inside and outside"),
        (lambda: scene.add_sink(point=(0, 0, 0), inside=BOX), "one of point, inside and outside"),
        (lambda: scene.add_sink(inside=(0, 0, 1)), "BoxRegion"),
        (lambda: scene.add_sink(point=(0, 0, 0), normal=(0, 0, 0)), "direction"),
        (lambda: scene.add_sink(point=(0, 0, 0), name="pour"), "unique"),
        (lambda: scene.add_measuring_plane(point=(0, 0, 0), radius=1.0, size=(1, 1)), "not both"),
        (lambda: scene.add_measuring_plane(point=(0, 0, 0), radius=-1.0), "radius"),
        (lambda: scene.add_measuring_plane(point=(0, 0, 0), size=(1, 0)), "size"),
        (lambda: scene.add_measuring_plane(point=(0, 0, 0), size=(1, 1), axis=(0, 0, 1)), "axis"),
        (lambda: scene.add_measuring_plane(point=(0, 0, INF)), "point"),
    ):
        with pytest.raises(SceneError, match=words):
            make()
    bodies = range(20)
    scene.add_joint("spherical", None, bodies[3], anchor=(0, 0, 1.2))
    with pytest.raises(SceneError, match="take no joints"):
        scene.build()


def test_a_state_of_another_scene_is_refused(tmp_path):
    plain = tb.SceneBuilder()
    plain.add_spheres(0.05, mass=1.0, position=np.zeros((20, 3)) + np.arange(20)[:, None])
    simulation(plain).save_checkpoint(tmp_path / "plain.h5")
    sim = simulation(emitter())
    for load in (lambda: sim.load_checkpoint(tmp_path / "plain.h5"), lambda: sim.set_state(simulation(plain).state)):
        with pytest.raises(OptionsError, match="presence of 20 bodies"):
            load()
    sim.run(until=0.02, save=tb.Save(path=tmp_path / "run.h5"), progress=False)
    other = simulation(emitter(rate=50.0))
    with pytest.raises(FileError, match=r"emitters\[0\].rate: must be 100.0"):
        other.run(until=0.04, save=tb.Save(path=tmp_path / "run.h5"), resume=True, progress=False)


def test_a_mixture_of_kinds():
    """Weights are shares of the bodies; masses and inertias are those of the kinds, scaled; TOML says the same."""
    pair = [tb.Placed(tb.Sphere(0.01), (0.01, 0, 0)), tb.Placed(tb.Sphere(0.01), (-0.01, 0, 0))]
    kinds = [tb.Sphere(0.02), tb.Box((0.05, 0.04, 0.03)), pair]
    mixture = tb.Mixture(kinds, weights=[6, 3, 1], size_ranges=[(0.5, 1.5), (1, 1), (1, 1)])
    region = tb.BoxRegion(low=(-1, -1, 2), high=(1, 1, 2))
    scene = tb.SceneBuilder()
    bodies = scene.add_emitter(mixture, density=2500.0, count=2000, rate=500.0, region=region, seed=3, name="mix")
    model = scene.build()
    shapes = np.bincount(model.shape_body, minlength=len(bodies))
    first = np.searchsorted(model.shape_body, bodies)
    spheres = (model.shape_kind[first] == 0) & (shapes == 1)
    share = [spheres.mean(), (model.shape_kind[first] == 2).mean(), (shapes == 2).mean()]
    np.testing.assert_allclose(share, [0.6, 0.3, 0.1], atol=0.03)
    radius = model.shape_parameters[first, 3][spheres]
    assert 0.01 <= radius.min() < 0.0105 and 0.0295 < radius.max() <= 0.03
    np.testing.assert_allclose(model.body_mass[spheres], 2500 * 4 / 3 * np.pi * radius**3, rtol=1e-12)
    inertia = 0.4 * model.body_mass[spheres] * radius**2
    np.testing.assert_allclose(model.body_inertia[spheres], np.tile(inertia[:, None], 3), rtol=1e-12)
    alone = tb.SceneBuilder()
    alone.add_body(pair, density=2500.0)
    np.testing.assert_allclose(model.body_inertia[shapes == 2][0], alone.build().body_inertia[0], rtol=1e-12)


def test_a_mixture_in_a_scene_file(tmp_path):
    text = """
[[emitter]]
name = "mix"
count = 40
rate = 100
density = 2500
seed = 3
region = {type = "box", low = [-1, -1, 2], high = [1, 1, 2]}
mixture = [
  {shape = {type = "sphere", radius = 0.02}, weight = 2, size_range = [0.5, 1.5]},
  {shapes = [{type = "sphere", radius = 0.01}, {type = "sphere", radius = 0.01, position = [0.01, 0, 0]}]},
]
"""
    (tmp_path / "mix.toml").write_text(text)
    read = tb.load_scene(tmp_path / "mix.toml").model
    scene = tb.SceneBuilder()
    pair = [tb.Placed(tb.Sphere(0.01)), tb.Placed(tb.Sphere(0.01), (0.01, 0, 0))]
    mixture = tb.Mixture([tb.Sphere(0.02), pair], weights=[2, 1], size_ranges=[(0.5, 1.5), (1, 1)])
    region = tb.BoxRegion(low=(-1, -1, 2), high=(1, 1, 2))
    scene.add_emitter(mixture, count=40, rate=100.0, density=2500.0, seed=3, region=region, name="mix")
    model = scene.build()
    for name in ("body_mass", "body_inertia", "shape_parameters", "shape_body", "shape_position"):
        assert np.array_equal(getattr(read, name), getattr(model, name))
    sims = [tb.Simulation(m, options=tb.StepOptions(dt=2e-3)) for m in (read, model)]
    for sim in sims:
        sim.run(until=0.1, progress=False)
    assert sims[0].state.sha256() == sims[1].state.sha256() and sims[0].present().sum() >= 9
    for wrong, said in (
        (dict(kinds=[]), "list of kinds"),
        (dict(kinds=[tb.Sphere(1)], weights=[0]), "one of them > 0"),
        (dict(kinds=[tb.Sphere(1)], size_ranges=[(1, 2), (1, 2)]), "shape"),
    ):
        with pytest.raises(tb.TumbleError, match=said):
            tb.Mixture(**wrong)
    with pytest.raises(tb.TumbleError, match="kind by kind"):
        scene.add_emitter(mixture, count=4, rate=1.0, density=1.0, region=region, size_range=(1, 2))
