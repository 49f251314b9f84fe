"""Copies of an assembly: the same as copies built by hand."""

import dataclasses

import numpy as np
import pytest

import tumble as tb
from tumble.errors import SceneError

STEEL = tb.Material(name="steel", friction=0.25)
HALF_TURN = (0.0, 0.0, 0.0, 1.0)


def drive(time):
    return 0.5 * time


def follow(time, values, speeds):
    return -4.0 * values - speeds


def build(scene, at=(0.0, 0.0, 0.0), prefix=""):
    """A machine of every kind of element, shifted. Its numbers have few binary digits, so that shifting is exact."""

    def name(own):
        return prefix + own

    def to(*place):
        return np.array(at) + place

    def body(own, place, shapes, **more):
        scene.add_body(shapes, position=to(*place), name=name(own), **more)

    halves = [tb.Placed(tb.Box((0.25, 0.25, 0.25)), (x, 0, 0)) for x in (-0.25, 0.25)]
    scene.add_static(tb.Box((0.5, 0.5, 0.25)), position=to(0, 0, -1), material=STEEL, name=name("stand"))
    body(
        "base", (0, 0, 1), tb.Box((1, 0.25, 0.25)), density=512.0, material=STEEL, velocity=(0.5, 0, 0), force=(1, 0, 0)
    )
    body("arm", (1, 0, 1), halves, mass=1.0, angular_velocity=(0, 0, 0.5), group=2, mask=3)
    boxes = scene.add_boxes(
        [(0.25, 0.25, 0.25), (0.25, 0.5, 0.25)],
        position=[to(2, 0, 1), to(3, 0.5, 1)],
        mass=[1.0, 2.0],
        locked=["y"],
        name=name("boxes"),
    )
    body("ghost", (0, 1, 1), None, mass=2.0, inertia=(1, 2, 2.5))
    pushed = scene.add_kinematic(tb.Sphere(0.25), position=to(0, 0, 4), velocity=(0, 0.5, 0), name=name("pushed"))
    elbow = scene.add_joint(
        "revolute",
        name("base"),
        name("arm"),
        anchor=to(0.5, 0, 1),
        axis=(0, 0, 1),
        limits=(-1, 1),
        friction=0.125,
        name=name("elbow"),
    )
    scene.add_joint("fixed", None, name("ghost"), anchor=to(0, 1, 1), name=name("pin"))
    screw = scene.add_joint(
        "cylindrical",
        name("arm"),
        boxes[0],
        anchor=to(2, 0, 1),
        axis=(1, 0, 0),
        limits={"slide": (-1, 1)},
        collide=True,
        name=name("screw"),
    )
    scene.add_motor(elbow, "position", target=drive, stiffness=8.0, damping=2.0, maximum=64.0, name=name("motor"))
    told = scene.add_motor((screw, "slide"), "torque", name=name("told"))
    scene.add_controller(follow, [told])
    scene.add_gear(elbow, (screw, "turn"), 2.0, name=name("gear"))
    scene.add_spring(name("arm"), boxes[1], stiffness=32.0, damping=1.0, name=name("spring"))
    scene.add_spring(None, name("base"), anchor_a=to(0, 0, 3), stiffness=16.0, name=name("rope"))
    scene.add_joint_spring(elbow, stiffness=4.0, name=name("joint spring"))
    scene.add_bushing(name("base"), boxes[1], anchor=to(3, 0.5, 1), stiffness=(1, 2, 3, 4, 5, 6), name=name("bushing"))
    scene.exclude_pair(name("stand"), name("boxes"))
    scene.exclude_pair(pushed, name("base"))


def part():
    scene = tb.SceneBuilder()
    build(scene)
    return scene


def start():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(offset=-0.5), material=STEEL, name="floor")
    return scene


def differences(one, two, found=(), prefix=""):
    """Names of the arrays and lists in which two models differ, to the bit."""
    found = list(found)
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if isinstance(a, np.ndarray):
            if a.dtype != b.dtype or a.shape != b.shape or not np.array_equal(a, b, equal_nan=True):
                found.append(prefix + field.name)
        elif field.name in ("initial", "joints", "pair_laws"):
            found += differences(a, b, prefix=field.name + ".")
        elif field.name == "geometry":
            found += [n for n, x, y in zip(a._fields, a, b) if not np.array_equal(x, y)]
        elif field.name == "controllers":
            if [(c.callback, c.motors.tolist()) for c in a] != [(c.callback, c.motors.tolist()) for c in b]:
                found.append("controllers")
        elif field.name in ("names", "materials", "elements", "motors") and a != b:
            found.append(prefix + field.name)
    return found


SHIFTS = np.array([(0, 0, 0), (8, 0, 0), (0, 16, 0.5), (-8, 4, 0)], float)


