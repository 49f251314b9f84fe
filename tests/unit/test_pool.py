"""The threads that share the blocks of a pass."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tumble.errors import OptionsError
from tumble.kernels import jit, pool
from tumble.kernels.team import member

pytestmark = pytest.mark.skipif(not pool.AVAILABLE, reason="the pool has code for Linux on x86-64 and ARM only")


@jit.blockwise(1, "turns.size")
def busy_blocks(block, turns, weight, out, who):
    """Each block turns so many times, those of other threads than the caller's `weight` times as many."""
    who[block] = member()
    value = 1.0
    for _ in range(turns[block] * (weight if who[block] > 0 else 1)):
        value = 0.5 * (value + 2.0 / value)
    out[block] = value


@pytest.fixture
def two_threads():
    """Two threads, whatever the tests are given."""
    before = jit.set_threads(2)
    yield
    jit.set_threads(before)


def run(blocks=64, turns=2000, weight=1):
    out, who = np.zeros(blocks), np.full(blocks, -1)
    busy_blocks(np.full(blocks, turns), weight, out, who)
    return out, set(who.tolist())


def calm(passes=2000):
    """Passes until none is left to the caller alone any more."""
    for _ in range(passes):
        if pool.alone_for() == 0.0:
            return
        time.sleep(0.01)
    raise AssertionError("passes are left to the caller for ever")


def test_all_blocks_are_done_by_the_threads_in_use(two_threads):
    calm()
    seen = set()
    for _ in range(200):
        out, who = run()
        assert np.all(out == out[0]) and out[0] == pytest.approx(np.sqrt(2.0))
        seen |= who
    assert 0 in seen and len(seen) > 1
    jit.set_threads(1)
    assert all(run()[1] == {0} for _ in range(50))
    jit.set_threads(2)


def test_more_threads_than_cores_each_with_a_number_of_its_own(two_threads):
    calm()
    jit.set_threads(5)
    seen = set()
    for _ in range(2000):
        seen |= run(blocks=40)[1]
        if len(seen) == 5:
            break
    assert seen == {0, 1, 2, 3, 4}


def test_a_thread_that_sleeps_is_woken(two_threads):
    calm()
    for _ in range(20):
        time.sleep(0.01)  # far longer than threads spin
        who = set()
        for _ in range(50):
            who |= run(turns=20000)[1]
        if len(who) > 1:
            return
    raise AssertionError("the second thread never came back")


def test_a_thread_held_up_within_a_block_leaves_passes_to_the_caller_for_a_while(two_threads):
    calm()
    for _ in range(200):
        run(turns=20000, weight=1000)
        if pool.alone_for() > 0.0:
            break
    else:
        raise AssertionError("nobody noticed")
    while pool.alone_for() > 0.0:
        who = run(turns=10)[1]
        assert who == {0} or pool.alone_for() == 0.0
    calm()
    seen = set()
    for _ in range(200):
        seen |= run()[1]
    assert len(seen) > 1


