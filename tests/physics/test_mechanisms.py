"""Mechanisms against closed forms and equations of motion in minimal coordinates.

The scheme is of first order in h, and the joints are violated by O(h^2) before the projection. So errors halve and
violations quarter when h is halved; after the projection violations are of the size of rounding.
"""

from __future__ import annotations

import numpy as np
import pytest

import tumble as tb
from tests.naive.mechanisms import (
    FOUR_BAR,
    G,
    double_pendulum,
    double_pendulum_angles,
    four_bar,
    four_bar_points,
    pendulum,
    pendulum_angle,
    rod,
    run,
    simulate,
    slider_crank,
    virtual_work_torque,
)
from tumble.scene import rotation

CLOSED = 1e-9
"""What joints may be open after the projection [m or rad]."""


def halves(errors, *, low=1.7, high=2.4):
    """Two errors, at h and h/2, of a first-order scheme."""
    coarse, fine = (float(np.abs(e).max()) for e in errors)
    assert low < coarse / fine < high, (coarse, fine)


def quarters(violations):
    """Violations before the projection are of second order."""
    coarse, fine = violations
    assert 3.6 < coarse / fine < 4.4, (coarse, fine)


def both(make, until=1.0, h=1e-3):
    """Two runs with h and h/2; the violations are checked for all of them."""
    sims = [make(h), make(h / 2)]
    drifts = [run(sim, until) for sim in sims]
    assert max(after for after, _ in drifts) < CLOSED
    quarters([before for _, before in drifts])
    return sims


def angles(sim, names):
    """Angles of rods from the downward vertical in the x-z plane."""
    k = [sim.model.bodies(n)[0] for n in names]
    z = rotation.rotate(sim.orientations()[k], np.array([0.0, 0.0, 1.0]))
    return np.arctan2(z[:, 0], -z[:, 2])


def test_a_pendulum_follows_its_equation_and_keeps_its_length():
    sims = both(pendulum)
    place = [sim.positions()[0] for sim in sims]
    halves([np.arctan2(p[0], -p[2]) - pendulum_angle(1.0) for p in place])
    assert np.linalg.norm(place[0]) == pytest.approx(1.0, abs=1e-12)
    # The hinge carries weight and centripetal force: 2 kg (g cos + w^2) along the string.
    r = sims[1].joint_reactions()["hinge"]
    angle, speed = np.arctan2(place[1][0], -place[1][2]), r.speed
    pull = 2.0 * (G * np.cos(angle) + speed**2)
    assert r.force @ -place[1] == pytest.approx(pull, rel=2e-3)
    assert abs(r.torque[1]) < 1e-9  # a hinge without friction has no torque about its axis


def test_a_double_pendulum_follows_its_equations():
    start = (1.0, 1.8)
    sims = both(lambda h: double_pendulum(h, start))
    exact = double_pendulum_angles(1.0, start)
    halves([(angles(sim, ("first", "second")) - exact + np.pi) % (2 * np.pi) - np.pi for sim in sims])


def slider_points(angle):
    """Ends of crank, rod and piston; the crank turns about +y, from x towards -z."""
    p = 0.3 * np.array([np.cos(angle), -np.sin(angle)])
    q = np.array([p[0] + np.sqrt(1.0 - p[1] ** 2), 0.0])
    return [(np.zeros(2), p), (p, q), (q, q)]


def test_a_slider_crank_has_the_closed_form_position_velocity_and_torque():
    speed = 5.0
    sims = both(lambda h: slider_crank(h, speed))
    velocity, torque = [], []
    for sim in sims:
        angle, h = sim.joint_values()["main"], sim.options.dt
        assert angle == pytest.approx(speed * 1.0, abs=1e-9)
        k = sim.model.bodies("piston")[0]
        assert sim.positions()[k][0] == pytest.approx(slider_points(angle)[2][0][0], abs=1e-9)
        e = 1e-6
        rate = (slider_points(angle + e)[2][0][0] - slider_points(angle - e)[2][0][0]) / (2 * e)
        velocity.append(sim.velocities()[k][0] - rate * speed)
        exact = virtual_work_torque(slider_points, (1.0, 1.0, 2.0), (0.3, 1.0, 0.0), angle - h * speed, speed)
        torque.append(sim.joint_reactions()["drive"].effort - exact)
    assert np.abs(velocity).max() < 1e-8  # that of the joints at this pose; the difference quotient errs by 1e-10
    # The mean torque of a step is that of its beginning, where the rows are, up to O(h^2), about 9 N m/s^2 h^2 here.
    assert np.abs(torque).max() < 2e-5


