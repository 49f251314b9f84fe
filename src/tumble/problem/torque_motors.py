"""Motors that give a torque or force: impulses into the free velocity."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..backends.base import sent_group
from ..backends.joint_arrays import JointRows, TorqueArrays
from ..enums import MotorMode, RowRole
from ..scene.model import Model
from .elimination import Pattern, row_bodies
from .joint_system import built_rows

__all__ = ["torque_motors"]


def torque_motors(model: Model, backend: ModuleType, pattern: Pattern) -> TorqueArrays:
    """Those of a model, mechanism by mechanism: their rows at the pose of the kick and their impulses in a step."""
    j = model.joints
    motors = np.array([k for k, m in enumerate(j.motors) if m.mode == MotorMode.TORQUE], np.int64)
    coord = np.array([[j.motors[k].coordinate, -1] for k in motors], np.int64).reshape(len(motors), 2)
    body = row_bodies(coord, j.coord_frame, j.frame_body) if len(motors) else np.zeros((0, 4), np.int32)
    mechanism = np.where(body >= 0, pattern.mechanism_of[np.maximum(body, 0)], -1).max(axis=1, initial=-1)
    order = np.argsort(mechanism, kind="stable")
    motors, coord, body, n = motors[order], coord[order], body[order], len(motors)
    none, no = np.zeros(n), np.zeros(n, bool)
    rows = JointRows(
        np.arange(n), body, coord, np.ones((n, 2)), none, np.full(n, RowRole.SPEED, np.int8), no, motors, no,
        none, none, none, np.zeros((n, 4)), np.zeros((n, 4)),
    )  # fmt: skip
    count = len(pattern.mechanism) - 1
    start = np.searchsorted(mechanism[order], np.arange(count + 1)).astype(np.int64)
    return sent_group(backend, TorqueArrays(rows, built_rows(n), motors, np.zeros(n), start, no, np.zeros((3, n))))
