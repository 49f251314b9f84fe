"""Motors that give a torque or force: impulses into the free velocity."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.joint_arrays import JointRows
from ..enums import MotorMode, RowRole
from ..kernels import joint_steps as formulas
from ..scene.model import Model
from .elimination import row_bodies
from .joint_system import built_rows

__all__ = ["TorqueMotors"]


class TorqueMotors:
    """Those of a model; their rows at the pose of the kick and their impulses in the present step."""

    def __init__(self, model: Model, backend: ModuleType) -> None:
        j, self._inverse_mass, self._backend = model.joints, model.body_inverse_mass, backend
        self.motors = np.array([k for k, m in enumerate(j.motors) if m.mode == MotorMode.TORQUE], np.int64)
        n = len(self.motors)
        coord = np.array([[j.motors[k].coordinate, -1] for k in self.motors], np.int64).reshape(n, 2)
        body = row_bodies(coord, j.coord_frame, j.frame_body) if n else np.zeros((0, 4), np.int32)
        none, no = np.zeros(n), np.zeros(n, bool)
        self.data = JointRows(
            np.arange(n), body, coord, np.ones((n, 2)), none, np.full(n, RowRole.SPEED, np.int8), no, self.motors, no,
            none, none, none, np.zeros((n, 4)), np.zeros((n, 4)),
        )  # fmt: skip
        self.built, self.impulse = built_rows(n), np.zeros(n)
        self._build, self._give = backend.over_rows(formulas.build_row), backend.over_rows(formulas.torque_impulse)

    def push(
        self, h: float, value: np.ndarray, target: np.ndarray, jacobian: np.ndarray, inverse_inertia: np.ndarray,
        free: np.ndarray,
    ) -> None:  # fmt: skip
        """Their impulses over h into the free velocity (n, 6)."""
        n = len(self.motors)
        if n:
            self._build(n, self.data, value, target, jacobian, self._inverse_mass, inverse_inertia, self.built)
            self._give(n, self.motors, h, target, self.impulse)
            self._backend.push_rows(self.data.body, self.built.weighted, self.impulse, free)
