"""Bodies are known by their uid: in other places of the arrays they move as before and lose nothing they remember."""

import dataclasses

import numpy as np
import pytest

import tumble as tb
from tumble.scene.model import Model, State

pytestmark = pytest.mark.filterwarnings("ignore:.*start overlapping")  # a run that begins in the middle
PER_BODY = ("position", "orientation", "velocity", "spin")


def moved_state(state: State, order: np.ndarray) -> State:
    """The state with body order[k] in place k; contacts, joints and motors keep what they know."""
    out = state.copy()
    for name in PER_BODY:
        setattr(out, name, getattr(state, name)[order].copy())
    return out


def moved_model(model: Model, order: np.ndarray) -> Model:
    """The same scene with body order[k] in place k; shapes, joints and names stay in theirs."""
    place = np.argsort(order)
    own = {f.name: getattr(model, f.name)[order] for f in dataclasses.fields(Model) if f.name.startswith("body_")}
    pairs = np.sort(place[np.stack([model.excluded >> 32, model.excluded & 0xFFFFFFFF])], axis=0)
    every = [f"{name} {k}" for name, _, count in model.names for k in range(count)]
    return dataclasses.replace(
        model,
        **own,
        shape_body=place[model.shape_body].astype(np.int32),
        excluded=np.sort((pairs[0] << 32) + pairs[1]),
        names=tuple((every[old], new, 1) for new, old in enumerate(order)),
        motions={int(place[body]): motion for body, motion in model.motions.items()},
        joints=dataclasses.replace(model.joints, frame_body=place[model.joints.frame_body].astype(np.int32)),
        initial=moved_state(model.initial, order),
    )


def pile(**material):
    """Bodies of all kinds of shapes, many of one kind, on a mesh-free floor and a moving paddle."""
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(name="m", friction=0.4, **material))
    scene.add_static(tb.open_box(inner=(0.8, 0.8, 3.0)), material="m")
    scene.add_kinematic(tb.Box((0.1, 0.5, 0.1)), material="m", position=(0, 0, 0.05), velocity=(0.05, 0, 0))
    shapes = (tb.Box((0.12, 0.1, 0.08)), tb.Sphere(0.05), tb.Cylinder(0.05, 0.1), tb.Box((0.1, 0.1, 0.1)))
    rng = np.random.default_rng(4)
    for k, at in enumerate(tb.grid_points((4, 4, 4), 0.17, origin=(0, 0, 0.3), jitter=0.01)):
        turn = rng.normal(size=4)
        scene.add_body(
            shapes[k % 4], mass=1.0 + 0.1 * k, material="m", position=at, orientation=turn / np.linalg.norm(turn)
        )
    return scene.build(), {"solver": tb.SolverAPGD(max_iterations=200)}


def chains():
    """Hanging chains that swing against a post."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.Capsule(0.1, 2.0), position=(-0.15, 0, 1.4), orientation=(0.5**0.5, 0.5**0.5, 0, 0))
    for y in (-0.2, 0.2):
        last = None
        for k in range(4):
            link = scene.add_body(tb.Box((0.2, 0.05, 0.05)), mass=1.0, position=(0.2 * k + 0.1, y, 2.0))
            scene.add_joint("revolute", last, link, anchor=(0.2 * k, y, 2.0), axis=(0, 1, 0))
            last = link
    return scene.build(), {}


def run_both(model: Model, given: dict, steps: int, order: np.ndarray) -> tuple[tb.Simulation, tb.Simulation]:
    """A simulation, and one whose bodies change places after half of the steps, as both end."""
    options = tb.StepOptions(dt=2e-3)
    one = tb.Simulation(model, options=options, **given)
    for _ in range(steps // 2):
        one.step()
    two = tb.Simulation(moved_model(model, order), options=options, **given)
    two.state = moved_state(one.state, order)
    warm = []
    for _ in range(steps - steps // 2):
        warm.append((one.step().warm_started, two.step().warm_started))
    assert all(a == b for a, b in warm) and max(warm)[0] > 0
    return one, two


@pytest.mark.parametrize("material", [{}, {"tangential_compliance": 1e-5, "ageing": 0.05}, {"rolling_friction": 1e-3}])
def test_bodies_in_other_places_move_as_before_bit_for_bit(material):
    model, given = pile(**material)
    order = np.random.default_rng(1).permutation(model.body_count)
    one, two = run_both(model, given, 240, order)
    for name in PER_BODY:
        assert getattr(one.state, name)[order].tobytes() == getattr(two.state, name).tobytes(), name
    a, b = one.state.memory, two.state.memory
    for name in ("uid_a", "uid_b", "feature", "impulse", "torque"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    assert a.uid_a.size > 100 and np.all(a.uid_a < a.uid_b)
    assert {n: c.tobytes() for n, c in a.laws.items()} == {n: c.tobytes() for n, c in b.laws.items()}
    assert two.last.contacts.body_a.tolist() != one.last.contacts.body_a.tolist()


def test_pairs_that_touch_are_named_by_their_places():
    model, given = pile()
    order = np.random.default_rng(2).permutation(model.body_count)
    one, two = run_both(model, given, 100, order)
    began = {tuple(sorted(pair)) for pair in order[two.events().began].tolist()}
    assert began == {tuple(sorted(pair)) for pair in one.events().began.tolist()}


def test_jointed_bodies_in_other_places_move_as_before():
    """To rounding: the order in which rows are eliminated is that of the bodies."""
    model, given = chains()
    order = np.random.default_rng(3).permutation(model.body_count)
    one, two = run_both(model, given, 400, order)
    for name in PER_BODY:
        assert np.allclose(getattr(one.state, name)[order], getattr(two.state, name), rtol=0.0, atol=1e-9), name
