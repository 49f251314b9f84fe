"""Same bits for any number of threads, twice, from a checkpoint and from a copy."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tumble as tb

PILE = """
import sys
import numba
import numpy as np
import tumble as tb

def pile():
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(1.0, 1.0, 4.0)))
    scene.add_spheres(0.05, density=1000.0, position=tb.grid_points((8, 8, 6), 0.12, origin=(0, 0, 0.06), jitter=0.004))
    scene.add_boxes((0.08, 0.08, 0.08), density=1000.0,
                    position=tb.grid_points((8, 8, 2), 0.12, origin=(0, 0, 0.8), jitter=0.004)[:116])
    rng = np.random.default_rng(0)
    scene.add_static(tb.HeightField(rng.uniform(-0.02, 0.0, (12, 12)), (1.0, 1.0)))
    above = tb.grid_points((6, 6, 4), 0.15, origin=(0, 0, 1.1), jitter=0.004)
    kinds = (tb.Cylinder(0.05, 0.08), tb.ConvexHull(rng.normal(size=(14, 3)) * 0.03), tb.Ellipsoid((0.06, 0.05, 0.04)),
             tb.Cone(0.05, 0.1))
    for k, kind in enumerate(kinds):
        scene.add_copies(kind, density=1000.0, position=above[k::4], velocity=(0, 0, -5.0))
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=4e-3), solver=tb.SolverAPGD(max_iterations=60))

@numba.njit(parallel=True)
def threads_at_work(n):
    ids = np.zeros(n, np.int64)
    for i in numba.prange(n):
        s = 0.0
        for k in range(20000):
            s += np.sqrt(i + k)
        ids[i] = numba.get_thread_id() + 0 * int(s)
    return ids
"""


def run_with(threads, steps, tmp_path):
    """State hash, contacts, threads used and the hash of memory after some steps of a 500-body pile."""
    script = (
        PILE
        + f"""
sim = pile()
import tumble.kernels.jit as jit
inside = []
product = type(sim.solver).solve
def spy(self, *args, **kwargs):
    inside.append(jit.threads())
    return product(self, *args, **kwargs)
type(sim.solver).solve = spy
reports = [sim.step() for _ in range({steps})]
import hashlib
memory = hashlib.sha256(sim.state.memory.impulse.tobytes()).hexdigest()
print(sim.state.sha256(), memory, max(r.contacts for r in reports), inside[-1], len(set(threads_at_work(64).tolist())))
"""
    )
    env = dict(os.environ, NUMBA_NUM_THREADS=str(threads))
    out = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=600)
    assert out.returncode == 0, out.stderr
    return out.stdout.split()


def test_same_bits_for_one_two_and_four_threads(tmp_path):
    results = {}
    for threads in (1, 2, 4):
        *hashes, contacts, used, at_work = run_with(threads, 200, tmp_path)
        assert int(used) == threads and int(at_work) == threads  # they were really at work
        assert int(contacts) > 1024  # more than one block, beyond the size where threads set in
        results[threads] = hashes
    assert results[1] == results[2] == results[4]
    assert run_with(2, 200, tmp_path)[:2] == results[2]  # and again


def make_pile():
    names = {}
    exec(PILE, names)
    return names["pile"]()


def test_restart_continues_bit_for_bit(tmp_path):
    whole = make_pile()
    for _ in range(60):
        whole.step()
    half = make_pile()
    for _ in range(30):
        half.step()
    half.save_checkpoint(tmp_path / "half.h5")
    other = make_pile()
    other.load_checkpoint(tmp_path / "half.h5")
    twin = half.copy()
    kept = half.get_state()
    for _ in range(30):
        other.step()
        twin.step()
        half.step()
    assert other.state.sha256() == twin.state.sha256() == half.state.sha256() == whole.state.sha256()
    half.set_state(kept)
    for _ in range(30):
        half.step()
    assert half.state.sha256() == whole.state.sha256()


def test_a_killed_run_resumes_to_the_same_bits(tmp_path):
    """run() with frames and checkpoints, cut in the middle, resumed to the end."""
    whole = make_pile()
    whole.run(until=0.2, save=tb.Save(path=tmp_path / "whole.h5", every=5, frames_per_checkpoint=2))
    cut = make_pile()
    cut.run(until=0.11, save=tb.Save(path=tmp_path / "cut.h5", every=5, frames_per_checkpoint=2))
    resumed = make_pile()
    resumed.run(until=0.2, save=tb.Save(path=tmp_path / "cut.h5", every=5, frames_per_checkpoint=2), resume=True)
    assert resumed.state.sha256() == whole.state.sha256()
    with tb.Trajectory(tmp_path / "whole.h5") as a, tb.Trajectory(tmp_path / "cut.h5") as b:
        assert a.final_state_sha256 == b.final_state_sha256 == whole.state.sha256()
        common = np.isin(b.steps, a.steps)
        assert common.sum() >= len(a.steps) - 1
        assert np.array_equal(a.reports["time"], b.reports["time"])


@pytest.mark.parametrize("order", [1, 2])
def test_renumbering_changes_rounding_only(order):
    """The same pile with bodies in another order moves the same, up to what rounding becomes in a short time."""
    points = tb.grid_points((3, 3, 2), 0.22, origin=(0, 0, 0.11), jitter=0.005)
    shuffle = np.random.default_rng(order).permutation(len(points))

    def run(p):
        scene = tb.SceneBuilder()
        scene.add_static(tb.HalfSpace())
        scene.add_spheres(0.1, density=1000.0, position=p)
        sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3), solver=tb.SolverAPGD(tolerance=1e-11))
        sim.run(until=0.2)
        return sim.positions()[1:]

    np.testing.assert_allclose(run(points)[shuffle], run(points[shuffle]), atol=1e-7)


@pytest.mark.slow
def test_freshly_compiled_and_cached_kernels_give_the_same_bits(tmp_path):
    """The first process compiles everything, the second loads it: boxes and spheres must move alike to the last bit."""
    script = PILE + "sim = pile()\nfor _ in range(80): sim.step()\nprint(sim.state.sha256())"
    env = dict(os.environ, TUMBLE_CACHE_DIR=str(tmp_path), NUMBA_NUM_THREADS="1")
    runs = [
        subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=900)
        for _ in range(2)
    ]
    assert "compiled" in runs[0].stderr and "compil" not in runs[1].stderr
    assert runs[0].stdout == runs[1].stdout
