"""Kernels from plain functions: compiled by Numba, launched by CuPy.

A kernel does the work of one item: `function(i, *arguments)` for i < count. Its arguments are arrays, numbers and
groups of them (named tuples) in any depth, as the passes of all devices take them. Numba's own launch takes some 95 us
for ten arrays, most of it in asking what they are; here the values are put into one buffer of eight bytes each and
handed to the driver.

Multiplications and additions are not contracted, so that a formula gives the bits that it gives on a processor.
"""

from __future__ import annotations

import ctypes
import inspect
import struct
from collections.abc import Callable
from types import FunctionType
from typing import Any
from weakref import ref

import numba.cuda as cuda
import numpy as np

from ...kernels.jit import interpreted
from . import provider
from .provider import SIMULATED

__all__ = ["LONG", "THREADS", "Kernel", "block_of", "device_function", "item_pass", "named", "pass_over"]

THREADS = 4 if SIMULATED else 128
"""Threads of a block."""
LONG = 4 if SIMULATED else 32
"""Of a pass whose items are few and take long: on more multiprocessors at once."""


class Kernel:
    """A function of the device, made for the types that it is called with."""

    def __init__(self, function: Callable, threads: int = THREADS, resident: int = 0, *, calls: bool = False) -> None:
        """resident: blocks that are to fit on a multiprocessor together, by which registers are shared out; 0: any.
        calls: long functions are called, see `compiler.compile_ptx`."""
        self.function, self.threads, self.resident, self.calls = function, threads, resident, calls
        self._made: dict[tuple, _Compiled] = {}
        self._current: _Compiled | None = None
        if SIMULATED:
            self._simulated = _simulated(function)

    def launch(self, blocks: int, *arguments: Any) -> None:
        """Run so many blocks of threads."""
        if SIMULATED:
            self._simulated[blocks, self.threads](arguments)
        else:
            self._find(arguments).launch(blocks, self.threads)

    def prepare(self, *arguments: Any) -> None:
        """Compile or load what these arguments need."""
        if not SIMULATED:
            self._find(arguments)

    def _find(self, arguments: tuple) -> _Compiled:
        """The kernel for the types of these arguments, with their numbers in its buffer."""
        leaves: list[Any] = []
        _leaves(arguments, leaves)
        made = self._current
        if made is None or not made.take(leaves):
            what = tuple(map(_kind, leaves))
            made = self._made.get(what)
            if made is None:
                made = self._made[what] = _Compiled(self, arguments, leaves)
            made.take(leaves)
            self._current = made
        return made


def _simulated(function: Callable) -> Any:
    """The kernel in Numba's simulator; its arguments are one tuple, which the simulator leaves as it is.

    While a kernel runs, the simulator puts its own module in the place of `cuda` among the names that it sees."""

    def run(arguments: tuple) -> None:
        function(*arguments)

    seen = FunctionType(run.__code__, function.__globals__, function.__name__, None, run.__closure__)
    return cuda.jit(seen)


class _END:
    """The end of a group."""


def _leaves(group: tuple, out: list[Any]) -> None:
    """Arrays and numbers of a group, in order; those of an inner one between its type and an end."""
    for part in group:
        if isinstance(part, tuple):
            out.append(type(part))
            _leaves(part, out)
            out.append(_END)
        else:
            out.append(part)


def _kind(leaf: Any) -> Any:
    """What the type of a kernel depends on."""
    if isinstance(leaf, type):
        return leaf
    if isinstance(leaf, NUMBERS):
        return "f" if isinstance(leaf, (float, np.floating)) else "i"
    return leaf.dtype.char, leaf.ndim, leaf.flags.c_contiguous


NUMBERS = (bool, int, float, np.integer, np.floating, np.bool_)


