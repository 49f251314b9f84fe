"""Bodies of every shape at rest, sliding, rolling and spinning, against closed forms."""

import numpy as np
import pytest

import tumble as tb
from tumble.scene import rotation

SIDE = rotation.from_axis_angle((1, 0, 0), np.pi / 2)
rng = np.random.default_rng(3)
PEBBLE = tb.ConvexHull(
    np.vstack([rng.normal(size=(12, 3)) * 0.08, [(0.1, 0.1, -0.1), (-0.1, 0.1, -0.1), (-0.1, -0.1, -0.1)]]).clip(
        -0.1, 0.1
    )
)
BODIES = {
    "standing cylinder": (tb.Cylinder(0.1, 0.3), 0.15, (1, 0, 0, 0)),
    "lying cylinder": (tb.Cylinder(0.1, 0.3), 0.1, SIDE),
    "cone": (tb.Cone(0.1, 0.2), 0.1, (1, 0, 0, 0)),
    "capsule": (tb.Capsule(0.05, 0.2), 0.05, SIDE),
    "hull": (PEBBLE, 0.1, (1, 0, 0, 0)),
    "box": (tb.Box((0.2, 0.15, 0.1)), 0.05, (1, 0, 0, 0)),
    "rounded box": (tb.Rounded(tb.Box((0.16, 0.11, 0.06)), 0.02), 0.05, (1, 0, 0, 0)),
}


def flat_mesh(cells, length):
    """A square in the plane z = 0 of 2 cells^2 triangles."""
    x = np.linspace(-length / 2, length / 2, cells + 1)
    points = np.array([(a, b, 0.0) for a in x for b in x])
    i = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    lower, upper = np.stack([i, i + cells + 1, i + cells + 2], 1), np.stack([i, i + cells + 2, i + 1], 1)
    return tb.Mesh(points, np.vstack([lower, upper]))


def sphere_mesh(semi_axes, level):
    """An ellipsoid as a mesh: an icosahedron refined `level` times."""
    trimesh = pytest.importorskip("trimesh")
    ball = trimesh.creation.icosphere(level)
    return tb.Mesh(ball.vertices * np.array(semi_axes), ball.faces)


FLOORS = {
    "plane": (tb.HalfSpace(), 0.0),
    "box": (tb.Box((2, 2, 0.5)), -0.25),
    "mesh": (flat_mesh(20, 2.0), 0.0),
    "height field": (tb.HeightField(np.zeros((21, 21)), (2.0, 2.0)), 0.0),
}


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("body", BODIES)
def test_everything_rests_on_everything(floor, body):
    (ground, level), (shape, height, turn) = FLOORS[floor], BODIES[body]
    scene = tb.SceneBuilder()
    scene.add_static(ground, position=(0, 0, level))
    scene.add_body(shape, density=1000.0, position=(0.013, 0.021, height), orientation=turn)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=5e-3))
    start_position, start_turn = sim.positions()[1].copy(), sim.orientations()[1].copy()
    r = sim.run(until=5.0, progress=False).reports
    assert np.abs(sim.positions()[1] - start_position).max() < 1e-6
    assert np.abs(sim.orientations()[1] - start_turn).max() < 1e-6
    energy = r["kinetic_energy"] + r["potential_energy"]
    # No gain beyond what gravity puts into a gap that the solver closes to its tolerance (1e-7 of m g h).
    weight = sim.model.body_mass[1] * 9.81
    assert energy.max() - energy[0] < weight * 1e-8
    assert r["kinetic_energy"][-1] < 1e-12


