"""The motion that impulses make, as a matrix B of full meaning: |B g|^2 = g.N g, and N x = 0 exactly where B x = 0."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..errors import ProblemError, message
from ..problem.cone_problem import ConeProblem, contact_first
from ..problem.operators import ContactOperator

__all__ = ["motion_rows"]

DENSE_ROWS = 3000
"""A matrix without bodies behind it is split by eigenvalues, connected part by part, up to so many rows a part."""
RANK = 1e-13
"""Eigenvalues below this part of the largest are zero: rounding leaves about 1e-15."""


def motion_rows(problem: ConeProblem) -> sp.csr_matrix:
    """B^T (dim n, k) with N = B^T B.

    Contacts alone: M^-1/2 D, six columns a body that can move, sparse. With joints, compliance or a matrix: from the
    eigenvalues of N, dense within each connected part.
    """
    operator = problem.operator
    if isinstance(operator, ContactOperator):
        rows = _contact_rows(operator)
        if _explains(problem, rows):
            return rows
    return _matrix_rows(operator.to_sparse())


def _contact_rows(operator: ContactOperator) -> sp.csr_matrix:
    inverse = operator.inverse_mass().tobsr((6, 6))
    inverse.sort_indices()
    n = inverse.shape[0] // 6
    blocks = np.zeros((n, 6, 6))
    blocks[inverse.indices] = inverse.data  # block diagonal: one block a row of blocks, none where nothing moves
    values, vectors = np.linalg.eigh(blocks)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    rows = operator.jacobian() @ sp.bsr_matrix((root, np.arange(n), np.arange(n + 1)), shape=(6 * n, 6 * n))
    return _used_columns(rows)


def _explains(problem: ConeProblem, rows: sp.csr_matrix) -> bool:
    """Whether N is B^T B and nothing else (no compliance), by a product."""
    n, dim = problem.count, problem.dim
    x, product = np.zeros_like(problem.bias), np.zeros_like(problem.bias)
    x[:, :n] = np.random.default_rng(0).normal(size=(len(x), n))
    problem.operator.product(x, product)
    wanted = rows @ (rows.T @ contact_first(x, dim, n))
    found = contact_first(product, dim, n)
    return bool(np.abs(found - wanted).max(initial=0.0) <= 1e-9 * np.abs(wanted).max(initial=0.0))


def _matrix_rows(matrix: sp.csr_matrix) -> sp.csr_matrix:
    count, part = connected_components(matrix, directed=False)
    top = float(abs(matrix.diagonal()).max(initial=0.0))
    places, columns, values, first = [], [], [], 0
    for members in np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part, minlength=count))[:-1]):
        if len(members) > DENSE_ROWS:
            raise ProblemError(
                message(
                    "unique forces",
                    f"of a matrix, of jointed or of compliant bodies need at most {DENSE_ROWS} connected rows",
                    len(members),
                    "Contacts without joints and compliance have no such limit.",
                )
            )
        value, vector = np.linalg.eigh(matrix[members][:, members].toarray())
        kept = value > RANK * top
        root = vector[:, kept] * np.sqrt(value[kept])
        places.append(np.repeat(members, root.shape[1]))
        columns.append(np.tile(first + np.arange(root.shape[1]), len(members)))
        values.append(root.ravel())
        first += root.shape[1]
    if not values:
        return sp.csr_matrix((matrix.shape[0], 0))
    index = (np.concatenate(places), np.concatenate(columns))
    return sp.coo_matrix((np.concatenate(values), index), shape=(matrix.shape[0], first)).tocsr()


def _used_columns(rows: sp.spmatrix) -> sp.csr_matrix:
    out = sp.csc_matrix(rows)
    out.eliminate_zeros()
    return out[:, np.flatnonzero(np.diff(out.indptr))].tocsr()
