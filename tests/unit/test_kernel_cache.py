"""The cache of compiled kernels notices every edit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import tumble

SCRIPT = """
import tumble.kernels.jit as jit
import numpy as np
from tumble.backends.cpu.rows import unscale_impulses
scale, mu = np.ones((2, 1)), np.full(1, 0.5)
x, out = np.array([[1.0], [3.0], [0.0]]), np.zeros((3, 1))
unscale_impulses(1, scale, mu, x, out)
from tumble.kernels.fingerprint import fingerprint
import tumble.backends.cpu.rows, tumble.backends.cpu.broad
print(out[0, 0], jit.compile_log.kernels, fingerprint(tumble.backends.cpu.rows.__file__),
      fingerprint(tumble.backends.cpu.broad.__file__))
"""


def run(package_root, cache):
    env = dict(os.environ, PYTHONPATH=str(package_root), TUMBLE_CACHE_DIR=str(cache))
    out = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    value, compiled, *folders = out.stdout.split()
    return float(value), int(compiled), folders


def test_an_edit_in_another_module_is_noticed(tmp_path):
    shutil.copytree(
        Path(tumble.__file__).parent, tmp_path / "src" / "tumble", ignore=shutil.ignore_patterns("__pycache__")
    )
    cache = tmp_path / "cache"
    value, compiled, folder = run(tmp_path / "src", cache)
    assert value == (1.0 + 0.5 * 3.0) / 1.25 and compiled >= 1
    again, compiled, same = run(tmp_path / "src", cache)
    assert again == value and compiled == 0 and same == folder  # the second run compiles nothing
    source = tmp_path / "src" / "tumble" / "kernels" / "cones.py"
    source.write_text(source.read_text().replace("return pn, s * u, s * w", "return 7.0 * pn, s * u, s * w"))
    edited, compiled, other = run(tmp_path / "src", cache)
    assert edited == 7.0 * value and compiled >= 1 and other[0] != folder[0]
    assert other[1] == folder[1]  # the broad phase knows no cones: its kernels stay


GROUPS = """
import sys
import numpy as np
import tumble.kernels.jit as jit
import groups, passes
a, b = np.zeros(1), np.ones(1)
print(passes.first(groups.Pair(**{"low": a, "high": b})), jit.compile_log.kernels)
"""
PASS = """
from tumble.kernels.jit import loop

@loop
def first(pair):
    return pair.low[0]
"""
GROUP = """
from typing import NamedTuple
import numpy as np

class Pair(NamedTuple):
    low: np.ndarray
    high: np.ndarray
"""


def test_a_group_whose_arrays_change_places_is_compiled_anew(tmp_path):
    """A pass takes a group that its module does not import: the kernel must not outlive an edit of the group."""
    (tmp_path / "passes.py").write_text(PASS)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join((str(tmp_path), *sys.path)), TUMBLE_CACHE_DIR=str(tmp_path / "c"))

    def run(group):
        (tmp_path / "groups.py").write_text(group)
        command = [sys.executable, "-B", "-c", GROUPS]
        out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, cwd=tmp_path)
        assert out.returncode == 0, out.stderr
        value, compiled = out.stdout.split()
        return float(value), int(compiled)

    assert run(GROUP) == (0.0, 1)
    assert run(GROUP) == (0.0, 0)
    swapped = GROUP.replace("low: np", "X: np").replace("high: np", "low: np").replace("X: np", "high: np")
    assert run(swapped) == (0.0, 1)
    # and a class that has moved leaves an index that cannot be read
    env["TUMBLE_CACHE_DIR"] = str(tmp_path / "d")
    (tmp_path / "elsewhere.py").write_text(GROUP)
    assert run("from elsewhere import Pair") == (0.0, 1)
    (tmp_path / "elsewhere.py").unlink()
    assert run(GROUP) == (0.0, 1)
    assert run(GROUP) == (0.0, 0)


def test_overloads_count_although_nobody_imports_them():
    """APGD's loop calls `product`, of which the joints register a form: an edit there must recompile APGD."""
    from tumble.backends import cpu
    from tumble.kernels.fingerprint import _closure

    apgd, joints, operators = (Path(cpu.__file__).parent / f"{name}.py" for name in ("apgd", "joints", "operators"))
    assert joints in _closure(apgd)
    assert apgd not in _closure(operators)


CALLER = """
import sys
import numpy as np
from tumble.kernels.jit import blockwise, compile_log, loop

@blockwise(2, "x.size")
def double(block, x):
    for k in range(2 * block, min(2 * block + 2, x.size)):
        x[k] *= 2.0

@loop
def double_twice(x):
    double(x)
    double(x)

x = np.ones(4)
{"double": double, "double_twice": double_twice}[sys.argv[1]](x)
print(x[0], compile_log.kernels)
"""


def test_a_caller_of_parallel_loops_may_be_the_first_that_is_loaded(tmp_path):
    """The second process compiles the caller with code from the cache, the third loads it before anything else."""
    path = tmp_path / "caller.py"
    path.write_text(CALLER)
    environment = {**os.environ, "TUMBLE_CACHE_DIR": str(tmp_path / "cache")}
    for name, value, compiles in (("double", 2.0, True), ("double_twice", 4.0, True), ("double_twice", 4.0, False)):
        command = [sys.executable, str(path), name]
        out = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert out.returncode == 0, out.stderr
        found, compiled = out.stdout.split()
        assert float(found) == value and (int(compiled) > 0) == compiles


def test_the_users_numba_settings_are_left_alone():
    import numba

    assert "tumble" not in str(numba.config.CACHE_DIR)
