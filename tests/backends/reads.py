"""Which fields of its groups a pass never reads. `python -m tests.backends.reads` prints them.

Steps of small scenes in plain Python say with which groups passes are called, also by others; what a pass and all that
it calls do with them is read from their sources. A field counts as read where it is named, or where its group goes to a
function that is not ours.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import textwrap
from collections.abc import Callable, Iterator
from typing import ClassVar

import numba

import tumble as tb
from tumble.backends.base import PASSES
from tumble.kernels.jit import interpreted_calls
from tumble.sim.query import ray_cast

Path = tuple[str, ...]
WHOLE = {"ContactArrays", "ArticulatedArrays", "RollingArrays", "MatrixArrays", "FactorArrays"}
"""Operators and the factor of joints, which are one thing for all their passes"""
ROWS = {"JointRows", "BuiltRows", "BoundedState"}
"""Tables of joint rows, as a joint kind fills them"""
JOINTS = "tumble.kernels.joint_steps"
"""Its formulas are given bodies and states as they are"""
STAGES = {*PASSES["joint_stages"], "close_joints"}
"""Stages of joints are given the tables of all mechanisms as one thing, and hand them on to their passes"""


def source_of(function: Callable) -> tuple[Callable, str]:
    """What was written, and the expression for the number of items of a pass in blocks."""
    items, function = "", getattr(function, "formula", function)  # of a pass that was made of it
    while True:
        body = getattr(function, "body", None)
        inner = body or getattr(function, "__wrapped__", None) or getattr(function, "py_func", None)
        if inner is None:
            return function, items
        items, function = getattr(function, "items", "") or items, inner


class Reads:
    """What a function does with its arguments: for each the paths of fields that are read."""

    _known: ClassVar[dict[Callable, Reads]] = {}

    def __init__(self, function: Callable, items: str) -> None:
        self._names, tree = function.__globals__, ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        self.arguments = [a.arg for a in tree.args.args]
        self.of: dict[str, set[Path]] = {name: set() for name in self.arguments}
        self._alias: dict[str, set[Path]] = {name: {(name,)} for name in self.arguments}
        for statement in [*tree.body, *(ast.parse(items).body if items else [])]:
            self._visit(statement)
        if items:
            self.arguments = self.arguments[1:]  # the number of the block

    @classmethod
    def by(cls, function: Callable) -> Reads:
        """Of a pass or formula."""
        plain, items = source_of(function)
        if plain not in cls._known:
            cls._known[plain] = cls(plain, items)
        return cls._known[plain]

    def _paths(self, node: ast.AST) -> set[Path]:
        """The parts of arguments that an expression stands for."""
        if isinstance(node, ast.Name):
            return self._alias.get(node.id, set())
        if isinstance(node, ast.Attribute):
            return {(*path, node.attr) for path in self._paths(node.value)}
        return set()

    def _use(self, paths: set[Path], *tail: str) -> None:
        for name, *path in paths:
            self.of[name].add((*path, *tail))

    def _visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.Call):
            self._call(node)
        elif paths := self._paths(node):
            self._use(paths, "*")
        else:
            for child in ast.iter_child_nodes(node):
                self._visit(child)

    def _assign(self, target: ast.AST, value: ast.AST) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts, strict=True):
                self._assign(one, other)
        elif isinstance(target, ast.Name) and (paths := self._paths(value)):
            self._alias[target.id] = self._alias.get(target.id, set()) | paths
        else:
            self._visit(value)
            if not isinstance(target, ast.Name):
                self._visit(target)

    def _call(self, node: ast.Call) -> None:
        called = self._names.get(node.func.id) if isinstance(node.func, ast.Name) else None
        ours = getattr(called, "__module__", "").startswith("tumble.") and not isinstance(called, type)
        if ours and callable(called):
            inner = Reads.by(called)
            for argument, name in zip(node.args, inner.arguments):
                paths = self._paths(argument)
                for path in inner.of[name]:
                    self._use(paths, *path)
                if not paths:
                    self._visit(argument)
        elif not (isinstance(node.func, ast.Name) and node.func.id == "isinstance"):
            for child in (node.func, *node.args):
                if not (child is node.func and isinstance(child, ast.Name)):
                    self._visit(child)


def fields(group: numba.types.BaseNamedTuple) -> Iterator[tuple[Path, Path]]:
    """Fields of a group in depth: their paths, and the classes that they lie in."""
    for name, kind in zip(group.fields, group, strict=True):
        own = group.instance_class.__name__
        if isinstance(kind, numba.types.BaseNamedTuple):
            for path, classes in fields(kind):
                yield (name, *path), (own, *classes)
        else:
            yield (name,), (own,)


def unread(function: Callable, types: tuple) -> Iterator[str]:
    """Fields of groups of these types that a function leaves alone."""
    reads = Reads.by(function)
    for name, group in zip(reads.arguments[len(reads.arguments) - len(types) :], types, strict=True):
        if isinstance(group, numba.types.BaseNamedTuple):
            for path, classes in fields(group):
                named = path in reads.of[name]
                given = any((*path[:k], "*") in reads.of[name] for k in range(len(path) + 1))
                if not (named or given or WHOLE & {*classes} or ROWS & {*classes}):
                    yield f"{name}.{'.'.join(path)}"


def all_unread() -> dict[str, list[str]]:
    """By pass or formula, what is left alone in the calls that were seen."""
    passes, found = {name for group in PASSES.values() for name in group}, {}
    for module, name, types in interpreted_calls.seen:
        formula = name.rpartition("_over_")[0]
        if module == JOINTS or name in STAGES or (not formula and name not in passes):
            continue
        function = getattr(importlib.import_module(module), formula or name)
        if left := list(unread(function, types[1:] if formula else types)):
            found[name] = left
    return found


# ---------------------------------------------------------------------- steps that call passes


def scene(**material: float) -> tb.SceneBuilder:
    """A ball and a box slide on the ground."""
    out = tb.SceneBuilder()
    own = out.add_material(tb.Material(**{"friction": 0.5, **material}))
    out.add_static(tb.HalfSpace(), material=own)
    for k, shape in enumerate((tb.Sphere(0.1), tb.Box((0.2, 0.2, 0.2)))):
        out.add_body(shape, mass=1.0, position=(k, 0, 0.0999), velocity=(1, 0, -0.5), material=own)
    return out


def jointed() -> tb.SceneBuilder:
    """Two boxes on a hinge with friction and limits, beside it."""
    out = scene()
    for k in range(2):
        out.add_body(tb.Box((0.2, 0.2, 0.2)), mass=1.0, position=(3 + 0.3 * k, 0, 0.2), name=f"part {k}")
    hinge = dict(anchor=(3.15, 0, 0.2), axis=(0, 1, 0), limits=(-0.1, 0.1), friction=0.1)
    out.add_joint("revolute", "part 0", "part 1", name="hinge", **hinge)
    return out


def poured() -> tb.SceneBuilder:
    """An emitter, a sink and a measuring plane; a mesh on uneven ground, a belt."""
    out = scene()
    region = tb.BoxRegion(low=(4.0, 0.0, 1.0), high=(4.5, 0.5, 1.5))
    out.add_emitter(tb.Sphere(0.03), count=3, rate=2000.0, region=region, density=800.0)
    out.add_static(tb.Box((4, 4, 1)), position=(9, 0, -0.5), surface_velocity=(1, 0, 0))
    out.add_body(tb.Capsule(0.05, 0.1), mass=1.0, position=(9, 0, 0.0499))
    out.add_body(tb.Cylinder(0.1, 0.2), mass=1.0, position=(9, 0.05, 0.12))
    return out


def steps() -> None:
    """Of all laws, both integrators and all solvers with passes of their own."""
    made = [scene(**material) for material in (
        {}, {"rolling_friction": 0.01}, {"restitution": 0.5}, {"cohesion": 1.0}, {"compliance": 1e-5},
        {"static_friction": 0.7, "friction_speed": 0.1}, {"ageing": 0.2, "ageing_time": 1.0, "ageing_length": 0.1},
    )]  # fmt: skip
    runs = [(s, None, {}) for s in [*made, jointed(), poured()]]
    runs += [(made[k], None, {"integrator": "moreau"}) for k in (0, 1)] + [(jointed(), None, {"integrator": "moreau"})]
    solvers = (
        tb.SolverAPGD(variant="paper"), tb.SolverAPGD(precision="single"), tb.SolverBarzilaiBorwein(),
        tb.SolverGaussSeidel(), tb.SolverJacobi(), tb.SolverNSGS(), tb.SolverAPGD(scaling="none"),
    )  # fmt: skip
    runs += [(made[0], solver, {}) for solver in solvers]
    for built, solver, options in runs:
        given = {} if solver is None else {"solver": solver}
        sim = tb.Simulation(built.build(), options=tb.StepOptions(dt=1e-3, **options), **given)
        for _ in range(2):
            sim.step()
    model = made[0].build()
    ray_cast(model, model.initial, (0, 0, 1), (0, 0, -1))
    many = tb.SceneBuilder()
    many.add_static(tb.HalfSpace())
    many.add_spheres(0.03, density=2500.0, position=tb.grid_points((4, 3, 3), 0.0599, origin=(0, 0, 0.0299)))
    tb.Simulation(many.build(), options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(max_iterations=3)).step()


if __name__ == "__main__":
    assert os.environ.get("NUMBA_DISABLE_JIT") == "1", "in plain Python only"
    type(interpreted_calls)._depth = property(lambda _: 0, lambda _, depth: None)  # calls within calls as well
    steps()
    for one, left in sorted(all_unread().items()):
        print(f"{one}: {', '.join(left)}")
    print(f"{len(interpreted_calls.seen)} calls")
