"""Rotation: free bodies, spinning bodies in joints and on planes, clouds; energy and angular momentum."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import tumble as tb
from tumble.scene import rotation

INERTIAS = ((1, 1, 1), (1, 1, 2), (2, 1, 1), (1, 50, 50.5), (100, 100, 1), (1, 2, 3), (3, 2, 1.5), (1, 1.0001, 1.9))
INTEGRATORS = ("euler", "moreau")


def scene_of_tops(angles, seed=0):
    """Free bodies with every inertia of the list, turning by each of the angles [rad] in a step of 1 ms."""
    rng = np.random.default_rng(seed)
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    for angle in angles:
        for inertia in INERTIAS:
            w, q = rng.normal(size=3), rng.normal(size=4)
            scene.add_body(
                None,
                mass=1.0,
                inertia=1e-3 * np.array(inertia),
                orientation=q / np.linalg.norm(q),
                angular_velocity=angle / 1e-3 * w / np.linalg.norm(w),
            )
    return scene.build()


def angular_momentum(model, sim):
    """(n, 3) of each body about its own centre, world axes."""
    return rotation.rotate(sim.state.orientation, model.body_inertia * sim.state.spin)


def energies(model, sim):
    """(n,) of rotation [J]."""
    return 0.5 * np.sum(model.body_inertia * sim.state.spin**2, axis=1)


def check_free_tops(angle, steps, integrator):
    model = scene_of_tops([angle])
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3, integrator=integrator))
    momentum, energy = angular_momentum(model, sim), energies(model, sim)
    for _ in range(steps):
        sim.step()
    change = np.linalg.norm(angular_momentum(model, sim) - momentum, axis=1) / np.linalg.norm(momentum, axis=1)
    assert change.max() < 1e-11
    assert np.abs(energies(model, sim) / energy - 1.0).max() < 1e-10


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("angle", [0.03, 0.3, 1.0, 5.0])
def test_free_bodies_keep_energy_and_the_vector_of_angular_momentum(angle, integrator):
    check_free_tops(angle, 1000, integrator)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("angle", [0.1, 1.0])
def test_free_bodies_keep_energy_and_momentum_for_a_thousand_turns(angle, integrator):
    check_free_tops(angle, int(1000 * 2 * np.pi / angle), integrator)


def exact_top(inertia, q, w, until):
    """Attitude and spin (body axes) of a free top by an eighth-order integration to 1e-12."""

    def rate(_, y):
        q, w = y[:4], y[4:]
        turn = 0.5 * np.concatenate([[-q[1:] @ w], q[0] * w + np.cross(q[1:], w)])
        return np.concatenate([turn, -np.cross(w, inertia * w) / inertia])

    return solve_ivp(rate, (0.0, until), np.concatenate([q, w]), method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


def attitude_errors(h, until=1.0):
    """Errors of the attitudes of tops with three different moments at about 1 rad/s."""
    scene, exact = tb.SceneBuilder(gravity=(0, 0, 0)), []
    for k, inertia in enumerate(((1.0, 2.0, 3.0), (3.0, 2.0, 1.5), (1.0, 1.3, 1.9))):
        w = np.array([(0.3, 1.0, 0.2), (1.0, 0.1, 0.6), (0.5, 0.6, 0.7)][k])
        scene.add_body(None, mass=1.0, inertia=inertia, angular_velocity=w)
        exact.append(w)
    model = scene.build()
    sim = tb.Simulation(model, options=tb.StepOptions(dt=h))
    start = sim.get_state()
    for _ in range(round(until / h)):
        sim.step()
    out = []
    for k in range(len(exact)):
        found = exact_top(model.body_inertia[k], start.orientation[k], start.spin[k], until)
        q = sim.state.orientation[k]
        out.append(min(np.linalg.norm(q - found[:4]), np.linalg.norm(q + found[:4])))
    return np.array(out)


def test_attitudes_are_of_fourth_order():
    coarse, fine = attitude_errors(0.04), attitude_errors(0.02)
    assert np.all(coarse < 1e-6)
    assert np.all((coarse / fine > 14.0) & (coarse / fine < 18.0))


def test_spins_are_the_elliptic_functions():
    """Above the separatrix: (A cn, B sn, C dn) in principal axes, I1 < I2 < I3."""
    from scipy.special import ellipj

    i1, i2, i3 = 1.0, 2.0, 3.0
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(None, mass=1.0, inertia=(i1, i2, i3), angular_velocity=(0.4, 0.0, 1.0))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=0.01))
    w0 = sim.state.spin[0].copy()
    two_t, square = i1 * w0[0] ** 2 + i3 * w0[2] ** 2, (i1 * w0[0]) ** 2 + (i3 * w0[2]) ** 2
    rate = np.sqrt((i3 - i2) * (square - two_t * i1) / (i1 * i2 * i3))
    m = (i2 - i1) * (two_t * i3 - square) / ((i3 - i2) * (square - two_t * i1))
    middle = np.sqrt((two_t * i3 - square) / (i2 * (i3 - i2)))
    for _ in range(1000):
        sim.step()
    sn, cn, dn, _ = ellipj(rate * 10.0, m)
    found = sim.state.spin[0]
    assert found[[0, 2]] == pytest.approx(w0[[0, 2]] * np.array([cn, dn]), abs=2e-8)
    assert abs(found[1]) == pytest.approx(abs(middle * sn), abs=2e-8)


# ---------------------------------------------------------------------- spinning bodies that something holds


def run_energies(sim, steps):
    """Kinetic plus potential energy and the joints' cumulative work after each step [J], and the last report."""
    energy, work = np.empty(steps), np.empty(steps)
    total = 0.0
    for k in range(steps):
        report = sim.step()
        total += report.work_joints
        energy[k], work[k] = report.kinetic_energy + report.potential_energy, total
    return energy, work, report