def test_copies_step_to_the_same_bits_as_copies_built_by_hand():
    copied, by_hand = start(), start()
    indices = copied.replicate(part(), position=SHIFTS, name="machine")
    for i, shift in enumerate(SHIFTS):
        build(by_hand, shift, f"machine{i}/")
    models = copied.build(), by_hand.build()
    assert differences(*models) == []
    assert indices.shape == (4, 7) and indices[0, 0] == 1 and np.all(np.diff(indices.ravel()) == 1)
    assert models[0].bodies("machine2/boxes").tolist() == indices[2, 3:5].tolist()
    sims = [tb.Simulation(m, options=tb.StepOptions(dt=2.0**-8), solver=tb.SolverAPGD(tolerance=1e-6)) for m in models]
    for sim in sims:
        sim.run(until=20 * 2.0**-8)
    assert sims[0].state.sha256() == sims[1].state.sha256()
    assert np.abs(sims[0].state.velocity[indices[:, 2]]).min(axis=1).max() > 0.0  # it does move


def test_more_can_be_added_to_copies():
    copied, by_hand = start(), start()
    copied.replicate(part(), position=SHIFTS[:2], name="machine")
    for i, shift in enumerate(SHIFTS[:2]):
        build(by_hand, shift, f"machine{i}/")
    for scene in (copied, by_hand):
        scene.add_gear("machine0/elbow", "machine1/elbow", -1.0)
        scene.add_joint("spherical", "machine0/base", "machine1/base", anchor_a=(0, 0, 4), anchor_b=(-8, 0, 4))
        scene.add_body(tb.Sphere(0.5), density=1.0, position=(0, 0, 50))
        with pytest.raises(SceneError, match="names of joints are unique"):
            scene.add_joint_spring("machine0/elbow", stiffness=1.0, name="machine1/pin")
    assert differences(copied.build(), by_hand.build()) == []


def test_a_part_of_copies():
    pair, flat = tb.SceneBuilder(), start()
    pair.replicate(part(), position=SHIFTS[:2], name="m")
    nested = start()
    nested.replicate(pair, position=[(0, 0, 0), (0, 32, 0)], name="row")
    flat.replicate(part(), position=[(0, 0, 0), (8, 0, 0), (0, 32, 0), (8, 32, 0)], name="m")
    found = differences(nested.build(), flat.build())
    assert found == ["names", "joints.elements", "joints.motors"]


def test_turned_copies_move_as_the_part_does():
    """Joints to the ground, velocities and forces turn with a copy; what it does is the same in its own frame."""
    scene, own = tb.SceneBuilder(gravity=(0, 0, -2)), tb.SceneBuilder()
    own.add_body(tb.Box((1, 0.25, 0.5)), density=500.0, position=(0.5, 0, 0), name="link")
    own.add_body(
        tb.Cone(0.25, 1.0), density=500.0, position=(1.5, 0, 0), force=(0, 3, 0), velocity=(0, 0.5, 0), name="tip"
    )
    own.add_joint("universal", None, "link", anchor=(0, 0, 0), axis=(0, 1, 0), second_axis=(0, 0, 1))
    own.add_joint("revolute", "link", "tip", anchor=(1, 0, 0), axis=(0, 0, 1), limits=(-1, 1))
    own.add_motor("revolute1", "torque", target=0.5)
    angle, places = np.array([0.0, 0.7, 2.5, -1.9]), np.array([(0, 0, 0), (10, 0, 0), (0, 10, 1), (10, 10, 2.0)])
    turns = np.stack([np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)], axis=1)
    k = scene.replicate(own, position=places, orientation=turns)
    model = scene.build()
    # What lies on bodies is the same in all copies, to the bit.
    frames = model.joints.frame_position.reshape(4, 2, 2, 3), model.joints.frame_orientation.reshape(4, 2, 2, 4)
    for array in frames:
        assert np.array_equal(array[:, 1], np.broadcast_to(array[0, 1], array[:, 1].shape))
    sim = tb.Simulation(model, options=tb.StepOptions(dt=2.0**-8))
    sim.run(until=40 * 2.0**-8)
    moved = sim.positions()[k] - places[:, None]
    back = np.stack([np.cos(angle), -np.sin(angle)])
    x = back[0][:, None] * moved[..., 0] - back[1][:, None] * moved[..., 1]
    y = back[1][:, None] * moved[..., 0] + back[0][:, None] * moved[..., 1]
    own_place = np.stack([x, y, moved[..., 2]], axis=-1)
    assert np.abs(own_place - own_place[0]).max() < 1e-9
    assert np.abs(own_place[0] - [(0.5, 0, 0), (1.5, 0, 0)]).max() > 0.01


def test_materials_are_shared():
    rubber = tb.Material(name="rubber", friction=0.75)
    own = tb.SceneBuilder()
    own.add_body([tb.Sphere(0.25), tb.Sphere(0.5)], mass=1.0, material=[rubber, STEEL])
    own.add_body(tb.Sphere(0.5), mass=1.0)
    own.set_pair(rubber, "steel", friction=0.5)
    scene = start()
    scene.replicate(own, position=SHIFTS[:2])
    model = scene.build()
    assert [m.name for m in model.materials] == ["steel", "rubber", "default"]
    assert model.shape_material.tolist() == [0, 1, 0, 2, 1, 0, 2]
    assert model.friction[0, 1] == 0.5
    assert [m.name for m in own.build().materials] == ["rubber", "steel", "default"]  # the part is as it was


