"""Unique forces: of all impulses that carry the same motion under the same law, those of smallest norm.

min sum |w_i g_i|^2 subject to N g = N g0 (the same velocities), g_i in K_i, g_i . a_i = 0, with a = u for the relaxed law
and u + mu |u_T| e_n for Coulomb's. The last two say that g_i lies in a face of its cone, which the velocities choose:
open contacts have none, sliding ones the ray against the slip, sticking ones the whole cone (`docs/unique_forces.md`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ..enums import BlockKind, Law, Status
from ..errors import ProblemError, message
from ..problem.cone_problem import ConeProblem
from .auto import SolverAuto
from .base import Solution, Solver
from .matrix_form import TINY
from .minimum_norm import minimum_norm
from .motion_rows import motion_rows
from .residuals import measure

__all__ = ["UniqueForces", "sharpened", "unique_impulses"]

SHARP = 1e-12
"""Natural map to which velocities are sharpened before their forces are sought."""
STICK = 1e-7
"""Slip and opening speeds below this part of the largest (weighted) impulse of the scene count as rest ..."""
NOISE = 10.0
"""... or below so many times the error of the velocities, the larger of the two."""
TOLERANCE = 1e-13
"""What the second solve aims at, |v - v0| / |v0 - v_free| in the norm of the kinetic energy."""
MOVED = 1e-8
"""Forces that change the velocities by more than this are refused."""
WORSE = 10.0
"""Forces whose natural map is larger than that of the solution by more than this factor are refused ..."""
LEAST = 1e-7
"""... unless it is below this."""
LIMIT = 300
"""Newton steps."""


@dataclass(frozen=True)
class UniqueForces:
    """Impulses of smallest norm and how they were found."""

    impulse: np.ndarray
    """(3, cap), rows n, u, w [N s]; those of the solution where the status is not `converged`"""
    status: Status
    """converged, or stalled: the forces found move the bodies otherwise, or break the law"""
    iterations: int
    """Newton steps"""
    error: float
    """How far the forces are from carrying the motion: |v - v0| / |v0 - v_free| in the norm of the kinetic energy"""
    natural_map: float
    """Of these impulses, as in `Residuals`: how well they obey the law"""
    velocity_error: float
    """Natural map of the solution whose velocities were taken"""
    threshold: float
    """Speed that counted as rest, relative to the largest weighted impulse"""
    open: int
    sliding: int
    sticking: int

    @property
    def converged(self) -> bool:
        """Whether these are the unique forces."""
        return self.status == Status.CONVERGED


def unique_impulses(problem: ConeProblem, solution: Solution, *, sharpen: bool = True) -> UniqueForces:
    """The impulses of smallest norm that carry the motion of a solution.

    sharpen: solve on to a natural map of 1e-12 first, from the solution. Forces depend on velocities much more than
    velocities on forces: a contact that slips slowly has a force whose direction is that of a tiny velocity.
    """
    _check(problem)
    if sharpen:
        solution = sharpened(problem, solution, SolverAuto(tolerance=SHARP, max_iterations=20000))
    n, dim, law = problem.count, problem.dim, solution.law
    if n == 0:
        return UniqueForces(solution.impulse, Status.CONVERGED, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0)
    given = solution.impulse[:dim, :n].T
    faces = _Faces(problem, solution)
    rows = motion_rows(problem)
    motion = rows.T @ given.ravel()
    left = motion - rows.T @ faces.fixed.ravel()
    columns = sp.csc_matrix(faces.columns.T @ rows)
    columns.eliminate_zeros()
    used = np.flatnonzero(np.diff(columns.indptr))  # velocities that no force of the faces can change stay as they are
    found = minimum_norm(columns[:, used].tocsr(), faces.friction, left[used], TOLERANCE, LIMIT)
    out = np.zeros_like(problem.bias)
    out[:dim, :n] = (faces.fixed + (faces.columns @ found.y.ravel()).reshape(n, dim)).T
    size = float(np.sqrt(np.sum(motion**2)))
    change = rows.T @ (out[:dim, :n].T - given).ravel()
    error = float(np.sqrt(np.sum(change**2))) / size if size > 0.0 else 0.0
    reached = measure(problem, out, law).natural_map
    good = error <= MOVED and reached <= max(LEAST, WORSE * solution.residuals.natural_map)
    return UniqueForces(
        out if good else solution.impulse,
        Status.CONVERGED if good else Status.STALLED,
        found.iterations,
        error,
        reached,
        solution.residuals.natural_map,
        faces.threshold,
        *faces.counts,
    )


def sharpened(problem: ConeProblem, solution: Solution, solver: Solver) -> Solution:
    """The solution, or a better one that a solver finds from it; the name and, if nothing is better, all stays."""
    if solution.residuals.natural_map <= SHARP or problem.count == 0:
        return solution
    better = solver.solve(problem, law=solution.law, guess=solution.impulse)
    iterations, products = solution.iterations + better.iterations, solution.products + better.products
    if better.residuals.natural_map < solution.residuals.natural_map:
        solution = replace(solution, impulse=better.impulse, residuals=better.residuals)
    return replace(solution, iterations=iterations, products=products)


class _Faces:
    """The faces of the cones that the velocities leave: impulse = fixed + columns y with y in cones and intervals."""

    def __init__(self, problem: ConeProblem, solution: Solution) -> None:
        n, dim, mu = problem.count, problem.dim, problem.friction[: problem.count]
        diagonal = np.zeros((6, problem.bias.shape[1]))
        problem.operator.diagonal_blocks(diagonal)
        diagonal = diagonal[:3, :n]
        mean = diagonal.sum(axis=0) / dim
        root = np.sqrt(np.where(mean > 0.0, mean, 1.0))
        product = np.zeros_like(problem.bias)
        problem.operator.product(solution.impulse, product)
        u = (product + problem.bias)[:dim, :n].T
        slip = np.sqrt(np.sum(u[:, 1:] ** 2, axis=1))
        cone = mu >= 0.0
        cap = np.where(cone, mu, 0.0)
        opening = u[:, 0] if solution.law == Law.COULOMB else u[:, 0] - cap * slip  # a_n - mu |a_T| under both laws

        weighted = root * np.sqrt(np.sum(solution.impulse[:dim, :n] ** 2, axis=0))
        largest = float(weighted.max())
        sizes = (weighted, problem.bias[:dim, :n].T / root[:, None], u / root[:, None])
        scale = max(float(np.sqrt(np.sum(x**2))) for x in sizes)
        rest = max(STICK * largest, NOISE * solution.residuals.natural_map * scale)
        self.threshold = rest / largest if largest > 0.0 else 0.0

        is_open = cone & (opening > rest * root)
        sticks = ~is_open & (slip <= rest * root)
        full = ~cone & (np.abs(u[:, 0]) > rest * root)  # a row at its bound
        slides = cone & ~is_open & ~sticks
        sticks &= cone | ~full
        self.counts = int(is_open.sum()), int(slides.sum()), int(sticks.sum())
        self.fixed = np.zeros((n, dim))
        self.fixed[full, 0] = np.sign(u[full, 0]) * mu[full]

        kept = np.flatnonzero(sticks | slides)
        blocks = np.zeros((len(kept), dim, dim))
        stuck = sticks[kept]
        blocks[stuck] = np.eye(dim)
        # Against the slip. Where the contact bears a load its own friction says it too, and says it such that the
        # solution lies in the face: the two differ by the error of the velocities over the slip.
        own = solution.impulse[1:dim, :n].T
        pull = np.sqrt(np.sum(own**2, axis=1))
        loaded = root * pull > rest
        along = np.where(loaded[:, None], own, -u[:, 1:]) / np.maximum(np.where(loaded, pull, slip), TINY)[:, None]
        ray = np.concatenate([np.ones((n, 1)), cap[:, None] * along], axis=1)[kept]
        blocks[~stuck, :, 0] = (ray / np.sqrt(1.0 + cap[kept, None] ** 2))[~stuck]
        weight = _weights(diagonal, mean)[kept]
        blocks /= weight[:, None, None]
        place = np.zeros(n, np.int64)
        place[kept] = 1
        start = np.concatenate([[0], np.cumsum(place)])
        self.columns = sp.bsr_matrix(
            (blocks, np.arange(len(kept)), start), shape=(n * dim, len(kept) * dim), blocksize=(dim, dim)
        ).tocsr()
        self.friction = np.where(stuck, np.where(cone[kept], mu[kept], mu[kept] * weight), 0.0)


def _weights(diagonal: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """w (n,): 1 for contacts; for the rows of joints (limits, motors), whose unit may be another, the root of their
    diagonal over the contacts' mean diagonal."""
    row = ~np.any(diagonal[1:] > 0.0, axis=0)
    contacts = mean[~row & (mean > 0.0)]
    reference = float(np.mean(contacts)) if len(contacts) else 1.0
    return np.where(row & (diagonal[0] > 0.0), np.sqrt(diagonal[0] / reference), 1.0)


def _check(problem: ConeProblem) -> None:
    if not isinstance(problem, ConeProblem) or problem.dim > 3 or problem.group.kind != BlockKind.CONE:
        raise ProblemError(
            message(
                "unique forces",
                "are for contacts with dry friction, two or three rows each",
                f"{type(problem).__name__} with {getattr(problem, 'dim', '?')} rows a contact",
                "Leave out rolling friction, or unique_forces.",
            )
        )
