"""The only place with compiler flags, the kernel cache and the record of what was compiled.

Numba's own cache does not notice an edit in another module, so each module's compiled kernels lie in a folder named
after a hash of all sources that it depends on (`fingerprint`), in one named after Numba, NumPy, Python and the
processor. It lies in the user's cache directory (`cache`), hence also works for a read-only installation.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event

from .cache import cache_root
from .fingerprint import fingerprint

try:
    import fcntl
except ImportError:  # systems without it: there, two processes should not compile at the same time
    fcntl = None

__all__ = [
    "cache_folder",
    "compile_log",
    "formula",
    "loop",
    "most_threads",
    "parallel_loop",
    "prange",
    "set_threads",
]

prange = numba.prange

# No fastmath anywhere. A function that is called out of line is compiled twice, on its own and inside its caller, and
# which copy a process runs depends on what it loaded first. Contraction and reassociation would make the copies differ
# in the last bit; exact arithmetic makes them the same, hence the same bits in every process. (For the same reason no
# kernel calls the library's sine, cosine or power.) Sums keep several accumulators instead, in a fixed order.

# The work-queue layer that Numba takes by default is slower than one thread on small problems.
if "NUMBA_THREADING_LAYER" not in os.environ:
    numba.config.THREADING_LAYER_PRIORITY = ["omp", "tbb", "workqueue"]
# Idle threads of the OpenMP layer spin for a millisecond by default, which is dear on a machine shared with others.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")


def _processor() -> str:
    try:
        from llvmlite import binding

        return binding.get_host_cpu_name() + binding.get_host_cpu_features().flatten()
    except Exception:  # the name only makes the key finer
        return platform.processor()


def cache_folder() -> Path:
    """Folder of the kernels that are compiled for this machine, Numba, NumPy and Python."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version} {_processor()}".encode())
    return cache_root() / digest.hexdigest()[:20]


_FOLDER = cache_folder()


def _cached(decorator: Callable, function: Callable) -> Callable:
    """Apply a Numba decorator with our cache folder, leaving the user's own Numba settings alone."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_FOLDER / fingerprint(function.__code__.co_filename))
    try:
        compiled = decorator(function)
    finally:
        numba.config.CACHE_DIR = before
    if hasattr(compiled, "_cache"):  # not where the compiler is switched off
        compiled._cache.save_overload = _saving_alone(compiled._cache.save_overload)
        compiled._cache.load_overload = _loading_with_threads(compiled._cache.load_overload)
    return compiled


def _loading_with_threads(load: Callable) -> Callable:
    """Load when the threads are there.

    A loop that calls parallel ones has their code in its own file, with a note that the threads must be started before
    it is loaded. But Numba forgets the note where it compiled the caller with parallel loops that came from the cache:
    such a file, loaded before any other, ended the process (LLVM ERROR: Symbol not found).
    """

    def load_with_threads(signature: Any, context: Any) -> Any:
        numba.get_num_threads()  # starts them
        return load(signature, context)

    return load_with_threads


def _saving_alone(save: Callable) -> Callable:
    """Save under a lock that all processes share.

    Numba numbers a function's compiled signatures by looking at those that are there, so two processes could write two
    signatures to one file, and a third would then run the wrong machine code.
    """

    def save_alone(signature: Any, data: Any) -> None:
        if fcntl is None:
            return save(signature, data)
        with suppress(OSError):  # a full disk: this process has its kernel, the next one compiles it again
            _FOLDER.mkdir(parents=True, exist_ok=True)
            with open(_FOLDER / "lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # given back when the file is closed
                save(signature, data)

    return save_alone


def formula(function: Callable) -> Callable:
    """A scalar function that loops call; compiled into each of them."""
    return numba.njit(error_model="numpy", nogil=True)(function)


def merged_formula(function: Callable) -> Callable:
    """A formula that is called so often that passing its arguments would cost more than its work."""
    return numba.njit(error_model="numpy", nogil=True, forceinline=True)(function)


def block_body(function: Callable) -> Callable:
    """The work of one block, merged into the loops that call it (in parallel, or directly for a small problem)."""
    return numba.njit(error_model="numpy", nogil=True, inline="always")(function)


def loop(function: Callable) -> Callable:
    """A sequential loop over flat arrays."""
    return _cached(numba.njit(error_model="numpy", cache=True, nogil=True), function)


def parallel_loop(function: Callable) -> Callable:
    """A loop whose `prange` goes over fixed blocks."""
    return _cached(numba.njit(error_model="numpy", cache=True, nogil=True, parallel=True), function)


BLOCK = 1024
"""Contacts in a block of a loop or a sum. Fixed, so that results do not depend on the number of threads."""

SMALL = 128
"""Up to so many contacts a pass is called directly: entering a parallel loop costs about 2 us, even with one thread."""


@formula
def block_length(block, count):
    """Items in a block."""
    return min(BLOCK, count - block * BLOCK)


@formula
def item_index(block, item):
    """Index of an item of a block. Unsigned: a signed one must be tested for Python's negative indices, which keeps
    the loop from being vectorised (14 against 4 ns a contact)."""
    return np.uint64(block) * np.uint64(BLOCK) + np.uint64(item)


def most_threads() -> int:
    """Threads that loops can use at most."""
    return int(numba.config.NUMBA_NUM_THREADS)


def set_threads(count: int) -> int:
    """Use this many threads for the loops that follow; returns the number before."""
    before = numba.get_num_threads()
    if count != before:
        numba.set_num_threads(count)
    return before


class _CompileLog(event.Listener):
    """Counts compilations (not loads from the cache) and their seconds, and announces the first one."""

    def __init__(self) -> None:
        self.kernels = 0
        self.seconds = 0.0
        self.announce: Callable[[], None] | None = None
        self._depth = 0
        self._start = 0.0

    def on_start(self, item: Any) -> None:
        if self._depth == 0:
            self._start = time.perf_counter()
            if self.announce is not None:
                announce, self.announce = self.announce, None
                announce()
        self._depth += 1

    def on_end(self, item: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.kernels += 1
            self.seconds += time.perf_counter() - self._start


compile_log = _CompileLog()
event.register("numba:compile", compile_log)
