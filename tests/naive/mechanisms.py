"""Mechanisms that several tests need, and the equations of motion of some in minimal coordinates."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

import tumble as tb
from tumble.scene import rotation

G = 9.81


def rod(scene: tb.SceneBuilder, start, end, *, mass: float = 1.0, radius: float = 0.02, name: str | None = None) -> int:
    """A thin rod without geometry: inertia m L^2 / 12 across and m r^2 / 2 along it, z of its frame along it."""
    p, q = np.array(start, float), np.array(end, float)
    length = float(np.linalg.norm(q - p))
    across = mass * length**2 / 12.0
    return scene.add_body(
        None,
        mass=mass,
        inertia=(across, across, 0.5 * mass * radius**2),
        position=0.5 * (p + q),
        orientation=rotation.from_normal((q - p) / length),
        name=name,
    )


def simulate(scene: tb.SceneBuilder, h: float, **options) -> tb.Simulation:
    """A simulation of the scene."""
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=h, **options))


def run(sim: tb.Simulation, until: float) -> tuple[float, float]:
    """Step to a time; the largest joint violation after and before the projection."""
    after = before = 0.0
    while sim.time < until - 0.5 * sim.options.dt:
        report = sim.step()
        after, before = max(after, report.joint_drift), max(before, report.joint_drift_before)
    return after, before


def pendulum(h: float, angle: float = 0.5, inertia: float = 0.1) -> tb.Simulation:
    """Mass 2 kg, 1 m from a hinge about y, `angle` from hanging."""
    scene = tb.SceneBuilder()
    place = (np.sin(angle), 0.0, -np.cos(angle))
    bob = scene.add_body(None, mass=2.0, inertia=(inertia,) * 3, position=place, name="bob")
    scene.add_joint("revolute", None, bob, anchor=(0, 0, 0), axis=(0, 1, 0), name="hinge")
    return simulate(scene, h)


def pendulum_angle(until: float, angle: float = 0.5, inertia: float = 0.1) -> float:
    """The same in its angle."""
    rate = 2.0 * G / (2.0 + inertia)
    return float(
        solve_ivp(
            lambda _, y: [y[1], -rate * np.sin(y[0])],
            (0.0, until),
            [angle, 0.0],
            method="DOP853",
            rtol=1e-12,
            atol=1e-12,
        ).y[0, -1]
    )


def double_pendulum(h: float, angles: tuple[float, float]) -> tb.Simulation:
    """Two rods of 1 m and 0.7 m."""
    scene = tb.SceneBuilder()
    pin = np.array([np.sin(angles[0]), 0.0, -np.cos(angles[0])])
    end = pin + 0.7 * np.array([np.sin(angles[1]), 0.0, -np.cos(angles[1])])
    first = rod(scene, (0, 0, 0), pin, mass=1.0, name="first")
    second = rod(scene, pin, end, mass=0.6, name="second")
    scene.add_joint("revolute", None, first, anchor=(0, 0, 0), axis=(0, 1, 0), name="hinge")
    scene.add_joint("revolute", first, second, anchor=pin, axis=(0, 1, 0), name="pin")
    return simulate(scene, h)


def double_pendulum_angles(until: float, angles: tuple[float, float]) -> np.ndarray:
    """The same in its two angles from the vertical (two compound pendulums)."""
    m1, m2, l1, a1, a2 = 1.0, 0.6, 1.0, 0.5, 0.35
    i1, i2 = m1 * 1.0**2 / 12.0, m2 * 0.7**2 / 12.0

    def rate(_, y):
        p, q, dp, dq = y
        c, s = np.cos(p - q), np.sin(p - q)
        mass = np.array([[i1 + m1 * a1**2 + m2 * l1**2, m2 * l1 * a2 * c], [m2 * l1 * a2 * c, i2 + m2 * a2**2]])
        force = [
            -m2 * l1 * a2 * s * dq**2 - (m1 * a1 + m2 * l1) * G * np.sin(p),
            m2 * l1 * a2 * s * dp**2 - m2 * a2 * G * np.sin(q),
        ]
        return [dp, dq, *np.linalg.solve(mass, force)]

    return solve_ivp(rate, (0.0, until), [*angles, 0.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-12).y[:2, -1]


def slider_crank(h: float, speed: float, crank: float = 0.3, length: float = 1.0) -> tb.Simulation:
    """Crank about y at the origin, rod, piston along x; the crank is driven at a constant speed."""
    scene = tb.SceneBuilder()
    a = rod(scene, (0, 0, 0), (crank, 0, 0), name="crank")
    b = rod(scene, (crank, 0, 0), (crank + length, 0, 0), name="rod")
    end = (crank + length, 0, 0)
    c = scene.add_body(None, mass=2.0, inertia=(0.1, 0.1, 0.1), position=end, name="piston")
    scene.add_joint("revolute", None, a, anchor=(0, 0, 0), axis=(0, 1, 0), name="main")
    scene.add_joint("revolute", a, b, anchor=(crank, 0, 0), axis=(0, 1, 0), name="pin")
    scene.add_joint("spherical", b, c, anchor=end, name="wrist")
    scene.add_joint("prismatic", None, c, anchor=end, axis=(1, 0, 0), name="guide")
    scene.add_motor("main", "speed", target=speed, name="drive")
    return simulate(scene, h)


FOUR_BAR = (2.0, 0.5, 1.8, 1.2)
"""Ground, crank, coupler, rocker [m]: the crank can turn all round."""


def four_bar_points(angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of crank and rocker in the x-z plane for a crank angle (from x towards z), by two circles."""
    d, a, b, c = FOUR_BAR
    p = a * np.array([np.cos(angle), np.sin(angle)])
    to = np.array([d, 0.0]) - p
    f = np.linalg.norm(to)
    along = (b**2 - c**2 + f**2) / (2.0 * f)
    aside = np.sqrt(b**2 - along**2)
    e = to / f
    return p, p + along * e + aside * np.array([-e[1], e[0]])


