"""HDF5 pieces of the FCLIB layout: arrays with their checks, and sparse matrices in its three storages.

A matrix is a group with m, n (rows, columns), nz, nzmax and p, i, x:
nz = -1: compressed columns (p column starts, i rows), nz = -2: compressed rows (p row starts, i columns),
nz >= 0: that many triplets (i row, p column, x value); equal places are summed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import checks, memory
from ..errors import FileError, ProblemError, message

__all__ = ["array", "check_size", "child", "columns", "read_matrix", "text", "whole", "write_array", "write_matrix"]

COLUMNS, ROWS = -1, -2
PACK_FROM = 2**16
"""Indices of more bytes are compressed."""
PACKED = 1100
"""A stored byte holds at most so many: deflate reaches 1032."""


def name_of(path: object, group: Any, name: str = "") -> str:
    """Where in which file, for messages: `file.hdf5: fclib_local/W/x`."""
    return f"{path}: {'/'.join(part for part in (group.name.strip('/'), name) if part)}"


def child(path: object, group: Any, name: str, *, folder: bool) -> Any:
    """A group (folder) or dataset inside a group."""
    found = group.get(name)
    kind = "group" if folder else "dataset"
    if found is None:
        raise FileError(message(name_of(path, group, name), f"this {kind} must exist", "nothing", LAYOUT))
    if hasattr(found, "keys") != folder:
        raise FileError(message(name_of(path, group, name), f"must be a {kind}", "the other kind", LAYOUT))
    return found


LAYOUT = "See docs/problems.md for the layout."


def array(path: object, group: Any, name: str, count: int | None = None) -> np.ndarray:
    """A finite float vector (count,)."""
    where = name_of(path, group, name)
    return checks.array(where, _values(path, group, name), (count,), error=ProblemError)


def columns(path: object, group: Any, name: str) -> np.ndarray:
    """A vector of indices, int64."""
    values = _values(path, group, name)
    if values.dtype.kind not in "iu":
        where = name_of(path, group, name)
        raise ProblemError(message(where, "must hold whole numbers", values.dtype, LAYOUT))
    return values.astype(np.int64)


def whole(path: object, group: Any, name: str) -> int:
    """A whole number, stored as an array of one value."""
    values = columns(path, group, name)
    if values.size != 1:
        raise ProblemError(message(name_of(path, group, name), "must hold one number", f"{values.size}", LAYOUT))
    return int(values[0])


def _values(path: object, group: Any, name: str) -> np.ndarray:
    dataset = child(path, group, name, folder=False)
    if dataset.dtype.kind not in "iuf" or dataset.dtype.itemsize > 8:
        raise ProblemError(message(name_of(path, group, name), "must hold numbers", dataset.dtype, LAYOUT))
    check_size(name_of(path, group, name), dataset)
    return np.atleast_1d(np.asarray(dataset[()])).ravel()


def check_size(where: str, dataset: Any) -> None:
    """Refuse a dataset that is declared larger than what the file holds, or than the memory, before it is read."""
    if dataset.shape is None:
        raise ProblemError(message(where, "must hold values", "an empty dataset", LAYOUT))
    if dataset.nbytes > PACKED * dataset.id.get_storage_size():
        got = f"{dataset.size} values declared, {dataset.id.get_storage_size()} bytes stored"
        raise ProblemError(message(where, "its values must be in the file", got, "Write the file again."))
    memory.check(where, dataset.nbytes, f"{dataset.size} values")


def text(group: Any, name: str) -> str:
    """A text, or "" where there is none."""
    found = group.get(name)
    if found is None or hasattr(found, "keys"):
        return ""
    check_size(name, found)
    value = np.asarray(found[()]).ravel()
    value = value[0] if value.size else b""
    return (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)).strip("\0 \n")


def read_matrix(
    path: object, parent: Any, name: str, shape: tuple[int | None, int | None] = (None, None)
) -> sp.csr_matrix:
    """A matrix in any of the storages; shape: what it must have, None: any number."""
    group = child(path, parent, name, folder=True)
    m, n, nz = (whole(path, group, key) for key in ("m", "n", "nz"))
    for key, got, wanted in zip("mn", (m, n), shape):
        if wanted is not None and got != wanted:
            raise ProblemError(message(name_of(path, group, key), f"must be {wanted}", got, "Check spacedim and mu."))
    memory.check(name_of(path, group), 8 * max(m, n, 0), f"a matrix of {m} x {n}")
    p, i, x = columns(path, group, "p"), columns(path, group, "i"), array(path, group, "x")

    def require(holds: bool, dataset: str, rule: str, got: object) -> None:
        if not holds:
            raise ProblemError(message(name_of(path, group, dataset), rule, got, LAYOUT))

    require(nz >= ROWS, "nz", "must be -2 (rows), -1 (columns) or a number of triplets", nz)
    require(m >= 0 and n >= 0, "m", "sizes must be >= 0", f"{m} x {n}")
    if nz >= 0:
        for key, values, most in (("i", i, m), ("p", p, n)):
            require(len(values) >= nz, key, f"must have {nz} entries", len(values))
            inside = (values[:nz] >= 0) & (values[:nz] < most)
            require(bool(inside.all()), key, f"must lie in [0, {most})", values[:nz][~inside][:1])
        require(len(x) >= nz, "x", f"must have {nz} entries", len(x))
        return sp.coo_matrix((x[:nz], (i[:nz], p[:nz])), shape=(m, n)).tocsr()
    major, minor = (n, m) if nz == COLUMNS else (m, n)
    require(len(p) >= major + 1, "p", f"must have {major + 1} entries", len(p))
    p = p[: major + 1]
    rising = p[0] == 0 and bool(np.all(np.diff(p) >= 0))
    require(rising, "p", "must start at 0 and never fall", p[:4].tolist())
    count = int(p[-1])
    require(len(i) >= count, "i", f"must have {count} entries", len(i))
    require(len(x) >= count, "x", f"must have {count} entries", len(x))
    i, x = i[:count], x[:count]
    inside = (i >= 0) & (i < minor)
    require(bool(inside.all()), "i", f"must lie in [0, {minor})", i[~inside][:1])
    if nz == COLUMNS:
        return sp.csc_matrix((x, i, p), shape=(m, n)).tocsr()
    return sp.csr_matrix((x, i, p), shape=(m, n))


def write_matrix(group: Any, matrix: Any, storage: str = "rows") -> None:
    """Fill an empty group; storage: rows, columns or triplets."""
    if storage == "triplets":
        coo = sp.coo_matrix(matrix)
        p, i, x, nz = coo.col, coo.row, coo.data, coo.nnz
        shape = coo.shape
    else:
        packed = sp.csr_matrix(matrix) if storage == "rows" else sp.csc_matrix(matrix)
        p, i, x, nz = packed.indptr, packed.indices, packed.data, ROWS if storage == "rows" else COLUMNS
        shape = packed.shape
    for name, value in (("m", shape[0]), ("n", shape[1]), ("nz", nz), ("nzmax", len(x))):
        group[name] = np.array([value], np.int32)
    write_array(group, "p", p.astype(np.int32))
    write_array(group, "i", i.astype(np.int32))
    write_array(group, "x", x.astype(np.float64))


def write_array(group: Any, name: str, values: np.ndarray) -> None:
    """A dataset; many indices are compressed, other numbers are noise, which takes time and saves little."""
    worth = values.nbytes > PACK_FROM and values.dtype.kind in "iu"
    packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if worth else {}
    group.create_dataset(name, data=values, **packed)