def with_(add):
    scene = part()
    add(scene)
    return scene


def steel(friction):
    scene = tb.SceneBuilder()
    scene.add_body(tb.Sphere(0.5), mass=1.0, material=tb.Material(name="steel", friction=friction))
    return scene


def pairs(friction):
    scene = start()
    scene.add_material(tb.Material(name="ice"))
    scene.set_pair("steel", "ice", friction=friction)
    return scene


POUR = dict(count=3, rate=1.0, density=1.0, region=tb.BoxRegion(low=(0, 0, 9), high=(1, 1, 9)))
PUSH = tb.Oscillation(amplitude=(0, 0, 1), period=1.0)
BAD = {
    "no builder": (dict(part=3), "replicate('copy').part: must be another SceneBuilder (got 3)"),
    "a model": (dict(part=steel(0.25).build()), "must be another SceneBuilder"),
    "no body": (dict(part=tb.SceneBuilder()), "needs at least one body (got 0)"),
    "emitter": (
        dict(part=with_(lambda s: s.add_emitter(tb.Sphere(0.5), **POUR))),
        "emitters cannot be replicated (got 1)",
    ),
    "sink": (dict(part=with_(lambda s: s.add_sink(point=(0, 0, -9)))), "sinks cannot be replicated (got 1)"),
    "plane": (
        dict(part=with_(lambda s: s.add_measuring_plane(point=(0, 0, 1)))),
        "measuring planes cannot be replicated",
    ),
    "force": (dict(part=with_(lambda s: s.add_force(print))), "force callbacks cannot be replicated (got 1)"),
    "motion": (
        dict(part=with_(lambda s: s.add_kinematic(tb.Sphere(1.0), motion=PUSH))),
        "prescribed motions cannot be replicated",
    ),
    "no place": (dict(position=[]), "replicate('copy').position"),
    "one place": (dict(position=(0, 0, 0)), "replicate('copy').position"),
    "not finite": (dict(position=[(0, 0, np.nan)]), "must be finite (got nan at index [0, 2])"),
    "orientation": (dict(orientation=(2, 0, 0, 0)), "must be a unit quaternion (w, x, y, z) (got length 2 at index 0)"),
    "turned off a locked axis": (
        dict(orientation=[(1, 0, 0, 0), (np.cos(0.2), 0, 0, np.sin(0.2))]),
        "a part with locked axes must not be turned off them (got orientation [0.98",
    ),
    "name": (dict(name=""), "must be a text without brackets (got ''"),
    "brackets": (dict(name="a[0]"), "must be a text without brackets (got 'a[0]'"),
    "another steel": (dict(part=steel(0.5)), "a material of one name is the same everywhere (got 'steel')"),
    "too many": (dict(position=np.broadcast_to(np.zeros(3), (10**13, 3))), "bodies"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_replicated_is_named(case):
    change, text = BAD[case]
    scene = start()
    given = {"part": part(), "position": SHIFTS[:2], **change}
    with pytest.raises(tb.TumbleError) as caught:
        scene.replicate(given.pop("part"), **given)
    assert text in str(caught.value)
    assert differences(scene.build(), start().build()) == [], "nothing is left of a call that failed"


def test_names_and_pairs_that_clash_are_named():
    scene = start()
    with pytest.raises(SceneError, match=r"must be another SceneBuilder \(got the scene itself"):
        scene.replicate(scene, position=SHIFTS)
    scene.replicate(part(), position=SHIFTS[:1])
    with pytest.raises(SceneError, match=r"replicate\('copy'\).name: names are unique \(got 'copy0/stand'\)"):
        scene.replicate(part(), position=SHIFTS[:1])
    scene = pairs(0.125)
    one = pairs(0.5)
    with pytest.raises(SceneError, match="a pair of materials is the same everywhere"):
        scene.replicate(one, position=SHIFTS)


def test_a_half_turn_keeps_locked_axes():
    scene = start()
    scene.replicate(part(), position=SHIFTS[:1], orientation=HALF_TURN)
    assert scene.build().body_locked.sum() == 2


def test_a_clash_of_materials_leaves_nothing_behind():
    scene, own = start(), tb.SceneBuilder()
    for material in (tb.Material(name="new"), tb.Material(name="steel", friction=0.9)):
        own.add_body(tb.Sphere(0.5), mass=1.0, material=material)
    with pytest.raises(SceneError, match="a material of one name is the same everywhere"):
        scene.replicate(own, position=SHIFTS)
    assert [m.name for m in scene.build().materials] == ["steel"]
