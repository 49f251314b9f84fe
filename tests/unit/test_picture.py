"""Pictures: what is in front, where it is, and what colour it has."""

import time

import numpy as np
import pytest

import tumble as tb
from tumble.errors import FileError, OptionsError
from tumble.observe.layout import Plan
from tumble.observe.trajectory import Trajectory
from tumble.observe.writer import TrajectoryWriter
from tumble.scene.builder import SceneBuilder
from tumble.scene.fill import random_points
from tumble.scene.shapes import Box, HalfSpace, Placed, Sphere, open_box
from tumble.view.camera import View
from tumble.view.geometry import world_shapes
from tumble.view.picture import Camera, auto_camera, render
from tumble.view.plot import plot_reports
from tumble.view.raster import rasterize
from tumble.view.soup import Tessellator

SIZE = (120, 90)


def draw(builder, **options):
    model = builder.build()
    return render(model, *model.user_pose(model.initial), size=SIZE, **options).astype(int)


def level(distance=10.0, height=0.0):
    return Camera(eye=(0, -distance, height), target=(0, 0, height), field_of_view=30.0)


def warm(pixel):
    """Red rather than blue."""
    return pixel[..., 0] - pixel[..., 2] > 60


def cool(pixel):
    return pixel[..., 2] - pixel[..., 0] > 30


def test_the_outline_of_a_ball_is_exact():
    builder = SceneBuilder()
    builder.add_body(Sphere(1.0), mass=1.0)
    empty = SceneBuilder()
    empty.add_body(Sphere(1.0), mass=1.0, position=(0, -30, 0))  # behind the camera
    seen = np.any(draw(builder, camera=level()) != draw(empty, camera=level()), axis=2)
    focal = SIZE[1] / 2 / np.tan(np.deg2rad(15))
    radius = focal / np.sqrt(10.0**2 - 1)
    assert seen.sum() == pytest.approx(np.pi * radius**2, rel=0.06)
    i, j = np.nonzero(seen)
    assert (i.mean() + 0.5, j.mean() + 0.5) == pytest.approx((SIZE[1] / 2, SIZE[0] / 2), abs=0.3)


