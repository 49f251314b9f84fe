"""Compliant contacts against closed forms: depth at rest, damped oscillation, tangential springs without creep."""

import numpy as np
import pytest

import tumble as tb
from tumble.errors import OptionsError, SceneError
from tumble.experiments.rest import Settings, _bed
from tumble.solve.gauss_seidel import SolverGaussSeidel
from tumble.solve.jacobi import SolverJacobi
from tumble.solve.ncp_interior_point import SolverNCPInteriorPoint
from tumble.solve.nsgs import SolverNSGS

G, RADIUS, MASS = 9.81, 0.1, 4.0
WEIGHT = MASS * G


def ball(h: float, *, height: float = RADIUS, law: str = "coulomb", velocity=(0.0, 0.0, 0.0), **laws) -> tb.Simulation:
    """A ball over a rigid floor; the ball's material has the compliance."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), material=tb.Material(friction=0.5))
    scene.add_body(
        tb.Sphere(RADIUS),
        mass=MASS,
        position=(0.0, 0.0, height),
        velocity=velocity,
        material=tb.Material(friction=0.5, **laws),
    )
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=h, law=law), solver=tb.SolverAPGD(tolerance=1e-12))


@pytest.mark.parametrize("law", ["coulomb", "relaxed"])
@pytest.mark.parametrize("compliance", [1e-4, 1e-6, 1e-8])
def test_a_ball_rests_as_deep_as_its_weight_says(compliance, law):
    damping = 2.0 * np.sqrt(MASS / compliance)  # critical
    sim = ball(2e-3, law=law, compliance=compliance, damping=damping)
    for _ in range(1000):
        report = sim.step()
    depth = RADIUS - sim.positions()[1, 2]
    assert depth == pytest.approx(compliance * WEIGHT, rel=1e-6)
    assert report.elastic_energy == pytest.approx(0.5 * compliance * WEIGHT**2, rel=1e-5)
    assert sim.contact_forces().on(1)[2] == pytest.approx(WEIGHT, rel=1e-6)


def test_two_materials_are_springs_in_series():
    soft, softer = tb.Material(compliance=1e-5, damping=100.0), tb.Material(compliance=3e-5, damping=300.0)
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), material=soft)
    scene.add_body(tb.Sphere(RADIUS), mass=MASS, position=(0.0, 0.0, RADIUS), material=softer)
    model = scene.build()
    assert model.pair_laws.compliance[0, 1] == pytest.approx(4e-5)
    assert model.pair_laws.damping[0, 1] == pytest.approx(75.0)


def oscillation(h: float, damping: float, until: float) -> tuple[float, float]:
    """Height above rest after some time, and the closed form. It never lifts off: the start is half-way to that."""
    compliance = 1e-4
    rest = compliance * WEIGHT
    sim = ball(h, height=RADIUS - 0.5 * rest, compliance=compliance, damping=damping)
    for _ in range(round(until / h)):
        sim.step()
    decay, stiffness = damping / (2.0 * MASS), 1.0 / (compliance * MASS)
    omega = np.sqrt(stiffness - decay**2)
    exact = 0.5 * rest * np.exp(-decay * until) * (np.cos(omega * until) + decay / omega * np.sin(omega * until))
    return sim.positions()[1, 2] - (RADIUS - rest), exact


def test_a_damped_oscillation_has_the_period_and_the_decay_of_the_closed_form():
    # damping ratio 0.1: 1.5 periods of 0.126 s, where both the phase and the amplitude count
    for until in (0.126, 0.189):
        errors = []
        for h in (5e-4, 2.5e-4, 1.25e-4):
            found, exact = oscillation(h, 40.0, until)
            errors.append(found - exact)
        assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.1)  # first order
        assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.2)
        assert abs(2.0 * errors[2] - errors[1]) < 0.02 * abs(0.5e-4 * WEIGHT)  # extrapolated: the closed form


def test_energy_of_an_undamped_spring_is_kept_to_first_order():
    losses = []
    for h in (4e-4, 2e-4, 1e-4):
        sim = ball(h, height=RADIUS - 0.5e-4 * WEIGHT, compliance=1e-4)
        first = sim.step().total_energy
        losses.append(first - [sim.step() for _ in range(round(0.1 / h))][-1].total_energy)
    assert losses[0] > 0.0 and losses[1] / losses[2] == pytest.approx(2.0, rel=0.1)


def test_a_dashpot_does_not_pull_and_does_not_act_before_the_touch():
    sim = ball(1e-3, height=RADIUS + 0.002, velocity=(0.0, 0.0, -1.0), compliance=1e-4, damping=1000.0)
    sim.step()  # 1 mm still to go
    assert sim.state.velocity[1, 2] == pytest.approx(-1.0 - G * 1e-3, abs=1e-12)
    for _ in range(200):
        sim.step()
        assert sim.last.impulse[0, : sim.last.contacts.count].min(initial=0.0) >= 0.0


def block(h: float, tilt: float, **laws) -> tb.Simulation:
    """A cube at rest on a floor; gravity is tilted."""
    scene = tb.SceneBuilder(gravity=(G * np.sin(tilt), 0.0, -G * np.cos(tilt)))
    material = tb.Material(friction=0.6, **laws)
    scene.add_static(tb.HalfSpace(), material=material)
    scene.add_body(tb.Box((0.1, 0.1, 0.1)), mass=MASS, position=(0.0, 0.0, 0.05), material=material)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=h), solver=tb.SolverAPGD(tolerance=1e-12))


def test_tangential_springs_hold_without_creep():
    tilt, compliance = 0.25, 1e-6  # small enough for the upper corners, which carry less, to stick too
    critical = 2.0 * np.sqrt(MASS / (4.0 * compliance)) / 2.0
    sim = block(1e-3, tilt, tangential_compliance=0.5 * compliance, tangential_damping=2.0 * critical)
    for _ in range(1500):
        sim.step()
    settled = sim.positions()[1, 0]
    # four corners share the load; the whole tilts a little about the lower edge, which changes nothing along the slope
    assert settled == pytest.approx(compliance * WEIGHT * np.sin(tilt) / 4.0, rel=1e-3)
    assert np.abs(sim.state.velocity[1]).max() < 1e-9
    for _ in range(1000):
        sim.step()
    assert abs(sim.positions()[1, 0] - settled) < 1e-9  # less than 1e-9 m/s over a second


@pytest.mark.parametrize("damping", [0.0, 50.0, 500.0, 2000.0])
@pytest.mark.parametrize("normal", [0.0, 1e-6])
def test_beyond_the_cone_it_slides_and_keeps_what_friction_can_hold(damping, normal):
    """A block that slides at 1 m/s: friction is mu N against the slip, whatever the spring and the dashpot."""
    h = 2e-4
    sim = block(h, 0.0, tangential_compliance=1e-6, tangential_damping=damping, compliance=normal)
    sim.set_state(velocity=[[0, 0, 0], [1.0, 0, 0]])
    pressed, largest = 0.0, 0.0
    for k in range(300):
        sim.step()
        n = sim.last.contacts.count
        pressed += sim.last.impulse[0, :n].sum()
        largest = max(largest, sim.last.impulse[0, :n].max() / h)
        # on a compliant normal the block rocks, and a dashpot holds a spring that has lost its load for a while
        assert np.linalg.norm(sim.state.memory.laws["stretch"], axis=0).max() <= 1.0001 * 2e-6 * 0.6 * largest, k
    # filling the springs takes 1e-5 m, or 1e-5 s of no friction
    assert sim.state.velocity[1, 0] == pytest.approx(1.0 - 0.6 * pressed / MASS, abs=1e-3)


def test_springs_hold_where_cohesion_pulls():
    """A block under a ceiling, pulled aside: friction is mu (g_n + h c), and its springs do not creep either."""
    scene = tb.SceneBuilder()
    material = tb.Material(friction=0.6, cohesion=50.0, cohesion_range=1e-4, tangential_compliance=5e-7)
    scene.add_static(tb.HalfSpace(normal=(0.0, 0.0, -1.0)), material=material)
    scene.add_body(
        tb.Box((0.1, 0.1, 0.1)), mass=MASS, position=(0.0, 0.0, -0.05), material=material, force=(10.0, 0.0, 0.0)
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(tolerance=1e-12))
    for _ in range(600):
        sim.step()
    settled = sim.positions()[1, 0]
    for _ in range(400):
        sim.step()
    assert settled == pytest.approx(1e-6 * 10.0 / 4.0, rel=0.05)
    assert abs(sim.positions()[1, 0] - settled) < 1e-9 * 0.4


def test_the_stretch_turns_with_the_bodies():
    """A block on a turntable: the springs carry the centripetal force, whose direction turns. No drift against the
    table beyond that of a rigid contact."""
    omega, radius = 2.0, 1.0
    drift = {}
    for compliance in (0.0, 1e-5):
        scene = tb.SceneBuilder()
        damping = 900.0 if compliance else 0.0  # critical
        material = tb.Material(friction=0.9, tangential_compliance=compliance, tangential_damping=damping)
        scene.add_kinematic(
            tb.Cylinder(2.0, 0.2), position=(0.0, 0.0, -0.1), angular_velocity=(0.0, 0.0, omega), material=material
        )
        scene.add_body(
            tb.Box((0.1, 0.1, 0.1)), mass=MASS, position=(radius, 0.0, 0.05), velocity=(0.0, omega * radius, 0.0),
            angular_velocity=(0.0, 0.0, omega), material=material,
        )  # fmt: skip
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(tolerance=1e-11))
        angles = []
        for _ in range(500):
            sim.step()
            x, y, _ = sim.positions()[1]
            angles.append(np.arctan2(y, x) - omega * sim.state.time)
        drift[compliance] = (angles[-1] - angles[99]) / 0.4
    assert abs(drift[0.0]) < 1e-5  # h^2: Euler's circle
    assert abs(drift[1e-5] - drift[0.0]) < 1e-8  # omega |stretch| = 1.6e-4 if it did not turn


def test_cohesion_holds_on_compliant_contacts_up_to_its_force():
    """The spring stretches by c_n F, and only beyond c_n C does the range begin; the work is C range + c_n C^2 / 2."""
    cohesion, compliance = 10.0, 1e-6

    def pulled(force, h=1e-3, speed=0.0, reach=None, compliance=compliance, away=0.0):
        scene = tb.SceneBuilder(gravity=(0.0, 0.0, 0.0))
        material = tb.Material(cohesion=cohesion, cohesion_range=reach)
        scene.add_static(tb.Sphere(RADIUS), material=material)
        soft = tb.Material(cohesion=cohesion, cohesion_range=reach, compliance=compliance)
        scene.add_body(
            tb.Sphere(RADIUS), mass=1.0, position=(0.0, 0.0, 0.2 + away), velocity=(0.0, 0.0, speed), material=soft,
            force=(0.0, 0.0, force),
        )  # fmt: skip
        return tb.Simulation(scene.build(), options=tb.StepOptions(dt=h))

    for force, held in ((1.0, True), (9.9, True), (10.1, False)):
        sim = pulled(force, away=compliance * min(force, cohesion))  # at rest: a sudden pull would overshoot
        for _ in range(300):
            sim.step()
        away = sim.positions()[1, 2] - 0.2
        assert (away < 2.0 * compliance * cohesion) == held
        if held:
            assert away == pytest.approx(compliance * force, rel=1e-3)
            assert sim.last.report.elastic_energy == pytest.approx(0.5 * compliance * force**2, rel=1e-3)
    work = cohesion * 1e-3 + 0.5 * 1e-4 * cohesion**2
    for h in (1e-2, 2e-4, 1e-4):
        sim = pulled(0.0, h=h, speed=1.0, reach=1e-3, compliance=1e-4)
        for _ in range(round(0.1 / h)):
            sim.step()
        lost = 0.5 * (1.0 - sim.state.velocity[1, 2] ** 2)
        # crossed in one step: exact; else the end-of-step spring is ahead by h v / 2 of 1 mm, a third of the work
        assert lost == pytest.approx(work, rel=1e-3 if h > 5e-3 else 1.05 * 1e3 * h / 3.0)


def test_stretch_survives_a_restart(tmp_path):
    def fresh():
        return block(1e-3, 0.4, tangential_compliance=1e-5, compliance=1e-6)

    sim, again = fresh(), fresh()
    for _ in range(30):
        sim.step()
    sim.save_checkpoint(tmp_path / "a.h5")
    again.load_checkpoint(tmp_path / "a.h5")
    for _ in range(30):
        sim.step()
        again.step()
    assert sim.state.sha256() == again.state.sha256()


@pytest.mark.parametrize("solver", [SolverGaussSeidel, SolverJacobi, SolverNSGS, SolverNCPInteriorPoint])
def test_every_kind_of_solver_knows_the_compliance(solver):
    sim = block(1e-3, 0.3, tangential_compliance=1e-5, tangential_damping=10.0, compliance=1e-5, damping=100.0)
    for _ in range(50):
        sim.step()
    problem = sim.last.problem
    reference = tb.SolverAPGD(tolerance=1e-13).solve(problem).impulse[:, : problem.count].copy()
    other = solver(tolerance=1e-11).solve(problem)
    assert other.converged
    # E makes N positive definite: impulses are unique
    assert other.impulse[:, : problem.count] == pytest.approx(reference, abs=1e-6 * np.abs(reference).max())


def test_bad_input():
    for bad in (
        {"compliance": -1.0},
        {"damping": np.inf, "compliance": 1.0},
        {"damping": 1.0},
        {"tangential_damping": 1.0},
    ):
        with pytest.raises(SceneError):
            tb.Material(**bad)
    with pytest.raises(SceneError, match="restitution"):
        tb.Material(restitution=0.5, compliance=1e-5)
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), material=tb.Material(compliance=1e-5))
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 1))
    with pytest.raises(OptionsError, match="moreau"):
        tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3, integrator="moreau"))


def test_a_settling_pile_as_stiff_as_glass_is_solved_in_every_step():
    """Rigid, such piles miss steps while they settle (docs/rest.md). As stiff as glass spheres the pile is no other."""
    missed, height = [], []
    for compliance in (0.0, 1e-7):
        model = _bed(Settings(compliance=compliance), 200)
        sim = tb.Simulation(model, options=tb.StepOptions(dt=2e-3))
        missed.append(sum(not sim.step().converged for _ in range(400)))
        height.append(sim.positions()[1:, 2].mean())
    assert missed[1] <= 4  # 1 %
    assert height[1] == pytest.approx(height[0], abs=0.05 * 0.02)
