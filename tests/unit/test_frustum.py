"""Truncated cones: mass against quadrature, distances against bounds that need no other program, at rest, in files."""

import numpy as np
import pytest

import tumble as tb
from tests.naive.solids import brick
from tests.naive.support import gaps, outside, separation
from tumble.scene import rotation
from tumble.sim.query import ray_cast
from tumble.view.tessellate import triangles_of

FRUSTA = [tb.Frustum(0.5, 0.3, 0.8), tb.Frustum(0.2, 0.6, 0.5), tb.Frustum(0.4, 0.4, 0.9), tb.Frustum(1.5, 0.01, 0.1)]


def random_turns(rng, n):
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


@pytest.mark.parametrize("shape", FRUSTA, ids=str)
def test_mass_is_that_of_thin_discs(shape):
    z, weight = np.polynomial.legendre.leggauss(8)
    z, weight = 0.5 * shape.height * z, 0.5 * shape.height * weight
    r = shape.bottom_radius + (shape.top_radius - shape.bottom_radius) * (z / shape.height + 0.5)
    area = np.pi * r**2 * weight
    middle = (area @ z) / area.sum()
    across = area @ (r**2 / 4 + (z - middle) ** 2) / area.sum()
    np.testing.assert_allclose(shape.volume, area.sum(), rtol=1e-13)
    np.testing.assert_allclose(shape.center, (0, 0, middle), atol=1e-14)
    expected = np.diag([across, across, area @ r**2 / 2 / area.sum()])
    np.testing.assert_allclose(shape.unit_inertia, expected, rtol=1e-12, atol=1e-15)


def test_bad_sizes_are_refused():
    for sizes, where in (((0, 1, 1), "bottom_radius"), ((1, -1, 1), "top_radius"), ((1, 1, np.inf), "height")):
        with pytest.raises(tb.errors.SceneError, match=f"Frustum.{where}"):
            tb.Frustum(*sizes)


def test_equal_radii_are_a_cylinder_and_a_vanishing_one_a_cone():
    rng = np.random.default_rng(1)
    pose = np.zeros((200, 3)), random_turns(rng, 200)
    place = rng.normal(size=(200, 3)) * 0.6, random_turns(rng, 200)
    for other in (tb.Sphere(0.1), tb.Box((0.3, 0.2, 0.4)), tb.Ellipsoid((0.1, 0.2, 0.3))):
        for like, frustum, loose in (
            (tb.Cylinder(0.4, 0.9), tb.Frustum(0.4, 0.4, 0.9), 1e-9),
            (tb.Cone(0.4, 0.9), tb.Frustum(0.4, 1e-11, 0.9), 1e-9),
        ):
            flipped = like.kind < other.kind  # the kernel takes the kinds in order
            mine = gaps(other, frustum, pose, place)[0]
            theirs = gaps(like, other, place, pose)[0] if flipped else gaps(other, like, pose, place)[0]
            deep = np.minimum(mine, theirs) < 0.0  # depths of curved shapes are found by an iteration
            assert np.abs(mine - theirs)[~deep].max() < loose
            assert np.abs(mine - theirs)[deep].max() < 1e-5


