"""Machine code of kernels for the device at hand, kept in the cache folder beside that of the processor's kernels.

The cache holds machine code (cubin) for a kind of device, in folders named after the sources that it was made from.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import numba
import numpy as np
from numba.cuda import types
from numba.cuda.np.numpy_support import from_dtype

from ...kernels.cache import cache_root
from ...kernels.fingerprint import fingerprint
from ...kernels.jit import compile_log
from . import provider

_VERSIONS = f"{numba.__version__} {version('numba-cuda')}"

__all__ = ["compile_ptx", "load", "type_of"]


def type_of(argument: Any) -> Any:
    """Numba's type of an argument as kernels take it: all numbers have eight bytes."""
    if isinstance(argument, tuple):
        return types.BaseTuple.from_types([type_of(part) for part in argument], type(argument))
    if isinstance(argument, (bool, int, np.integer, np.bool_)):
        return types.int64
    if isinstance(argument, (float, np.floating)):
        return types.float64
    layout = "C" if argument.flags.c_contiguous else "A"
    return types.Array(from_dtype(argument.dtype), argument.ndim, layout)


LONG = 60_000
"""Characters of a function, before it is optimised, from which it is called where a kernel asks for that."""


def compile_ptx(
    function: Callable, signature: tuple, capability: tuple[int, int], bounds: Any = None, calls: bool = False
) -> tuple[str, str]:
    """Text of a kernel for types, and its name in it. Products and sums are not contracted. bounds: threads of a block,
    and blocks that are to fit on a multiprocessor. calls: long functions are called, otherwise all are copied into
    those that call them, which takes minutes where a search calls a support function in twenty places."""
    from numba.cuda.compiler import _compile_pyfunc_with_fixup

    library, _ = _compile_pyfunc_with_fixup(
        function, signature, device=False, abi="numba", cc=capability, launch_bounds=bounds
    )
    texts = []
    for module in dict.fromkeys(library.modules):  # one that is called in many places is there as often
        text = str(module)
        if calls and len(text) > LONG:
            text = re.sub(r"^(define linkonce_odr .*\))", r"\1 noinline", text, flags=re.MULTILINE)
        texts.append(text)
    library._llvm_strs = texts
    library._nvvm_options["fma"] = 0
    (text,) = library.get_asm_strs(cc=capability)
    (name,) = re.findall(r"\.entry\s+(\w+)", text)
    return text, name


def load(function: Callable, arguments: tuple, bounds: Any, calls: bool) -> Any:
    """The kernel for the types of these arguments, from the cache or compiled."""
    capability, signature = provider.capability(), tuple(map(type_of, arguments))
    described = f"{function.__module__} {function.__name__} {signature} {bounds} {calls} {capability} {_VERSIONS}"
    path = cache_root() / "cuda" / fingerprint(function.__code__.co_filename)
    path /= hashlib.sha256(described.encode()).hexdigest()[:32] + ".cubin"
    module = provider.xp.cuda.function.Module()
    with suppress(OSError, ValueError):
        name, _, code = path.read_bytes().partition(b"\n")
        module.load(code)
        return module.get_function(name.decode())
    compile_log.tell()
    start = time.perf_counter()
    text, name = compile_ptx(function, signature, capability, bounds, calls)
    linker = provider.xp.cuda.function.LinkState()
    linker.add_ptr_data(text.encode(), name)
    code = bytes(linker.complete())
    compile_log.note(f"cuda.{function.__name__}", time.perf_counter() - start)
    with suppress(OSError):  # a full disk: this process has its kernel, the next one compiles it again
        path.parent.mkdir(parents=True, exist_ok=True)
        own = path.with_suffix(f".{os.getpid()}")
        own.write_bytes(name.encode() + b"\n" + code)
        own.replace(path)
    module.load(code)
    return module.get_function(name)
