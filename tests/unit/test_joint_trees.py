"""Mechanisms without loops whose bodies are eliminated instead of their rows."""

from __future__ import annotations

import numpy as np
import pytest

import tumble as tb
from tumble.kernels.jit import most_threads
from tumble.problem import joint_trees
from tumble.problem.elimination import Pattern


def star(arms=6, *, ratio=1.0, seed=0, kinds=("revolute", "spherical", "universal", "prismatic"), servo=False):
    """A trunk with arms of two links each, on joints of all kinds, of random masses up to `ratio` apart."""
    rng, scene = np.random.default_rng(seed), tb.SceneBuilder()

    def mass():
        return ratio ** rng.uniform(-0.5, 0.5)

    velocity, turn = rng.normal(size=(2, 3))
    scene.add_body(tb.Box((0.5, 0.4, 0.3)), mass=mass(), velocity=velocity, angular_velocity=turn, name="trunk")
    for k in range(arms):
        way = rng.normal(size=3)
        way /= np.linalg.norm(way)
        above = "trunk"
        for i in range(2):
            name, at = f"link {k} {i}", (0.4 + 0.3 * i) * way
            scene.add_body(tb.Box((0.1, 0.12, 0.14)), mass=mass(), position=at + 0.15 * way, name=name)
            kind = kinds[rng.integers(len(kinds))]
            axis = {} if kind == "spherical" else {"axis": rng.normal(size=3)}
            if kind == "universal":
                axis = {"axis": (0, 0, 1), "second_axis": (1, 0, 0)}
            scene.add_joint(kind, above, name, anchor=at, name=f"joint {k} {i}", **axis)
            if servo and kind == "revolute":
                scene.add_motor(f"joint {k} {i}", "position", target=0.2, stiffness=3.0, damping=0.1, maximum=0.5)
            above = name
    return scene


def simulate(scene, dearer, monkeypatch, **options):
    monkeypatch.setattr(joint_trees, "DEARER", dearer)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3, **options))


def by_bodies(sim):
    return sim._work.joints.system.factors.by_bodies.used


@pytest.mark.parametrize("integrator", ["euler", "moreau"])
@pytest.mark.parametrize("ratio", [1.0, 1e4])
@pytest.mark.parametrize("servo", [False, True])
def test_bodies_and_rows_give_the_same_motion(monkeypatch, integrator, ratio, servo):
    """To rounding, which unequal masses make larger: the same steps from the same states."""
    scene = star(ratio=ratio, seed=int(ratio) + servo, servo=servo)
    one, two = (simulate(scene, dearer, monkeypatch, integrator=integrator) for dearer in (0.0, np.inf))
    for _ in range(15):
        two.set_state(one.get_state())
        a, b = one.step(), two.step()
        assert by_bodies(one).all() and not by_bodies(two).any()
        size = np.abs(two.state.velocity).max() + np.abs(two.state.spin).max()
        assert np.abs(one.state.velocity - two.state.velocity).max() <= 1e-10 * ratio**0.25 * size
        assert np.abs(one.state.spin - two.state.spin).max() <= 1e-10 * ratio**0.25 * size
        assert a.joint_drift <= 1e-12 and b.joint_drift <= 1e-12