def pinned(inertia, omega, h, **options):
    """A body of 1 kg in a spherical joint 0.1 m off its centre, no gravity."""
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    w, arm = omega * np.array([0.8, 0.6, 0.0]), np.array([0.1, 0.0, 0.02])
    body = scene.add_body(None, mass=1.0, inertia=inertia, angular_velocity=w, velocity=np.cross(w, arm))
    scene.add_joint("spherical", None, body, anchor=-arm)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=h, **options))


SHAPES = {
    "prolate": (0.002, 0.01, 0.01),
    "oblate": (0.02, 0.01, 0.01),
    "sphere": (0.01,) * 3,
    "any": (5e-3, 0.01, 0.012),
}


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_pinned_spinning_body_is_neither_heated_nor_braked(shape, integrator):
    sim = pinned(SHAPES[shape], 200.0, 1e-3, integrator=integrator)
    energy, work, report = run_energies(sim, 2000)
    assert np.ptp(energy) < 0.01 * energy[0]  # of amplitude O(h)
    half = len(energy) // 2
    assert abs(energy[:half].mean() - energy[half:].mean()) < 2e-4 * energy[0]  # was 20 times the energy in 5 s
    assert abs(np.ptp(work[:half]) - np.ptp(work[half:])) < 0.3 * np.ptp(work) + 1e-9
    assert report.joint_drift < 1e-12


@pytest.mark.parametrize("omega", [1000.0, 3000.0])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_joints_close_on_bodies_that_turn_by_radians_in_a_step(shape, omega):
    sim = pinned(SHAPES[shape], omega, 1e-3)
    for _ in range(100):
        assert sim.step().joint_drift < 1e-10


def hinge_off_axis(h, **options):
    """A disc on a hinge 5 degrees off its principal axis at 200 rad/s, no gravity."""
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    tilt = rotation.from_axis_angle((0, 1, 0), np.radians(5.0))
    disc = scene.add_body(None, mass=1.0, inertia=(0.01, 0.01, 0.02), orientation=tilt, angular_velocity=(0, 0, 200.0))
    scene.add_joint("revolute", None, disc, anchor=(0, 0, 0), axis=(0, 0, 1), name="hinge")
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=h, **options))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_hinge_off_the_principal_axis_does_not_brake(integrator):
    sim = hinge_off_axis(1e-3, integrator=integrator)
    for _ in range(3000):
        sim.step()
    assert sim.joint_reactions()["hinge"].speed == pytest.approx(200.0, abs=0.05)  # 166 before


