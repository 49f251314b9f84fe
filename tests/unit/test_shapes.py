"""Shapes on the side of the scene: sizes, mass, hulls, rounding, batches, files, and what is refused."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tumble.enums import ShapeKind
from tumble.errors import FileError, SceneError
from tumble.scene import rotation
from tumble.scene.builder import SceneBuilder
from tumble.scene.files import load_scene
from tumble.scene.height_fields import HeightField
from tumble.scene.hulls import ConvexHull
from tumble.scene.mass import mass_properties
from tumble.scene.meshes import Mesh
from tumble.scene.rounded import Rounded
from tumble.scene.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, HalfSpace, Placed, Sphere

NAN, INF = float("nan"), float("inf")
FORM = re.compile(r"[^\n]+: [^\n]+ \(got [^\n]*\)\. [^\n]+[.?]")
CUBE = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
TETRAHEDRON = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
BUMP = [[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 2]]


def ball_points(count, seed=0):
    points = np.random.default_rng(seed).normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1)[:, None]


def turn(seed):
    q = np.random.default_rng(seed).normal(size=4)
    return q / np.linalg.norm(q)


def tensor(shapes, **options):
    """Mass, centre and the tensor of inertia in the user's axes."""
    p = mass_properties("test", shapes, **({"mass": None, "density": 1.0} | options))
    axes = rotation.matrix(p.axes)
    return p.mass, p.center, axes @ np.diag(p.moments) @ axes.T


# ---------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    "shape, parameters, half, bound",
    [
        (Sphere(2), (0, 0, 0, 2), (2, 2, 2), 2),
        (Capsule(1, 4), (0, 0, 2, 1), (1, 1, 3), 3),
        (Box((2, 4, 6)), (1, 2, 3, 0), (1, 2, 3), math.sqrt(14)),
        (Cylinder(3, 8), (3, 3, 4, 0), (3, 3, 4), 5),
        (Cone(3, 8), (3, 3, 4, 0), (3, 3, 4), 5),
        (Ellipsoid((1, 2, 3)), (1, 2, 3, 0), (1, 2, 3), 3),
        (Rounded(Box((2, 4, 6)), 0.5), (1, 2, 3, 0.5), (1.5, 2.5, 3.5), math.sqrt(14) + 0.5),
        (Rounded(Cone(3, 8), 1), (3, 3, 4, 1), (4, 4, 5), 6),
    ],
)
def test_sizes(shape, parameters, half, bound):
    assert np.array_equal(shape.parameters, parameters)
    low, high = shape.box
    assert np.allclose(high, half) and np.allclose(low, -np.array(half))
    assert shape.bound == pytest.approx(bound) and shape.smallest == min(half)
    assert shape.geometry is None


def test_a_height_field_knows_its_grid():
    field = HeightField(BUMP, (3, 4))
    assert np.array_equal(field.parameters, [1, 2, 0, 2])
    assert field.smallest == 2 and field.volume == INF
    assert field.bound == pytest.approx(math.sqrt(1.5**2 + 2**2 + 2**2))
    assert np.array_equal(field.box, [(-1.5, -2, 0), (1.5, 2, 2)])


# ---------------------------------------------------------------------- mass


REVOLVED = [Cylinder(0.7, 1.9), Cone(0.7, 1.9), Cone(2.0, 0.3)]


def sampled(shape, count):
    """The hull of many points on the surface."""
    u = ball_points(count)
    if isinstance(shape, Ellipsoid):
        axes = np.array(shape.semi_axes)
        return ConvexHull(axes * u)
    angle = np.arange(count) * (2 * math.pi / count)
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(count)], axis=1) * shape.radius
    up = np.array([0, 0, shape.height / 2])
    return ConvexHull(np.concatenate([ring - up, ring + up if isinstance(shape, Cylinder) else up[None]]))


@pytest.mark.parametrize("shape", [*REVOLVED, Ellipsoid((1.0, 0.5, 0.3))], ids=lambda s: type(s).__name__)
def test_closed_forms_are_limits_of_hulls(shape):
    hull = sampled(shape, 4000)
    assert hull.volume == pytest.approx(shape.volume, rel=4e-3) and hull.volume < shape.volume
    assert np.allclose(hull.center, shape.center, atol=1e-3)
    assert np.allclose(hull.unit_inertia, shape.unit_inertia, atol=4e-3 * shape.bound**2)


