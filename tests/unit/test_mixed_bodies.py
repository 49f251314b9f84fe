"""Bodies of different shapes in one call: the same, to the bit, as bodies added one by one."""

import numpy as np
import pytest

import tumble as tb
from tests.unit.test_replicate import differences
from tumble.errors import SceneError

RNG = np.random.default_rng(5)
CUBE = np.array([(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
TILT = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
GRID = np.array([(x, y, z) for x in range(4) for y in range(3) for z in range(3)], float)
RING = np.stack([f(np.linspace(0, 2 * np.pi, 32, endpoint=False)) for f in (np.cos, np.sin, np.zeros_like)], axis=1)
SETS = [
    *RNG.normal(size=(20, 12, 3)),
    *(RNG.normal(size=(k, 3)) * s for k, s in ((4, 1e-3), (6, 10.0), (40, 1.0), (300, 0.1))),
    CUBE,
    CUBE @ TILT * 0.01 + 5.0,
    np.vstack([CUBE, CUBE + 1e-12]),
    GRID,
    GRID @ TILT,
    np.vstack([RING, RING + np.array([0, 0, 1])]) @ TILT,
    np.round(RNG.normal(size=(200, 3)), 1),
]
"""Random points, points in faces and on edges, doubled points, many corners a face."""


def test_many_hulls_are_those_made_one_by_one():
    for one, same in zip(map(tb.ConvexHull, SETS), tb.ConvexHull.many(SETS), strict=True):
        for a, b in zip(one.geometry, same.geometry):
            assert a.dtype == b.dtype and np.array_equal(a, b) and not b.flags.writeable
        assert np.array_equal(one.points, same.points)
        assert one.volume == same.volume and one.smallest == same.smallest and one.bound == same.bound
        assert np.array_equal(one.center, same.center) and np.array_equal(one.unit_inertia, same.unit_inertia)


def test_many_hulls_from_one_array():
    points = RNG.normal(size=(700, 8, 3))  # more than are merged in one go
    hulls = tb.ConvexHull.many(points)
    assert len(hulls) == 700 and tb.ConvexHull.many([]) == []
    for k in (0, 499, 500, 699):
        assert np.array_equal(hulls[k].points, tb.ConvexHull(points[k]).points)


FLAT = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0.0)])


@pytest.mark.parametrize(
    "points, text",
    [
        (3, "ConvexHull.many: needs sets of points (got 3)"),
        (np.zeros((2, 3)), "ConvexHull.many.points: must have shape (n, n, 3) (got shape (2, 3))"),
        (np.full((2, 5, 3), np.nan), "ConvexHull.many.points: must be finite (got nan at index [0, 0, 0])"),
        ([CUBE, "no"], "ConvexHull.many.points[1]: must be numbers of shape (n, 3) (got 'no')"),
        ([CUBE, CUBE[:3]], "ConvexHull.many: points[1]: ConvexHull.points: needs at least 4 points (got 3 points)"),
        ([CUBE, CUBE, FLAT], "ConvexHull.many: points[2]: ConvexHull.points: must not lie in one plane"),
        ([CUBE * 0.0], "ConvexHull.many: points[0]: ConvexHull.points: must have a size above 0 m"),
        ([CUBE, CUBE * 1e-40], "ConvexHull.many: points[1]: ConvexHull.points (largest extent): must be >= 1e-30 m"),
    ],
)
def test_a_bad_hull_among_many_is_named(points, text):
    with pytest.raises(SceneError) as caught:
        tb.ConvexHull.many(points)
    assert text in str(caught.value)


def shapes():
    hulls = tb.ConvexHull.many(SETS)
    turned = tb.Placed(hulls[6], (0.1, 0.2, 0.3), (0.6, 0.8, 0, 0))
    return [
        *hulls,
        hulls[0],  # shared
        tb.Sphere(0.1),
        tb.Box((1, 2, 3)),
        tb.Capsule(0.1, 0.2),
        tb.Cone(0.3, 1.0),
        tb.Cylinder(0.1, 2.0),
        tb.Ellipsoid((1, 2, 3)),
        tb.Rounded(hulls[3], 0.1),
        tb.Placed(hulls[7], (1, 0, 0), (0, 0.6, 0, 0.8)),
        [tb.Sphere(0.1), tb.Placed(tb.Box((0.2, 0.3, 0.4)), (1, 2, 3))],
        [hulls[5], turned, tb.Placed(tb.Cone(0.1, 0.2), (0, 0, 1))],
    ]


