"""A cold start: helpers know what a run needs, kernels are compiled once between all processes, and all end right."""

import json
import os
import subprocess
import sys

import pytest

from tumble.errors import OptionsError
from tumble.sim import ahead

LISTED = """
import os, pickle, subprocess, sys
from tumble.sim import ahead
from tumble import backends
from tumble.backends.base import PASSES
listing = ahead._start("list", sys.argv[1], stdout=subprocess.PIPE)
calls = pickle.loads(listing.communicate()[0])
ahead._step_small_scene(sys.argv[1])
if sys.argv[1] == "apgd":
    ahead._step_small_scene("apgd", precision="single")
kernels = [(ahead._kernel(backends.choose(), module, name), types) for module, name, types in calls]
missing = [str(kernel) for kernel, types in kernels if types not in kernel.overloads]
passes = [name for group in PASSES.values() for name in group]
assert sys.argv[1] != "apgd" or calls[0][1] == "apgd_single_lanes"  # which helpers compile last
kernels_of = {name: getattr(getattr(backends.choose(), name), "__wrapped__", None) for name in passes}
called = {name for name, kernel in kernels_of.items() if getattr(kernel, "signatures", [])}
assert len(called) > 10
print(len(kernels), missing, called - {kernel.__name__ for kernel, _ in kernels})
"""

PROCESS = """
import json, sys
import tumble as tb
from tumble.kernels.jit import compile_log
scene = tb.SceneBuilder()
scene.add_static(tb.HalfSpace())
scene.add_spheres(0.1, density=1000.0, position=[(0, 0, 0.1), (0.05, 0, 0.3)])
sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), threads=1)
for _ in range(5):
    sim.step()
print(json.dumps([sim.state.sha256(), compile_log.by_kernel]))
"""


@pytest.mark.parametrize("solver", ["apgd", "barzilai_borwein"])
def test_a_step_in_plain_python_tells_what_is_compiled(solver):
    """The same kernels, for the same types: none that no step calls, and none is missing."""
    out = subprocess.run([sys.executable, "-c", LISTED, solver], capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    number, rest = out.stdout.split(" ", 1)
    assert int(number) > 15 and rest.strip() == "[] set()"  # stages are one kernel each


def test_processes_that_start_with_an_empty_cache_share_the_work(tmp_path):
    """Four of them, each with helpers, compile every kernel once between them and end in the same state."""
    environment = {**os.environ, "TUMBLE_CACHE_DIR": str(tmp_path), "TUMBLE_COMPILERS": "2"}
    start = [sys.executable, "-c", PROCESS]
    running = [
        subprocess.Popen(start, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = [process.communicate(timeout=600) for process in running]
    assert [process.returncode for process in running] == [0] * 4, [err for _, err in outputs]
    states, kernels = zip(*(json.loads(out) for out, _ in outputs))
    assert len(set(states)) == 1
    compiled = [name for found in kernels for name in found]
    assert len(compiled) == len(set(compiled))  # what helpers compiled is in nobody's list
    again = subprocess.run(start, env=environment, capture_output=True, text=True, timeout=300)
    assert json.loads(again.stdout) == [states[0], {}]


def test_a_run_without_an_interpreter_to_start_compiles_for_itself(tmp_path):
    script = "import sys; sys.executable = None\nfrom tumble.sim.ahead import _start_helpers\n_start_helpers('apgd', 3)"
    environment = {**os.environ, "TUMBLE_CACHE_DIR": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert out.returncode == 0 and not out.stderr and not list(tmp_path.rglob("*.lock"))


def test_helpers_do_not_work_for_a_cache_that_is_not_kept(tmp_path, monkeypatch):
    """Where the folder cannot be used kernels lie in a temporary one, which only this process knows."""
    monkeypatch.setattr(ahead, "_start", lambda *words, **options: pytest.fail("a helper was started"))
    monkeypatch.setattr(ahead, "is_kept", lambda: False)
    ahead._start_helpers("apgd", 3)


@pytest.mark.parametrize("value", ["0", "many", "-1", "1.5"])
def test_a_wrong_number_of_compilers_is_a_named_error(value, monkeypatch):
    monkeypatch.setenv("TUMBLE_COMPILERS", value)
    with pytest.raises(OptionsError, match=r"TUMBLE_COMPILERS: must be a whole number >= 1 \(got .*Leave|leave"):
        ahead._processes()


def test_nothing_in_the_working_folder_is_run_by_a_helper(tmp_path):
    """Neither as a module of the library's own name nor of another's."""
    for name in ("tumble", "numba", "pickle"):
        (tmp_path / f"{name}.py").write_text("open('run', 'w').close()")
    script = "import os, sys; from tumble.sim import ahead; os.chdir(sys.argv[1])\n"
    script += "print(ahead._start('list', 'apgd', stdout=-1).wait())"
    out = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert out.stdout.strip() == "0" and not (tmp_path / "run").exists()