def heavy_top(inertia, axial, h, **options):
    """A symmetric top 30 degrees from upright in regular precession; returns the simulation and the axis' tilt."""
    tilt, arm, g = np.radians(30.0), 0.1, 9.81
    across, along = inertia
    whole = across + arm**2  # about the pivot
    # The slow root of I' cos(t) p^2 - I3 n p + m g l = 0, n the angular velocity along the axis
    a, b, c = whole * np.cos(tilt), -along * axial, g * arm
    precession = 2.0 * c / (-b + np.sqrt(b * b - 4.0 * a * c))
    axis = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    w = np.array([0, 0, precession]) + (axial - precession * np.cos(tilt)) * axis
    scene = tb.SceneBuilder()
    top = scene.add_body(
        None,
        mass=1.0,
        inertia=(across, across, along),
        position=arm * axis,
        orientation=rotation.from_normal(axis),
        velocity=np.cross(w, arm * axis),
        angular_velocity=w,
    )
    scene.add_joint("spherical", None, top, anchor=(0, 0, 0))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=h, **options))
    return sim, lambda: np.degrees(np.arccos(rotation.matrix(sim.state.orientation[0])[:, 2] @ [0, 0, 1]))


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("inertia", [(0.01, 0.004), (0.005, 0.01), (0.008, 0.008)])
def test_a_heavy_top_precesses_at_its_angle(inertia, integrator):
    sim, tilt = heavy_top(inertia, 300.0, 1e-3, integrator=integrator)
    for _ in range(1000):
        sim.step()
    assert tilt() == pytest.approx(30.0, abs=0.1)  # -4.9 degrees for a prolate one before


@pytest.mark.parametrize("lock", ["rx", "ry", "rz"])
def test_one_locked_axis_keeps_the_energy(lock):
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    q = np.array([0.7, 0.1, 0.5, -0.3])
    w = np.where([lock == k for k in ("rx", "ry", "rz")], 0.0, [20.0, 15.0, -10.0])
    scene.add_body(
        None,
        mass=1.0,
        inertia=(0.01, 0.02, 0.025),
        orientation=q / np.linalg.norm(q),
        angular_velocity=w,
        locked=(lock,),
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    energy, _, _ = run_energies(sim, 3000)
    assert np.abs(energy / energy[0] - 1.0).max() < 1e-5
    assert abs(energy[:1500].mean() / energy[1500:].mean() - 1.0) < 1e-6


# ---------------------------------------------------------------------- contacts


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_ball_with_side_spin_rolls_straight(integrator):
    """Spin about the vertical and the line of travel's normal: nothing pushes it sideways."""
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(name="felt", friction=0.4))
    scene.add_static(tb.HalfSpace(), material="felt")
    scene.add_body(
        tb.Sphere(0.1), mass=1.0, material="felt", position=(0, 0, 0.1), velocity=(1.0, 0, 0),
        angular_velocity=(0.0, 10.0, 30.0), name="ball",
    )  # fmt: skip
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3, integrator=integrator))
    for _ in range(1000):
        sim.step()
    assert abs(sim.positions()[1][1]) < 1e-9  # 20 mm with Moreau's integrator before
    assert sim.angular_velocities()[1][2] == pytest.approx(30.0, abs=1e-9)


