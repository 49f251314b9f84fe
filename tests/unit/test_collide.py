"""Pairs against brute force, contact points against geometry worked by hand or by sampling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tumble as tb
from tests.naive.support import outside
from tumble.backends import cpu
from tumble.collide.broadphase import PairSearch
from tumble.collide.contacts import Contacts
from tumble.scene import rotation

SHAPES = {
    "sphere": tb.Sphere(0.4),
    "capsule": tb.Capsule(0.2, 0.6),
    "box": tb.Box((0.8, 0.6, 0.5)),
    "cylinder": tb.Cylinder(0.3, 0.8),
    "cone": tb.Cone(0.4, 0.8),
    "ellipsoid": tb.Ellipsoid((0.5, 0.4, 0.3)),
    "hull": tb.ConvexHull(np.random.default_rng(1).normal(size=(16, 3)) * 0.3),
    "rounded": tb.Rounded(tb.Box((0.6, 0.4, 0.3)), 0.1),
}


def contacts_of(model, dt=1e-3, margin=None):
    """Contacts of the first step."""
    sim = tb.Simulation(model, options=tb.StepOptions(dt=dt, margin=margin))
    sim.step()
    return sim.last.contacts


def placed_pairs(model, h=1e-3, margin=-1.0):
    """Pairs found by the grid, and the boxes they were found with."""
    n = model.body_count
    search = PairSearch(model, cpu)
    state = model.initial.copy()
    free = np.zeros((n, 6))
    free[:, :3] = state.velocity
    matrix = rotation.matrix(state.orientation).reshape(n, 9)
    search.place(state.position, state.orientation, matrix, free, h, margin)
    search.find(free, h, margin)
    found = set()
    table, capacity, number = search.pairs
    for block, count in enumerate(number):
        rows = table[block * capacity : block * capacity + count]
        for i, j in rows:
            pair = (min(i, j), max(i, j))
            assert pair not in found, "a pair was found twice"
            found.add(pair)
    return found, search.box


def brute_pairs(model, box):
    """All pairs of boxes that meet, by comparing everything with everything."""
    m, body, kind = model.shape_count, model.shape_body, model.body_kind
    planes = model.shape_kind == tb.scene.shapes.ShapeKind.HALF_SPACE
    out = set()
    for i in range(m):
        for j in range(i + 1, m):
            a, b = body[i], body[j]
            if a == b or (kind[a] != 2 and kind[b] != 2) or planes[i] or planes[j]:
                continue
            if not (model.body_group[a] & model.body_mask[b]) or not (model.body_group[b] & model.body_mask[a]):
                continue
            if (int(min(a, b)) << 32) + int(max(a, b)) in model.excluded:
                continue
            if np.all(box[i, :3] <= box[j, 3:]) and np.all(box[j, :3] <= box[i, 3:]):
                out.add((i, j))
    return out


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([1.0, 10.0, 100.0]), st.integers(2, 80))
def test_grid_finds_exactly_the_pairs_that_brute_force_finds(seed, ratio, count):
    rng = np.random.default_rng(seed)
    scene = tb.SceneBuilder()
    radius = 0.1 * ratio ** rng.uniform(0, 1, count)
    extent = 2.0 * np.cbrt(np.sum(radius**3))
    scene.add_static(tb.open_box(inner=(extent, extent, extent)))
    scene.add_spheres(
        radius,
        mass=1.0,
        position=rng.uniform(-extent, extent, (count, 3)),
        velocity=rng.normal(size=(count, 3)),
        name="balls",
    )
    scene.add_boxes(
        rng.uniform(0.05, 0.5, (12, 3)) * ratio**0.5,
        mass=1.0,
        position=rng.uniform(-extent, extent, (12, 3)),
        group=2,
        mask=int(rng.integers(0, 4)),
        name="boxes",
    )
    scene.add_body([tb.Placed(tb.Sphere(0.3), (0.2, 0, 0)), tb.Box((0.3, 0.3, 0.3))], mass=1.0, name="dumbbell")
    scene.exclude_pair("dumbbell", "balls")
    model = scene.build()
    found, box = placed_pairs(model, h=float(rng.uniform(1e-3, 1e-1)))
    assert found == brute_pairs(model, box)


def test_planes_see_everything_near_them():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace((0, 0, 1)))
    scene.add_static(tb.HalfSpace((1, 0, 0), offset=-5.0))
    scene.add_spheres(0.5, mass=1.0, position=[(0, 0, 0.5), (-4.5, 0, 3.0), (0, 0, 3.0)])
    c = contacts_of(scene.build())
    assert sorted(zip(c.body_a[: c.count], c.body_b[: c.count])) == [(0, 2), (1, 3)]


def test_a_cube_on_a_plane_has_four_contacts_and_on_a_cube_the_corners_of_what_they_share():
    """A turned cube shares an octagon with the one below: with four of its corners it could tip over the other four."""
    for turn, shared in ((0.0, 4), (0.3, 8), (np.pi / 4, 8)):
        q = rotation.from_axis_angle((0, 0, 1), turn)
        scene = tb.SceneBuilder()
        scene.add_static(tb.HalfSpace())
        scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=(0, 0, 0.5))
        scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=(0, 0, 1.5), orientation=q)
        c = contacts_of(scene.build())
        pairs_found = list(zip(c.body_a[: c.count], c.body_b[: c.count]))
        assert pairs_found.count((0, 1)) == 4 and pairs_found.count((1, 2)) == shared
        np.testing.assert_allclose(c.normal[:, : c.count], np.tile([[0], [0], [1]], c.count), atol=1e-12)
        np.testing.assert_allclose(c.gap[: c.count], 0.0, atol=1e-12)


def test_keys_are_stable_between_steps():
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(1.5, 1.5, 2.0)))
    scene.add_boxes(
        (0.3, 0.3, 0.3), density=500.0, position=tb.grid_points((3, 3, 2), 0.4, origin=(0, 0, 0.2), jitter=0.01)
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=5e-3))
    sim.run(until=1.5)
    report = sim.step()
    assert report.contacts > 30
    assert report.warm_started == report.contacts


@pytest.mark.parametrize("first", list(SHAPES))
@pytest.mark.parametrize("second", list(SHAPES))
def test_contact_points_lie_between_the_surfaces(first, second):
    """Half the gap back and forth along the normal lies the surface of each shape; the nearest point is among them."""
    rng = np.random.default_rng(5)
    a, b = SHAPES[first], SHAPES[second]
    q = rng.normal(size=(2, 100, 4))
    q /= np.linalg.norm(q, axis=2)[..., None]
    found = 0
    for k in range(100):
        scene = tb.SceneBuilder()
        offset = rng.normal(size=3)
        offset *= rng.uniform(0.5, 1.3) / np.linalg.norm(offset)
        scene.add_static(a, orientation=q[0, k])
        scene.add_body(b, mass=1.0, position=offset, orientation=q[1, k])
        c = scene.contacts(margin=0.05)
        assert len(c) <= 12  # what the faces of two of these can share
        if not len(c):
            continue
        np.testing.assert_allclose(np.linalg.norm(c.normal, axis=1), 1.0, atol=1e-12)
        exact = tb.distance(a, ((0, 0, 0), q[0, k]), b, (offset, q[1, k]))
        assert c.gap.min() == pytest.approx(exact.gap, abs=1e-5)
        for side, shape, p, turn in ((-1, a, np.zeros(3), q[0, k]), (1, b, offset, q[1, k])):
            surface = c.point + side * 0.5 * c.gap[:, None] * c.normal
            many = np.tile(p, (len(c), 1)), np.tile(turn, (len(c), 1))
            # Deep in curved shapes (they start up to half their size inside) the point is that of an iteration.
            assert outside(shape, many, surface).max() <= 5e-4
        found += len(c)
    assert found > 15


def test_flat_contacts_have_well_spread_points():
    """Standing, lying, edge on face, hull on hull: the points are the corners of the contact area."""
    side = rotation.from_axis_angle((1, 0, 0), np.pi / 2)
    corner_hull = tb.ConvexHull(np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.5)
    floors = {
        "plane": (tb.HalfSpace(), 0.0),
        "box": (tb.Box((4, 4, 1)), -0.5),
        "hull": (tb.ConvexHull(corner_hull.points * (4, 4, 1)), -0.5),
        "field": (tb.HeightField(np.zeros((9, 9)), (4, 4)), 0.0),
        "cylinder": (tb.Cylinder(2.0, 1.0), -0.5),
    }
    bodies = {
        "standing": (tb.Cylinder(0.3, 1.0), 0.5, (1, 0, 0, 0), 8, 2 * np.sqrt(2) * 0.3**2),
        "lying": (tb.Cylinder(0.3, 1.0), 0.3, side, 2, 1.0),
        "capsule": (tb.Capsule(0.3, 1.0), 0.3, side, 2, 1.0),
        "cone": (tb.Cone(0.3, 1.0), 0.5, (1, 0, 0, 0), 8, 2 * np.sqrt(2) * 0.3**2),
        "hull": (corner_hull, 0.5, (1, 0, 0, 0), 4, 1.0),
        "box": (tb.Box((1, 1, 1)), 0.5, (1, 0, 0, 0), 4, 1.0),
        "rounded": (tb.Rounded(tb.Box((0.8, 0.8, 0.8)), 0.1), 0.5, (1, 0, 0, 0), 4, 0.64),
    }
    for floor, (ground, level) in floors.items():
        for name, (shape, height, turn, count, extent) in bodies.items():
            scene = tb.SceneBuilder()
            scene.add_static(ground, position=(0, 0, level))
            scene.add_body(shape, mass=1.0, position=(0.013, 0.021, height), orientation=turn)
            c = scene.contacts(margin=1e-6)
            # On a height field points come from several triangles; some stay that lie between the corners.
            assert count <= len(c) <= count * (2 if floor == "field" else 1), (floor, name)
            np.testing.assert_allclose(c.normal, np.tile([0.0, 0.0, 1.0], (len(c), 1)), atol=1e-9)
            np.testing.assert_allclose(c.gap, 0.0, atol=1e-9)
            if count == 2:
                apart = np.linalg.norm(c.point[:, None] - c.point, axis=2).max()
                assert apart == pytest.approx(extent, abs=1e-6), (floor, name)
            else:
                x, y = (c.point - c.point.mean(axis=0)).T[:2]
                order = np.argsort(np.arctan2(y, x))
                x, y = x[order], y[order]
                area = 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
                assert area >= extent * (1.0 - 1e-6), (floor, name)
                assert area <= extent * (1.0 + (0.12 if floor == "field" else 1e-6)), (floor, name)


def test_contacts_buffer_grows_once():
    c = Contacts()
    c.reserve(1000)
    kept = c.normal
    c.reserve(1100)
    assert c.normal is kept and c.capacity >= 1100


def test_groups_and_excluded_pairs():
    def count(**more):
        scene = tb.SceneBuilder()
        scene.add_static(tb.HalfSpace(), name="floor", **more.pop("floor", {}))
        scene.add_body(tb.Sphere(0.5), mass=1.0, position=(0, 0, 0.5), name="ball", **more)
        return scene

    assert contacts_of(count().build()).count == 1
    assert contacts_of(count(group=2, mask=2).build()).count == 0
    assert contacts_of(count(group=2, mask=3, floor={"mask": 2}).build()).count == 1
    scene = count()
    scene.exclude_pair("floor", "ball")
    assert contacts_of(scene.build()).count == 0


@pytest.mark.parametrize("floor", [tb.HalfSpace(), tb.Box((4, 4, 2))])
def test_the_margin_is_a_users_word(floor):
    """A gap of 0.08 m is a contact for margin 0.1 and none for 0.05, over a plane as over a box."""
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_static(floor, position=(0, 0, 0) if isinstance(floor, tb.HalfSpace) else (0, 0, -1))
    scene.add_body(tb.Sphere(0.5), mass=1.0, position=(0, 0, 0.58))
    model = scene.build()
    assert contacts_of(model, margin=0.1).count == 1
    assert contacts_of(model, margin=0.05).count == 0


def test_contacts_are_sorted_by_key_even_for_a_body_of_many_shapes():
    rng = np.random.default_rng(3)
    bed = tb.grid_points((20, 20, 1), 0.1)
    scene = tb.SceneBuilder()
    scene.add_static([tb.Placed(tb.Sphere(0.05), tuple(p)) for p in bed[rng.permutation(400)]], name="bed")
    scene.add_spheres(0.05, mass=1.0, position=bed[rng.permutation(400)] + np.array([0.02, 0.01, 0.0975]))
    c = contacts_of(scene.build())
    assert c.count > 800
    key = np.stack([c.body_a[: c.count], c.body_b[: c.count], c.feature[: c.count]])
    assert np.array_equal(np.lexsort(key[::-1]), np.arange(c.count))
    assert len(np.unique(key, axis=1).T) == c.count


def test_faces_that_meet_along_a_line_have_no_point_below_the_gap():
    """A side lies on a side of the other to rounding: once found as a point 17 mm deep between boxes 2 mm apart."""
    scene = tb.SceneBuilder()
    scene.add_body(
        tb.Box((0.05273923374642908, 0.03691746362250036, 0.02636961687321454)), mass=1.0,
        position=[-0.13020874013496514, -0.015820475581230606, 0.013184808436607263],
        orientation=[-1.113823834498844e-18, 0.9346296886002328, 0.3556224756494334, -1.213337259023675e-17],
    )  # fmt: skip
    scene.add_body(
        tb.Box((0.04067171150610929, 0.028470198054276502, 0.020335855753054646)), mass=1.0,
        position=[-0.08564749606163588, 0.008610161948945361, 0.014235099002228002],
        orientation=[0.7058071682496249, -0.7058071675645686, 0.04285139121574603, -0.042851391258649535],
    )  # fmt: skip
    gap = scene.contacts(margin=0.0021).gap
    assert len(gap) and gap.min() > 0.00208


def test_no_point_of_nearly_aligned_boxes_is_deeper_than_their_distance():
    """Sides on sides up to tilts of rounding size; along the common normal no point can be nearer than the nearest."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = rng.uniform(0.02, 0.06, (2, 3))
        angle = rng.choice([0.0, 1e-10, 1e-9, 1e-8, 1e-6]) * rng.normal(size=3)
        turn = np.array([1.0, *(0.5 * angle)])
        turn = turn / np.linalg.norm(turn)
        edge = 0.5 * (a + b)
        beside = edge * [rng.choice([0.0, 1.0 - 1e-9, 1.0, 1.0 - 1e-7]), 1.0, 0.0]
        gap = rng.uniform(0.0, 0.002)
        scene = tb.SceneBuilder()
        scene.add_body(tb.Box(tuple(a)), mass=1.0)
        scene.add_body(
            tb.Box(tuple(b)), mass=1.0, position=beside + np.array([0.0, 0.0, edge[2] + gap]), orientation=turn
        )
        found = scene.contacts(margin=0.01).gap
        assert found.size and found.min() > gap - 1e-7