def test_the_nearer_body_hides_the_other():
    for front, hue in ((0, cool), (1, warm)):
        builder = SceneBuilder()
        y = (-2.0, 2.0) if front == 0 else (2.0, -2.0)
        builder.add_body(Sphere(0.5), mass=1.0, position=(0, y[0], 0))
        builder.add_body(Box((1.0, 1.0, 1.0)), mass=1.0, position=(0, y[1], 0))
        picture = draw(builder, camera=level(), color_by=[0.0, 1.0])
        assert hue(picture[SIZE[1] // 2, SIZE[0] // 2])


def test_compounds_follow_the_users_frame():
    builder = SceneBuilder()
    builder.add_body(
        [
            Placed(Sphere(0.3), (1.5, 0, 0)),
            Placed(Sphere(0.3), (-1.5, 0, 0)),
            Placed(Box((0.5, 0.5, 0.5)), (0.5, 0.5, 2.0)),
        ],
        mass=1.0,
        orientation=(np.sqrt(0.5), 0, np.sqrt(0.5), 0),
    )  # x points down, z along x
    picture = draw(builder, camera=level())
    scale = SIZE[1] / 2 / np.tan(np.deg2rad(15)) / 10.0
    middle = np.array([SIZE[1] / 2, SIZE[0] / 2])
    sky = picture[:, 0]
    for down, right in ((1.5, 0), (-1.5, 0), (0.5, 2.0)):
        i, j = (middle + scale * np.array([down, right])).astype(int)
        assert np.abs(picture[i, j] - sky[i]).max() > 30
    i, j = (middle + scale * np.array([0, 1.0])).astype(int)
    assert np.abs(picture[i, j] - sky[i]).max() < 5


def test_walls_on_the_cameras_side_are_glass():
    builder = SceneBuilder()
    builder.add_static(open_box(inner=(2, 2, 1)))
    builder.add_body(Sphere(0.4), mass=1.0, position=(0, 0, 0.4))
    picture = draw(builder, camera=Camera(eye=(0, -8, 1.0), target=(0, 0, 0.4)), color_by=[0.0, 1.0])
    i, j = SIZE[1] // 2, SIZE[0] // 2
    saturation = np.ptp(picture[i - 5 : i + 5, j - 5 : j + 5], axis=2)
    assert saturation.mean() > 30
    hidden = SceneBuilder()
    hidden.add_static(Box((3, 1, 3)), position=(0, -3, 0))  # a block, no plate
    hidden.add_body(Sphere(0.4), mass=1.0, position=(0, 0, 0.4))
    picture = draw(hidden, camera=Camera(eye=(0, -8, 1.0), target=(0, 0, 0.4)), color_by=[0.0, 1.0])
    assert np.ptp(picture[i - 5 : i + 5, j - 5 : j + 5], axis=2).mean() < 15


def test_floor_has_checkers_and_shadow():
    builder = SceneBuilder()
    builder.add_static(HalfSpace())
    model_camera = Camera(eye=(0, -6, 5), target=(0, 0, 0))
    builder.add_body(Sphere(0.5), mass=1.0, position=(0, 0, 0.5))
    lit = draw(builder, camera=model_camera).sum(axis=2)
    shades = np.unique(lit[-10:])
    assert np.ptp(shades) > 20
    assert lit.min() < 0.75 * np.median(lit)


def test_auto_camera_holds_everything_and_far_from_the_origin():
    for offset in (0.0, 1e5):
        builder = SceneBuilder()
        points = offset + np.array([[x, y, z] for x in (-3, 3) for y in (-1, 1) for z in (0, 2)], float)
        builder.add_spheres(0.2, position=points, mass=1.0)
        model = builder.build()
        pose = model.user_pose(model.initial)
        picture = render(model, *pose, size=SIZE).astype(int)
        edge = np.concatenate([np.ptp(picture[[0, -1]], axis=1).ravel(), (picture[:, 0] - picture[:, -1]).ravel()])
        assert np.abs(edge).max() <= 2  # plain sky all around
        assert (np.abs(picture - picture[:, :1]).max(axis=2) > 20).mean() > 0.03
        assert auto_camera(model, *pose, size=SIZE).eye[2] > offset + 2


def test_a_thousand_spheres_are_quick_and_files_can_be_drawn(tmp_path):
    builder = SceneBuilder()
    builder.add_static(open_box(inner=(2, 2, 1.2), thickness=0.05))
    builder.add_spheres(0.05, position=random_points(1000, 0.05, low=(-1, -1, 0), high=(1, 1, 1.2)), density=1.0)
    model = builder.build()
    pose = model.user_pose(model.initial)
    start = time.process_time()
    first = render(model, *pose, path=tmp_path / "a.png")
    assert time.process_time() - start < 12.0
    assert first.shape == (720, 960, 3) and first.dtype == np.uint8
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    plan = Plan(fields=("position", "orientation"), columns={})
    with TrajectoryWriter(tmp_path / "run.h5", model=model, plan=plan, attributes={}) as writer:
        writer.append_frame(model.initial)
    with Trajectory(tmp_path / "run.h5") as t:
        again = render(t.model, t.read("position", 0), t.read("orientation", 0))
    assert np.array_equal(first, again)


def tube(radius, low, high, segments=48):
    """An open cylinder along z, normals inwards."""
    turn = 2 * np.pi * np.arange(segments) / segments
    ring = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    points = np.concatenate([np.column_stack([ring, np.full(segments, z)]) for z in (low, high)])
    a = np.arange(segments)
    b = (a + 1) % segments
    return tb.Mesh(
        points, np.concatenate([np.stack([b, a, a + segments], 1), np.stack([b, a + segments, b + segments], 1)])
    )


def seen_from_far(shape, add="add_body", eye=(0.0, -1000.0, 0.0), orientation=(1.0, 0.0, 0.0, 0.0)):
    """Canvas of a view that is nearly parallel, and the area of a pixel at the origin [m^2]."""
    builder = SceneBuilder()
    getattr(builder, add)(shape, orientation=orientation, **({"mass": 1.0} if add == "add_body" else {}))
    model = builder.build()
    shapes = world_shapes(model, *model.user_pose(model.initial))
    view = View(Camera(eye=eye, target=(0, 0, 0), field_of_view=0.2), (800, 600))
    canvas = rasterize(view, Tessellator(shapes), np.ones(1, bool))
    return canvas, (1000.0 / view.focal) ** 2


CUBE = tb.ConvexHull([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
SILHOUETTES = [
    (tb.Sphere(0.7), np.pi * 0.49),
    (tb.Capsule(0.3, 1.0), 0.6 + np.pi * 0.09),
    (tb.Box((1.0, 2.0, 1.5)), 1.5),
    (tb.Cylinder(0.5, 1.6), 1.6),
    (tb.Cone(0.7, 1.5), 0.7 * 1.5),
    (tb.Frustum(0.7, 0.4, 1.5), 1.1 * 1.5),
    (tb.Ellipsoid((1.0, 0.5, 0.3)), np.pi * 0.3),
    (CUBE, 1.0),
    (tb.Mesh(CUBE.points, CUBE.triangles), 1.0),
    (tb.Rounded(tb.Box((1.0, 2.0, 1.2)), 0.2), 1.2 + 0.4 * 2.2 + np.pi * 0.04),
    (tb.Rounded(CUBE, 0.2), 1.0 + 0.4 * 2.0 + np.pi * 0.04),
    (tb.Rounded(tb.Cylinder(0.5, 1.2), 0.2), 1.2 + 0.4 * 2.2 + np.pi * 0.04),
    (tb.Rounded(tb.Cone(0.5, 1.2), 0.2), 0.6 + 0.2 * (1.0 + 2 * 1.3) + np.pi * 0.04),
    (tb.Rounded(tb.Ellipsoid((0.5, 0.5, 0.5)), 0.2), np.pi * 0.49),
]


@pytest.mark.parametrize("shape, area", SILHOUETTES, ids=lambda v: repr(v)[:30] if not isinstance(v, float) else "")
def test_silhouettes_are_exact_and_normals_face_the_eye(shape, area):
    canvas, pixel = seen_from_far(shape)
    seen = canvas.owner == 0
    assert seen.sum() * pixel == pytest.approx(area, rel=0.005)
    assert np.linalg.norm(canvas.normal[seen], axis=1) == pytest.approx(1.0, abs=1e-4)
    assert np.all(canvas.normal[seen][:, 1] < 0.06)  # y points away from the eye
    depth = np.full(canvas.depth.shape, 1000.0)
    depth[seen] = canvas.depth[seen]
    assert 1000.0 - depth.min() == pytest.approx(shape.box[1][1], abs=0.01)
    rows = np.flatnonzero(seen.reshape(canvas.shape).any(axis=1))
    columns = np.flatnonzero(seen.reshape(canvas.shape).any(axis=0))
    for extent, axis in ((rows, 2), (columns, 0)):
        assert len(extent) * np.sqrt(pixel) == pytest.approx(shape.box[1][axis] - shape.box[0][axis], abs=0.02)


def test_the_cylinder_from_above_is_a_disc_and_the_cone_points_up():
    canvas, pixel = seen_from_far(tb.Cylinder(0.5, 1.6), eye=(0, 0, 1000.0))
    assert (canvas.owner == 0).sum() * pixel == pytest.approx(np.pi * 0.25, rel=0.005)
    assert np.all(canvas.normal[canvas.owner == 0][:, 2] > 0.999)
    canvas, _ = seen_from_far(tb.Cone(0.7, 1.5))
    width = (canvas.owner == 0).reshape(canvas.shape).sum(axis=1)
    width = width[width > 0]
    assert width[0] < 5 and width[-1] == width.max()
    rise = width[1:].astype(int) - width[:-1]
    assert rise.min() >= 0


def test_ground_covers_its_area_and_has_no_holes():
    x = np.linspace(-1.0, 1.0, 60)
    heights = 0.1 * np.sin(4 * x[:, None]) * np.cos(3 * x)
    field = tb.HeightField(heights, (2.0, 1.0))
    points = np.stack([*np.meshgrid(x, x / 2, indexing="ij"), heights], axis=-1).reshape(-1, 3)
    i = np.arange(59 * 60)
    i = i[i % 60 < 59]
    mesh = tb.Mesh(points, np.concatenate([np.stack([i, i + 60, i + 61], 1), np.stack([i, i + 61, i + 1], 1)]))
    for ground in (field, mesh):
        canvas, pixel = seen_from_far(ground, "add_static", eye=(0, 0, 1000.0))
        seen = (canvas.owner == 0).reshape(canvas.shape)
        assert seen.sum() * pixel == pytest.approx(2.0, rel=0.005)
        i, j = np.nonzero(seen)
        assert seen[i.min() + 1 : i.max(), j.min() + 1 : j.max()].all()
        depth = canvas.depth.reshape(canvas.shape)[300, 400]
        assert 1000.0 - depth == pytest.approx(0.0, abs=0.01)


def test_ground_reaches_below_and_behind_the_camera():
    builder = SceneBuilder()
    builder.add_static(tb.HeightField(np.zeros((40, 40)), (100.0, 100.0)))
    builder.add_body(Sphere(0.5), mass=1.0, position=(0, 0, 0.5))
    model = builder.build()
    shapes = world_shapes(model, *model.user_pose(model.initial))
    view = View(Camera(eye=(0, -5, 2), target=(0, 0, 0.3), field_of_view=60.0), (300, 200))
    canvas = rasterize(view, Tessellator(shapes), np.ones(2, bool))
    owner = canvas.owner.reshape(canvas.shape)
    horizon = np.flatnonzero((owner >= 0).any(axis=1))[0]
    assert np.all(owner[horizon + 3 :] >= 0)
    assert owner[100, 150] == 1 and owner[-1, 0] == 0
    height = 2.0 + canvas.depth.reshape(canvas.shape)[-1] * (view.v[-1] * view.axes[1, 2] + view.axes[2, 2])
    assert height == pytest.approx(0.0, abs=1e-5)


def test_a_sphere_around_the_eye_side_is_clipped_not_lost():
    builder = SceneBuilder()
    builder.add_body(Sphere(1.0), mass=1.0, position=(1.2, 0, 0))
    model = builder.build()
    shapes = world_shapes(model, *model.user_pose(model.initial))
    view = View(Camera(eye=(0, -0.5, 0), target=(0, 5, 0), field_of_view=90.0), (200, 200))
    owner = rasterize(view, Tessellator(shapes), np.ones(1, bool)).owner.reshape(200, 200)
    assert owner[100, 180] == 0 and owner[100, 20] == -1


def test_mixed_bodies_hide_each_other_in_any_order():
    rng = np.random.default_rng(5)
    kinds = [Sphere(0.1), Box((0.2, 0.2, 0.2)), tb.Cylinder(0.1, 0.2), CUBE, tb.Rounded(Box((0.1, 0.1, 0.1)), 0.03)]
    position = rng.uniform(-1, 1, (300, 3))
    model_of = {}
    for name, order in (("forth", np.arange(300)), ("back", np.arange(300)[::-1])):
        builder = SceneBuilder()
        for k in order:
            shape = kinds[k % 5] if k % 5 != 3 else tb.ConvexHull(0.15 * CUBE.points)
            builder.add_body(shape, mass=1.0, position=position[k])
        model = builder.build()
        shapes = world_shapes(model, *model.user_pose(model.initial))
        view = View(Camera(eye=(0, -6, 1), target=(0, 0, 0)), (200, 200))
        canvas = rasterize(view, Tessellator(shapes), np.ones(300, bool))
        model_of[name] = canvas.depth, np.where(canvas.owner < 0, -1, order[canvas.owner])
    assert np.array_equal(model_of["forth"][0], model_of["back"][0])
    assert np.mean(model_of["forth"][1] == model_of["back"][1]) > 0.999


def test_containers_are_glass_on_the_cameras_side_and_ground_is_not():
    camera = Camera(eye=(0, -8, 0.5), target=(0, 0, 0.5))
    i, j = SIZE[1] // 2, SIZE[0] // 2
    builder = SceneBuilder()
    builder.add_static(tube(1.5, 0.0, 1.2))
    builder.add_body(Sphere(0.4), mass=1.0, position=(0, 0, 0.5))
    picture = draw(builder, camera=camera, color_by=[0.0, 1.0])
    assert np.ptp(picture[i - 4 : i + 4, j - 4 : j + 4], axis=2).mean() > 30
    hill = np.zeros((21, 21))
    hill[:, 2:6] = 3.0
    builder = SceneBuilder()
    builder.add_static(tb.HeightField(hill, (10.0, 10.0)))
    builder.add_body(Sphere(0.4), mass=1.0, position=(0, 0, 0.5))
    picture = draw(builder, camera=camera, color_by=[0.0, 1.0])
    assert np.ptp(picture[i - 4 : i + 4, j - 4 : j + 4], axis=2).mean() < 45
    assert not cool(picture).any() and not warm(picture).any()


def test_every_kind_can_be_drawn_from_a_file(tmp_path):
    builder = SceneBuilder()
    builder.add_static(tb.HeightField(np.zeros((5, 5)), (8.0, 8.0)))
    builder.add_static(HalfSpace(offset=-1.0))
    for k, (shape, _) in enumerate(SILHOUETTES):
        builder.add_body(shape, mass=1.0, position=(2.5 * (k % 4), 2.5 * (k // 4), 1.2))
    model = builder.build()
    first = render(model, *model.user_pose(model.initial), size=SIZE)
    writer = dict(model=model, plan=Plan(fields=("position", "orientation"), columns={}), attributes={})
    with TrajectoryWriter(tmp_path / "run.h5", **writer) as file:
        file.append_frame(model.initial)
    with Trajectory(tmp_path / "run.h5") as t:
        assert np.array_equal(first, render(t.model, t.read("position", 0), t.read("orientation", 0), size=SIZE))


def test_many_bodies_and_triangles_are_quick():
    rng = np.random.default_rng(2)
    builder = SceneBuilder()
    x = np.linspace(-4, 4, 300)
    builder.add_static(tb.HeightField(0.1 * np.sin(3 * x[:, None]) * np.cos(2 * x), (8.0, 8.0)))
    kinds = [Sphere(0.05), tb.Capsule(0.02, 0.05), tb.Ellipsoid((0.05, 0.03, 0.02)), tb.ConvexHull(0.06 * CUBE.points)]
    for k, point in enumerate(rng.uniform((-2, -2, 0.2), (2, 2, 1.5), (4000, 3))):
        builder.add_body(kinds[k % 4], mass=1.0, position=point)
    model = builder.build()
    start = time.process_time()
    render(model, *model.user_pose(model.initial), size=(480, 360))
    assert time.process_time() - start < 12.0


def test_mistakes(tmp_path):
    builder = SceneBuilder()
    builder.add_body(Sphere(1.0), mass=1.0)
    model = builder.build()
    position, orientation = model.user_pose(model.initial)
    for wrong in (dict(size=(0, 10)), dict(color_by=[1.0, 2.0])):
        with pytest.raises(OptionsError, match=r"render\."):
            render(model, position, orientation, **wrong)
    with pytest.raises(OptionsError, match=r"render\.position"):
        render(model, position[:0], orientation)
    with pytest.raises(OptionsError, match="differ from eye"):
        Camera(eye=(0, 0, 0), target=(0, 0, 0))
    with pytest.raises(FileError, match="folder that exists"):
        render(model, position, orientation, size=SIZE, path=tmp_path / "no" / "a.png")


def test_plot_draws_the_columns_that_exist(tmp_path):
    from matplotlib.image import imread

    t = np.linspace(0, 1, 50)
    few = {"time": t, "contacts": 10 * t}
    many = few | {
        "kinetic_energy": 1 - t,
        "potential_energy": t,
        "natural_map": 10 ** (-8 * t),
        "iterations": t,
        "largest_overlap": np.zeros(50),
        "certificate_energy": np.zeros(50),
    }
    plot_reports(few, tmp_path / "few.png", title="few")
    plot_reports(many, tmp_path / "many.png", title="many")
    assert imread(tmp_path / "many.png").shape[0] > 2 * imread(tmp_path / "few.png").shape[0]
    with pytest.raises(OptionsError, match="needs time"):
        plot_reports({"contacts": t}, tmp_path / "none.png", title="")
