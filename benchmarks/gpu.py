"""What the backend "cuda" gives on this machine: agreement with the processor, then times. Prints JSON lines.

python benchmarks/gpu.py [SECTION ...]     agree, iteration, step, pour; all of them if none is named
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback

import numpy as np

import tumble as tb
from tumble import backends
from tumble.sim import stepper


def say(**words: object) -> None:
    """A line."""
    print(json.dumps(words), flush=True)


def box_of_spheres(count: int, *, radius: float = 0.05, fill: float = 0.105, friction: float = 0.3) -> tb.Model:
    """A loose lattice of spheres in an open box, higher than wide."""
    side = max(2, round((count / 1.5) ** (1.0 / 3.0)))
    layers = -(-count // side**2)
    width = side * fill + 0.01
    scene = tb.SceneBuilder()
    stuff = scene.add_material(tb.Material(friction=friction))
    scene.add_static(tb.open_box(inner=(width, width, 2.0 * layers * fill)), material=stuff)
    points = tb.grid_points((side, side, layers), fill, origin=(0, 0, radius + 0.01), jitter=0.03 * radius)
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
            say(section="agree", check="residuals measured by the processor", device=found.solution.residuals.natural_map,
                processor=again.natural_map, certificates=[found.solution.residuals.certificate_energy, again.certificate_energy])  # fmt: skip


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
            say(section="step", bodies=count, precision=precision, build_s=built, first_step_s=first,
                contacts=report.contacts, ms=1e3 * seconds[best], iterations=report.iterations,
                natural_map=report.natural_map, stages_ms={k: round(1e3 * v, 3) for k, v in stages[best].items()})  # fmt: skip


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
            say(section="iteration", bodies=count, contacts=problem.count, precision=precision, us=1e6 * each,
                ns_a_contact=1e9 * each / problem.count, solve_of_200_ms=1e3 * found[200])  # fmt: skip


def pour(count: int = 1_000_000, tolerance: float = 1e-4, seconds: float = 240.0) -> None:
    """Spheres fall into a box until they rest; then steps to a natural map."""
    start = time.perf_counter()
    model = box_of_spheres(count)
    solver = tb.SolverAPGD(tolerance=tolerance, stop="natural_map", precision=os.environ.get("PRECISION", "single"))
    sim = tb.Simulation(model, options=tb.StepOptions(dt=5e-3), solver=solver, backend="cuda")
    mass, gravity, radius = float(model.body_mass.max()), 9.81, 0.05
    calm, times = 1e-4 * mass * gravity * radius * count, []
    while time.perf_counter() - start < seconds:
        before = time.perf_counter()
        report = sim.step()
        times.append(time.perf_counter() - before)
        if report.step % 50 == 0:
            say(section="pour", step=report.step, contacts=report.contacts, kinetic=report.kinetic_energy, calm=calm,
                iterations=report.iterations, natural_map=report.natural_map, overlap=report.largest_overlap / radius,
                mean_s=float(np.mean(times[-50:])))  # fmt: skip
        if report.kinetic_energy < calm and report.step > 100:
            say(section="pour", at_rest_after=report.step, spent_s=time.perf_counter() - start)
            times = []
            for _ in range(100):
                before = time.perf_counter()
                report = sim.step()
                times.append(time.perf_counter() - before)
            say(section="pour", contacts=report.contacts, mean_s=float(np.mean(times)), iterations=report.iterations,
                natural_map=report.natural_map)  # fmt: skip
            return


if __name__ == "__main__":
    sections = {"agree": agree, "iteration": iteration, "step": step, "pour": pour}
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
