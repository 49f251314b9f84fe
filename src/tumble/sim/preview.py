"""A scene looked at before it runs: what it holds, what touches and overlaps, and what will go wrong."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..enums import BodyKind
from ..errors import TumbleWarning
from ..observe.facts import facts_of_scene
from ..options import StepOptions
from ..scene.files import LoadedScene
from ..scene.model import Model
from ..scene.presence import present
from ..solve.registry import solver_of_steps
from .query import ContactPoints, contacts
from .simulation import Simulation
from .watch import DEEP

__all__ = ["preview"]

SHOWN = 5
"""Overlaps that are told one by one"""
TRIAL = 1e-3
"""Time step [s] with which a scene is tried that has none"""


def preview(scene: LoadedScene, *, threads: int | None = None) -> dict[str, Any]:
    """Facts of a scene at its start: plain values with "contacts", "overlaps", "joints_moved" [m] and "warnings"."""
    model, said = scene.model, []
    for name, value, place in (("dt", scene.step.get("dt"), "step"), ("until", scene.until, "run")):
        if value is None:
            said.append(f"no {name}: write it under [{place}], or give --{name} when you run it")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TumbleWarning)
        options = StepOptions(**{"dt": TRIAL, **scene.step})
        sim = Simulation(model, options=options, solver=solver_of_steps(scene.solver), threads=threads)
        touching = contacts(model, state=sim.state)
    said += [str(w.message) for w in caught if issubclass(w.category, TumbleWarning)]
    size = _smallest(model)
    depth = np.maximum(-touching.gap, 0.0) / np.minimum(size[touching.body_a], size[touching.body_b])
    deep = depth > DEEP
    if np.any(deep):
        said.append(f"{int(deep.sum())} contacts start overlapping by more than {100 * DEEP:g} % of a body")
    said += _speeds(model, sim, options.dt)
    there = present(model, sim.state) & (model.body_kind == BodyKind.DYNAMIC)
    if not np.any(model.body_kind == BodyKind.DYNAMIC):
        said.append("no dynamic body: nothing will move by itself")
    place = sim.positions()[there]
    return facts_of_scene(scene) | {
        "region": {"low": place.min(axis=0).tolist(), "high": place.max(axis=0).tolist()} if len(place) else None,
        "contacts": len(touching),
        "overlapping": int(np.sum(depth > 0.0)),
        "overlaps": _worst(model, touching, depth),
        "joints_moved": None if sim.assembly is None else sim.assembly.moved,
        "warnings": said,
    }


def _smallest(model: Model) -> np.ndarray:
    """(n,) smallest half-extent [m] of each body's shapes."""
    size = np.full(model.body_count, np.inf)
    np.minimum.at(size, model.shape_body, model.shape_smallest)
    return size


def _worst(model: Model, touching: ContactPoints, depth: np.ndarray) -> list[dict[str, Any]]:
    """The deepest overlap of each pair, the worst pairs first."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for k in np.argsort(-depth, kind="stable"):
        if depth[k] <= 0.0 or len(found) == SHOWN:
            break
        a, b = int(touching.body_a[k]), int(touching.body_b[k])
        entry = {"a": model.name(a), "b": model.name(b), "depth": float(-touching.gap[k]), "part": float(depth[k])}
        found.setdefault((a, b), entry)
    return list(found.values())


def _speeds(model: Model, sim: Simulation, dt: float) -> list[str]:
    moving = model.body_kind == BodyKind.DYNAMIC
    if not np.any(moving):
        return []
    speed = np.where(moving, np.linalg.norm(sim.velocities(), axis=1), 0.0)
    travel = dt * speed / (2.0 * np.maximum(model.body_size, 1e-300))
    worst = int(np.argmax(travel))
    if travel[worst] <= 1.0:
        return []
    return [f"'{model.name(worst)}' moves {travel[worst]:.3g} of its diameters in a step: shorten dt"]
