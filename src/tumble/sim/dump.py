"""The problem of a step as a file that any solver can be tried on (`tumble solve`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..enums import BodyKind
from ..errors import OptionsError, message
from ..observe.checkpoint import write_checkpoint
from ..problem.cone_problem import bounds_of, contact_first
from ..problem.fclib import GlobalForm
from ..problem.fclib_write import fill, write_problem
from ..problem.operators import ArticulatedOperator, ContactOperator, sparse_rows
from ..scene.model import Model
from .stepper import StepResult

if TYPE_CHECKING:
    from .simulation import Simulation

__all__ = ["can_be_dumped", "dump_failure", "dump_path", "dump_problem", "small_enough"]

AUTOMATIC = 10
"""So many problems of steps that did not converge are kept of a run."""
AUTOMATIC_CONTACTS, AUTOMATIC_BLOCKS = 50_000, 2000
"""Larger ones are not kept unasked: contacts (about 1 kB each), and blocks where joints make the matrix dense."""
LOCKED = 1e-12
"""An inverse inertia below this part of the body's largest is a locked turn."""


def dump_problem(sim: Simulation, path: str | Path) -> None:
    """Write the problem of the last step: the global form, the local one where that is not all, and the contacts."""
    if sim.last is None:
        raise OptionsError(message("Simulation.dump_problem", "needs a step first", "0 steps", "Call step()."))
    write_problem(path, sim.last.problem, **_content(sim, sim.last))


def dump_failure(sim: Simulation, path: Path) -> Path:
    """The state before the failed step, and that step's problem where it came so far, beside the run file."""
    out = path.with_suffix(".failure" + (path.suffix or ".h5"))
    result, more = sim.last, None
    # A step that failed before it had a problem may have begun to change the arrays of the last one's joints.
    fresh = result is not None and (result.report.step > sim.state.step or sim._work.joints is None)
    if result is not None and fresh and (not result.problem.is_rolling or small_enough(sim)):
        problem, content = result.problem, _content(sim, result)

        def write(file: Any) -> None:
            fill(file, problem, **content)

        more = write
    attributes = {"dt": sim.options.dt, "law": str(sim.options.law)}
    write_checkpoint(out, sim.state, attributes=attributes, more=more)
    return out


def dump_path(path: Path, step: int) -> Path:
    """Where the problem of a step of a run lies: run.h5 -> run.step000123.hdf5."""
    return path.with_suffix(f".step{step:06d}.hdf5")


def can_be_dumped(model: Model) -> bool:
    """Whether the problems of a model can be written: not with rolling friction and spinning friction or joints."""
    laws = model.pair_laws
    return not laws.rolls or not (np.any(laws.spinning_friction) or model.joints.row_count or model.joints.motors)


def small_enough(sim: Simulation) -> bool:
    """Whether the problem of the last step may be kept unasked."""
    if sim._last is None or sim._last.problem.count > AUTOMATIC_CONTACTS:  # a large one stays where it is
        return False
    result = sim.last
    assert result is not None
    if result.problem.is_rolling:
        p = result.problem
        return p.count <= AUTOMATIC_BLOCKS and not (np.any(p.bounded) or np.any(p.friction[1, : p.count]))
    operator = result.problem.operator
    jointed = type(operator) is not ContactOperator or operator.is_soft
    return result.problem.count <= (AUTOMATIC_BLOCKS if jointed else AUTOMATIC_CONTACTS)


def _content(sim: Simulation, result: StepResult) -> dict[str, Any]:
    """Arguments of `write_problem`."""
    c, k, problem = result.contacts, result.contacts.count, result.problem
    report, fetch, uid = result.report, sim.backend.fetch, sim.model.body_uid
    title, description = f"step {report.step}", f"of a tumble simulation, {report.law} law"
    if problem.is_rolling:
        return {"title": title, "description": f"{title} to t = {report.time:g} s {description}"}
    basis, mass = _degrees_of_freedom(problem.step_operator.contacts)
    contacts = ContactOperator(problem.step_operator.contacts, problem.backend)
    jacobian = (basis.T @ contacts.jacobian().T).tocsr()
    free = basis.T @ fetch(sim._work.free).ravel()
    bias = contact_first(problem.bias, 3, problem.count)
    offset = bias[: 3 * k] - jacobian.T @ free
    step: dict[str, Any] = {
        "law": str(report.law), "step": report.step, "time": report.time, "solver": report.solver,
        "status": str(report.status), "natural_map": report.natural_map,
        "bodies": sim.model.body_count, "gap": c.gap[:k].copy(), "point": c.point[:, :k].T.copy(),
        "normal": c.normal[:, :k].T.copy(),
        "body_a": c.body_a[:k].copy(), "body_b": c.body_b[:k].copy(),
        "uid_a": uid[c.body_a[:k]], "uid_b": uid[c.body_b[:k]], "feature": c.feature[:k].copy(),
        "impulse": contact_first(result.solution.impulse, 3, problem.count), "basis": basis,
        "dynamic": np.flatnonzero(fetch(sim._work.model.body_kind) == BodyKind.DYNAMIC).astype(np.int32),
    }  # fmt: skip
    plain = _is_plain(result)
    if sim._work.joints is not None:
        step["joints"] = _joint_rows(sim, result, basis, free)
    elif not plain:
        step["partial"] = True  # the global form lacks a part of the matrix
    return {
        "title": title,
        "description": f"{title} to t = {report.time:g} s {description}",
        "whole": GlobalForm(mass, jacobian, mass @ free, offset),
        "local": not plain,
        "step": step,
    }