@pytest.mark.parametrize("given", ["mass", "density"])
def test_mixed_bodies_are_those_added_one_by_one(given):
    kinds = shapes()
    count = len(kinds)
    turns = RNG.normal(size=(count, 4))
    columns = {
        "position": 50.0 * RNG.normal(size=(count, 3)),
        "orientation": turns / np.linalg.norm(turns, axis=1)[:, None],
        "velocity": RNG.normal(size=(count, 3)),
        "angular_velocity": RNG.normal(size=(count, 3)),
        "force": RNG.normal(size=(count, 3)),
        "torque": RNG.normal(size=(count, 3)),
        given: RNG.uniform(1.0, 3.0, count),
    }
    materials = [tb.Material(friction=0.1 * k) for k in range(3)]
    own = [materials[k % 3] for k in range(count)]
    same = dict(locked=["x", "rz"], group=2, mask=6)
    one_by_one, together = tb.SceneBuilder(), tb.SceneBuilder()
    for k, kind in enumerate(kinds):
        row = {name: column[k] for name, column in columns.items()}
        one_by_one.add_body(kind, **row, **same, material=[own[k]] * len(kind) if isinstance(kind, list) else own[k])
    bodies = together.add_bodies(kinds, **columns, **same, material=own)
    assert bodies == range(count)
    assert differences(one_by_one.build(), together.build()) == ["names"]


def test_mixed_bodies_take_joints_and_contacts():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_bodies(
        [tb.Box((1, 1, 1)), [tb.Sphere(0.5)], tb.Cone(0.5, 1)], position=[(0, 0, 1), (2, 0, 1), (4, 0, 2)], mass=1
    )
    scene.add_joint("spherical", 1, 2, anchor=(1, 0, 1))
    with pytest.raises(SceneError, match=r"the anchors of the two bodies must meet at the start \(got 1.58114 m apart"):
        scene.add_joint("spherical", 2, 3, anchor_a=(0.5, 0, 0), anchor_b=(0, 0, -1.0 / 2))
    gaps = scene.contacts(margin=0.6).gap
    assert sorted(gaps.round(12)) == [0.5] * 5


BALL = tb.Sphere(0.5)
TWO = [(0, 0, 0), (5, 0, 0)]
APART = [tb.Placed(tb.Sphere(1e-12), (x, x, 0)) for x in (-1e9, 1e9)]
BAD = {
    "one shape": (
        dict(shapes=BALL),
        "add_bodies: needs the shapes of each body (got Sphere(radius=0.5))",
    ),
    "too few": (dict(shapes=[BALL]), "add_bodies.shapes: needs one entry a body (got 1 for 2 positions)"),
    "no shape": (
        dict(shapes=[BALL, 3]),
        "add_bodies.shapes[1]: must be a shape or a non-empty sequence of shapes (got 3)",
    ),
    "none": (dict(shapes=[None, BALL]), "add_bodies.shapes[0]: must be a shape"),
    "empty": (dict(shapes=[BALL, []]), "add_bodies.shapes[1]: must be a shape or a non-empty"),
    "half-space": (dict(shapes=[BALL, tb.HalfSpace()]), "add_bodies.shapes[1]: a HalfSpace has no finite mass"),
    "apart": (dict(shapes=[BALL, APART]), "add_bodies.shapes[1]: must have principal moments > 0 kg m^2"),
    "masses": (dict(mass=[1.0, -1.0]), "add_bodies.mass: must be > 0 kg (got -1.0 at index 1)"),
    "both": (dict(density=1.0), "add_bodies: needs either mass or density"),
    "densities": (dict(mass=None, density=[1.0]), "add_bodies.density: must have shape (2,)"),
    "materials": (
        dict(material=["default"]),
        "add_bodies.material: needs one material or 2 (got 1). Give one for each body",
    ),
    "material": (dict(material="ice"), "add_bodies: unknown material (got 'ice')"),
    "orientations": (
        dict(orientation=[(1, 0, 0, 0), (2, 0, 0, 0)]),
        "add_bodies.orientation: must be a unit quaternion",
    ),
    "velocity": (dict(velocity=[(1, 0, 0)]), "add_bodies.velocity: must have shape (2, 3)"),
    "position": (dict(position=(0, 0, 0)), "add_bodies.position"),
    "name": (dict(name="a[1]"), "must be a text without brackets"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_mixed_bodies_are_named(case):
    change, text = BAD[case]
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(name="default"))
    given = {"shapes": [BALL, BALL], "position": TWO, "mass": 1.0, **change}
    with pytest.raises(SceneError) as caught:
        scene.add_bodies(given.pop("shapes"), **given)
    assert text in str(caught.value)
    with pytest.raises(SceneError, match="a scene needs at least one body"):
        scene.build()
