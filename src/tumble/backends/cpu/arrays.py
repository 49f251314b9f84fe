"""Arrays of this device: NumPy's, in the memory of the process."""

from __future__ import annotations

import numpy as np

HOSTED = True
"""Arrays are NumPy's: the host may read and write them."""
FAILURES: tuple[type[BaseException], ...] = ()
"""What a device raises that fails; NumPy's memory errors are Python's"""
zeros = np.zeros
"""An array of zeros for the passes: (shape, dtype=float)."""


def send(array: np.ndarray) -> np.ndarray:
    """An array of the host where the passes read it: the array itself."""
    return array


def fetch(array: np.ndarray) -> np.ndarray:
    """An array of the passes as one of NumPy's: the array itself."""
    return array
