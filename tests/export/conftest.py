"""A run with every kind of shape, contacts, a joint, an emitter and a sink, to be read back by other tools."""

from types import SimpleNamespace

import numpy as np
import pytest

import tumble as tb
from tumble.observe.layout import Plan
from tumble.observe.trajectory import Trajectory
from tumble.observe.writer import TrajectoryWriter
from tumble.scene.model import State

FRAMES = 5


def everything():
    """One body of each kind of shape, one off its centre of mass and turned, and bodies that come and go."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), name="floor")
    x, y = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 4), indexing="ij")
    scene.add_static(tb.HeightField(0.1 * x * y, size=(2.0, 2.0)), position=(5, 0, 0), name="hill")
    scene.add_static(
        tb.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
    )
    points = np.array([(0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, 0.2)])
    solids = [
        tb.Sphere(0.1),
        tb.Capsule(0.05, 0.2),
        tb.Box((0.1, 0.2, 0.3)),
        tb.Rounded(tb.Box((0.1, 0.2, 0.3)), 0.02),
        tb.Cylinder(0.1, 0.2),
        tb.Cone(0.1, 0.2),
        tb.Frustum(0.1, 0.05, 0.2),
        tb.Ellipsoid((0.1, 0.2, 0.3)),
        tb.ConvexHull(points),
    ]
    for i, solid in enumerate(solids):
        scene.add_body(solid, density=1000.0, position=(0, i, 1), name=type(solid).__name__.lower() + str(i))
    pair = [tb.Placed(tb.Sphere(0.1), (0.3, 0, 0)), tb.Placed(tb.Box((0.1, 0.2, 0.3)))]
    scene.add_body(pair, density=10.0, position=(0, 0, 3), orientation=(0.6, 0, 0.8, 0), name="odd")
    scene.add_joint("spherical", None, "odd", anchor=(0, 0, 4), name="hook")
    region = tb.BoxRegion(low=(2, 2, 2), high=(3, 3, 3))
    scene.add_emitter(tb.Sphere(0.03), count=4, rate=10.0, mass=1.0, region=region, name="rain")
    return scene.build()


def state_at(model, step):
    rng = np.random.default_rng(step)
    n = model.body_count
    still = model.body_kind == 0
    q = rng.normal(size=(n, 4))
    q = np.where(still[:, None], model.initial.orientation, q / np.linalg.norm(q, axis=1, keepdims=True))
    place = np.where(still[:, None], model.initial.position, rng.normal(size=(n, 3)))
    speed, spin = rng.normal(size=(2, n, 3)) * ~still[:, None]
    state = State(0.1 * step, step, place, q, speed, spin)
    state.presence = np.where((np.arange(n) < n - 5 + step) | (np.arange(n) == n - 1), 1, 0).astype(np.int8)
    state.flow = np.zeros(len(model.flow.columns))
    state.coordinate = model.initial.coordinate
    return state


def contacts_at(step):
    rng, k = np.random.default_rng(100 + step), (step * 2) % 5
    return {
        "body_a": np.arange(k),
        "body_b": np.arange(k) + 1,
        "point": rng.normal(size=(k, 3)),
        "normal": rng.normal(size=(k, 3)),
        "gap": rng.normal(size=k),
        "force": rng.normal(size=(k, 3)),
    }


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The trajectory, open."""
    model = everything()
    path = tmp_path_factory.mktemp("export") / "run.h5"
    fields = ("position", "orientation", "velocity", "angular_velocity", "contacts")
    plan = Plan(fields=fields, columns={"time": "s", "kinetic_energy": "J"})
    three, one = np.full((1, 3), 0.5), np.full(1, 0.25)
    joints = SimpleNamespace(force=three, torque=three, value=one, speed=one, effort=one, power=one)
    writer = TrajectoryWriter(path, model=model, plan=plan, attributes={"tumble_version": "0"})
    for step in range(FRAMES):
        writer.append_report((0.1 * step, 1.0 * step))
        writer.append_frame(state_at(model, step), contacts_at(step), joints)
    writer.close(finished=True)
    with Trajectory(path) as trajectory:
        yield trajectory
