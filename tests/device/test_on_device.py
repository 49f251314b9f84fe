"""Simulations on a device against the processor: the same bits where nothing is summed, else to rounding."""

import functools
import itertools
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tumble as tb
from tumble.backends.cuda import provider
from tumble.cli import main
from tumble.errors import DeviceError, MemoryLimitError, OptionsError, TumbleWarning
from tumble.experiments import run_experiment
from tumble.observe.checkpoint import read_checkpoint
from tumble.observe.trajectory import Trajectory
from tumble.sim.held import hosted
from tumble.solve.face import SolverFace

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
        {"rolling_friction": 2e-3, "spinning_friction": 1e-3},
        {"rolling_friction": 2e-3, "compliance": 1e-5, "cohesion": 1.0},
    ],
    ids=lambda m: "-".join(m),
)
def test_laws_of_materials(material):
    assert_alike(*both(pile(**material)))


@pytest.mark.filterwarnings("ignore::tumble.errors.TumbleWarning")  # an overlap, to be corrected
@pytest.mark.parametrize("material", [{}, {"restitution": 0.5, "rolling_friction": 2e-3}], ids=["hard", "rolling"])
def test_moreaus_integrator(material):
    model = pile("box", motion=(0.3, 0.0, 0.0), **material)
    assert_alike(*both(model, integrator="moreau"))


def test_bodies_that_come_cross_and_go():
    """Spheres shot through a plane into a sink, from a region where not all find room at once."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    region = tb.BoxRegion(low=(-0.1, -0.1, 0.08), high=(0.1, 0.1, 0.12))
    scene.add_emitter(
        tb.Sphere(0.05), density=1e3, count=6, rate=800.0, region=region, size_range=(0.7, 1.2), seed=3, name="pour",
        velocity=(8.0, 0.0, -1.0), angular_velocity=(0.0, 3.0, 0.0),
    )  # fmt: skip
    scene.add_measuring_plane(point=(0.09, 0.0, 0.0), normal=(1.0, 0.0, 0.0), name="gate")
    scene.add_sink(point=(0.16, 0.0, 0.0), normal=(-1.0, 0.0, 0.0), name="drain")
    model = scene.build()
    sims, reports = both(model, steps=14)
    cpu, gpu = sims
    totals = gpu.flow_totals()
    assert totals == cpu.flow_totals()
    assert totals["pour.placed"] == 6 and totals["gate.bodies_forward"] > 1 and totals["drain.removed"] > 1
    np.testing.assert_array_equal(gpu.present(), cpu.present())
    assert gpu.state.sha256() == gpu.copy().state.sha256()
    for one, other in zip(*reports):
        assert one.contacts == other.contacts
        assert other.kinetic_energy == pytest.approx(one.kinetic_energy, rel=1e-12)
        assert other.energy_defect == pytest.approx(one.energy_defect, abs=1e-9)
    np.testing.assert_allclose(gpu.positions(), cpu.positions(), rtol=0, atol=1e-12)


def test_a_moving_floor_and_forces_of_the_caller():
    scene = pile("box", motion=(0.3, 0.0, 0.0))
    sims, _ = both(scene, steps=1)
    for sim in sims:
        sim.apply_force(1, (0.5, 0.0, 0.0), point=(0.0, 0.1, 0.1))
    reports = [[sim.step()] for sim in sims]
    assert_alike(sims, reports)
    assert reports[1][0].work_driven == pytest.approx(reports[0][0].work_driven, rel=1e-8)
    assert reports[1][0].work_external == pytest.approx(reports[0][0].work_external, rel=1e-8)


def test_a_force_field_of_device_arrays():
    """The same field, given arrays of the device there: bodies whose frames are not those of their centres of mass."""

    def field(time, position, orientation, velocity, spin):
        seen.append(type(position))
        return 0.3 * position + 0.1 * orientation[:, 1:] - 0.2 * velocity, 1e-3 * spin

    found = []
    for on_device in (False, True):
        scene, seen = tb.SceneBuilder(), []
        field.device_arrays = on_device
        scene.add_force(field)
        for k, shift in enumerate(((0.03, 0.0, 0.01), (0.0, 0.02, 0.0))):
            scene.add_body(
                [tb.Sphere(0.1), tb.Placed(tb.Sphere(0.05), position=shift)], density=1e3, position=(k, 0, 0),
                velocity=(0, 1, 0), angular_velocity=(1, 2, k),
            )  # fmt: skip
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2), backend="cuda")
        for _ in range(2):
            sim.step()
        found.append((sim.positions(), sim.angular_velocities(), seen[0]))
    for one, other in zip(*(entry[:2] for entry in found)):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)
    assert found[1][2] is type(sim.backend.zeros(1))


def test_forces_and_residuals_come_to_the_host():
    (cpu, gpu), _ = both(pile(), steps=1)
    np.testing.assert_allclose(gpu.contact_forces().impulse, cpu.contact_forces().impulse, atol=1e-9)
    found = gpu.last
    again = tb.solvers.measure(found.problem, found.solution.impulse, "coulomb")
    assert again.natural_map == pytest.approx(found.solution.residuals.natural_map, rel=1e-6, abs=1e-15)
    exact = tb.SolverInteriorPoint().solve(found.problem, law="relaxed")  # the problem is one for any solver
    assert exact.converged and exact.impulse.shape == found.impulse.shape


def test_more_bodies_than_are_compared_with_all():
    """Twenty balls of two sizes in a heap: pairs are found by the grid."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    rng = np.random.default_rng(3)
    for k in range(20):
        place = 0.09 * np.array([k % 3, k // 3 % 3, k // 9 + 0.6]) + rng.uniform(-0.004, 0.004, 3)
        scene.add_body(tb.Sphere(0.047 if k % 4 else 0.02), density=1e3, position=place)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some overlap
        for backend in ("cpu", "cuda"):
            solver = tb.SolverAPGD(tolerance=1e-12, stop="natural_map", precision="double", max_iterations=2)
            sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), solver=solver, backend=backend)
            sim.step()
            found.append(sim.last.contacts)
    n = found[0].count
    assert found[1].count == n > 12
    np.testing.assert_array_equal(found[1].body_b[:n], found[0].body_b[:n])
    np.testing.assert_allclose(found[1].gap[:n], found[0].gap[:n], rtol=0, atol=1e-15)


