"""Meshes that lie on, under and inside each other come to rest and stay there.

Each scene is released at rest within 1e-3 of its size of a stable pose, with steps of 2e-3 s. What must hold: within
2 s everything is slower than a hundredth of what gravity gives in a step; friction has never given energy, and the
energy never rises above its start, each to 1e-6 of m g size; no overlap exceeds 1e-3 of the size.
"""

import numpy as np
import pytest

import tumble as tb
from tests.naive import solids
from tumble.scene import rotation

DT, GRAVITY = 2e-3, 9.81
MESHES = {
    "torus": solids.torus,
    "ring": solids.ring,
    "bowl": solids.bowl,
    "cup": solids.cup,
    "spool": solids.spool,
    "coil": solids.coil,
    "gear": solids.gear,
    "bracket": solids.bracket,
    "channel": solids.channel,
    "table": solids.table,
    "cross": solids.cross,
    "brick": solids.brick,
}
ROLLING = 2e-3
"""Rolling friction [m] where a body could roll or rock for ever."""


def add_ground(scene, kind, material):
    """A flat ground at z = 0, one metre wide."""
    if kind == "plane":
        scene.add_static(tb.HalfSpace(), material=material)
    elif kind == "box":
        scene.add_static(tb.Box((1, 1, 0.2)), position=(0, 0, -0.1), material=material)
    elif kind == "hull":
        angle = 2 * np.pi * np.arange(9) / 9
        outline = 0.6 * np.c_[np.cos(angle), np.sin(angle)]
        points = np.r_[np.c_[outline, 0 * angle], np.c_[outline, 0 * angle - 0.2]]
        scene.add_static(tb.ConvexHull(points), material=material)
    elif kind == "mesh":
        scene.add_static(solids.brick((1, 1, 0.2), (7, 7, 1)), position=(0, 0, -0.1), material=material)
    else:
        scene.add_static(tb.HeightField(np.zeros((12, 12)), size=(1, 1)), material=material)


GROUNDS = ("plane", "box", "hull", "mesh", "field")


def released(bodies, ground="plane", rolling=0.0, dt=DT, turn=0.0, gap=1e-4):
    """A simulation with bodies [(shape, position)], each `gap` [m] above what it lies on, the world turned about z."""
    scene = tb.SceneBuilder()
    stone = scene.add_material(tb.Material(friction=0.5, rolling_friction=rolling))
    add_ground(scene, ground, stone)
    q = rotation.from_axis_angle((0, 0, 1), turn)
    for level, (shape, place) in enumerate(bodies):
        lifted = np.array(place, float) + np.array([0, 0, gap * (level + 1)])
        place = rotation.rotate(q, lifted)
        scene.add_body(shape, density=1000.0, position=place, orientation=q, material=stone)
    solver = tb.SolverAPGD(tolerance=1e-9, max_iterations=20000)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt), solver=solver)


def check_rest(sim, until=2.0):
    """Run and hold the result against the invariants; returns the reports."""
    start = sim.time
    model, dt = sim.model, sim.options.dt
    moving = np.isfinite(model.body_mass) & (model.body_kind == tb.BodyKind.DYNAMIC)
    size = 2.0 * model.body_size[moving].min()
    weight = model.body_mass[moving].sum() * GRAVITY * size
    first = sim.copy().step()
    reports = sim.run(until=start + until).reports
    energy = reports["kinetic_energy"] + reports["potential_energy"]
    before = first.kinetic_energy + first.potential_energy
    assert reports["largest_speed"][-1] < 1e-2 * GRAVITY * dt
    assert np.cumsum(reports["work_friction"]).max() <= 1e-6 * weight
    assert energy.max() <= before + 1e-6 * weight
    assert reports["largest_overlap"].max() <= 1e-3 * size
    return reports


def bottom(mesh):
    return -mesh.vertices[:, 2].min()


def top(mesh):
    return mesh.vertices[:, 2].max()


def on_each_other(*names, aside=(0.011, 0.007)):
    """A stack of meshes, every second one set aside a little."""
    bodies, z = [], 0.0
    for level, name in enumerate(names):
        mesh = MESHES[name]()
        x, y = aside if level % 2 else (0.0, 0.0)
        bodies.append((mesh, (x, y, z + bottom(mesh))))
        z += bottom(mesh) + top(mesh)
    return bodies