@pytest.mark.parametrize("shape", REVOLVED, ids=lambda s: type(s).__name__)
def test_quadrature_of_a_profile_reaches_the_closed_form(shape):
    thin = Rounded(shape, 1e-12)
    assert thin.volume == pytest.approx(shape.volume, rel=1e-10)
    assert np.allclose(thin.center, shape.center, atol=1e-10)
    assert np.allclose(thin.unit_inertia, shape.unit_inertia, rtol=1e-10, atol=1e-12)


def test_a_rounded_needle_is_a_capsule():
    needles = (
        Rounded(Cylinder(1e-12, 2.0), 0.3),
        Rounded(Box((1e-7, 1e-7, 2.0)), 0.3),
        Rounded(Ellipsoid((1e-8, 1e-8, 1e-8)), 0.3),
    )
    for needle, shape in zip(needles, (Capsule(0.3, 2.0), Capsule(0.3, 2.0), Sphere(0.3))):
        assert needle.volume == pytest.approx(shape.volume, rel=1e-5)
        assert np.allclose(needle.unit_inertia, shape.unit_inertia, rtol=1e-5, atol=1e-9)
    assert needles[0].volume == pytest.approx(Capsule(0.3, 2.0).volume, rel=1e-10)


def test_a_capsule_is_a_cylinder_and_a_cut_ball():
    r, l = 0.3, 2.0
    capsule = Capsule(r, l)
    tube, half_ball = math.pi * r**2 * l, 2 / 3 * math.pi * r**3
    assert capsule.volume == pytest.approx(tube + 2 * half_ball, rel=1e-15)
    across = tube * (r**2 / 4 + l**2 / 12) + 2 * half_ball * (83 / 320 * r**2 + (l / 2 + 3 / 8 * r) ** 2)
    assert capsule.unit_inertia[0, 0] == pytest.approx(across / capsule.volume, rel=1e-14)


def test_volume_of_a_rounded_box_and_cylinder():
    x, y, z, r = 1.0, 2.0, 3.0, 0.4
    steiner = x * y * z + 2 * (x * y + y * z + z * x) * r + math.pi * r**2 * (x + y + z) + 4 / 3 * math.pi * r**3
    assert Rounded(Box((x, y, z)), r).volume == pytest.approx(steiner, rel=1e-14)
    R, h = 1.0, 2.0
    quarter, arm = math.pi * r**2 / 4, R + 4 * r / (3 * math.pi)  # Pappus
    volume = math.pi * (R + r) ** 2 * h + 2 * math.pi * R**2 * r + 2 * 2 * math.pi * arm * quarter
    assert Rounded(Cylinder(R, h), r).volume == pytest.approx(volume, rel=1e-14)


def test_a_rounded_box_is_the_sum_of_its_parts():
    """Inertia of a rounded cube from boxes, quarter cylinders and eighths of a ball, all in closed form."""
    a, r = 1.0, 0.4
    cube = Rounded(Box((2 * a, 2 * a, 2 * a)), r)
    # integral of x^2: the inner cube, six slabs, twelve quarter cylinders, eight eighths
    line2, slab2 = 2 * a**3 / 3, ((a + r) ** 3 - a**3) * 2 / 3
    inner = line2 * (2 * a) ** 2
    slabs = slab2 * (2 * a) ** 2 + 2 * (line2 * 2 * a * 2 * r)
    disc, disc1, disc2 = math.pi * r**2 / 4, r**3 / 3, math.pi * r**4 / 16  # quarter disc: area, first, second moment
    rods = 4 * line2 * disc + 8 * 2 * a * (a**2 * disc + 2 * a * disc1 + disc2)
    ball, ball1, ball2 = math.pi * r**3 / 6, math.pi * r**4 / 16, math.pi * r**5 / 30  # eighth of a ball
    caps = 8 * (a**2 * ball + 2 * a * ball1 + ball2)
    assert cube.unit_inertia[0, 0] == pytest.approx(2 * (inner + slabs + rods + caps) / cube.volume, rel=1e-13)


def test_a_rounded_hull_is_the_limit_of_hulls_of_balls():
    from trimesh.creation import icosphere

    hull = ConvexHull(ball_points(9, seed=3) + 2.0)
    exact = Rounded(hull, 0.5)
    errors = []
    for fineness in (2, 3, 4):
        ball = np.array(icosphere(subdivisions=fineness).vertices)
        grown = ConvexHull((hull.points[:, None] + 0.5 * ball).reshape(-1, 3))
        errors.append(
            [
                abs(grown.volume / exact.volume - 1),
                np.abs(grown.center - exact.center).max(),
                np.abs(grown.unit_inertia - exact.unit_inertia).max(),
            ]
        )
    assert np.all(np.array(errors[2]) < 3e-3) and np.all(np.array(errors[2]) < np.array(errors[0]) / 2)


