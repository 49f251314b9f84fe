"""TOML says what the builder can: the same arrays, bit for bit."""

import inspect
from dataclasses import fields

import numpy as np
import pytest

import tumble as tb
from tumble.errors import SceneError, TumbleError
from tumble.options import Save, StepOptions
from tumble.scene import rotation
from tumble.scene.files import load_scene
from tumble.scene.rotations import axis_angle, euler, look_at
from tumble.scene.schema import schema

BALL = 'shape = {type = "sphere", radius = 0.1}'


def loaded(folder, text, **files):
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    (folder / "scene.toml").write_text(text)
    return load_scene(folder / "scene.toml")


def same(a, b):
    """All arrays of two models."""
    for f in fields(a):
        x, y = getattr(a, f.name), getattr(b, f.name)
        if isinstance(x, np.ndarray):
            assert np.array_equal(x, y), f.name
    for name in ("position", "orientation", "velocity", "spin"):
        assert np.array_equal(getattr(a.initial, name), getattr(b.initial, name)), name
    assert a.names == b.names and dict(a.motions).keys() == dict(b.motions).keys()


def test_a_container_that_moves(tmp_path):
    text = """
[[container]]
kind = "kinematic"
inner = [1, 2, 0.5]
thickness = 0.1
center = [0, 0, 0.2]
position = [0, 0, 1]
angular_velocity = [0, 0, 3]
group = 2
[[container]]
kind = "kinematic"
inner = [1, 1, 1]
motion = {amplitude = [0, 0, 0.1], period = 0.5}
position = [9, 0, 0]
[[container]]
kind = "dynamic"
inner = [1, 1, 1]
density = 100
position = [0, 9, 0]
"""
    scene = tb.SceneBuilder()
    shapes = tb.open_box(inner=(1, 2, 0.5), thickness=0.1, center=(0, 0, 0.2))
    scene.add_kinematic(shapes, position=(0, 0, 1), angular_velocity=(0, 0, 3), group=2)
    motion = tb.Oscillation(amplitude=(0, 0, 0.1), period=0.5, position=(9, 0, 0))
    scene.add_kinematic(tb.open_box(inner=(1, 1, 1)), motion=motion)
    scene.add_body(tb.open_box(inner=(1, 1, 1)), density=100, position=(0, 9, 0))
    same(loaded(tmp_path, text).model, scene.build())
    with pytest.raises(SceneError, match="does not apply to a static body"):
        loaded(tmp_path, "[[container]]\ninner = [1, 1, 1]\nvelocity = [1, 0, 0]")


def test_bodies_of_their_own_shapes(tmp_path):
    text = """
[[bodies]]
name = "rubble"
shapes = [
  {type = "sphere", radius = 0.1},
  [{type = "box", size = [1, 2, 3]}, {type = "sphere", radius = 1, position = [1, 0, 0]}],
]
position = [[0, 0, 0], [5, 0, 0]]
density = [1, 2]
torque = [0, 0, 1]
"""
    scene = tb.SceneBuilder()
    shapes = [tb.Sphere(0.1), [tb.Box((1, 2, 3)), tb.Placed(tb.Sphere(1), (1, 0, 0))]]
    position = [(0, 0, 0), (5, 0, 0)]
    scene.add_bodies(shapes, position=position, density=[1, 2], torque=(0, 0, 1), name="rubble")
    same(loaded(tmp_path, text).model, scene.build())