def cloud(seed, spin=50.0):
    """Bodies of all shapes that fly into each other, no gravity, no overlap at the start."""
    rng = np.random.default_rng(seed)
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_material(tb.Material(name="rough", friction=0.5))
    points = rng.normal(size=(10, 3))
    shapes = (
        tb.Sphere(0.1), tb.Box((0.2, 0.12, 0.3)), tb.Capsule(0.06, 0.2), tb.Cylinder(0.1, 0.25), tb.Cone(0.12, 0.2),
        tb.Ellipsoid((0.1, 0.07, 0.15)), tb.ConvexHull(0.1 * points / np.linalg.norm(points, axis=1)[:, None]),
    )  # fmt: skip
    for k in range(27):
        place = 0.6 * (np.array([k % 3, k // 3 % 3, k // 9]) - 1.0)
        q = rng.normal(size=4)
        scene.add_body(
            shapes[k % len(shapes)], density=1000.0, material="rough", position=place + 0.02 * rng.normal(size=3),
            orientation=q / np.linalg.norm(q), velocity=-3.0 * place + rng.normal(size=3),
            angular_velocity=spin * rng.normal(size=3),
        )  # fmt: skip
    return scene.build()


def momenta(model, state):
    """Linear and angular momentum about the origin, and the sum of the sizes of the parts of the latter."""
    m = model.body_mass[:, None]
    own = rotation.rotate(state.orientation, model.body_inertia * state.spin)
    orbit = np.cross(state.position, m * state.velocity)
    scale = np.linalg.norm(own, axis=1).sum() + np.linalg.norm(orbit, axis=1).sum()
    return (m * state.velocity).sum(axis=0), (own + orbit).sum(axis=0), scale


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("seed", range(2))
def test_clouds_of_all_shapes_keep_their_momenta(integrator, seed):
    """Moreau's correction of overlaps moves positions alone and cannot keep the angular momentum: switched off."""
    model = cloud(seed)
    options = tb.StepOptions(dt=1e-3, integrator=integrator, recovery_speed=0.0)
    sim = tb.Simulation(model, options=options)
    p0, l0, scale = momenta(model, sim.state)
    touched = 0
    for _ in range(250):
        touched += sim.step().contacts
    p1, l1, _ = momenta(model, sim.state)
    assert touched > 200
    assert np.linalg.norm(l1 - l0) < 1e-12 * scale
    assert np.linalg.norm(p1 - p0) < 1e-12 * np.sum(model.body_mass * np.linalg.norm(sim.state.velocity, axis=1))


@pytest.mark.parametrize("seed", range(2))
def test_a_passive_cloud_never_gains_energy(seed):
    sim = tb.Simulation(cloud(seed), options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(tolerance=1e-9))
    energy = 0.0
    last = np.inf
    for _ in range(250):
        report = sim.step()
        energy -= report.work_recovery
        assert report.kinetic_energy + energy <= last * (1.0 + 1e-9)
        last = report.kinetic_energy + energy


def passive_pile(seed):
    """Spinning bodies of all shapes that fall on a floor and on each other."""
    rng = np.random.default_rng(seed)
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(name="rough", friction=float(rng.uniform(0.1, 0.9))))
    scene.add_static(tb.HalfSpace(), material="rough")
    shapes = (tb.Sphere(0.1), tb.Box((0.2, 0.12, 0.3)), tb.Cylinder(0.12, 0.05), tb.Ellipsoid((0.1, 0.07, 0.15)))
    for k in range(12):
        q = rng.normal(size=4)
        scene.add_body(
            shapes[k % len(shapes)],
            density=1000.0,
            material="rough",
            position=(0.35 * (k % 2), 0.35 * (k // 2 % 2), 0.25 + 0.36 * (k // 4)),
            orientation=q / np.linalg.norm(q),
            angular_velocity=40.0 * rng.normal(size=3),
        )
    return scene.build()


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("seed", range(2))
def test_contacts_of_spinning_bodies_take_energy_and_never_give_any(seed, integrator):
    """Of the energy balance: normal and friction work are not positive but for what gravity does within the step, and
    what recovery adds is booked as such."""
    model = passive_pile(seed)
    sim = tb.Simulation(
        model, options=tb.StepOptions(dt=1e-3, integrator=integrator), solver=tb.SolverAPGD(tolerance=1e-8)
    )
    weight = 9.81 * model.body_mass.sum()
    start = np.sum(0.5 * model.body_inertia * sim.state.spin**2)
    closed = 0.0
    for _ in range(400):
        report = sim.step()
        assert report.work_normal + report.work_friction < 9.81 * 1e-6 * weight + 1e-7 * start
        closed += report.energy_defect
    speed = sim.state.velocity[:, 2] @ model.body_mass
    wanted = 0.5e-3 * 9.81 * speed if integrator == "euler" else 0.0  # (h / 2) m g dv
    assert closed == pytest.approx(wanted, abs=1e-6 * start)


@pytest.mark.parametrize("angle", [0.1, 0.3, 1.0])
def test_the_overlap_of_a_fast_turn_is_bounded(angle):
    """Rows are linear in the velocity, the drift is not: a tip at r ends at most r a^2 / 2 deeper."""
    h = 1e-3
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_static(tb.HalfSpace())
    scene.add_body(
        tb.Box((1.0, 0.1, 0.1)),
        mass=1.0,
        position=(0, 0, 0.4),
        velocity=(0, 0, -1.0),
        angular_velocity=(0, angle / h, 0),
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=h))
    deepest, touched = 0.0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TumbleWarning)
        for _ in range(200):
            report = sim.step()
            deepest, touched = max(deepest, report.largest_overlap), touched + report.contacts
    assert touched > 0 and deepest < 0.5 * np.hypot(0.5, 0.05) * angle**2 + 1e-6
