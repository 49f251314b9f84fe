"""Pairs against brute force, contact points against geometry worked by hand or by sampling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tumble as tb
from tumble.backends import cpu
from tumble.collide.broadphase import PairSearch
from tumble.collide.contacts import Contacts
from tumble.kernels import boxes, pairs
from tumble.scene import rotation

IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


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
    for block, count in enumerate(search.count):
        rows = search.pair[block * search.capacity : block * search.capacity + count]
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


def test_a_cube_on_a_plane_and_on_a_cube_has_four_contacts():
    for turn in (0.0, 0.3, np.pi / 4):
        q = rotation.from_axis_angle((0, 0, 1), turn)
        scene = tb.SceneBuilder()
        scene.add_static(tb.HalfSpace())
        scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=(0, 0, 0.5))
        scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=(0, 0, 1.5), orientation=q)
        c = contacts_of(scene.build())
        pairs_found = list(zip(c.body_a[: c.count], c.body_b[: c.count]))
        assert pairs_found.count((0, 1)) == 4 and pairs_found.count((1, 2)) == 4
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


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_sphere_box_distance_against_sampling(seed):
    """The nearest point of a fine grid on the box's surface is never nearer than the gap and soon as near."""
    rng = np.random.default_rng(seed)
    half = rng.uniform(0.2, 1.0, 3)
    q = rng.normal(size=4)
    m = rotation.matrix(q / np.linalg.norm(q))
    center, p, r = rng.uniform(-2, 2, 3), rng.uniform(-0.5, 0.5, 3), rng.uniform(0.05, 0.5)
    gap, n = boxes.sphere_box(tuple(center), r, tuple(p), tuple(m.ravel()), tuple(half))
    assert np.linalg.norm(n) == pytest.approx(1.0)
    s = np.linspace(-1, 1, 81)
    faces = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            u, v = np.meshgrid(s, s)
            f = np.zeros((u.size, 3))
            f[:, axis], f[:, axis - 1], f[:, axis - 2] = side, u.ravel(), v.ravel()
            faces.append(f * half)
    surface = p + np.concatenate(faces) @ m.T
    distance = np.linalg.norm(surface - center, axis=1).min()
    inside = np.all(np.abs((center - p) @ m) < half)
    nearest = (-distance if inside else distance) - r
    spacing = half.max() / 40
    assert abs(gap - nearest) <= spacing


@settings(max_examples=150)
@given(st.integers(0, 10**6))
def test_box_pairs_do_not_depend_on_order_or_frame(seed):
    """Swapping the boxes turns the normal round; moving and turning both moves the contact along."""
    rng = np.random.default_rng(seed)
    sa, sb = rng.uniform(0.2, 1.0, 3), rng.uniform(0.2, 1.0, 3)
    qa, qb, qw = (v / np.linalg.norm(v) for v in rng.normal(size=(3, 4)))
    ma, mb, mw = rotation.matrix(qa), rotation.matrix(qb), rotation.matrix(qw)
    pa, pb, shift = rng.normal(size=(3, 3))

    def axis(p, m, s, q, n, t):
        return boxes.box_box_axis(tuple(p), tuple(m.ravel()), tuple(s), tuple(q), tuple(n.ravel()), tuple(t))

    gap, normal, _ = axis(pa, ma, sa, pb, mb, sb)
    moved_gap, moved_normal, _ = axis(mw @ pa + shift, mw @ ma, sa, mw @ pb + shift, mw @ mb, sb)
    assert moved_gap == pytest.approx(gap, abs=1e-9)
    np.testing.assert_allclose(mw @ np.array(normal), moved_normal, atol=1e-7)
    swapped_gap, _, _ = axis(pb, mb, sb, pa, ma, sa)
    # Preferring the first box's faces may choose another axis of nearly the same separation.
    assert swapped_gap == pytest.approx(gap, abs=2 * boxes.EDGE_PREFERENCE)
    # The gap is exact where it decides: boxes overlap if and only if no axis separates them.
    corners = np.array([boxes.corner(tuple(ma.ravel()), tuple(sa), i) for i in range(8)]) + pa
    others = np.array([boxes.corner(tuple(mb.ravel()), tuple(sb), i) for i in range(8)]) + pb
    separation = (others @ np.array(normal)).min() - (corners @ np.array(normal)).max()
    assert separation == pytest.approx(gap, abs=1e-9)


def test_contact_points_lie_between_the_surfaces():
    rng = np.random.default_rng(5)
    out, scratch = np.zeros((8, 8)), np.zeros(boxes.SCRATCH)
    found = 0
    for _ in range(3000):
        sa, sb = rng.uniform(0.2, 1.0, 3), rng.uniform(0.2, 1.0, 3)
        q = rng.normal(size=(2, 4))
        ma, mb = (rotation.matrix(v / np.linalg.norm(v)) for v in q)
        pa, pb = np.zeros(3), rng.normal(size=3)
        count = pairs.pair_contacts(
            1,
            tuple(pa),
            tuple(ma.ravel()),
            tuple(sa),
            1,
            tuple(pb),
            tuple(mb.ravel()),
            tuple(sb),
            0.05,
            out,
            0,
            scratch,
        )
        assert count <= 4
        for row in out[:count]:
            n, p, gap = row[:3], row[3:6], row[6]
            assert np.linalg.norm(n) == pytest.approx(1.0)
            # Half the gap back and forth along the normal lies the surface of each box: within its (grown) extents.
            for side, centre, m, s in ((-1, pa, ma, sa), (1, pb, mb, sb)):
                local = (p + side * 0.5 * gap * n - centre) @ m
                assert np.all(np.abs(local) <= s + 1e-6), (gap, local, s)
            found += 1
    assert found > 500


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
