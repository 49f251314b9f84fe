"""What the backend "cuda" gives on this machine: agreement with the processor, then times. Prints JSON lines.

    python benchmarks/gpu.py [SECTION ...]

Sections: agree, rolling, auto, flow, closed, start, iteration, kernels, step, host, pour, large, against; all without
a name.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback

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
    leave = stepper._Timer.__exit__
    device = backends.choose("cuda")

    def wait_and_leave(self: object, *what: object) -> None:
        device.synchronize()
        leave(self, *what)

    stepper._Timer.__exit__ = wait_and_leave


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


if __name__ == "__main__":
    sections = {"agree": agree, "iteration": iteration, "kernels": kernels, "step": step}
    sections |= {"pour": pour, "large": large, "against": against, "rolling": rolling, "auto": auto, "flow": flow}
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
