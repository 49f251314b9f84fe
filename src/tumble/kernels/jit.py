"""The only place with compiler flags, the kernel cache and the record of what was compiled.

Numba's own cache does not notice an edit in another module, so each module's compiled kernels lie in a folder named
after a hash of all sources that it depends on (`fingerprint`), in one named after Numba, NumPy, Python and the
processor. It lies in the user's cache directory (`cache`), hence also works for a read-only installation.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import pickle
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event

from . import pool
from .cache import cache_root
from .fingerprint import fingerprint
from .inner import InnerCompiler, with_quick_flags
from .team import run_team

try:
    import fcntl
except ImportError:  # systems without it: there, two processes should not compile at the same time
    fcntl = None

__all__ = [
    "blockwise",
    "cache_folder",
    "compile_log",
    "formula",
    "interpreted",
    "interpreted_calls",
    "loop",
    "merged_formula",
    "most_threads",
    "set_threads",
    "threads",
]

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


_PLAIN = {"error_model": "numpy", "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
_INNER = {**_PLAIN, "pipeline_class": InnerCompiler, "no_cpython_wrapper": True}


def _compiled(function: Callable, *, cached: bool, merged: bool = False) -> Callable:
    """A function for Python to call, which compiled callers know in the form that `inner` describes."""
    if cached:
        outer = _cached(numba.njit(cache=True, **_PLAIN), function)
    else:
        outer = numba.njit(**_PLAIN)(function)
    if hasattr(outer, "typingctx"):  # not where the compiler is switched off
        inner = with_quick_flags(numba.njit(forceinline=merged, **_INNER)(function))
        with_quick_flags(outer)
        outer.get_call_template, outer.get_overload = inner.get_call_template, inner.get_overload
    return outer


def _cached(decorator: Callable, function: Callable) -> Callable:
    """Apply a Numba decorator with our cache folder, leaving the user's own Numba settings alone."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_FOLDER / fingerprint(function.__code__.co_filename))
    try:
        compiled = decorator(function)
    finally:
        numba.config.CACHE_DIR = before
    if hasattr(compiled, "_cache"):  # not where the compiler is switched off
        compiled.compile = _compiling_once(compiled)
        compiled.compile_if_free = functools.partial(compiled.compile, wait=False)
        cache = compiled._cache
        cache.save_overload = _saving_if_possible(cache.save_overload)
        cache._index_key = _knowing_groups(cache._index_key)
        cache._cache_file._load_index = _reading_if_possible(cache._cache_file._load_index)
    return compiled


def _compiling_once(kernel: Any) -> Callable:
    """Load or compile a kernel under a lock that all processes share.

    Processes that start together compile each kernel once between them: who comes second waits and loads. And Numba
    numbers a function's compiled signatures by looking at those that are there, so two processes at once could write
    two signatures to one file, and a third would then run the wrong machine code.
    """
    compile_kernel = kernel.compile

    def compile_once(signature: Any, wait: bool = True) -> Any:
        pool.start()
        with ExitStack() as held:
            if fcntl is not None:
                with suppress(OSError):  # a full disk or a folder gone: this process compiles for itself
                    name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}.lock"
                    Path(kernel._cache.cache_path).mkdir(parents=True, exist_ok=True)
                    lock = held.enter_context(open(Path(kernel._cache.cache_path) / name, "w"))
                    try:  # the lock is given back when the file is closed
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        if not wait:
                            return None
                        with compile_log.waiting():
                            fcntl.flock(lock, fcntl.LOCK_EX)
            return compile_kernel(signature)

    return compile_once


def _saving_if_possible(save: Callable) -> Callable:
    def save_if_possible(signature: Any, data: Any) -> None:
        with suppress(OSError):  # a full disk: this process has its kernel, the next one compiles it again
            save(signature, data)

    return save_if_possible


def _knowing_groups(key: Callable) -> Callable:
    """The key of a compiled signature, with the names of the arrays in its groups: machine code knows them by their
    places, and a module that takes a group as an argument need not import the one that defines it."""

    def knowing(signature: Any, codegen: Any) -> tuple:
        return (*key(signature, codegen), _groups(signature))

    return knowing


def _groups(types: Any) -> tuple:
    """The fields of all groups among types, in depth."""
    found: list[Any] = []
    for kind in types:
        if isinstance(kind, numba.types.BaseNamedTuple):
            found.append((kind.instance_class.__qualname__, kind.fields))
        if isinstance(kind, numba.types.BaseTuple):
            found.extend(_groups(kind.types if hasattr(kind, "types") else (kind.dtype,)))
    return tuple(found)


def _reading_if_possible(read: Callable) -> Callable:
    """The index of a kernel's signatures; empty where a class among them is no longer where it was."""

    def read_if_possible() -> dict:
        try:
            return read()
        except (AttributeError, ImportError, pickle.PickleError, EOFError):
            return {}

    return read_if_possible


def formula(function: Callable) -> Callable:
    """A scalar function that loops call; compiled into each of them."""
    return _compiled(function, cached=False)


def interpreted(function: Callable) -> Callable:
    """A formula without compiling it, for the few calls that set something up."""
    return getattr(function, "py_func", function)


def merged_formula(function: Callable) -> Callable:
    """A formula that is called so often that passing its arguments would cost more than its work."""
    return _compiled(function, cached=False, merged=True)


