"""Loops over the kernels, once per device. What each offers is listed in `base.PASSES`."""

from __future__ import annotations

import importlib
from types import ModuleType

from .. import checks

__all__ = ["BACKENDS", "choose"]

BACKENDS = ("cpu", "cuda")


def choose(backend: str | ModuleType = BACKENDS[0]) -> ModuleType:
    """A backend by its name; one that is given is taken as it is."""
    if isinstance(backend, ModuleType):
        return backend
    return importlib.import_module(f".{checks.choice('backend', backend, BACKENDS)}", __name__)
