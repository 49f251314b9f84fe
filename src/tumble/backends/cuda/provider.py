"""Where arrays of the device come from: CuPy, and NumPy in Numba's CUDA simulator, in which CuPy does not run.

The one module that names both. It offers what the passes need besides kernels: arrays, sorting, sums that run along,
streams and captured graphs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import OptionsError, message

__all__ = [
    "FAILURES", "SIMULATED", "Graph", "argsort", "below", "capability", "cumulate", "device_name", "fetch",
    "free_memory", "is_full", "launch", "send", "synchronize", "zeros",
]  # fmt: skip

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
"""Whether kernels run in Numba's CUDA simulator: slowly, one thread after the other, on any machine."""


def _load() -> Any:
    """The module that makes arrays."""
    if SIMULATED:
        return np
    remedy = "Install the extra for your CUDA: pip install 'tumble[gpu]' (CUDA 13) or 'tumble[gpu12]' (CUDA 12)."
    vars(np).setdefault("row_stack", np.vstack)  # Numba's CUDA target asks for it, NumPy 2.5 has dropped it
    try:
        import cupy
        import numba.cuda  # noqa: F401
    except ImportError as cause:
        raise OptionsError(
            message("backend", "'cuda' needs the packages of an extra", f"no {cause.name}", remedy)
        ) from cause
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as cause:
        remedy = "Install NVIDIA's driver, or use backend='cpu'."
        raise OptionsError(message("backend", "'cuda' needs a driver and a device", str(cause), remedy)) from cause
    if count == 0:
        remedy = "See nvidia-smi and CUDA_VISIBLE_DEVICES, or use backend='cpu'."
        raise OptionsError(message("backend", "'cuda' needs a device", "none", remedy))
    return cupy


HOSTED = False
"""Arrays are on the device: the host asks for copies."""
xp = _load()


class Lost(Exception):
    """What a device that fails raises in the simulator, where tests raise it."""


FAILURES: tuple[type[BaseException], ...] = (Lost,)
"""What a device raises that has failed, or that has no memory left (`is_full`)"""
if not SIMULATED:
    FAILURES = (xp.cuda.runtime.CUDARuntimeError, xp.cuda.driver.CUDADriverError, xp.cuda.memory.OutOfMemoryError)
_recording = None if SIMULATED else xp.cuda.Stream(non_blocking=True)
"""On which launches are recorded; all else is done on the default stream, in order with what CuPy does there."""
_where = 0
"""The stream that kernels are launched on."""


def zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> Any:
    """An array of zeros on the device."""
    return xp.zeros(shape, dtype)


def send(array: Any) -> Any:
    """A copy of an array of the host on the device."""
    return xp.array(array)


def fetch(array: Any) -> np.ndarray:
    """A copy of an array of the device on the host."""
    return np.array(array) if SIMULATED or isinstance(array, np.ndarray) else array.get()


def argsort(keys: Any) -> Any:
    """Places of the keys in order; equal ones stay as they were."""
    return np.argsort(keys, kind="stable") if SIMULATED else xp.argsort(keys)


def cumulate(counts: Any, out: Any) -> None:
    """out[0] = 0, out[k + 1] = the sum of the first k + 1 counts."""
    out[:1] = 0
    xp.cumsum(counts, out=out[1:])


def below(keys: Any, values: Any) -> Any:
    """How many of the sorted keys are smaller than each value."""
    return xp.searchsorted(keys, values, side="left")


def synchronize() -> None:
    """Wait until the device has done all that it was asked for."""
    if not SIMULATED:
        xp.cuda.Stream.null.synchronize()


def launch(function: Any, blocks: int, threads: int, arguments: int) -> None:
    """Launch a kernel. arguments: address of the places of its arguments."""
    xp.cuda.driver.launchKernel(function.ptr, blocks, 1, 1, threads, 1, 1, 0, _where, arguments, 0)


def device_name() -> str:
    """Name of the device."""
    if SIMULATED:
        return "simulated CUDA device"
    return xp.cuda.runtime.getDeviceProperties(xp.cuda.Device().id)["name"].decode()


def capability() -> tuple[int, int]:
    """Compute capability of the device."""
    text = xp.cuda.Device().compute_capability
    return int(text[:-1]), int(text[-1])


def free_memory() -> tuple[int, int]:
    """Bytes of the device that are free, those in CuPy's pool among them, and all that it has."""
    if SIMULATED:
        return 1 << 62, 1 << 62
    free, total = xp.cuda.runtime.memGetInfo()
    return free + xp.get_default_memory_pool().free_bytes(), total


def is_full(cause: BaseException) -> bool:
    """Whether a failure is that of a device without free memory: it works on then."""
    return "OutOfMemory" in type(cause).__name__ or "out of memory" in str(cause)


class Graph:
    """Launches that are recorded once and repeated with one call; in the simulator they are made again."""

    def __init__(self, launches: Callable[[], None]) -> None:
        self._launches, self._graph = launches, None
        if not SIMULATED:
            with _captured() as made:
                launches()
            self._graph = made[0]

    def launch(self) -> None:
        """Make the launches."""
        if self._graph is None:
            self._launches()
        else:
            self._graph.launch(xp.cuda.Stream.null)


@contextmanager
def _captured() -> Iterator[list[Any]]:
    """Record the launches of the block."""
    global _where
    made: list[Any] = []
    _recording.begin_capture()
    _where = _recording.ptr
    try:
        yield made
    finally:
        _where = 0
        made.append(_recording.end_capture())