def test_rounded_ellipsoids():
    r = 0.2
    ball = Rounded(Ellipsoid((1, 1, 1)), r)
    assert ball.volume == pytest.approx(Sphere(1 + r).volume, rel=1e-13)
    assert np.allclose(ball.unit_inertia, Sphere(1 + r).unit_inertia, rtol=1e-13)
    for c in (0.9, 0.1, 0.001):  # oblate: area and mean curvature are known
        e = math.sqrt(1 - c * c)
        area = 2 * math.pi * (1 + (1 - e * e) / e * math.atanh(e))
        mean = 2 * math.pi * (c + math.acos(c) / e)
        volume = 4 / 3 * math.pi * (c + r**3) + area * r + mean * r**2
        for axes in ((1, 1, c), (1, c, 1), (c, 1, 1)):
            assert Rounded(Ellipsoid(axes), r).volume == pytest.approx(volume, rel=1e-11)
    for b in (0.5, 0.01, 0.001):  # prolate
        e = math.sqrt(1 - b * b)
        area = 2 * math.pi * b * b * (1 + math.asin(e) / (b * e))
        mean = 2 * math.pi * (1 + b * b / e * math.acosh(1 / b))
        volume = 4 / 3 * math.pi * (b * b + r**3) + area * r + mean * r**2
        assert Rounded(Ellipsoid((b, 1, b)), r).volume == pytest.approx(volume, rel=1e-11)
    # second moments: the hull of many points of the offset surface
    exact = Rounded(Ellipsoid((1.0, 0.5, 0.2)), 0.3)
    u = ball_points(20000)
    axes = np.array([1.0, 0.5, 0.2])
    hull = ConvexHull(axes**2 * u / np.linalg.norm(axes * u, axis=1)[:, None] + 0.3 * u)
    assert np.allclose(hull.unit_inertia, exact.unit_inertia, atol=1e-3)


lengths = st.floats(0.05, 3.0)
seeds = st.integers(0, 2**32 - 1)


@given(st.tuples(lengths, lengths, lengths), seeds, lengths)
@settings(max_examples=40, deadline=None)
def test_the_hull_of_the_corners_of_a_box_is_the_box(size, seed, radius):
    box, q = Box(size), turn(seed)
    move = 3.0 * np.random.default_rng(seed).normal(size=3)
    hull = ConvexHull(rotation.rotate(q, (CUBE - 0.5) * size) + move)
    assert (len(hull.points), len(hull.faces)) == (8, 6)
    for inner, outer in ((hull, box), (Rounded(hull, radius), Rounded(box, radius))):
        assert inner.volume == pytest.approx(outer.volume, rel=1e-11)
        assert np.allclose(inner.center, move, atol=1e-11)
        matrix = rotation.matrix(q)
        assert np.allclose(inner.unit_inertia, matrix @ outer.unit_inertia @ matrix.T, rtol=1e-10, atol=1e-11)
        assert inner.smallest == pytest.approx(outer.smallest, rel=1e-10)


SOLIDS = (
    Sphere(0.4),
    Capsule(0.3, 1.0),
    Box((0.3, 0.6, 0.9)),
    Cone(0.5, 1.2),
    Ellipsoid((0.2, 0.5, 0.9)),
    ConvexHull(ball_points(12, seed=5)),
    Rounded(Cone(0.4, 0.9), 0.1),
    Rounded(ConvexHull(TETRAHEDRON), 0.2),
)


@given(st.lists(st.sampled_from(SOLIDS), min_size=1, max_size=4), seeds)
@settings(max_examples=40, deadline=None)
def test_mass_does_not_depend_on_the_frame(solids, seed):
    rng = np.random.default_rng(seed)
    placed = [Placed(s, tuple(rng.normal(size=3)), tuple(turn(seed + i))) for i, s in enumerate(solids)]
    mass, center, inertia = tensor(placed)
    q, move = turn(seed + 99), rng.normal(size=3)
    moved = [
        Placed(p.shape, tuple(rotation.rotate(q, p.position) + move), tuple(rotation.multiply(q, p.orientation)))
        for p in placed
    ]
    mass2, center2, inertia2 = tensor(moved)
    assert mass2 == pytest.approx(mass, rel=1e-13)
    assert np.allclose(center2, rotation.rotate(q, center) + move, atol=1e-12)
    matrix = rotation.matrix(q)
    assert np.allclose(inertia2, matrix @ inertia @ matrix.T, rtol=1e-11, atol=1e-11 * np.abs(inertia).max())


