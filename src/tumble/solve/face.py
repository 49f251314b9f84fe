"""The last digits of what rests: conjugate gradients in the face of the cones that the impulses lie in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..backends.base import FaceArrays
from .base import AntiRelaxedSolver, ScaledProblem, without_shift

__all__ = ["SolverFace"]


@dataclass(frozen=True, kw_only=True)
class SolverFace(AntiRelaxedSolver):
    """Solves the linear system of the contacts' present cases; a part of `auto`, of no use from a poor guess."""

    name: ClassVar[str] = "face"

    def _iterate(self, scaled: ScaledProblem) -> tuple[int, int, int, float]:
        op, cone, gauge, stop, work = self._groups(scaled)
        vector = cone.bias.shape
        shapes = dict(kind=vector[1:], d=vector, nd=vector, moved=vector, left=vector, trial=vector)
        face = scaled.problem.scratch_of(FaceArrays, **shapes)
        return scaled.backend.face_gradients(op, cone, gauge, stop, without_shift(work), face)
