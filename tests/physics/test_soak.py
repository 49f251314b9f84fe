"""Long runs: memory stays flat, a heap at rest gains no energy, and the file holds the frames asked for, not more."""

import gc
from pathlib import Path

import numpy as np
import pytest

import tumble as tb

BODIES, EVERY = 300, 100
pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")


def pour():
    """Balls poured into a box until it overflows; those that fall beside it are taken away."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(0.5, 0.5, 0.35)), name="box")
    scene.add_emitter(
        tb.Sphere(0.03),
        count=BODIES,
        rate=600.0,
        density=1000.0,
        region=tb.DiscRegion(center=(0.0, 0.0, 0.7), radius=0.3),
        velocity=(0.0, 0.0, -1.0),
        name="tap",
    )
    scene.add_sink(point=(0.0, 0.0, -0.3), normal=(0.0, 0.0, 1.0), name="drain")
    return scene.build()


def resident():
    """Memory of this process [bytes]."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.slow
def test_a_long_run_is_steady(tmp_path):
    soak(tmp_path, 100_000)


def soak(tmp_path, steps):
    sim = tb.Simulation(pour(), options=tb.StepOptions(dt=2e-3), threads=1)
    memory, path = [], tmp_path / "run.h5"

    def watch(sim):
        if sim.state.step % (steps // 10) == 0:
            memory.append(resident())
        return False

    fields = ("position", "orientation", "velocity", "angular_velocity", "contacts")
    save = tb.Save(path=path, every=EVERY, fields=fields)
    result = sim.run(until=2e-3 * steps, save=save, progress=False, stop=watch)
    tenths = [round(m / 1e6, 1) for m in memory]
    print(f"{1e3 * result.seconds / steps:.2f} ms a step; memory by tenths [MB]: {tenths}; flow {result.flow_totals}")
    assert result.steps == steps
    # From the middle on: until then the heap grows, and buffers with it.
    assert max(memory[5:]) - memory[4] <= 5e6
    with tb.Trajectory(path) as run:
        assert run.frames == steps // EVERY + 1
        contacts = sum(len(run.contacts(i)["gap"]) for i in range(run.frames))
        row = 2 * 4 + 8 + 3 * 24
        wanted = run.frames * sim.model.body_count * (13 * 8 + 1) + contacts * row + steps * 8 * len(result.reports)
        assert path.stat().st_size < 1.1 * wanted + 2e6
    energy = result.reports["kinetic_energy"] + result.reports["potential_energy"]
    flow = np.cumsum(result.reports["energy_flow"])
    rest = slice(steps // 2, None)
    gained = (energy - flow)[rest] - (energy - flow)[rest][0]
    weight = 9.81 * float(sim.model.body_mass.sum())
    assert gained.max() <= weight * 1e-4  # a tenth of a millimetre of the whole heap
    print(f"file {path.stat().st_size / 1e6:.1f} MB of {wanted / 1e6:.1f} MB asked for; gained {gained.max():.2g} J")


def test_steps_leave_nothing_behind(tmp_path):
    """Reports were kept for ever, 2.5 kB a step."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_spheres(0.05, mass=0.1, position=tb.grid_points((2, 2, 1), 0.12, origin=(0, 0, 0.06)))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3), threads=1)
    memory = []

    def watch(sim):
        if sim.state.step % 1000 == 0:
            memory.append(resident())
        return False

    sim.run(until=8.0, save=tb.Save(path=tmp_path / "run.h5", every=50), progress=False, stop=watch)
    assert memory[-1] - memory[1] < 2e6, memory
