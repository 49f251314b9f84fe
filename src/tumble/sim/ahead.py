"""Kernels that every scene needs, before the first step.

A step of a small scene compiles them or loads them from the cache. In a cold start other processes help: the run
compiles what it comes to, in the order of a step, and helpers begin at the end of the step. Which kernels these are,
and for what types, says a step of the same scene in plain Python (NUMBA_DISABLE_JIT=1). Nothing depends on a helper:
what it does not do, the run does itself.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import backends
from ..enums import Precision
from ..errors import OptionsError, message
from ..kernels import jit
from ..kernels.cache import is_kept
from ..options import StepOptions
from ..scene.builder import SceneBuilder
from ..scene.shapes import HalfSpace, Sphere
from ..solve.apgd import SolverAPGD
from ..solve.base import IterativeSolver, Solver
from ..solve.registry import SOLVERS, make_solver
from .compiling import announced, tell

try:
    import fcntl
except ImportError:  # without locks between processes there is no sharing of work
    fcntl = None

__all__ = ["prepare"]

_PREPARED: set[tuple[str, str]] = set()

MOST = 4
"""Processes that compile at the same time, the run itself among them."""


def prepare(solver: Solver, backend: ModuleType) -> None:
    """Compile (or load) the kernels, once a process, and say so when it takes time."""
    name = solver.name if isinstance(solver, IterativeSolver) and solver.name in SOLVERS else SolverAPGD.name
    if (name, backend.name) in _PREPARED:
        return
    _PREPARED.add((name, backend.name))
    log, helpers = jit.compile_log, _processes() - 1
    compiled, seconds = log.kernels, log.seconds
    words = "kernels for this machine; this happens once and takes about half a minute"
    with announced(words, partial(_start_helpers, name, helpers)):
        _step_small_scene(name, backend)
    if log.kernels > compiled:
        spent = log.seconds - seconds
        tell(f"compiled {log.kernels - compiled} kernels in {spent:.1f} s; kept in {jit.cache_folder()}")


def _step_small_scene(solver: str, backend: str | ModuleType = "cpu", **given: Any) -> None:
    """A step of a ball on a floor, which calls all of these kernels."""
    from .simulation import Simulation  # which calls `prepare`

    scene = SceneBuilder()
    scene.add_static(HalfSpace())
    scene.add_kinematic(Sphere(1.0), position=(0.0, 0.0, 3.0))
    for k in range(8):  # with so many shapes pairs are found by the grid
        scene.add_static(Sphere(1.0), position=(4.0 + 3.0 * k, 0.0, 3.0))
    scene.add_body(Sphere(1.0), mass=1.0, position=(0.0, 0.0, 1.0), locked=("y",))
    options = StepOptions(dt=1e-3)
    Simulation(scene.build(), options=options, solver=make_solver(solver, **given), threads=1, backend=backend).step()


def _processes() -> int:
    """How many compile, this one among them: as many as there are cores for, `TUMBLE_COMPILERS` at most."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("TUMBLE_COMPILERS", "") or str(MOST)
    if not wanted.isdecimal() or int(wanted) < 1:
        remedy = "1 compiles in this process alone; leave it out for up to four."
        raise OptionsError(message("TUMBLE_COMPILERS", "must be a whole number >= 1", wanted, remedy))
    return min(cores, int(wanted))


def _start_helpers(solver: str, helpers: int) -> None:
    """Let other processes compile the kernels that every scene with this solver needs; returns at once."""
    able = fcntl is not None and sys.executable and not getattr(sys, "frozen", False)
    if helpers > 0 and able and is_kept():
        with suppress(OSError):  # no memory, no processes left: then without help
            _start("help", solver, os.getpid(), helpers, stdout=subprocess.DEVNULL)


def _start(*words: str | int, **options: Any) -> subprocess.Popen:
    """This module in a process of its own, with the same library."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    if words[0] == "list":
        environment["NUMBA_DISABLE_JIT"] = "1"
    return subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {__name__} import _{words[0]}; _{words[0]}(*{words[1:]!r})"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is the run's; without it the helper ends by itself
        **options,
    )


def _help(solver: str, parent: int, helpers: int) -> None:
    """Compile what nobody compiles, from the end of the step on, in so many processes."""
    assert fcntl is not None
    folder = jit.cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "helpers.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another run's helpers are at it
            return
        listing = _start("list", solver, stdout=subprocess.PIPE)
        backend = backends.choose()
        calls = pickle.loads(listing.communicate()[0])  # of our own process
        for _ in range(helpers - 1):
            if os.fork() == 0:
                break
        for module, name, types in reversed(calls):
            if not _alive(parent):
                return
            _kernel(backend, module, name).compile_if_free(types)


def _kernel(backend: ModuleType, module: str, name: str) -> Any:
    """A pass by its name, or one that the backend makes of a formula (`jit.over_items`)."""
    folder = importlib.import_module(module)
    formula, made, items = name.rpartition("_over_")
    return getattr(backend, f"over_{items}")(getattr(folder, formula)) if made else getattr(folder, name)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _list(solver: str) -> None:
    """Write which kernels the small scene calls; first, as helpers begin at the end, that of a thousand contacts."""
    seen = jit.interpreted_calls.seen
    _step_small_scene(solver)
    count = len(seen)
    if solver == SolverAPGD.name:
        _step_small_scene(solver, precision=Precision.SINGLE)
    calls = list(seen)
    sys.stdout.buffer.write(pickle.dumps(calls[count:] + calls[:count]))