@pytest.mark.parametrize("floor", ["mesh", "height field"])
@pytest.mark.parametrize("shape", [tb.Sphere(0.1), tb.Box((0.2, 0.2, 0.2)), tb.Capsule(0.1, 0.2)])
def test_nothing_catches_on_the_inner_edges_of_a_flat_surface(floor, shape):
    smooth = tb.Material(friction=0.0)
    ground = flat_mesh(71, 10.0) if floor == "mesh" else tb.HeightField(np.zeros((72, 72)), (10.0, 10.0))
    if floor == "mesh":
        assert len(ground.triangles) > 10000
    turn = rotation.from_axis_angle((0, 0, 1), 0.3)
    if isinstance(shape, tb.Capsule):
        turn = rotation.multiply(turn, SIDE)
    scene = tb.SceneBuilder()
    scene.add_static(ground, material=smooth)
    scene.add_body(shape, mass=1.0, position=(-3, -0.37, 0.1), orientation=turn, velocity=(5, 0.7, 0), material=smooth)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(tolerance=1e-9))
    up = 0.0
    for _ in range(1000):
        sim.step()
        up = max(up, abs(sim.velocities()[1, 2]))
    assert up < 1e-6
    np.testing.assert_allclose(sim.velocities()[1, :2], (5, 0.7), atol=1e-6)
    np.testing.assert_allclose(sim.positions()[1], (2, 0.33, 0.1), atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "radius", "share"),
    [
        (tb.Cylinder(0.1, 0.3), 0.1, 2 / 3),  # I = m r^2 / 2: v = v0 / (1 + I / m r^2)
        (tb.Ellipsoid((0.1, 0.1, 0.2)), 0.1, 5 / 7),  # about its long axis like a ball: I = 2/5 m r^2
        (tb.Capsule(0.1, 0.3), 0.1, None),
    ],
)
def test_a_sliding_body_ends_up_rolling_with_the_closed_form(shape, radius, share):
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(shape, density=1000.0, position=(0, 0, radius), orientation=SIDE, velocity=(2.0, 0, 0))
    model = scene.build()
    if share is None:
        ratio = model.body_inertia[1].min() / (model.body_mass[1] * radius**2)
        share = 1.0 / (1.0 + ratio)
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(tolerance=1e-10))
    sim.run(until=1.0, progress=False)
    assert sim.velocities()[1, 0] == pytest.approx(2.0 * share, abs=1e-6)
    assert sim.angular_velocities()[1, 1] == pytest.approx(2.0 * share / radius, abs=1e-5)
    assert sim.positions()[1, 2] == pytest.approx(radius, abs=1e-6)


def test_an_ellipsoid_spins_like_its_mesh():
    """2:1:1 at 5 rad/s on its side: a point contact keeps the speed. The facet that the mesh stands on lies lower, by
    the square of its size, and friction at its corners brakes, by at most mu m g s / sqrt(3) about the vertical for an
    edge s (means over six ways to lie)."""

    def end(shape, roll):
        scene = tb.SceneBuilder()
        scene.add_static(tb.HalfSpace())
        turn = rotation.from_axis_angle((1, 0, 0), roll)
        scene.add_body(shape, density=1000.0, position=(0, 0, 0.1), orientation=turn, angular_velocity=(0, 0, 5.0))
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3), solver=tb.SolverAPGD(tolerance=1e-9))
        sim.run(until=1.0, progress=False)
        return np.array([np.linalg.norm(sim.angular_velocities()[1]), sim.positions()[1, 2]])

    exact = end(tb.Ellipsoid((0.2, 0.1, 0.1)), 0.4)
    np.testing.assert_allclose(exact, (5.0, 0.1), atol=1e-9)
    errors, most = [], []
    for level in (3, 5):
        mesh = sphere_mesh((0.2, 0.1, 0.1), level)
        errors.append(np.mean([np.abs(end(mesh, roll) - exact) for roll in np.linspace(0.1, 2.9, 6)], axis=0))
        corners = np.asarray(mesh.vertices)[np.asarray(mesh.triangles)]
        edge = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max()
        most.append(tb.Material().friction * 9.81 * edge / np.sqrt(3.0) / ((0.2**2 + 0.1**2) / 5.0))  # in 1 s
    lost, height = np.array(errors).T
    assert np.all(lost < np.minimum(most, 5.0)) and lost[1] < 0.4 * lost[0]
    assert np.log2(height[0] / height[1]) / 2 > 1.7


