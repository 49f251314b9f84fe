"""Frictional contact problems in FCLIB's HDF5 layout: reading. (`fclib_write` writes, `docs/problems.md` explains.)

FCLIB's words on the left: local u = W r + q; global M v = H r + f, u = H^T v + w, so W = H^T M^-1 H and
q = w + H^T M^-1 f. r are our impulses, q our bias. Contact by contact, normal row first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os.path import isdir
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from .. import backends, checks
from ..enums import BlockKind
from ..errors import FileError, ProblemError, TumbleError, message
from ..files import check_readable, is_file
from ..kernels.cones import interval as interval_of
from ..kernels.jit import interpreted
from .conditioning import condition
from .cone_problem import BlockGroup, ConeProblem, component_first, contact_first
from .fclib_layout import LAYOUT, array, check_size, child, name_of, read_matrix, text, whole
from .operators import MatrixOperator
from .rolling import RollingProblem

__all__ = ["FileProblem", "GlobalForm", "read_problem"]

LOCAL = ("fclib_local", "fclib_local_rolling")
GLOBAL = ("fclib_global", "fclib_global_rolling")
BLOCK_COLUMNS = 256
"""Columns of H that are solved for at once in the reduction."""


@dataclass(frozen=True)
class GlobalForm:
    """M v = H r + f, u = H^T v + w: d degrees of freedom, n contacts."""

    mass: sp.csr_matrix
    """M (d, d) [kg, kg m^2]"""
    jacobian: sp.csr_matrix
    """H (d, dim n)"""
    force: np.ndarray
    """f (d,), impulses [N s]"""
    offset: np.ndarray
    """w (dim n,) [m/s]"""


@dataclass(frozen=True)
class FileProblem:
    """A problem from a file, and what was done to it."""

    problem: ConeProblem | RollingProblem
    path: Path
    kind: str
    """local or global: where the matrix comes from"""
    dim: int
    """Rows a contact: 2, 3, or 5 with rolling friction"""
    symmetrised: float
    """max |W - W^T| / max |W| before (W + W^T) / 2 was taken"""
    clipped: float
    """Most negative eigenvalue that was set to 0, relative to the largest; 0 where none was"""
    order: np.ndarray
    """(n,) the contact of the file that each block of the problem is"""
    title: str = ""
    description: str = ""
    notes: tuple[str, ...] = ()
    """What was done to the matrix, in words"""
    whole: GlobalForm | None = None
    """M, H, f and w where the file has them and they are the whole problem (no joints)"""
    step: dict[str, Any] = field(default_factory=dict)
    """What a simulation wrote beside the problem: h, law, gap, body_a, ..., joints (see `docs/problems.md`)"""

    def impulses(self, impulse: np.ndarray) -> np.ndarray:
        """A solver's impulses (3, cap), or (5, n), as (dim n,) in the file's order."""
        x = np.asarray(impulse, float)
        rows = x.reshape(-1, self.dim) if x.ndim == 1 else self._rows(x)
        out = np.empty_like(rows)
        out[self.order] = rows
        return out.ravel()

    def _rows(self, x: np.ndarray) -> np.ndarray:
        return contact_first(x, self.dim, self.problem.count).reshape(-1, self.dim)


def read_problem(path: str | Path) -> FileProblem:
    """Read a problem: the local one where there is one, else the global one, reduced."""
    import h5py

    path = checks.file_name("read_problem.path", path, "problem.hdf5")
    if not is_file(path):
        got = "a folder" if isdir(path) else "no such file"
        raise FileError(message(str(path), "must be a file with a problem", got, "Check the name."))
    check_readable(path)
    with _readable(path), h5py.File(path, "r") as file:
        return _read(path, file)


def reduce(form: GlobalForm, where: str = "GlobalForm.mass") -> tuple[sp.csr_matrix, np.ndarray]:
    """W = H^T M^-1 H and q = w + H^T M^-1 f by a sparse factorisation of M."""
    h = sp.csc_matrix(form.jacobian)
    try:
        factor = splu(sp.csc_matrix(form.mass)) if form.mass.shape[0] else None
    except RuntimeError as cause:
        rule = "must be invertible"
        raise ProblemError(message(where, rule, cause, "Leave out degrees of freedom without a mass.")) from cause
    if factor is None or h.shape[1] == 0:
        return sp.csr_matrix((h.shape[1], h.shape[1])), form.offset.copy()
    parts = []
    for first in range(0, h.shape[1], BLOCK_COLUMNS):
        answer = factor.solve(h[:, first : first + BLOCK_COLUMNS].toarray())
        parts.append(h.T @ sp.csc_matrix(answer))
    matrix = sp.hstack(parts).tocsr()
    bias = form.offset + h.T @ factor.solve(form.force)
    if not (np.all(np.isfinite(matrix.data)) and np.all(np.isfinite(bias))):
        raise ProblemError(message(where, "must be invertible", "infinite values in M^-1", "Check the masses."))
    return matrix, bias


def _read(path: Path, file: Any) -> FileProblem:
    local, reduced = (
        next((child(path, file, name, folder=True) for name in names if name in file), None)
        for names in (LOCAL, GLOBAL)
    )
    if local is None and reduced is None:
        got = ", ".join(sorted(file)[:4]) or "no groups"
        raise FileError(message(str(path), "must have a group fclib_local or fclib_global", got, LAYOUT))
    step = _read_step(path, child(path, file, "tumble", folder=True)) if "tumble" in file else {}
    kind, group = ("global", reduced) if local is None else ("local", local)
    source = step.pop("local", group) if kind == "local" else group
    dim = whole(path, group, "spacedim")
    if dim not in (2, 3, 5):
        raise ProblemError(message(name_of(path, group, "spacedim"), "must be 2, 3 or 5", dim, LAYOUT))
    vectors = child(path, source, "vectors", folder=True)
    friction = _friction(path, vectors, "mu", None, interval=source is not group)
    partial = "joints" in step or "partial" in step
    form = None if reduced is None or partial else _global_form(path, reduced, dim * len(friction))
    if kind == "global":
        if form is None:
            rule = "a global problem must have no equality rows (G, or joints in the group tumble)"
            raise ProblemError(message(name_of(path, group), rule, "some", "Write the local problem, too."))
        name = "M"
        matrix, bias = reduce(form, name_of(path, group, "M"))
    else:
        _no_equalities(path, source, "V")
        name = "W"
        rows = dim * len(friction)
        matrix, bias = read_matrix(path, source, "W", (rows, rows)), array(path, vectors, "q", rows)
    fit = condition(name_of(path, source, name), matrix)
    h = checks.number(f"{path}: tumble.h", step.get("h", 1.0), above=0.0, unit="s", error=ProblemError)
    if dim == 5:
        rolling = _friction(path, vectors, "mu_r", len(friction))
        problem: ConeProblem | RollingProblem = RollingProblem(fit.matrix, bias, friction, rolling, h)
    else:
        blocks = BlockGroup(BlockKind.CONE, dim, len(friction), friction)
        problem = ConeProblem(blocks, component_first(bias, dim), MatrixOperator(fit.matrix, dim, backends.choose()), h)
    info = child(path, group, "info", folder=True) if group is not None and "info" in group else {}
    return FileProblem(
        problem,
        path,
        kind,
        dim,
        fit.asymmetry,
        fit.clipped,
        np.arange(len(friction)),
        text(info, "title"),
        text(info, "description"),
        fit.notes,
        form,
        step,
    )


def _friction(path: Path, group: Any, name: str, count: int | None, *, interval: bool = False) -> np.ndarray:
    """mu (n,), and the intervals of bounded rows only where a simulation stored them: there minus their bounds."""
    mu = array(path, group, name, count)
    if not interval and np.any(mu < 0.0):
        at = int(np.argmax(mu < 0.0))
        got = f"{mu[at]:g} at contact {at}"
        raise ProblemError(message(name_of(path, group, name), "must be >= 0", got, "Use 0 for no friction."))
    return np.where(mu < 0.0, interpreted(interval_of)(-mu), mu)


def _global_form(path: Path, group: Any, rows: int) -> GlobalForm | None:
    """M, H, f, w; None where equality rows belong to them."""
    if _has_rows(path, group, "G"):
        return None
    vectors = child(path, group, "vectors", folder=True)
    force, offset = array(path, vectors, "f"), array(path, vectors, "w", rows)
    d = len(force)
    return GlobalForm(read_matrix(path, group, "M", (d, d)), read_matrix(path, group, "H", (d, rows)), force, offset)


def _no_equalities(path: Path, group: Any, name: str) -> None:
    if _has_rows(path, group, name):
        rule = "equality rows cannot be read"
        raise ProblemError(message(name_of(path, group, name), rule, "some", "Eliminate them before writing."))


def _has_rows(path: Path, group: Any, name: str) -> bool:
    return name in group and whole(path, child(path, group, name, folder=True), "n") > 0


def _read_step(path: Path, group: Any) -> dict[str, Any]:
    """The group `tumble`: attributes, arrays and matrices; `local` stays a group (the problem with interval rows)."""
    out: dict[str, Any] = {k: v.item() if isinstance(v, np.generic) else v for k, v in group.attrs.items()}
    for name, found in group.items():
        if found is None:
            raise FileError(message(name_of(path, group, name), "must be there", "a link to nothing", LAYOUT))
        if not hasattr(found, "keys"):
            check_size(name_of(path, group, name), found)
            out[name] = found[()]
        elif name == "local":
            out[name] = found
        elif "nzmax" in found:
            out[name] = read_matrix(path, group, name)
        else:
            out[name] = _read_step(path, found)
    return out


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Whatever HDF5 says about a damaged file becomes one line."""
    try:
        yield
    except TumbleError:
        raise
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as cause:
        got = " ".join(f"{type(cause).__name__}: {cause}".split())
        remedy = "It is damaged, cut short or of another kind."
        raise FileError(message(str(path), "must be a whole HDF5 file with a problem", got, remedy)) from cause