@given(st.lists(st.sampled_from(SOLIDS), min_size=2, max_size=4), seeds)
@settings(max_examples=40, deadline=None)
def test_a_compound_has_the_inertia_of_its_parts(solids, seed):
    rng = np.random.default_rng(seed)
    placed = [Placed(s, tuple(rng.normal(size=3)), tuple(turn(seed + i))) for i, s in enumerate(solids)]
    mass, center, inertia = tensor(placed)
    parts = [tensor([p]) for p in placed]
    assert mass == pytest.approx(sum(m for m, _, _ in parts), rel=1e-13)
    assert np.allclose(center, sum(m * c for m, c, _ in parts) / mass, atol=1e-13)
    total = np.zeros((3, 3))
    for m, c, own in parts:
        arm = c - center
        total += own + m * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    assert np.allclose(inertia, total, rtol=1e-11, atol=1e-11 * np.abs(total).max())
    assert np.linalg.eigvalsh(inertia)[0] > 0


# ---------------------------------------------------------------------- hulls


def check_hull(hull, tolerance=1e-9):
    """Topology and geometry of the faces."""
    arrays = hull.geometry
    corners = np.diff(arrays.loop_start)
    assert corners.min() >= 3 and arrays.loop_start[-1] == len(arrays.loop)
    assert set(arrays.loop) == set(range(len(hull.points)))
    edges = [(int(a), int(b)) for f in hull.faces for a, b in zip(f, np.roll(f, -1))]
    assert len(set(edges)) == len(edges) and {(b, a) for a, b in edges} == set(edges)
    assert len(hull.points) - len(edges) // 2 + len(hull.faces) == 2
    normal, offset = arrays.plane[:, :3], arrays.plane[:, 3]
    assert np.allclose(np.linalg.norm(normal, axis=1), 1, atol=1e-14)
    size = np.ptp(hull.points, axis=0).max()
    height = hull.points @ normal.T - offset
    assert height.max() <= tolerance * size
    for k, face in enumerate(hull.faces):
        assert np.abs(height[face, k]).max() <= tolerance * size
        p = hull.points[face]
        area = sum(np.cross(p[i] - p[0], p[i + 1] - p[0]) for i in range(1, len(p) - 1))
        assert area @ normal[k] > 0.999 * np.linalg.norm(area)


@given(seeds, st.integers(4, 60), st.sampled_from((1e-6, 1.0, 1e6)), st.sampled_from(("ball", "grid", "thin")))
@settings(max_examples=60, deadline=None)
def test_hulls_are_closed_and_convex(seed, count, scale, kind):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, 3))
    if kind == "grid":
        points = np.concatenate([rng.integers(-2, 3, (count, 3)).astype(float), CUBE])
    if kind == "thin":
        points *= (1.0, 1.0, 1e-4)
    points = scale * rotation.rotate(turn(seed), points)
    hull = ConvexHull(points)
    check_hull(hull)
    normal, offset = hull.geometry.plane[:, :3], hull.geometry.plane[:, 3]
    assert (points @ normal.T - offset).max() <= 1e-9 * np.ptp(points, axis=0).max()
    assert 0 < hull.smallest <= np.ptp(points, axis=0).max()


def test_hulls_drop_what_is_not_a_corner():
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 5)] * 3), axis=-1).reshape(-1, 3)
    for seed in range(20):
        hull = ConvexHull(rotation.rotate(turn(seed), grid))
        check_hull(hull)
        assert (len(hull.points), len(hull.faces)) == (8, 6)
        assert hull.volume == pytest.approx(8.0, rel=1e-12)


@pytest.mark.parametrize("noise", [1e-15, 1e-12, 1e-10, 1e-9, 1e-8, 1e-6])
def test_rough_planes_give_closed_hulls(noise):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points = rng.uniform(-1, 1, (100, 3))
        axis = rng.integers(0, 3, 100)
        points[np.arange(100), axis] = np.sign(points[np.arange(100), axis])
        points = np.concatenate([points + noise * rng.normal(size=points.shape), 2 * CUBE - 1])
        hull = ConvexHull(rotation.rotate(turn(seed), points))
        check_hull(hull, 2e-8)
        assert hull.volume == pytest.approx(8.0, rel=1e-4)
        assert len(hull.faces) == 6 or noise > 1e-13
        wide = Rounded(hull, 1e3)
        assert wide.volume == pytest.approx(Sphere(1e3).volume, rel=5e-3)


