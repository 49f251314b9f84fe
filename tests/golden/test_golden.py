"""Runs can be repeated on another machine bit for bit: the same hashes with other processors' code and another BLAS.

The promise holds for x86-64 and the solvers of a simulation's steps as long as APGD suffices. It ends with other
architectures (their libraries round otherwise) and with the solvers that call LAPACK or Clarabel.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from . import scenes

HASHES = json.loads((Path(__file__).parent / "hashes.json").read_text())
VARIANTS = {
    "one thread": {"NUMBA_NUM_THREADS": "1"},
    "two threads": {"NUMBA_NUM_THREADS": "2"},
    "generic processor": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    "BLAS for Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "BLAS for Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
}
pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="golden hashes are those of x86-64"
)


@pytest.mark.parametrize("name", scenes.SCENES)
def test_the_end_of_a_scene_is_known_bit_for_bit(name):
    assert scenes.golden(name) == HASHES[name]


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_other_code_paths_end_with_the_same_bits(variant):
    """In a process of its own; generic code is compiled from cold."""
    root = Path(__file__).parents[2]
    env = dict(os.environ, **VARIANTS[variant])
    command = [sys.executable, "-m", "tests.golden.scenes"]
    out = subprocess.run(command, env=env, cwd=root, capture_output=True, text=True, timeout=1800)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout) == HASHES
