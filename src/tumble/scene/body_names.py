"""Bodies by name."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from ..checks import nearest
from ..errors import SceneError, message

__all__ = ["BodyNames"]


class BodyNames:
    """What finds the bodies of a model that has names: (name, first body, count) each."""

    names: tuple[tuple[str, int, int], ...]
    body_kind: np.ndarray

    def bodies(self, name: str) -> np.ndarray:
        """Indices of the body or bodies with this name; "grains[3]" is one of the many named "grains"."""
        match = re.fullmatch(r"(.+)\[(\d+)\]", name)
        if name in self._ranges:
            first, count = self._ranges[name]
            return np.arange(first, first + count)
        if match and match[1] in self._ranges and int(match[2]) < self._ranges[match[1]][1]:
            return np.array([self._ranges[match[1]][0] + int(match[2])])
        raise SceneError(
            message("Model.bodies", "unknown body", repr(name), nearest(name, [n for n, _, _ in self.names]))
        )

    @cached_property
    def _ranges(self) -> dict[str, tuple[int, int]]:
        """First body and number of bodies by name."""
        return {name: (first, count) for name, first, count in self.names}

    def name(self, body: int) -> str:
        """Name of the body with this index."""
        for known, first, count in self.names:
            if first <= body < first + count:
                return known if count == 1 else f"{known}[{body - first}]"
        rule = f"index must be in 0..{len(self.body_kind) - 1}"
        raise SceneError(message("Model.name", rule, body, "Count from 0."))