def torus_under_a_plate():
    plate = tb.Box((0.3, 0.3, 0.02))
    return [(solids.torus(), (0, 0, 0.03)), (plate, (0.02, 0.01, 0.07))]


def torus_under_two_boxes():
    """The boxes' centres lie over the arc that carries each of them: 2 mm inside the crest."""
    box = tb.Box((0.06, 0.06, 0.06))
    return [(solids.torus(), (0, 0, 0.03)), (box, (-0.098, 0, 0.09)), (box, (0.098, 0, 0.09))]


def torus_under_a_bracket():
    return [(solids.torus(), (0, 0, 0.03)), (solids.bracket(0.06), (0.02, 0, 0.06 + 0.09))]


def in_a_bowl(mesh, x=0.004):
    outer = solids.bowl()
    floor = bottom(outer) - 0.105 * np.sqrt(1 - (0.05 / 0.12) ** 2)
    return [(outer, (0, 0, bottom(outer))), (mesh, (x, 0.001, floor + bottom(mesh)))]


def torus_in_a_ring():
    return [(solids.ring(), (0, 0, 0.025)), (solids.torus(0.05, 0.012, 24, 12), (0.003, 0, 0.012))]


def gear_in_a_cup():
    cup = solids.cup()
    return [(cup, (0, 0, bottom(cup))), (solids.gear(6, 0.025, 0.035, 0.02), (0.001, 0, 0.02))]


def brick_in_a_channel():
    """As wide as the channel: it touches both walls and the floor."""
    channel = solids.channel()
    return [(channel, (0, 0, bottom(channel))), (solids.brick((0.04, 0.15, 0.04), (1, 3, 1)), (0, 0, 0.06))]


SCENES = {
    "torus under a plate": torus_under_a_plate,
    "torus under two boxes": torus_under_two_boxes,
    "torus under a bracket": torus_under_a_bracket,
    "torus in a ring": torus_in_a_ring,
    "gear in a cup": gear_in_a_cup,
    "brick in a channel": brick_in_a_channel,
    "ring in a bowl": lambda: in_a_bowl(solids.ring(0.02, 0.03, 0.02)),
    "bowl in a bowl": lambda: in_a_bowl(solids.bowl(0.09, 0.012, 0.035), 0.002),
}


@pytest.mark.parametrize("name", ["torus under a plate", "torus under two boxes", "torus under a bracket"])
def test_what_lies_on_a_torus_rests(name):
    check_rest(released(SCENES[name]()))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("turn", [0.0, 0.6])
def test_on_under_and_inside_each_other(name, turn):
    check_rest(released(SCENES[name](), turn=turn))


@pytest.mark.slow
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("name", MESHES)
def test_every_mesh_on_every_ground(name, ground):
    mesh = MESHES[name]()
    rolls = name == "coil"  # its stable pose is found by letting it roll out
    sim = released([(mesh, (0, 0, bottom(mesh)))], ground, rolling=ROLLING if rolls else 0.0, turn=0.3)
    if rolls:
        sim.run(until=4.0)
    check_rest(sim)


PILES = [
    ("torus", "brick"),
    ("torus", "ring"),
    ("torus", "bracket"),
    ("torus", "torus"),
    ("ring", "gear"),
    ("gear", "gear"),
    ("table", "torus"),
    ("bowl", "brick"),
    ("cross", "cross"),
    ("spool", "spool"),
    ("channel", "cup"),
    ("torus", "table", "gear"),
    ("brick", "torus", "brick", "torus", "brick"),
]


@pytest.mark.slow
@pytest.mark.parametrize("names", PILES, ids="+".join)
def test_meshes_on_meshes(names):
    check_rest(released(on_each_other(*names)))


@pytest.mark.slow
@pytest.mark.parametrize("dt", [5e-4, 5e-3])
@pytest.mark.parametrize("name", ["torus under a plate", "torus under two boxes", "torus under a bracket"])
def test_with_other_steps(name, dt):
    check_rest(released(SCENES[name](), dt=dt))