@pytest.mark.parametrize("distance", [0.0, 1e-16, 1e-13, 1e-11])
def test_near_duplicates_are_merged(distance):
    rng = np.random.default_rng(1)
    points = np.concatenate([CUBE + distance * rng.uniform(-1, 1, CUBE.shape) for _ in range(5)])
    hull = ConvexHull(points)
    check_hull(hull)
    assert (len(hull.points), len(hull.faces)) == (8, 6)


def test_hulls_against_trimesh():
    import trimesh

    for seed in range(5):
        hull = ConvexHull(ball_points(40, seed) * (3, 2, 1) + 5.0)
        other = trimesh.Trimesh(hull.points, hull.triangles, process=False).mass_properties
        assert hull.volume == pytest.approx(other["volume"], rel=1e-12)
        assert np.allclose(hull.center, other["center_mass"], rtol=1e-12)
        assert np.allclose(hull.unit_inertia * hull.volume, other["inertia"], rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------------- builder and pool


def test_many_bodies_share_one_hull():
    hull, other = ConvexHull(TETRAHEDRON), ConvexHull(CUBE)
    scene = SceneBuilder()
    scene.add_static(HalfSpace())
    many = scene.add_copies(
        [Placed(hull, (0, 0, 1)), Rounded(other, 0.1)],
        position=np.arange(30.0).reshape(10, 3),
        density=np.arange(1.0, 11.0),
        torque=(1, 2, 3),
        name="rocks",
    )
    scene.add_body(hull, mass=2.0)
    scene.add_static(HeightField(BUMP, (3, 4)))
    model = scene.build()
    assert many == range(1, 11)
    assert np.array_equal(model.shape_geometry[[0, 1, 2, 3, -2, -1]], [-1, 0, 1, 0, 0, 0])
    assert np.array_equal(model.shape_parameters[1:3], [(0, 4, 0, 0), (4, 8, 0, 0.1)])
    assert np.array_equal(model.shape_parameters[-1], [1, 2, 0, 2])
    g = model.geometry
    assert np.array_equal(g.hull_start, [0, 4, 12]) and np.array_equal(g.hull_face_start, [0, 4, 10])
    assert np.array_equal(g.hull_point, np.concatenate([hull.points, other.points]))
    assert g.face_loop[g.face_loop_start[4] :].min() == 4 and g.face_loop.max() == 11
    assert np.array_equal(g.field_shape, [(4, 3)]) and np.array_equal(g.field_height, np.ravel(BUMP))
    # the same bodies one by one
    single = SceneBuilder()
    for i in range(10):
        single.add_body(
            [Placed(hull, (0, 0, 1)), Rounded(other, 0.1)], density=i + 1.0, position=(3 * i, 3 * i + 1, 3 * i + 2)
        )
    one = single.build()
    for name in ("mass", "inertia", "center", "axes", "size", "inverse_mass"):
        assert np.allclose(getattr(model, "body_" + name)[1:11], getattr(one, "body_" + name), rtol=1e-12)
    for name in ("parameters", "position", "orientation", "bound", "smallest", "local", "kind"):
        assert np.allclose(getattr(model, "shape_" + name)[1:21], getattr(one, "shape_" + name), rtol=1e-12)
    assert np.allclose(model.initial.position[1:11], one.initial.position)
    assert np.array_equal(model.body_torque[5], [1, 2, 3])


def test_geometry_is_frozen_and_typed_even_if_empty():
    scene = SceneBuilder()
    scene.add_static(HalfSpace())
    empty = scene.build().geometry
    scene.add_body(ConvexHull(TETRAHEDRON), mass=1.0)
    scene.add_static(Mesh(TETRAHEDRON, [(0, 1, 2)]))
    scene.add_static(HeightField(BUMP, (3, 4)))
    full = scene.build().geometry
    for name in empty._fields:
        a, b = getattr(empty, name), getattr(full, name)
        assert a.dtype == b.dtype and a.ndim == b.ndim and a.shape[1:] == b.shape[1:]
        assert len(a) == (1 if name.endswith("start") else 0)
        for array in (a, b):
            assert array.flags.c_contiguous and not array.flags.writeable


def test_spheres_and_boxes_have_their_parameters():
    scene = SceneBuilder()
    scene.add_spheres([0.1, 0.2], position=np.zeros((2, 3)), mass=1.0)
    scene.add_boxes((2, 4, 6), position=np.zeros((2, 3)), mass=1.0)
    model = scene.build()
    assert np.array_equal(model.shape_parameters, [(0, 0, 0, 0.1), (0, 0, 0, 0.2), (1, 2, 3, 0), (1, 2, 3, 0)])
    assert np.array_equal(model.shape_geometry, [-1] * 4)
    assert np.array_equal(model.body_size, [0.1, 0.2, 1, 1])


# ---------------------------------------------------------------------- files


SCENE = """
[[body]]
kind = "static"
shape = {type = "height_field", heights = [[0, 0], [0, 1], [0, 2]], size = [2, 3]}
[[body]]
kind = "static"
shape = {type = "height_field", image = "ground.png", size = [2, 1], low = -1, high = 1}
[[body]]
density = 1000
shapes = [
  {type = "capsule", radius = 0.1, length = 0.4, rotation = {axis = [1, 0, 0], angle_degrees = 90}},
  {type = "cylinder", radius = 0.2, height = 0.3, rounding = 0.05, position = [0, 0, 1]},
  {type = "cone", radius = 0.2, height = 0.3},
  {type = "ellipsoid", semi_axes = [0.1, 0.2, 0.3], rounding = 0.01},
  {type = "box", size = [0.1, 0.2, 0.3], rounding = 0.02},
]
[[body]]
mass = 1
shape = {type = "hull", points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]}
[[copies]]
name = "rocks"
density = 2500
shapes = [{type = "hull", points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], position = [0, 0, 2]}]
orientation = [0, 1, 0, 0]
torque = [0, 0, 1]
packing = {kind = "grid", shape = [2, 2, 1], spacing = 3}
[[copies]]
mass = [1, 2]
shape = {type = "cone", radius = 1, height = 2}
position = [[0, 0, 0], [0, 0, 5]]
"""


def write_image(path, levels, mode):
    from PIL import Image

    Image.fromarray(np.array(levels, {"L": np.uint8, "I;16": np.uint16}[mode])).save(path)


def test_every_shape_of_a_scene_file(tmp_path):
    write_image(tmp_path / "ground.png", [[0, 255, 0], [0, 0, 51]], "L")
    (tmp_path / "scene.toml").write_text(SCENE)
    model = load_scene(tmp_path / "scene.toml").model
    kinds = [ShapeKind(k) for k in model.shape_kind]
    K = ShapeKind
    assert kinds == [
        *(K.HEIGHT_FIELD, K.HEIGHT_FIELD),
        *(K.CAPSULE, K.CYLINDER, K.CONE, K.ELLIPSOID, K.BOX),
        *(K.HULL,) * 5,
        *(K.CONE,) * 2,
    ]
    assert np.allclose(model.shape_parameters[3], [0.2, 0.2, 0.15, 0.05])
    assert np.allclose(model.shape_parameters[5:7, 3], [0.01, 0.02])
    assert np.array_equal(model.shape_geometry, [0, 1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, -1, -1])
    assert len(model.geometry.hull_start) == 2
    assert np.array_equal(model.geometry.field_shape, [(3, 2), (3, 2)])
    heights = model.geometry.field_height[6:].reshape(3, 2)  # x along columns, y up from the last row
    assert np.allclose(heights, [(-1, -1), (-1, 1), (-0.6, -1)])
    rocks = model.bodies("rocks")
    assert model.body_mass[rocks] == pytest.approx(2500 / 6) and np.array_equal(model.body_torque[rocks[0]], [0, 0, 1])
    assert np.array_equal(model.body_mass[-2:], [1, 2])


def test_images_of_16_bits_and_bad_ones(tmp_path):
    write_image(tmp_path / "deep.png", [[0, 65535], [0, 0]], "I;16")
    field = HeightField.from_image(tmp_path / "deep.png", (1, 1), 0.0, 2.0)
    assert np.array_equal(field.heights, [(0, 0), (0, 2)])
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "cut.png").write_bytes((tmp_path / "deep.png").read_bytes()[:50])
    for name in ("none.png", "text.png", "cut.png"):
        with pytest.raises(FileError, match=name) as caught:
            HeightField.from_image(tmp_path / name, (1, 1), 0.0, 1.0)
        assert FORM.fullmatch(str(caught.value))