class _Compiled:
    """A kernel for given types, and the buffer that its arguments are put into.

    An array that was an argument of the last launch, too, is not looked at again: it keeps its place for as long as it
    lives."""

    def __init__(self, kernel: Kernel, arguments: tuple, leaves: list[Any]) -> None:
        from .compiler import load  # Numba's CUDA target, which is not wanted in the simulator

        bounds = (kernel.threads, kernel.resident) if kernel.resident else kernel.threads
        self._function = load(kernel.function, arguments, bounds, kernel.calls)
        self._kinds = [_kind(leaf) for leaf in leaves]
        self._last: list[Any] = [_NOTHING] * len(leaves)
        self._packs = [_pack_of(kind) for kind in self._kinds]
        starts = np.cumsum([0, *(pack.size for pack in self._packs)]).tolist()
        self._places, size = starts[:-1], starts[-1]
        self._buffer = ctypes.create_string_buffer(max(8, size))
        first = ctypes.addressof(self._buffer)
        self._addresses = (ctypes.c_void_p * max(1, size // 8))(*range(first, first + size, 8))
        self._where = ctypes.addressof(self._addresses)

    def take(self, leaves: list[Any]) -> bool:
        """Put the numbers of the arguments into the buffer; False where one is of another type."""
        last = self._last
        if len(leaves) != len(last):
            return False
        for k, leaf in enumerate(leaves):
            held = last[k]
            if held is leaf or (type(held) is ref and held() is leaf):
                continue
            kind = _kind(leaf)
            if kind != self._kinds[k]:
                return False
            if kind == "i":
                self._packs[k].pack_into(self._buffer, self._places[k], int(leaf))
            elif kind == "f":
                self._packs[k].pack_into(self._buffer, self._places[k], float(leaf))
            elif not isinstance(kind, type):
                numbers = 0, 0, leaf.size, leaf.itemsize, leaf.data.ptr, *leaf.shape, *leaf.strides
                self._packs[k].pack_into(self._buffer, self._places[k], *numbers)
                leaf = ref(leaf)
            last[k] = leaf
        return True

    def launch(self, blocks: int, threads: int) -> None:
        """Launch it with what was taken."""
        provider.launch(self._function, blocks, threads, self._where)


_NOTHING = object()


def _pack_of(kind: Any) -> struct.Struct:
    """How numbers of eight bytes lie in the buffer: of an array two that Numba's own allocations have, its size, the
    size of an item, its place, shape and strides."""
    if isinstance(kind, type):
        return struct.Struct("")
    return struct.Struct({"i": "q", "f": "d"}[kind] if isinstance(kind, str) else f"{5 + 2 * kind[1]}q")


def item_kernel(source: Callable, parameters: list[str], item: Callable, threads: int = THREADS) -> Kernel:
    """The kernel that runs item(i, *parameters) for i < count; source: the plain function that it comes from."""
    arguments = ", ".join(parameters)
    text = f"""
def {source.__name__}(items_, {arguments}):
    i_ = cuda_.grid(1)
    if i_ < items_:
        item_(i_, {arguments})
"""
    names = {"cuda_": cuda, "item_": item, "__name__": source.__module__}
    exec(compile(text, source.__code__.co_filename, "exec"), names)
    return Kernel(names[source.__name__], threads)


def device_function(function: Callable) -> Callable:
    """A function that kernels call, and that names nothing of `cuda` (see `_simulated`)."""
    return function if SIMULATED else cuda.jit(device=True)(function)


def _nobody() -> int:
    return 0


def block_of(function: Callable, size: int, **constants: int) -> Callable:
    """The body of a pass over blocks (`kernels.jit.blockwise`) for blocks of so many items: the one that processors
    run, the same code object with another size of its blocks, and other values of some constants."""

    def block_length(block: Any, count: Any) -> Any:
        return min(size, count - block * size)

    def item_index(block: Any, item: Any) -> Any:
        return np.uint64(block * size + item)

    names = dict(function.__globals__)
    names |= dict.fromkeys(SIZES_OF_BLOCKS.intersection(names), size) | constants
    for own in (block_length, item_index):
        if own.__name__ in names:
            names[own.__name__] = device_function(own)
    if "member" in names:
        names["member"] = device_function(_nobody)
    made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    return device_function(made)


SIZES_OF_BLOCKS = {"BLOCK", "BODY_BLOCK", "PAIR_BLOCK"}


def item_pass(pass_: Callable, *, threads: int = THREADS, **constants: int) -> Callable:
    """The pass of the processors, with a thread for each item; threads: of a block; constants: those that have another
    value here."""
    parameters = list(inspect.signature(pass_.body).parameters)[1:]
    count = eval(f"lambda {', '.join(parameters)}: {pass_.items}")
    kernel = item_kernel(pass_.body, parameters, block_of(pass_.body, 1, **constants), threads)

    def run(*arguments: Any) -> None:
        n = int(count(*arguments))
        if n > 0:
            kernel.launch(-(-n // kernel.threads), n, *arguments)

    return named(run, pass_.body, parameters)


def pass_over(item: Callable, threads: int = THREADS) -> Callable:
    """The pass item(i, ...) for i below a count: called with the count and the other arguments."""
    function = interpreted(item)
    body = device_function(item) if function is item else item
    kernel = item_kernel(function, list(inspect.signature(function).parameters)[1:], body, threads)

    def run(count: int, *arguments: Any) -> None:
        if count > 0:
            kernel.launch(-(-count // kernel.threads), count, *arguments)

    return named(run, function, list(inspect.signature(function).parameters))


def named(run: Callable, source: Callable, parameters: list[str]) -> Callable:
    """The pass with the name, the words and the parameters of what it was made of."""
    run.__name__, run.__doc__ = source.__name__, source.__doc__
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    run.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in parameters])
    return run
