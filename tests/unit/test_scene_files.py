"""Scene files: what they mean, and how mistakes in them are reported."""

import numpy as np
import pytest

from tumble.enums import BodyKind
from tumble.errors import FileError, SceneError
from tumble.scene.files import load_scene
from tumble.scene.fill import grid_points, lattice_points, random_points

FULL = """
gravity = [0, 0, -1.62]
[[material]]
name = "steel"
friction = 0.2
[[material]]
name = "rubber"
friction = 0.9
[[pair]]
a = "steel"
b = "rubber"
friction = 0.7
[[container]]
inner = [2, 2, 1]
thickness = 0.1
material = "steel"
name = "tray"
[[body]]
kind = "static"
shape = {type = "half_space", normal = [0, 0, 1], offset = -1}
[[body]]
name = "shaker"
kind = "kinematic"
shape = {type = "box", size = [1, 1, 0.1]}
position = [0, 0, 3]
motion = {amplitude = [0, 0, 0.1], period = 0.5}
[[body]]
name = "dumbbell"
shapes = [
  {type = "sphere", radius = 0.1, position = [0.2, 0, 0], material = "rubber"},
  {type = "box", size = [0.1, 0.1, 0.4], rotation = {axis = [0, 1, 0], angle_degrees = 90}},
]
material = "steel"
density = 1000
position = [0, 0, 0.5]
rotation = {axis = [0, 0, 2], angle_degrees = 90}
velocity = [1, 0, 0]
angular_velocity = [0, 0, 1]
force = [1, 2, 3]
torque = [3, 2, 1]
locked = ["y", "rx"]
group = 2
mask = 3
[[spheres]]
name = "grid"
radius = 0.05
density = 2500
[spheres.packing]
kind = "grid"
shape = [3, 3, 3]
spacing = 0.2
origin = [0, 0, 1]
jitter = 0.01
seed = 4
count = 20
[[spheres]]
radius_range = [0.04, 0.06]
seed = 7
mass = 0.1
packing = {kind = "random", count = 30, low = [-1, -1, 5], high = [1, 1, 6], seed = 2}
[[spheres]]
radius = [0.1, 0.2]
mass = [1, 2]
position = [[0, 0, 7], [0, 0, 8]]
velocity = [[0, 0, 1], [0, 0, 2]]
[[boxes]]
size = [0.1, 0.2, 0.3]
density = 100
packing = {kind = "lattice", shape = [2, 2, 2], diameter = 0.5, origin = [5, 5, 5]}
[[exclude]]
a = "dumbbell"
b = "tray"
[step]
dt = 1e-3
law = "relaxed"
warm_start = false
[solver]
name = "apgd"
tolerance = 1e-8
stop = "natural_map"
max_iterations = 100
[run]
until = 2
save_every = 5
"""