@pytest.mark.parametrize(
    "shape, place, words",
    [
        ('type = "capsule", radius = 1', "body[0].shape.length", ["is required"]),
        ('type = "capsule", radius = 1, length = 1, rounding = 1', "body[0].shape.rounding", ["unknown key"]),
        ('type = "cylinder", radius = 1, heigth = 1', "body[0].shape.heigth", ["Did you mean 'height'?"]),
        ('type = "cone", radius = 1, height = 1, rounding = 0', "body[0]: rounding", ["must be > 0", "sharp"]),
        ('type = "cone", radius = 1, height = -1', "body[0]: Cone.height", ["must be > 0", "-1"]),
        ('type = "elipsoid"', "body[0].shape.type", ["Did you mean 'ellipsoid'?"]),
        ('type = "hull", points = [[0, 0, 0], [1, 0]]', "body[0].shape.points[1]", ["3 items"]),
        ('type = "hull", points = [[0, 0, 0]]', "body[0]: ConvexHull.points", ["at least 4"]),
        ('type = "mesh"', "body[0]: file", ["either file or vertices", "neither"]),
        ('type = "mesh", vertices = [[0, 0, 0]]', "body[0]: triangles", ["is required"]),
        ('type = "mesh", vertices = [[0, 0, 0]], triangles = [], unit = "mm"', "body[0]: unit", ["does not go"]),
        ('type = "mesh", file = "a.stl", triangles = [[0, 1, 2]]', "body[0]: triangles", ["does not go with file"]),
        ('type = "mesh", file = "none.stl"', "body[0]: ", ["none.stl", "No such file"]),
        ('type = "mesh", vertices = [[0, 0, 0]], triangles = [[0, 1]]', "body[0].shape.triangles[0]", ["3 items"]),
        ('type = "height_field", size = [1, 1]', "body[0]: heights", ["either heights or image"]),
        ('type = "height_field", size = [1, 1], image = "a.png"', "body[0]: low", ["is required"]),
        ('type = "height_field", size = [1, 1], heights = [[1, 2], [3]]', "body[0]: HeightField.heights", ["shape"]),
        ('type = "height_field", heights = [[1, 2], [3, 4]]', "body[0].shape.size", ["is required"]),
        ('type = "height_field", size = [1, 1], heights = [[1, 2], [3, 4]]', "body[0]: add_body", ["finite mass"]),
    ],
)
def test_mistakes_in_scene_files(tmp_path, shape, place, words):
    path = tmp_path / "scene.toml"
    path.write_text(f"[[body]]\nmass = 1\nshape = {{{shape}}}")
    with pytest.raises(SceneError) as caught:
        load_scene(path)
    line = str(caught.value)
    assert FORM.fullmatch(line) and line.startswith(f"{path}: {place}")
    for word in words:
        assert word in line