def _is_plain(result: StepResult) -> bool:
    """Whether N is D^T M^-1 D of the contacts and nothing else (joints, compliance), by a product."""
    problem, n = result.problem, 3 * result.problem.count
    if type(problem.operator) is not ContactOperator:
        return False
    x, product = np.zeros_like(problem.bias), np.zeros_like(problem.bias)
    x[:, : problem.count] = np.random.default_rng(0).normal(size=(3, problem.count))
    problem.operator.product(x, product)
    jacobian = problem.operator.jacobian()
    found = contact_first(product, 3, problem.count)
    wanted = jacobian @ (problem.operator.inverse_mass() @ (jacobian.T @ contact_first(x, 3, problem.count)))
    return n == 0 or not float(np.abs(found - wanted).max()) > 1e-9 * float(np.abs(wanted).max())


def _degrees_of_freedom(arrays: Any) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Directions that can move, orthonormal (6 bodies, d), and their mass matrix M (d, d)."""
    n = len(arrays.inverse_mass)
    xx, yy, zz, xy, xz, yz = arrays.inverse_inertia.T
    turn = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(n, 3, 3)
    turn = np.where(np.isfinite(turn), turn, 0.0)
    value, vector = np.linalg.eigh(turn)
    free = value > LOCKED * np.maximum(value[:, -1:], 1e-300)
    whole = free.all(axis=1)  # keeps world axes; others get the axes in which they are locked
    vector[whole] = np.eye(3)
    inverse = np.zeros((n, 6, 6))
    inverse[:, [0, 1, 2], [0, 1, 2]] = np.divide(
        1.0, arrays.inverse_mass, out=np.zeros((n, 3)), where=arrays.inverse_mass > 0.0
    )
    inverse[:, [3, 4, 5], [3, 4, 5]] = np.divide(1.0, value, out=np.zeros((n, 3)), where=free)
    inverse[whole, 3:, 3:] = np.linalg.inv(turn[whole])
    axes = np.zeros((n, 6, 6))
    axes[:, [0, 1, 2], [0, 1, 2]] = 1.0
    axes[:, 3:, 3:] = vector
    keep = np.flatnonzero(np.concatenate([arrays.inverse_mass > 0.0, free], axis=1).ravel())
    blocks = (np.arange(n), np.arange(n + 1))
    mass = sp.bsr_matrix((inverse, *blocks), shape=(6 * n, 6 * n)).tocsr()[keep][:, keep]
    basis = sp.bsr_matrix((axes, *blocks), shape=(6 * n, 6 * n)).tocsc()[:, keep].tocsr()
    for matrix in (mass, basis):
        matrix.eliminate_zeros()
    return basis, mass


def _joint_rows(sim: Simulation, result: StepResult, basis: sp.csr_matrix, free: np.ndarray) -> dict[str, Any]:
    """Rows of the joints on the degrees of freedom v of the global form.

    Equalities G v + b + E y = 0 with the impulses y they add to the free motion; bounded rows u = B v + b + E g.
    """
    joints, operator, k = sim._work.joints, result.problem.operator, result.contacts.count
    assert joints is not None and isinstance(operator, ArticulatedOperator)  # rolling friction has no global form
    arrays, model, n = operator.arrays, joints.model, sim.model.body_count
    equality = (sparse_rows(arrays.body, arrays.jacobian, n) @ basis).tocsr()
    bounded = (sparse_rows(arrays.bounded_body, arrays.bounded_jacobian, n) @ basis).tocsr()
    bound = bounds_of(result.problem.friction[k : result.problem.count])
    return {
        "names": json.dumps(model.names),
        "equality": equality,
        "equality_bias": -(equality @ free),
        "equality_compliance": joints.backend.fetch(joints.system.compliance).copy(),
        "equality_element": model.row_element[joints.equality],
        "bounded": bounded,
        "bounded_bias": result.problem.bias[0, k : result.problem.count] - bounded @ free,
        "bounded_compliance": arrays.bounded_compliance.copy(),
        "bounded_element": model.row_element[joints.backend.fetch(joints.bounded.active)],
        "lowest": np.where(np.isfinite(bound), -bound, 0.0),
        "highest": bound,
    }
