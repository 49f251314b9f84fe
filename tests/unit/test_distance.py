"""Gap and normal of every pair of convex shapes: against coal, and against bounds that need no other program.

For any unit vector n the separation along n is a lower bound of the distance (and minus an upper bound of the depth).
So a gap that equals the separation along the normal given, and for separated shapes the distance of two points of the
shapes, is proved; only the depth of overlapping shapes needs the oracle to know that no other way out is shorter.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tumble as tb
from tests.naive.support import gaps, outside, separation
from tumble.scene import rotation

coal = pytest.importorskip("coal", reason="coal, the collision oracle, is not installed")

rng = np.random.default_rng(0)
HULL = rng.normal(size=(20, 3)) * 0.4


def shapes(scale=1.0):
    return {
        "sphere": tb.Sphere(0.5 * scale),
        "capsule": tb.Capsule(0.3 * scale, 0.8 * scale),
        "box": tb.Box((1.0 * scale, 0.7 * scale, 0.5 * scale)),
        "cylinder": tb.Cylinder(0.4 * scale, 0.9 * scale),
        "cone": tb.Cone(0.5 * scale, 1.0 * scale),
        "ellipsoid": tb.Ellipsoid((0.7 * scale, 0.5 * scale, 0.3 * scale)),
        "hull": tb.ConvexHull(HULL * scale),
    }


NAMES = list(shapes())
PAIRS = list(itertools.combinations_with_replacement(NAMES, 2))
CURVED = ("cylinder", "cone", "ellipsoid")
BY_ITERATION = 1e-4
CLOSED = [("sphere", "cylinder")]
"""Pairs with a curved shape for which both programs have closed forms."""


def coal_shape(shape):
    match shape:
        case tb.Sphere():
            return coal.Sphere(shape.radius)
        case tb.Capsule():
            return coal.Capsule(shape.radius, shape.length)
        case tb.Box():
            return coal.Box(*shape.size)
        case tb.Cylinder():
            return coal.Cylinder(shape.radius, shape.height)
        case tb.Cone():
            return coal.Cone(shape.radius, shape.height)
        case tb.Ellipsoid():
            return coal.Ellipsoid(*shape.semi_axes)
    points = coal.StdVec_Vec3s()
    for p in shape.points:
        points.append(p)
    return coal.Convex.convexHull(points, True, None)


def centre_inside(a, b, pose_a, pose_b):
    """A sphere whose centre lies inside a cylinder: coal's formula for this pair then gives a longer way out than
    there is (along the radius though the cap is nearer). As an ellipsoid the sphere takes its general method."""
    if not (isinstance(a, tb.Sphere) and isinstance(b, tb.Cylinder)):
        return np.zeros(len(pose_a[0]), bool)
    c = rotation.rotate(rotation.conjugate(pose_b[1]), pose_a[0] - pose_b[0])
    return (np.hypot(c[:, 0], c[:, 1]) < 1.001 * b.radius) & (np.abs(c[:, 2]) < 0.5005 * b.height)


def oracle(a, b, pose_a, pose_b):
    """coal's signed distance and normal."""
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance, request.epa_tolerance = 1e-10, 1e-6
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    ca, cb = coal_shape(a), coal_shape(b)
    inside = centre_inside(a, b, pose_a, pose_b)
    if inside.any():
        round_a = coal.Ellipsoid(*(a.radius,) * 3)
    ma, mb = rotation.matrix(pose_a[1]), rotation.matrix(pose_b[1])
    n = len(ma)
    gap, normal = np.zeros(n), np.zeros((n, 3))
    for k in range(n):
        result = coal.DistanceResult()
        ta, tb_ = coal.Transform3s(ma[k], pose_a[0][k]), coal.Transform3s(mb[k], pose_b[0][k])
        gap[k] = coal.distance(round_a if inside[k] else ca, ta, cb, tb_, request, result)
        normal[k] = result.normal
    return gap, normal