def four_bar_rods(angle):
    p, q = four_bar_points(angle)
    return [(np.zeros(2), p), (p, q), (np.array([FOUR_BAR[0], 0.0]), q)]


def test_a_four_bar_has_the_closed_form_position_velocity_and_torque():
    start, speed = 0.7, 3.0
    sims = both(lambda h: four_bar(h, start, speed))
    velocity, torque = [], []
    for sim in sims:
        angle, h = start + sim.joint_values()["A"], sim.options.dt
        _, q = four_bar_points(angle)
        k = sim.model.bodies("rocker")[0]
        middle = 0.5 * (q + np.array([FOUR_BAR[0], 0.0]))
        assert sim.positions()[k][[0, 2]] == pytest.approx(middle, abs=1e-9)
        e = 1e-6
        rate = 0.5 * (four_bar_points(angle + e)[1] - four_bar_points(angle - e)[1]) / (2 * e)
        velocity.append(sim.velocities()[k][[0, 2]] - rate * speed)
        exact = virtual_work_torque(four_bar_rods, FOUR_BAR[1:], FOUR_BAR[1:], angle - h * speed, speed)
        torque.append(sim.joint_reactions()["drive"].effort - exact)
    assert np.abs(velocity).max() < 1e-8  # that of the joints at this pose; the difference quotient errs by 1e-10
    assert np.abs(torque).max() < 2e-5
    # Four revolute joints hold a plane linkage with three rows too many, and say so.
    assert sims[0].last.report.redundant_rows == 3
    assert set(sims[0].assembly.redundant[0]) == {"A", "B", "C", "D"}


def test_a_gyroscope_precesses():
    mass, arm, across, along, spin = 1.0, 0.3, 0.01, 0.02, 80.0
    rate = mass * G * arm / (along * spin)  # a horizontal axis: steady precession without nutation

    def make(h):
        scene = tb.SceneBuilder()
        top = scene.add_body(
            None,
            mass=mass,
            inertia=(along, across, across),
            position=(arm, 0, 0),
            velocity=(0, rate * arm, 0),
            angular_velocity=(spin, 0, rate),
        )
        scene.add_joint("spherical", None, top, anchor=(0, 0, 0), name="pivot")
        return simulate(scene, h)

    sims = both(make)
    place = [sim.positions()[0] for sim in sims]
    halves([np.arctan2(p[1], p[0]) - rate * 1.0 for p in place])
    halves([p[2] for p in place])


def test_a_redundant_parallelogram_swings_like_a_pendulum():
    start, base = 0.8, (0.0, 1.0, 2.5)

    def make(h):
        scene = tb.SceneBuilder()
        e = np.array([np.sin(start), 0.0, -np.cos(start)])
        coupler = rod(scene, e, e + np.array([base[-1], 0, 0]), mass=2.0, name="coupler")
        for k, x in enumerate(base):
            at = np.array([x, 0.0, 0.0])
            crank = rod(scene, at, at + e, mass=0.5, name=f"crank{k}")
            scene.add_joint("revolute", None, crank, anchor=at, axis=(0, 1, 0), name=f"base{k}")
            scene.add_joint("revolute", crank, coupler, anchor=at + e, axis=(0, 1, 0), name=f"top{k}")
        return simulate(scene, h)

    sims = both(make)
    # 6 joints of 5 rows on 4 bodies that keep one freedom: 30 - 23 rows too many.
    assert all(sim.last.report.redundant_rows == 7 for sim in sims)
    inertia, moment = 3 * 0.5 / 3 + 2.0, 3 * 0.5 / 2 + 2.0
    # inertia angle'' = -moment g sin(angle): a pendulum with 2 g / (2 + i) = moment g / inertia.
    exact = pendulum_angle(1.0, angle=start, inertia=2.0 * inertia / moment - 2.0)
    halves([start - sim.joint_values()["base0"] - exact for sim in sims])