OTHERS = [
    tb.Sphere(0.3),
    tb.Capsule(0.2, 0.5),
    tb.Box((0.7, 0.5, 0.4)),
    tb.Cylinder(0.3, 0.6),
    tb.Cone(0.4, 0.7),
    tb.Ellipsoid((0.5, 0.3, 0.2)),
    tb.ConvexHull(np.random.default_rng(0).normal(size=(20, 3)) * 0.3),
    tb.Frustum(0.3, 0.5, 0.4),
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("shape", FRUSTA[:2], ids=str)
def test_gaps_are_proved_from_both_sides(shape, other):
    """The separation along any normal is a lower bound; for shapes apart two points of them are an upper one. Where
    they overlap no direction of a thousand separates better."""
    rng = np.random.default_rng(2)
    n = 60
    pose_a = rng.normal(size=(n, 3)), random_turns(rng, n)
    away = rng.normal(size=(n, 3))
    away *= rng.uniform(0.05, 1.4, (n, 1)) / np.linalg.norm(away, axis=1)[:, None]
    pose_b = pose_a[0] + away, random_turns(rng, n)
    gap, normal, point = gaps(other, shape, pose_a, pose_b)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-12)
    assert np.abs(separation(other, shape, pose_a, pose_b, normal) - gap).max() < 1e-7
    apart, deep = gap > 1e-9, gap < 0.0
    assert apart.sum() > 10 and deep.sum() > 10
    for body, pose, x in ((other, pose_a, point), (shape, pose_b, point + gap[:, None] * normal)):
        assert outside(body, tuple(v[apart] for v in pose), x[apart]).max() < 1e-6
    directions = rng.normal(size=(1000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    for k in np.flatnonzero(deep):
        one = [tuple(np.repeat(v[k : k + 1], 1000, axis=0) for v in pose) for pose in (pose_a, pose_b)]
        assert separation(other, shape, *one, directions).max() <= gap[k] + 1e-5


SIDE = float(np.arctan2(0.05, 0.2))
"""Angle of the side of LYING to its axis."""
LYING = tb.Frustum(0.1, 0.05, 0.2)
STANDING = {
    "bottom": (0.1, (1.0, 0.0, 0.0, 0.0)),
    "top": (0.1, (0.0, 1.0, 0.0, 0.0)),
    "side": (0.075 * np.cos(SIDE), rotation.from_axis_angle((0, 1, 0), np.pi / 2 + SIDE)),
}
"""Height of the middle of the axis over the floor, and the orientation."""
FLOORS = {
    "plane": (tb.HalfSpace(), 0.0),
    "box": (tb.Box((2, 2, 0.5)), -0.25),
    "mesh": (brick((2, 2, 0.5), (3, 3, 1)), -0.25),
}


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("standing", STANDING)
def test_it_rests_on_its_discs_and_on_its_side(floor, standing):
    (ground, level), (height, turn) = FLOORS[floor], STANDING[standing]
    scene = tb.SceneBuilder()
    scene.add_static(ground, position=(0, 0, level))
    scene.add_body(LYING, density=1000.0, position=(0.013, 0.021, height), orientation=turn)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=5e-3))
    place, orientation = sim.positions()[1].copy(), sim.orientations()[1].copy()
    sim.run(until=1.0, progress=False)
    assert sim.last.contacts.count >= (2 if standing == "side" else 3)
    assert np.abs(sim.positions()[1] - place).max() < 1e-6
    assert np.abs(sim.orientations()[1] - orientation).max() < 1e-6


def test_rays_hit_its_side_and_its_discs_in_closed_form():
    shape = tb.Frustum(0.5, 0.3, 0.8)
    scene = tb.SceneBuilder()
    scene.add_static(shape)
    model = scene.build()
    z = np.linspace(-0.39, 0.39, 9)
    hits = ray_cast(model, model.initial, np.c_[np.full(9, 2.0), np.zeros(9), z], (-1, 0, 0))
    np.testing.assert_allclose(hits.distance, 2.0 - (0.4 - 0.25 * z), atol=1e-7)
    slant = np.hypot(0.2, 0.8)
    np.testing.assert_allclose(hits.normal, np.tile((0.8 / slant, 0, 0.2 / slant), (9, 1)), atol=1e-6)
    for up, radius in ((1.0, 0.3), (-1.0, 0.5)):
        x = np.array([0.0, 0.9, 0.99, 1.01]) * radius
        hits = ray_cast(model, model.initial, np.c_[x, 0 * x, np.full(4, 2.0 * up)], (0, 0, -up))
        np.testing.assert_allclose(hits.distance[:3], 1.6, atol=1e-7)
        assert np.all(hits.body[:3] == 0) and (hits.distance[3] > 1.6 or hits.body[3] == -1)


def test_it_is_read_from_a_scene_file(tmp_path):
    table = 'shape = {type = "frustum", bottom_radius = 0.2, top_radius = 0.1, height = 0.3}'
    (tmp_path / "scene.toml").write_text(f"[[body]]\nmass = 1\n{table}\n")
    read = tb.load_scene(tmp_path / "scene.toml").model
    scene = tb.SceneBuilder()
    scene.add_body(tb.Frustum(0.2, 0.1, 0.3), mass=1.0)
    for name in ("shape_kind", "shape_parameters", "shape_bound", "shape_position", "body_inertia"):
        np.testing.assert_array_equal(getattr(read, name), getattr(scene.build(), name))
    for wrong, words in (("top_radius = 0.1, ", "top_radius"), (", height = 0.3", "height")):
        (tmp_path / "scene.toml").write_text(f"[[body]]\nmass = 1\n{table.replace(wrong, '')}\n")
        with pytest.raises(tb.errors.SceneError, match=words):
            tb.load_scene(tmp_path / "scene.toml")


@pytest.mark.parametrize("shape", FRUSTA, ids=str)
def test_its_picture_has_its_volume(shape):
    scene = tb.SceneBuilder()
    scene.add_static(shape)
    vertices, triangles = triangles_of(scene.build(), 0, segments=64)
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6
    assert 0.0 < 1.0 - volume / shape.volume < 2e-3
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    np.testing.assert_allclose(np.r_[low, high], np.concatenate(shape.box), atol=1e-12)
