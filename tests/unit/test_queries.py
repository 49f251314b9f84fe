"""Rays, overlaps, contacts of a scene and touch events, against closed forms and brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tumble as tb
from tumble.scene import rotation

CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
HULL = tb.ConvexHull(CORNERS * (0.3, 0.2, 0.4))
SHAPES = {
    "sphere": tb.Sphere(0.4),
    "capsule": tb.Capsule(0.2, 0.5),
    "box": tb.Box((0.6, 0.4, 0.8)),
    "cylinder": tb.Cylinder(0.3, 0.7),
    "cone": tb.Cone(0.4, 0.8),
    "ellipsoid": tb.Ellipsoid((0.5, 0.3, 0.4)),
    "hull": HULL,
    "mesh": tb.Mesh(HULL.points, HULL.triangles),
    "rounded": tb.Rounded(tb.Box((0.4, 0.2, 0.6)), 0.1),
}


def simulation(*placed):
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    for shape, position, turn in placed:
        scene.add_static(shape, position=position, orientation=turn)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))


def inside(shape, x):
    """Whether points (k, 3) lie in a shape."""
    rho, z = np.hypot(x[:, 0], x[:, 1]), x[:, 2]
    match shape:
        case tb.Sphere():
            return np.linalg.norm(x, axis=1) <= shape.radius
        case tb.Capsule():
            return np.hypot(rho, np.maximum(np.abs(z) - shape.length / 2, 0)) <= shape.radius
        case tb.Box():
            return np.all(np.abs(x) <= np.array(shape.size) / 2, axis=1)
        case tb.Cylinder():
            return (rho <= shape.radius) & (np.abs(z) <= shape.height / 2)
        case tb.Cone():
            return (z >= -shape.height / 2) & (rho <= shape.radius * (0.5 - z / shape.height))
        case tb.Ellipsoid():
            return np.linalg.norm(x / np.array(shape.semi_axes), axis=1) <= 1
        case tb.Rounded():
            out = np.maximum(np.abs(x) - np.array(shape.shape.size) / 2, 0)
            return np.linalg.norm(out, axis=1) <= shape.radius
    return np.all(np.abs(x) <= (0.3, 0.2, 0.4), axis=1)  # the hull, and the mesh of it


@pytest.mark.parametrize("name", SHAPES)
def test_rays_enter_where_the_surface_is(name):
    """Just before the hit a point is outside, just behind it inside; a miss never comes inside."""
    shape = SHAPES[name]
    rng = np.random.default_rng(1)
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    at = np.array([0.3, -0.2, 0.5])
    sim = simulation((shape, at, q))
    d = rng.normal(size=(300, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    start = at - 3.0 * d + rng.normal(size=(300, 3)) * 0.25
    hits = sim.ray_cast(start, d)
    hit = hits.body >= 0
    assert 100 < hit.sum() < 300
    local = rotation.rotate(rotation.conjugate(q), start - at)
    ray = rotation.rotate(rotation.conjugate(q), d)
    for t, expected in ((hits.distance - 2e-3, False), (hits.distance + 2e-3, True)):
        grazing = np.einsum("ij,ij->i", hits.normal, d) > -0.05
        checked = hit & ~grazing
        assert np.all(inside(shape, local[checked] + t[checked, None] * ray[checked]) == expected)
    along = np.linspace(0, 6, 400)
    for k in np.flatnonzero(~hit):
        assert not inside(shape, local[k] + along[:, None] * ray[k]).any()
    np.testing.assert_allclose(np.linalg.norm(hits.normal[hit], axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(hits.point[hit], (start + hits.distance[:, None] * d)[hit], atol=1e-12)
    assert np.all(np.einsum("ij,ij->i", hits.normal, d)[hit] <= 1e-6)


def test_rays_take_the_first_body_of_many():
    rng = np.random.default_rng(2)
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    centres = rng.uniform(0.5, 9.5, (500, 3))
    scene.add_spheres(0.2, mass=1.0, position=centres)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    start = rng.uniform((0, 0, 1), (10, 10, 11), (200, 3))
    d = rng.normal(size=(200, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    hits = sim.ray_cast(start, 3.0 * d, limit=8.0)
    for k in range(200):
        m = centres - start[k]
        b = m @ d[k]
        gap = np.einsum("ij,ij->i", m, m) - b**2 - 0.04
        with np.errstate(invalid="ignore"):
            t = np.where(gap <= 0, b - np.sqrt(-gap), np.inf)
        t[t < 0] = np.where(np.einsum("ij,ij->i", m, m)[t < 0] <= 0.04, 0.0, np.inf)
        floor = -start[k, 2] / d[k, 2] if d[k, 2] < 0 else np.inf
        best = min(t.min(), floor)
        if best > 8.0:
            assert hits.body[k] == -1 and hits.distance[k] == 8.0 and np.all(np.isnan(hits.point[k]))
        else:
            assert hits.distance[k] == pytest.approx(best, abs=1e-6)
            assert hits.body[k] == (0 if floor < t.min() else 1 + int(np.argmin(t)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_rays_on_a_height_field_and_its_mesh_agree(seed):
    rng = np.random.default_rng(seed)
    field = tb.HeightField(rng.uniform(-0.3, 0.3, (9, 7)), (4.0, 3.0))
    i, j = np.meshgrid(np.arange(9), np.arange(7), indexing="ij")
    points = np.stack([-2 + 0.5 * i, -1.5 + 0.5 * j, field.heights], axis=-1).reshape(-1, 3)
    corner = (np.arange(8)[:, None] * 7 + np.arange(6)).ravel()
    triangles = np.vstack(
        [np.stack([corner, corner + 7, corner + 8], 1), np.stack([corner, corner + 8, corner + 1], 1)]
    )
    mesh = tb.Mesh(points, triangles)
    start = rng.uniform((-3, -2, 0.5), (3, 2, 2.0), (60, 3))
    d = rng.normal(size=(60, 3)) - (0, 0, 1.0)
    one, two = (simulation((s, (0, 0, 0), (1, 0, 0, 0))).ray_cast(start, d) for s in (field, mesh))
    np.testing.assert_array_equal(one.body, two.body)
    np.testing.assert_allclose(one.distance, two.distance, atol=1e-9)
    np.testing.assert_allclose(one.normal, two.normal, atol=1e-9)


def test_overlaps_agree_with_distances():
    rng = np.random.default_rng(4)
    placed = []
    for k in range(40):
        q = rng.normal(size=4)
        shape = list(SHAPES.values())[k % len(SHAPES)]
        placed.append((shape, rng.uniform(-1.5, 1.5, 3), q / np.linalg.norm(q)))
    sim = simulation(*placed)
    for probe in (tb.Sphere(0.3), HULL, tb.Cylinder(0.3, 0.5)):
        at = rng.uniform(-1, 1, 3)
        found = sim.overlaps(probe, at)
        convex = [(k, s, p, q) for k, (s, p, q) in enumerate(placed) if not isinstance(s, tb.Mesh)]
        expected = {k for k, s, p, q in convex if tb.distance(probe, at, s, (p, q)).gap <= 0}
        assert {int(k) for k in found if not isinstance(placed[k][0], tb.Mesh)} == expected
    assert len(sim.overlaps(tb.Sphere(0.1), (50, 0, 0))) == 0


def test_contacts_of_a_scene_need_no_simulation():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=(0, 0, 0.5))
    scene.add_body(tb.Sphere(0.5), mass=1.0, position=(0, 0, 1.45))
    scene.add_body(tb.Sphere(0.5), mass=1.0, position=(0, 0, 2.5))
    c = scene.contacts()
    assert len(c) == 5
    assert sorted(zip(c.body_a.tolist(), c.body_b.tolist())) == [(0, 1)] * 4 + [(1, 2)]
    assert c.gap[-1] == pytest.approx(-0.05)
    np.testing.assert_allclose(c.point[-1], (0, 0, 0.975), atol=1e-12)
    assert len(scene.contacts(margin=0.1)) == 6


def test_events_tell_of_touch_and_parting():
    """A ball is dropped on a plate that is then pulled away sideways."""
    scene = tb.SceneBuilder()
    smooth = tb.Material(friction=0.0)
    scene.add_static(tb.HalfSpace(offset=-1.0), material=smooth)
    scene.add_kinematic(tb.Box((1, 1, 0.1)), position=(0, 0, -0.05), velocity=(2, 0, 0), material=smooth)
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 0.15), material=smooth)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))
    log = []
    for _ in range(500):
        sim.step()
        e = sim.events()
        assert e.began.shape[1] == 2 and e.ended.shape[1] == 2
        log += [("began", *row) for row in e.began.tolist()] + [("ended", *row) for row in e.ended.tolist()]
    assert log == [("began", 1, 2), ("ended", 1, 2), ("began", 0, 2)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.ray_cast((0, 0, 0), (0, 0, 0)), "zero"),
        (lambda s: s.ray_cast((0, 0), (0, 0, 1)), "origin"),
        (lambda s: s.ray_cast((0, 0, float("nan")), (0, 0, 1)), "finite"),
        (lambda s: s.ray_cast((0, 0, 0), (0, 0, 1), limit=-1.0), "limit"),
        (lambda s: s.ray_cast([(0, 0, 0)] * 2, [(0, 0, 1)] * 3), "ray_cast"),
        (lambda s: s.contacts(margin=-1.0), "margin"),
        (lambda s: s.overlaps("ball"), "shape"),
    ],
)
def test_bad_questions_are_named(call, words):
    with pytest.raises(tb.TumbleError, match=words):
        call(simulation((tb.Sphere(1), (0, 0, 0), (1, 0, 0, 0))))
