"""Scenes at random, most of them fine, and mutations of them, as TOML."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tumble as tb
from tumble.sim.report import report_row
from tumble.solvers import make_solver

from .judge import finite, finite_state, soon
from .values import choose, wrong

STEPS = 20
CUBE = [[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)]
TETRAHEDRON = dict(
    vertices=[[0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.2]],
    triangles=[[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]],
)
SHAPES: tuple[dict[str, Any], ...] = (
    dict(type="sphere", radius=0.1),
    dict(type="box", size=[0.2, 0.3, 0.1]),
    dict(type="box", size=[0.2, 0.2, 0.2], rounding=0.01),
    dict(type="capsule", radius=0.05, length=0.2),
    dict(type="cylinder", radius=0.1, height=0.2),
    dict(type="cone", radius=0.1, height=0.2),
    dict(type="ellipsoid", semi_axes=[0.1, 0.15, 0.08]),
    dict(type="hull", points=CUBE),
    dict(type="mesh", **TETRAHEDRON),
)
MATERIALS: tuple[dict[str, Any], ...] = (
    dict(friction=0.4),
    dict(friction=0.3, static_friction=0.5, friction_speed=0.02),
    dict(restitution=0.6),
    dict(friction=0.5, rolling_friction=0.002, spinning_friction=0.001),
    dict(cohesion=0.5, cohesion_range=1e-3),
    dict(compliance=1e-5, damping=10.0),
    dict(friction=0.4, ageing=0.05, ageing_time=0.1, ageing_length=1e-4),
)
JOINTS = ("fixed", "spherical", "revolute", "prismatic", "cylindrical", "planar", "point_on_plane")
SOLVERS = ("auto", "apgd", "barzilai_borwein", "gauss_seidel", "jacobi", "nsgs", "interior_point", "semismooth_newton")


def scene(rng: np.random.Generator) -> dict[str, Any]:
    """A scene that is fine: ground, some bodies, and a few of all other things."""

    def some(chance: float) -> bool:
        return bool(rng.random() < chance)

    out: dict[str, Any] = {"gravity": [0.0, 0.0, -9.81]}
    out["material"] = [dict(name=f"m{k}", **choose(rng, MATERIALS)) for k in range(1 + some(0.3))]
    if some(0.3):
        out["container"] = [dict(inner=[2.0, 2.0, 1.0], material="m0")]
    elif some(0.15):
        heights = [[0.02 * float(rng.random()) for _ in range(5)] for _ in range(5)]
        field = dict(type="height_field", heights=heights, size=[4.0, 4.0])
        out["body"] = [dict(kind="static", shape=field, material="m0")]
    else:
        out["body"] = [dict(kind="static", shape=dict(type="half_space"), material="m0")]
    bodies = out.setdefault("body", [])
    for k in range(int(rng.integers(1, 5))):
        at = [0.5 * (k % 2) - 0.25, 0.5 * (k // 2 % 2) - 0.25, 0.16 + 0.4 * (k // 4)]
        body = dict(name=f"b{k}", shape=choose(rng, SHAPES), position=at, mass=float(rng.uniform(0.5, 2.0)))
        if some(0.3):
            body["velocity"] = [float(v) for v in rng.normal(0.0, 0.5, 3)]
        if some(0.1):
            body["locked"] = ["y", "rx", "rz"]
        bodies.append(body)
    if some(0.2):
        bodies.append(
            dict(
                kind="kinematic",
                shape=dict(type="box", size=[0.2, 0.2, 0.2]),
                position=[0.7, 0.7, 0.5],
                motion=dict(amplitude=[0.0, 0.0, 0.05], period=0.5),
            )
        )
    if some(0.2):
        packing = dict(kind="grid", shape=[2, 2, 2], spacing=0.15, origin=[0.0, 0.0, 0.9], jitter=0.004)
        out["spheres"] = [dict(radius=0.05, density=1000.0, packing=packing)]
    if some(0.1):
        thrown = dict(kind="random", count=4, low=[-0.6, -0.6, 1.4], high=[0.6, 0.6, 2.0], seed=3)
        out["boxes"] = [dict(size=[0.1, 0.1, 0.1], mass=0.3, packing=thrown)]
    if some(0.15):
        region = dict(type="disc", center=[0.0, 0.0, 3.0], radius=0.5)
        ball = dict(type="sphere", radius=0.05)
        out["emitter"] = [dict(name="tap", shape=ball, mass=0.1, count=5, rate=200.0, region=region)]
        out["sink"] = [dict(point=[0.0, 0.0, -1.0])]
        out["measuring_plane"] = [dict(name="gate", point=[0.0, 0.0, 2.9])]
    if some(0.3):
        _join(rng, out)
    out["step"] = dict(dt=float(choose(rng, (1e-3, 2e-3, 5e-3))))
    if some(0.2):
        out["step"]["law"] = choose(rng, ("coulomb", "relaxed"))
    if some(0.15):
        out["step"]["integrator"] = "moreau"
    if some(0.1):
        out["step"]["unique_forces"] = True
    if some(0.2):
        out["solver"] = dict(name=choose(rng, SOLVERS), max_iterations=200)
    return out


def _join(rng: np.random.Generator, out: dict[str, Any]) -> None:
    """A joint from the ground to the first body, and what may sit on it."""
    at = next(b["position"] for b in out["body"] if b.get("name") == "b0")
    kind = choose(rng, JOINTS)
    joint: dict[str, Any] = dict(name="j", kind=kind, b="b0", anchor=at)
    if kind not in ("fixed", "spherical"):
        joint["axis"] = [0.0, 1.0, 0.0]
    out["joint"] = [joint]
    if kind in ("revolute", "prismatic"):
        joint["limits"] = [-0.5, 0.5]
        if rng.random() < 0.5:
            out["motor"] = [dict(joint="j", mode="speed", target=1.0, maximum=5.0)]
        else:
            out["joint_spring"] = [dict(joint="j", stiffness=10.0, damping=0.1)]


# ---------------------------------------------------------------------- mutations


def _leaves(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """(container, key) of everything in it that is no container."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, (dict, list)):
            _leaves(item, found)
        else:
            found.append((value, key))
    return found


