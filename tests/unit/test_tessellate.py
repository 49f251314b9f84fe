"""Triangles of shapes: closed, outward, on the surface, in the user's frame."""

import numpy as np
import pytest

import tumble as tb
from tumble.errors import OptionsError
from tumble.scene import rotation
from tumble.view import triangles_of
from tumble.view.tessellate import supported

CORNERS = np.random.default_rng(0).normal(size=(20, 3))
HULL = tb.ConvexHull(CORNERS)
SHARP = [
    tb.Sphere(0.7),
    tb.Capsule(0.3, 1.0),
    tb.Box((1, 2, 3)),
    tb.Cylinder(0.5, 2.0),
    tb.Cone(0.7, 1.5),
    tb.Ellipsoid((1.0, 0.5, 0.3)),
    HULL,
]
SOLIDS = [
    *SHARP,
    *(tb.Rounded(s, 0.2) for s in SHARP[2:]),
    tb.Frustum(0.4, 0.8, 1.0),
    tb.Mesh(HULL.points, HULL.triangles),
]
EXACT = (tb.Box, tb.ConvexHull, tb.Mesh)
TURN = rotation.from_axis_angle((1, 2, 3), 0.7)


def label(shape):
    return type(shape).__name__ + (type(shape.shape).__name__ if isinstance(shape, tb.Rounded) else "")


def body(*shapes):
    builder = tb.SceneBuilder()
    builder.add_body(list(shapes), mass=1.0, position=(5, 6, 7))
    return builder.build()


def volume(vertices, triangles):
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    return np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6


@pytest.mark.parametrize("shape", SOLIDS, ids=label)
def test_volumes_converge_with_second_order_and_surfaces_are_closed(shape):
    model = body(shape)
    errors = []
    for segments in (16, 32, 64):
        vertices, triangles = triangles_of(model, 0, segments=segments)
        edge = np.concatenate([triangles[:, [k, (k + 1) % 3]] for k in range(3)])
        forth, back = edge @ [len(vertices), 1], edge @ [1, len(vertices)]
        assert len(np.unique(forth)) == len(forth) and np.array_equal(np.sort(forth), np.sort(back))
        assert len(vertices) - len(edge) // 2 + len(triangles) == 2 and triangles.dtype == np.int64
        errors.append(1 - volume(vertices, triangles) / shape.volume)
    if isinstance(shape, EXACT):
        assert np.abs(errors).max() < 1e-12
    else:
        assert 0 < errors[2] < 0.006
        assert errors[0] / errors[1] == pytest.approx(4, rel=0.1) and errors[1] / errors[2] == pytest.approx(
            4, rel=0.03
        )


@pytest.mark.parametrize("shape", [s for s in SOLIDS if not isinstance(s, tb.Mesh)], ids=label)
def test_vertices_lie_on_the_surface(shape):
    """No vertex is outside, and every support plane in many directions is nearly reached."""
    vertices, _ = triangles_of(body(shape), 0, segments=64)
    assert np.all(vertices <= shape.box[1] + 1e-12) and np.all(vertices >= shape.box[0] - 1e-12)
    assert vertices.max(axis=0) == pytest.approx(shape.box[1], rel=0.01, abs=0.005)
    assert vertices.min(axis=0) == pytest.approx(shape.box[0], rel=0.01, abs=0.005)
    assert np.linalg.norm(vertices, axis=1).max() <= shape.bound + 1e-12


def test_triangles_are_in_the_users_frame():
    placed = tb.Placed(tb.Cone(0.2, 0.6), (1.0, 2.0, 3.0), tuple(TURN))
    model = body(tb.Box((0.5, 0.1, 0.1)), placed)
    vertices, triangles = triangles_of(model, 1)
    apex = np.array([1.0, 2.0, 3.0]) + rotation.rotate(TURN, np.array([0, 0, 0.3]))
    assert np.linalg.norm(vertices - apex, axis=1).min() < 1e-12
    assert volume(vertices, triangles) > 0
    box, _ = triangles_of(model, 0)
    assert np.abs(box) == pytest.approx(np.tile([0.25, 0.05, 0.05], (8, 1)))


def test_height_fields_and_open_meshes_are_given_as_they_are():
    heights = np.random.default_rng(1).normal(size=(4, 3))
    builder = tb.SceneBuilder()
    builder.add_static(tb.HeightField(heights, (3.0, 4.0)))
    builder.add_static(tb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]))
    model = builder.build()
    vertices, triangles = triangles_of(model, 0)
    assert vertices.shape == (12, 3) and triangles.shape == (12, 3)
    assert vertices[5] == pytest.approx([-0.5, 2.0, heights[1, 2]])
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    assert np.all(np.cross(b - a, c - a)[:, 2] == pytest.approx(2.0))
    assert [1, 5, 4] not in np.sort(triangles, axis=1).tolist()  # cells are cut from (i, j) to (i + 1, j + 1)
    assert triangles_of(model, 1)[1].tolist() == [[0, 1, 2]]


def test_bodies_of_different_hulls_keep_their_own():
    builder = tb.SceneBuilder()
    hulls = [tb.ConvexHull(CORNERS[k : k + 12]) for k in range(4)]
    for hull in hulls:
        builder.add_body(tb.Rounded(hull, 0.1), mass=1.0)
        builder.add_body(hull, mass=1.0)
    model = builder.build()
    for k, hull in enumerate(hulls):
        vertices, triangles = triangles_of(model, 2 * k + 1)
        assert volume(vertices, triangles) == pytest.approx(hull.volume)
        assert volume(*triangles_of(model, 2 * k, segments=64)) == pytest.approx(tb.Rounded(hull, 0.1).volume, rel=1e-3)


def test_mistakes():
    builder = tb.SceneBuilder()
    builder.add_static(tb.HalfSpace())
    model = builder.build()
    for shape, words in ((0, "half-space"), (1, "number of shapes"), (-1, ">= 0"), (0.5, "whole number")):
        with pytest.raises(OptionsError, match=words):
            triangles_of(model, shape)
    with pytest.raises(OptionsError, match="segments"):
        triangles_of(model, 0, segments=3)


@pytest.mark.parametrize("shape", [tb.Ellipsoid((1.0, 0.5, 0.3)), tb.Box((1, 2, 3)), tb.Cone(0.7, 1.5)], ids=label)
def test_any_convex_shape_has_triangles_by_its_support(shape):
    """What a kind without triangles of its own gets: within the shape, and ever more of it."""
    parameters, missing = np.array([shape.parameters] * 2), []
    for turns in (16, 64):
        points, normals, triangles = supported(shape.kind, parameters, turns)
        assert np.array_equal(points[0], points[1])
        low, high = shape.box
        assert np.all(points[0] >= low - 1e-12) and np.all(points[0] <= high + 1e-12)
        assert np.allclose(np.linalg.norm(normals, axis=2), 1.0)
        missing.append(1 - volume(points[0], triangles) / shape.volume)
    assert 0.0 <= missing[1] < 0.4 * missing[0] + 1e-12 or missing[0] < 1e-12
