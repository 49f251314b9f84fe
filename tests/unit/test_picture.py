"""Pictures: what is in front, where it is, and what colour it has."""

import time

import numpy as np
import pytest

from tumble.errors import FileError, OptionsError
from tumble.observe.trajectory import Trajectory, TrajectoryWriter
from tumble.scene.builder import SceneBuilder
from tumble.scene.fill import random_points
from tumble.scene.shapes import Box, HalfSpace, Placed, Sphere, open_box
from tumble.view.picture import Camera, auto_camera, render
from tumble.view.plot import plot_reports

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
    with TrajectoryWriter(
        tmp_path / "run.h5", model=model, fields=("position", "orientation"), report_columns=(), attributes={}
    ) as writer:
        writer.append_frame(model.initial)
    with Trajectory(tmp_path / "run.h5") as t:
        again = render(t.model, t.read("position", 0), t.read("orientation", 0))
    assert np.array_equal(first, again)


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
    with pytest.raises(FileError, match="writable"):
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