def four_bar(h: float, angle: float, speed: float | None) -> tb.Simulation:
    """The four-bar linkage with rods of 1 kg/m; driven, or free."""
    scene = tb.SceneBuilder()
    d = FOUR_BAR[0]
    p, q = ((x[0], 0.0, x[1]) for x in four_bar_points(angle))
    ends = {"crank": ((0, 0, 0), p), "coupler": (p, q), "rocker": ((d, 0, 0), q)}
    bars = {
        name: rod(scene, start, end, mass=float(np.linalg.norm(np.subtract(end, start))), name=name)
        for name, (start, end) in ends.items()
    }
    axis = (0, -1, 0)  # turning from x towards z
    scene.add_joint("revolute", None, bars["crank"], anchor=(0, 0, 0), axis=axis, name="A")
    scene.add_joint("revolute", bars["crank"], bars["coupler"], anchor=p, axis=axis, name="B")
    scene.add_joint("revolute", bars["coupler"], bars["rocker"], anchor=q, axis=axis, name="C")
    scene.add_joint("revolute", None, bars["rocker"], anchor=(d, 0, 0), axis=axis, name="D")
    if speed is not None:
        scene.add_motor("A", "speed", target=speed, name="drive")
    return simulate(scene, h)


def virtual_work_torque(points, masses, lengths, angle: float, speed: float) -> float:
    """Torque that keeps a one-degree mechanism of rods at a constant crank speed: J'(angle) speed^2 / 2 + V'(angle).

    points(angle): ends (start, end) of every rod in the x-z plane. Derivatives by central differences.
    """

    def energies(x: float) -> tuple[float, float]:
        e = 1e-5
        inertia = potential = 0.0
        before, now, after = points(x - e), points(x), points(x + e)
        for k, (m, length) in enumerate(zip(masses, lengths)):
            low, high = (0.5 * (p[k][0] + p[k][1]) for p in (before, after))
            rate = (high - low) / (2 * e)
            a, b = (p[k][1] - p[k][0] for p in (before, after))
            turn = (a[0] * b[1] - a[1] * b[0]) / (length**2 * 2 * e) if length > 0.0 else 0.0
            inertia += m * rate @ rate + m * length**2 / 12.0 * turn**2
            potential += m * G * 0.5 * (now[k][0][1] + now[k][1][1])
        return inertia, potential

    d = 1e-3
    (j0, v0), (j1, v1) = energies(angle - d), energies(angle + d)
    return 0.5 * (j1 - j0) / (2 * d) * speed**2 + (v1 - v0) / (2 * d)