@pytest.mark.parametrize("ratio", [1.0, 1e4])
def test_the_operator_of_a_tree_agrees_with_its_matrix(monkeypatch, ratio):
    """Product and diagonal blocks of contacts and servos."""
    scene = star(8, ratio=ratio, seed=3, servo=True)
    lowest = scene.build().initial.position[:, 2].min()
    scene.add_static(tb.HalfSpace(), position=(0, 0, lowest - 0.13))
    sim = simulate(scene, 0.0, monkeypatch)
    for _ in range(80):
        sim.step()
    assert by_bodies(sim).all()
    problem = sim.last.problem
    n, contacts = problem.count, sim.last.contacts
    assert n > contacts.count > 0
    matrix = problem.operator.to_sparse().toarray()
    size = np.abs(matrix).max()
    rng = np.random.default_rng(1)
    x, out = np.zeros_like(problem.bias), np.zeros_like(problem.bias)
    x[:, :n] = rng.normal(size=(3, n))
    x[1:, contacts.count : n] = 0.0
    problem.operator.product(x, out)
    assert out[:, :n].T.ravel() == pytest.approx(matrix @ x[:, :n].T.ravel(), abs=1e-10 * size)
    blocks = np.zeros((6, problem.bias.shape[1]))
    problem.operator.diagonal_blocks(blocks)
    for c in range(n):
        own = matrix[3 * c : 3 * c + 3, 3 * c : 3 * c + 3]
        wanted = own[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        if c >= contacts.count:
            wanted = np.array([own[0, 0]] * 3 + [0.0] * 3)
        assert blocks[:, c] == pytest.approx(wanted, abs=1e-10 * size)


def test_which_mechanisms_are_trees(monkeypatch):
    def used(scene):
        sim = simulate(scene, 0.0, monkeypatch)
        sim.step()
        return by_bodies(sim).tolist()

    assert used(star()) == [True]
    held = star()
    held.add_joint("spherical", None, "link 0 1", anchor=(1, 1, 1), name="hook")
    assert used(held) == [True], "one body may hang on the ground"
    loop = star()
    loop.add_joint("distance", "link 0 1", "link 1 1", anchor_a=(0, 0, 0), anchor_b=(0, 0, 0), name="rope")
    assert used(loop) == [False]
    twice = star()
    for k in range(2):
        twice.add_joint("distance", None, f"link {k} 1", anchor_a=(0, 0, 3), anchor_b=(0, 0, 0), name=f"rope {k}")
    assert used(twice) == [False], "the ground closes a loop"
    spring = star()
    spring.add_spring("link 0 1", "link 1 1", stiffness=3.0, name="band")
    assert used(spring) == [False]


def test_a_door_on_two_hinges_is_left_to_its_rows(monkeypatch):
    door = tb.SceneBuilder()
    door.add_body(tb.Box((0.5, 0.4, 0.3)), mass=3.0, name="trunk")
    for k in range(4):
        door.add_body(tb.Box((0.1, 0.1, 0.4)), mass=1.0, position=(0.5, k - 1.5, 0), name=f"door {k}")
        for i in range(1 if k else 2):
            door.add_joint(
                "revolute", "trunk", f"door {k}", anchor=(0.3, k - 1.5, 0.2 * i), axis=(0, 0, 1), name=f"hinge {k} {i}"
            )
    sim = simulate(door, 0.0, monkeypatch)
    for _ in range(20):
        report = sim.step()
        assert not by_bodies(sim).any() and report.redundant_rows == 5 and report.joint_drift <= 1e-12


@pytest.mark.filterwarnings("ignore::tumble.errors.TumbleWarning")
def test_many_robots_have_the_same_bits_for_any_threads_and_after_a_restart():
    """Their arms touch each other at the start."""
    most = min(2, most_threads())
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), position=(0, 0, -1.2))
    places = tb.grid_points((3, 3, 1), 4.0)
    scene.replicate(star(8, seed=4, servo=True), position=places, name="robot")
    model = scene.build()
    one, two = (tb.Simulation(model, options=tb.StepOptions(dt=2e-3), threads=n) for n in (1, most))
    contacts = sum(one.step().contacts for _ in range(30))
    assert by_bodies(one).tolist() == [True] * 9 and contacts > 0
    for _ in range(30):
        two.step()
    again = tb.Simulation(model, options=tb.StepOptions(dt=2e-3), threads=most)
    again.set_state(one.get_state())
    for _ in range(10):
        for sim in (one, two, again):
            sim.step()
    for other in (two, again):
        for name in ("position", "orientation", "velocity", "spin", "row_impulse", "coordinate", "energy_owed"):
            assert np.array_equal(getattr(one.state, name), getattr(other.state, name)), name


def test_copies_of_a_mechanism_have_its_pattern():
    """Two forms in turns, one with a loop: each mechanism's rows, entries and nodes are those of its form alone."""

    def form(links: int, loop: bool) -> tb.SceneBuilder:
        part = tb.SceneBuilder()
        for k in range(links):
            part.add_body(tb.Sphere(0.1), mass=1.0, position=(0.3 * k, 0.1 * (k % 2), 1.0), name=f"b{k}")
        for k in range(1, links):
            part.add_joint("revolute", "b0", f"b{k}", anchor=(0.15 * k, 0, 1), axis=(0, 1, 0))
        if loop:
            part.add_joint("distance", "b1", "b2", anchor_a=(0, 0, 0), anchor_b=(0, 0, 0))
        return part

    forms = [form(9, False), form(4, True)]

    def pattern(which: list[int]) -> Pattern:
        scene = tb.SceneBuilder()
        for i, k in enumerate(which):
            scene.replicate(forms[k], position=[(10.0 * i, 0, 0)], name=f"copy{i}")
        return tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))._work.joints.exact.pattern

    which = [0, 1, 1, 0, 1]
    whole, alone = pattern(which), [pattern([0]), pattern([1])]
    assert len(whole.mechanism) == len(which) + 1 and len(alone[0].tree.body) == 9 and not len(alone[1].tree.body)
    for c, k in enumerate(which):
        first, end, own = whole.mechanism[c], whole.mechanism[c + 1], alone[k]
        assert end - first == len(own.order)
        assert np.array_equal(whole.order[first:end] - whole.order[first:end].min(), own.order)
        entries = slice(whole.start[first], whole.start[end])
        assert np.array_equal(whole.start[first : end + 1] - whole.start[first], own.start)
        assert np.array_equal(whole.column[entries] - first, own.column)
        pairs = whole.pair_start[entries.start : entries.stop + 1]
        assert np.array_equal(pairs - pairs[0], own.pair_start)
        assert np.array_equal(whole.pair[pairs[0] : pairs[-1]], own.pair)
        parent = whole.parent[first:end]
        assert np.array_equal(np.where(parent >= 0, parent - first, -1), own.parent)
        assert np.array_equal(whole.l_start[first : end + 1] - whole.l_start[first], own.l_start)
        nodes = slice(whole.tree.start[c], whole.tree.start[c + 1])
        above = whole.tree.parent[nodes]
        assert np.array_equal(np.where(above >= 0, above - nodes.start, -1), own.tree.parent)
        held = whole.tree.rows[nodes]
        assert np.array_equal(np.where(held[:, 1:] > 0, held - first, 0), own.tree.rows)
        assert np.all(whole.mechanism_of[whole.tree.body[nodes]] == c)
