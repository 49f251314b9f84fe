"""Anderson's acceleration of a fixed-point iteration x <- image(x), steered by a residual."""

from __future__ import annotations

import numpy as np

__all__ = ["Anderson"]

INDEPENDENT = 1e-8
"""A difference of rounds that the others explain up to this part is left out."""


class Anderson:
    """Combines the last rounds so that the residual, were it linear, would be smallest. The same bits each time: sums
    in NumPy's fixed order, no library that threads."""

    def __init__(self, depth: int = 6) -> None:
        self._depth = depth
        self._residual: list[np.ndarray] = []
        self._image: list[np.ndarray] = []
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def next(self, image: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """Where to go on from, given the image (n,) of the present point and the residual (n,) there."""
        if self._last is not None:
            self._image.insert(0, image - self._last[0])
            self._residual.insert(0, residual - self._last[1])
            del self._image[self._depth :], self._residual[self._depth :]
        self._last = image.copy(), residual.copy()
        basis, columns, kept = [], [], []
        for j, difference in enumerate(self._residual):
            q, column = difference.copy(), np.zeros(len(basis))
            for _ in range(2):
                for i, b in enumerate(basis):
                    along = float(np.sum(b * q))
                    column[i] += along
                    q -= along * b
            left = float(np.sqrt(np.sum(q * q)))
            if left > INDEPENDENT * float(np.sqrt(np.sum(difference * difference))):
                basis.append(q / left)
                columns.append(np.append(column, left))
                kept.append(j)
        out, weight = image.copy(), np.zeros(len(basis))
        for j in range(len(basis) - 1, -1, -1):
            later = sum(columns[i][j] * weight[i] for i in range(j + 1, len(basis)))
            weight[j] = (float(np.sum(basis[j] * residual)) - later) / columns[j][j]
        for j, w in zip(kept, weight):
            out -= w * self._image[j]
        return out