@pytest.mark.parametrize("wall", ["box", "closed mesh", "open mesh", "height field", "hull"])
@pytest.mark.filterwarnings("ignore::tumble.TumbleWarning")
def test_nothing_passes_a_thin_wall(wall):
    """1 mm bodies at 100 m/s against a wall of 1 mm at h = 1 ms, a hundred times their size in a step."""
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * (0.05, 0.05, 0.0005)
    hull = tb.ConvexHull(corners)
    walls = {
        "box": tb.Box((0.1, 0.1, 0.001)),
        "hull": hull,
        "closed mesh": tb.Mesh(hull.points, hull.triangles),
        "open mesh": flat_mesh(10, 0.1),
        "height field": tb.HeightField(np.zeros((11, 11)), (0.1, 0.1)),
    }
    top = 0.0 if wall in ("open mesh", "height field") else 0.0005
    shapes = [tb.Sphere(0.0005), tb.Cylinder(0.0005, 0.001), tb.Box((0.001,) * 3), tb.Ellipsoid((5e-4, 4e-4, 3e-4))]
    for phase in (0.003, 0.0503, 0.0817):
        scene = tb.SceneBuilder(gravity=(0, 0, 0))
        scene.add_static(walls[wall])
        for k, shape in enumerate(shapes):
            at = (-0.03 + 0.015 * k, 0.002, phase)
            # Straight for the ellipsoid: friction would make it turn several times in a step, which no scheme follows.
            across = (0, 0) if isinstance(shape, tb.Ellipsoid) else (3, 1)
            scene.add_body(shape, density=1000.0, position=at, velocity=(*across, -100.0))
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
        for _ in range(4):
            sim.step()
        assert np.all(sim.positions()[1:, 2] > top + 0.2e-3)
        assert np.all(np.abs(sim.velocities()[1:, 2]) < 1.0)


def test_a_dynamic_mesh_falls_like_the_solid_it_is():
    """A concave body (an L of three cubes as one mesh) comes to rest flat on planes, boxes and meshes."""
    trimesh = pytest.importorskip("trimesh")
    profile = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], float) * 0.1
    # Extrude the profile by hand: caps from a fan that suits this L, and the walls.
    cap = np.array([(0, 1, 2), (0, 2, 3), (0, 3, 5), (3, 4, 5)])
    low, high = (np.column_stack([profile, np.full(6, z)]) for z in (0.0, 0.1))
    walls = [(k, (k + 1) % 6, (k + 1) % 6 + 6) for k in range(6)] + [(k, (k + 1) % 6 + 6, k + 6) for k in range(6)]
    mesh = tb.Mesh(np.vstack([low, high]), np.vstack([cap[:, ::-1], cap + 6, walls]))
    assert mesh.watertight and mesh.volume == pytest.approx(3e-3)
    reference = trimesh.Trimesh(mesh.vertices, mesh.triangles)
    np.testing.assert_allclose(mesh.center, reference.center_mass, atol=1e-12)
    for ground, level in FLOORS.values():
        scene = tb.SceneBuilder()
        scene.add_static(ground, position=(0, 0, level))
        scene.add_body(mesh, density=1000.0, position=(0.01, 0.02, 0.01))
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))
        sim.run(until=1.0, progress=False)
        np.testing.assert_allclose(sim.positions()[1], (0.01, 0.02, 0.0), atol=1e-5)
        assert np.abs(sim.velocities()[1]).max() < 1e-6
        force = sim.contact_forces().on(1)
        np.testing.assert_allclose(force, (0, 0, 3.0 * 9.81), atol=1e-3)


def test_a_mesh_rests_on_a_mesh():
    """Two concave moving bodies by triangle pairs: a cube with a mesh surface on another one."""
    hull = tb.ConvexHull(np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.1)
    cube = tb.Mesh(hull.points, hull.triangles)
    scene = tb.SceneBuilder()
    scene.add_static(flat_mesh(7, 2.0))
    scene.add_body(cube, density=1000.0, position=(0.013, 0.02, 0.1))
    scene.add_body(cube, density=1000.0, position=(0.033, -0.01, 0.301))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))
    sim.run(until=2.0, progress=False)
    np.testing.assert_allclose(sim.positions()[1:, 2], (0.1, 0.3), atol=1e-5)
    assert np.abs(sim.velocities()).max() < 1e-5


def test_a_ring_hangs_on_a_peg():
    """A mesh with a hole: the peg goes through it, and the ring hangs at its inner radius."""
    trimesh = pytest.importorskip("trimesh")
    ring = trimesh.creation.annulus(r_min=0.1, r_max=0.15, height=0.05, sections=64)
    scene = tb.SceneBuilder()
    scene.add_static(tb.Cylinder(0.03, 0.5), orientation=SIDE)
    body = tb.Mesh(ring.vertices, ring.faces)
    scene.add_body(body, density=1000.0, position=(0, 0, -0.065), orientation=SIDE)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))
    sim.run(until=2.0, progress=False)
    # The polygon's inner edge lies between the inscribed and the given radius.
    assert -0.07 - 1e-4 <= sim.positions()[1, 2] <= -(0.1 * np.cos(np.pi / 64) - 0.03) + 1e-4
    assert np.abs(sim.velocities()[1]).max() < 1e-3
