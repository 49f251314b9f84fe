"""Collision: broad and narrow phase, against coal where it is installed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import backends
from ..collide.broadphase import PairSearch
from ..collide.contacts import Contacts
from ..collide.narrowphase import ContactSearch
from ..kernels import jit
from ..scene import rotation
from ..scene.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid
from ..sim.simulation import Simulation
from ..solve.apgd import SolverAPGD
from .base import Row, Setting, row, seconds_of
from .scenes import MIXED, settled, settled_mixed

__all__ = ["collide"]


def collide(setting: Setting) -> Iterator[Row]:
    """Broad and narrow phase of 20000 settled bodies: spheres against one product of their problem, other shapes
    against coal; memory a contact."""
    sim = settled(20000, setting)
    result = sim.last
    assert result is not None
    stage = dict.fromkeys(("place", "broad", "narrow"), np.inf)
    product, before = np.inf, jit.set_threads(sim.threads)
    for _ in range(8):
        report, result = sim.step(), sim.last
        assert result is not None
        for s in stage:
            stage[s] = min(stage[s], report.seconds[s])
        jit.set_threads(sim.threads)
        problem = result.problem
        nothing, out = np.zeros_like(problem.bias), np.zeros_like(problem.bias)
        product = min(product, seconds_of(lambda: problem.operator.product(nothing, out), 10))  # noqa: B023
    jit.set_threads(before)
    total = sum(stage.values())
    case = f"{sim.model.body_count - 1} spheres, {report.contacts} contacts, {sim.threads} threads"
    for s, seconds in stage.items():
        yield row("collide", case, f"{s}_ms", 1e3 * seconds)
    yield row("collide", case, "us_per_sphere", 1e6 * total / (sim.model.body_count - 1))
    yield row("collide", case, "collision_over_product", total / product)
    work = sim._work
    memory = work.contacts.nbytes + work.rows.nbytes + work.narrow.nbytes + work.pairs.pairs.pair.nbytes
    yield row("collide", case, "bytes_per_contact", memory / report.contacts)
    yield from _mixed(setting)


def _mixed(setting: Setting) -> Iterator[Row]:
    """20000 settled bodies of general convex shapes: their share of a step, and time a pair against coal's."""
    sim = settled_mixed(20000, setting)
    sim.solver = SolverAPGD()
    stages = []
    for _ in range(5):
        report = sim.step()
        stages.append([report.seconds[s] for s in ("place", "broad", "narrow")] + [sum(report.seconds.values())])
    place, broad, narrow, step = np.median(stages, axis=0)
    bodies = sim.model.body_count - 1
    case = f"{bodies} mixed bodies, {report.contacts} contacts, {sim.threads} threads"
    for name, seconds in (("place", place), ("broad", broad), ("narrow", narrow), ("step", step)):
        yield row("collide", case, f"{name}_ms", 1e3 * seconds)
    yield row("collide", case, "iterations", report.iterations)
    yield row("collide", case, "converged", report.converged)
    yield row("collide", case, "collision_share_of_step", (place + broad + narrow) / step)
    try:
        import coal
    except ImportError:
        return
    yield from _against_coal(coal, sim)


def _against_coal(coal: Any, sim: Simulation) -> Iterator[Row]:
    """The same bodies, one thread: our search for contacts against coal's manager, and its distance from Python."""
    model, state, still = sim.model, sim.state, np.zeros((sim.model.body_count, 6))
    search, table = PairSearch(model, backends.choose()), Contacts()
    narrow = ContactSearch(model, backends.choose(), search.blocks)
    matrix = rotation.matrix(state.orientation).reshape(-1, 9)
    before = jit.set_threads(1)
    ours, pairs = np.inf, 0
    for _ in range(4):
        start = time.perf_counter()
        search.place(state.position, state.orientation, matrix, still, 0.0, 0.0)
        pairs = search.find(still, 0.0, 0.0)
        narrow.find(search, state.position, still, 0.0, 0.0, table)
        ours = min(ours, time.perf_counter() - start)
    jit.set_threads(before)
    shapes = [_coal_shape(coal, shape) for shape in MIXED]
    position, turn = search.shapes.position, search.shapes.matrix.reshape(-1, 3, 3)
    moving = np.flatnonzero(model.shape_body > 0)
    objects = []
    manager = coal.DynamicAABBTreeCollisionManager()
    for i in moving:
        shape = shapes[(model.shape_body[i] - 1) % len(shapes)]
        objects.append(coal.CollisionObject(shape, turn[i], position[i]))
        manager.registerObject(objects[-1])
    manager.setup()
    theirs = np.inf
    for _ in range(3):
        callback = coal.CollisionCallBackDefault()
        callback.data.request.num_max_contacts = 10**9
        start = time.perf_counter()
        manager.update()
        manager.collide(callback)
        theirs = min(theirs, time.perf_counter() - start)
    collected = coal.CollisionCallBackCollect(10**7)
    manager.collide(collected)
    candidates = collected.numCollisionPairs()
    place = {int(i): k for k, i in enumerate(moving)}
    found, capacity, number = search.pairs
    some = [row for row in found[: number[0]] if int(row[0]) in place and int(row[1]) in place]
    for block in range(1, search.blocks):
        if len(some) > 2000:
            break
        rows = found[block * capacity :][: number[block]]
        some += [row for row in rows if int(row[0]) in place and int(row[1]) in place]
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    start = time.perf_counter()
    for i, j in some:
        result.clear()
        coal.distance(objects[place[int(i)]], objects[place[int(j)]], request, result)
    python = (time.perf_counter() - start) / len(some)
    case = f"{len(objects)} mixed bodies, 1 thread"
    yield row("collide", case, "ours_us_per_pair", 1e6 * ours / pairs)
    yield row("collide", case, "coal_manager_us_per_pair", 1e6 * theirs / candidates)
    yield row("collide", case, "coal_distance_from_python_us_per_pair", 1e6 * python)
    yield row("collide", case, "ours_over_coal_manager", (ours / pairs) / (theirs / candidates))
    yield row("collide", case, "ours_over_coal_manager_whole_scene", ours / theirs)
    yield row("collide", case, "coal_distance_from_python_over_ours", python / (ours / pairs))


def _coal_shape(coal: Any, shape: Any) -> Any:
    if isinstance(shape, Capsule):
        return coal.Capsule(shape.radius, shape.length)
    if isinstance(shape, Box):
        return coal.Box(*shape.size)
    if isinstance(shape, Cylinder):
        return coal.Cylinder(shape.radius, shape.height)
    if isinstance(shape, Cone):
        return coal.Cone(shape.radius, shape.height)
    if isinstance(shape, Ellipsoid):
        return coal.Ellipsoid(*shape.semi_axes)
    points = coal.StdVec_Vec3s()
    for p in shape.points:
        points.append(p)
    return coal.Convex.convexHull(points, True, None)
