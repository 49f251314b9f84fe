"""The threads that share the blocks of a pass."""

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


def test_threads_of_the_environment(monkeypatch):
    monkeypatch.setenv("TUMBLE_THREADS", "3")
    assert jit.most_threads() == 3
    for wrong in ("0", "two", "-1", "1.5", "99999", ""):
        monkeypatch.setenv("TUMBLE_THREADS", wrong)
        with pytest.raises(OptionsError, match=r"TUMBLE_THREADS.* must be a whole number from 1 to 4096"):
            jit.most_threads()
