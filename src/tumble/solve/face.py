"""The last digits of what rests: conjugate gradients in the face of the cones that the impulses lie in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from .base import AntiRelaxedSolver, ScaledProblem

__all__ = ["SolverFace"]


@dataclass(frozen=True, kw_only=True)
class SolverFace(AntiRelaxedSolver):
    """Solves the linear system of the contacts' present cases; a part of `auto`, of no use from a poor guess."""

    name: ClassVar[str] = "face"

    def _iterate(self, scaled: ScaledProblem) -> tuple[int, int, int, float]:
        problem = scaled.problem
        kind = problem.scratch_of(_Cases, kind=scaled.work.shift.shape).kind
        return scaled.backend.face_gradients(*self._groups(scaled), kind, *problem.vectors_of(_Vectors))


class _Cases(NamedTuple):
    kind: np.ndarray


class _Vectors(NamedTuple):
    step: np.ndarray
    bent: np.ndarray
    moved: np.ndarray
    left: np.ndarray
    trial: np.ndarray