def test_a_gear_train_with_a_screw_accelerates_as_it_should():
    inertia, mass, lead = (0.2, 0.05, 0.1), 3.0, 0.02
    scene = tb.SceneBuilder()
    for k in range(3):
        scene.add_body(None, mass=mass, inertia=(inertia[k],) * 3, position=(k, 0, 0), name=f"wheel{k}")
    for k, kind in enumerate(("revolute", "revolute", "cylindrical")):
        scene.add_joint(kind, None, f"wheel{k}", anchor=(k, 0, 0), axis=(0, 0, 1), name=f"axle{k}")
    scene.add_gear("axle0", "axle1", -2.0)
    scene.add_gear("axle1", ("axle2", "turn"), -1.5)
    scene.add_gear(("axle2", "turn"), ("axle2", "slide"), lead, name="screw")
    scene.add_motor("axle0", "torque", target=6.0, name="motor")
    sim = simulate(scene, 1e-3)
    after, _ = run(sim, 10.0)
    # Constant acceleration: the speed is exact, whatever the order of the scheme.
    whole = inertia[0] + 4.0 * inertia[1] + 9.0 * inertia[2] + mass * (3.0 * lead) ** 2
    acceleration = (6.0 - mass * G * 3.0 * lead) / whole
    r = sim.joint_reactions()
    assert after < CLOSED
    assert r["axle0"].speed == pytest.approx(10.0 * acceleration, rel=1e-9)
    turns = r["axle0"].value
    assert turns > 20 * np.pi
    assert r["axle2"].value == pytest.approx(3.0 * turns, abs=1e-9)
    assert sim.positions()[2][2] == pytest.approx(lead * 3.0 * turns, abs=1e-9)
    assert r["motor"].power == pytest.approx(6.0 * r["axle0"].speed)


BASE = np.radians([-10, 10, 110, 130, 230, 250])
TOP = np.radians([-50, 50, 70, 170, 190, 290])


def stewart(h):
    """A platform on six legs (universal, driven prismatic and spherical joints) and the motion it is to follow."""
    base = np.stack([np.cos(BASE), np.sin(BASE), 0 * BASE], axis=1)
    top = 0.6 * np.stack([np.cos(TOP), np.sin(TOP), 0 * TOP], axis=1)

    def pose(t):
        place = np.array([0.1 * np.sin(2 * t), 0.05 * np.sin(3 * t), 1.2 + 0.1 * np.sin(1.5 * t)])
        return place, rotation.from_axis_angle(np.array([0.3, 1.0, 0.2]), 0.2 * np.sin(2.2 * t))

    def leg(k, t):
        p, q = pose(t)
        return p + rotation.rotate(q, top[k]) - base[k]

    scene = tb.SceneBuilder()
    p, q = pose(0.0)
    scene.add_body(None, mass=5.0, inertia=(0.5, 0.5, 0.9), position=p, orientation=q, name="platform")
    for k in range(6):
        length = float(np.linalg.norm(leg(k, 0.0)))
        d = leg(k, 0.0) / length
        end = base[k] + leg(k, 0.0)
        low = rod(scene, base[k], base[k] + 0.5 * d, mass=0.5, name=f"low{k}")
        high = rod(scene, end - 0.5 * d, end, mass=0.3, name=f"high{k}")
        x = np.cross(d, [0.0, 0.0, 1.0])
        x /= np.linalg.norm(x)
        scene.add_joint("universal", None, low, anchor=base[k], axis=x, second_axis=np.cross(d, x))
        scene.add_joint("prismatic", low, high, anchor=base[k], axis=d, name=f"leg{k}")
        scene.add_joint("spherical", high, "platform", anchor=end)
        scene.add_motor(
            f"leg{k}", "position", target=lambda t, k=k, n=length: np.linalg.norm(leg(k, t)) - n, name=f"drive{k}"
        )
    return simulate(scene, h), pose