def test_callers_at_the_same_time_do_not_share_the_threads(two_threads):
    wrong = []

    def call():
        jit.set_threads(2)
        for _ in range(300):
            out, _ = run(turns=500)
            if not np.all(out == out[0]):
                wrong.append(out)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_starts_threads_of_its_own(two_threads):
    run()
    child = os.fork()
    if child == 0:
        jit.set_threads(2)
        seen = set()
        for _ in range(300):
            seen |= run()[1]
        os._exit(0 if len(seen) > 1 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_program_ends_while_threads_spin():
    program = """
import numpy as np
from tumble.kernels import jit
from tests.unit.test_pool import run
jit.set_threads(3)
for _ in range(100):
    run(turns=10)
"""
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


def test_each_caller_has_a_number_of_threads_of_its_own(two_threads):
    calm()
    seen, go = set(), threading.Event()

    def alone():
        jit.set_threads(1)
        while not go.is_set():
            seen.update(run(blocks=8)[1])

    other = threading.Thread(target=alone)
    other.start()
    mine = set()
    for _ in range(300):
        mine |= run()[1]
    go.set()
    other.join()
    assert seen == {0} and jit.threads() == 2 and len(mine) > 1


def test_no_two_threads_have_one_number():
    def most():
        jit.set_threads(12)

    callers = [threading.Thread(target=most) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    serving = [thread for thread in threading.enumerate() if thread.name == "tumble pool"]
    assert len(serving) == pool._pool.serving == 11


def test_the_number_of_a_pass_starts_again_from_zero(two_threads):
    calm()
    for _ in range(5):
        pool._pool.place("gate", ctypes.c_uint64).value = (2**32 - 3) << 32
        seen = set()
        for _ in range(100):
            out, who = run()
            assert np.all(out == out[0])
            seen |= who
    assert seen == {0, 1}
    assert pool._pool.place("gate", ctypes.c_uint64).value >> 32 < 100


def test_a_program_ends_while_another_thread_is_in_the_middle_of_a_pass():
    program = """
import threading, time
from tumble.kernels import jit
from tests.unit.test_pool import run
jit.set_threads(3)
run()
def work():
    jit.set_threads(3)
    while True:
        run(turns=2000)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (done.returncode, done.stderr)


PROGRAM = """
import multiprocessing, os, signal, sys, threading, time
import numpy as np
import tumble as tb
from tumble.kernels import jit, pool

OPTIONS, SOLVER = tb.StepOptions(dt=2e-3), tb.SolverAPGD(max_iterations=150)

def simulation(threads=2):
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(1.2, 1.2, 2.0)))
    points = tb.grid_points((11, 11, 10), 0.1001, origin=(-0.53, -0.53, 0.05))
    scene.add_copies(tb.Sphere(0.05), position=points, mass=0.1)
    return tb.Simulation(scene.build(), options=OPTIONS, solver=SOLVER, threads=threads)

def run(steps=6, threads=2):
    sim = simulation(threads)
    for _ in range(steps):
        sim.step()
    return bits(sim)

def bits(sim):
    return sim.state.position.tobytes() + sim.state.velocity.tobytes() + sim.state.spin.tobytes()

def child(queue):
    queue.put(run())
"""

ATTACKS = {
    "two simulations at once": """
found = []
both = [threading.Thread(target=lambda: found.append(run(threads=k))) for k in (2, 3, 1)]
for one in both:
    one.start()
for one in both:
    one.join()
assert found == [alone] * 3
""",
    "more threads than cores, and another number each step": """
sim = simulation()
for k in range(6):
    sim.threads = (16, 1, 5, 2)[k % 4]
    sim.step()
assert bits(sim) == alone
""",
    "a fork while another thread steps": """
others = threading.Thread(target=lambda: found.append([run() for _ in range(3)]))
found = []
others.start()
for _ in range(4):
    time.sleep(0.05)
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        os._exit(0 if run() == alone else 1)
    assert os.waitpid(pid, 0)[1] == 0
others.join()
assert found == [[alone] * 3]
""",
    "children of multiprocessing": """
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        assert queue.get(timeout=100) == alone
        process.join()
        assert process.exitcode == 0
    assert run() == alone
""",
    "interrupts in the middle of steps": """
sim, done, interrupts, ended = simulation(), 0, 0, False
def disturb():
    while not ended:
        time.sleep(0.007)
        os.kill(os.getpid(), signal.SIGINT)
disturber = threading.Thread(target=disturb)
armed = False
def interrupt(*_):
    if armed:
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, interrupt)
disturber.start()
while interrupts == 0 or sim.state.step < 6:
    if sim.state.step == 6:
        sim = simulation()
    try:
        armed = True
        sim.step()
        armed = False
    except KeyboardInterrupt:
        armed = False
        interrupts += 1
        if interrupts == 20:
            ended = True
            disturber.join()
ended = True
disturber.join()
assert interrupts > 0 and bits(sim) == alone, interrupts
""",
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_same_bits_whatever_callers_do(attack, tmp_path):
    file = tmp_path / "attack.py"
    file.write_text(PROGRAM + "alone = run(threads=1)\n" + ATTACKS[attack])
    environment = os.environ | {"TUMBLE_THREADS": "16"}
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]


def test_threads_of_the_environment(monkeypatch):
    monkeypatch.setenv("TUMBLE_THREADS", "3")
    assert jit.most_threads() == 3
    for wrong in ("0", "two", "-1", "1.5", "99999", ""):
        monkeypatch.setenv("TUMBLE_THREADS", wrong)
        with pytest.raises(OptionsError, match=r"TUMBLE_THREADS.* must be a whole number from 1 to 4096"):
            jit.most_threads()
