"""Questions that users ask: distances of convex shapes, and what rays hit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import tumble as tb
from tumble.backends.shape_arrays import pools_of
from tumble.kernels.jit import most_threads
from tumble.scene import rotation
from tumble.sim.query import distance, ray_cast

from ..naive.solids import brick
from ..naive.support import outside, separation
from .cover import covers
from .data import assert_close
from .test_narrow import best_separation, convex_shapes


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@covers("convex_gaps")
@pytest.mark.parametrize("pair", [(2, 6), (3, 5), (0, 7), (1, 4)])
@pytest.mark.parametrize("n", [0, 1, 128, 150])
def test_gaps_of_many_poses_are_distances(backend, n, pair):
    """At most the distance (the separation along the normal), at least what a search over directions finds; the point
    lies on the first shape, and the gap along the normal from it leads to the second (where they are apart)."""
    rng = np.random.default_rng(n)
    kinds = convex_shapes(rng)
    a, b = kinds[pair[0]], kinds[pair[1]]
    scene = tb.SceneBuilder()
    scene.add_static([a])
    scene.add_static([b])
    model = scene.build()
    order = np.argsort(model.shape_kind, kind="stable")
    a, b = ((a, b)[k] for k in order)
    place = [np.zeros((n, 3)), rng.normal(size=(n, 3)) * 0.3]
    turn = [unit(rng.normal(size=(n, 4))) for _ in range(2)]
    rows = [np.hstack([p, rotation.matrix(q).reshape(n, 9)]) for p, q in zip(place, turn, strict=True)]
    out = np.full((n, 7), np.nan)
    scratch = np.zeros((most_threads(), backend.SCRATCH))
    backend.convex_gaps(
        model.shape_kind[order], model.shape_parameters[order], model.shape_geometry[order], *rows,
        pools_of(model.geometry).hulls, scratch, out,
    )  # fmt: skip
    gap, normal, point = out[:, 0], out[:, 1:4], out[:, 4:]
    assert_close(np.linalg.norm(normal, axis=1), np.ones(n))
    for k in range(n):
        pose_a, pose_b = ((p[k : k + 1], q[k : k + 1]) for p, q in zip(place, turn, strict=True))
        loose = 1e-4 * abs(gap[k]) if gap[k] < 0.0 else 0.0  # depths of curved shapes are iterated
        assert abs(separation(a, b, pose_a, pose_b, normal[k : k + 1])[0] - gap[k]) <= 1e-8 + loose
        assert np.max(outside(a, pose_a, point[k : k + 1])) <= 1e-7 + loose
        if gap[k] > 0.0:
            assert np.max(outside(b, pose_b, (point[k] + gap[k] * normal[k])[None])) <= 1e-6
        if k % 10 == 0:
            assert best_separation(a, b, pose_a, pose_b, rng, normal[k : k + 1]) <= gap[k] + 1e-6 + loose


def test_points_of_overlapping_boxes_are_on_both(backend):
    """The shortest way out leads from a point of one to a point of the other."""
    rng = np.random.default_rng(0)
    a, b = tb.Box((0.3, 0.4, 0.2)), tb.Box((0.2, 0.2, 0.2))
    for _ in range(100):
        pose_a, pose_b = (np.zeros(3), unit(rng.normal(size=4))), (0.1 * rng.normal(size=3), unit(rng.normal(size=4)))
        found = distance(a, pose_a, b, pose_b, backend=backend)
        for shape, (place, turn), x in ((a, pose_a, found.point_a), (b, pose_b, found.point_b)):
            assert np.max(outside(shape, (place[None], turn[None]), x[None])) <= 1e-6


def ray_triangles(o, d, triangle):
    """Least distance along a ray to triangles (k, 3, 3), from either side."""
    a, u, v = triangle[:, 0], triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0]
    system = np.stack([u, v, np.broadcast_to(-d, u.shape)], axis=2)
    good = np.abs(np.linalg.det(system)) > 1e-14
    x = np.linalg.solve(system[good], (o - a[good])[:, :, None])[:, :, 0]
    hit = (x[:, 0] >= 0.0) & (x[:, 1] >= 0.0) & (x[:, 0] + x[:, 1] <= 1.0) & (x[:, 2] >= 0.0)
    return x[hit, 2].min(initial=np.inf)


def ray_planes(o, d, normal, offset):
    """Distance along a ray into {normal . x <= offset}, 0 from inside, inf past it."""
    height, speed = normal @ o - offset, normal @ d
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -height / speed
    enter = np.max(np.where(speed < 0.0, t, -np.inf), initial=0.0)
    leave = np.min(np.where(speed > 0.0, t, np.inf))
    if np.any((speed == 0.0) & (height > 0.0)) or enter > leave:
        return np.inf
    return enter


def ray_shape(o, d, shape):
    """Distance along a ray to a shape at the origin."""
    if isinstance(shape, tb.Sphere):
        along, square = -(o @ d), shape.radius**2 - o @ o + (o @ d) ** 2
        if o @ o <= shape.radius**2:
            return 0.0
        return along - np.sqrt(square) if square >= 0.0 and along >= 0.0 else np.inf
    if isinstance(shape, tb.Box):
        return ray_planes(o, d, np.r_[np.eye(3), -np.eye(3)], np.tile(0.5 * np.array(shape.size), 2))
    if isinstance(shape, tb.HalfSpace):
        return ray_planes(o, d, np.array([[0.0, 0.0, 1.0]]), np.zeros(1))
    if isinstance(shape, tb.ConvexHull):
        equation = ConvexHull(shape.points).equations
        return ray_planes(o, d, equation[:, :3], -equation[:, 3])
    return ray_triangles(o, d, shape)


@covers("cast_rays")
@pytest.mark.parametrize("count", [1, 128, 400])
def test_rays_hit_what_comes_first(backend, count):
    """Spheres, boxes, hulls, planes, a mesh and a height field, each by its own closed form."""
    rng = np.random.default_rng(count)
    scene, bodies = tb.SceneBuilder(), []
    hull = tb.ConvexHull(rng.normal(size=(20, 3)) * 0.2)
    solid = brick((0.6, 0.4, 0.3), (3, 2, 2))
    heights = np.repeat(rng.uniform(-0.1, 0.1, (8, 1)), 6, axis=1)
    x, y = np.linspace(-0.7, 0.7, 8), np.linspace(-0.5, 0.5, 6)
    p = np.stack([*np.meshgrid(x, y, indexing="ij"), heights], axis=2)
    cells = [p[:-1, :-1], p[1:, :-1], p[1:, 1:], p[:-1, 1:]]
    field = np.concatenate([np.stack([cells[k] for k in t], axis=2).reshape(-1, 3, 3) for t in ((0, 1, 2), (0, 2, 3))])
    scene.add_static([tb.HalfSpace((0.0, 0.0, 1.0), 0.0)], position=(0, 0, -2.0))
    bodies.append((tb.HalfSpace((0.0, 0.0, 1.0), 0.0), None))
    kinds = [tb.Sphere(0.2), tb.Box((0.3, 0.4, 0.2)), hull, solid, tb.HeightField(heights, (1.4, 1.0))]
    for k in range(30):
        shape = kinds[k % len(kinds)]
        q, place = unit(rng.normal(size=4)), rng.uniform(-1.5, 1.5, 3)
        scene.add_static([shape], position=place, orientation=q)
        bodies.append(({3: solid.vertices[solid.triangles], 4: field}.get(k % len(kinds), shape), (place, q)))
    model = scene.build()
    origin, direction = rng.uniform(-2.5, 2.5, (count, 3)), unit(rng.normal(size=(count, 3)))
    origin[:, 2] = np.abs(origin[:, 2])
    limit = np.where(rng.random(count) < 0.2, 0.5, 20.0)
    hits = ray_cast(model, model.initial, origin, direction, limit=limit, backend=backend)
    near = 0
    for k in range(count):
        along = []
        for shape, pose in bodies:
            o, d = origin[k] + np.array([0, 0, 2.0]), direction[k]
            if pose is not None:
                r = rotation.matrix(pose[1][None])[0]
                o, d = r.T @ (origin[k] - pose[0]), r.T @ direction[k]
            along.append(ray_shape(o, d, shape))
        first = int(np.argmin(along))
        if along[first] >= limit[k]:
            assert hits.body[k] == -1 and hits.distance[k] == limit[k]
            continue
        near += 1
        assert abs(hits.distance[k] - along[first]) <= 1e-8 * (1.0 + along[first])
        if along[first] > 0.0 and np.sort(along)[1] > along[first] + 1e-6:
            assert hits.body[k] == first
            assert hits.normal[k] @ direction[k] < 0.0
            assert_close(np.linalg.norm(hits.normal[k]), 1.0)
    assert near > 0.3 * count or count == 1
