"""World poses and boxes of shapes, against support functions in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tumble as tb
from tumble.collide.broadphase import PairSearch
from tumble.enums import BodyKind
from tumble.scene import rotation

from ..naive.solids import bracket
from ..naive.support import support_value
from .cover import covers
from .data import assert_close

H = 1e-2


def every_shape(rng):
    """One of each kind, rounded ones too."""
    hull = tb.ConvexHull(rng.normal(size=(20, 3)) * 0.1)
    return [
        tb.Sphere(0.1), tb.Capsule(0.05, 0.3), tb.Box((0.1, 0.2, 0.4)), tb.Cylinder(0.1, 0.3), tb.Cone(0.1, 0.3),
        tb.Ellipsoid((0.1, 0.2, 0.05)), hull, tb.Rounded(tb.Box((0.1, 0.1, 0.2)), 0.03), tb.Rounded(hull, 0.02),
        bracket(), tb.HeightField(rng.uniform(-0.1, 0.1, (6, 9)), (1.0, 1.5)),
    ]  # fmt: skip


def random_quaternions(rng, n):
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def scene_of(shapes, rng, copies):
    """Bodies with a shape each, and some with two: a box beside their middle. Height fields are static."""
    scene = tb.SceneBuilder()
    scene.add_static([tb.HalfSpace((0, 0, 1), 0.0)])
    for k in range(copies * len(shapes)):
        shape = shapes[k % len(shapes)]
        place, turn = rng.normal(size=3), random_quaternions(rng, 1)[0]
        if isinstance(shape, tb.HeightField):
            scene.add_static([shape], position=place, orientation=turn)
        elif k % 3 == 0:
            beside = tb.Placed(tb.Box((0.1, 0.1, 0.3)), position=(0.3, 0.0, 0.1), orientation=(0.6, 0.8, 0.0, 0.0))
            scene.add_body([shape, beside], density=100.0, position=place, orientation=turn)
        else:
            scene.add_body(shape, density=100.0, position=place, orientation=turn)
    return scene.build()


def extents(shape, r):
    """How far a shape turned by r (3, 3) reaches from its origin, down (negative) and up, along the world's axes."""
    if isinstance(shape, tb.Mesh | tb.HeightField):  # the box of their box
        if isinstance(shape, tb.Mesh):
            low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
        else:
            half = 0.5 * np.array(shape.size)
            low, high = np.r_[-half, shape.heights.min()], np.r_[half, shape.heights.max()]
        corners = np.array([[(low, high)[(k >> c) & 1][c] for c in range(3)] for k in range(8)]) @ r.T
        return corners.min(axis=0), corners.max(axis=0)
    return -support_value(shape, -r), support_value(shape, r)


@covers("place_shapes")
@pytest.mark.parametrize("margin", [-1.0, 0.02])
@pytest.mark.parametrize("copies", [1, 50])
def test_boxes_hold_shapes_on_their_way_through_the_step(backend, copies, margin):
    """The box of the shape where it is and where its origin's velocity takes it, grown by the margin (half of one that
    is given, a twentieth of the shape else), what a hit could move it, and what turning moves its surface."""
    rng = np.random.default_rng(copies)
    shapes = every_shape(rng)
    model = scene_of(shapes, rng, copies)
    n = model.body_count
    search = PairSearch(model, backend)
    position, orientation = rng.normal(size=(n, 3)), random_quaternions(rng, n)
    matrix = rotation.matrix(orientation).reshape(n, 9).copy()
    free = np.where((model.body_kind == BodyKind.DYNAMIC)[:, None], rng.normal(size=(n, 6)), 0.0)
    free[:: n // 4 + 1, 3:] = 0.0
    search.box[:] = np.nan
    search.place(position, orientation, matrix, free, H, margin)

    b = model.shape_body
    arm = rotation.rotate(orientation[b], model.shape_position)
    q = rotation.multiply(orientation[b], model.shape_orientation)
    r = rotation.matrix(q)
    assert_close(search.shapes.position, position[b] + arm)
    assert_close(search.shapes.matrix, r.reshape(-1, 9))
    stir = H * np.linalg.norm(free[:, :3], axis=1).max()
    way = H * (free[b, :3] + np.cross(free[b, 3:], arm))
    given = described(model, shapes)
    turned = 0
    for i, shape in enumerate(given):
        if shape is None:
            assert np.all(np.isnan(search.box[i])), "a plane has no box"
            continue
        smallest = model.shape_smallest[i]
        grown = (0.05 * smallest if margin < 0.0 else 0.5 * margin) + min(0.1 * smallest, 0.5 * stir)
        if not isinstance(shape, tb.Sphere):
            grown += H * np.linalg.norm(free[b[i], 3:]) * model.shape_bound[i]
            turned += 1
        low, high = extents(shape, r[i])
        p = position[b[i]] + arm[i]
        assert_close(search.box[i, :3], p + low - grown + np.minimum(0.0, way[i]), 4.0)
        assert_close(search.box[i, 3:], p + high + grown + np.maximum(0.0, way[i]), 4.0)
    assert turned > len(shapes) - 2


def described(model, shapes):
    """The shape of every entry of the model: in the order of `scene_of`."""
    out, bodies = [None], 0
    while len(out) < model.shape_count:
        shape = shapes[bodies % len(shapes)]
        out.append(shape)
        if bodies % 3 == 0 and not isinstance(shape, tb.HeightField):
            out.append(tb.Box((0.1, 0.1, 0.3)))
        bodies += 1
    return out
