"""Unique forces: of all impulses that carry the same motion under the same law, those of smallest norm.

min sum |w_i g_i|^2 subject to N g = N g0 (the same velocities), g_i in K_i, g_i . a_i = 0, with a = u for the relaxed
law and u + mu |u_T| e_n for Coulomb's. The last two say that g_i lies in a face of its cone, which the velocities
choose: open contacts have none, sliding ones the ray against the slip, sticking ones the whole cone
(`docs/unique_forces.md`).
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
from .matrix_form import TINY, project
from .minimum_norm import minimum_norm, norm
from .motion_rows import motion_rows
from .residuals import measure

__all__ = ["UniqueForces", "unique_impulses", "unique_solution"]

SHARP = 1e-12
"""Natural map to which velocities are sharpened before their forces are sought."""
STICK = 1e-7
"""Slip and opening speeds below this part of the largest (weighted) impulse of the scene count as rest ..."""
NOISE = 10.0
"""... or below so many times the largest natural-map residual of a contact, whichever is larger."""
TOLERANCE = 1e-13
"""What the second solve aims at, |v - v0| / |v0 - v_free| in the norm of the kinetic energy."""
MOVED = 1e-8
"""Forces that change the velocities by more than this are refused."""
LEAST = 1e-7
"""Forces that obey the law worse than this and worse than the solution did are refused."""
LIMIT = 300
"""Newton steps."""
NOTHING = 1e-100
"""Arms and roots of masses below this part of the largest are zero: their squares would be."""


@dataclass(frozen=True)
class UniqueForces:
    """Impulses of smallest norm and how they were found."""

    impulse: np.ndarray
    """(3, cap), rows n, u, w [N s]; those of the solution where the status is not `converged`"""
    status: Status
    """converged, or stalled: the forces found change the motion (error above 1e-8), or obey the law worse than the
    solution does and worse than 1e-7"""
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
    sharp = sharpened(problem, solution, SolverAuto(tolerance=SHARP, max_iterations=20000)) if sharpen else solution
    return _unique(problem, sharp, solution.residuals.natural_map)


def unique_solution(problem: ConeProblem, solution: Solution) -> tuple[Solution, UniqueForces]:
    """A step's solution, sharpened, with the unique impulses in place of its own; and what was found."""
    _check(problem)
    # In a step Coulomb's law gets what APGD can do in its iterations; the relaxed law has a method that ends.
    sharp = sharpened(problem, solution, SolverAuto(tolerance=SHARP, steps=solution.law == Law.COULOMB))
    unique = _unique(problem, sharp, solution.residuals.natural_map)
    if unique.converged:
        sharp = replace(sharp, impulse=unique.impulse, residuals=measure(problem, unique.impulse, solution.law))
    return sharp, unique


def sharpened(problem: ConeProblem, solution: Solution, solver: Solver) -> Solution:
    """The solution, or a better one that a solver finds from it; its name and status stay."""
    if solution.residuals.natural_map <= SHARP or problem.count == 0:
        return solution
    better = solver.solve(problem, law=solution.law, guess=solution.impulse)
    iterations, products = solution.iterations + better.iterations, solution.products + better.products
    if better.residuals.natural_map < solution.residuals.natural_map:
        solution = replace(solution, impulse=better.impulse, residuals=better.residuals)
    return replace(solution, iterations=iterations, products=products)


def _unique(problem: ConeProblem, solution: Solution, accuracy: float) -> UniqueForces:
    """accuracy: natural map that the forces may have, that of the solution as it was given."""
    n, dim = problem.count, problem.dim
    if n == 0:
        return UniqueForces(solution.impulse, Status.CONVERGED, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0)
    given = solution.impulse[:dim, :n].T
    faces = _Faces(problem, solution)
    rows = motion_rows(problem)
    motion = rows.T @ given.ravel()
    columns = sp.csc_matrix(faces.columns.T @ rows)
    columns.data[np.abs(columns.data) <= NOTHING * np.abs(columns.data).max(initial=0.0)] = 0.0
    columns.eliminate_zeros()
    used = np.flatnonzero(np.diff(columns.indptr))  # velocities that no force of the faces can change stay as they are
    left = (motion - rows.T @ faces.fixed.ravel())[used]
    found = minimum_norm(columns[:, used].tocsr(), faces.friction, left, TOLERANCE, LIMIT)
    out = np.zeros_like(problem.bias)
    out[:dim, :n] = (faces.fixed + (faces.columns @ found.y.ravel()).reshape(n, dim)).T
    change, size = norm(rows.T @ (out[:dim, :n].T - given).ravel()), norm(motion)
    error = change / size if size > 0.0 else change
    reached = measure(problem, out, solution.law).natural_map
    good = error <= MOVED and reached <= max(LEAST, accuracy)
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
        cone = ~problem.bounded
        cap = np.where(cone, mu, 0.0)
        opening = u[:, 0] if solution.law == Law.COULOMB else u[:, 0] - cap * slip  # a_n - mu |a_T| under both laws

        weighted, slack = root[:, None] * solution.impulse[:dim, :n].T, u / root[:, None]
        slack[:, 0] = (opening + cap * slip) / root
        off = weighted - project(weighted - slack, np.where(cone, mu, mu * root))  # the natural map, contact by contact
        largest = float(np.sqrt(np.sum(weighted**2, axis=1).max()))
        rest = max(STICK * largest, NOISE * float(np.sqrt(np.sum(off**2, axis=1).max())))
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
