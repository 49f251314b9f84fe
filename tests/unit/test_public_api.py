"""The public names: one path each, and what reads alike means alike."""

import importlib
import pkgutil

import numpy as np
import pytest

import tumble as tb

PUBLIC = (
    "tumble",
    "tumble.solvers",
    "tumble.errors",
    "tumble.view",
    "tumble.experiments",
    "tumble.analysis",
    "tumble.export",
    "tumble.sweep",
)
"""Modules whose `__all__` are promises (docs/api.md)."""


@pytest.mark.parametrize("path", PUBLIC)
def test_every_promised_name_is_there_once(path):
    module = importlib.import_module(path)
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_a_public_thing_has_one_path():
    """The base of all errors and the warning are the two that `tumble` also shows beside `tumble.errors`."""
    paths = {}
    for path in PUBLIC:
        module = importlib.import_module(path)
        for name in module.__all__:
            if not isinstance(getattr(module, name), str):
                paths.setdefault(id(getattr(module, name)), []).append(f"{path}.{name}")
    several = [found for found in paths.values() if len(found) > 1]
    assert sorted(several) == [
        ["tumble.TumbleError", "tumble.errors.TumbleError"],
        ["tumble.TumbleWarning", "tumble.errors.TumbleWarning"],
    ]


def test_every_solver_and_error_is_public():
    for kind in tb.solvers.SOLVERS.values():
        assert getattr(tb, kind.__name__) is kind and kind.__name__ in tb.__all__
    others = ("tumble.bench.engines.", "tumble.backends.cuda")  # they import packages of extras
    walk = pkgutil.walk_packages(tb.__path__, "tumble.", onerror=lambda name: None)
    names = [m.name for m in walk if not m.name.endswith("__main__")]
    names = [name for name in names if not name.startswith(others)]
    modules = [importlib.import_module(name) for name in names]
    found = {
        value.__name__
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, tb.TumbleError)
    }
    assert len(modules) > 200 and found == {n for n in tb.errors.__all__ if n.endswith("Error")}


def test_a_list_is_a_compound_for_one_body_and_one_entry_a_body_for_many():
    shapes = [tb.Sphere(0.1), tb.Box((0.1, 0.2, 0.3))]
    scene = tb.SceneBuilder()
    one = scene.add_body(shapes, density=1.0)
    copies = scene.add_copies(shapes, density=1.0, position=[(1, 0, 0), (2, 0, 0)])
    each = scene.add_bodies(shapes, density=1.0, position=[(3, 0, 0), (4, 0, 0)])
    model = scene.build()
    count = np.bincount(model.shape_body)
    assert count[one] == 2 and count[list(copies)].tolist() == [2, 2] and count[list(each)].tolist() == [1, 1]


def test_the_ground_comes_after_the_users_bodies():
    scene = tb.SceneBuilder()
    first = scene.add_body(tb.Sphere(0.1), mass=1.0)
    scene.add_joint("spherical", None, first, anchor=(0, 0, 0))
    region = tb.BoxRegion(low=(1, 1, 1), high=(2, 2, 2))
    pour = scene.add_emitter(tb.Sphere(0.01), count=3, region=region, rate=10.0, mass=1.0)
    last = scene.add_body(tb.Sphere(0.1), mass=1.0, position=(5, 0, 0))
    model = scene.build()
    assert (first, list(pour), last) == (0, [1, 2, 3], 4)
    assert model.body_count == 6 and model.bodies("ground").tolist() == [5]


def test_anchors_of_a_spring_in_the_world_are_those_in_the_bodies():
    def ends(**anchors):
        scene = tb.SceneBuilder()
        body = scene.add_body(tb.Box((1, 2, 3)), density=1.0, position=(1, 2, 3), orientation=(0.6, 0, 0.8, 0))
        scene.add_spring(None, body, stiffness=1.0, **anchors)
        joints = scene.build().joints
        return joints.frame_position

    turn = np.array([[-0.28, 0, 0.96], [0, 1, 0], [-0.96, 0, -0.28]])
    local, ground = np.array([0.1, 0.2, 0.3]), (0.5, 0.0, 4.0)
    world = np.array([1, 2, 3]) + turn @ local
    np.testing.assert_allclose(ends(anchors=(ground, world)), ends(anchor_a=ground, anchor_b=local), rtol=0, atol=1e-14)
    with pytest.raises(tb.TumbleError, match="in the world or in the bodies"):
        ends(anchors=(ground, world), anchor_b=local)
    with pytest.raises(tb.TumbleError, match=r"anchors: must have shape \(2, 3\)"):
        ends(anchors=ground)