def random_turns(rng, n):
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def right_turns(rng, n):
    """Orientations that map axes on axes, so that faces and edges are parallel."""
    quarter = [rotation.from_axis_angle(axis, angle) for axis in np.eye(3) for angle in (0, np.pi / 2, np.pi)]
    q = np.array([rotation.multiply(a, b) for a in quarter for b in quarter])
    return q[rng.integers(0, len(q), n)]


def poses(rng, kind, n, reach):
    """Poses of a (at random) and of b: apart, side by side with parallel faces, or deep inside."""
    turn_a = random_turns(rng, n)
    at = rng.normal(size=(n, 3))
    d = rng.normal(size=(n, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    if kind == "deep":
        return (at, turn_a), (at + 0.02 * reach * d * rng.uniform(0, 1, (n, 1)), random_turns(rng, n))
    if kind == "parallel":
        turn_b = rotation.multiply(turn_a, right_turns(rng, n))
        steps = rng.integers(-4, 5, (n, 3)) * 0.25 * reach / 2
        return (at, turn_a), (at + rotation.rotate(turn_a, steps), turn_b)
    return (at, turn_a), (at + d * rng.uniform(0.05, 2.2, (n, 1)) * reach / 2, random_turns(rng, n))


def check(name, a, b, pose_a, pose_b, tolerance, curved):
    """Compare (lengths in units of the larger shape); returns (comparisons, distances, normals left out)."""
    gap, normal, point = gaps(a, b, pose_a, pose_b)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-12)
    # The gap is the separation along the normal, to rounding or to where an iteration stops: a valid bound.
    rounding = 1e-7 if curved else 1e-9
    mine = separation(a, b, pose_a, pose_b, normal)
    assert np.abs(mine - gap).max() <= rounding, name
    # Separated: the two points lie on the shapes, so the gap is an upper bound as well, and exact.
    apart = gap > 1e-9
    if apart.any():
        other = (point + gap[:, None] * normal)[apart]
        pick = [tuple(v[apart] for v in pose) for pose in (pose_a, pose_b)]
        for shape, pose, x in ((a, pick[0], point[apart]), (b, pick[1], other)):
            assert outside(shape, pose, x).max() <= (1e-5 if curved else 1e-9), name
    theirs, their_normal = oracle(a, b, pose_a, pose_b)
    tolerance = np.where(centre_inside(a, b, pose_a, pose_b), BY_ITERATION, tolerance)
    finite = np.isfinite(theirs) & (np.abs(theirs) < 1e10) & (np.abs(np.linalg.norm(their_normal, axis=1) - 1) < 1e-6)
    unit = np.where(finite[:, None], their_normal, [0.0, 0.0, 1.0])
    bound = separation(a, b, pose_a, pose_b, unit)
    # No normal of coal's separates better than ours (which stops when the polytope of EPA is full).
    assert np.all((mine >= bound - (1e-5 if curved else rounding))[finite]), (name, (bound - mine)[finite].max())
    # Left out, and counted: coal gave up, its own normal does not bear out its distance, or ours is a shorter way out.
    excused = ~finite | (np.abs(bound - theirs) > tolerance) | (mine > bound + tolerance)
    differs = ~finite | (np.abs(gap - theirs) > tolerance)
    assert np.all(excused[differs]), (name, np.abs(gap - theirs)[differs & ~excused].max())
    # Normals, where coal's are exact (its EPA for curved shapes is good to the root of its tolerance only) and unique:
    # another one that separates as well to rounding (parallel edges, equal depths) is as right. Left out, and counted,
    # are those of coal's that separate less well than ours, and a few of ours of curved shapes where rounding stops the
    # iteration at 1e-9 of the distance, hence at its root in angle.
    clear = finite & ~differs & (np.abs(theirs) > 1e-3) & (apart | (not curved))
    close = np.linalg.norm(normal - unit, axis=1) <= 1e-4
    equal, worse = np.abs(mine - bound) <= (2e-9 if curved else 1e-10), bound < mine
    assert np.all((close | equal | worse)[clear]), name
    return len(gap), int(differs.sum()), int((clear & ~close).sum())


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_ten_thousand_poses_of_every_pair_agree_with_coal(first, second):
    rng = np.random.default_rng(abs(hash_of(first, second)))
    a, b = shapes()[first], shapes()[second]
    # Where both are exact: 1e-6 of the size. Curved shapes are found by iteration in coal (its EPA stops at 1e-6).
    curved = first in CURVED or second in CURVED
    by_iteration = curved and (first, second) not in CLOSED
    tolerance = BY_ITERATION if by_iteration else 1e-6
    total, left, ambiguous = 0, 0, 0
    for kind, n in (("apart", 5500), ("parallel", 1500), ("deep", 1000)):
        pose_a, pose_b = poses(rng, kind, n, 2.0)
        counts = check(f"{first} {second} {kind}", a, b, pose_a, pose_b, tolerance, curved)
        total, left = total + counts[0], left + counts[1]
        ambiguous += counts[2] if kind == "apart" else 0  # parallel and concentric ones are often not unique
    pose_a, pose_b = poses(rng, "apart", 1000, 2.0)
    gap, normal, _ = gaps(a, b, pose_a, pose_b)
    pose_b = (pose_b[0] - gap[:, None] * normal, pose_b[1])  # moved to touch exactly
    counts = check(f"{first} {second} touching", a, b, pose_a, pose_b, tolerance, curved)
    total, left = total + counts[0], left + counts[1]
    for small_a, small_b in ((1.0, 1e-3), (1e-3, 1.0)):
        one, two = shapes(small_a)[first], shapes(small_b)[second]
        pose_a, pose_b = poses(rng, "apart", 500, 1.0)
        counts = check(f"{first} {second} sizes {small_a}:{small_b}", one, two, pose_a, pose_b, tolerance, curved)
        total, left = total + counts[0], left + counts[1]
    assert total >= 10000
    assert left <= 0.01 * total, f"{left} of {total} comparisons left out"
    assert ambiguous <= 0.01 * 5500, f"{ambiguous} normals of 5500 left out"


def hash_of(first, second):
    return 100 * NAMES.index(first) + NAMES.index(second)


ROUNDED = {
    "box": tb.Rounded(tb.Box((0.8, 0.5, 0.3)), 0.1),
    "cylinder": tb.Rounded(tb.Cylinder(0.3, 0.7), 0.1),
    "cone": tb.Rounded(tb.Cone(0.4, 0.8), 0.1),
    "ellipsoid": tb.Rounded(tb.Ellipsoid((0.6, 0.4, 0.2)), 0.1),
    "hull": tb.Rounded(tb.ConvexHull(0.7 * HULL), 0.1),
}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations_with_replacement(ROUNDED, 2)))
def test_rounded_shapes_are_proved_by_two_bounds(first, second):
    """Shallow overlaps too: as long as the cores are apart, distance of the cores less the radii is exact."""
    rng = np.random.default_rng(hash_of(first, second))
    a, b = ROUNDED[first], ROUNDED[second]
    pose_a, pose_b = poses(rng, "apart", 3000, 2.4)
    gap, normal, point = gaps(a, b, pose_a, pose_b)
    rounding = 1e-7 if (first in CURVED or second in CURVED) else 1e-9  # curved: where the iteration stops
    assert np.abs(separation(a, b, pose_a, pose_b, normal) - gap).max() <= rounding
    cores = gap > -0.2 + 1e-6
    assert 500 < cores.sum() < 3000
    pick = [tuple(v[cores] for v in pose) for pose in (pose_a, pose_b)]
    other = (point + gap[:, None] * normal)[cores]
    assert outside(a, pick[0], point[cores]).max() <= 1e-5
    assert outside(b, pick[1], other).max() <= 1e-5


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(PAIRS), st.sampled_from(["apart", "parallel", "deep"]))
def test_swapping_and_moving_both_changes_nothing_beyond_rounding(seed, pair, kind):
    rng = np.random.default_rng(seed)
    a, b = shapes()[pair[0]], shapes()[pair[1]]
    pose_a, pose_b = poses(rng, kind, 1, 2.0)
    one = tb.distance(a, (pose_a[0][0], pose_a[1][0]), b, (pose_b[0][0], pose_b[1][0]))
    two = tb.distance(b, (pose_b[0][0], pose_b[1][0]), a, (pose_a[0][0], pose_a[1][0]))
    q, shift = random_turns(rng, 1)[0], rng.normal(size=3)
    moved = [(rotation.rotate(q, p[0][0]) + shift, rotation.multiply(q, p[1][0])) for p in (pose_a, pose_b)]
    three = tb.distance(a, moved[0], b, moved[1])
    # Curved depths come from an iteration that stops at 1e-11 of the size and may choose among equal ones.
    tolerance = 1e-7 if (pair[0] in CURVED or pair[1] in CURVED) else 1e-11
    assert two.gap == pytest.approx(one.gap, abs=tolerance)
    assert three.gap == pytest.approx(one.gap, abs=tolerance)
    if one.gap > 1e-3 and kind == "apart":
        np.testing.assert_allclose(two.normal, -one.normal, atol=1e-5)
        np.testing.assert_allclose(three.normal, rotation.rotate(q, one.normal), atol=1e-5)


