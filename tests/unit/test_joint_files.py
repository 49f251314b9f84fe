"""Joints, motors, gears, springs, bushings and robots in scene files."""

import numpy as np
import pytest

import tumble as tb
from tumble.cli import main
from tumble.enums import RowRole
from tumble.errors import SceneError
from tumble.scene.files import load_scene

BODIES = """
[[body]]
name = "frame"
mass = 2
inertia = [0.1, 0.1, 0.1]
center = [0, 0, 0.2]
[[body]]
name = "wheel"
mass = 1
shape = {type = "cylinder", radius = 0.1, height = 0.05}
position = [1, 0, 0]
[[body]]
name = "slider"
mass = 1
shape = {type = "box", size = [0.1, 0.1, 0.1]}
position = [0, 1, 0]
"""
FULL = (
    BODIES
    + """
[[joint]]
name = "mount"
kind = "fixed"
b = "frame"
anchor = [0, 0, 0]
[[joint]]
name = "axle"
kind = "revolute"
a = "frame"
b = "wheel"
anchor = [1, 0, 0]
axis = [0, 0, 1]
limits = [-inf, 0.5]
friction = 0.1
[[joint]]
name = "rail"
kind = "cylindrical"
a = "ground"
b = "slider"
anchor_b = [0, 0, 0]
axis_b = [0, 1, 0]
limits = {slide = [-0.2, 0.3]}
collide = true
[[gear]]
name = "rack"
first = "axle"
second = ["rail", "slide"]
ratio = 0.1
[[motor]]
name = "drive"
joint = "axle"
mode = "speed"
target = 2
maximum = 3
[[spring]]
name = "pull"
a = "frame"
b = "slider"
anchor_a = [0, 0, 0.1]
stiffness = 100
damping = 1
rest_length = 0.9
[[joint_spring]]
name = "return"
joint = ["rail", "turn"]
stiffness = 5
rest = 0.1
[[bushing]]
name = "rubber"
a = "frame"
b = "wheel"
anchor = [0.5, 0, 0]
axis = [1, 0, 0]
stiffness = [1, 2, 3, 4, 5, 6]
damping = [0, 0, 0, 0, 0, 1]
[step]
dt = 1e-3
[run]
until = 0.01
"""
)

ROBOT = """<robot name="r">
<link name="base"/>
<link name="arm"><inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
<collision><geometry><mesh filename="package://parts/ball.stl"/></geometry></collision></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="2" effort="5" velocity="1"/></joint>
</robot>"""


@pytest.fixture
def write(tmp_path):
    def make(text, name="scene.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


def rows(joints, name, role):
    return np.flatnonzero((joints.row_element == joints.element(name)) & (joints.row_role == role))


def test_every_table_reaches_the_model(write):
    model = load_scene(write(FULL)).model
    j = model.joints
    assert j.names == ["mount", "axle", "rail", "rack", "drive", "pull", "return", "rubber"]
    assert np.allclose(model.body_center[model.bodies("frame")[0]], [0, 0, 0.2])
    assert len(rows(j, "axle", RowRole.LOWER)) == 0
    assert j.row_offset[rows(j, "axle", RowRole.UPPER)] == -0.5
    assert j.row_most[rows(j, "axle", RowRole.FRICTION)] == 0.1
    assert j.row_offset[rows(j, "rail", RowRole.LOWER)] == -0.2
    assert j.row_weight[rows(j, "rack", RowRole.RIGID)[0]].tolist() == [1.0, -0.1]
    assert j.row_most[rows(j, "drive", RowRole.BOUNDED_SPEED)] == 3.0 and j.motors[0].target == 2.0
    pull = rows(j, "pull", RowRole.SPRING)
    assert (j.row_stiffness[pull], j.row_damping[pull], j.row_offset[pull]) == (100.0, 1.0, 0.9)
    assert j.row_offset[rows(j, "return", RowRole.SPRING)] == 0.1
    assert j.row_stiffness[rows(j, "rubber", RowRole.SPRING)].tolist() == [1, 2, 3, 4, 5, 6]
    wheel, frame = model.bodies("wheel")[0], model.bodies("frame")[0]
    assert model.excluded.tolist() == [(frame << 32) + wheel, (frame << 32) + model.bodies("ground")[0]]


def test_the_same_scene_in_python(write):
    scene = tb.SceneBuilder()
    box = tb.Box((0.1, 0.1, 0.1))
    scene.add_body(box, mass=1, position=(0, 0, 1), name="bob")
    scene.add_joint("revolute", None, "bob", anchor=(0.5, 0, 1), axis=(0, 1, 0), limits=(-0.1, 1), name="pivot")
    scene.add_joint_spring("pivot", damping=0.2)
    text = """
    [[body]]
    name = "bob"
    shape = {type = "box", size = [0.1, 0.1, 0.1]}
    mass = 1
    position = [0, 0, 1]
    [[joint]]
    name = "pivot"
    kind = "revolute"
    b = "bob"
    anchor = [0.5, 0, 1]
    axis = [0, 1, 0]
    limits = [-0.1, 1]
    [[joint_spring]]
    joint = "pivot"
    damping = 0.2
    """
    ends = []
    for model in (scene.build(), load_scene(write(text)).model):
        sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3))
        for _ in range(50):
            sim.step()
        ends.append(sim.positions())
    assert np.array_equal(*ends) and np.abs(ends[0][0, 2] - 1) < 0.06


