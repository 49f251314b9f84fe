"""Equality rows that depend on others: which joints are involved, and whether they ask for different things."""

from __future__ import annotations

import numpy as np

from .. import backends
from ..backends.joint_arrays import FactorArrays
from ..scene.joint_model import JointModel
from .joint_system import RowSet

__all__ = ["dependencies", "fighting"]


def dependencies(
    model: JointModel, rows: RowSet, factors: FactorArrays, wanted: np.ndarray | None
) -> list[tuple[tuple[str, ...], float]]:
    """For every row that depends on those before it: the joints involved, its own first, and how far what is `wanted`
    (rows,) of it lies from what the others leave it. All on the host."""
    p, out = rows.pattern, []
    dropped = np.flatnonzero(factors.inverse_pivot == 0.0)
    if not dropped.size:
        return out
    left = np.zeros(len(rows.rows)) if wanted is None else wanted.copy()
    backends.choose("cpu").forward_joints(factors, left)
    for k in dropped:
        z = np.zeros(len(rows.rows))
        z[k] = 1.0
        for i in range(k - 1, -1, -1):  # z = L^-T e_k: the combination of rows that vanishes
            low, high = p.l_start[i], p.l_start[i + 1]
            z[i] = -(factors.l_value[low:high] @ z[factors.l_row[low:high]])
        involved = [int(k)] + [int(i) for i in np.argsort(-np.abs(z)) if i != k and abs(z[i]) > 1e-6]
        elements = dict.fromkeys(model.names[model.row_element[rows.rows[i]]] for i in involved)
        out.append((tuple(elements), float(abs(left[k]))))
    return out


def fighting(model: JointModel, rows: RowSet, factors: FactorArrays, wanted: np.ndarray) -> tuple[str, ...]:
    """Names of the joints and motors that ask most for different speeds of the same motion."""
    return max(dependencies(model, rows, factors, wanted), key=lambda found: found[1])[0]