def problems(law="coulomb", **material):
    """The problem of the second step of a pile on both backends, and impulses to begin with."""
    sims, _ = both(pile(**material), law=law)
    there = sims[1]._last.problem
    return hosted(sims[1]._last).problem, there


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
def test_spectral_iterations_are_those_of_the_processor(law):
    here, there = problems(law, compliance=1e-6)
    solver = tb.SolverBarzilaiBorwein(tolerance=1e-12, stop="local", max_iterations=14, check_every=7, record=True)
    wanted, found = solver.solve(here, law=law), solver.solve(there, law=law)
    assert found.iterations == wanted.iterations > 7
    np.testing.assert_allclose(found.history[[0, 7, 14]], wanted.history[[0, 7, 14]], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(there.backend.fetch(found.impulse), wanted.impulse, atol=1e-12)


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
def test_conjugate_gradients_in_the_face_are_those_of_the_processor(law):
    here, there = problems(law)
    start = tb.SolverAPGD(tolerance=1e-4, stop="natural_map", precision="double").solve(here, law=law).impulse
    solver = SolverFace(tolerance=1e-13, stop="local", max_iterations=8, check_every=4)
    wanted, found = solver.solve(here, law=law, guess=start), solver.solve(there, law=law, guess=start.copy())
    assert found.iterations == wanted.iterations
    np.testing.assert_allclose(there.backend.fetch(found.impulse), wanted.impulse, atol=1e-12)
    local = "local_error"
    assert getattr(found.residuals, local) == pytest.approx(getattr(wanted.residuals, local), rel=1e-6, abs=1e-12)


def test_the_default_solver_tries_what_it_tries_on_the_processor(monkeypatch):
    """With few iterations nothing suffices: each attempt is made."""
    here, there = problems()
    monkeypatch.setattr("tumble.solve.base.LOCAL_TOLERANCE", 1e-13)
    monkeypatch.setattr("tumble.solve.auto.AIMS", ((1.0, 6, 0),))
    monkeypatch.setattr("tumble.solve.auto.PROBE", (6, 6, 6))
    solver = tb.SolverAuto(steps=True, max_iterations=26)
    wanted, found = (solver.solve(problem) for problem in (here, there))
    names = [entry[0] for entry in found.tried]
    assert names == [entry[0] for entry in wanted.tried] == ["apgd", "apgd", "barzilai_borwein"]
    assert found.status == wanted.status
    np.testing.assert_allclose(there.backend.fetch(found.impulse), wanted.impulse, atol=1e-9)


@pytest.mark.parametrize("rolling", [0.0, 2e-3])
def test_single_precision_is_verified_in_double(rolling):
    model = pile(rolling_friction=rolling)
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

    def joined(scene, **material):
        scene.add_material(tb.Material(friction=0.3, name="default", **material))
        a, b = (scene.add_body(tb.Sphere(0.1), density=1e3, position=(x, 0, 1.0)) for x in (0.0, 0.5))
        scene.add_joint("spherical", a, b, anchor=(0.25, 0.0, 1.0))

    assert "rolling friction together with joints" in refused(lambda s: joined(s, rolling_friction=1e-3))
    moreau = tb.StepOptions(dt=1e-3, integrator="moreau")
    assert "'moreau' together with joints" in refused(joined, options=moreau)
    assert "unique" in refused(ball, options=tb.StepOptions(dt=1e-3, unique_forces=True))
    words = refused(ball, solver=tb.SolverNSGS())
    assert "SolverNSGS" in words and "SolverAPGD()" in words


# ---------------------------------------------------------------------- joints


def chain(links=3, **builder):
    """A pendulum of balls, one end on the ground."""
    scene = tb.SceneBuilder(**builder)
    above = None
    for k in range(links):
        at = (0.3 * k + 0.15, 0.0, 0.02 * k)
        body = scene.add_body(tb.Sphere(0.05), mass=1.0, position=at, name=f"link{k}", velocity=(0, 0.1 * k, 0))
        kind = "spherical" if k % 2 else "revolute"
        axis = {} if k % 2 else {"axis": (0, 1, 0)}
        scene.add_joint(kind, above, body, anchor=(0.3 * k, 0.0, 0.02 * k), name=f"joint{k}", **axis)
        above = body
    return scene.build()


def walker(*, servo=False):
    """A trunk on four legs with balls for feet, on a floor; hinges without motors, or held by servos with a maximum."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), position=(0, 0, 0))
    scene.add_body(tb.Sphere(0.1), mass=4.0, position=(0, 0, 0.4), name="trunk")
    for k, (x, y) in enumerate(((0.2, 0.15), (0.2, -0.15), (-0.2, 0.15), (-0.2, -0.15))):
        scene.add_body(tb.Sphere(0.05), mass=0.5, position=(x, y, 0.0501), name=f"foot{k}", velocity=(0.1, 0, -0.2))
        limits = {"limits": (-0.4, 0.6)} if servo else {}
        scene.add_joint("revolute", "trunk", f"foot{k}", anchor=(x, y, 0.3), axis=(0, 1, 0), name=f"hip{k}", **limits)
        if servo:
            scene.add_motor(f"hip{k}", "position", target=0.1, stiffness=60.0, damping=2.0, maximum=4.0)
    return scene.build()


def stop():
    """An arm that is thrown against its stop, and one that closes a loop of hinges with two others."""
    scene = tb.SceneBuilder()
    arm = scene.add_body(
        tb.Sphere(0.1), mass=2.0, position=(0.5, 0, 1), velocity=(0, 0, -1.0), angular_velocity=(0, 2, 0), name="arm"
    )
    scene.add_joint("revolute", None, arm, anchor=(0, 0, 1), axis=(0, 1, 0), limits=(-1e-3, 1e-3), friction=0.1)
    corners = [(2.0, 0, 1.0), (2.4, 0, 1.0), (2.2, 0, 1.3)]
    three = [scene.add_body(tb.Sphere(0.05), mass=1.0, position=at) for at in corners]
    scene.add_static(tb.HalfSpace(), position=(0, 0, 0.951))
    for k in range(3):
        a, b = corners[k], corners[(k + 1) % 3]
        middle = tuple(0.5 * (p + q) for p, q in zip(a, b))
        scene.add_joint("revolute", three[k], three[(k + 1) % 3], anchor=middle, axis=(0, 1, 0))
    return scene.build()


def assert_joints_alike(sims, reports):
    """Motion, works, and forces of joints, to what the solver leaves."""
    cpu, gpu = sims
    for of in ("positions", "orientations", "velocities", "angular_velocities"):
        np.testing.assert_allclose(getattr(gpu, of)(), getattr(cpu, of)(), rtol=0, atol=2e-8)
    for one, other in zip(*reports):
        assert one.contacts == other.contacts and one.redundant_rows == other.redundant_rows
        assert other.joint_drift <= 1e-12 and one.parts == other.parts
        for name in ("kinetic_energy", "potential_energy", "work_joints", "motor_power", "energy_defect"):
            assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-6, abs=1e-7), name
    found, wanted = (sim.joint_reactions() for sim in (gpu, cpu))
    for name in ("force", "torque", "value", "speed", "effort"):
        got, twin = getattr(found, name), getattr(wanted, name)
        np.testing.assert_allclose(got, twin, rtol=1e-5, atol=1e-4 * (1.0 + np.nanmax(np.abs(twin))), err_msg=name)


@pytest.mark.parametrize(
    "make", [chain, walker, lambda: walker(servo=True), stop], ids=["chain", "walker", "servo", "stop"]
)
def test_mechanisms_move_as_on_the_processor(make):
    model = make()
    sims, reports = [], []
    for backend in ("cpu", "cuda"):
        solver = tb.SolverAPGD(tolerance=1e-10, stop="natural_map", max_iterations=200)
        sims.append(tb.Simulation(model, options=tb.StepOptions(dt=2e-3), solver=solver, backend=backend, threads=1))
        reports.append([sims[-1].step() for _ in range(2)])
    assert_joints_alike(sims, reports)


def test_a_passive_mechanism_keeps_its_energy():
    """Without gravity its kinetic energy stays as it was assembled, to rounding; joints do no work."""
    sim = tb.Simulation(chain(gravity=(0.0, 0.0, 0.0)), options=tb.StepOptions(dt=5e-3), backend="cuda")
    energy = []
    for _ in range(4):
        report = sim.step()
        energy.append(report.kinetic_energy)
        assert abs(report.work_joints) < 1e-13 and abs(report.energy_defect) < 1e-13
    assert np.ptp(energy) < 1e-13 < energy[0]


def test_a_checkpoint_of_a_robot_goes_on_elsewhere(tmp_path):
    model = walker(servo=True)
    solver = tb.SolverAPGD(tolerance=1e-11, stop="natural_map", max_iterations=400)
    options = tb.StepOptions(dt=2e-3)
    gpu, cpu = (tb.Simulation(model, options=options, solver=solver, backend=b, threads=1) for b in ("cuda", "cpu"))
    gpu.set_target(model.joints.motors[0].name, 0.3)
    gpu.step(), gpu.step()
    gpu.save_checkpoint(tmp_path / "c.h5")
    cpu.load_checkpoint(tmp_path / "c.h5")
    for name in ("coordinate", "row_impulse", "energy_owed", "target"):
        np.testing.assert_array_equal(getattr(cpu.state, name), getattr(gpu.state, name))
    assert cpu.state.sha256() == gpu.state.sha256() and len(cpu.state.coordinate)
    again = gpu.copy()
    cpu.step(), gpu.step(), again.step()
    assert again.state.sha256() == gpu.state.sha256()
    np.testing.assert_allclose(gpu.positions(), cpu.positions(), rtol=0, atol=1e-9)
    cpu.save_checkpoint(tmp_path / "d.h5")
    gpu.load_checkpoint(tmp_path / "d.h5")
    assert gpu.state.sha256() == cpu.state.sha256()
    gpu.step()


def test_the_problem_of_a_robot_comes_to_the_host(tmp_path):
    solver = tb.SolverAPGD(tolerance=1e-8, stop="natural_map", max_iterations=100)
    model = walker(servo=True)
    sim = tb.Simulation(model, options=tb.StepOptions(dt=2e-3), solver=solver, backend="cuda")
    sim.step()
    found = sim.last
    assert found.problem.count > found.contacts.count > 0
    again = tb.solvers.measure(found.problem, found.solution.impulse, "coulomb")
    assert again.natural_map == pytest.approx(found.solution.residuals.natural_map, rel=1e-6, abs=1e-15)
    assert tb.SolverInteriorPoint().solve(found.problem, law="relaxed").converged
    sim.dump_problem(tmp_path / "p.hdf5")
    sim.run(until=0.004, save=tb.Save(path=tmp_path / "r.h5", every=1), progress=False)
    force = tb.Trajectory(tmp_path / "r.h5").joints("joint_force")
    np.testing.assert_allclose(force[-1], sim.joint_reactions().force, rtol=1e-12)


def test_too_many_bodies_are_refused_with_the_numbers(device, monkeypatch):
    model = pile()
    monkeypatch.setattr(device, "free_memory", lambda: (20_000, 10**9))
    with pytest.raises(MemoryLimitError, match=r"needs about 0.031 MB .* 5 bodies \(got 0.02 MB free of 1 GB"):
        tb.Simulation(model, options=tb.StepOptions(dt=1e-3), backend="cuda")
    monkeypatch.setattr(device, "free_memory", lambda: (40_000, 10**9))
    with pytest.warns(TumbleWarning, match=r"may need 0.0475 MB"):
        tb.Simulation(model, options=tb.StepOptions(dt=1e-3), backend="cuda")


class Breaks:
    """A solver that solves some steps and then fails as a device does."""

    name = "breaks"

    def __init__(self, steps, cause):
        self._steps, self._cause, self._own = steps, cause, tb.SolverAPGD(max_iterations=3)

    def solve(self, *given, **more):
        self._steps -= 1
        if self._steps < 0:
            raise self._cause
        return self._own.solve(*given, **more)


@pytest.fixture
def breaking(monkeypatch):
    """Any solver runs on the device."""
    monkeypatch.setattr("tumble.sim.arguments._runs_on_device", lambda *_: True)


def test_a_device_without_memory_leaves_the_state_as_it_was(breaking):
    if not provider.SIMULATED:
        pytest.skip("its error is made up")
    solver = Breaks(1, provider.Lost("out of memory: 12345 bytes"))
    sim = tb.Simulation(pile(), options=tb.StepOptions(dt=2e-3), solver=solver, backend="cuda")
    sim.step()
    before = sim.state.sha256()
    with pytest.raises(MemoryLimitError, match=r"the device must have memory for the step .*12345"):
        sim.step()
    assert sim.state.sha256() == before and sim.state.step == 1


def test_a_lost_device_keeps_what_was_written(tmp_path, breaking):
    """Its state is out of reach: frames and the last checkpoint are kept, and another backend goes on."""
    lost = provider.Lost("cudaErrorECCUncorrectable") if provider.SIMULATED else provider.FAILURES[0](214)
    solver = Breaks(3, lost)
    sim = tb.Simulation(pile(), options=tb.StepOptions(dt=2e-3), solver=solver, backend="cuda")
    save = tb.Save(path=tmp_path / "run.h5", every=1, frames_per_checkpoint=1)
    with pytest.raises(DeviceError, match=r"must go on working .*--resume"):
        sim.run(until=1.0, save=save, progress=False)
    with Trajectory(tmp_path / "run.h5") as run:
        assert run.frames >= 3 and not run.finished
        assert run.attributes["backend"] == "cuda" and run.attributes["precision"] == "double"
        assert run.history[0]["device"] == run.attributes["device"]


SCENE = """
[run]
until = 0.004
[step]
dt = 2e-3
[solver]
name = "apgd"
precision = "double"
max_iterations = 6
[[material]]
name = "stuff"
friction = 0.4
[[body]]
shape = {type = "half_space"}
kind = "static"
[[body]]
shape = {type = "sphere", radius = 0.1}
density = 1000.0
position = [0.0, 0.0, 0.1001]
velocity = [0.1, 0.0, -1.0]
"""


def test_a_run_goes_on_elsewhere_by_command(tmp_path, monkeypatch, capsys):
    """Two steps on the device and two on the processor end where four on the processor do."""
    monkeypatch.chdir(tmp_path)
    Path("scene.toml").write_text(SCENE)
    assert main(["run", "scene.toml", "--backend", "cuda", "--quiet"]) == 0
    assert main(["run", "scene.toml", "--resume", "--until", "0.008", "--quiet"]) == 0
    assert main(["run", "scene.toml", "--until", "0.008", "--out", "all.h5", "--quiet"]) == 0
    with Trajectory("scene.h5") as run, Trajectory("all.h5") as whole:
        assert [event["backend"] for event in run.history] == ["cuda", "cpu"]
        np.testing.assert_allclose(run.read("position", -1), whole.read("position", -1), rtol=0, atol=1e-12)
    capsys.readouterr()
    assert main(["info", "scene.h5", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["backend"], facts["precision"]) == ("cuda", "double") and facts["device"]
    Path("other.toml").write_text(SCENE.replace("apgd", "nsgs").replace('precision = "double"', ""))
    assert main(["run", "other.toml", "--backend", "cuda"]) == 2
    assert "does not take SolverNSGS" in capsys.readouterr().err


def test_an_experiment_on_the_device(tmp_path):
    """Numbers of the processor to 1e-9; what the experiment's own solver cannot do is said by name."""
    found = []
    for backend in ("cpu", "cuda"):
        settings = {"dt": 0.005, "speed": 0.1, "friction": 0.5, "duration": 0.02}
        found.append(run_experiment("ball-roll", out=tmp_path / backend, settings=settings, backend=backend))
    assert found[0].keys() == found[1].keys()
    for name, value in found[0].items():
        assert found[1][name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