def test_a_robot_beside_its_scene(write, tmp_path, capsys):
    pytest.importorskip("yourdfpy", reason="robots need the extra tumble[urdf]")
    import trimesh

    (tmp_path / "robots" / "parts").mkdir(parents=True)
    trimesh.creation.icosphere(radius=0.1).export(tmp_path / "robots" / "parts" / "ball.stl")
    write(ROBOT, "arm.urdf")
    path = write(
        """
        [[material]]
        name = "rubber"
        friction = 0.9
        [[robot]]
        urdf = "arm.urdf"
        package_paths = ["robots"]
        prefix = "left_"
        position = [0, 0, 1]
        rotation = {axis = [0, 0, 1], angle_degrees = 90}
        fixed = true
        values = {hinge = 0.5}
        motors = "hold"
        material = "rubber"
        [[robot]]
        urdf = "arm.urdf"
        package_paths = {parts = "robots/parts"}
        fixed = true
        self_collision = true
        motors = {hinge = "speed"}
        [[motor]]
        joint = "hinge"
        mode = "torque"
        target = 1
        [[exclude]]
        a = "left_arm"
        b = "arm"
        """
    )
    model = load_scene(path).model
    assert [m.name for m in model.joints.motors] == ["left_hinge:motor", "hinge:motor", "motor4"]
    position, orientation = model.user_pose(model.initial)
    assert np.allclose(position[model.bodies("left_base")[0]], [0, 0, 1])
    assert np.allclose(orientation[model.bodies("left_base")[0]], [2**-0.5, 0, 0, 2**-0.5])
    assert model.materials[model.shape_material[0]].name == "rubber"
    assert main(["info", str(path)]) == 0
    assert "joints.revolute" in capsys.readouterr().out


JOINT = '[[joint]]\nkind = "revolute"\na = "frame"\nb = "wheel"\nanchor = [1, 0, 0]\naxis = [0, 0, 1]\nname = "axle"\n'


@pytest.mark.parametrize(
    "text, place, words",
    [
        ('[[joint]]\nkind = "hinge"', "joint[0].kind", ["'revolute'", "'hinge'"]),
        ("[[joint]]\nanchor = [0, 0, 0]", "joint[0].kind", ["is required"]),
        (JOINT + "anchr = [0, 0, 0]", "joint[0].anchr", ["unknown key", "'anchor'"]),
        (JOINT.replace("axis = [0, 0, 1]", "axis = [0, 1]"), "joint[0].axis", ["3 items"]),
        (JOINT.replace("axis = [0, 0, 1]", "axis = [0, 0, 0]"), "joint[0]: add_joint('axle').axis", ["a direction"]),
        (JOINT.replace('"wheel"', '"whel"'), "joint[0]: add_joint('axle')", ["unknown body", "'wheel'"]),
        (JOINT + "limits = [1, -1]", "joint[0]: add_joint('axle').limits", ["low < high"]),
        (JOINT + "limits = [nan, 1]", "joint[0]: add_joint('axle').limits", ["must be finite"]),
        (JOINT + "limits = {trun = [0, 1]}", "joint[0].limits.trun", ["'turn'"]),
        (JOINT + "friction = inf", "joint[0].friction", ["finite"]),
        (JOINT + JOINT, "joint[1]: add_joint('axle').name", ["unique"]),
        (JOINT + '[[motor]]\njoint = "axel"', "motor[0]: add_motor", ["unknown joint", "'axle'"]),
        (JOINT + '[[motor]]\njoint = "axle"\nmode = "sped"', "motor[0].mode", ["'speed'"]),
        (JOINT + '[[motor]]\njoint = "axle"\nmaximum = -1', "motor[0]: add_motor.maximum", ["> 0"]),
        (JOINT + '[[gear]]\nfirst = "axle"\nsecond = "axle"\nratio = 1', "gear[0]: add_gear", ["two coordinates"]),
        (JOINT + '[[gear]]\nfirst = "axle"\nratio = 1', "gear[0].second", ["is required"]),
        ('[[spring]]\na = "frame"\nb = "wheel"', "spring[0]: add_spring", ["stiffness or a damping"]),
        ('[[spring]]\na = "frame"\nb = "wheel"\nstifness = 1', "spring[0].stifness", ["'stiffness'"]),
        (JOINT + '[[joint_spring]]\njoint = "axle"', "joint_spring[0]: add_joint_spring", ["stiffness"]),
        ('[[bushing]]\nb = "wheel"\nanchor = [0, 0, 0]', "bushing[0].stiffness", ["is required"]),
        ('[[bushing]]\nb = "wheel"\nanchor = [0, 0, 0]\nstiffness = [1, 2]', "bushing[0].stiffness", ["6 items"]),
        ("[[robot]]\nfixed = true", "robot[0].urdf", ["is required"]),
        ('[[robot]]\nurdf = "no.urdf"', "robot[0]: ", ["no.urdf", "readable file"]),
        ('[[robot]]\nurdf = "no.urdf"\nmotors = "hodl"', "robot[0].motors", ["'hodl'"]),
        ('[[body]]\nname = "bare"\nmass = 1\ninertia = [1, 1, 9]', "body[3]: add_body('bare').inertia", ["sum"]),
    ],
)
def test_mistakes_name_file_place_and_value(write, text, place, words):
    path = write(BODIES + text)
    with pytest.raises(SceneError) as caught:
        load_scene(path)
    line = str(caught.value)
    assert "\n" not in line and line.startswith(f"{path}: {place}"), line
    for word in words:
        assert word in line
