"""Benchmarks: each compares things in one run, since machines are noisy, and prints ratios beside absolute figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np

from . import backends
from .backends.base import ContactArrays
from .collide.broadphase import PairSearch
from .collide.contacts import Contacts
from .collide.narrowphase import ContactSearch
from .enums import BlockKind, Law
from .kernels import jit
from .options import StepOptions
from .problem.cone_problem import BlockGroup, ConeProblem
from .problem.operators import ContactOperator
from .scene import rotation
from .scene.builder import SceneBuilder
from .scene.fill import grid_points
from .scene.hulls import ConvexHull
from .scene.materials import Material
from .scene.meshes import Mesh
from .scene.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, open_box
from .sim.simulation import Simulation
from .solve.apgd import SolverAPGD

__all__ = ["BENCHES"]

Row = dict[str, Any]
DATA_VARIABLE = "TUMBLE_BENCH_DATA"


def solver(threads: int | None = None) -> Iterator[Row]:
    """Cost of one product and of one APGD iteration on a settled box of 4000 spheres under a slab."""
    case, problem = _slab_problem()
    most = numba.config.NUMBA_NUM_THREADS if threads is None else threads
    n, x = problem.count, problem.vector("impulse")
    x[:, :n] = np.random.default_rng(0).uniform(0.0, 1.0, (3, n))
    out = problem.vector("out")
    short, long = (SolverAPGD(tolerance=0.0, max_iterations=k) for k in (50, 350))
    short.solve(problem, law=Law.RELAXED)
    figures: dict[int, tuple[float, float]] = {}
    for count in sorted({1, min(2, most), most}):
        before = jit.set_threads(count)
        # Alternate the two, so that a slow moment of the machine does not fall on one of them alone.
        # The best long solve less the best short one: iterations alone, without setting up and measuring.
        product, best = np.inf, [np.inf, np.inf]
        for _ in range(7):
            product = min(product, _seconds(lambda: problem.operator.product(x, out), 40) / n)
            for k, m in enumerate((short, long)):
                best[k] = min(best[k], _seconds(lambda m=m: m.solve(problem, law=Law.RELAXED), 1))
        iteration = (best[1] - best[0]) / (300 * n)
        jit.set_threads(before)
        figures[count] = (product, iteration)
        yield _row("solver", case, f"product_ns_per_contact_{count}_threads", 1e9 * product)
        yield _row("solver", case, f"apgd_iteration_ns_per_contact_{count}_threads", 1e9 * iteration)
        yield _row("solver", case, f"apgd_iteration_over_product_{count}_threads", iteration / product)
        if count > 1:
            yield _row("solver", case, f"apgd_speed_up_{count}_threads", figures[1][1] / iteration)
    for residual in (0.104, 0.0165):
        goal = SolverAPGD(tolerance=residual / (3 * n), stop="residual_eq25", max_iterations=5000)
        before = jit.set_threads(1)
        seconds = min(_seconds(lambda: goal.solve(problem, law=Law.RELAXED), 1) for _ in range(3))  # noqa: B023
        jit.set_threads(before)
        yield _row(
            "solver", case, f"iterations_to_residual_sum_{residual}", goal.solve(problem, law=Law.RELAXED).iterations
        )
        yield _row("solver", case, f"ms_to_residual_sum_{residual}_1_threads", 1e3 * seconds)


def compiling(threads: int | None = None) -> Iterator[Row]:
    """Seconds to the first step of a new process, from an empty kernel cache and from a full one; seconds a kernel."""
    for case, scene in _FIRST_STEPS.items():
        for cache in ("cold", "cold, without helpers"):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                settings = {"TUMBLE_CACHE_DIR": folder, "TUMBLE_COMPILERS": "" if cache == "cold" else "1"}
                yield from _first_step(f"{case}, {cache}", scene, settings, threads)
                if cache == "cold":
                    yield from _first_step(f"{case}, warm", scene, settings, threads)


_FIRST_STEPS = {
    "1000 spheres in a box": "scene.add_spheres(0.05, density=7800.0, position=points)",
    "1000 mixed convex bodies": """
kinds = (tb.Sphere(0.05), tb.Box((0.08, 0.08, 0.08)), tb.Cylinder(0.05, 0.08), tb.Capsule(0.03, 0.05),
         tb.ConvexHull(np.random.default_rng(0).normal(size=(14, 3)) * 0.03))
