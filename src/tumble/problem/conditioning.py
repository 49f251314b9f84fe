"""Matrices from elsewhere made fit for solvers: symmetric, and without negative eigenvalues."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, eigsh

from ..errors import ProblemError, message

__all__ = ["Conditioned", "condition"]

UNSYMMETRIC = 1e-2
"""A matrix whose asymmetry is larger, relative to its largest entry, is refused."""
NEGATIVE = 1e-9
"""Eigenvalues below minus this part of the largest are set to 0."""
INDEFINITE = 1e-3
"""A matrix with an eigenvalue below minus this part of the largest is refused."""
DENSE = 3000
"""Rows of a connected part up to which its eigenvalues are computed exactly."""


@dataclass(frozen=True)
class Conditioned:
    """A symmetric, positive semidefinite matrix and what it took."""

    matrix: sp.csr_matrix
    asymmetry: float
    """max |W - W^T| / max |W| before (W + W^T) / 2 was taken"""
    clipped: float
    """Most negative eigenvalue that was set to 0, relative to the largest; 0 where none was"""
    notes: tuple[str, ...]
    """What was done, in words"""


def condition(where: str, matrix: sp.spmatrix) -> Conditioned:
    """Symmetrise a square matrix and clip its negative eigenvalues; refuses what is far from a Delassus matrix."""
    w = sp.csr_matrix(matrix, dtype=np.float64)
    notes: list[str] = []
    largest = float(abs(w).max()) if w.nnz else 0.0
    if largest == 0.0:
        return Conditioned(w, 0.0, 0.0, ())
    asymmetry = float(abs(w - w.T).max()) / largest
    if asymmetry > UNSYMMETRIC:
        rule = f"must be symmetric to {UNSYMMETRIC:g} of its largest entry"
        raise ProblemError(message(where, rule, f"{asymmetry:.3g}", "Check rows, columns and their order."))
    if asymmetry > 0.0:
        w = sp.csr_matrix(0.5 * (w + w.T))
    if asymmetry > 1e-12:
        notes.append(f"symmetrised: entries differed by {asymmetry:.2g} of the largest")
    w.sum_duplicates()
    scale = abs(_largest_eigenvalue(w))
    count, label = connected_components(w, directed=False)
    order = np.argsort(label, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=count))])
    sorted_w = w[order][:, order].tocsr()
    parts: list[sp.spmatrix] = []
    lowest, changed = 0.0, False
    for low, high in itertools.pairwise(start):
        part = sorted_w[low:high, low:high]
        if high - low > DENSE:
            value, new = _lowest(part, scale), None
            if value < -1e-6 * scale:  # what Lanczos can tell from 0
                words = f"eigenvalues down to {value / scale:.2g} of the largest, too many rows to set them to 0"
                notes.append(f"a part of {high - low} rows has {words}")
        else:
            value, new = _clip(part.toarray(), scale)
        lowest = min(lowest, value / scale)
        if lowest < -INDEFINITE:
            rule = f"must have no eigenvalue below {-INDEFINITE:g} of the largest"
            raise ProblemError(message(where, rule, f"{lowest:.3g}", "W = H^T M^-1 H has none."))
        parts.append(part if new is None else sp.csr_matrix(new))
        changed |= new is not None
    if not changed:
        return Conditioned(w, asymmetry, 0.0, tuple(notes))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    w = sp.block_diag(parts, format="csr")[back][:, back].tocsr()
    notes.append(f"eigenvalues down to {lowest:.2g} of the largest set to 0")
    return Conditioned(w, asymmetry, -lowest, tuple(notes))


def _clip(part: np.ndarray, scale: float) -> tuple[float, np.ndarray | None]:
    """The lowest eigenvalue where it is below the threshold, else 0; and the matrix without negative ones."""
    try:
        la.cholesky(part + NEGATIVE * scale * np.eye(len(part)), lower=True, check_finite=False, overwrite_a=True)
        return 0.0, None
    except la.LinAlgError:
        pass
    value, vector = la.eigh(part)
    if value[0] >= -NEGATIVE * scale:
        return 0.0, None
    kept = value > 0.0
    new = (vector[:, kept] * value[kept]) @ vector[:, kept].T
    return float(value[0]), 0.5 * (new + new.T)


def _lowest(part: sp.spmatrix, scale: float) -> float:
    """The lowest eigenvalue to about 1e-6 of the scale, or 0 where there is none below."""
    moved = (scale * sp.identity(part.shape[0]) - part).tocsr()
    return -max(0.0, _largest_eigenvalue(moved, otherwise=scale) - scale)


def _largest_eigenvalue(w: sp.spmatrix, otherwise: float | None = None) -> float:
    """The eigenvalue of the largest size, to 1e-6 of it (Lanczos from a fixed start; `otherwise` where that fails)."""
    n = w.shape[0]
    if n <= 32:
        value = la.eigvalsh(w.toarray())
        return float(value[np.argmax(np.abs(value))])
    try:
        first = np.random.default_rng(0).normal(size=n)
        return float(eigsh(w, k=1, which="LM", tol=1e-6, v0=first, return_eigenvectors=False)[0])
    except ArpackError:
        return float(abs(w).sum(axis=1).max()) if otherwise is None else otherwise