def test_distance_of_everything_else():
    """Planes, meshes and fields, worked by hand."""
    up = tb.HalfSpace()
    assert tb.distance(tb.Cylinder(0.5, 2), (0, 0, 3), up, None).gap == pytest.approx(2.0, abs=1e-15)
    assert tb.distance(up, None, tb.Cylinder(0.5, 2), (0, 0, 3)).gap == pytest.approx(2.0, abs=1e-15)
    field = tb.HeightField(np.zeros((11, 11)), (10, 10))
    found = tb.distance(tb.Sphere(0.5), (0.3, 0.2, 3), field, None)
    assert found.gap == pytest.approx(2.5, abs=1e-14)
    np.testing.assert_allclose(found.point_a, (0.3, 0.2, 2.5), atol=1e-14)
    np.testing.assert_allclose(found.point_b, (0.3, 0.2, 0.0), atol=1e-14)
    np.testing.assert_allclose(found.normal, (0, 0, -1), atol=1e-14)
    box = tb.ConvexHull(np.array(list(itertools.product((-0.5, 0.5), repeat=3))))
    cube = tb.Mesh(box.points, box.triangles)
    for shape in (tb.Sphere(0.25), tb.Box((0.5, 0.5, 0.5)), cube.scaled(0.5)):
        found = tb.distance(shape, (2.0, 0.1, 0.2), cube, None)
        assert found.gap == pytest.approx(1.25, abs=1e-12)
        np.testing.assert_allclose(found.normal, (-1, 0, 0), atol=1e-12)
    # Over an edge and over a corner: the nearest points are those of the solid cube.
    assert tb.distance(tb.Sphere(0.1), (1.5, 1.5, 0.2), cube, None).gap == pytest.approx(np.sqrt(2) - 0.1, abs=1e-12)
    assert tb.distance(tb.Sphere(0.1), (1.5, 1.5, 1.5), cube, None).gap == pytest.approx(np.sqrt(3) - 0.1, abs=1e-12)
    assert tb.distance(cube, (0, 0, 2.0), up, None).gap == pytest.approx(1.5, abs=1e-14)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tb.distance(tb.HalfSpace(), None, tb.HalfSpace(), None), "bounded"),
        (lambda: tb.distance(tb.Sphere(1), (0, 0), tb.Sphere(1), None), "pose_a"),
        (lambda: tb.distance(tb.Sphere(1), None, tb.Sphere(1), ((0, 0, 0), (1, 1, 0, 0))), "pose_b"),
        (lambda: tb.distance(tb.Sphere(1), (0, 0, float("nan")), tb.Sphere(1), None), "finite"),
        (lambda: tb.distance(tb.Sphere(1), tb.Placed(tb.Sphere(1)), tb.Sphere(1), None), "Placed"),
        (lambda: tb.distance(3.0, None, tb.Sphere(1), None), "shape"),
    ],
)
def test_bad_questions_are_named(call, words):
    with pytest.raises(tb.TumbleError, match=words):
        call()
