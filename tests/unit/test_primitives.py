"""Funnels, hoppers, drums, screws and walls: closed, of the right volume, and they hold what is in them."""

import numpy as np
import pytest

import tumble as tb
from tumble.errors import SceneError


def volume(mesh):
    return np.linalg.det(mesh.vertices[mesh.triangles]).sum() / 6.0


def closed(mesh):
    """Every edge is run through once in each direction."""
    edges = np.concatenate([mesh.triangles[:, [i, (i + 1) % 3]] for i in range(3)])
    forward = {tuple(e) for e in edges.tolist()}
    return len(forward) == len(edges) and all((b, a) in forward for a, b in forward)


def frustum(a, b, h):
    return h * (a * a + a * b + b * b) / 3.0


def test_volumes():
    t, n = 0.02, 256
    made = tb.funnel(top=0.5, bottom=0.1, height=0.4, spout=0.2, wall=0.3, thickness=t, segments=n)
    shrink = n / (2 * np.pi) * np.sin(2 * np.pi / n)  # of a circle's area by its polygon's

    def inside(more):
        return np.pi * (0.2 * (0.1 + more) ** 2 + frustum(0.1 + more, 0.5 + more, 0.4) + 0.3 * (0.5 + more) ** 2)

    assert closed(made) and volume(made) == pytest.approx(shrink * (inside(t) - inside(0.0)), rel=1e-12)
    made = tb.hopper(top=(1.0, 0.8), bottom=(0.2, 0.2), height=0.5, thickness=t)
    assert (
        closed(made)
        and volume(made) > 0
        and np.ptp(made.vertices, axis=0) == pytest.approx((1 + 2 * t, 0.8 + 2 * t, 0.5))
    )
    made = tb.drum(radius=0.3, length=0.5, segments=n)
    assert closed(made) and made.cavity and volume(made) == pytest.approx(-shrink * np.pi * 0.09 * 0.5, rel=1e-12)
    made = tb.screw(radius=0.2, pitch=0.1, turns=3, shaft=0.02, thickness=0.01, segments=1600)
    blade = np.pi * (0.2**2 - 0.01**2) * 0.01 * 3
    axle = np.pi * 0.02**2 * (0.3 + 3 * 0.01)
    assert closed(made) and volume(made) == pytest.approx(blade + axle, rel=2e-3)  # falls with the segments


def test_walls_stand_where_they_are_said_to():
    scene = tb.SceneBuilder()
    scene.add_static(tb.wall((0, 0, 0), (3, 4, 0), height=2, thickness=0.2))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    hits = sim.ray_cast([(1.5, 2, 5), (0.75 + 4, 1 - 3, 1)], [(0, 0, -1), (-4, 3, 0)])
    np.testing.assert_allclose(hits.distance, [3.0, 5.0 - 0.1], atol=1e-12)


def test_a_drum_holds_its_balls_and_a_funnel_lets_them_out():
    scene = tb.SceneBuilder()
    scene.add_kinematic(
        tb.drum(radius=0.4, length=0.3), orientation=tb.axis_angle((1, 0, 0), degrees=90), angular_velocity=(0, 5, 0)
    )
    scene.add_spheres(0.05, density=1000, position=tb.grid_points((3, 2, 2), 0.12))
    scene.add_static(tb.funnel(top=0.3, bottom=0.1, height=0.3), position=(5, 0, 0))
    scene.add_spheres(0.03, density=1000, position=tb.grid_points((3, 3, 1), 0.1, origin=(5, 0, 0.4)))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))
    for _ in range(500):
        sim.step()
        p = sim.positions()[1:13]
        assert np.hypot(p[:, 0], p[:, 2]).max() < 0.36 and np.abs(p[:, 1]).max() < 0.11
    assert sim.positions()[14:, 2].max() < 0.0


def test_mistakes():
    for wrong, said in (
        (lambda: tb.funnel(top=0.1, bottom=0.2, height=1), "top must be larger"),
        (lambda: tb.hopper(top=(1, 1), bottom=(0.5, 1), height=1), "top must be larger"),
        (lambda: tb.drum(radius=0, length=1), "> 0"),
        (lambda: tb.screw(radius=1, pitch=1, turns=1, shaft=2, thickness=0.1), "shaft < radius"),
        (lambda: tb.wall((0, 0, 0), (0, 0, 1), height=1, thickness=1), "run level"),
    ):
        with pytest.raises(SceneError, match=said):
            wrong()