for k, kind in enumerate(kinds):
    scene.add_bodies(kind, density=7800.0, position=points[k::5])
""",
}
_FIRST_STEP = """
import json, sys, time
import numpy as np
import tumble as tb
imported = time.time()
from tumble.kernels.jit import compile_log
scene = tb.SceneBuilder()
scene.add_static(tb.open_box(inner=(1.3, 1.3, 1.3)))
points = tb.grid_points((10, 10, 10), 0.125, origin=(0, 0, 0.07), jitter=0.005)
{scene}
sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3), threads={threads})
sim.step()
begin = float(sys.argv[1])
print(json.dumps([imported - begin, time.time() - begin, compile_log.kernels, compile_log.by_kernel]))
"""


def _first_step(case: str, scene: str, settings: dict[str, str], threads: int | None) -> Iterator[Row]:
    """One process from its start to its first step."""
    script = _FIRST_STEP.format(scene=scene, threads=threads)
    command = [sys.executable, "-c", script, repr(time.time())]
    out = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=True)
    imported, first, kernels, seconds = json.loads(out.stdout)
    yield _row("compile", case, "import_s", imported)
    yield _row("compile", case, "first_step_s", first)
    yield _row("compile", case, "kernels_compiled_here", kernels)
    if settings["TUMBLE_COMPILERS"] == "1":
        for name, spent in sorted(seconds.items(), key=lambda item: -item[1]):
            yield _row("compile", case, f"{name}_s", spent)


def collide(threads: int | None = None) -> Iterator[Row]:
    """Broad and narrow phase of 20000 settled bodies: spheres against one product of their problem, other shapes
    against coal; memory a contact."""
    sim = _settled(20000, threads)
    result = sim.last
    assert result is not None
    stage = dict.fromkeys(("place", "broad", "narrow"), np.inf)
    product, out = np.inf, result.problem.vector("out")
    before = jit.set_threads(sim.threads)
    for _ in range(8):
        report = sim.step()
        for s in stage:
            stage[s] = min(stage[s], report.seconds[s])
        jit.set_threads(sim.threads)
        problem = sim.last.problem
        product = min(product, _seconds(lambda: problem.operator.product(problem.vector("impulse"), out), 10))  # noqa: B023
    jit.set_threads(before)
    total = sum(stage.values())
    case = f"{sim.model.body_count - 1} spheres, {report.contacts} contacts, {sim.threads} threads"
    for s, seconds in stage.items():
        yield _row("collide", case, f"{s}_ms", 1e3 * seconds)
    yield _row("collide", case, "us_per_sphere", 1e6 * total / (sim.model.body_count - 1))
    yield _row("collide", case, "collision_over_product", total / product)
    work = sim._work
    memory = work.contacts.nbytes + work.rows.nbytes + work.narrow.nbytes + work.pairs.pair.nbytes
    yield _row("collide", case, "bytes_per_contact", memory / report.contacts)
    yield from _mixed(threads)


def _mixed(threads: int | None) -> Iterator[Row]:
    """20000 settled bodies of general convex shapes: their share of a step, and time a pair against coal's."""
    sim = _settled_mixed(20000, threads)
    sim.solver = SolverAPGD()
    stages = []
    for _ in range(5):
        report = sim.step()
        stages.append([report.seconds[s] for s in ("place", "broad", "narrow")] + [sum(report.seconds.values())])
    place, broad, narrow, step = np.median(stages, axis=0)
    bodies = sim.model.body_count - 1
    case = f"{bodies} mixed bodies, {report.contacts} contacts, {sim.threads} threads"
    for name, seconds in (("place", place), ("broad", broad), ("narrow", narrow), ("step", step)):
        yield _row("collide", case, f"{name}_ms", 1e3 * seconds)
    yield _row("collide", case, "iterations", report.iterations)
    yield _row("collide", case, "converged", report.converged)
    yield _row("collide", case, "collision_share_of_step", (place + broad + narrow) / step)
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
    some = [row for row in search.pair[: search.count[0]] if int(row[0]) in place and int(row[1]) in place]
    for block in range(1, search.blocks):
        if len(some) > 2000:
            break
        rows = search.pair[block * search.capacity :][: search.count[block]]
        some += [row for row in rows if int(row[0]) in place and int(row[1]) in place]
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    start = time.perf_counter()
    for i, j in some:
        result.clear()
        coal.distance(objects[place[int(i)]], objects[place[int(j)]], request, result)
    python = (time.perf_counter() - start) / len(some)
    case = f"{len(objects)} mixed bodies, 1 thread"
    yield _row("collide", case, "ours_us_per_pair", 1e6 * ours / pairs)
    yield _row("collide", case, "coal_manager_us_per_pair", 1e6 * theirs / candidates)
    yield _row("collide", case, "coal_distance_from_python_us_per_pair", 1e6 * python)
    yield _row("collide", case, "ours_over_coal_manager", (ours / pairs) / (theirs / candidates))
    yield _row("collide", case, "ours_over_coal_manager_whole_scene", ours / theirs)
    yield _row("collide", case, "coal_distance_from_python_over_ours", python / (ours / pairs))


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


