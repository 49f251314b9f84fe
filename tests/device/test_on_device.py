"""Simulations on a device against the processor: the same bits where nothing is summed, else to rounding."""

import functools
import itertools
import os
import sys

import numpy as np
import pytest

import tumble as tb
from tumble.errors import OptionsError
from tumble.observe.checkpoint import read_checkpoint

from ..naive.solids import brick

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
SHAPES = {
    "plane": (tb.HalfSpace(), (0.0, 0.0, 0.0)),
    "box": (tb.Box((1.0, 1.0, 0.2)), (0.0, 0.0, -0.1)),
    "cylinder": (tb.Cylinder(1.0, 0.2), (0.0, 0.0, -0.1)),
}


def pile(floor="plane", *, motion=None, **material):
    """Four balls of two sizes above a floor, one on top of the others, pushed sideways."""
    scene = tb.SceneBuilder()
    stuff = scene.add_material(tb.Material(**({"friction": 0.4} | material)))
    shape, place = SHAPES[floor]
    if motion is None:
        scene.add_static(shape, material=stuff, position=place)
    else:
        scene.add_kinematic(shape, material=stuff, position=place, velocity=motion)
    balls = [(0, 0, 0.1001, 0.1), (0.201, 0, 0.1001, 0.1), (0.1, 0.178, 0.0801, 0.08), (0.1, 0.06, 0.265, 0.1)]
    for k, (x, y, z, r) in enumerate(balls):
        scene.add_body(tb.Sphere(r), density=1000.0, material=stuff, position=(x, y, z), velocity=(-0.2 * k, 0.0, -1.0))
    return scene.build()


HULL = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)] + [(0, 0, 1.6), (1.7, 0.2, 0.1)]) * 0.05


def solids():
    """One of each convex kind, a rounded one, and a mesh; all of about one size."""
    return [
        tb.Sphere(0.06), tb.Capsule(0.04, 0.1), tb.Box((0.1, 0.12, 0.08)), tb.Cylinder(0.06, 0.1), tb.Cone(0.07, 0.12),
        tb.Frustum(0.06, 0.04, 0.1), tb.Ellipsoid((0.06, 0.08, 0.05)), tb.ConvexHull(HULL),
        tb.Rounded(tb.Box((0.08, 0.08, 0.06)), 0.02), brick((0.1, 0.1, 0.1), (1, 1, 1)),
    ]  # fmt: skip


def terrain():
    """A height field that is nowhere flat."""
    return tb.HeightField(0.02 * np.random.default_rng(5).random((6, 6)), (0.9, 0.9))


GROUNDS = {
    "plane": tb.HalfSpace,
    "box": lambda: tb.Box((1.0, 1.0, 0.2)),
    "mesh": lambda: brick((1.0, 1.0, 0.2), (3, 3, 1)),
}
GROUNDS |= {"field": terrain}
TOPS = {"plane": 0.0, "box": 0.1, "mesh": 0.1, "field": 0.015}


