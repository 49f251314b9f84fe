"""Robots from URDF files: what becomes of them, and how mistakes in them are told."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh

import tumble as tb
from tumble.cli import main
from tumble.enums import BodyKind, RowRole, ShapeKind
from tumble.errors import FileError, SceneError, TumbleError
from tumble.observe.facts import robot_facts
from tumble.scene import rotation
from tumble.scene.files import load_scene
from tumble.scene.urdf_file import read_urdf

pytest.importorskip("yourdfpy", reason="robots need the extra tumble[urdf]")

INERTIA = '<inertia ixx="0.04" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.02"/>'


def link(name, mass=1.0, more="", inertia=INERTIA, origin=""):
    weight = f'<inertial>{origin}<mass value="{mass}"/>{inertia}</inertial>' if mass is not None else ""
    return f'<link name="{name}">{weight}{more}</link>'


def joint(name, kind, parent, child, more="", axis="0 0 1", origin='<origin xyz="0 0 0"/>'):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="{axis}"/>{origin}{more}</joint>'
    )


LIMIT = '<limit lower="-1" upper="2" effort="5" velocity="3"/>'
ARM = (
    link("base", 3.0)
    + link("arm", 2.0, origin='<origin xyz="0.5 0 0"/>')
    + joint("hinge", "revolute", "base", "arm", LIMIT, axis="0 -1 0")
)


@pytest.fixture
def write(tmp_path):
    def make(content, name="robot.urdf"):
        path = tmp_path / name
        path.write_text(f'<?xml version="1.0"?><robot name="r">{content}</robot>')
        return path

    return make


def added(path, **options):
    scene = tb.SceneBuilder()
    robot = scene.add_urdf(path, **options)
    return scene, robot, scene.build()


def rows_of(model, name, role):
    j = model.joints
    mask = (j.row_element == j.element(name)) & (j.row_role == role)
    return np.flatnonzero(mask)


# ---------------------------------------------------------------------- links


def test_mass_centre_and_a_turned_inertia(write):
    tensor = '<inertia ixx="1" ixy="0.1" ixz="0.2" iyy="2" iyz="0.3" izz="2.5"/>'
    origin = '<origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/>'
    _, robot, model = added(write(link("a", 7.0, inertia=tensor, origin=origin)))
    body = robot.bodies["a"]
    assert model.body_mass[body] == 7.0 and robot.mass == 7.0
    assert np.allclose(model.body_center[body], [0.1, 0.2, 0.3], atol=1e-15)
    roll, pitch, yaw = 0.4, 0.5, 0.6  # about the fixed axes x, y, z in turn
    turns = [rotation.matrix(rotation.from_axis_angle(e, t)) for e, t in zip(np.eye(3), (roll, pitch, yaw))]
    axes = turns[2] @ turns[1] @ turns[0]
    given = np.array([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]])
    principal = rotation.matrix(model.body_axes[body])
    found = principal @ np.diag(model.body_inertia[body]) @ principal.T
    assert np.allclose(found, axes @ given @ axes.T, atol=1e-14)


def test_links_that_are_fixed_to_each_other_are_one_body(write):
    two = (
        link("a", 1.0, inertia='<inertia ixx="1" iyy="1" izz="1"/>')
        + link("b", 3.0, BALL, inertia='<inertia ixx="1" iyy="2" izz="2"/>')
        + link("tip", None)
        + joint("glue", "fixed", "a", "b", axis="0 0 0", origin='<origin xyz="0 0 4" rpy="0 0 1.5707963267948966"/>')
        + joint("end", "fixed", "b", "tip", origin='<origin xyz="1 0 0"/>')
    )
    _, robot, model = added(write(two))
    assert model.body_count == 1 and set(robot.bodies) == {"a", "b", "tip"} and robot.joints == {}
    assert np.allclose(model.body_center[0], [0, 0, 3])
    assert np.allclose(np.sort(model.body_inertia[0]), np.sort([1 + 2 + 9 + 3, 1 + 1 + 9 + 3, 1 + 2]))
    assert np.allclose(robot.frames["tip"][0], [0, 1, 4])
    assert np.allclose(model.shape_position[0] + model.body_center[0], [0, 0, 4], atol=1e-12)


BALL = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'


def test_shapes_of_every_kind_where_they_belong(write, tmp_path):
    (tmp_path / "meshes").mkdir()
    trimesh.creation.box((1, 2, 3)).export(tmp_path / "meshes" / "part.stl")
    scaled = '<mesh filename="package://some_robot/meshes/part.stl" scale="0.1 0.1 -0.2"/>'
    kinds = ['<box size="1 2 3"/>', '<cylinder radius="0.2" length="0.5"/>', '<sphere radius="0.3"/>', scaled]
    collisions = "".join(
        f'<collision><origin xyz="0 0 {k}" rpy="0 0 1"/><geometry>{g}</geometry></collision>'
        for k, g in enumerate(kinds)
    )
    scene, robot, model = added(write(link("a", 1.0, collisions)))
    expected = [ShapeKind.BOX, ShapeKind.CYLINDER, ShapeKind.SPHERE, ShapeKind.HULL]
    assert model.shape_kind.tolist() == expected
    shapes = scene._batches[0].shapes
    assert shapes[0].shape.size == (1, 2, 3)
    assert (shapes[1].shape.radius, shapes[1].shape.height) == (0.2, 0.5)
    assert np.allclose(np.ptp(shapes[3].shape.points, axis=0), [0.1, 0.2, 0.6])
    assert [p.position[2] for p in shapes] == [0, 1, 2, 3]
    assert np.allclose(shapes[1].orientation, rotation.from_axis_angle([0, 0, 1], 1.0))
    assert list(robot.meshes.values()) == [tmp_path / "meshes" / "part.stl"]
    assert any("convex hull" in line for line in robot.read)


def test_a_fixed_root_keeps_its_mesh_and_need_not_weigh_anything(write, tmp_path):
    trimesh.creation.box((1, 2, 3)).export(tmp_path / "part.obj")
    stand = '<collision><geometry><mesh filename="part.obj"/></geometry></collision>'
    _, robot, model = added(write(link("base", None, stand)), fixed=True)
    assert model.body_kind[0] == BodyKind.STATIC and model.shape_kind[0] == ShapeKind.MESH and robot.mass == 0
    with pytest.raises(SceneError, match=r"link 'base': a root that moves needs a mass .*fixed=True"):
        added(write(link("base", None, stand)))


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_collada_meshes_have_a_unit(write, tmp_path, unit):
    pytest.importorskip("collada")
    path = tmp_path / "part.dae"
    path.write_bytes(trimesh.creation.box((1, 2, 3)).export(file_type="dae"))
    text = path.read_text()
    assert "<unit" not in text or 'meter="1' in text
    path.write_text(text.replace("<asset>", f'<asset><unit name="x" meter="{unit}"/>', 1))
    assert np.allclose(np.ptp(tb.Mesh.load(path).vertices, axis=0), np.array([1, 2, 3]) * unit)


@pytest.mark.parametrize("form", ["dict", "list", "package", "none"])
def test_where_meshes_are_sought(write, tmp_path, form):
    home = tmp_path / "elsewhere" / "some_robot"
    (home / "meshes").mkdir(parents=True)
    trimesh.creation.box((1, 1, 1)).export(home / "meshes" / "part.stl")
    path = write(link("a", 1.0, collision_mesh("package://some_robot/meshes/part.stl")))
    options = {"dict": {"some_robot": home}, "list": [home.parent], "package": home, "none": None}[form]
    if form == "none":
        with pytest.raises(FileError, match=r"link 'a': mesh: the mesh must exist .*part.stl.*package_paths"):
            added(path)
        assert robot_facts(path)["meshes"] == {"package://some_robot/meshes/part.stl": "not found"}
    else:
        assert added(path, package_paths=options)[1].meshes


def collision_mesh(name):
    return f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'


# ---------------------------------------------------------------------- joints


def test_limits_are_those_of_the_file_wherever_the_joint_starts(write):
    path = write(ARM)
    for value in (0.0, 0.5, -1.0):
        _, robot, model = added(path, values={"hinge": value})
        assert robot.values == {"hinge": value}
        low, high = rows_of(model, "hinge", RowRole.LOWER), rows_of(model, "hinge", RowRole.UPPER)
        assert model.joints.row_offset[low] == -1.0 and model.joints.row_offset[high] == -2.0
        sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3))
        assert sim.joint_values()["hinge"] == pytest.approx(value, abs=1e-12)
        _, orientation = model.user_pose(model.initial)
        turn = rotation.from_axis_angle([0, -1, 0], value)
        assert np.allclose(orientation[robot.bodies["arm"]], turn)
    with pytest.raises(SceneError, match=r"values.hinge: must lie between its limits -1 and 2 \(got 2.5\)"):
        added(path, values={"hinge": 2.5})
    with pytest.raises(SceneError, match="Did you mean 'hinge'"):
        added(path, values={"hing": 0.0})


def test_without_a_value_the_nearest_to_zero_within_the_limits(write):
    content = ARM.replace('lower="-1"', 'lower="0.25"')
    assert added(write(content))[1].values == {"hinge": 0.25}


@pytest.mark.parametrize("start", [-0.5, 0.4])
def test_an_arm_falls_to_its_limits(write, start):
    """Up is positive about -y: gravity takes the arm down to its lower limit, wherever it starts."""
    content = ARM.replace('effort="5" velocity="3"/>', 'effort="5" velocity="3"/><dynamics damping="3"/>')
    _, robot, model = added(write(content), fixed=True, values={"hinge": start})
    sim = tb.Simulation(model, options=tb.StepOptions(dt=2e-3))
    sim.run(until=1.5)
    assert sim.joint_values()[robot.joints["hinge"]] == pytest.approx(-1.0, abs=1e-5)
    x, _, z = sim.positions()[robot.bodies["arm"]]  # of the link's frame
    w, _, y, _ = sim.orientations()[robot.bodies["arm"]]
    assert 2 * np.arctan2(y, w) == pytest.approx(1.0, abs=1e-5)
    assert (x, z) == pytest.approx((0, 0), abs=1e-6)


def test_a_prismatic_joint_slides_from_its_value(write):
    content = link("a") + link("b") + joint("slide", "prismatic", "a", "b", LIMIT, axis="1 0 0")
    _, robot, model = added(write(content), values={"slide": 0.5}, fixed=True, motors={"slide": "speed"})
    assert np.allclose(model.user_pose(model.initial)[0][robot.bodies["b"]], [0.5, 0, 0])
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3))
    sim.set_target(robot.motors["slide"], 2.0)
    sim.run(until=1.0)
    assert sim.positions()[robot.bodies["b"], 0] == pytest.approx(2.0, abs=1e-5)


def test_motors_have_the_effort_of_the_file(write):
    path = write(ARM)
    _, robot, model = added(path, motors="hold")
    row = rows_of(model, robot.motors["hinge"], RowRole.BOUNDED_POSITION)
    assert model.joints.row_most[row] == 5.0 and robot.efforts == {"hinge": 5.0}
    assert added(path, motors={"hinge": "torque"})[2].joints.motors[0].mode == "torque"
    _, robot, _ = added(write(ARM.replace('effort="5"', 'effort="0"')), motors="hold")
    assert robot.motors == {} and any("effort is 0" in line for line in robot.read)
    with pytest.raises(SceneError, match="must be one of hold, speed, torque"):
        added(path, motors="hodl")
    with pytest.raises(SceneError, match="unknown joint"):
        added(path, motors={"hingee": "hold"})


def test_friction_and_damping(write):
    content = ARM.replace(LIMIT, LIMIT + '<dynamics damping="0.7" friction="0.3"/>')
    _, _, model = added(write(content), prefix="left_")
    assert model.joints.row_most[rows_of(model, "left_hinge", RowRole.FRICTION)] == 0.3
    assert model.joints.row_damping[rows_of(model, "left_hinge:damper", RowRole.SPRING)] == 0.7
    assert "left_arm" in [name for name, _, _ in model.names]


FINGERS = (
    link("palm")
    + link("one")
    + link("two")
    + joint("first", "revolute", "palm", "one", LIMIT)
    + joint("second", "revolute", "palm", "two", LIMIT + '<mimic joint="first" multiplier="-0.5" offset="0.2"/>')
)


def test_mimic_is_a_gear(write):
    _, robot, model = added(write(FINGERS), values={"first": 0.4}, motors="speed", fixed=True)
    assert robot.values == pytest.approx({"first": 0.4, "second": 0.0}) and set(robot.motors) == {"first"}
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3))
    sim.set_target(robot.motors["first"], 1.0)
    sim.run(until=0.5)
    value = sim.joint_values()
    assert value["first"] == pytest.approx(0.9, abs=0.01)  # the effort of 5 N m takes a few steps to bring it to speed
    assert value["second"] == pytest.approx(-0.5 * value["first"] + 0.2, abs=1e-9)
    with pytest.raises(SceneError, match="follows 'first'"):
        added(write(FINGERS), values={"second": 0.0})


def test_a_joint_that_follows_one_at_rest_is_held(write):
    content = FINGERS.replace('lower="-1" upper="2"', 'lower="0.3" upper="0.3"', 1)
    _, robot, model = added(write(content))
    assert model.body_count == 1 and robot.values == pytest.approx({"first": 0.3, "second": 0.05})
    assert sum("held at" in line for line in robot.read) == 2


def test_floating_and_planar_joints(write):
    content = (
        link("world", None)
        + link("body")
        + link("puck")
        + joint("free", "floating", "world", "body", origin='<origin xyz="0 0 2"/>')
        + joint("table", "planar", "body", "puck", axis="0 1 0")
    )
    _, robot, model = added(write(content))
    assert "world" not in robot.bodies and set(robot.joints) == {"table"}
    assert np.allclose(model.user_pose(model.initial)[0][robot.bodies["body"]], [0, 0, 2])
    assert model.joints.elements[0].kind == "planar"
    assert len(rows_of(model, "table", RowRole.RIGID)) == 3


def test_what_weighs_nothing_and_touches_nothing_is_a_frame(write):
    content = ARM + link("tool", None) + joint("spin", "continuous", "arm", "tool")
    _, robot, model = added(write(content))
    assert model.body_count == 2 and robot.bodies["tool"] == robot.bodies["arm"]
    assert any("joint 'spin': held" in line for line in robot.ignored)
    between = content + link("hand", 1.0) + joint("grip", "continuous", "tool", "hand")
    with pytest.raises(SceneError, match=r"link 'tool': moves by joint 'spin' and needs a mass"):
        added(write(between))


def test_links_do_not_collide_unless_asked(write):
    chain = link("a", 1, BALL) + link("b", 1, BALL) + link("c", 1, BALL)
    chain += joint("ab", "continuous", "a", "b") + joint("bc", "continuous", "b", "c")
    assert len(added(write(chain))[2].excluded) == 3
    assert len(added(write(chain), self_collision=True)[2].excluded) == 2


def test_two_robots_need_a_prefix_and_nothing_is_added_before_the_error(write):
    scene = tb.SceneBuilder()
    scene.add_urdf(write(ARM))
    with pytest.raises(SceneError, match=r"unique.*Give a prefix"):
        scene.add_urdf(write(ARM))
    assert scene._count == 2
    scene.add_urdf(write(ARM), prefix="b_", position=(0, 0, 5), orientation=(0, 1, 0, 0))
    position, orientation = scene.build().user_pose(scene.build().initial)
    assert np.allclose(position[2], [0, 0, 5]) and np.allclose(orientation[2], [0, 1, 0, 0])


# ---------------------------------------------------------------------- ignored and mistakes


def test_what_is_not_honoured_is_named(write):
    visual = '<visual><geometry><capsule radius="1" length="2"/></geometry><material name="m"/></visual>'
    content = (
        link("base", 1.0, visual)
        + link("arm")
        + joint("hinge", "revolute", "base", "arm", LIMIT + '<safety_controller k_velocity="1"/>')
        + '<material name="red"/><gazebo reference="arm"><mu1>1</mu1></gazebo><sensor name="imu"/>'
        + '<transmission name="gear"/>'
    )
    ignored = added(write(content))[1].ignored
    for words in ("visual: link 'base'", "limit velocity: joint 'hinge'", "safety_controller: joint 'hinge'"):
        assert words in ignored
    for words in ("gazebo: 'arm'", "sensor: 'imu'", "transmission: 'gear'", "material: 'red'"):
        assert words in ignored


BROKEN = [
    (ARM.replace('axis xyz="0 -1 0"', 'axis xyz="0 0 0"'), ["joint 'hinge': axis", "length 1"]),
    (ARM.replace('axis xyz="0 -1 0"', 'axis xyz="1 1 0"'), ["joint 'hinge': axis", "[1.0, 1.0, 0.0]"]),
    (ARM.replace('axis xyz="0 -1 0"', 'axis xyz="1 0"'), ["axis.xyz", "3 finite numbers", "'1 0'"]),
    (ARM.replace('parent link="base"', 'parent link="bas"'), ["joint 'hinge': parent", "Did you mean 'base'?"]),
    (ARM.replace('child link="arm"', 'child link="leg"'), ["joint 'hinge': child", "unknown link"]),
    (ARM.replace('<parent link="base"/>', ""), ["joint 'hinge'", "needs a <parent>"]),
    (ARM + link("other"), ["one root link", "'base', 'other'"]),
    (ARM + joint("back", "fixed", "arm", "base"), ["no root", "loop"]),
    (ARM + joint("twice", "fixed", "base", "arm"), ["link 'arm'", "child of one joint", "'hinge' and 'twice'"]),
    (
        ARM + link("x") + link("y") + joint("xy", "fixed", "x", "y") + joint("yx", "fixed", "y", "x"),
        ["hang from the root", "'x', 'y'"],
    ),
    ("", ["needs a link"]),
    (ARM.replace(LIMIT, ""), ["joint 'hinge'", "needs a <limit>", "continuous"]),
    (ARM.replace('lower="-1"', 'lower="3"'), ["joint 'hinge': limit", "lower <= upper"]),
    (ARM.replace('lower="-1"', 'lower="low"'), ["limit.lower", "1 finite number", "'low'"]),
    (ARM.replace('lower="-1"', 'lower="nan"'), ["limit.lower", "finite"]),
    (ARM.replace('effort="5"', 'effort="-5"'), ["limit.effort", ">= 0"]),
    (ARM.replace('type="revolute"', 'type="hinge"'), ["joint 'hinge': type", "must be one of revolute"]),
    (ARM.replace('name="arm"', 'name="base"'), ["names of links are unique", "'base'"]),
    (ARM + joint("hinge", "fixed", "base", "arm"), ["names of joints are unique"]),
    (ARM.replace('mass value="2.0"', 'mass value="-2"'), ["link 'arm': mass", ">= 0"]),
    (ARM.replace('mass value="2.0"', 'mass value="0"'), ["held"]),
    (ARM.replace('ixx="0.04"', 'ixx="0.4"'), ["link 'base'", "principal moment"]),
    (ARM.replace('ixx="0.04"', 'ixx="0"'), ["link 'base'", "principal moments > 0"]),
    (ARM.replace('ixx="0.04" ', ""), ["link 'base'", "attribute ixx"]),
    (ARM.replace(LIMIT, LIMIT + '<mimic joint="x"/>'), ["mimic", "unknown joint", "'x'"]),
    (ARM.replace(LIMIT, LIMIT + '<mimic joint="hinge"/>'), ["mimic", "circle"]),
    (FINGERS.replace('offset="0.2"', 'offset="9"'), ["values.second", "limits", "values={'first': ...}"]),
    (link("a", 1, '<collision><geometry><cone radius="1"/></geometry></collision>'), ["link 'a'", "<cone>"]),
    (link("a", 1, "<collision><geometry/></collision>"), ["link 'a'", "nothing"]),
    (link("a", 1, "<collision/>"), ["link 'a'", "needs a <geometry>"]),
    (
        link("a", 1, '<collision><geometry><box size="1 0 1"/></geometry></collision>'),
        ["link 'a': box", "must be > 0"],
    ),
    (link("a", 1, '<collision><geometry><box size="1 1"/></geometry></collision>'), ["box.size", "3 finite numbers"]),
    (link("a", 1, collision_mesh("no.stl")), ["link 'a': mesh", "must exist", "'no.stl'"]),
    (link("a", 1, collision_mesh("robot.urdf")), ["link 'a': mesh", "a mesh file ends in"]),
]


@pytest.mark.parametrize("content, words", BROKEN)
def test_mistakes_name_file_and_place(write, content, words):
    path = write(content)
    if words == ["held"]:  # an arm without mass and shapes is no mistake
        assert any("held" in line for line in added(path)[1].ignored)
        return
    with pytest.raises(TumbleError) as caught:
        added(path)
    line = str(caught.value)
    assert line.startswith(str(path)) and "\n" not in line
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    "text, words",
    [
        ("<robot", "valid XML"),
        ("", "valid XML"),
        ("<model/>", "root element <robot>"),
        ('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro/></robot>', "Expand it with xacro"),
    ],
)
def test_files_of_another_kind(tmp_path, text, words):
    path = tmp_path / "x.urdf"
    path.write_text(text)
    with pytest.raises(FileError, match=words):
        read_urdf(path)


def test_bad_arguments(write, tmp_path):
    path = write(ARM)
    for options in (
        {"fixed": 1},
        {"self_collision": "no"},
        {"prefix": 3},
        {"position": (0, 0)},
        {"orientation": (0, 0, 0, 2)},
        {"values": 3},
        {"values": {"hinge": "x"}},
        {"motors": 3},
        {"package_paths": [tmp_path / "missing"]},
        {"package_paths": [3]},
    ):
        with pytest.raises(TumbleError):
            added(path, **options)
    for bad in (tmp_path / "no.urdf", tmp_path, 3):
        with pytest.raises(FileError):
            added(bad)


def test_the_extra_is_named_where_it_is_missing(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "yourdfpy", None)
    with pytest.raises(SceneError, match=r"pip install 'tumble\[urdf\]'"):
        added(write(ARM))


# ---------------------------------------------------------------------- command line


def test_info_lists_a_robot(write, capsys):
    path = write(ARM + link("tip", None, BALL) + joint("glue", "fixed", "arm", "tip"))
    assert main(["info", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["total_mass"] == 5.0 and facts["bodies"] == 2 and facts["root"] == "base"
    assert facts["links"]["tip"] == {"mass": 0.0, "body": "arm", "shapes": ["sphere"]}
    assert facts["joints"]["hinge"]["limits"] == [-1.0, 2.0] and facts["joints"]["hinge"]["kind"] == "revolute"
    assert facts["ignored"] == ["limit velocity: joint 'hinge'"]
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "link tip" in out and "-1 to 2 rad" in out


def test_info_of_a_broken_robot_is_one_line(write, capsys):
    assert main(["info", str(write(BROKEN[0][0]))]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "axis" in err
    assert main(["info", "no.urdf"]) == 2


# ---------------------------------------------------------------------- a humanoid from PyPI


@pytest.fixture(scope="module")
def humanoid():
    package = pytest.importorskip("jvrc_description", reason="the package jvrc_description (test extra) is absent")
    return package.urdf_path


def test_the_links_of_a_humanoid_are_where_the_parser_puts_them(humanoid):
    from yourdfpy import URDF

    rng = np.random.default_rng(1)
    free = {n: j for n, j in read_urdf(humanoid).joints.items() if j.kind != "fixed" and j.mimic is None}
    values = {n: float(rng.uniform(j.lower, j.upper)) for n, j in free.items()}
    _, robot, model = added(humanoid, values=values)
    reference = URDF.load(humanoid, load_meshes=False)
    reference.update_cfg(values)
    position, orientation = model.user_pose(model.initial)
    for name, body in robot.bodies.items():
        p, q = robot.frames[name]
        expected = reference.get_transform(name)
        assert np.allclose(position[body] + rotation.rotate(orientation[body], p), expected[:3, 3], atol=1e-12)
        turn = rotation.matrix(rotation.multiply(orientation[body], q))
        assert np.allclose(turn, expected[:3, :3], atol=1e-12)
    total = sum(link.inertial.mass for link in reference.robot.links if link.inertial)
    assert robot.mass == pytest.approx(total) and len(robot.joints) == 44


def test_a_humanoid_stands_on_its_motors(humanoid):
    """44 joints held by motors with the efforts of the file: both feet on the floor carry the weight."""
    scene = tb.SceneBuilder()
    robot = scene.add_urdf(humanoid, position=(0, 0, 0.8545), motors="hold")
    scene.add_static(tb.HalfSpace(), name="floor")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))
    sim.run(until=0.3)
    assert sim.contact_forces().on("floor")[2] == pytest.approx(-9.81 * robot.mass, rel=1e-3)
    feet = {robot.bodies["R_ANKLE_P_S"], robot.bodies["L_ANKLE_P_S"]}
    touching = sim.contacts(margin=1e-4)
    assert feet | set(sim.model.bodies("floor")) == {*touching.body_a.tolist(), *touching.body_b.tolist()}
    # A servo gives its whole effort at a thousandth of its range: none of them is near its limit.
    for name, motor in robot.motors.items():
        assert abs(sim.joint_reactions()[motor].effort) < 0.5 * robot.efforts[name]
        assert abs(sim.joint_values()[robot.joints[name]]) < 5e-4


def test_the_example_with_a_humanoid(humanoid):
    path = Path(__file__).resolve().parents[2] / "examples" / "humanoid.py"
    scene = load_scene(path)
    sim = tb.Simulation(scene.model, options=tb.StepOptions(**scene.step))
    for _ in range(20):
        sim.step()
    begin = 19 * 2.5e-3  # of the last step, which is when its controller was asked
    assert sim.joint_values()["R_KNEE"] == pytest.approx(0.5 * (1 - np.cos(2 * np.pi * begin / 3)), rel=0.05)


@pytest.mark.slow
def test_a_humanoid_stands_for_five_seconds():
    jvrc = pytest.importorskip("jvrc_description", reason="pip install jvrc_description brings the robot")
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), name="floor")
    scene.add_urdf(jvrc.urdf_path, position=(0, 0, 0.8545), motors="hold")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3))
    reports = sim.run(until=5.0, progress=False).reports
    weight = 9.81 * sim.model.body_mass.sum()
    assert sim.contact_forces().on("floor")[2] == pytest.approx(-weight, rel=1e-3)
    assert reports["joint_drift"].max() < 1e-9


def test_what_was_made_of_a_plain_file_is_told(write):
    _, robot, _ = added(write(ARM), fixed=True)
    assert robot.read == (
        "link 'base': fixed, 0 shapes",
        "link 'arm': a body of 2 kg, 0 shapes",
        "joint 'hinge': revolute from -1 to 2",
    )