def sizes(threads: int | None = None) -> Iterator[Row]:
    """Growth of the broad phase with the number of bodies when sizes differ 1:100 and 1:1000 in one scene, and of the
    narrow phase with the number of triangles of a static mesh."""
    for ratio in (100, 1000):
        figures = []
        for count in (4000, 16000):
            rng = np.random.default_rng(0)
            radius = 0.01 * ratio ** rng.uniform(0, 1, count) ** 4
            side = 1.6 * np.cbrt(np.sum(radius**3) * 4.19)
            scene = SceneBuilder(gravity=(0, 0, 0))
            scene.add_spheres(radius, mass=1.0, position=rng.uniform(0, side, (count, 3)))
            sim = Simulation(
                scene.build(), options=StepOptions(dt=1e-4), solver=SolverAPGD(max_iterations=1), threads=threads
            )
            sim._watch.said.add("overlap")
            seconds = min(sim.step().seconds["broad"] for _ in range(6))
            figures.append(seconds)
            yield _row("sizes", f"{count} spheres, radii 1:{ratio}", "broad_ms", 1e3 * seconds)
        yield _row("sizes", f"16000 against 4000, radii 1:{ratio}", "time_ratio", figures[1] / figures[0])
    figures = []
    for cells in (70, 700):
        x = np.linspace(-35.0, 35.0, cells + 1)
        points = np.stack([*np.meshgrid(x, x, indexing="ij"), np.zeros((cells + 1, cells + 1))], axis=-1).reshape(-1, 3)
        first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
        corner = np.array([(0, cells + 1, cells + 2), (0, cells + 2, 1)])
        mesh = Mesh(points, (first[:, None, None] + corner).reshape(-1, 3))
        scene = SceneBuilder()
        scene.add_static(mesh)
        scene.add_spheres(0.04, mass=1.0, position=grid_points((50, 50, 1), 1.3, origin=(0, 0, 0.04)))
        sim = Simulation(scene.build(), options=StepOptions(dt=1e-3), threads=threads)
        reports = [sim.step() for _ in range(6)]
        figures.append(min(r.seconds["broad"] + r.seconds["narrow"] for r in reports))
        yield _row("sizes", f"2500 spheres on {2 * cells**2} triangles", "collision_ms", 1e3 * figures[-1])
    yield _row("sizes", "980000 against 9800 triangles", "time_ratio", figures[1] / figures[0])


def joints(threads: int | None = None) -> Iterator[Row]:
    """A hanging chain with a thousandfold mass at its end: time a step for 125, 500 and 2000 links."""
    seconds = {}
    for links in (125, 500, 2000):
        sim = _chain(links, threads)
        for _ in range(5):
            sim.step()
        times = []
        for _ in range(20):
            start = time.perf_counter()
            report = sim.step()
            times.append(time.perf_counter() - start)
        seconds[links] = float(np.median(times))
        yield _row("joints", f"chain of {links} links", "step_ms", 1e3 * seconds[links])
        yield _row("joints", f"chain of {links} links", "joint_drift", report.joint_drift)
    yield _row("joints", "2000 over 500 links", "time_ratio", seconds[2000] / seconds[500])