def test_arrays_from_files(tmp_path):
    points = np.random.default_rng(0).normal(size=(7, 3))
    radius = np.linspace(0.1, 0.2, 7)
    np.save(tmp_path / "points.npy", points)
    np.savez(tmp_path / "both.npz", a=points, r=radius)
    lines = ["x [m],y [m],z [m],r"] + [",".join(map(repr, (*p.tolist(), float(r)))) for p, r in zip(points, radius)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    np.savetxt(tmp_path / "plain.txt", np.column_stack([radius, points]))
    scene = tb.SceneBuilder()
    scene.add_spheres(radius, position=points, mass=1)
    wanted = scene.build()
    table = "[[spheres]]\nmass = 1\nposition = {%s}\nradius = {%s}\n"
    for position, size in (
        ('array = "points.npy"', 'array = "both.npz", key = "r"'),
        ('array = "both.npz"', 'array = "table.csv", columns = ["r"]'),
        ('array = "table.csv", columns = ["x", "y", "z"]', 'array = "table.csv", columns = [3], rows = [0, 7]'),
        ('array = "plain.txt", columns = [1, 2, 3]', 'array = "plain.txt", columns = [0]'),
    ):
        same(loaded(tmp_path, table % (position, size)).model, wanted)
    for position, said in (
        ('array = "none.npy"', "No such file"),
        ('array = "points.mat"', "must end in"),
        ('array = "both.npz", key = "s"', "must be an array of the file"),
        ('array = "table.csv", columns = ["X"]', "Known: r, x, y, z"),
        ('array = "table.csv", columns = [4]', "must be <= 3"),
        ('array = "points.npy", colums = [0]', "Did you mean 'columns'"),
        ('array = "scene.toml.txt"', "No such file"),
    ):
        with pytest.raises(TumbleError, match=r"spheres\[0\]\.position") as caught:
            loaded(tmp_path, table % (position, 'array = "both.npz", key = "r"'))
        assert said in str(caught.value)


def test_parts_are_files(tmp_path):
    part = f"""
[parameters]
mass = 1.0
[[body]]
name = "bob"
mass = "=mass"
{BALL}
[[joint]]
kind = "spherical"
b = "bob"
anchor = [0, 0, 1]
"""
    text = """
[[replicate]]
file = "part.toml"
position = [[0, 0, 0], [2, 0, 0]]
rotation = {axis = [0, 0, 1], angle_degrees = 90}
name = "pendulum"
settings = {mass = 2.0}
"""
    inner = tb.SceneBuilder()
    inner.add_body(tb.Sphere(0.1), mass=2.0, name="bob")
    inner.add_joint("spherical", None, "bob", anchor=(0, 0, 1))
    scene = tb.SceneBuilder()
    turn = axis_angle((0, 0, 1), degrees=90)
    scene.replicate(inner, position=[(0, 0, 0), (2, 0, 0)], orientation=turn, name="pendulum")
    found = loaded(tmp_path, text, part__toml=part).model
    same(found, scene.build())
    assert found.joints.names == scene.build().joints.names
    loop = '[[replicate]]\nfile = "scene.toml"\nposition = [[0, 0, 0]]'
    with pytest.raises(SceneError, match="must not be a part of itself"):
        loaded(tmp_path, loop)


def test_every_option_of_a_step_and_of_a_recording_is_a_key():
    """One source: the dataclasses."""
    tables = schema()
    columns = tables.scene.model_fields
    assert {"step", "save", "solver"} <= set(columns)
    step = tables.settings.model_fields["step"].annotation.__args__[0]
    save = tables.settings.model_fields["save"].annotation.__args__[0]
    assert set(step.model_fields) == {f.name for f in fields(StepOptions)}
    assert set(save.model_fields) == {f.name for f in fields(Save)} - {"path", "overwrite", "label", "checkpoint"}
    solver = tables.settings.model_fields["solver"].annotation.__args__[0]
    options = {f.name for kind in tb.solvers.SOLVERS.values() for f in fields(kind)} - {"record", "inner"}
    assert set(solver.model_fields) == options | {"name"}


def test_every_argument_of_the_builder_is_a_key():
    """Methods one by one; what is left out is told in docs/scene_reference.md."""
    tables = schema().scene.model_fields
    rows = {name: field.annotation.__args__[0].__args__[0] for name, field in tables.items() if "list" in str(field)}
    pairs = {
        "add_body": "body",
        "add_static": "body",
        "add_kinematic": "body",
        "add_copies": "copies",
        "add_bodies": "bodies",
        "add_spheres": "spheres",
        "add_boxes": "boxes",
        "add_emitter": "emitter",
        "add_sink": "sink",
        "add_measuring_plane": "measuring_plane",
        "add_joint": "joint",
        "add_gear": "gear",
        "add_motor": "motor",
        "add_spring": "spring",
        "add_joint_spring": "joint_spring",
        "add_bushing": "bushing",
        "add_urdf": "robot",
        "replicate": "replicate",
        "exclude_pair": "exclude",
    }
    for method, table in pairs.items():
        arguments = set(inspect.signature(getattr(tb.SceneBuilder, method)).parameters) - {"self", "shapes"}
        renamed = {"path": "urdf"} if table == "robot" else {"part": "file"} if table == "replicate" else {}
        keys = set(rows[table].model_fields)
        assert {renamed.get(a, a) for a in arguments} <= keys, (method, arguments - keys)
    others = {n for n in dir(tb.SceneBuilder) if n.startswith("add_")} - set(pairs)
    assert others == {"add_material", "add_force", "add_controller"}


def test_save_and_solver_of_a_scene(tmp_path):
    text = f"""
[[body]]
mass = 1
{BALL}
[solver]
name = "gauss_seidel"
omega = 0.9
variant = "paper"
[save]
fields = ["position", "contacts"]
precision = "single"
every = 3
[step]
leave_gaps = false
"""
    found = loaded(tmp_path, text)
    assert found.solver == {"name": "gauss_seidel", "omega": 0.9, "variant": "paper"}
    assert found.save == {"fields": ["position", "contacts"], "precision": "single", "every": 3}
    assert found.step == {"leave_gaps": False}
    with pytest.raises(SceneError, match=r"save\.fields\[0\]: .*Did you mean 'position'"):
        loaded(tmp_path, text.replace('"position"', '"positon"'))


def test_rotations():
    spatial = pytest.importorskip("scipy.spatial.transform")
    for order, angles in (("xyz", (10, 20, 30)), ("ZYX", (40, -50, 60)), ("zxz", (5, 6, 7)), ("Y", (33,))):
        wanted = np.roll(spatial.Rotation.from_euler(order, angles, degrees=True).as_quat(), 1)
        found = euler(order, degrees=angles)
        assert min(np.abs(found - wanted).max(), np.abs(found + wanted).max()) < 1e-15
    rng = np.random.default_rng(0)
    for _ in range(20):
        forward, up = rng.normal(size=(2, 3))
        for axis in range(3):
            m = rotation.matrix(look_at(forward, up=up, axis="xyz"[axis]))
            np.testing.assert_allclose(m[:, axis], forward / np.linalg.norm(forward), atol=1e-14)
            assert m[:, (axis + 2) % 3] @ up > 0 and abs(m[:, (axis + 1) % 3] @ up) < 1e-14
    assert np.allclose(rotation.matrix(look_at((0, 0, 1)))[:, 0], (0, 0, 1))
    np.testing.assert_allclose(axis_angle((0, 0, 5), degrees=90), (np.sqrt(0.5), 0, 0, np.sqrt(0.5)))
    for wrong in (
        lambda: axis_angle((0, 0, 1)),
        lambda: axis_angle((0, 0, 0), degrees=1),
        lambda: euler("xYz", degrees=(1, 2, 3)),
        lambda: euler("xyz", degrees=(1, 2)),
    ):
        with pytest.raises(SceneError):
            wrong()


def test_rotations_of_a_scene_file(tmp_path):
    text = "\n".join(
        f"[[body]]\nmass = 1\n{BALL}\nposition = [{i}, 0, 0]\nrotation = {{{words}}}"
        for i, words in enumerate(
            (
                "axis = [0, 0, 1], angle_degrees = 30",
                'euler_degrees = [10, 20, 30], order = "ZYX"',
                "look_at = [1, 1, 0]",
            )
        )
    )
    model = loaded(tmp_path, text).model
    wanted = [axis_angle((0, 0, 1), degrees=30), euler("ZYX", degrees=(10, 20, 30)), look_at((1, 1, 0))]
    np.testing.assert_allclose(model.user_pose(model.initial)[1], wanted, atol=1e-15)
    for words in ("axis = [0, 0, 1]", "look_at = [1, 0, 0], axis = [0, 0, 1], angle_degrees = 1", "up = [0, 0, 1]"):
        with pytest.raises(SceneError, match="needs one of"):
            loaded(tmp_path, f"[[body]]\nmass = 1\n{BALL}\nrotation = {{{words}}}")


def test_scipy_rotations_and_the_order_of_others():
    """Everywhere an orientation is taken; (0, 0, 0, 1) is no rotation in x, y, z, w, and a half turn here."""
    spatial = pytest.importorskip("scipy.spatial.transform")
    turn = spatial.Rotation.from_euler("xyz", (10, 20, 30), degrees=True)
    many = spatial.Rotation.random(3, rng=np.random.default_rng(0))
    scene = tb.SceneBuilder()
    scene.add_body(tb.Placed(tb.Box((1, 2, 3)), orientation=turn), mass=1.0, orientation=turn)
    scene.add_copies(tb.Box((1, 2, 3)), mass=1.0, position=[(9 * i, 9, 0) for i in range(3)], orientation=many)
    model = scene.build()
    found = rotation.matrix(model.user_pose(model.initial)[1])
    np.testing.assert_allclose(found, np.concatenate([turn.as_matrix()[None], many.as_matrix()]), atol=1e-14)
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3))
    with pytest.warns(tb.TumbleWarning, match="half turn about z"):
        scene.add_body(tb.Sphere(1), mass=1.0, position=(0, -9, 0), orientation=(0, 0, 0, 1))
    sim.set_state(orientation=spatial.Rotation.identity(4))
    np.testing.assert_allclose(sim.orientations(), np.tile((1.0, 0, 0, 0), (4, 1)), atol=1e-15)