class _InterpretedCalls:
    """Which kernels were called from Python, and with what types, where the compiler is switched off
    (NUMBA_DISABLE_JIT=1): a step of a small scene in plain Python tells what a run has to compile."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str, tuple], None] = {}
        self._depth = 0

    def noting(self, function: Callable) -> Callable:
        """The function; it notes its calls."""

        @functools.wraps(function)
        def noted(*arguments: Any) -> Any:
            if self._depth == 0:
                self.seen[function.__module__, function.__name__, tuple(map(numba.typeof, arguments))] = None
            self._depth += 1
            try:
                return function(*arguments)
            finally:
                self._depth -= 1

        return noted


interpreted_calls = _InterpretedCalls()


def _one_by_one(function: Callable, size: int, items: str) -> Callable:
    """The blocks of a pass where the compiler is switched off."""
    parameters = inspect.signature(function).parameters

    def run(*arguments: Any) -> None:
        count = eval(items, {}, dict(zip(list(parameters)[1:], arguments)))
        for block in range((count + size - 1) // size):
            function(block, *arguments)

    return interpreted_calls.noting(functools.wraps(function)(run))


def loop(function: Callable) -> Callable:
    """A sequential loop over flat arrays."""
    return interpreted_calls.noting(function) if numba.config.DISABLE_JIT else _compiled(function, cached=True)


def blockwise(size: int, items: str = "count") -> Callable[[Callable], Callable]:
    """A pass over so many items in blocks of a fixed size, which the threads share.

    The function does the work of one block: its first argument is the number of the block, which callers leave out.
    items: how many there are, an expression of the other arguments.
    """

    def decorate(function: Callable) -> Callable:
        if numba.config.DISABLE_JIT:
            return _with_body(_one_by_one(function, size, items), function, items)
        name, file = function.__name__, function.__code__.co_filename
        arguments = ", ".join(list(inspect.signature(function).parameters)[1:])
        source = f"""
def {name}({arguments}):
    run_team(work_of_block, (({items}) + {size - 1}) // {size}, ({arguments},))
"""
        names = {
            "work_of_block": with_quick_flags(numba.njit(**_INNER)(function)),
            "run_team": run_team,
            "__name__": function.__module__,
        }
        exec(compile(source, file, "exec"), names)
        names[name].__doc__ = function.__doc__
        return _with_body(loop(names[name]), function, items)

    return decorate


def _with_body(compiled: Callable, function: Callable, items: str) -> Callable:
    """The pass, which other devices can ask for the work of one block and the number of its items."""
    compiled.body, compiled.items = function, items
    return compiled


BLOCK = 1024
"""Contacts in a block of a loop or a sum. Fixed, so that results do not depend on the number of threads."""


@formula
def block_length(block, count):
    """Items in a block."""
    return min(BLOCK, count - block * BLOCK)


@formula
def item_index(block, item):
    """Index of an item of a block. Unsigned: a signed one must be tested for Python's negative indices, which keeps
    the loop from being vectorised (14 against 4 ns a contact)."""
    return np.uint64(block) * np.uint64(BLOCK) + np.uint64(item)


def over_items(item: Callable, size: int, items: str) -> Callable:
    """The pass that runs the formula item(c, ...) on `count` contacts or bodies c, in blocks of a fixed size; it is
    called with the count and the other arguments. items: what they are; its name is that of the formula and "_over_"
    items, by which `sim.ahead` finds it."""
    function = interpreted(item)
    name, arguments = f"{function.__name__}_over_{items}", ", ".join(list(inspect.signature(function).parameters)[1:])
    source = f"""
def {name}(block, count, {arguments}):
    for i in range(min({size}, count - block * {size})):
        item(unsigned(block) * unsigned({size}) + unsigned(i), {arguments})
"""
    names = {"item": merged_formula(function), "unsigned": np.uint64, "__name__": function.__module__}
    exec(compile(source, function.__code__.co_filename, "exec"), names)
    names[name].__doc__ = function.__doc__
    made = blockwise(size)(names[name])
    made.formula, made.over = item, f"over_{items}"
    return made


most_threads, threads, set_threads = pool.most_threads, pool.threads, pool.set_threads


class _CompileLog(event.Listener):
    """Counts compilations (not loads from the cache) and their seconds, and announces the first one.

    Waiting for another process that compiles the same counts as compiling."""

    def __init__(self) -> None:
        self.kernels = 0
        self.seconds = 0.0
        self.by_kernel: dict[str, float] = {}
        """Seconds of each, with what it calls"""
        self.announce: Callable[[], None] | None = None
        self._depth = 0
        self._start = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The time of the block counts as compiling."""
        start = time.perf_counter()
        try:
            yield
        finally:
            if self._depth == 0:
                self.seconds += time.perf_counter() - start

    def tell(self) -> None:
        """Something is going to be compiled."""
        if self.announce is not None:
            announce, self.announce = self.announce, None
            announce()

    def note(self, name: str, spent: float) -> None:
        """A kernel was compiled in so many seconds."""
        self.by_kernel[name] = self.by_kernel.get(name, 0.0) + spent
        self.kernels += 1
        self.seconds += spent

    def on_start(self, item: Any) -> None:
        if self._depth == 0:
            self._start = time.perf_counter()
            self.tell()
        self._depth += 1

    def on_end(self, item: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            kernel = item.data["dispatcher"].py_func
            name = f"{kernel.__module__.rpartition('.')[2]}.{kernel.__name__}"
            self.note(name, time.perf_counter() - self._start)


compile_log = _CompileLog()
event.register("numba:compile", compile_log)
