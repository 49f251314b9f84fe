"""Connected bodies, against a union-find written out."""

import numpy as np
import pytest

import tumble as tb
from tumble.errors import FileError, OptionsError
from tumble.observe.clusters import by_force, find_clusters


def union_find(a, b, member, through_others):
    """Lists of the members' groups, largest first, then by their lowest index."""
    parent = list(range(len(member)))

    def root(i):
        while parent[i] != i:
            i = parent[i]
        return i

    for i, j in zip(a, b):
        if through_others or (member[i] and member[j]):
            parent[root(i)] = root(j)
    groups = {}
    for i in range(len(member)):
        if member[i]:
            groups.setdefault(root(i), []).append(i)
    return sorted(groups.values(), key=lambda g: (-len(g), g[0]))


@pytest.mark.parametrize("through_others", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_components_are_those_of_a_union_find(seed, through_others):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 60)), int(rng.integers(0, 60))
    a, b = rng.integers(0, n, k), rng.integers(0, n, k)
    member = rng.random(n) < 0.8
    found = find_clusters(a, b, member, through_others=through_others)
    wanted = union_find(a, b, member, through_others)
    assert found.size.tolist() == [len(g) for g in wanted]
    assert [found.bodies(c).tolist() for c in range(len(found))] == wanted
    assert np.all(found.label[~member] == -1) and np.all(found.label[member] >= 0)


def test_no_body_in_question():
    found = find_clusters(np.array([0]), np.array([1]), np.zeros(2, bool))
    assert len(found) == 0 and found.label.tolist() == [-1, -1]


def test_mass_centre_and_radius_of_gyration():
    found = find_clusters(np.array([0, 3]), np.array([1, 4]), np.ones(5, bool))
    mass = np.array([1.0, 3.0, 2.0, 1.0, 1.0])
    position = np.array([[0.0, 0, 0], [4, 0, 0], [1, 2, 3], [0, 0, 0], [0, 0, 2]])
    assert found.mass(mass).tolist() == [4.0, 2.0, 2.0]
    np.testing.assert_allclose(found.center(position, mass), [[3, 0, 0], [0, 0, 1], [1, 2, 3]])
    # Two points a distance d apart: d sqrt(m M) / (m + M).
    np.testing.assert_allclose(found.radius_of_gyration(position, mass), [4.0 * np.sqrt(3.0) / 4.0, 1.0, 0.0])


def test_points_of_a_pair_add_up():
    a, b = np.array([0, 0, 1]), np.array([1, 1, 2])
    normal = np.tile([0.0, 0.0, 1.0], (3, 1))
    force = normal * [[0.6], [0.6], [0.9]] + [5.0, 0.0, 0.0]  # friction does not count
    assert [x.tolist() for x in by_force(a, b, normal, force, 1.0)] == [[0], [1]]


def stacks():
    """On a floor: a stack of two, a ball alone; in the air two balls 0.02 m apart."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    places = [(0, 0, 0.1), (0, 0, 0.3), (1, 0, 0.1), (2, 0, 1.0), (2, 0, 1.22)]
    scene.add_spheres(0.1, mass=1.0, position=places, name="balls")
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), threads=1)


def test_by_gap_and_by_force(tmp_path):
    sim = stacks()
    assert sim.clusters(gap=1e-6).size.tolist() == [2, 1, 1, 1]
    wide = sim.clusters(gap=0.03)
    assert wide.label.tolist() == [-1, 0, 0, 2, 1, 1]
    assert sim.clusters(gap=1e-6, through_fixed=True).size.tolist() == [3, 1, 1]
    path = tmp_path / "run.h5"
    fields = ("position", "contacts")
    sim.run(until=0.02, save=tb.Save(path=path, every=10, fields=fields), progress=False)
    assert sim.clusters(force=9.0).label.tolist() == [-1, 0, 0, 1, 2, 3]
    assert sim.clusters(force=9.9).size.tolist() == [1] * 5
    assert sim.clusters(force=9.0, through_fixed=True).size.tolist() == [3, 1, 1]
    with tb.Trajectory(path) as run:
        assert np.array_equal(run.clusters(-1, force=9.0).label, sim.clusters(force=9.0).label)
        assert run.clusters(-1, gap=1e-3).size.tolist() == [2, 1, 1, 1]


def test_bad_questions(tmp_path):
    sim = stacks()
    for bad in ({}, {"gap": 0.1, "force": 1.0}, {"gap": -1.0}, {"gap": float("nan")}, {"force": float("inf")}):
        with pytest.raises(OptionsError, match=r"Simulation\.clusters"):
            sim.clusters(**bad)
    with pytest.raises(OptionsError, match="needs a step first"):
        sim.clusters(force=1.0)
    sim.run(until=0.002, save=tb.Save(path=tmp_path / "run.h5"), progress=False)
    with tb.Trajectory(tmp_path / "run.h5") as run, pytest.raises(FileError, match="contacts"):
        run.clusters(-1, gap=0.0)
