"""Calls of the public functions with one or two arguments that they do not expect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tumble as tb
from tumble.solvers import SOLVERS, make_solver

from .judge import finite, finite_state
from .values import choose, wrong


def _builder() -> tb.SceneBuilder:
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(friction=0.3, name="steel"))
    scene.add_static(tb.HalfSpace(), material="steel", name="floor")
    scene.add_body(tb.Box((0.2, 0.2, 0.2)), mass=1.0, position=(0, 0, 0.1), name="a")
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0.5, 0, 0.1), name="b")
    return scene


def _method(name: str) -> Callable[..., Any]:
    """A method of a builder; the scene is then built and takes two steps."""

    def call(**arguments: Any) -> None:
        scene = _builder()
        getattr(scene, name)(**arguments)
        _steps(scene, tb.StepOptions(dt=1e-3))

    return call


def _on_joint(name: str) -> Callable[..., Any]:
    def call(**arguments: Any) -> None:
        scene = _builder()
        scene.add_joint("revolute", None, "b", anchor=(0.5, 0, 0.1), axis=(0, 1, 0), name="hinge")
        getattr(scene, name)(**arguments)
        _steps(scene, tb.StepOptions(dt=1e-3))

    return call


def _steps(scene: tb.SceneBuilder, options: tb.StepOptions) -> None:
    sim = tb.Simulation(scene.build(), options=options)
    for _ in range(2):
        sim.step()
    finite_state(sim.state)


def _options(**arguments: Any) -> None:
    _steps(_builder(), tb.StepOptions(**arguments))


def _solve(**arguments: Any) -> None:
    solver = make_solver(**arguments)
    matrix = np.diag([1.0, 2.0, 2.0, 1.5, 1.0, 1.0])
    problem = tb.ConeProblem.from_matrix(matrix, [-1.0, 0.2, 0.1, -0.5, 0.0, 0.3], [0.3, 0.6])
    finite("impulse", (solver.solve(problem, law="relaxed").impulse,))


def _from_matrix(**arguments: Any) -> None:
    problem = tb.ConeProblem.from_matrix(**arguments)
    finite("impulse", (tb.SolverAPGD(max_iterations=100).solve(problem).impulse,))


def _simulation(method: str) -> Callable[..., Any]:
    def call(**arguments: Any) -> None:
        sim = tb.Simulation(_builder().build(), options=tb.StepOptions(dt=1e-3))
        getattr(sim, method)(**arguments)
        sim.step()
        finite_state(sim.state)

    return call


def _enough(sim: tb.Simulation) -> bool:
    """Whatever end and wall time were given."""
    return sim.state.step >= 3


def _run(stop: Any, **arguments: Any) -> None:
    sim = tb.Simulation(_builder().build(), options=tb.StepOptions(dt=1e-3))
    sim.run(stop=stop if stop is not None and not callable(stop) else _enough, progress=False, **arguments)
    finite_state(sim.state)


def _recorded(**arguments: Any) -> None:
    """A run with what `Save` takes, in place of the one before."""
    sim = tb.Simulation(_builder().build(), options=tb.StepOptions(dt=1e-3))
    sim.run(until=0.002, save=tb.Save(**arguments, overwrite=True), progress=False)
    finite_state(sim.state)


def _read(**arguments: Any) -> None:
    if not Path("read.h5").exists():
        _recorded(path="read.h5")
    with tb.Trajectory("read.h5") as run:
        finite("position", (run.read(**arguments),))


ORIGIN, UP, NO_TURN = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0, 0.0)
PLACES = [[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]]
TETRAHEDRON = [[0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.2]]
BODY = dict(
    mass=1.0,
    material="steel",
    position=(0.0, 0.0, 1.0),
    orientation=NO_TURN,
    velocity=ORIGIN,
    angular_velocity=ORIGIN,
    force=ORIGIN,
    torque=ORIGIN,
    locked=("y",),
    group=1,
    mask=1,
    name="c",
)
MANY = {key: value for key, value in BODY.items() if key not in ("position", "orientation", "torque")}
CALLS: tuple[tuple[Callable[..., Any], dict[str, Any]], ...] = (
    (tb.Sphere, dict(radius=0.1)),
    (tb.Box, dict(size=(1.0, 1.0, 1.0))),
    (tb.Capsule, dict(radius=0.1, length=0.2)),
    (tb.Cylinder, dict(radius=0.1, height=0.2)),
    (tb.Cone, dict(radius=0.1, height=0.2)),
    (tb.Ellipsoid, dict(semi_axes=(0.1, 0.2, 0.3))),
    (tb.HalfSpace, dict(normal=UP, offset=0.0)),
    (tb.ConvexHull, dict(points=TETRAHEDRON)),
    (tb.Rounded, dict(shape=tb.Box((1.0, 1.0, 1.0)), radius=0.1)),
    (tb.Mesh, dict(vertices=TETRAHEDRON, triangles=[[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]], cavity=False)),
    (tb.HeightField, dict(heights=[[0.0, 0.1], [0.2, 0.0]], size=(1.0, 1.0))),
    (tb.Placed, dict(shape=tb.Sphere(0.1), position=ORIGIN, orientation=NO_TURN)),
    (tb.Material, dict(friction=0.3, restitution=0.5, cohesion=1.0, compliance=1e-6, damping=1.0, name="x")),
    (tb.Oscillation, dict(amplitude=UP, period=1.0, start=0.0, position=ORIGIN, orientation=NO_TURN)),
    (tb.BoxRegion, dict(low=ORIGIN, high=(1.0, 1.0, 1.0))),
    (tb.DiscRegion, dict(center=ORIGIN, radius=1.0, normal=UP)),
    (tb.open_box, dict(inner=(1.0, 1.0, 1.0), thickness=0.1, center=ORIGIN)),
    (tb.grid_points, dict(shape=(2, 2, 2), spacing=0.1, origin=ORIGIN, jitter=0.01, seed=0)),
    (tb.lattice_points, dict(shape=(2, 2, 2), diameter=0.1, origin=ORIGIN, jitter=0.01, seed=0)),
    (tb.random_points, dict(count=3, radius=0.1, low=ORIGIN, high=(1.0, 1.0, 1.0), seed=0, tries=10)),
    (tb.SceneBuilder, dict(gravity=ORIGIN)),
    (
        tb.Save,
        dict(
            path="run.h5",
            every=1,
            fields=("position",),
            frames_per_checkpoint=1,
            checkpoint="check.h5",
            overwrite=False,
            label="x",
            bodies=("a", 1),
            precision="single",
            compress=True,
            background=False,
        ),
    ),
    (tb.Trajectory, dict(path="no_such_run.h5")),
    (_simulation("save_checkpoint"), dict(path="state.h5")),
    (_simulation("load_checkpoint"), dict(path="no_such_state.h5", accept_changes=False)),
    (_run, dict(until=0.002, save=None, strict=False, resume=False, wall_time=10.0, dump_problems=(), stop=_enough)),
    (_recorded, dict(path="run.h5", every=1, fields=("position",), bodies=("a", 1), precision="single")),
    (_read, dict(field="position", frame=0)),
    (
        tb.distance,
        dict(shape_a=tb.Sphere(0.1), pose_a=ORIGIN, shape_b=tb.Box((1.0, 1.0, 1.0)), pose_b=(2.0, 0.0, 0.0)),
    ),
    (tb.load_scene, dict(path="no_such_scene.toml")),
    (tb.read_problem, dict(path="no_such_problem.hdf5")),
    (_options, dict(dt=1e-3, law="coulomb", margin=0.01, recovery_speed=1.0, warm_start=True, speed_limit=1e6)),
    (_options, dict(dt=1e-3, integrator="moreau", theta=0.5)),
    (_from_matrix, dict(matrix=np.eye(3), bias=[-1.0, 0.0, 0.0], friction=[0.3], dim=3)),
    *((_solve, dict(name=name, tolerance=1e-6, max_iterations=50)) for name in SOLVERS),
    (_method("add_body"), dict(shapes=tb.Sphere(0.1), **BODY)),
    (_method("add_static"), dict(shapes=tb.Box((1.0, 1.0, 0.1)), position=(3.0, 0.0, 0.0), orientation=NO_TURN)),
    (_method("add_kinematic"), dict(shapes=tb.Sphere(0.1), position=(0.0, 3.0, 1.0), velocity=UP, name="k")),
    (_method("set_pair"), dict(a="steel", b="steel", friction=0.2)),
    (_method("add_copies"), dict(shapes=tb.Sphere(0.1), **MANY, position=PLACES, orientation=NO_TURN, torque=ORIGIN)),
    (tb.ConvexHull.many, dict(points=[TETRAHEDRON, TETRAHEDRON])),
    (_method("add_bodies"), dict(shapes=[tb.Sphere(0.1), tb.Box((0.1, 0.1, 0.1))], **MANY, position=PLACES)),
    (_method("add_spheres"), dict(radius=0.1, **MANY, position=PLACES)),
    (_method("add_boxes"), dict(size=(0.1, 0.1, 0.1), **MANY, position=PLACES, orientation=NO_TURN)),
    (
        _method("add_joint"),
        dict(
            kind="revolute",
            a=None,
            b="b",
            anchor=(0.5, 0.0, 0.1),
            axis=(0.0, 1.0, 0.0),
            limits=(-1.0, 1.0),
            friction=0.1,
            collide=False,
            value=0.0,
            name="j",
        ),
    ),
    (_method("add_spring"), dict(a="a", b="b", anchor_a=ORIGIN, stiffness=10.0, damping=1.0, rest_length=0.4)),
    (_method("add_bushing"), dict(a="a", b="b", anchor=(0.2, 0.0, 0.1), axis=UP, stiffness=(1.0,) * 6)),
    (_on_joint("add_motor"), dict(joint="hinge", mode="speed", target=1.0, maximum=1.0, name="m")),
    (_on_joint("add_motor"), dict(joint="hinge", mode="position", target=0.1, stiffness=1.0, damping=0.1)),
    (_on_joint("add_joint_spring"), dict(joint="hinge", stiffness=1.0, damping=0.1, rest=0.0)),
    (_on_joint("add_gear"), dict(first="hinge", second="hinge", ratio=2.0)),
    (
        _method("add_emitter"),
        dict(
            shapes=tb.Sphere(0.1),
            count=3,
            region=tb.DiscRegion(center=(0.0, 0.0, 3.0), radius=1.0),
            rate=1000.0,
            mass=1.0,
            size_range=(0.5, 1.0),
            velocity=ORIGIN,
            orientation="random",
            start=0.0,
            seed=1,
            name="e",
        ),
    ),
    (_method("add_sink"), dict(point=(0.0, 0.0, -1.0), normal=UP, name="s")),
    (_method("add_measuring_plane"), dict(point=UP, normal=UP, radius=1.0, axis=(1.0, 0.0, 0.0), name="p")),
    (_method("exclude_pair"), dict(a="a", b="b")),
    (_simulation("set_state"), dict(position=np.ones((3, 3)), velocity=np.zeros((3, 3)))),
    (_simulation("ray_cast"), dict(origin=(0.0, 0.0, 5.0), direction=(0.0, 0.0, -1.0), limit=10.0)),
    (_simulation("clusters"), dict(gap=0.01)),
)


def call(seed: int) -> tuple[str, Callable[[], Any]]:
    """The call of a seed and what it is."""
    rng = np.random.default_rng([16, seed])
    function, arguments = choose(rng, CALLS)
    given = dict(arguments)
    for _ in range(int(rng.integers(1, 3))):
        given[choose(rng, list(given))] = wrong(rng, strange=True)
    return f"{seed} {getattr(function, '__name__', function)} {list(given)}", lambda: function(**given)