def _chain(links: int, threads: int | None) -> Simulation:
    """Rods of 0.1 m and 1 kg on spherical joints, the last of 1000 kg, let go at an angle."""
    scene = SceneBuilder()
    d = np.array([np.sin(0.6), 0.0, -np.cos(0.6)])
    turn = rotation.from_normal(d)
    above = None
    for k in range(links):
        m = 1.0 if k < links - 1 else 1000.0
        inertia = (m * 0.01 / 12, m * 0.01 / 12, m * 5e-5)
        link = scene.add_body(None, mass=m, inertia=inertia, position=0.1 * (k + 0.5) * d, orientation=turn)
        scene.add_joint("spherical", above, link, anchor=0.1 * k * d)
        above = link
    return Simulation(scene.build(), options=StepOptions(dt=1e-3), threads=threads)


def free_box(threads: int | None = None) -> Iterator[Row]:
    """Overhead of a step: one box that touches nothing."""
    scene = SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(Box((0.3, 0.2, 0.1)), mass=1.0, angular_velocity=(1, 2, 3))
    sim = Simulation(scene.build(), options=StepOptions(dt=1e-3), threads=threads)
    sim.step()
    yield _row("free-box", "one box", "ms_per_step", 1e3 * min(_seconds(sim.step, 500) for _ in range(5)))


def fill(threads: int | None = None) -> Iterator[Row]:
    """1000 spheres fill a box (5 s, h = 0.01 s): time a step against the largest overlap for fixed iterations."""
    for iterations in (5, 20, 100, 500):
        sim = _fill_scene(1000, SolverAPGD(tolerance=0.0, max_iterations=iterations), threads)
        sim.step()
        run = sim.run(until=5.0, progress=False)
        case = f"{iterations} iterations, {sim.threads} threads"
        yield _row("fill", case, "ms_per_step", 1e3 * run.seconds / run.steps)
        yield _row("fill", case, "largest_overlap_radii", float(run.reports["largest_overlap"].max()))
        yield _row("fill", case, "overlap_at_end_radii", float(run.reports["largest_overlap"][-50:].max()))
        yield _row("fill", case, "contacts_at_end", float(run.reports["contacts"][-1]))


BENCHES: dict[str, Callable[[int | None], Iterator[Row]]] = {
    "solver": solver,
    "compile": compiling,
    "collide": collide,
    "sizes": sizes,
    "joints": joints,
    "free-box": free_box,
    "fill": fill,
}


# ---------------------------------------------------------------------- scenes and states

MIXED = (
    Cylinder(0.8, 1.6),
    ConvexHull(np.random.default_rng(0).normal(size=(16, 3)) * 0.6),
    Box((1.5, 1.2, 1.4)),
    Ellipsoid((1.0, 0.8, 0.7)),
    Capsule(0.6, 0.9),
    Cone(0.9, 1.8),
)


