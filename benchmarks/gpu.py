"""What the backend "cuda" gives on this machine: agreement with the processor, then times. Prints JSON lines.

    python benchmarks/gpu.py [SECTION ...]

Sections: agree, rolling, auto, flow, closed, start, iteration, kernels, step, host, pour, large, against, convex,
surfaces, robots; all without a name.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import tumble as tb
from tumble import backends, interrupts
from tumble.kernels import jit
from tumble.sim import stepper


def say(**words: object) -> None:
    """A line."""
    print(json.dumps(words), flush=True)


def box_of_spheres(
    count: int, *, layers: int = 0, radius: float = 0.05, fill: float = 0.105, jitter: float = 0.0015, **material: float
) -> tb.Model:
    """A loose lattice of spheres in an open box; layers: 0 for one that is higher than wide."""
    side = max(2, round((count / (layers or (1.5 * count) ** (1.0 / 3.0) * 1.5 ** (1.0 / 3.0))) ** 0.5))
    layers = -(-count // side**2)
    width = side * fill + 0.01
    scene = tb.SceneBuilder()
    stuff = scene.add_material(tb.Material(friction=0.3, **material))
    scene.add_static(tb.open_box(inner=(width, width, 2.0 * layers * fill)), material=stuff)
    points = tb.grid_points((side, side, layers), fill, origin=(0, 0, radius + 0.01), jitter=jitter)
    scene.add_spheres(radius, density=2500.0, material=stuff, position=points[:count])
    return scene.build()


def differences(cpu: tb.Simulation, gpu: tb.Simulation) -> dict[str, float]:
    """Largest differences of poses and velocities."""
    pairs = {"position": "positions", "velocity": "velocities", "spin": "angular_velocities"}
    return {name: float(np.abs(getattr(cpu, f)() - getattr(gpu, f)()).max()) for name, f in pairs.items()}


def agree() -> None:
    """The same scenes on both, step by step."""
    for law in ("relaxed", "coulomb"):
        for precision in ("double", "single"):
            model, sims = box_of_spheres(60), []
            options = tb.StepOptions(dt=5e-3, law=law)
            for backend in ("cpu", "cuda"):
                solver = tb.SolverAPGD(
                    tolerance=1e-8 if precision == "double" else 1e-5,
                    precision="double" if backend == "cpu" else precision,
                )
                sims.append(tb.Simulation(model, options=options, solver=solver, backend=backend, threads=1))
            for step in range(40):
                reports = [sim.step() for sim in sims]
                if step in (5, 20, 39):
                    numbers = {k: [getattr(r, k) for r in reports] for k in ("contacts", "iterations", "natural_map")}
                    say(section="agree", law=law, precision=precision, step=step, **numbers, **differences(*sims))
            twin = tb.Simulation(model, options=options, solver=sims[1].solver, backend="cuda")
            for _ in range(40):
                twin.step()
            say(section="agree", check="same bits in a second run", same=twin.state.sha256() == sims[1].state.sha256())
            found = sims[1].last
            again = tb.solvers.measure(found.problem, found.solution.impulse, law)
            say(
                section="agree",
                check="residuals measured by the processor",
                device=found.solution.residuals.natural_map,
                processor=again.natural_map,
                certificates=[found.solution.residuals.certificate_energy, again.certificate_energy],
            )


def rolling(count: int = 100_000, iterations: int = 30) -> None:
    """Spheres with rolling and spinning friction: agreement of a small pile, then the time of a step."""
    for law in ("relaxed", "coulomb"):
        sims = []
        for backend in ("cpu", "cuda"):
            solver = tb.SolverAPGD(tolerance=1e-8, precision="double")
            model = box_of_spheres(60, rolling_friction=1e-3, spinning_friction=5e-4)
            options = tb.StepOptions(dt=5e-3, law=law)
            sims.append(tb.Simulation(model, options=options, solver=solver, backend=backend, threads=1))
        for step in range(40):
            reports = [sim.step() for sim in sims]
            if step in (5, 20, 39):
                numbers = {k: [getattr(r, k) for r in reports] for k in ("contacts", "iterations", "natural_map")}
                say(section="rolling", law=law, step=step, **numbers, **differences(*sims))
        found = sims[1].last
        again = tb.solvers.measure(found.problem, found.solution.impulse, law)
        say(section="rolling", device=found.solution.residuals.natural_map, processor=again.natural_map)
    model = box_of_spheres(count, rolling_friction=1e-3, spinning_friction=5e-4)
    for precision in ("double", "single"):
        solver = tb.SolverAPGD(tolerance=1e-30, stop="natural_map", max_iterations=iterations, precision=precision)
        sim = tb.Simulation(model, options=tb.StepOptions(dt=5e-3), solver=solver, backend="cuda")
        for _ in range(40):
            sim.step()
        times = []
        for _ in range(10):
            start = time.perf_counter()
            report = sim.step()
            times.append(time.perf_counter() - start)
        say(section="rolling", bodies=count, contacts=report.contacts, precision=precision, ms=1e3 * min(times),
            natural_map=report.natural_map)  # fmt: skip


def auto(count: int = 1000, steps: int = 200) -> None:
    """Steps that the default solver misses while spheres settle, on both backends, and what it tried."""
    for backend in ("cpu", "cuda"):
        sim = tb.Simulation(box_of_spheres(count), options=tb.StepOptions(dt=5e-3), backend=backend)
        missed, tried, start = 0, {}, time.perf_counter()
        for _ in range(steps):
            report = sim.step()
            missed += not report.converged
            for name, iterations, *_ in sim._last.solution.tried:
                tried[name] = tried.get(name, 0) + iterations
        say(section="auto", on=backend, steps=steps, missed=missed, iterations=tried, s=time.perf_counter() - start,
            kinetic=report.kinetic_energy, overlap=report.largest_overlap)  # fmt: skip


def flow(count: int = 3000, steps: int = 400) -> None:
    """Spheres that are poured, counted and taken away, on both backends."""
    for backend in ("cpu", "cuda"):
        scene = tb.SceneBuilder()
        scene.add_static(tb.Box((0.6, 0.6, 0.1)), position=(0, 0, -0.05))
        region = tb.DiscRegion(center=(0, 0, 0.8), radius=0.25)
        scene.add_emitter(tb.Sphere(0.01), density=2500.0, count=count, rate=2000.0, region=region, name="pour",
                          size_range=(0.7, 1.3), velocity=(0, 0, -2))  # fmt: skip
        scene.add_measuring_plane(point=(0, 0, 0.4), normal=(0, 0, -1), name="gate")
        scene.add_sink(point=(0, 0, -0.3), name="drain")
        solver = tb.SolverAPGD(tolerance=1e-4, stop="natural_map", precision="double")
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2.5e-3), solver=solver, backend=backend)
        for k in range(steps):
            report = sim.step()
            if k in (steps // 8, steps - 1):
                say(section="flow", on=backend, step=report.step, contacts=report.contacts, totals=sim.flow_totals(),
                    kinetic=report.kinetic_energy, seconds=sum(report.seconds.values()))  # fmt: skip


def closed() -> None:
    """Experiments with closed forms on both backends: the largest difference of a metric, relative and absolute."""
    import tempfile
    import warnings

    from tumble.experiments import run_experiment

    for name in ("ball-roll", "box-slide", "incline-slide", "incline-stop"):
        found = {}
        try:
            for backend in ("cpu", "cuda"):
                with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found[backend] = run_experiment(name, out=folder, quick=True, backend=backend, progress=False)
        except tb.errors.OptionsError as refused:
            say(section="closed", experiment=name, refused=str(refused)[:200])
            continue
        worst = {}
        for key, value in found["cpu"].items():
            off = abs(found["cuda"][key] - value)
            if off > 1e-12 and off > 1e-9 * abs(value):
                worst[key] = [value, found["cuda"][key]]
        say(section="closed", experiment=name, metrics=len(found["cpu"]), beyond_1e9_and_1e12=worst)


def start() -> None:
    """What a warm start pays, in seconds from the start of the process on."""
    marks = {"imports": time.monotonic() - interrupts.STARTED}
    sim = tb.Simulation(box_of_spheres(1000), options=tb.StepOptions(dt=5e-3), backend="cuda")
    marks["simulation"] = time.monotonic() - interrupts.STARTED
    for name in ("first step", "second step"):
        sim.step()
        marks[name] = time.monotonic() - interrupts.STARTED
    for _ in range(60):
        sim.step()
    marks["60 steps more"] = time.monotonic() - interrupts.STARTED
    compiled = jit.compile_log
    say(section="start", **marks, compiled=compiled.kernels, compiling=compiled.seconds)


def host(count: int = 100_000, iterations: int = 20, steps: int = 20) -> None:
    """What the host does in a step: launches, copies, and the calls that take longest."""
    import cProfile
    import io
    import pstats

    solver = tb.SolverAPGD(tolerance=1e-30, stop="natural_map", max_iterations=iterations, precision="double")
    sim = tb.Simulation(box_of_spheres(count), options=tb.StepOptions(dt=5e-3), solver=solver, backend="cuda")
    for _ in range(60):
        sim.step()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        report = sim.step()
        times.append(time.perf_counter() - start)
    say(section="host", bodies=count, contacts=report.contacts, best_ms=1e3 * min(times), mean_ms=1e3 * np.mean(times),
        stages_ms={k: round(1e3 * v, 3) for k, v in report.seconds.items()})  # fmt: skip
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(steps):
        sim.step()
    profile.disable()
    for order, lines in (("tottime", 32), ("cumulative", 60)):
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats(order).print_stats(lines)
        for line in text.getvalue().splitlines():
            words = line.split(None, 5)
            if len(words) == 6 and words[1][:1].isdigit() and words[3][:1].isdigit():
                say(section="host", order=order, calls_a_step=words[0], total_ms=1e3 * float(words[1]) / steps,
                    cumulative_ms=1e3 * float(words[3]) / steps, where=words[-1][-70:])  # fmt: skip


def timed_stages() -> None:
    """Stages are measured to their end on the device."""
    note, device = stepper._Laps.__call__, backends.choose("cuda")

    def wait_and_note(self: object, stage: str) -> None:
        device.synchronize()
        note(self, stage)

    stepper._Laps.__call__ = wait_and_note


def step(sizes: tuple[int, ...] = (1000, 100_000, 1_000_000), iterations: int = 30) -> None:
    """A step at a fixed number of iterations, after the lattice has come together."""
    timed_stages()
    for count in sizes:
        start = time.perf_counter()
        model = box_of_spheres(count)
        built = time.perf_counter() - start
        for precision in ("double", "single"):
            solver = tb.SolverAPGD(tolerance=1e-30, stop="natural_map", max_iterations=iterations, precision=precision)
            start = time.perf_counter()
            sim = tb.Simulation(model, options=tb.StepOptions(dt=5e-3), solver=solver, backend="cuda")
            sim.step()
            first = time.perf_counter() - start
            for _ in range(40):
                sim.step()
            seconds, stages = [], []
            for _ in range(10):
                start = time.perf_counter()
                report = sim.step()
                seconds.append(time.perf_counter() - start)
                stages.append(report.seconds)
            best = int(np.argmin(seconds))
            say(
                section="step",
                bodies=count,
                precision=precision,
                build_s=built,
                first_step_s=first,
                contacts=report.contacts,
                ms=1e3 * seconds[best],
                iterations=report.iterations,
                natural_map=report.natural_map,
                stages_ms={k: round(1e3 * v, 3) for k, v in stages[best].items()},
            )


def iteration(sizes: tuple[int, ...] = (1000, 100_000, 1_000_000)) -> None:
    """Time of an iteration, from two solves of the same problem that differ in their number."""
    for count in sizes:
        model = box_of_spheres(count)
        for precision in ("double", "single"):
            solver = tb.SolverAPGD(tolerance=1e-30, stop="natural_map", max_iterations=20, precision=precision)
            sim = tb.Simulation(model, options=tb.StepOptions(dt=5e-3), solver=solver, backend="cuda")
            for _ in range(40):
                sim.step()
            problem, found = sim._last.problem, {}
            for many in (200, 1200):
                one = tb.SolverAPGD(
                    tolerance=1e-30, stop="natural_map", max_iterations=many, check_every=100, precision=precision
                )
                best = 1e9
                for _ in range(4):
                    start = time.perf_counter()
                    one.solve(problem)
                    sim.backend.synchronize()
                    best = min(best, time.perf_counter() - start)
                found[many] = best
            each = (found[1200] - found[200]) / 1000
            say(
                section="iteration",
                bodies=count,
                contacts=problem.count,
                precision=precision,
                us=1e6 * each,
                ns_a_contact=1e9 * each / problem.count,
                solve_of_200_ms=1e3 * found[200],
            )


def kernels(count: int = 1_000_000) -> None:
    """Time and registers of the three kernels of an iteration."""
    import tumble.backends.cuda.apgd  # noqa: F401
    from tumble.backends.cuda import provider

    apgd = sys.modules["tumble.backends.cuda.apgd"]

    cupy = provider.xp
    sim = tb.Simulation(
        box_of_spheres(count), options=tb.StepOptions(dt=5e-3), solver=tb.SolverAPGD(max_iterations=20), backend="cuda"
    )
    for _ in range(60):
        sim.step()
    for precision in ("double", "single"):
        tb.SolverAPGD(max_iterations=10, tolerance=1e-30, precision=precision).solve(sim._last.problem)
    attributes = {"registers": 4, "local_bytes": 3}
    for made in (m for kernel in apgd._contacts.values() for m in kernel._made.values()):
        say(
            section="kernels",
            kernel="contacts",
            **{n: cupy.cuda.driver.funcGetAttribute(a, made._function.ptr) for n, a in attributes.items()},
        )
    found = {}
    for dtype in (np.float64, np.float32):
        run = last_run(sim._last.problem, dtype)
        for name, launch in (
            ("contacts", lambda run=run: run._contacts.launch(run._blocks, run.p)),
            ("scalars", lambda run=run: apgd._scalars.launch(1, run.p)),
            ("bodies", lambda run=run: apgd._bodies.launch(run._body_blocks, run.p)),
        ):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            launch()
            begin.record()
            for _ in range(50):
                launch()
            end.record()
            end.synchronize()
            found[name] = 1e3 * cupy.cuda.get_elapsed_time(begin, end) / 50
        say(section="kernels", contacts=run.count, dtype=np.dtype(dtype).name, us=found)


def last_run(problem: object, dtype: type) -> object:
    """The loop of APGD over a problem of the device."""
    from tumble.backends.cuda.apgd import Run
    from tumble.enums import Scaling
    from tumble.kernels.nesterov import first_scalars
    from tumble.solve.base import ScaledProblem

    scaled = ScaledProblem(problem, Scaling.NORMAL_TANGENTIAL, True, None, np.zeros(1))
    groups = tb.SolverAPGD()._groups(scaled)
    return Run(*groups, first_scalars(0.9999, 0.97, 300.0), dtype)


def pour(count: int = 1_000_000, tolerance: float = 1e-4, seconds: float = 330.0) -> None:
    """Spheres fall into a box, with few iterations a step, until they rest; then 100 steps to a natural map."""
    start = time.perf_counter()
    model = box_of_spheres(count, layers=40, fill=0.12, jitter=0.0095)
    precision = os.environ.get("PRECISION", "mixed")
    solver = tb.SolverAPGD(tolerance=1e-30, stop="natural_map", precision=precision, max_iterations=60)
    sim = tb.Simulation(model, options=tb.StepOptions(dt=5e-3), solver=solver, backend="cuda")
    calm, times = 1e-4 * float(model.body_mass.max()) * 9.81 * 0.05 * count, []
    while time.perf_counter() - start < seconds:
        before = time.perf_counter()
        report = sim.step()
        times.append(time.perf_counter() - before)
        if report.step % 50 == 0:
            say(
                section="pour",
                step=report.step,
                contacts=report.contacts,
                kinetic=report.kinetic_energy,
                calm=calm,
                natural_map=report.natural_map,
                overlap=report.largest_overlap / 0.05,
                mean_s=float(np.mean(times[-50:])),
            )
        if report.kinetic_energy < calm and report.step > 100:
            break
    say(section="pour", steps=report.step, kinetic=report.kinetic_energy, calm=calm, s=time.perf_counter() - start)
    for each in (precision, "double"):
        sim.solver = tb.SolverAPGD(tolerance=tolerance, stop="natural_map", precision=each)
        for name, steps in (("cold", 1), ("warm", 100)):
            reports, times = [], []
            for _ in range(steps):
                before = time.perf_counter()
                reports.append(sim.step())
                times.append(time.perf_counter() - before)
                if sum(times) > 60.0:
                    break
            say(
                section="pour",
                precision=each,
                what=name,
                steps=len(times),
                contacts=reports[-1].contacts,
                mean_s=float(np.mean(times)),
                iterations=float(np.mean([r.iterations for r in reports])),
                natural_map=max(r.natural_map for r in reports),
                missed=sum(not r.converged for r in reports),
                kinetic=reports[-1].kinetic_energy,
                overlap=reports[-1].largest_overlap / 0.05,
            )
    device = backends.choose("cuda")
    free, total = device.free_memory()
    say(section="pour", gb_used=(total - free) / 1e9, kb_a_sphere=(total - free) / count / 1e3)


def large(count: int = 10_000_000) -> None:
    """So many spheres fit and step; memory of the device."""
    device = backends.choose("cuda")
    solver = tb.SolverAPGD(tolerance=1e-30, stop="natural_map", precision="single", max_iterations=20)
    start = time.perf_counter()
    model = box_of_spheres(count, layers=40)
    sim = tb.Simulation(model, options=tb.StepOptions(dt=5e-3), solver=solver, backend="cuda")
    built = time.perf_counter() - start
    for _ in range(25):
        sim.step()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        report = sim.step()
        times.append(time.perf_counter() - begin)
    free, total = device.free_memory()
    say(
        section="large", bodies=count, contacts=report.contacts, build_s=built, step_s=min(times),
        gb_in_use=(total - free) / 1e9, kb_a_sphere=(total - free) / 1e3 / count,
    )  # fmt: skip


def robots(count: int = 10_000, steps: int = 60) -> None:
    """Robots of 20 bodies with servos that have a maximum, standing on balls for feet: a step, its stages, and how long
    making the simulation takes."""
    part = tb.SceneBuilder()
    for k in range(2):
        part.add_body(tb.Sphere(0.05), mass=4.0, position=(0.46 - 0.92 * k, 0, 0.3), name=f"trunk{k}")
    part.add_joint("revolute", "trunk0", "trunk1", anchor=(0, 0, 0.3), axis=(0, 1, 0), name="waist")
    part.add_motor("waist", "position", target=0.0, stiffness=400.0, damping=20.0, maximum=60.0)
    for k in range(18):
        x, side = 0.8 - 0.2 * (k // 2), 1.0 - 2.0 * (k % 2)
        part.add_body(tb.Sphere(0.02), mass=0.3, position=(x, 0.12 * side, 0.0201), name=f"foot{k}")
        trunk, name = "trunk0" if x > 0.0 else "trunk1", f"hip{k}"
        part.add_joint("revolute", trunk, f"foot{k}", anchor=(x, 0.12 * side, 0.28), axis=(0, 1, 0), name=name)
        target = 0.05 * (-1) ** (k // 2)  # they shuffle their feet
        part.add_motor(name, "position", target=target, stiffness=100.0, damping=5.0, maximum=10.0)
    begin, side = time.perf_counter(), int(np.ceil(np.sqrt(count)))
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.replicate(part, position=tb.grid_points((side, side, 1), 2.5)[:count], name="robot")
    model = scene.build()
    built = time.perf_counter() - begin
    sim = tb.Simulation(model, options=tb.StepOptions(dt=2e-3), backend="cuda")
    made = time.perf_counter() - begin - built
    timed_stages()
    reports, spent = [], []
    for _ in range(steps):
        start = time.perf_counter()
        reports.append(sim.step())
        spent.append(time.perf_counter() - start)
    late = reports[steps // 2 :]
    say(
        robots=count, bodies=model.body_count, contacts=late[-1].contacts, build_s=built, simulation_s=made,
        ms_first_step=1e3 * spent[0], ms_a_step=1e3 * float(np.median(spent[steps // 2 :])),
        ms_best=1e3 * min(spent), ms_worst=1e3 * max(spent[1:]),
        iterations=float(np.mean([r.iterations for r in late])), iterations_most=max(r.iterations for r in reports),
        missed=sum(not r.converged for r in reports), drift=max(r.joint_drift for r in reports),
        energy_defect=max(abs(r.energy_defect) for r in reports),
        stages={name: 1e3 * float(np.median([r.seconds[name] for r in late])) for name in late[-1].seconds},
    )  # fmt: skip


def against(count: int = 1_000_000, iterations: int = 30) -> None:
    """The same steps on the processors of this machine."""
    model, sims = box_of_spheres(count, layers=40, fill=0.12, jitter=0.0095), {}
    solver = tb.SolverAPGD(tolerance=1e-30, stop="natural_map", precision="double", max_iterations=iterations)
    gpu = tb.Simulation(model, options=tb.StepOptions(dt=5e-3), solver=solver, backend="cuda")
    for _ in range(150):
        gpu.step()
    state = gpu.get_state()
    for name, backend, threads, steps in (("cuda", "cuda", None, 10), ("cpu 16", "cpu", 16, 3), ("cpu 2", "cpu", 2, 2)):
        sim = tb.Simulation(model, options=tb.StepOptions(dt=5e-3), solver=solver, backend=backend, threads=threads)
        sim.set_state(state)
        sim.step()
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            report = sim.step()
            times.append(time.perf_counter() - begin)
        sims[name] = min(times)
        say(section="against", on=name, contacts=report.contacts, ms=1e3 * min(times), iterations=report.iterations)
    say(section="against", cores_16=sims["cpu 16"] / sims["cuda"], cores_2=sims["cpu 2"] / sims["cuda"])


def mixed_shapes() -> list[tb.Shape]:
    """Convex shapes of every family, of about one size."""
    rng = np.random.default_rng(7)
    hull = rng.normal(size=(24, 3))
    return [
        tb.Box((0.1, 0.08, 0.09)), tb.ConvexHull(0.055 * hull / np.linalg.norm(hull, axis=1)[:, None]),
        tb.Capsule(0.035, 0.06), tb.Cylinder(0.05, 0.09), tb.Cone(0.055, 0.1), tb.Frustum(0.055, 0.035, 0.08),
        tb.Ellipsoid((0.055, 0.045, 0.04)), tb.Rounded(tb.Box((0.07, 0.06, 0.08)), 0.01), tb.Sphere(0.05),
    ]  # fmt: skip


def box_of_mixed(count: int, pitch: float = 0.13, layers: int = 12) -> tb.Model:
    """Mixed convex bodies, turned at random, in an open box."""
    side = max(2, round((count / layers) ** 0.5))
    layers = -(-count // side**2)
    width = side * pitch + 0.02
    scene = tb.SceneBuilder()
    stuff = scene.add_material(tb.Material(friction=0.4))
    scene.add_static(tb.open_box(inner=(width, width, 1.5 * layers * pitch)), material=stuff)
    points = tb.grid_points((side, side, layers), pitch, origin=(0, 0, 0.08), jitter=0.001)[:count]
    rng, shapes = np.random.default_rng(3), mixed_shapes()
    turns = rng.normal(size=(count, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    for k, shape in enumerate(shapes):
        of = slice(k, count, len(shapes))
        scene.add_copies(shape, density=2000.0, material=stuff, position=points[of], orientation=turns[of])
    return scene.build()


def contacts_of(sim: tb.Simulation) -> dict[str, np.ndarray]:
    """The contacts of the last step."""
    table = sim.last.contacts
    names = ("body_a", "body_b", "feature", "gap", "normal", "point")
    return {name: np.array(getattr(table, name))[..., : table.count] for name in names}


def convex(sizes: tuple[int, ...] = (2000, 100_000), steps: int = 200) -> None:
    """Mixed convex bodies that have fallen together: times of the stages, kernels, the same contacts as a processor."""
    from tumble.kernels.jit import compile_log

    timed_stages()
    for count in sizes:
        model = box_of_mixed(count)
        solver = tb.SolverAPGD(tolerance=1e-30, stop="natural_map", max_iterations=60)
        options = tb.StepOptions(dt=4e-3)
        start = time.perf_counter()
        sim = tb.Simulation(model, options=options, solver=solver, backend="cuda")
        sim.step()
        compiled = {name: round(s, 1) for name, s in compile_log.by_kernel.items() if name.startswith("cuda.")}
        say(section="convex", bodies=count, first_step_s=time.perf_counter() - start, compile_s=compiled)
        for _ in range(steps):
            sim.step()
        narrow, reports = [], []
        for _ in range(10):
            reports.append(sim.step())
            narrow.append(1e3 * reports[-1].seconds["narrow"])
        best = int(np.argmin(narrow))
        say(
            section="convex",
            bodies=count,
            narrow_ms=narrow[best],
            contacts=reports[best].contacts,
            overlap=reports[best].largest_overlap,
            stages_ms={k: round(1e3 * v, 3) for k, v in reports[best].seconds.items()},
        )
        launches: dict[str, float] = {}
        with timed_launches(launches):
            sim.step()
        slowest = sorted(launches.items(), key=lambda item: -item[1])[:12]
        say(section="convex", bodies=count, kernels_ms={name: round(ms, 3) for name, ms in slowest})
        twins = [tb.Simulation(model, options=options, solver=solver, backend=b) for b in ("cpu", "cuda", "cuda")]
        for twin in twins:
            twin.set_state(sim.get_state())
            twin.step()
        host, device, again = (contacts_of(twin) for twin in twins)
        say(
            section="convex",
            bodies=count,
            check="contacts of the same state",
            contacts=[len(host["gap"]), len(device["gap"])],
            same_as_processor={k: bool(np.array_equal(device[k], host[k])) for k in host},
            same_again=all(np.array_equal(device[k], again[k]) for k in host),
            cpu_narrow_ms=1e3 * twins[0].step().seconds["narrow"],
        )
        if len(host["gap"]) == len(device["gap"]):
            say(section="convex", largest_difference={
                k: float(np.abs(device[k] - host[k]).max()) for k in ("gap", "normal", "point")
            })  # fmt: skip
    convex_kernels()


def surfaces(sizes: tuple[int, ...] = (2000, 100_000), steps: int = 60) -> None:
    """Mixed bodies on a mesh and on a height field of 80000 triangles: times, the same contacts as a processor."""
    timed_stages()
    for count in sizes:
        for kind in ("mesh", "field"):
            model = mixed_on_ground(count, kind)
            solver = tb.SolverAPGD(tolerance=1e-30, stop="natural_map", max_iterations=20)
            options = tb.StepOptions(dt=4e-3)
            sim = tb.Simulation(model, options=options, solver=solver, backend="cuda")
            start = time.perf_counter()
            sim.step()
            first = time.perf_counter() - start
            for _ in range(steps):
                sim.step()
            narrow = [1e3 * sim.step().seconds["narrow"] for _ in range(5)]
            launches: dict[str, float] = {}
            with timed_launches(launches):
                report = sim.step()
            slowest = sorted(launches.items(), key=lambda item: -item[1])[:8]
            tables = []
            for backend in ("cpu", "cuda"):
                twin = tb.Simulation(model, options=options, solver=solver, backend=backend)
                twin.set_state(sim.get_state())
                twin.step()
                tables.append(contacts_of(twin))
            say(
                section="surfaces",
                ground=kind,
                bodies=count,
                first_step_s=first,
                contacts=report.contacts,
                overlap=report.largest_overlap,
                narrow_ms=min(narrow),
                kernels_ms={name: round(ms, 3) for name, ms in slowest},
                same_as_processor={k: bool(np.array_equal(tables[0][k], tables[1][k])) for k in tables[0]},
            )


def mixed_on_ground(count: int, kind: str) -> tb.Model:
    """Mixed bodies side by side, turned at random, over uneven ground."""
    side = int(np.ceil(count**0.5))
    width, rng = 0.16 * side, np.random.default_rng(5)
    heights = 0.03 * rng.random((201, 201))
    scene = tb.SceneBuilder()
    stuff = scene.add_material(tb.Material(friction=0.4))
    ground: tb.Shape = tb.HeightField(heights, (width, width))
    if kind == "mesh":
        x = np.linspace(-0.5 * width, 0.5 * width, 201)
        points = np.stack([*np.meshgrid(x, x, indexing="ij"), heights], axis=2).reshape(-1, 3)
        first = (np.arange(200)[:, None] * 201 + np.arange(200)).ravel()
        halves = [np.stack([first + k for k in corners], axis=1) for corners in ((0, 201, 202), (0, 202, 1))]
        ground = tb.Mesh(points, np.concatenate(halves))
    scene.add_static(ground, material=stuff)
    points = tb.grid_points((side, side, 1), 0.15, origin=(0, 0, 0.12), jitter=0.002)[:count]
    turns = rng.normal(size=(count, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    shapes = mixed_shapes()
    for k, shape in enumerate(shapes):
        of = slice(k, count, len(shapes))
        scene.add_copies(shape, density=2000.0, material=stuff, position=points[of], orientation=turns[of])
    return scene.build()


@contextmanager
def timed_launches(found: dict[str, float]) -> Iterator[None]:
    """Milliseconds of each kernel that is launched meanwhile; each is waited for."""
    from tumble.backends.cuda.launch import Kernel

    launch, device = Kernel.launch, backends.choose("cuda")

    def timed(self: Kernel, *arguments: object) -> None:
        device.synchronize()
        start = time.perf_counter()
        launch(self, *arguments)
        device.synchronize()
        name = self.function.__name__
        found[name] = found.get(name, 0.0) + 1e3 * (time.perf_counter() - start)

    Kernel.launch = timed
    try:
        yield
    finally:
        Kernel.launch = launch


def convex_kernels() -> None:
    """Registers and local memory of the kernels of the convex pairs."""
    module = sys.modules["tumble.backends.cuda.convex"]
    cupy = sys.modules["tumble.backends.cuda.provider"].xp
    for name, kernel in vars(module).items():
        for made in getattr(kernel, "_made", {}).values():
            numbers = {"registers": 4, "local_bytes": 3}
            found = {n: cupy.cuda.driver.funcGetAttribute(a, made._function.ptr) for n, a in numbers.items()}
            say(section="convex", kernel=name, **found)


if __name__ == "__main__":
    sections = {"agree": agree, "iteration": iteration, "kernels": kernels, "step": step}
    sections |= {"pour": pour, "large": large, "against": against, "rolling": rolling, "auto": auto, "flow": flow}
    sections |= {"convex": convex, "surfaces": surfaces, "robots": robots}
    sections |= {"host": host, "closed": closed, "start": start}
    device = backends.choose("cuda")
    free, total = device.free_memory()
    say(device=device.device_name(), free_gb=free / 1e9, total_gb=total / 1e9, numpy=np.__version__)
    for name in sys.argv[1:] or list(sections):
        start = time.perf_counter()
        try:
            sections[name]()
        except Exception:
            print("".join(traceback.format_exc().splitlines(keepends=True)[-14:]), flush=True)
        say(section=name, seconds=time.perf_counter() - start)
