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
print(out[0, 0], jit.compile_log.kernels, jit.cache_folder().name)
"""


def run(package_root, cache):
    env = dict(os.environ, PYTHONPATH=str(package_root), TUMBLE_CACHE_DIR=str(cache))
    out = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    value, compiled, folder = out.stdout.split()
    return float(value), int(compiled), folder


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
    assert edited == 7.0 * value and compiled >= 1 and other != folder


def test_the_users_numba_settings_are_left_alone():
    import numba

    assert "tumble" not in str(numba.config.CACHE_DIR)
