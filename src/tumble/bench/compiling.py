"""Compiling: seconds to a first step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from .base import Row, Setting, row

__all__ = ["compiling"]


def compiling(setting: Setting) -> Iterator[Row]:
    """Seconds to the first step of a new process, from an empty kernel cache and from a full one; seconds a kernel."""
    for case, scene in _FIRST_STEPS.items():
        for cache in ("cold", "cold, without helpers"):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                settings = {"TUMBLE_CACHE_DIR": folder, "TUMBLE_COMPILERS": "" if cache == "cold" else "1"}
                yield from _first_step(f"{case}, {cache}", scene, settings, setting.threads)
                if cache == "cold":
                    yield from _first_step(f"{case}, warm", scene, settings, setting.threads)


_FIRST_STEPS = {
    "1000 spheres in a box": "scene.add_spheres(0.05, density=7800.0, position=points)",
    "1000 mixed convex bodies": """
kinds = (tb.Sphere(0.05), tb.Box((0.08, 0.08, 0.08)), tb.Cylinder(0.05, 0.08), tb.Capsule(0.03, 0.05),
         tb.ConvexHull(np.random.default_rng(0).normal(size=(14, 3)) * 0.03))
for k, kind in enumerate(kinds):
    scene.add_copies(kind, density=7800.0, position=points[k::5])
""",
}
_FIRST_STEP = """
import json, sys, time
import numpy as np
import tumble as tb
imported = time.time()
from tumble.kernels.jit import compile_log
scene = tb.SceneBuilder()
scene.add_static(tb.open_box(inner=(1.3, 1.3, 1.3)))
points = tb.grid_points((10, 10, 10), 0.125, origin=(0, 0, 0.07), jitter=0.005)
{scene}
sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3), threads={threads})
sim.step()
begin = float(sys.argv[1])
print(json.dumps([imported - begin, time.time() - begin, compile_log.kernels, compile_log.by_kernel]))
"""


def _first_step(case: str, scene: str, settings: dict[str, str], threads: int | None) -> Iterator[Row]:
    """One process from its start to its first step."""
    script = _FIRST_STEP.format(scene=scene, threads=threads)
    command = [sys.executable, "-c", script, repr(time.time())]
    out = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=True)
    imported, first, kernels, seconds = json.loads(out.stdout)
    yield row("compile", case, "import_s", imported)
    yield row("compile", case, "first_step_s", first)
    yield row("compile", case, "kernels_compiled_here", kernels)
    if settings["TUMBLE_COMPILERS"] == "1":
        for name, spent in sorted(seconds.items(), key=lambda item: -item[1]):
            yield row("compile", case, f"{name}_s", spent)