def _tables(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tables(item)


def _nudge(rng: np.random.Generator, out: dict[str, Any]) -> None:
    """Lengths, masses and so on a little larger or smaller."""
    numbers = [(c, k) for c, k in _leaves(out, []) if isinstance(c[k], float)]
    for _ in range(int(rng.integers(1, 6))):
        container, key = choose(rng, numbers)
        container[key] *= float(np.exp(rng.normal(0.0, 0.3)))


def _stretch(rng: np.random.Generator, out: dict[str, Any]) -> None:
    """One or two of them by orders of magnitude, in one scene of three by any number of them."""
    numbers = [(c, k) for c, k in _leaves(out, []) if isinstance(c[k], float)]
    most = float(choose(rng, (4.0, 4.0, 12.0)))
    for _ in range(int(rng.integers(1, 3))):
        container, key = choose(rng, numbers)
        container[key] *= float(10.0 ** rng.uniform(-most, most))


def _rescale(rng: np.random.Generator, out: dict[str, Any]) -> None:
    """All sizes, masses or steps alike by orders of magnitude: another unit, mostly."""
    names = choose(rng, (("radius", "size", "length", "height", "position", "spacing", "points"), ("mass",), ("dt",)))
    factor = float(10.0 ** rng.uniform(-12.0, 12.0))
    for table in _tables(out):
        for name in names if isinstance(table, dict) else ():
            if name in table:
                table[name] = _times(table[name], factor)


def _times(value: Any, factor: float) -> Any:
    return [_times(v, factor) for v in value] if isinstance(value, list) else value * factor


def _replace(rng: np.random.Generator, out: dict[str, Any]) -> None:
    container, key = choose(rng, _leaves(out, []))
    container[key] = wrong(rng)


def _swap(rng: np.random.Generator, out: dict[str, Any]) -> None:
    (a, i), (b, j) = (choose(rng, _leaves(out, [])) for _ in range(2))
    a[i], b[j] = b[j], a[i]


def _drop(rng: np.random.Generator, out: dict[str, Any]) -> None:
    table = choose(rng, [t for t in _tables(out) if t])
    del table[choose(rng, list(table) if isinstance(table, dict) else range(len(table)))]


def _double(rng: np.random.Generator, out: dict[str, Any]) -> None:
    rows = [t for t in _tables(out) if isinstance(t, list) and t]
    row = choose(rng, rows)
    row.append(json.loads(json.dumps(choose(rng, row))))


def _rename(rng: np.random.Generator, out: dict[str, Any]) -> None:
    table = choose(rng, [t for t in _tables(out) if isinstance(t, dict) and t])
    key = choose(rng, list(table))
    table[choose(rng, ("mass", "shape", "x", key[:-1] or "y"))] = table.pop(key)


HARSH: tuple[Callable[[np.random.Generator, dict[str, Any]], None], ...] = (
    *(_replace,) * 4,
    _swap,
    _drop,
    _double,
    _rename,
)
MILD, BOLD, OTHER = 0.4, 0.25, 0.1
"""So many scenes are nudged, stretched and rescaled; the others are spoilt."""


def mutated(seed: int) -> dict[str, Any]:
    """The scene of a seed."""
    rng = np.random.default_rng([14, seed])
    out = json.loads(json.dumps(scene(rng)))  # no table twice in it
    kind = rng.random()
    if kind < MILD + BOLD + OTHER:
        (_nudge if kind < MILD else _stretch if kind < MILD + BOLD else _rescale)(rng, out)
        return out
    for _ in range(int(rng.integers(1, 3))):
        choose(rng, HARSH)(rng, out)
    return out


# ---------------------------------------------------------------------- TOML


def to_toml(data: dict[str, Any]) -> str:
    """Enough of TOML for what is made here."""
    plain, tables = [], []
    for key, value in data.items():
        if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            tables += [
                f"[[{_key(key)}]]\n" + "".join(f"{_key(k)} = {_value(v)}\n" for k, v in row.items()) for row in value
            ]
        else:
            plain.append(f"{_key(key)} = {_value(value)}\n")
    return "".join(plain + tables)


def _key(key: Any) -> str:
    return json.dumps(str(key)).replace("\\u0000", "\\u0001")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return _key(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def run_file(path: Path) -> None:
    """Load a scene file and take its steps; no state may be anything but numbers."""
    loaded = soon(tb.load_scene, path)
    solver = make_solver(**loaded.solver) if loaded.solver else None
    sim = soon(tb.Simulation, loaded.model, options=tb.StepOptions(**{"dt": 1e-3, **loaded.step}), solver=solver)
    for _ in range(STEPS):
        report = soon(sim.step)
        finite_state(sim.state)
        finite("report", report_row(report))