def mixed(ground, count=5, above=0.07):
    """Solids of different kinds that fall onto a ground, close together. above: height of their middles over it."""
    rng = np.random.default_rng(count)
    scene = tb.SceneBuilder()
    scene.add_static(GROUNDS[ground]())
    for k, shape in enumerate(solids()[-count:]):
        turn = rng.normal(size=4)
        place = (0.15 * (k % 3) - 0.1, 0.15 * (k // 3), TOPS[ground] + above)
        turn = turn / np.linalg.norm(turn)
        scene.add_body(shape, density=1000.0, position=place, velocity=(0.1, 0.0, -0.3), orientation=turn)
    return scene.build()


def same_contacts(one, other):
    """Assert that two tables of contacts are the same bits; returns how many contacts they have."""
    assert one.count == other.count
    for name in ("body_a", "body_b", "feature", "gap", "normal", "point", "size", "friction"):
        mine, theirs = (np.asarray(getattr(table, name))[..., : one.count] for table in (one, other))
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
    return one.count


def both(model, *, steps=2, law="coulomb", **options):
    """The same simulation on both backends after some steps, and their reports."""
    sims, reports = [], []
    for backend in ("cpu", "cuda"):
        solver = tb.SolverAPGD(tolerance=1e-9, stop="natural_map", precision="double", max_iterations=20)
        made = tb.StepOptions(dt=2e-3, law=law, **options)
        sims.append(tb.Simulation(model, options=made, solver=solver, backend=backend, threads=1))
        reports.append([sims[-1].step() for _ in range(steps)])
    return sims, reports


def assert_alike(sims, reports, tolerance=1e-10):
    """Poses and velocities to rounding; contacts the same."""
    cpu, gpu = sims
    for of in ("positions", "orientations", "velocities", "angular_velocities"):
        np.testing.assert_allclose(getattr(gpu, of)(), getattr(cpu, of)(), rtol=0, atol=tolerance)
    for one, other in zip(*reports):
        assert one.contacts == other.contacts > 0 and one.warm_started == other.warm_started
        for name in ("kinetic_energy", "potential_energy", "work_friction", "work_normal", "largest_overlap"):
            assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-7, abs=1e-9), name


@pytest.mark.parametrize("floor, law", [("plane", "coulomb"), ("box", "relaxed"), ("cylinder", "coulomb")])
def test_a_pile_moves_as_on_the_processor(floor, law):
    sims, reports = both(pile(floor), law=law)
    assert_alike(sims, reports)
    table, twin = sims[1].last.contacts, sims[0].last.contacts
    for name in ("gap", "normal", "point", "feature"):
        n = table.count
        np.testing.assert_allclose(getattr(table, name)[..., :n], getattr(twin, name)[..., :n], rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore:Simulation")  # they begin inside each other
@pytest.mark.parametrize("distance, speed", [(0.095, 0.1), (0.03, 0.1), (0.25, 220.0)])
def test_contacts_of_every_pair_of_shapes_are_those_of_the_processor(device, distance, speed):
    """Side by side, deep inside each other, and on the way to a hit in this step, half of these with a prescribed
    motion; height fields cannot move, so they are met by each of the others."""
    shapes, rng = solids(), np.random.default_rng(11)
    pairs = list(itertools.combinations_with_replacement(shapes, 2)) + [(terrain(), shape) for shape in shapes]
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, 0.0))
    for k, (first, second) in enumerate(pairs):
        middle, away, turns = 3.0 * np.array([k % 8, k // 8, 0.0]), rng.normal(size=3), rng.normal(size=(2, 4))
        turns /= np.linalg.norm(turns, axis=1)[:, None]
        away *= distance / np.linalg.norm(away)
        if isinstance(first, tb.HeightField):
            scene.add_static(first, position=middle)
            away = np.array([0.05, -0.03, distance])
        else:
            add = scene.add_kinematic if speed > 1.0 and k % 2 else functools.partial(scene.add_body, density=1e3)
            add(first, position=middle, orientation=turns[0], velocity=0.1 * rng.normal(size=3))
        towards = -speed * away / np.linalg.norm(away)
        scene.add_body(second, density=1e3, position=middle + away, orientation=turns[1], velocity=towards)
    model, tables = scene.build(), []
    for backend in ("cpu", "cuda"):
        solver = tb.SolverAPGD(max_iterations=1, precision="double")
        sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3), solver=solver, backend=backend, threads=1)
        sim.step()
        tables.append(sim.last.contacts)
    met = same_contacts(*tables)
    touching = len({(a // 2) for a in tables[0].body_a[:met].tolist()})
    assert touching > 0.8 * len(pairs) if distance < 0.05 else touching > 0.4 * len(pairs)
    if distance < 0.05:  # some took the search all round, which is a stage of its own
        assert sys.modules["tumble.backends.cuda.convex"]._deep_pool._threads > 0


@pytest.mark.filterwarnings("ignore:Simulation")
@pytest.mark.parametrize("ground", GROUNDS)
def test_mixed_shapes_fall_onto_a_ground(ground):
    sims, reports = both(mixed(ground), steps=3)
    assert_alike(sims, reports, 1e-8)  # normals of curved shapes are exact to 1e-9: their iteration may end one earlier
    assert reports[0][-1].contacts > 4


@pytest.mark.filterwarnings("ignore:Simulation")
def test_few_threads_do_one_pair_after_the_other(device, monkeypatch):
    """As on a device with little memory: with a block of threads the contacts are the same."""
    model, tables = mixed("mesh", 8, above=0.03), []
    for threads in (None, 4 if SIMULATED else 128):
        for name in ("convex", "surfaces"):
            for pool in vars(sys.modules[f"tumble.backends.cuda.{name}"]).values():
                if threads and type(pool).__name__ == "Pool":
                    monkeypatch.setattr(pool, "_most", threads)
        sim = tb.Simulation(model, options=tb.StepOptions(dt=2e-3), solver=tb.SolverAPGD(), backend="cuda")
        sim.step()
        tables.append(sim.last.contacts)
    assert same_contacts(*tables) > 4


@pytest.mark.filterwarnings("ignore:Simulation")
def test_a_mesh_goes_on_elsewhere(tmp_path):
    """A checkpoint of the device on the processor and back, with the same contacts and who they were a step ago."""
    (cpu, gpu), _ = both(mixed("mesh", 4, above=0.04), steps=2)
    gpu.save_checkpoint(tmp_path / "gpu.h5")
    cpu.load_checkpoint(tmp_path / "gpu.h5")
    one, other = cpu.step(), gpu.step()
    assert one.warm_started == other.warm_started > 0
    assert same_contacts(cpu.last.contacts, gpu.last.contacts) > 3
    cpu.save_checkpoint(tmp_path / "cpu.h5")
    gpu.load_checkpoint(tmp_path / "cpu.h5")
    assert cpu.step().warm_started == gpu.step().warm_started > 0
    assert same_contacts(cpu.last.contacts, gpu.last.contacts) > 3


@pytest.mark.parametrize(
    "material",
    [
        {"compliance": 1e-5, "damping": 10.0, "tangential_compliance": 1e-5},
        {"cohesion": 2.0},
        {"restitution": 0.5, "restitution_threshold": 0.01},
        {"static_friction": 0.6, "friction_speed": 0.05},
        {"ageing": 0.02, "ageing_time": 0.01, "ageing_length": 1e-4},
    ],
    ids=lambda m: next(iter(m)),
)
def test_laws_of_materials(material):
    assert_alike(*both(pile(**material)))


def test_a_moving_floor_and_forces_of_the_caller():
    scene = pile("box", motion=(0.3, 0.0, 0.0))
    sims, _ = both(scene, steps=1)
    for sim in sims:
        sim.apply_force(1, (0.5, 0.0, 0.0), point=(0.0, 0.1, 0.1))
    reports = [[sim.step()] for sim in sims]
    assert_alike(sims, reports)
    assert reports[1][0].work_driven == pytest.approx(reports[0][0].work_driven, rel=1e-8)
    assert reports[1][0].work_external == pytest.approx(reports[0][0].work_external, rel=1e-8)


def test_forces_and_residuals_come_to_the_host():
    (cpu, gpu), _ = both(pile(), steps=1)
    np.testing.assert_allclose(gpu.contact_forces().impulse, cpu.contact_forces().impulse, atol=1e-9)
    found = gpu.last
    again = tb.solvers.measure(found.problem, found.solution.impulse, "coulomb")
    assert again.natural_map == pytest.approx(found.solution.residuals.natural_map, rel=1e-6, abs=1e-15)
    exact = tb.SolverInteriorPoint().solve(found.problem, law="relaxed")  # the problem is one for any solver
    assert exact.converged and exact.impulse.shape == found.impulse.shape


def test_single_precision_is_verified_in_double():
    model = pile()
    solver = tb.SolverAPGD(tolerance=1e-5, stop="natural_map", precision="single", max_iterations=60)
    sim = tb.Simulation(model, options=tb.StepOptions(dt=2e-3), solver=solver, backend="cuda")
    for _ in range(2):
        report = sim.step()
        found = sim.last
        again = tb.solvers.measure(found.problem, found.solution.impulse, "coulomb")
        assert report.converged and again.natural_map <= 1e-5


def test_a_checkpoint_goes_on_elsewhere(tmp_path):
    (cpu, gpu), _ = both(pile(), steps=1)
    gpu.save_checkpoint(tmp_path / "c.h5")
    state = read_checkpoint(tmp_path / "c.h5").state
    assert state.sha256() == gpu.state.sha256()
    cpu.load_checkpoint(tmp_path / "c.h5")
    assert cpu.state.sha256() == gpu.state.sha256()
    cpu.step(), gpu.step()
    np.testing.assert_allclose(gpu.positions(), cpu.positions(), rtol=0, atol=1e-11)
    other = gpu.copy()
    assert other.step().kinetic_energy == gpu.step().kinetic_energy  # the same bits
    assert other.state.sha256() == gpu.state.sha256()


def test_the_state_is_read_and_set_and_never_written_into(device):
    _, gpu = both(pile(), steps=1)[0]
    before = gpu.state.position
    with pytest.raises(ValueError, match="read-only"):
        gpu.state.position[0, 0] = 1.0
    with pytest.raises(OptionsError, match="lives on a device"):
        gpu.state.velocity = np.zeros((5, 3))
    gpu.set_state(velocity=np.zeros((5, 3)))
    assert np.all(gpu.velocities() == 0.0) and np.array_equal(gpu.state.position, before)
    gpu.step()
    assert gpu.state.step == 2 and not np.array_equal(gpu.state.position, before)


def test_a_blow_up_leaves_the_state_as_it_was(device):
    model = pile()
    sim = tb.Simulation(model, options=tb.StepOptions(dt=2e-3, speed_limit=0.1), solver=tb.SolverAPGD(), backend="cuda")
    with pytest.raises(tb.errors.BlowUpError, match="The state before this step is kept"):
        sim.step()
    np.testing.assert_array_equal(sim.state.position, model.initial.position)
    assert sim.state.step == 0


def refused(build, **options):
    scene = tb.SceneBuilder()
    build(scene)
    with pytest.raises(OptionsError, match="'cuda' does not take") as found:
        tb.Simulation(scene.build(), backend="cuda", **({"options": tb.StepOptions(dt=1e-3)} | options))
    return str(found.value)


def test_what_it_does_not_do_is_refused_by_name(device):
    def ball(scene, shape=None, **more):
        scene.add_static(tb.HalfSpace())
        return scene.add_body(shape or tb.Sphere(0.1), density=1e3, position=(0, 0, 0.1), **more)

    def rolling(scene):
        scene.add_material(tb.Material(friction=0.3, rolling_friction=1e-3, name="default"))
        ball(scene)

    def joined(scene):
        a, b = (scene.add_body(tb.Sphere(0.1), density=1e3, position=(x, 0, 1.0)) for x in (0.0, 0.5))
        scene.add_joint("spherical", a, b, anchor=(0.25, 0.0, 1.0))

    assert "rolling" in refused(rolling)
    assert "joints" in refused(joined)
    assert "moreau" in refused(ball, options=tb.StepOptions(dt=1e-3, integrator="moreau"))
    assert "unique" in refused(ball, options=tb.StepOptions(dt=1e-3, unique_forces=True))
    words = refused(ball, solver=tb.SolverNSGS())
    assert "SolverNSGS" in words and "SolverAPGD()" in words