def test_mistakes_in_tables_of_bodies(tmp_path):
    path = tmp_path / "scene.toml"
    ball = 'shape = {type = "sphere", radius = 1}'
    for text, place, word in (
        (f"mass = 1\n{ball}", "copies[0]: position", "packing"),
        ("mass = 1\nposition = [[0, 0, 0]]", "copies[0]: shape", "neither"),
        (f"{ball}\nposition = [[0, 0, 0]]", "copies[0]: add_copies", "either mass or density"),
        (f"mass = 1\nsize = 2\n{ball}\nposition = [[0, 0, 0]]", "copies[0].size", "unknown key"),
    ):
        path.write_text(f"[[copies]]\n{text}")
        with pytest.raises(SceneError) as caught:
            load_scene(path)
        assert FORM.fullmatch(str(caught.value)) and str(caught.value).startswith(f"{path}: {place}")
        assert word in str(caught.value)


# ---------------------------------------------------------------------- bad input


def rocks(**options):
    return SceneBuilder().add_copies(
        options.pop("shapes", Cone(0.1, 0.2)), **({"mass": 1.0, "position": [[0, 0, 1], [0, 0, 2]]} | options)
    )


def cases():
    numbers = (NAN, INF, "1", None, True, [1.0], 1j, 0, -0.1)
    not_lengths = ((1, 2), 1.0, "abc", None, (NAN, 1, 1), (0, 1, 1), (1, -1, 1), (1, 1, "x"))

    def rows(make, values, *words):
        for value in values:
            yield (lambda value=value: make(value)), words

    yield from rows(lambda v: Capsule(v, 1), numbers, "Capsule.radius")
    yield from rows(lambda v: Capsule(1, v), numbers, "Capsule.length", "Sphere")
    for kind in (Cylinder, Cone):
        yield from rows(lambda v, kind=kind: kind(v, 1), numbers, f"{kind.__name__}.radius")
        yield from rows(lambda v, kind=kind: kind(1, v), numbers, f"{kind.__name__}.height")
    yield from rows(Ellipsoid, not_lengths, "Ellipsoid.semi_axes")
    yield from rows(lambda v: Rounded(Box((1, 1, 1)), v), numbers, "Rounded.radius")
    yield from rows(lambda v: Rounded(v, 1), (None, 3, "box", Box), "Rounded.shape", "For example")
    yield from rows(lambda v: Rounded(v, 1), (Sphere(1), Capsule(1, 1)), "Rounded.shape", "larger radius")
    surfaces = (HalfSpace(), HeightField(BUMP, (1, 1)), Mesh(TETRAHEDRON, [(0, 1, 2)]))
    yield from rows(lambda v: Rounded(v, 1), surfaces, "Rounded.shape", "has no rounding")
    yield from rows(lambda v: Rounded(v, 1), (Rounded(Cone(1, 1), 1),), "Rounded.shape", "two radii")
    yield from rows(
        ConvexHull,
        (None, 3, "abc", [], [1, 2, 3], [[1, 2]], [*TETRAHEDRON[:3], (NAN, 0, 0)], [*TETRAHEDRON[:3], (0, INF, 0)]),
        "ConvexHull.points",
    )
    yield from rows(ConvexHull, (TETRAHEDRON[:3],), "at least 4 points", "3 points")
    flat = CUBE * (1, 1, 0)
    line = CUBE * (1, 0, 0)
    turned = rotation.rotate(turn(1), flat) + 7.0
    yield from rows(ConvexHull, (flat, line, turned, CUBE * (1, 1, 1e-12)), "one plane", "thickness", "thin Box")
    yield from rows(ConvexHull, ([(1, 2, 3)] * 5,), "size above 0", "5 equal points")
    yield from rows(
        lambda v: HeightField(v, (1, 1)),
        (None, 3, "abc", [], [1, 2, 3], [[1, 2], [3]], [[1, NAN], [2, 3]], np.zeros((2, 2, 2))),
        "HeightField.heights",
    )
    yield from rows(lambda v: HeightField(v, (1, 1)), ([[1, 2, 3]], [[1], [2]]), "at least 2 rows and 2 columns")
    yield from rows(
        lambda v: HeightField(BUMP, v), (1, (1,), (1, 2, 3), (0, 1), (1, -1), (NAN, 1), "ab"), "HeightField.size"
    )
    for name in ("low", "high"):
        yield from rows(
            lambda v, name=name: HeightField.from_image("a.png", (1, 1), **({"low": 0.0, "high": 1.0} | {name: v})),
            (NAN, "1", None),
            f"HeightField.{name}",
        )
    for make in (rocks, lambda shapes: SceneBuilder().add_body(shapes, mass=1.0)):
        yield from rows(lambda v, make=make: make(shapes=v), (HalfSpace(),), "HalfSpace", "add_static")
        yield from rows(
            lambda v, make=make: make(shapes=v), (HeightField(BUMP, (1, 1)),), "HeightField", "add_static", "Mesh"
        )
        yield from rows(lambda v, make=make: make(shapes=v), (None, 3, [], [3]), "shape", "For example")
    yield from rows(lambda v: rocks(mass=v), (NAN, "1", 0, -1, [1.0], [1.0, -1.0], [1.0, NAN]), "add_copies.mass")
    yield from rows(lambda v: rocks(mass=None, density=v), (NAN, "1", 0, [1.0, 0.0]), "add_copies.density")
    yield from rows(lambda v: rocks(density=v), (1.0,), "either mass or density")
    yield from rows(lambda v: rocks(mass=v), (None,), "either mass or density")
    yield from rows(lambda v: rocks(position=v), ((0, 0, 0), [], [[0, 0]], np.zeros((0, 3))), "add_copies.position")
    yield from rows(lambda v: rocks(orientation=v), ((2, 0, 0, 0), [(1, 0, 0, 0)], "no"), "add_copies.orientation")
    for name in ("velocity", "angular_velocity", "force", "torque"):
        yield from rows(
            lambda v, name=name: rocks(**{name: v}), ((1, 2), (NAN, 0, 0), [[1, 2, 3]], "no"), f"add_copies.{name}"
        )
    yield from rows(lambda v: rocks(locked=v), (["q"], 3), "add_copies.locked")
    yield from rows(lambda v: rocks(group=v), (-1, 2**32), "add_copies.group")
    yield from rows(lambda v: rocks(name=v), ("", 3, "a[1]"), "name")
    yield from rows(lambda v: rocks(material=v), (3, ["default", "default"]), "material")


CASES = list(cases())


@pytest.mark.parametrize("call, words", CASES)
def test_refused_with_place_rule_value_and_remedy(call, words):
    with pytest.raises(SceneError) as caught:
        call()
    text = str(caught.value)
    assert FORM.fullmatch(text), text
    for word in words:
        assert word in text
