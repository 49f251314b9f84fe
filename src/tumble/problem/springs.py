"""Springs and dampers of joints in a step."""

from __future__ import annotations

import numpy as np

__all__ = ["implicit_spring"]


def implicit_spring(
    g: np.ndarray, k: np.ndarray, d: np.ndarray, h: float, theta: float | None, before: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Bias and compliance of springs and dampers, implicit.

    theta: Moreau's; the force is that of the mean stretch and speed of the step, g at the pose of the kick and `before`
    the speeds there.
    """
    if theta is None:
        s = h * k + d
        return k * g / s, 1.0 / (h * s)
    assert before is not None
    s = theta * (theta * h * k + d)
    old = (1.0 - theta) * (d - (1.0 - theta) * h * k)
    return (k * g + old * before) / s, 1.0 / (h * s)
