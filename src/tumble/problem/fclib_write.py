"""Frictional contact problems in FCLIB's HDF5 layout: writing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..errors import ProblemError, message
from ..files import made_in_memory, replacing
from ..version import __version__
from .cone_problem import ConeProblem, bounds_of, contact_first
from .fclib import GlobalForm
from .fclib_layout import write_array, write_matrix
from .rolling import RollingProblem

__all__ = ["fill", "write_problem"]

INTERVALS = "; blocks with bounds on both sides cannot be written here, the whole problem is in tumble/local"


def write_problem(
    path: str | Path,
    problem: ConeProblem | RollingProblem,
    *,
    title: str = "",
    description: str = "",
    whole: GlobalForm | None = None,
    local: bool = True,
    step: Mapping[str, Any] | None = None,
) -> None:
    """Write a problem; `read_problem` gives it back. An old file is replaced at once or not at all.

    local: write W and q. whole: write M, H, f and w, too (or alone). step: what FCLIB cannot hold, arrays, matrices,
    numbers and texts under their names, into the group `tumble`.
    """
    path = checks.file_name("write_problem.path", path, "problem.hdf5")
    if not isinstance(problem, (ConeProblem, RollingProblem)):
        rule = "must be a ConeProblem or a RollingProblem"
        raise ProblemError(message("write_problem.problem", rule, repr(problem)[:60], "For example sim.last.problem."))
    with replacing(path) as temporary, made_in_memory(temporary) as file:
        fill(file, problem, title=title, description=description, whole=whole, local=local, step=step)


def fill(
    file: Any,
    problem: ConeProblem | RollingProblem,
    *,
    title: str = "",
    description: str = "",
    whole: GlobalForm | None = None,
    local: bool = True,
    step: Mapping[str, Any] | None = None,
) -> None:
    """The groups of a problem in an open file; see `write_problem`."""
    if isinstance(problem, ConeProblem) and problem.is_rolling:
        problem = RollingProblem.from_contacts(problem)
    mu = problem.friction[: problem.count]
    bound = bounds_of(mu) if isinstance(problem, ConeProblem) else np.full(problem.count, np.inf)
    cone = np.isinf(bound)
    mu = np.where(cone, mu, -bound)  # in files an interval is minus its bound
    rolling = problem.rolling_friction if isinstance(problem, RollingProblem) else None
    extra: dict[str, Any] = {"h": float(problem.h)} | dict(step or {})
    if local or whole is None:
        matrix, bias = _matrix(problem)
        if not cone.all():
            description += INTERVALS
            inner = file.require_group("tumble").create_group("local")
            _fill_local(inner, problem.dim, matrix, bias, mu, rolling)
            rows = np.repeat(cone, problem.dim)
            matrix, bias, mu = matrix[rows][:, rows], bias[rows], mu[cone]
        group = file.create_group("fclib_local")
        _fill_local(group, problem.dim, matrix, bias, mu, rolling)
        _fill_info(group, title, description)
    if whole is not None:
        mu = np.maximum(mu, 0.0)[: whole.jacobian.shape[1] // problem.dim]
        group = file.create_group("fclib_global" if rolling is None else "fclib_global_rolling")
        group["spacedim"] = np.array([problem.dim], np.int32)
        write_matrix(group.create_group("M"), whole.mass, "triplets")
        write_matrix(group.create_group("H"), whole.jacobian, "triplets")
        vectors = group.create_group("vectors")
        write_array(vectors, "f", whole.force)
        write_array(vectors, "w", whole.offset)
        _fill_friction(vectors, mu, rolling)
        _fill_info(group, title, description)
    _fill_step(file.require_group("tumble"), extra)


def _matrix(problem: ConeProblem | RollingProblem) -> tuple[sp.csr_matrix, np.ndarray]:
    """W and q, contact by contact."""
    if isinstance(problem, RollingProblem):
        return sp.csr_matrix(problem.matrix), problem.bias
    return problem.operator.to_sparse().tocsr(), contact_first(problem.bias, problem.dim, problem.count)


def _fill_local(
    group: Any, dim: int, matrix: sp.csr_matrix, bias: np.ndarray, mu: np.ndarray, rolling: np.ndarray | None
) -> None:
    group["spacedim"] = np.array([dim], np.int32)
    write_matrix(group.create_group("W"), matrix, "rows")
    vectors = group.create_group("vectors")
    write_array(vectors, "q", bias)
    _fill_friction(vectors, mu, rolling)


def _fill_friction(group: Any, mu: np.ndarray, rolling: np.ndarray | None) -> None:
    write_array(group, "mu", mu)
    if rolling is not None:
        write_array(group, "mu_r", rolling)


def _fill_info(group: Any, title: str, description: str) -> None:
    info = group.create_group("info")
    for name, value in (("title", title), ("description", description), ("math_info", "")):
        info[name] = np.bytes_(value.encode() or b" ")


def _fill_step(group: Any, content: Mapping[str, Any]) -> None:
    """Numbers and texts become attributes, arrays and matrices datasets, mappings groups."""
    if group.name == "/tumble":
        group.attrs["version"] = __version__
    for name, value in content.items():
        if isinstance(value, Mapping):
            _fill_step(group.create_group(name), value)
        elif sp.issparse(value):
            write_matrix(group.create_group(name), value)
        elif isinstance(value, np.ndarray) and value.ndim:
            write_array(group, name, value)
        else:
            group.attrs[name] = value
