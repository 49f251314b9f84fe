"""Compliant contacts against closed forms: depth at rest, damped oscillation, tangential springs without creep."""

import numpy as np
import pytest

import tumble as tb
from tumble.errors import OptionsError, SceneError
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


def test_beyond_the_cone_it_slides_and_keeps_what_friction_can_hold():
    sim = block(1e-3, 0.7, tangential_compliance=1e-6, tangential_damping=1e3)  # tan 0.7 = 0.84 > 0.6
    for _ in range(500):
        sim.step()
    steps = 200
    before = sim.state.velocity[1, 0]
    for _ in range(steps):
        sim.step()
    acceleration = (sim.state.velocity[1, 0] - before) / (steps * 1e-3)
    assert acceleration == pytest.approx(G * (np.sin(0.7) - 0.6 * np.cos(0.7)), rel=1e-6)
    held = np.linalg.norm(sim.state.memory.stretch, axis=0).sum()
    # with the dashpot the spring holds what the friction leaves: mu N c - c d v, and 0 once that is negative
    assert held <= 2e-6 * 0.6 * WEIGHT * np.cos(0.7) + 2e-6 * 4 * 1e3 * sim.state.velocity[1, 0]


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