def _settled_mixed(count: int, threads: int | None) -> Simulation:
    """Bodies of six shapes, in turn, dropped from a loose grid in random orientations and let settle."""
    scene = SceneBuilder()
    columns = int(np.ceil(np.sqrt(count / 20)))
    side = 2.6 * columns + 1.0
    scene.add_static(open_box(inner=(side, side, 80.0), thickness=2.0))
    points = grid_points((columns, columns, -(-count // columns**2)), 2.6, origin=(0, 0, 2.0), jitter=0.02)[:count]
    rng = np.random.default_rng(1)
    turn = rng.normal(size=(count, 4))
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    for k in range(count):
        scene.add_body(MIXED[k % len(MIXED)], density=1.0, position=points[k], orientation=turn[k])
    sim = Simulation(
        scene.build(),
        options=StepOptions(dt=0.01),
        solver=SolverAPGD(tolerance=1e-4, max_iterations=40),
        threads=threads,
    )
    sim.run(until=4.0, progress=False)
    return sim


def _row(bench: str, case: str, metric: str, value: float) -> Row:
    return {"bench": bench, "case": case, "metric": metric, "value": float(f"{float(value):.6g}")}


def _seconds(call: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def _fill_scene(count: int, method: SolverAPGD, threads: int | None) -> Simulation:
    scene = SceneBuilder()
    grain = scene.add_material(Material(friction=0.25))
    scene.add_static(open_box(inner=(20.0, 20.0, 60.0), thickness=2.0), material=grain)
    points = grid_points((9, 9, -(-count // 81)), 2.2, origin=(0, 0, 1.1), jitter=0.05)[:count]
    scene.add_spheres(1.0, mass=1.0, material=grain, position=points)
    return Simulation(scene.build(), options=StepOptions(dt=0.01), solver=method, threads=threads)


def _settled(count: int, threads: int | None) -> Simulation:
    """Spheres dropped from a loose grid and let settle with few iterations a step."""
    scene = SceneBuilder()
    columns = int(np.ceil(np.sqrt(count / 20)))
    side = 2.05 * columns
    scene.add_static(open_box(inner=(side, side, 60.0), thickness=2.0))
    points = grid_points((columns, columns, -(-count // columns**2)), 2.05, origin=(0, 0, 1.05), jitter=0.02)[:count]
    radius = np.random.default_rng(1).uniform(0.9, 1.0, count)
    scene.add_spheres(radius, mass=1.0, position=points)
    sim = Simulation(
        scene.build(),
        options=StepOptions(dt=0.01),
        solver=SolverAPGD(tolerance=1e-4, max_iterations=40),
        threads=threads,
    )
    sim.run(until=2.5, progress=False)
    return sim


def _slab_problem() -> tuple[str, ConeProblem]:
    """The stored slab state if the data folder is there, else a pile of our own under a slab."""
    folder = Path(os.environ.get(DATA_VARIABLE, Path("..") / "shared" / "bench"))
    if (folder / "slab_state.npz").is_file():
        return "stored slab state", _stored_slab(np.load(folder / "slab_state.npz"))
    sim = _settled(4000, None)
    problem = sim.last.problem
    return f"4000 settled spheres ({DATA_VARIABLE} not found)", problem


def _stored_slab(data: Any) -> ConeProblem:
    """One cold step of the stored state: container 0, spheres 1..4000, slab 4001; bias max(gap/h, 0) + D^T v_free."""
    order = np.lexsort((data["contact_b"], data["contact_a"]))
    a, b = data["contact_a"][order].astype(np.int32), data["contact_b"][order].astype(np.int32)
    spheres, h = len(data["pos"]), float(data["h"])
    bodies, n = spheres + 2, len(a)
    position, velocity = np.zeros((bodies, 3)), np.zeros((bodies, 6))
    position[1:-1], position[-1] = data["pos"], data["slab_pos"]
    velocity[1:-1, :3], velocity[-1, :3] = data["vel"], data["slab_vel"]
    velocity[1:-1, 3:] = rotation.rotate(data["quat"], data["omega_local"])
    velocity[-1, 3:] = rotation.rotate(data["slab_quat"], data["slab_omega_local"])
    velocity[1:, 2] -= h * float(data["g"])
    geometry = np.concatenate(
        [data["normal"], data["tangent_u"], data["tangent_w"], data["point_a"], data["point_b"]], axis=1
    )[order].T.copy()
    frame, arms = geometry[:9].copy(), geometry[9:].copy()
    arms[:3] -= position[a].T
    arms[3:] -= position[b].T
    inverse_mass, inverse_inertia = np.zeros((bodies, 3)), np.zeros((bodies, 6))
    inverse_mass[1:-1], inverse_mass[-1] = 1.0 / float(data["mass"]), 1.0 / float(data["slab_mass"])
    inverse_inertia[1:-1, :3] = 2.5 / (float(data["mass"]) * float(data["radius"]) ** 2)
    inverse_inertia[-1, :3] = 1.0 / data["slab_inertia"]
    inverse_mass.setflags(write=False)  # as in a Model, so that the same compiled kernels are used
    start, cursor = np.zeros(bodies + 1, np.int64), np.zeros(bodies, np.int64)
    slot_a, slot_b = np.zeros(n, np.int32), np.zeros(n, np.int32)
    backends.choose().fill_entries(n, a, b, inverse_mass[:, 0] > 0.0, start, cursor, slot_a, slot_b)
    arm = np.zeros((2 * n + 1, 3))
    arm[slot_a], arm[slot_b] = arms[:3].T, arms[3:].T
    operator = ContactOperator(
        ContactArrays(
            n,
            a,
            b,
            frame,
            arms,
            slot_a,
            slot_b,
            start,
            arm,
            np.zeros((2 * n + 1, 3)),
            inverse_mass,
            inverse_inertia,
            np.zeros((bodies, 6)),
            np.zeros((2, 0)),
        ),
        backends.choose(),
    )
    bias = np.zeros((3, n))
    operator.relative(velocity, bias)
    bias[0] += np.maximum(data["gap"][order] / h, 0.0)
    group = BlockGroup(BlockKind.CONE, 3, n, np.full(n, float(data["mu"])))
    return ConeProblem(group, bias, operator, h)