def test_a_stewart_platform_follows_its_legs():
    drift = []
    for h in (1e-3, 5e-4):
        sim, pose = stewart(h)
        after, before = run(sim, 1.0)
        drift.append(before)
        p, q = pose(sim.time)
        assert after < CLOSED
        assert sim.positions()[0] == pytest.approx(p, abs=1e-9)
        assert abs(sim.orientations()[0] @ q) == pytest.approx(1.0, abs=1e-12)
    quarters(drift)


@pytest.mark.parametrize(
    "name",
    ["slider", "stewart", *(pytest.param(n, marks=pytest.mark.slow) for n in ("four_bar", "gyroscope", "double"))],
)
def test_joints_stay_closed_for_ten_seconds(name):
    make = {
        "slider": lambda: slider_crank(1e-3, 5.0),
        "four_bar": lambda: four_bar(1e-3, 0.7, None),
        "double": lambda: double_pendulum(1e-3, (1.0, 1.8)),
        "gyroscope": gyroscope,
        "stewart": lambda: stewart(1e-3)[0],
    }[name]
    after, _ = run(make(), 10.0)
    assert after < CLOSED


def gyroscope():
    scene = tb.SceneBuilder()
    top = scene.add_body(None, mass=1.0, inertia=(0.02, 0.01, 0.01), position=(0.3, 0, 0), angular_velocity=(80, 0, 0))
    scene.add_joint("spherical", None, top, anchor=(0, 0, 0))
    return simulate(scene, 1e-3)


def chain(links, h=1e-3, length=0.1, angle=0.6):
    """Spherical joints, links of 1 kg, the last one of 1000 kg."""
    scene = tb.SceneBuilder()
    d = np.array([np.sin(angle), 0.0, -np.cos(angle)])
    above = None
    for k in range(links):
        mass = 1.0 if k < links - 1 else 1000.0
        link = rod(scene, k * length * d, (k + 1) * length * d, mass=mass, radius=length / 10, name=f"link{k}")
        scene.add_joint("spherical", above, link, anchor=k * length * d)
        above = link
    return simulate(scene, h)


def test_a_chain_with_a_thousandfold_mass_at_its_end_swings_without_stretch():
    sim = chain(100)
    energy = sim.step().total_energy
    after, _ = run(sim, 3.0)
    k = [sim.model.bodies(f"link{i}")[0] for i in range(100)]
    z = rotation.rotate(sim.orientations()[k], np.array([0.0, 0.0, 0.1]))
    place = sim.positions()[k]
    gaps = (place[1:] - 0.5 * z[1:]) - (place[:-1] + 0.5 * z[:-1])
    stretch = np.linalg.norm(gaps, axis=1).sum() + np.linalg.norm(place[0] - 0.5 * z[0])
    assert stretch < 1e-6 * 10.0
    assert after < CLOSED
    # It swings: the heavy end has passed below, and the energy (about -81000 J) is kept to O(h).
    assert place[-1][0] < 0.0
    assert sim.last.report.total_energy == pytest.approx(energy, rel=1e-3)


@pytest.mark.parametrize("times", [(1.0, 10.0), pytest.param((10.0, 100.0), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["pendulum", "four_bar"])
def test_energy_does_not_drift(name, times):
    """SHAKE is symplectic: the error of the energy oscillates and does not grow."""
    sim = pendulum(1e-3, angle=1.0) if name == "pendulum" else four_bar(1e-3, 0.7, None)
    start = sim.step().total_energy
    worst = []
    for until in times:
        error = worst[-1] if worst else 0.0
        while sim.time < until:
            error = max(error, abs(sim.step().total_energy - start))
        worst.append(error)
    assert 0.0 < worst[1] <= 2.0 * worst[0]