def test_a_body_a_little_inside_a_rim_is_not_deep_behind_the_walls_below_it():
    """Boxes, hulls and cylinders tilted by up to a degree, up to a millimetre inside the notched top of a mesh: nothing
    overlaps by more than they must rise. Walls of notches made 80 mm of it."""
    rng, meshes = np.random.default_rng(4), (solids.gear(6, 0.06, 0.08, 0.05), solids.gear(), solids.ring())
    worst, met = 0.0, 0
    for k in range(240):
        mesh = meshes[k % 3]
        box = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.07, 0.07) for z in (-0.03, 0.03)])
        shape = (tb.Box((0.2, 0.14, 0.06)), tb.ConvexHull(box), tb.Cylinder(0.09, 0.06))[k // 3 % 3]
        tilt = rotation.from_axis_angle(rng.normal(size=3) * (1, 1, 0) + (0, 0, 1e-9), rng.uniform(0, 0.017))
        q = rotation.multiply(tilt, rotation.from_axis_angle((0, 0, 1), rng.uniform(0, 6.0)))
        up = rotation.rotate(q, np.array([0.0, 0.0, 1.0]))
        place = np.array([*rng.uniform(-0.06, 0.06, 2), 0.0])
        highest = (mesh.vertices @ up).max()
        depth = rng.uniform(1e-4, 1e-3)  # no corner of the mesh is deeper below the face of the shape
        place += up * (highest + 0.03 - depth - place @ up)
        scene = tb.SceneBuilder(gravity=(0, 0, 0))
        scene.add_static(mesh)
        scene.add_body(shape, mass=1.0, position=place, orientation=q)
        found = scene.contacts()
        if len(found.gap):
            met += 1
            worst = max(worst, -found.gap.min() / depth)
    assert met > 150
    assert worst < 1.1


# ---------------------------------------------------------------------- sharp edge on sharp edge


THICK, WIDE, TALL = 0.002, 0.06, 0.1


def house_of_cards(lean, friction, turn=0.0, swapped=False):
    """Two cards that lean on each other, edge exactly on edge, `lean` [rad] from the vertical."""
    c, s = np.cos(lean), np.sin(lean)
    scene = tb.SceneBuilder()
    paper = scene.add_material(tb.Material(friction=friction))
    scene.add_static(tb.HalfSpace(), material=paper)
    world = rotation.from_axis_angle((0, 0, 1), turn)
    for side in (1, -1) if swapped else (-1, 1):
        place = np.array([side * (THICK * c + TALL * s) / 2, 0, (THICK * s + TALL * c) / 2])
        q = rotation.multiply(world, rotation.from_axis_angle((0, 1, 0), -side * lean))
        card = tb.Box((THICK, WIDE, TALL))
        scene.add_body(card, density=1000.0, position=rotation.rotate(world, place), orientation=q, material=paper)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=DT), solver=tb.SolverAPGD(tolerance=1e-10))


@pytest.mark.parametrize("degrees", [15, 30, 40])
@pytest.mark.parametrize("turn, swapped", [(0.0, False), (0.7, True)])
def test_a_house_of_two_cards_stands_as_long_as_its_feet_hold(degrees, turn, swapped):
    """The feet carry the thrust (tan(lean) - thick / tall) / 2 of a card's weight. Friction between that and tan(lean)
    would not hold a top whose normal is one card's face: then the house fell."""
    lean = np.deg2rad(degrees)
    thrust = (np.tan(lean) - THICK / TALL) / 2
    sim = house_of_cards(lean, 1.1 * thrust, turn, swapped)
    before = sim.positions()
    sim.run(until=2.0)
    np.testing.assert_allclose(sim.positions(), before, atol=1e-8)
    forces = sim.contact_forces()
    weight = sim.model.body_mass[1] * GRAVITY
    push = forces.on(2, by=1)
    assert np.linalg.norm(push) == pytest.approx(thrust * weight, rel=1e-4) and abs(push[2]) < 1e-4 * weight
    sim = house_of_cards(lean, 0.9 * thrust, turn, swapped)
    sim.run(until=2.0)
    assert np.all(sim.positions()[1:, 2] < 0.9 * before[1:, 2])
