"""Simulations on a device against the processor: the same bits where nothing is summed, else to rounding."""

import numpy as np
import pytest

import tumble as tb
from tumble.errors import OptionsError
from tumble.observe.checkpoint import read_checkpoint

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

    assert "pairs of shapes" in refused(lambda s: ball(s, tb.Box((0.1, 0.1, 0.1))))
    assert "rolling" in refused(rolling)
    assert "moreau" in refused(ball, options=tb.StepOptions(dt=1e-3, integrator="moreau"))
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