def write(tmp_path, text, name="scene.toml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_every_table_reaches_the_model(tmp_path):
    scene = load_scene(write(tmp_path, FULL))
    model = scene.model
    assert scene.step == {"dt": 1e-3, "law": "relaxed", "warm_start": False}
    assert scene.solver == {"name": "apgd", "tolerance": 1e-8, "stop": "natural_map", "max_iterations": 100}
    assert (scene.until, scene.save_every) == (2.0, 5)
    assert model.body_count == 1 + 3 + 20 + 30 + 2 + 5
    assert np.array_equal(model.gravity, [0, 0, -1.62])
    names = [m.name for m in model.materials]
    assert model.friction[names.index("steel"), names.index("rubber")] == 0.7

    body = model.bodies("dumbbell")[0]
    material = model.shape_material[model.shape_body == body]
    assert [names[i] for i in material] == ["rubber", "steel"]
    position, orientation = model.user_pose(model.initial)
    assert np.allclose(position[body], [0, 0, 0.5])
    assert np.allclose(orientation[body], [2**-0.5, 0, 0, 2**-0.5])
    assert np.array_equal(model.body_locked[body], [0, 1, 0, 1, 0, 0])
    assert np.array_equal(model.body_force[body], [1, 2, 3])
    assert np.array_equal(model.body_torque[body], [3, 2, 1])
    assert (model.body_group[body], model.body_mask[body]) == (2, 3)
    assert len(model.excluded) == 1

    shaker = model.bodies("shaker")[0]
    assert model.body_kind[shaker] == BodyKind.KINEMATIC
    assert np.allclose(model.motions[shaker](0.125)[0], [0, 0, 3.1])

    grid = model.bodies("grid")
    points = grid_points((3, 3, 3), 0.2, origin=(0, 0, 1), jitter=0.01, seed=4)
    assert np.array_equal(position[grid], points[:20])
    radii = np.random.default_rng(7).uniform(0.04, 0.06, 30)
    thrown = slice(grid[-1] + 1, grid[-1] + 31)
    assert np.array_equal(position[thrown], random_points(30, radii, low=(-1, -1, 5), high=(1, 1, 6), seed=2))
    assert np.array_equal(position[-5:], lattice_points((2, 2, 2), 0.5, origin=(5, 5, 5)))


def test_a_shape_without_material_gets_the_default(tmp_path):
    model = load_scene(
        write(
            tmp_path,
            """
        material = [{name = "a"}]
        [[body]]
        mass = 1
        shapes = [{type = "sphere", radius = 1, material = "a"}, {type = "sphere", radius = 2}]
    """,
        )
    ).model
    assert [model.materials[i].name for i in model.shape_material] == ["a", "default"]


BALL = 'shape = {type = "sphere", radius = 1}'


@pytest.mark.parametrize(
    "text, place, words",
    [
        (f"[[body]]\nmass = 1\n{BALL}\n[[body]]\nfrction = 0.3\n{BALL}", "body[1].frction", ["unknown key", "0.3"]),
        (f"[[body]]\nmas = 1\n{BALL}", "body[0].mas", ["Did you mean 'mass'?", "(got 1)"]),
        ("[[boddy]]\nmass = 1", "boddy", ["Did you mean 'body'?"]),
        (f'[[body]]\nmass = "1"\n{BALL}', "body[0].mass", ["number", "'1'", "without quotes"]),
        (f"[[body]]\nmass = true\n{BALL}", "body[0].mass", ["number", "True"]),
        (f"[[body]]\nmass = nan\n{BALL}", "body[0].mass", ["finite"]),
        (f"[[body]]\nmass = -1\n{BALL}", "body[0]: add_body.mass", ["must be > 0", "-1"]),
        ('[[body]]\nmass = 1\nshape = {type = "sphere"}', "body[0].shape.radius", ["is required"]),
        ('[[body]]\nmass = 1\nshape = {type = "sphere", radios = 1}', "body[0].shape.radios", ["'radius'"]),
        ('[[body]]\nmass = 1\nshape = {type = "torus"}', "body[0].shape", ["'sphere'"]),
        ('[[body]]\nmass = 1\nshapes = [{type = "box", size = [1, 1]}]', "body[0].shapes[0].size", ["3 items"]),
        (f'[[body]]\nkind = "static"\nmass = 1\n{BALL}', "body[0]: mass", ["static"]),
        ("[[body]]\nmass = 1", "body[0]: shape", ["neither"]),
        (f'[[body]]\nmass = 1\nmaterial = "x"\n{BALL}', "body[0]", ["unknown material"]),
        (f"[[body]]\nmass = 1\norientation = [2, 0, 0, 0]\n{BALL}", "body[0]", ["unit quaternion"]),
        ("[[spheres]]\nradius = 1\nmass = 1", "spheres[0]: position", ["packing"]),
        (
            '[[spheres]]\nradius = 1\nmass = 1\npacking = {kind = "grid", shape = [1, 1, 1], spacing = 3, count = 2}',
            "spheres[0]: packing.count",
            ["<= 1"],
        ),
        (
            '[[spheres]]\nradius = 1\nmass = 1\npacking = {kind = "grid", shap = [1, 1, 1], spacing = 3}',
            "spheres[0].packing.shap",
            ["'shape'"],
        ),
        (f"[[body]]\nmass = 1\n{BALL}\n[step]\ndt = -1", "step: StepOptions.dt", ["must be > 0"]),
        (f'[[body]]\nmass = 1\n{BALL}\n[step]\ndt = 1\nlaw = "columb"', "step.law", ["'coulomb'", "columb"]),
        (f"[[body]]\nmass = 1\n{BALL}\n[solver]\ntolerence = 1", "solver.tolerence", ["'tolerance'"]),
        (f"[[body]]\nmass = 1\n{BALL}\n[run]\nuntil = 0", "run.until", ["greater than 0"]),
        ("", "scene", ["at least one body"]),
    ],
)
def test_mistakes_name_file_place_and_value(tmp_path, text, place, words):
    path = write(tmp_path, text)
    with pytest.raises(SceneError) as caught:
        load_scene(path)
    line = str(caught.value)
    assert "\n" not in line and line.startswith(f"{path}: {place}")
    for word in words:
        assert word in line


def test_unreadable_files(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        load_scene(tmp_path / "none.toml")
    with pytest.raises(FileError, match="line 2"):
        load_scene(write(tmp_path, "gravity = [0, 0, 0]\n= 3"))
    with pytest.raises(FileError, match=r"\.toml or \.py"):
        load_scene(write(tmp_path, "", "scene.yaml"))


PYTHON = """
from tumble.scene.builder import SceneBuilder
from tumble.scene.shapes import Sphere
from helper_of_scene import RADIUS

STEP = dict(dt=0.01)
SOLVER = dict(tolerance=1e-6)
UNTIL = 1.5

def build():
    scene = SceneBuilder()
    scene.add_body(Sphere(RADIUS), mass=MASS)
    return scene.build()
"""


def test_python_scene(tmp_path):
    write(tmp_path, "RADIUS = 0.25", "helper_of_scene.py")
    scene = load_scene(write(tmp_path, PYTHON + "MASS = 2.0", "scene.py"))
    assert scene.model.body_mass[0] == 2.0 and scene.model.shape_parameters[0, 3] == 0.25
    assert (scene.step, scene.solver) == ({"dt": 0.01}, {"tolerance": 1e-6})
    assert (scene.until, scene.save_every) == (1.5, None)


@pytest.mark.parametrize(
    "extra, words",
    [
        ("", ["line 12", "NameError", "MASS"]),
        ("MASS = -1", ["line 12", "add_body.mass", "must be > 0"]),
        ("MASS = ", ["line 14", "SyntaxError"]),
        ("MASS = 1; STEP = dict(dtt=1)", ["STEP.dtt", "'dt'"]),
        ("MASS = 1; UNTIL = 'x'", ["UNTIL", "number"]),
        ("MASS = 1\ndef build(): pass", ["build()", "must return a Model", "NoneType"]),
        ("MASS = 1; del build", ["defines build()"]),
    ],
)
def test_python_mistakes(tmp_path, extra, words):
    write(tmp_path, "RADIUS = 0.25", "helper_of_scene.py")
    path = write(tmp_path, PYTHON + extra, "scene.py")
    with pytest.raises(SceneError) as caught:
        load_scene(path)
    assert str(caught.value).startswith(f"{path}: ")
    for word in words:
        assert word in str(caught.value)


def test_a_list_of_shapes_under_shape_is_answered_with_shapes(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text('[[body]]\nmass = 1.0\nshape = [{type = "sphere", radius = 0.1}]\n')
    with pytest.raises(SceneError, match=r"body\[0\].shape: is one shape .* Write shapes = \[...\] for several"):
        load_scene(path)
