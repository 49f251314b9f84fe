"""Rotations as quaternions (w, x, y, z) in NumPy, for building scenes. Kernels have their own scalar forms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])


def multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Product p q of quaternions (..., 4): first q turns, then p."""
    pw, px, py, pz = np.moveaxis(np.asarray(p, float), -1, 0)
    qw, qx, qy, qz = np.moveaxis(np.asarray(q, float), -1, 0)
    return np.stack(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ],
        axis=-1,
    )


def conjugate(q: np.ndarray) -> np.ndarray:
    """Inverse of a unit quaternion (..., 4)."""
    return np.asarray(q, float) * np.array([1.0, -1.0, -1.0, -1.0])


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Vectors (..., 3) turned by quaternions (..., 4)."""
    q, v = np.asarray(q, float), np.asarray(v, float)
    t = 2.0 * _cross(q[..., 1:], v)
    return v + q[..., :1] * t + _cross(q[..., 1:], t)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a x b, a third of the time of NumPy's."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for k, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
        out[..., k] = a[..., i] * b[..., j] - a[..., j] * b[..., i]
    return out


def matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., 3, 3); columns are the turned axes."""
    w, x, y, z = np.moveaxis(np.asarray(q, float), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(r, axis=-1) for r in rows], axis=-2)


def from_matrix(m: np.ndarray) -> np.ndarray:
    """Unit quaternion (4,) of one rotation matrix (3, 3), with w >= 0."""
    m = np.asarray(m, float)
    # The largest of the four squares is a safe divisor.
    squares = np.array(
        [
            1.0 + m[0, 0] + m[1, 1] + m[2, 2],
            1.0 + m[0, 0] - m[1, 1] - m[2, 2],
            1.0 - m[0, 0] + m[1, 1] - m[2, 2],
            1.0 - m[0, 0] - m[1, 1] + m[2, 2],
        ]
    )
    i = int(np.argmax(squares))
    q = np.empty(4)
    if i == 0:
        q[:] = squares[0], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    elif i == 1:
        q[:] = m[2, 1] - m[1, 2], squares[1], m[1, 0] + m[0, 1], m[0, 2] + m[2, 0]
    elif i == 2:
        q[:] = m[0, 2] - m[2, 0], m[1, 0] + m[0, 1], squares[2], m[2, 1] + m[1, 2]
    else:
        q[:] = m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[2, 1] + m[1, 2], squares[3]
    q /= np.linalg.norm(q)
    return -q if q[0] < 0 else q


def from_axis_angle(axis: ArrayLike, angle: float) -> np.ndarray:
    """Quaternion (4,) of a turn by angle [rad] about an axis (3,) of any length."""
    axis = np.asarray(axis, float)
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis / np.linalg.norm(axis)])


def turned(q: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Quaternions (n, 4) turned by rotation vectors (n, 3) in world axes [rad]."""
    size = np.linalg.norm(angle, axis=1)
    some = size > 0.0
    factor = np.where(some, np.sin(0.5 * size) / np.where(some, size, 1.0), 0.5)
    out = multiply(np.concatenate([np.cos(0.5 * size)[:, None], factor[:, None] * angle], axis=1), q)
    return out / np.linalg.norm(out, axis=1)[:, None]


def from_normal(normal: np.ndarray) -> np.ndarray:
    """Shortest turn (4,) that takes the z axis to a unit normal (3,)."""
    x, y, z = np.asarray(normal, float)
    if z < -1.0 + 1e-12:
        return np.array([0.0, 1.0, 0.0, 0.0])
    q = np.array([1.0 + z, -y, x, 0.0])
    return q / np.linalg.norm(q)
