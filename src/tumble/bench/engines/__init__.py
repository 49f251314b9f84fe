"""Other engines on the same scene, each with two or more settings: what `tumble bench peers` compares."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator

from .base import Candidate, Pile

__all__ = ["Candidate", "Pile", "candidates", "missing"]

_MODULES = {"tumble": "own", "rapier3d": "rapier", "mujoco": "mujoco_engine", "pybullet": "bullet"}
"""Package -> the file that drives it"""


def candidates(pile: Pile, threads: int) -> Iterator[Candidate]:
    """All engines that are installed, setting by setting; each is made when it is asked for."""
    for package, file in _MODULES.items():
        if package not in missing():
            yield from importlib.import_module(f".{file}", __name__).candidates(pile, threads)


def missing() -> list[str]:
    """Packages that are not installed."""
    return [name for name in _MODULES if name != "tumble" and importlib.util.find_spec(name) is None]
