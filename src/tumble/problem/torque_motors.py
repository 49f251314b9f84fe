"""Motors that give a torque or force: impulses into the free velocity."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..enums import MotorMode
from ..scene.model import Model
from .elimination import row_bodies

__all__ = ["TorqueMotors"]


class TorqueMotors:
    """Those of a model; their rows at the pose of the kick and their impulses in the present step."""

    def __init__(self, model: Model, backend: ModuleType) -> None:
        j = model.joints
        self._joints, self._inverse_mass, self._backend = j, model.body_inverse_mass, backend
        self.motors = np.array([k for k, m in enumerate(j.motors) if m.mode == MotorMode.TORQUE], np.int64)
        n = len(self.motors)
        self._coord = np.array([[j.motors[k].coordinate, -1] for k in self.motors], np.int64).reshape(n, 2)
        self.body = row_bodies(self._coord, j.coord_frame, j.frame_body) if n else np.zeros((0, 4), np.int32)
        self.jacobian, self._weighted = np.zeros((n, 24)), np.zeros((n, 24))
        self.impulse = np.zeros(n)

    def push(
        self, h: float, targets: np.ndarray, jacobian: np.ndarray, inverse_inertia: np.ndarray, free: np.ndarray
    ) -> None:
        """Their impulses over h into the free velocity (n, 6)."""
        n = len(self.motors)
        if not n:
            return
        self._backend.row_jacobians(
            np.arange(n), self._coord, np.ones((n, 2)), self.body, jacobian, self._inverse_mass, inverse_inertia,
            self.jacobian, self._weighted,
        )  # fmt: skip
        self.impulse = h * targets[self.motors]
        self._backend.push_rows(self.body, self._weighted, self.impulse, free)
